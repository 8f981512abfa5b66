"""Turn a graph of HLO instructions into dataflow that the other passes understand.

XLA hands several values around as one tuple, and bodies take and return one. Here each value is an
edge of its own, as it is in TensorFlow's graphs, so that loops and branches are drawn like these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from graph2mermaid.graph import Arrow, Binding, Call, Edge, Graph, Node, NodeKind, TensorRef

_TUPLES = frozenset({"tuple", "get-tuple-element"})
_SAME = frozenset({"bitcast"})
"""Opcodes whose result is their operand's memory, seen otherwise."""


@dataclass(frozen=True)
class Dataflow:
    """A graph without tuples, and how much of it is drawn as edges now."""

    graph: Graph
    tuples: int = 0
    """Instructions that only put values into tuples or take them out, and calls put in place."""
    plumbing: int = 0
    """Instructions that move nothing (`bitcast`), and constants spread to a shape."""


def dataflow(graph: Graph, *, simple: bool = True) -> Dataflow:
    """Return the graph with an edge for each value.

    Args:
        graph: Of the stage `xla`, with its functions.
        simple: Draw views of the same memory, and constants spread to a shape, as edges as well.
    """
    making = _Making(graph, simple)
    top = making.flat(graph)
    functions = {key: making.flat(body) for key, body in graph.functions.items()}
    for part in (top, *functions.values()):
        _fit_branches(part, functions)
    scoped = {key: part.scoped(*making.scope_of(key, functions)) for key, part in functions.items()}
    made = replace(top.scoped("", ()), functions=scoped)
    return Dataflow(made, making.tuples, making.plumbing)


@dataclass
class _Part:
    """A computation while it is being made."""

    graph: Graph
    nodes: list[Node] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    inputs: list[TensorRef] = field(default_factory=list)
    outputs: list[TensorRef] = field(default_factory=list)

    def scoped(self, within: str, names: Sequence[str]) -> Graph:
        """Return the graph with every node named below the TensorFlow scope that it comes from.

        Args:
            within: The scope of the op that calls it, which is left out.
            names: Nodes that are named by the instruction alone, all of them where `within` is `*`.
        """
        renamed = {} if within == "*" else _scopes(self, within)
        name = lambda old: f"{renamed[old]}/{old}" if renamed.get(old) else old  # noqa: E731

        def ref(old: TensorRef) -> TensorRef:
            return TensorRef(name(old.node), old.port)

        return Graph.build(
            self.graph.name,
            self.graph.stage,
            (replace(node, name=name(node.name)) for node in self.nodes),
            (Arrow(name(a.source), name(a.target), a.edge) for a in self.arrows),
            inputs=_bound(self.graph.inputs, [ref(one) for one in self.inputs]),
            captures=self._captures(ref),
            outputs=_bound(self.graph.outputs, [ref(one) for one in self.outputs]),
            source=self.graph.source,
        )
