"""Leave ops out of a drawing, and draw what flowed through them as if they were not there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import networkx as nx

from graph2mermaid.graph import Arrow, EdgeKind, Graph, Node


def hide(graph: Graph, wanted: Iterable[str]) -> tuple[Graph, int]:
    """Take out every op of the given types, and every op below the given scopes.

    An edge into a hidden op goes on to each of its consumers, so that no path is lost.

    Returns:
        The graph, and how many ops were taken out of it.
    """
    names = tuple(wanted)
    hidden = {node.name for node in graph.nodes() if _matches(node, names)}
    if not hidden:
        return graph, 0
    before: dict[str, list[Arrow]] = {}
    for name in nx.topological_sort(graph.dag):
        if name in hidden:
            before[name] = _through(graph, name, before)
    nodes = [node for node in graph.nodes() if node.name not in hidden]
    arrows = [arrow for node in nodes for arrow in _through(graph, node.name, before)]
    built = Graph.build(graph.name, graph.stage, nodes, arrows, source=graph.source)
    back = [
        Arrow(start.source, arrow.target, replace(arrow.edge, source_port=start.edge.source_port))
        for arrow in graph.back_edges
        if arrow.target not in hidden
        for start in before.get(arrow.source, [arrow])
        if start.source != arrow.target
    ]
    return replace(built, back_edges=(*built.back_edges, *back)), len(hidden)


def _through(graph: Graph, name: str, before: dict[str, list[Arrow]]) -> list[Arrow]:
    """Return the edges into a node, those from hidden ops replaced by what comes before these."""
    found: dict[tuple[str, int | None, EdgeKind, int | None], Arrow] = {}
    for arrow in graph.incoming(name):
        for start in before.get(arrow.source, [arrow]):
            edge = start.edge
            if arrow.source in before:
                edge = replace(edge, target_port=arrow.edge.target_port)
            if arrow.edge.kind is EdgeKind.CONTROL:
                edge = arrow.edge
            key = (start.source, edge.source_port, edge.kind, edge.target_port)
            found.setdefault(key, Arrow(start.source, name, edge))
    return list(found.values())


def _matches(node: Node, names: tuple[str, ...]) -> bool:
    return any(
        node.op == name or node.name == name or node.name.startswith(f"{name.rstrip('/')}/")
        for name in names
    )
