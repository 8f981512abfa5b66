"""Draw ops that an optimizer has removed beside what is left of the graph.

A ghost is no part of the graph: the edges at it say so, and no count of ops includes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import networkx as nx

from graph2mermaid.graph import Arrow, Edge, Graph, Node, NodeKind
from graph2mermaid.passes.inline import Inlined

AS_TRACED = "as traced"
"""What edges at a ghost say: nothing flows there any more."""

_EDGE = Edge(source_port=None, target_port=None, label=AS_TRACED)


@dataclass(frozen=True, slots=True)
class Ghost:
    """A removed op, and the ops that its neighbors became."""

    node: Node
    makers: tuple[str, ...] = ()
    """Where its inputs come from now: ops of the optimized graph, or names of other ghosts."""
    readers: tuple[str, ...] = ()
    """The ops of the optimized graph that still do the work of its readers."""
    results: tuple[str, ...] = ()
    """The results of the function that it was, by name."""
    beside: str = ""
    """An op of the same body that is still there; the ghost is drawn in its frame."""


@dataclass(frozen=True)
class Ghosts:
    """The removed ops of a graph."""

    drawn: tuple[Ghost, ...] = ()
    """In trace order."""
    plumbing: int = 0
    """How many others there are, which are not drawn."""


@dataclass(frozen=True)
class Haunted:
    """A graph with ghosts, and how much of them is not in it."""

    graph: Graph
    home: Mapping[str, str]
    """For each node inside a frame, the key of the innermost one; ghosts included."""
    not_placed: int
    """Ghosts that nothing on the drawing leads to or from."""
    edges_dropped: int
    """Edges from ghosts to readers that come before them now."""


def with_ghosts(
    graph: Graph, inlined: Inlined, gone: Mapping[str, str], ghosts: Sequence[Ghost]
) -> Haunted:
    """Return the graph with ghosts; it stays without cycles.

    Args:
        graph: What is drawn of the optimized graph.
        inlined: The same before its plumbing was taken out.
        gone: For each op of plumbing that was taken out, the node that it is now part of.
        ghosts: In trace order; names that the graph has are changed.
    """
    places = _Places(graph, inlined, gone)
    names = {ghost.node.name: _free(ghost.node.name, graph) for ghost in ghosts}
    arrows: dict[tuple[str, str], Arrow] = {}

    def connect(source: str | None, target: str | None) -> None:
        if source is not None and target is not None and source != target:
            arrows.setdefault((source, target), Arrow(source, target, _EDGE))

    for ghost in ghosts:
        name = names[ghost.node.name]
        for maker in ghost.makers:
            connect(names.get(maker) or places.source(maker), name)
        for reader in ghost.readers:
            for target in places.targets(reader):
                connect(name, target)
        for result in ghost.results:
            connect(name, places.result(result))
    kept, dropped = _without_cycles(graph, list(arrows.values()), set(names.values()))
    placed = {end for arrow in kept for end in arrow[:2]}
    drawn = [ghost for ghost in ghosts if names[ghost.node.name] in placed]
    if not drawn:
        return Haunted(graph, inlined.home, len(ghosts), dropped)
    home = dict(inlined.home)
    for ghost in drawn:
        beside = places.source(ghost.beside) if ghost.beside else None
        if beside in home:
            home[names[ghost.node.name]] = home[beside]
    nodes = [replace(ghost.node, name=names[ghost.node.name]) for ghost in drawn]
    built = Graph.build(
        graph.name,
        graph.stage,
        _in_place(graph, nodes, kept),
        [*graph.arrows(), *kept],
        inputs=graph.inputs,
        captures=graph.captures,
        outputs=graph.outputs,
        source=graph.source,
    )
    built = replace(built, back_edges=(*built.back_edges, *graph.back_edges))
    return Haunted(built, home, len(ghosts) - len(drawn), dropped)


class _Places:
    """Where ops of the optimized graph are drawn."""

    def __init__(self, graph: Graph, inlined: Inlined, gone: Mapping[str, str]) -> None:
        self._graph = graph
        self._full = inlined.graph
        self._gone = gone
        self._heads = {
            member: node.name for node in inlined.graph.nodes() for member in node.members
        }
        """For each op of lowered control flow, the diamond or merge that it is part of."""
        self._results = {
            node.name.removeprefix("output:"): node.name
            for node in graph.nodes()
            if node.kind is NodeKind.OUTPUT
        }

    def source(self, name: str) -> str | None:
        """Return what is drawn in the place of an op that makes a tensor.

        A constant that became words of its reader is drawn nowhere.
        """
        name = self._heads.get(name, name)
        for _ in range(len(self._gone) + 1):
            if name in self._graph:
                return name
            if name not in self._full or self._full[name].kind is NodeKind.CONST:
                return None
            name = self._gone.get(name, "")
        return None

    def targets(self, name: str) -> list[str]:
        """Return what is drawn in the place of a reader; for plumbing, what reads it in turn."""
        found: dict[str, None] = {}
        seen: set[str] = set()
        stack = [self._heads.get(name, name)]
        while stack:
            name = stack.pop()
            if name in self._graph:
                found[name] = None
            elif name not in seen and name in self._full:
                seen.add(name)
                stack += [arrow.target for arrow in reversed(self._full.outgoing(name))]
                for binding in self._full.outputs:
                    if any(ref.node == name for ref in binding.tensors):
                        stack.append(self._results.get(binding.name, ""))
        return list(found)

    def result(self, name: str) -> str | None:
        """Return the node of a result."""
        return self._results.get(name)


def _free(name: str, graph: Graph) -> str:
    while name in graph:
        name += "'"
    return name


def _without_cycles(graph: Graph, arrows: list[Arrow], ghosts: set[str]) -> tuple[list[Arrow], int]:
    """Take out the edges from ghosts to readers that come before them now.

    Neither the graph nor the traced one has a cycle, so each cycle leads out of a ghost
    into the graph.
    """
    whole: nx.DiGraph[str] = nx.DiGraph()
    whole.add_edges_from((arrow.source, arrow.target) for arrow in graph.arrows())
    whole.add_edges_from((arrow.source, arrow.target) for arrow in arrows)
    if nx.is_directed_acyclic_graph(whole):
        return arrows, 0
    component: dict[str, int] = {}
    for number, names in enumerate(nx.strongly_connected_components(whole)):
        component.update(dict.fromkeys(names, number))
    kept = [
        a
        for a in arrows
        if component[a.source] != component[a.target]
        or a.source not in ghosts
        or a.target in ghosts
    ]
    return kept, len(arrows) - len(kept)


def _in_place(graph: Graph, ghosts: Iterable[Node], arrows: Iterable[Arrow]) -> list[Node]:
    """Return all nodes in order: a ghost after the last one that it reads."""
    position: dict[str, float] = {name: at for at, name in enumerate(graph.names())}
    into: dict[str, list[str]] = {}
    out: dict[str, list[str]] = {}
    for source, target, _ in arrows:
        into.setdefault(target, []).append(source)
        out.setdefault(source, []).append(target)
    nodes = list(graph.nodes())
    for ghost in ghosts:
        made = [position[name] for name in into.get(ghost.name, ()) if name in position]
        read = [position[name] - 1 for name in out.get(ghost.name, ()) if name in position]
        position[ghost.name] = max(made) if made else min(read, default=-1)
        nodes.append(ghost)
    return sorted(nodes, key=lambda node: position[node.name])  # stable: ghosts come after
