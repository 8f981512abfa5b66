"""The graph every other part of the package works on.

A [`Graph`][graph2mermaid.Graph] is one frozen `networkx.MultiDiGraph` with typed payloads: node
keys are op names, each node carries `node: Node` and each edge `edge: Edge`, so every networkx
algorithm and writer works on `graph.dag` as it is.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import networkx as nx

Scalar = str | int | float | bool | None
"""What an op attribute is reduced to: anything JSON can hold without nesting."""

_EMPTY: Mapping[str, Any] = MappingProxyType({})

_DTYPE_BITS: Mapping[str, int] = MappingProxyType(
    {
        "bool": 8,
        "bfloat16": 16,
        "half": 16,
        "complex64": 64,
        "complex128": 128,
        "int4": 4,
        "uint4": 4,
        **{f"float{bits}": bits for bits in (16, 32, 64)},
        **{f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)},
        **{f"q{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32)},
    }
)
# Everything else (string, resource, variant) has no fixed size; float8_* are one byte each.


STRUCTURAL_ARGUMENTS = frozenset(
    [
        "axis",
        "axes",
        "dim",
        "dims",
        "dimension",
        "split_dim",
        "concat_dim",
        "reduction_indices",
        "perm",
        "shape",
        "size",
        "sizes",
        "begin",
        "end",
        "strides",
        "multiples",
        "paddings",
        "block_shape",
        "crops",
        "num_segments",
        "size_splits",
        "output_shape",
        "input_sizes",
        "filter_sizes",
        "broadcast_shape",
        "depth",
        "k",
        "start",
        "limit",
        "delta",
        "num_lower",
        "num_upper",
        "element_shape",
        "num_elements",
        "max_num_elements",
        "seed",
    ]
)
"""Inputs that say how an op works rather than what it works on, by the op definitions' names."""


class NodeKind(str, enum.Enum):
    """What a node stands for. The kind decides shape and colour in a diagram."""

    INPUT = "input"  # an argument of the function
    OUTPUT = "output"  # a result; made by views, never an op of its own
    CONST = "const"  # a constant, or a captured value that cannot change
    VARIABLE = "variable"  # a captured resource: variable, table, iterator
    OP = "op"
    CALL = "call"  # calls one function: PartitionedCall and the like
    CONTROL_FLOW = "control_flow"  # chooses among or repeats bodies: If, Case, While
    TENSOR = "tensor"  # a named tensor drawn as a node; made by views
    GROUP = "group"  # several nodes merged by a pass
    ELIDED = "elided"  # left out, and counted


class EdgeKind(str, enum.Enum):
    """Whether an edge carries a tensor or only an order."""

    DATA = "data"
    CONTROL = "control"


class Stage(str, enum.Enum):
    """The point in TensorFlow's pipeline that a graph was taken at."""

    TRACED = "traced"
    GRAPPLER = "grappler"
    RUNTIME = "runtime"
    XLA = "xla"
    DATASET = "dataset"


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Type and shape of one tensor.

    `shape` is a tuple with `None` for each unknown dimension, or `None` when the rank is unknown.
    """

    dtype: str
    shape: tuple[int | None, ...] | None = None

    def __str__(self) -> str:
        """Return the form users type: `float32[8,?]`, `int32[]`, `float32[...]` (unknown rank)."""
        if self.shape is None:
            return f"{self.dtype}[...]"
        return f"{self.dtype}[{','.join('?' if n is None else str(n) for n in self.shape)}]"

    @property
    def size(self) -> int | None:
        """The number of elements, or None when a dimension is unknown."""
        if self.shape is None:
            return None
        known = [n for n in self.shape if n is not None]
        return math.prod(known) if len(known) == len(self.shape) else None

    @property
    def nbytes(self) -> int | None:
        """The size in bytes, or None when it is not fixed by type and shape."""
        bits = 8 if self.dtype.startswith("float8") else _DTYPE_BITS.get(self.dtype)
        return None if bits is None or self.size is None else (self.size * bits + 7) // 8


@dataclass(frozen=True, slots=True)
class SourceLine:
    """The innermost line of the user's own code that made an op."""

    file: str
    """Relative to the working directory when below it."""
    line: int
    function: str = ""

    def __str__(self) -> str:
        """Return `file:line`."""
        return f"{self.file}:{self.line}"


class TensorRef(NamedTuple):
    """One output of one op; TensorFlow writes it `node:port`."""

    node: str
    port: int = 0

    def __str__(self) -> str:
        """Return TensorFlow's own form, `node:port`."""
        return f"{self.node}:{self.port}"


@dataclass(frozen=True, slots=True)
class Binding:
    """An argument, capture or result under the name the user knows, and the tensors behind it.

    A composite tensor (ragged, sparse) is one binding with several tensors; a Python value or
    None among the arguments or results has none. In the body of a called function there is one
    binding for each position of the call.
    """

    name: str
    """`x`, `batch['zeta']`, `scores`."""
    tensors: tuple[TensorRef, ...] = ()
    type: str = ""
    """`float32[?,4]`, `RaggedTensor float32[3,?]`, `Python value 2.0`, `None`."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function that an op refers to, and the attribute it hangs on.

    `role` is the attribute's name (`then_branch`, `body`, `f`, `predicate`), with an index where
    the attribute is a list (`branches[2]`).
    """

    role: str
    function: str
    """The key in `Graph.functions` of the top graph."""


@dataclass(frozen=True, slots=True)
class Node:
    """One op, or what a pass made of several."""

    name: str
    """Unique in its graph. TensorFlow's own op name."""
    op: str
    """The op type: `MatMul`."""
    kind: NodeKind = NodeKind.OP
    outputs: tuple[TensorSpec, ...] = ()
    api: str | None = None
    """The public function the user called: `tf.multiply`; for an operator, `*`."""
    variable: str | None = None
    """The Python variable that the result was assigned to."""
    label: str | None = None
    """The name the user knows an input, capture or variable by, when it is not `name`."""
    value: str | None = None
    """A constant's value as text, when it is small."""
    holds: TensorSpec | None = None
    """For a variable: type and shape of its value (`outputs` has the resource handle)."""
    attrs: Mapping[str, Scalar] = field(default_factory=lambda: _EMPTY)
    device: str = ""
    source: SourceLine | None = None
    calls: tuple[Call, ...] = ()
    members: tuple[str, ...] = ()
    """The names of the nodes that a pass merged into this one."""
    origin: tuple[str, ...] = ()
    """The nodes of the previous stage that it was made from."""
    extra: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    """Keys of a capture file that this version does not know; kept as they are."""

    @property
    def scope(self) -> str:
        """The name scope: everything before the last slash, or the empty string."""
        return self.name.rpartition("/")[0]

    def tensor_name(self, port: int | None = 0) -> str | None:
        """Return the name a user knows an output by: an argument's, or the Python variable's."""
        if not self.variable:
            return self.label
        names = self.variable.split(", ")
        if len(names) == 1:
            return self.variable if not port else None
        return names[port] if port is not None and port < len(names) else None


@dataclass(frozen=True, slots=True)
class Edge:
    """A tensor that flows from one op to another, or an order between them.

    Ports are None on control edges. `argument` is the consumer's own name for the input
    (`axis`, `shape`); it is recorded on edges that leave a constant.
    """

    kind: EdgeKind = EdgeKind.DATA
    source_port: int | None = 0
    target_port: int | None = 0
    tensor: TensorSpec | None = None
    argument: str | None = None
    label: str | None = None
    """Words a pass puts on the edge: `then`, `next iteration`."""
    count: int = 1
    """How many edges of the graph this one stands for."""
    extra: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)


class Arrow(NamedTuple):
    """An edge together with its ends."""

    source: str
    target: str
    edge: Edge


@dataclass(frozen=True, eq=False)
class Graph:
    """A dataflow graph at one stage, with the functions its ops call.

    Use [`Graph.build`][graph2mermaid.Graph.build], which takes loops apart and freezes the result.
    `dag` is always acyclic: edges that close a loop (NextIteration to Merge in graphs with
    lowered control flow) are in `back_edges`.
    """

    name: str
    stage: Stage
    dag: nx.MultiDiGraph[str]
    back_edges: tuple[Arrow, ...] = ()
    inputs: tuple[Binding, ...] = ()
    captures: tuple[Binding, ...] = ()
    outputs: tuple[Binding, ...] = ()
    functions: Mapping[str, Graph] = field(default_factory=lambda: _EMPTY)
    """Every function reachable from an op of this graph; the bodies' own `functions` are empty."""
    source: SourceLine | None = None
    attrs: Mapping[str, Scalar] = field(default_factory=lambda: _EMPTY)
    extra: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)

    @classmethod
    def build(
        cls, name: str, stage: Stage, nodes: Iterable[Node], arrows: Iterable[Arrow], **rest: Any
    ) -> Graph:
        """Make a graph from nodes in trace order and edges in any order.

        Args:
            name: What the graph is called in a report.
            stage: Where in the pipeline it was taken.
            nodes: In the order they were made; diagrams and ids follow it.
            arrows: Edges with their ends, parallel ones included.
            rest: The remaining fields of the class.

        Raises:
            ValueError: Two nodes share a name, or an edge ends at no node.
        """
        dag: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        payloads: dict[str, Node] = {}
        for node in nodes:
            if node.name in payloads:
                raise ValueError(f"two nodes are called {node.name!r}")
            payloads[node.name] = node
        dag.add_nodes_from((node.name, {"node": node}) for node in payloads.values())
        back: list[Arrow] = []
        forward: list[Arrow] = []
        for arrow in arrows:
            for end in arrow[:2]:
                if end not in payloads:
                    raise ValueError(f"edge {arrow.source} -> {arrow.target}: no node {end!r}")
            lowered_loop = payloads[arrow.source].op.endswith("NextIteration") and payloads[
                arrow.target
            ].op.endswith("Merge")
            (back if lowered_loop else forward).append(arrow)
        dag.add_edges_from((a.source, a.target, {"edge": a.edge}) for a in forward)
        back += _take_out_cycles(dag)
        return cls(name, stage, nx.freeze(dag), tuple(back), **rest)

    def __eq__(self, other: object) -> bool:
        """Compare by content: nodes in order, edges in order, and everything beside them."""
        return isinstance(other, Graph) and self._content() == other._content()

    __hash__ = None  # type: ignore[assignment]  # mutable mappings inside

    def _content(self) -> tuple[object, ...]:
        return (
            self.name,
            self.stage,
            list(self.nodes()),
            list(self.arrows()),
            self.back_edges,
            self.inputs,
            self.captures,
            self.outputs,
            dict(self.functions),
            self.source,
            dict(self.attrs),
            dict(self.extra),
        )

    def __repr__(self) -> str:
        """Return a short form: name, stage and size."""
        return f"<Graph {self.name} {self.stage.value}: {len(self)} ops, {self.edge_count} edges>"

    def __len__(self) -> int:
        """Return the number of ops, bodies of functions not counted."""
        return self.dag.number_of_nodes()

    def __contains__(self, name: object) -> bool:
        """Tell whether there is a node of this name."""
        return name in self.dag

    def __getitem__(self, name: str) -> Node:
        """Return the node of this name.

        Raises:
            KeyError: There is none.
        """
        node: Node = self.dag.nodes[name]["node"]
        return node

    @property
    def edge_count(self) -> int:
        """The number of edges, back edges included."""
        return self.dag.number_of_edges() + len(self.back_edges)

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes in trace order."""
        yield from (payload["node"] for payload in self.dag.nodes.values())

    def arrows(self) -> Iterator[Arrow]:
        """Yield the edges of the DAG (not the back edges), grouped by source in trace order."""
        yield from _arrows(self.dag.edges(data=True))

    def incoming(self, name: str) -> tuple[Arrow, ...]:
        """Return the edges into a node: data edges by input port, then control edges.

        Raises:
            KeyError: There is no such node.
        """
        return self._ends[name][0]

    def outgoing(self, name: str) -> tuple[Arrow, ...]:
        """Return the edges out of a node, in the order in which its consumers were made.

        Raises:
            KeyError: There is no such node.
        """
        return self._ends[name][1]

    @functools.cached_property
    def _ends(self) -> Mapping[str, tuple[tuple[Arrow, ...], tuple[Arrow, ...]]]:
        # Passes ask for every node's edges several times, and networkx builds a view each time.
        into: dict[str, list[Arrow]] = {name: [] for name in self.dag}
        out: dict[str, list[Arrow]] = {name: [] for name in self.dag}
        for arrow in self.arrows():
            into[arrow.target].append(arrow)
            out[arrow.source].append(arrow)
        for arrows in into.values():
            if len(arrows) > 1:
                arrows.sort(key=_by_target_port)
        return {name: (tuple(into[name]), tuple(out[name])) for name in self.dag}

    def tensor(self, ref: TensorRef) -> TensorSpec | None:
        """Return type and shape of an op's output, or None when the source did not say."""
        outputs = self[ref.node].outputs
        return outputs[ref.port] if ref.port < len(outputs) else None


def _arrows(edges: Iterable[tuple[str, str, dict[str, Any]]]) -> Iterator[Arrow]:
    return (Arrow(source, target, payload["edge"]) for source, target, payload in edges)


def _by_target_port(arrow: Arrow) -> tuple[bool, int]:
    """Sort key for the edges into a node: data edges by input port, then control edges."""
    port = arrow.edge.target_port
    return (port is None, port or 0)


def _take_out_cycles(dag: nx.MultiDiGraph[str]) -> list[Arrow]:
    """Remove the edges that close a cycle, and return them.

    TensorFlow's own graphs have none left here; a damaged or hand-written GraphDef may.
    """
    if nx.is_directed_acyclic_graph(dag):
        return []
    removed: list[Arrow] = []
    done: set[str] = set()
    for root in list(dag):
        if root in done:
            continue
        on_path = {root}
        stack = [(root, iter(list(dag.successors(root))))]
        while stack:
            name, successors = stack[-1]
            for successor in successors:
                if successor in on_path:
                    payloads = dict(dag[name][successor])
                    removed += [Arrow(name, successor, p["edge"]) for p in payloads.values()]
                    dag.remove_edges_from([(name, successor)] * len(payloads))
                elif successor not in done:
                    on_path.add(successor)
                    stack.append((successor, iter(list(dag.successors(successor)))))
                    break
            else:
                stack.pop()
                on_path.discard(name)
                done.add(name)
    return removed
