"""Bring an optimized graph into the order and the parts of the traced one.

Grappler lists ops in an order of its own, keeps one of many equal constants wherever that happens
to stand, and puts what it adds into scopes of its own. Drawn like that, all parts of a model hang
together by their constants.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from graph2mermaid.graph import Arrow, EdgeKind, Graph, Node, NodeKind

_COMMUTATIVE = frozenset(
    {"Add", "AddV2", "AddN", "Mul", "Maximum", "Minimum", "Equal", "NotEqual", "SquaredDifference"}
    | {"LogicalAnd", "LogicalOr", "BitwiseAnd", "BitwiseOr", "BitwiseXor"}
)
_OPTIMIZER = re.compile(r"\w*Optimizer|ConstantFolding|AutoMixedPrecision")
"""The scopes that optimizers put into the names of the ops they add."""


def in_traced_order(graph: Graph, traced: Graph, firsts: Mapping[str, str]) -> Graph:
    """Return the graph with its nodes in the order of the traced ones.

    What has no traced op of its name stands before its first reader.

    Args:
        graph: An optimized graph.
        traced: What it was made of.
        firsts: For ops that stand for several, the first of these.
    """
    rank: dict[str, float] = {name: at for at, name in enumerate(traced.names())}
    rank |= {name: rank[first] for name, first in firsts.items() if first in rank}
    place: dict[str, float] = {}
    for name in reversed(graph.sorted_names()):
        readers = (place[arrow.target] for arrow in graph.outgoing(name))
        place[name] = rank[name] if name in rank else min(readers, default=len(rank))
    before = {name: at for at, name in enumerate(graph.sorted_names())}
    nodes = sorted(graph.nodes(), key=lambda node: (place[node.name], before[node.name]))
    ports = _ports(graph, {node.name: at for at, node in enumerate(nodes)})
    built = Graph.build(
        graph.name,
        graph.stage,
        nodes,
        [_at_port(arrow, ports) for arrow in graph.arrows()],
        inputs=graph.inputs,
        captures=graph.captures,
        outputs=graph.outputs,
        functions=graph.functions,
        source=graph.source,
        attrs=graph.attrs,
        extra=graph.extra,
    )
    return replace(built, back_edges=(*built.back_edges, *graph.back_edges))


def _ports(graph: Graph, position: Mapping[str, int]) -> dict[tuple[str, int | None], int]:
    """Return the input ports of commutative ops, in the order of what they read, constants last.

    Grappler sorts these by name, which makes equal parts of a model differ.
    """
    found: dict[tuple[str, int | None], int] = {}
    for node in graph.nodes():
        if node.op in _COMMUTATIVE:
            data = [a for a in graph.incoming(node.name) if a.edge.kind is EdgeKind.DATA]
            data.sort(key=lambda a: (graph[a.source].kind is NodeKind.CONST, position[a.source]))
            found |= {(node.name, a.edge.target_port): port for port, a in enumerate(data)}
    return found


def _at_port(arrow: Arrow, ports: Mapping[tuple[str, int | None], int]) -> Arrow:
    port = ports.get((arrow.target, arrow.edge.target_port), arrow.edge.target_port)
    if port == arrow.edge.target_port or arrow.edge.kind is not EdgeKind.DATA:
        return arrow
    return arrow._replace(edge=replace(arrow.edge, target_port=port))


@dataclass(frozen=True)
class Arranged:
    """A graph whose parts are those of the traced one."""

    graph: Graph
    home: Mapping[str, str]
    """For each node inside a frame, the key of the innermost one."""
    scopes: Mapping[str, str]
    """The scopes of the nodes whose names do not tell where they belong."""
    shared: int
    """How many constants are drawn several times."""


def beside_readers(
    graph: Graph,
    home: Mapping[str, str],
    firsts: Mapping[str, str] = MappingProxyType({}),
    *,
    copy: bool = True,
) -> Arranged:
    """Put what optimizers merged or added beside the ops that read it.

    A constant that is read in other scopes than its own is drawn once in each of them.

    Args:
        graph: A flat graph.
        home: For each node inside a frame, the key of the innermost one.
        firsts: For ops that stand for several, the first of these: they belong there.
        copy: Draw constants several times; without it, each op is there once.
    """
    scopes = {node.name: scope for node in graph.nodes() for scope in _own_scope(graph, node)}
    scopes |= {
        name: first.rpartition("/")[0]
        for name, first in firsts.items()
        if name in graph and name not in home
    }
    drawn = _scattered(graph, home, scopes) if copy else {}
    if not drawn:
        return Arranged(graph, home, scopes, 0)
    position: dict[str, float] = {
        name: at for at, name in enumerate(graph.names()) if name not in drawn
    }
    arrows: list[Arrow] = []
    for arrow in graph.arrows():
        if arrow.source in drawn:
            name = drawn[arrow.source][_scope(graph[arrow.target], scopes)]
            before = position[arrow.target] - 0.5
            position[name] = min(before, position.get(name, before))
            arrows.append(arrow._replace(source=name))
        else:
            arrows.append(arrow)
    nodes: list[Node] = []
    homes = dict(home)
    for node in graph.nodes():
        if node.name not in drawn:
            nodes.append(node)
            continue
        for scope, name in drawn[node.name].items():
            nodes.append(replace(node, name=name, members=(node.name,)))
            scopes[name] = scope
            if node.name in home:
                homes[name] = home[node.name]
    built = Graph.build(
        graph.name,
        graph.stage,
        sorted(nodes, key=lambda node: position[node.name]),
        arrows,
        inputs=graph.inputs,
        captures=graph.captures,
        outputs=graph.outputs,
        source=graph.source,
    )
    built = replace(built, back_edges=(*built.back_edges, *graph.back_edges))
    shared = sum(len(copies) > 1 for copies in drawn.values())
    return Arranged(built, homes, scopes, shared)


def _own_scope(graph: Graph, node: Node) -> Iterator[str]:
    """Yield the scope of a node that an optimizer has named: without the optimizer's."""
    parts = node.scope.split("/")
    at = next((at for at, part in enumerate(parts) if _OPTIMIZER.fullmatch(part)), None)
    if at is not None:
        readers = (graph[arrow.target].scope for arrow in graph.outgoing(node.name))
        yield "/".join(parts[:at]) or next(filter(None, readers), "")


def _scope(node: Node, scopes: Mapping[str, str]) -> str:
    return scopes.get(node.name, node.scope)


def _scattered(
    graph: Graph, home: Mapping[str, str], scopes: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Return, for each constant that is read elsewhere, its names in the scopes of its readers."""
    found: dict[str, list[str]] = {}
    going_back = {arrow.source for arrow in graph.back_edges}
    for node in graph.nodes():
        if node.kind is not NodeKind.CONST or node.name in going_back:
            continue
        readers = [graph[arrow.target] for arrow in graph.outgoing(node.name)]
        here = all(home.get(reader.name) == home.get(node.name) for reader in readers)
        places = list(dict.fromkeys(_scope(reader, scopes) for reader in readers))
        if here and all(places) and not _among(_scope(node, scopes), readers, places):
            found[node.name] = places
    taken = {name for name in graph.names() if name not in found}
    return {
        name: {scope: _free(scope, name, taken) for scope in places}
        for name, places in found.items()
    }


def _among(scope: str, readers: Sequence[Node], places: Iterable[str]) -> bool:
    """Tell whether a constant stands where traced ones do: around its readers, or inside one."""
    return all(_inside(place, scope) for place in places) or (
        len(readers) == 1 and readers[0].name == scope
    )


def _inside(scope: str, outer: str) -> bool:
    return not outer or scope == outer or scope.startswith(f"{outer}/")


def _free(scope: str, constant: str, taken: set[str]) -> str:
    first = name = f"{scope}/{constant.rpartition('/')[2]}"
    number = 0
    while name in taken:
        number += 1
        name = f"{first}_{number}"
    taken.add(name)
    return name
