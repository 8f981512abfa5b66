"""Leave the edges that every training step has out of its overview, and count them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graph2mermaid.graph import Arrow, EdgeKind, Graph, NodeKind

MOST_WAITS = 3
"""More control edges into a result than this say only that all of the step is run."""


def without_asides(graph: Graph, roles: Mapping[str, str]) -> tuple[Graph, list[str]]:
    """Return the graph of a page without the edges that run beside the way of the data.

    A gradient reads what each forward op has read or made, and the optimizer updates every
    variable: drawn, these edges cross the whole picture. The way from the loss to the gradients
    and on to the optimizer stays.

    Args:
        graph: The graph of a page.
        roles: For the nodes that stand for `gradients`, `optimizer` or `loss`, which.

    Returns:
        The graph, and sentences that count what is gone.
    """
    arrows = list(graph.arrows())
    aside = [a for a in arrows if _is_aside(graph, roles, a)]
    into = [a for a in arrows if roles.get(a.target) == "gradients"]
    if into and all(a in aside for a in into):
        aside = [a for a in aside if a != into[-1]]  # the last forward part leads on
    kept = _counted(aside, roles, "gradients")
    read = _counted(aside, roles, "optimizer")
    waits = [
        a
        for a in arrows
        if a.edge.kind is EdgeKind.CONTROL and graph[a.target].kind is NodeKind.OUTPUT
    ]
    waits = waits if len(waits) > MOST_WAITS else []
    gone = {id(a) for a in (*aside, *waits)}
    words = []
    if kept:
        words.append(f"{kept:,} edges from the forward part to the gradients are not drawn.")
    if read:
        words.append(f"{read:,} edges from the forward part to the optimizer are not drawn.")
    if waits:
        count = sum(a.edge.count for a in waits)
        words.append(f"{count:,} control edges to the results are not drawn.")
    if not words:
        return graph, []
    left = [a for a in arrows if id(a) not in gone]
    built = Graph.build(graph.name, graph.stage, graph.nodes(), left)
    return replace(built, back_edges=(*built.back_edges, *graph.back_edges)), words


def _is_aside(graph: Graph, roles: Mapping[str, str], arrow: Arrow) -> bool:
    forward = arrow.source not in roles and graph[arrow.source].kind is not NodeKind.ELIDED
    return forward and roles.get(arrow.target) in ("gradients", "optimizer")


def _counted(arrows: list[Arrow], roles: Mapping[str, str], role: str) -> int:
    return sum(a.edge.count for a in arrows if roles.get(a.target) == role)
