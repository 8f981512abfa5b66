"""Choose how much of a group is drawn, and merge the rest into single nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from graph2mermaid.graph import Arrow, Edge, EdgeKind, Graph, Node, NodeKind, Scalar
from graph2mermaid.passes.groups import Group


@dataclass(frozen=True)
class Opened:
    """A group, some of whose groups at some depth are open and the rest closed."""

    group: Group
    open: frozenset[str]
    """Keys of the groups whose children are shown; the group itself is always open."""

    def units(self) -> Iterator[Group | str]:
        """Yield what is shown: single nodes and closed groups."""
        yield from self._units(self.group)

    def _units(self, group: Group) -> Iterator[Group | str]:
        for child in group.children:
            if isinstance(child, Group) and child.key in self.open:
                yield from self._units(child)
            else:
                yield child

    def closed(self) -> list[Group]:
        """Return the groups that are shown as one node."""
        return [unit for unit in self.units() if isinstance(unit, Group)]


def open_within(
    group: Group,
    max_nodes: int,
    fits: Callable[[Opened], bool],
    *,
    depth: int | None = None,
    eager: bool = False,
) -> Opened:
    """Open as much of a group as a page can carry.

    Groups are opened level by level, the largest first, while no more than `max_nodes` units
    show; then the last opened are closed again until `fits` agrees. `depth` limits how many
    levels of groups are opened. With `eager` all the room is used; else a page stops when it says
    enough.
    """
    sequence = _openings(group, max_nodes, depth, eager)
    low, high = 0, len(sequence)
    whole = Opened(group, frozenset(sequence))
    if fits(whole):
        return whole
    while low < high:  # the longest beginning of the sequence that fits
        middle = (low + high + 1) // 2
        if fits(Opened(group, frozenset(sequence[:middle]))):
            low = middle
        else:
            high = middle - 1
    return Opened(group, frozenset(sequence[:low]))


def _openings(group: Group, max_nodes: int, depth: int | None, eager: bool) -> list[str]:
    """Return the keys of the groups to open, in order.

    Unless all of it fits or `eager`, what stands beside the forward part stays closed, and groups
    side by side are opened together or not at all, but for one that is most of the page. A fold has a
    page of its own.
    """
    whole = eager or group.size <= max_nodes
    main = sum(child.size for child in group.groups() if not child.role)
    count = len(group.children)
    sequence: list[str] = []
    level = group.groups()
    reached = 0
    while level and (depth is None or reached < depth) and (whole or count < FULL):
        can = [g for g in level if not g.copies and (whole or not g.role)]
        more = sum(len(g.children) - 1 for g in can)
        if not whole and (count >= ENOUGH or count + more > max_nodes):
            can = [g for g in can if 2 * g.size > main]
        below: list[Group] = []
        for candidate in sorted(can, key=lambda g: -g.size):
            if count + len(candidate.children) - 1 <= max_nodes:
                count += len(candidate.children) - 1
                sequence.append(candidate.key)
                below += candidate.groups()
        level = below
        reached += 1
    return sequence


ENOUGH = 6
"""A page of this many boxes says enough; only a group that is most of it is still opened."""
FULL = 10
"""And at this many, none is."""


def page_graph(
    graph: Graph, opened: Opened, place: Mapping[str, Node], outside: Callable[[str], Node]
) -> Graph:
    """Return the graph of a page: its units, and stubs for what lies on the other side.

    Args:
        graph: The flat graph.
        opened: What the page shows.
        place: For each node inside a closed group, the node that stands for the group.
        outside: Gives the stub for a node that is not on the page.

    Every edge with an end on the page is drawn, or merged into a drawn one whose `count` it
    raises, or lies inside a closed group. An edge that closes a cycle of merged nodes goes to the
    back edges.
    """
    own = dict.fromkeys(opened.group.shown())
    nodes: dict[str, Node] = {}
    for name in own:
        node = place.get(name) or graph[name]
        nodes.setdefault(node.name, node)
    stubs: dict[str, Node] = {}

    def end(name: str) -> str:
        if name in own:
            return (place.get(name) or graph[name]).name
        stub = outside(name)
        stubs.setdefault(stub.name, stub)
        return stub.name

    merged: dict[object, Arrow] = {}
    tensors: dict[object, set[tuple[str, int | None]]] = {}
    for number, arrow in enumerate(_touching(graph, own)):
        source, target = end(arrow.source), end(arrow.target)
        moved = (source, target) != (arrow.source, arrow.target)
        if source == target and moved:
            continue
        key = (source, target, arrow.edge.kind) if moved else number
        edge = arrow.edge
        if source != arrow.source and edge.kind is EdgeKind.DATA and edge.label is None:
            edge = replace(edge, label=graph[arrow.source].tensor_name(edge.source_port))
        merged[key] = _joined(merged.get(key), Arrow(source, target, edge))
        tensors.setdefault(key, set()).add((arrow.source, edge.source_port))
    for which, carried in tensors.items():
        if len(carried) > 1:
            merged[which] = _several(merged[which], len(carried))
    back: dict[object, Arrow] = {}
    for arrow in graph.back_edges:
        if arrow.source in own or arrow.target in own:
            source, target = end(arrow.source), end(arrow.target)
            moved = (source, target) != (arrow.source, arrow.target)
            if source != target:
                back_key = (source, target) if moved else (source, target, len(back))
                back[back_key] = _joined(back.get(back_key), Arrow(source, target, arrow.edge))
    incoming = [s for s in stubs.values() if any(a.source == s.name for a in merged.values())]
    leaving = [s for s in stubs.values() if s not in incoming]
    built = Graph.build(
        graph.name, graph.stage, [*incoming, *nodes.values(), *leaving], merged.values()
    )
    return replace(built, back_edges=(*built.back_edges, *back.values()))


def _touching(graph: Graph, own: Mapping[str, object]) -> Iterator[Arrow]:
    """Yield every edge with an end among the given nodes, once each."""
    for name in own:
        for arrow in graph.incoming(name):
            yield arrow
        for arrow in graph.outgoing(name):
            if arrow.target not in own:
                yield arrow


def _several(arrow: Arrow, count: int) -> Arrow:
    """Say how many different tensors a merged edge carries."""
    edge = arrow.edge
    if edge.kind is EdgeKind.CONTROL or edge.label is not None:
        return arrow
    handles = edge.tensor is not None and edge.tensor.dtype == "resource"
    return arrow._replace(
        edge=replace(
            edge,
            source_port=None,
            label=f"{count} {'variables' if handles else 'tensors'}",
            tensor=None if handles else edge.tensor,
        )
    )


def _joined(known: Arrow | None, arrow: Arrow) -> Arrow:
    """Merge an edge into one between the same ends; what differs is not said any more."""
    if known is None:
        return arrow
    first, second = known.edge, arrow.edge
    same_source = first.source_port == second.source_port and first.source_port is not None
    edge = Edge(
        first.kind,
        first.source_port if same_source else None,
        None,
        first.tensor if first.tensor == second.tensor else None,
        None,
        first.label if first.label == second.label else None,
        first.count + second.count,
    )
    return Arrow(known.source, known.target, edge)


def group_node(graph: Graph, group: Group) -> Node:
    """Return the node that stands for a closed group: how much is in it, and of what."""
    names = tuple(group.leaves())
    inside = [graph[name] for name in names]
    ops = [node for node in inside if node.kind not in _NOT_OPS]
    each, rest = divmod(len(ops), group.instances)
    size = f"{len(ops):,} op{'' if len(ops) == 1 else 's'}"
    if group.copies and not rest:
        size = f"{group.instances} × {each:,} op{'' if each == 1 else 's'}"
    parameters = sum(node.holds.size or 0 for node in inside if node.holds)
    attrs: dict[str, Scalar] = {"size": size} if ops else {}
    types = Counter(node.op for node in ops)
    if parameters >= _MANY:
        attrs["types"] = f"{_short_number(parameters)} parameters"
    elif types:
        attrs["types"] = ", ".join(op for op, _ in types.most_common(2))
    source = next((node.source for node in inside if node.source), None)
    return Node(
        f"group:{group.key}",
        "group",
        NodeKind.GROUP,
        label=group.body.title if group.body else group.title,
        attrs=attrs,
        members=names,
        source=source,
    )


def _short_number(number: int) -> str:
    for unit, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= unit:
            return (
                f"{number / unit:.1f} {letter}"
                if number < 100 * unit
                else f"{number // unit} {letter}"
            )
    return str(number)


_MANY = 1000
"""Fewer parameters than this say less of a group than its ops do."""
_NOT_OPS = frozenset({NodeKind.INPUT, NodeKind.OUTPUT, NodeKind.CONST, NodeKind.VARIABLE})
