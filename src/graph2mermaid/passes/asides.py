"""Leave the edges that every training step has out of its overview, and count them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graph2mermaid.graph import Arrow, EdgeKind, Graph, NodeKind
from graph2mermaid.passes.fold import is_iteration

MOST_WAITS = 3
"""More control edges into a result than this say only that all of the step is run."""


def without_asides(
    graph: Graph, roles: Mapping[str, str], *, forward: bool = True
) -> tuple[Graph, list[str]]:
    """Return the graph of a page without the edges that run beside the way of the data.

    A gradient reads what each forward op has read or made, and the optimizer updates every
    variable: drawn, these edges cross the whole picture. The way from the loss to the gradients
    and on to the optimizer stays. So does no crowd of control edges to the results.

    Args:
        graph: The graph of a page.
        roles: For the nodes that stand for `gradients`, `optimizer`, `loss` or a `result`, which.
        forward: The page is none of a group inside these.

    Returns:
        The graph, and sentences that count what is gone.
    """
    loops = [a for a in graph.back_edges if is_iteration(a.edge.label)]
    # What closes a cycle of groups is an edge like the others, and may close none without them.
    arrows = [*graph.arrows(), *(a for a in graph.back_edges if not is_iteration(a.edge.label))]
    aside = [a for a in arrows if _is_aside(graph, roles, a)] if forward else []
    ends = [a for a in arrows if roles.get(a.target) == "gradients"]
    here = [a for a in ends if graph[a.target].kind is not NodeKind.ELIDED]
    if here and all(a in aside for a in ends):
        aside = [a for a in aside if a != here[-1]]  # the last forward part leads on
    waits = [a for a in arrows if _is_wait(graph, roles, a)]
    waits = _implied(arrows, waits) if len(waits) > MOST_WAITS else []
    words = [
        *_said(
            _counted(aside, roles, "gradients"), "edge", "from the forward part to the gradients"
        ),
        *_said(
            _counted(aside, roles, "optimizer"), "edge", "from the forward part to the optimizer"
        ),
        *_said(sum(a.edge.count for a in waits), "control edge", "to the results"),
    ]
    if not words:
        return graph, []
    gone = {id(a) for a in (*aside, *waits)}
    left = [a for a in arrows if id(a) not in gone]
    at_an_edge = {end for a in (*left, *loops) for end in a[:2]}
    nodes = [n for n in graph.nodes() if n.kind is not NodeKind.ELIDED or n.name in at_an_edge]
    built = Graph.build(graph.name, graph.stage, nodes, left)
    return replace(built, back_edges=(*built.back_edges, *loops)), words


def _implied(arrows: list[Arrow], waits: list[Arrow]) -> list[Arrow]:
    """Return the control edges to results that say nothing new: where another way leads there too.

    Where more than a few into one result are left, they say nothing either.
    """
    before: dict[str, set[str]] = {}
    for arrow in arrows:
        before.setdefault(arrow.target, set()).add(arrow.source)
    direct = {arrow[:2] for arrow in waits}
    implied: list[Arrow] = []
    for result in dict.fromkeys(arrow.target for arrow in waits):
        own = [arrow for arrow in waits if arrow.target == result]
        ends = before[result]
        reached: set[str] = set()
        queue = [start for end in ends for start in before.get(end, ())]
        queue += [end for end in ends if (end, result) not in direct]
        while queue:
            name = queue.pop()
            if name not in reached:
                reached.add(name)
                queue += before.get(name, ())
        new = [arrow for arrow in own if arrow.source not in reached]
        implied += own if len(new) > MOST_WAITS else [a for a in own if a.source in reached]
    return implied


def _said(count: int, noun: str, way: str) -> list[str]:
    if not count:
        return []
    return [
        f"{count:,} {noun}{'' if count == 1 else 's'} {way} {'is' if count == 1 else 'are'} not drawn."
    ]


def _is_wait(graph: Graph, roles: Mapping[str, str], arrow: Arrow) -> bool:
    result = graph[arrow.target].kind is NodeKind.OUTPUT or roles.get(arrow.target) == "result"
    return result and arrow.edge.kind is EdgeKind.CONTROL


def _is_aside(graph: Graph, roles: Mapping[str, str], arrow: Arrow) -> bool:
    forward = arrow.source not in roles and graph[arrow.source].kind is not NodeKind.ELIDED
    return forward and roles.get(arrow.target) in ("gradients", "optimizer")


def _counted(arrows: list[Arrow], roles: Mapping[str, str], role: str) -> int:
    return sum(a.edge.count for a in arrows if roles.get(a.target) == role)
