"""Choose how much of a group is drawn, and merge the rest into single nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from graph2mermaid.graph import Arrow, Edge, EdgeKind, Graph, Node, NodeKind, Scalar, TensorSpec
from graph2mermaid.passes.groups import Group
from graph2mermaid.passes.loops import GOES_ON, NEXT_ITERATION


@dataclass(frozen=True)
class Opened:
    """A group, some of whose groups at some depth are open and the rest closed."""

    group: Group
    open: frozenset[str]
    """Keys of the groups whose children are shown; the group itself is always open."""

    def units(self) -> Iterator[Group | str]:
        """Yield what is shown: single nodes and closed groups."""
        yield from self._shown

    @cached_property
    def _shown(self) -> tuple[Group | str, ...]:
        return tuple(self._units(self.group))

    def _units(self, group: Group) -> Iterator[Group | str]:
        for child in group.children:
            if isinstance(child, Group) and child.key in self.open:
                yield from self._units(child)
            else:
                yield child

    def closed(self) -> list[Group]:
        """Return the groups that are shown as one node."""
        return [unit for unit in self._shown if isinstance(unit, Group)]


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
    if not eager:  # not all can be shown: then no more than says enough
        sequence = _openings(group, max_nodes, depth, eager, at_once=False)
        high = len(sequence)
    while low < high:  # the longest beginning of the sequence that fits
        middle = (low + high + 1) // 2
        if fits(Opened(group, frozenset(sequence[:middle]))):
            low = middle
        else:
            high = middle - 1
    return Opened(group, frozenset(sequence[:low]))


def _openings(
    group: Group, max_nodes: int, depth: int | None, eager: bool, *, at_once: bool = True
) -> list[str]:
    """Return the keys of the groups to open, in order.

    Unless all of it fits or `eager`, what stands beside the forward part stays closed, and groups
    side by side are opened together or not at all, but for one that is most of the page. A fold has a
    page of its own.
    """
    whole = eager or (at_once and group.size <= max_nodes)
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


ENOUGH = 5
"""A page of this many boxes says enough; only a group that is most of it is still opened."""
FULL = 10
"""And at this many, none is."""


def page_graph(
    graph: Graph,
    opened: Opened,
    place: Mapping[str, Node],
    outside: Callable[[str], Node],
    *,
    tight: bool = False,
) -> Graph:
    """Return the graph of a page: its units, and stubs for what lies on the other side.

    Args:
        graph: The flat graph.
        opened: What the page shows.
        place: For each node inside a closed group, the node that stands for the group.
        outside: Gives the stub for a node that is not on the page.
        tight: Merge all edges between the same two nodes, single nodes included.

    Every edge with an end on the page is drawn, or merged into a drawn one whose `count` it
    raises, or lies inside a closed group. An edge that closes a cycle of merged nodes goes to the
    back edges.
    """
    here: dict[str, str] = {}
    nodes: dict[str, Node] = {}
    for unit in opened.units():
        names = (unit,) if isinstance(unit, str) else tuple(unit.leaves())
        node = place.get(names[0]) or graph[names[0]]
        nodes.setdefault(node.name, node)
        here.update(dict.fromkeys(names, node.name))
    stubs: dict[str, Node] = {}

    def end(name: str) -> str:
        unit = here.get(name)
        if unit is not None:
            return unit
        stub = outside(name)
        stubs.setdefault(stub.name, stub)
        return stub.name

    merged: dict[object, _Bundle] = {}
    for arrow in _crossing(graph, here):
        source, target, edge = arrow
        start = here.get(source) or end(source)
        finish = here.get(target) or end(target)
        moved = start != source or finish != target
        told = _told(graph[source], edge) if start != source else (edge.label, edge.tensor)
        key: object = (start, finish, edge.kind is EdgeKind.DATA) if moved or tight else len(merged)
        bundle = merged.get(key)
        if bundle is None:
            bundle = merged[key] = _Bundle(start, finish, edge, edge.source_port, *told)
        bundle.add(arrow, *told)
    back: dict[object, Arrow] = {}
    for arrow in (_as_iteration(graph, a) for a in graph.back_edges):
        if arrow.source in here or arrow.target in here:
            source, target = end(arrow.source), end(arrow.target)
            moved = (source, target) != (arrow.source, arrow.target)
            if source != target or not moved:
                apart = () if moved or tight else (len(back),)
                back_key = (source, target, *apart)
                back[back_key] = _led_back(back.get(back_key), Arrow(source, target, arrow.edge))
    sources = {bundle.source for bundle in merged.values()}
    incoming = [stub for stub in stubs.values() if stub.name in sources]
    leaving = [stub for stub in stubs.values() if stub.name not in sources]
    built = Graph.build(
        graph.name,
        graph.stage,
        [*incoming, *nodes.values(), *leaving],
        [bundle.arrow() for bundle in merged.values()],
    )
    if not back:
        return built
    return replace(built, back_edges=(*built.back_edges, *back.values()))


def _crossing(graph: Graph, here: Mapping[str, str]) -> Iterator[Arrow]:
    """Yield every edge with an end on the page, once each, but for those inside a closed group.

    Args:
        graph: The flat graph.
        here: For each of its nodes that is on the page, the name of what is drawn for it.
    """
    incoming, outgoing = graph.incoming, graph.outgoing
    for name, unit in here.items():
        if unit == name:
            yield from incoming(name)
        else:
            for arrow in incoming(name):
                if here.get(arrow[0]) != unit:
                    yield arrow
        for arrow in outgoing(name):
            if arrow[1] not in here:
                yield arrow


def _told(source: Node, edge: Edge) -> tuple[str | None, TensorSpec | None]:
    """Return what an edge says in place of its source's box: the name, and what a variable holds."""
    label, tensor = edge.label, edge.tensor
    if edge.kind is EdgeKind.DATA:
        if label is None:
            label = source.tensor_name(edge.source_port)
        if source.holds is not None and _is_handle(edge):
            tensor = source.holds
    return label, tensor


def _is_handle(edge: Edge) -> bool:
    return edge.tensor is not None and edge.tensor.dtype == "resource"


@dataclass(slots=True)
class _Bundle:
    """Edges between the same two nodes of a page, merged; what differs is not said any more."""

    source: str
    target: str
    first: Edge
    source_port: int | None
    label: str | None
    tensor: TensorSpec | None
    handles: bool = True
    """Whether all carry handles of variables."""
    edges: int = 0
    """How many edges of the flat graph it is made of."""
    count: int = 0
    """How many edges these stand for."""
    carried: set[tuple[str, int | None]] = field(default_factory=set)
    """The different tensors."""

    def add(self, arrow: Arrow, label: str | None, tensor: TensorSpec | None) -> None:
        """Merge an edge into it, under the words that it has here."""
        name, _, edge = arrow
        self.edges += 1
        self.count += edge.count
        self.carried.add((name, edge.source_port))
        if self.source_port != edge.source_port:
            self.source_port = None
        if self.label != label:
            self.label = None
        if self.tensor is not None and self.tensor is not tensor and self.tensor != tensor:
            self.tensor = None
        if self.handles and not _is_handle(edge):
            self.handles = False

    def arrow(self) -> Arrow:
        """Return it as one edge, which says how many different tensors it carries."""
        edge, port, label, tensor = self.first, self.source_port, self.label, self.tensor
        several = len(self.carried)
        if several > 1 and edge.kind is EdgeKind.DATA:
            if label is not None:  # several that have one name
                label = f"{several} × {label}"
            else:
                port = None
                label = f"{several} {'variables' if self.handles else 'tensors'}"
                tensor = None if self.handles else tensor
        if self.edges > 1:
            edge = Edge(edge.kind, port, None, tensor, label=label, count=self.count)
        elif label != edge.label or tensor is not edge.tensor:
            edge = replace(edge, label=label, tensor=tensor)
        return Arrow(self.source, self.target, edge)


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


def is_iteration(label: str | None) -> bool:
    """Tell whether an edge leads back in a loop, by its words; those of no other edge begin so."""
    return label is not None and label.startswith((NEXT_ITERATION, GOES_ON))


def _as_iteration(graph: Graph, arrow: Arrow) -> Arrow:
    """Say of a lowered loop's edge what it is, since a page may show its ends as groups."""
    if arrow.edge.label is not None or not graph[arrow.source].op.endswith("NextIteration"):
        return arrow
    return arrow._replace(edge=replace(arrow.edge, label=NEXT_ITERATION))


def _led_back(known: Arrow | None, arrow: Arrow) -> Arrow:
    """Merge edges that lead back; together they are the way to the next iteration."""
    made = _joined(known, arrow)
    loops = known is not None and is_iteration(known.edge.label) and is_iteration(arrow.edge.label)
    if made.edge.label is None and loops:
        return made._replace(edge=replace(made.edge, label=NEXT_ITERATION))
    return made


def group_node(graph: Graph, group: Group) -> Node:
    """Return the node that stands for a closed group: how much is in it, and of what."""
    names = tuple(group.leaves())
    inside = [graph[name] for name in names]
    ops = [node for node in inside if node.kind not in _NOT_OPS]
    each, rest = divmod(len(ops), group.instances)
    size = f"{len(ops):,} op{'' if len(ops) == 1 else 's'}"
    if group.copies and not rest:
        size = f"{group.instances} × {each:,} op{'' if each == 1 else 's'}"
    if group.varied:
        size += ", shapes differ"
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
_NOT_OPS = frozenset(
    {NodeKind.INPUT, NodeKind.OUTPUT, NodeKind.CONST, NodeKind.VARIABLE, NodeKind.GHOST}
)
