"""The graph every other part of the package works on.

A [`Graph`][graph2mermaid.Graph] holds typed nodes and edges, and gives them out as one frozen
`networkx.MultiDiGraph` as well: node keys are op names, each node carries `node: Node` and each
edge `edge: Edge`, so every networkx algorithm and writer works on `graph.dag` as it is.
"""

from __future__ import annotations

import enum
import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    GHOST = "ghost"  # an op that an optimizer has removed; made by views


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


class _Wires:
    """Nodes and edges by name, and what is worked out from them when it is first asked for.

    Passes ask for every node's edges several times and make a dozen graphs on the way, so these
    are plain dicts; a `networkx` graph takes twenty times as long to make.
    """

    def __init__(
        self,
        nodes: Mapping[str, Node],
        out: Mapping[str, tuple[Arrow, ...]],
        order: Sequence[str] | None = None,
    ) -> None:
        self.nodes = nodes
        self.out = out
        if order is not None:
            self.order = tuple(order)

    @functools.cached_property
    def into(self) -> Mapping[str, tuple[Arrow, ...]]:
        """The edges into each node: data edges by input port, then control edges."""
        into: dict[str, list[Arrow]] = {name: [] for name in self.nodes}
        for arrows in self.out.values():
            for arrow in arrows:
                into[arrow[1]].append(arrow)
        for found in into.values():
            if len(found) > 1:
                found.sort(key=_by_target_port)
        return {name: tuple(found) for name, found in into.items()}

    @functools.cached_property
    def order(self) -> tuple[str, ...]:
        """The names in an order that all edges follow: that of `networkx.topological_sort`."""
        return tuple(_sorted(self.out))

    @functools.cached_property
    def dag(self) -> nx.MultiDiGraph[str]:
        """The same as a `networkx` graph."""
        dag: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        dag.add_nodes_from((name, {"node": node}) for name, node in self.nodes.items())
        dag.add_edges_from(
            (source, target, {"edge": edge})
            for arrows in self.out.values()
            for source, target, edge in arrows
        )
        nx.freeze(dag)
        return dag


@dataclass(frozen=True, eq=False)
class Graph:
    """A dataflow graph at one stage, with the functions its ops call.

    Use [`Graph.build`][graph2mermaid.Graph.build], which takes loops apart and freezes the result.
    `dag` is always acyclic: edges that close a loop (NextIteration to Merge in graphs with
    lowered control flow) are in `back_edges`.
    """

    name: str
    stage: Stage
    _wires: _Wires
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
        payloads: dict[str, Node] = {}
        for node in nodes:
            if node.name in payloads:
                raise ValueError(f"two nodes are called {node.name!r}")
            payloads[node.name] = node
        place = {name: at for at, name in enumerate(payloads)}
        closing = {name for name, node in payloads.items() if node.op.endswith("NextIteration")}
        out: dict[str, list[Arrow]] = {name: [] for name in payloads}
        back: list[Arrow] = []
        in_order = True
        for arrow in arrows:
            source, target, _ = arrow
            try:
                forward = place[source] < place[target]
            except KeyError:
                end = target if source in place else source
                raise ValueError(f"edge {source} -> {target}: no node {end!r}") from None
            if source in closing and payloads[target].op.endswith("Merge"):
                back.append(arrow)
                continue
            out[source].append(arrow)
            if not forward:
                in_order = False
        grouped = {
            source: _parallel_together(found) if len(found) > 1 else tuple(found)
            for source, found in out.items()
        }
        order = None if in_order else _sorted(grouped)
        if order is not None and len(order) < len(grouped):
            back += _take_out_cycles(grouped)
            order = None
        return cls(name, stage, _Wires(payloads, grouped, order), tuple(back), **rest)

    @property
    def dag(self) -> nx.MultiDiGraph[str]:
        """The nodes and edges as a frozen `networkx` graph, made when it is first asked for."""
        return self._wires.dag

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
        return len(self._wires.nodes)

    def __contains__(self, name: object) -> bool:
        """Tell whether there is a node of this name."""
        return name in self._wires.nodes

    def __getitem__(self, name: str) -> Node:
        """Return the node of this name.

        Raises:
            KeyError: There is none.
        """
        return self._wires.nodes[name]

    @property
    def edge_count(self) -> int:
        """The number of edges, back edges included."""
        return sum(map(len, self._wires.out.values())) + len(self.back_edges)

    def names(self) -> Iterator[str]:
        """Yield the names of the nodes in trace order."""
        yield from self._wires.nodes

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes in trace order."""
        yield from self._wires.nodes.values()

    def arrows(self) -> Iterator[Arrow]:
        """Yield the edges of the DAG (not the back edges), grouped by source in trace order."""
        return itertools.chain.from_iterable(self._wires.out.values())

    def sorted_names(self) -> tuple[str, ...]:
        """Return the names of the nodes, each after those that it reads or waits for."""
        return self._wires.order

    def incoming(self, name: str) -> tuple[Arrow, ...]:
        """Return the edges into a node: data edges by input port, then control edges.

        Raises:
            KeyError: There is no such node.
        """
        return self._wires.into[name]

    def outgoing(self, name: str) -> tuple[Arrow, ...]:
        """Return the edges out of a node, in the order in which its consumers were made.

        Raises:
            KeyError: There is no such node.
        """
        return self._wires.out[name]

    def ancestors(self, names: Iterable[str]) -> set[str]:
        """Return all that a path leads from to any of these nodes; not these, unless one does."""
        into = self._wires.into
        found: set[str] = set()
        stack = list(names)
        while stack:
            for arrow in into[stack.pop()]:
                if arrow[0] not in found:
                    found.add(arrow[0])
                    stack.append(arrow[0])
        return found

    def tensor(self, ref: TensorRef) -> TensorSpec | None:
        """Return type and shape of an op's output, or None when the source did not say."""
        outputs = self[ref.node].outputs
        return outputs[ref.port] if ref.port < len(outputs) else None


def with_ends(graph: Graph, nodes: Iterable[Node], arrows: Iterable[Arrow]) -> Graph:
    """Return a graph with nodes after all others that only read, and without its functions.

    To build it again from all its nodes and edges would take ten times as long.

    Args:
        graph: What to add to.
        nodes: The new nodes, of names that the graph does not have.
        arrows: Edges into these nodes, those into one node together.
    """
    added = {node.name: node for node in nodes}
    payloads = {**graph._wires.nodes, **added}
    out: dict[str, tuple[Arrow, ...]] = {**graph._wires.out, **dict.fromkeys(added, ())}
    for arrow in arrows:
        out[arrow.source] = (*out[arrow.source], arrow)
    empty: Mapping[str, Any] = _EMPTY
    wires = _Wires(payloads, out, (*graph.sorted_names(), *added))
    return replace(graph, _wires=wires, functions=empty, attrs=empty, extra=empty)


def plain_op(op: str) -> str:
    """Return an op type without the prefix that marks its reference and host variants."""
    return op.removeprefix("_").removeprefix("Ref")


def _by_target_port(arrow: Arrow) -> tuple[bool, int]:
    """Sort key for the edges into a node: data edges by input port, then control edges."""
    port = arrow.edge.target_port
    return (port is None, port or 0)


def _parallel_together(arrows: list[Arrow]) -> tuple[Arrow, ...]:
    """Put the edges to one node next to each other, where the first of them stands."""
    by_target: dict[str, list[Arrow]] = {}
    for arrow in arrows:
        by_target.setdefault(arrow[1], []).append(arrow)
    if len(by_target) == len(arrows):
        return tuple(arrows)
    return tuple([arrow for together in by_target.values() for arrow in together])


def _sorted(out: Mapping[str, Sequence[Arrow]]) -> list[str]:
    """Return the names in topological order; those on or behind a cycle are missing."""
    missing = dict.fromkeys(out, 0)
    for arrows in out.values():
        for arrow in arrows:
            missing[arrow[1]] += 1
    order = [name for name, count in missing.items() if not count]
    for name in order:  # grows while it is read
        for arrow in out[name]:
            missing[arrow[1]] -= 1
            if not missing[arrow[1]]:
                order.append(arrow[1])
    return order


def _take_out_cycles(out: dict[str, tuple[Arrow, ...]]) -> list[Arrow]:
    """Remove the edges that close a cycle, and return them.

    TensorFlow's own graphs have none left here; a damaged or hand-written GraphDef may.
    """
    removed: list[Arrow] = []
    done: set[str] = set()
    for root in out:
        if root in done:
            continue
        on_path = {root}
        stack = [(root, iter(_successors(out, root)))]
        while stack:
            name, successors = stack[-1]
            for successor in successors:
                if successor in on_path:
                    removed += [arrow for arrow in out[name] if arrow.target == successor]
                    out[name] = tuple([arrow for arrow in out[name] if arrow.target != successor])
                elif successor not in done:
                    on_path.add(successor)
                    stack.append((successor, iter(_successors(out, successor))))
                    break
            else:
                stack.pop()
                on_path.discard(name)
                done.add(name)
    return removed


def _successors(out: Mapping[str, Sequence[Arrow]], name: str) -> list[str]:
    return list(dict.fromkeys(arrow.target for arrow in out[name]))
