"""Select a part of a flat graph: what is around a name, or between two names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.graph import Graph, Node

_MOST_NAMES = 5
"""An unknown name is answered with at most this many known ones."""
_LEAST_LIKE = 0.5
"""How much of a name has to agree, as difflib counts."""
_NUMBER = re.compile(r"_\d+$")


@dataclass(frozen=True)
class Selection:
    """Some nodes of a graph with the edges among them, and how much was left out."""

    graph: Graph
    nodes_left_out: int
    edges_cut: int
    """Edges with one end in the selection."""


def find(graph: Graph, name: str, gone: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """Return the nodes that a user means by a name, in trace order.

    The first of these that something fits: an op's own name or a name scope; the name of an
    argument, a result or a Python variable; a scope without the numbers that Keras adds
    (`dense` for `dense_1`); a part of a scope or the last part of an op's name.

    Args:
        graph: A flat graph.
        name: What the user typed.
        gone: For each op that a pass has taken out, the node that it is now part of, or the
            empty string.

    Raises:
        Graph2MermaidError: Nothing fits, or what fits is not drawn.
    """
    wanted = name.strip("/")
    tests: tuple[Callable[[Node], bool], ...] = (
        lambda node: node.name == name or node.name.startswith(f"{wanted}/"),
        lambda node: name in _known_names(node),
        lambda node: _plain(node.name).startswith(f"{wanted}/"),
        lambda node: f"/{wanted}/" in f"/{node.name}/",
        lambda node: f"/{wanted}/" in f"/{_plain(node.name)}/",
    )
    for number, test in enumerate(tests):
        found = [node.name for node in graph.nodes() if wanted and test(node)]
        if found:
            return found
        if number == 0 and gone.get(name):
            return find(graph, gone[name], gone)
    if name in gone:
        raise Graph2MermaidError(
            f"{name!r} is plumbing and not drawn by itself; --level ops draws every op"
        )
    raise Graph2MermaidError(_unknown(graph, name))


def around(graph: Graph, start: Iterable[str], hops: int) -> set[str]:
    """Return the nodes that are at most `hops` edges away, in any direction."""
    neighbors = _steps(graph, forward=True, backward=True)
    return _reached(start, neighbors, hops)


def between(graph: Graph, start: Collection[str], end: Collection[str]) -> set[str]:
    """Return the nodes on all paths from one of the first to one of the second.

    Paths go through loops as well. Without a path the result is empty.
    """
    after = _reached(start, _steps(graph, forward=True))
    before = _reached(end, _steps(graph, backward=True))
    return after & before


def keep(graph: Graph, names: Collection[str]) -> Selection:
    """Return the graph of these nodes alone, and count what was left out."""
    chosen = set(names)
    kept = [a for a in graph.arrows() if a.source in chosen and a.target in chosen]
    back = [a for a in graph.back_edges if a.source in chosen and a.target in chosen]
    built = Graph.build(
        graph.name,
        graph.stage,
        (node for node in graph.nodes() if node.name in chosen),
        kept,
        source=graph.source,
    )
    cut = sum(
        (arrow.source in chosen) != (arrow.target in chosen)
        for arrow in (*graph.arrows(), *graph.back_edges)
    )
    built = replace(built, back_edges=(*built.back_edges, *back))
    return Selection(built, len(graph) - len(built), cut)


def _steps(
    graph: Graph, *, forward: bool = False, backward: bool = False
) -> Callable[[str], Iterator[str]]:
    after: dict[str, list[str]] = {}
    before: dict[str, list[str]] = {}
    for arrow in graph.back_edges:
        after.setdefault(arrow.source, []).append(arrow.target)
        before.setdefault(arrow.target, []).append(arrow.source)

    def step(name: str) -> Iterator[str]:
        if forward:
            yield from (arrow.target for arrow in graph.outgoing(name))
            yield from after.get(name, ())
        if backward:
            yield from (arrow.source for arrow in graph.incoming(name))
            yield from before.get(name, ())

    return step


def _reached(
    start: Iterable[str], step: Callable[[str], Iterator[str]], hops: int | None = None
) -> set[str]:
    found = set(start)
    edge = list(found)
    while edge and (hops is None or hops > 0):
        reached = {name for known in edge for name in step(known)}
        edge = list(reached - found)
        found |= reached
        hops = None if hops is None else hops - 1
    return found


def _known_names(node: Node) -> list[str]:
    """Return what a user calls a node, besides its own name."""
    return [word for word in (node.label, *(node.variable or "").split(", ")) if word]


def _plain(name: str) -> str:
    """Return a name without the number at the end of each part: `a_1/b_2` is `a/b`."""
    return "/".join(_NUMBER.sub("", part) for part in name.split("/"))


def _unknown(graph: Graph, name: str) -> str:
    """Say that nothing has a name, and which names are close to it."""
    known: dict[str, None] = {}
    for node in graph.nodes():
        known.update(dict.fromkeys(_known_names(node)))
        known[node.name] = None
        parts = node.name.split("/")[:-1]
        known.update(dict.fromkeys("/".join(parts[:end]) for end in range(1, len(parts) + 1)))
        known.update(dict.fromkeys(parts))
    names = ", ".join(close_to(name, known))
    message = f"there is no op, argument, variable or scope {name!r} in {graph.name}"
    return f"{message}; close to it: {names}" if names else message


def close_to(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that someone may have meant, the closest first."""
    folded = {word.casefold(): word for word in reversed(list(dict.fromkeys(known)))}
    wanted = name.casefold()
    close = difflib.get_close_matches(wanted, folded, n=_MOST_NAMES, cutoff=_LEAST_LIKE)
    close += [word for word in folded if wanted in word and word not in close] if wanted else []
    return [folded[word] for word in close[:_MOST_NAMES]]
