"""Leave ops out of a drawing, and draw what flowed through them as if they were not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from graph2mermaid.graph import Arrow, Edge, EdgeKind, Graph, Node, NodeKind
from graph2mermaid.passes.select import close_to

_ALWAYS_DRAWN = frozenset({NodeKind.INPUT, NodeKind.VARIABLE, NodeKind.OUTPUT})
# Ops that hand on what they get: the tensor behind them is the one before them.
_SAME = frozenset({"Identity", "StopGradient", "PreventGradient", "Enter", "Exit", "NextIteration"})
_SAME_PORTS = frozenset({"IdentityN"})

_CHOICES = ("If", "Case")
_THROUGH = "through "

SEVERAL = "hidden ops"
"""What an edge goes through that passes ops hidden by different words."""


class _Way(NamedTuple):
    """How something gets out of a hidden op: where it comes from, and what changed it."""

    start: Arrow
    through: str
    """The word that hid the ops which made something else of it; empty when it is the same."""


@dataclass(frozen=True)
class Hidden:
    """A graph without what was hidden."""

    graph: Graph
    count: int
    """How many ops were taken out."""
    unknown: tuple[str, ...] = ()
    """For each word that fits nothing, a sentence that says so, and what is close to it."""


def hide(graph: Graph, wanted: Iterable[str], known: Sequence[Graph] = ()) -> Hidden:
    """Take out every op of the given types, and every op below the given scopes.

    A word that is an op type means the ops of that type and nothing else. Arguments, captures and
    results stay. Where a tensor is the same behind a hidden op as before it, as it is for the
    values of a loop, its edge goes on; elsewhere an edge says what it goes `through`, and makes no
    claim about a tensor, so that no path is lost.

    Args:
        graph: A flat graph.
        wanted: Op types, and names of ops and scopes.
        known: Graphs beside it (with what was taken out before, with what is drawn elsewhere); a
            word that fits something in them is not unknown.
    """
    words = tuple(dict.fromkeys(wanted))
    types = {node.op for each in (graph, *known) for node in each.nodes()}
    hidden: dict[str, str] = {}
    for node in graph.nodes():
        word = next((word for word in words if _fits(node, word, types)), None)
        if word is not None and node.kind not in _ALWAYS_DRAWN:
            hidden[node.name] = word
    unknown = tuple(_unknown([n for each in (graph, *known) for n in each.nodes()], words, types))
    if not hidden:
        return Hidden(graph, 0, unknown)
    return Hidden(_Hider(graph, hidden).run(), len(hidden), unknown)


def _fits(node: Node, word: str, types: set[str]) -> bool:
    if word in types:
        return node.op == word
    return node.name == word or node.name.startswith(f"{word.rstrip('/')}/")


def _unknown(nodes: Sequence[Node], words: Iterable[str], types: set[str]) -> Iterator[str]:
    for word in words:
        fitting = [node for node in nodes if _fits(node, word, types)]
        if not fitting:
            close = [*close_to(word, sorted(types))[:3], *close_to(word, _names_and_scopes(nodes))]
            near = f"; close to it: {', '.join(close[:5])}" if close else ""
            yield f"Nothing is hidden for {word}: there is no such op type, op or scope{near}."
        elif all(node.kind in _ALWAYS_DRAWN for node in fitting):
            yield f"Nothing is hidden for {word}: arguments, captures and results are always drawn."


def _names_and_scopes(nodes: Iterable[Node]) -> Iterator[str]:
    for node in nodes:
        if node.kind not in _ALWAYS_DRAWN:
            parts = node.name.split("/")
            yield from ("/".join(parts[:end]) for end in range(1, len(parts) + 1))


@dataclass
class _Hider:
    graph: Graph
    hidden: Mapping[str, str]
    """For each op to take out, the word that asks for it."""
    into: dict[str, list[tuple[Arrow, _Way]]] = field(default_factory=dict)
    """For each hidden op, what arrives at it, by which edge."""

    def run(self) -> Graph:
        for name in self.graph.sorted_names():
            if name in self.hidden:
                arriving = self.graph.incoming(name)
                self.into[name] = [(arrow, way) for arrow in arriving for way in self._ways(arrow)]
        nodes = [node for node in self.graph.nodes() if node.name not in self.hidden]
        found: dict[object, Arrow] = {}
        for node in nodes:
            for arrow in self.graph.incoming(node.name):
                for way in self._ways(arrow):
                    _add(found, self._bridge(way, arrow))
        back: dict[object, Arrow] = {}
        for arrow in self.graph.back_edges:
            self._lead_back(arrow, found, back)
        built = Graph.build(
            self.graph.name, self.graph.stage, nodes, found.values(), source=self.graph.source
        )
        return replace(built, back_edges=(*built.back_edges, *back.values()))

    def _ways(self, arrow: Arrow) -> Iterable[_Way]:
        """Return where what an edge carries comes from: the edge itself, if its start is drawn."""
        if arrow.source not in self.hidden:
            return [_Way(arrow, "")]
        node, word = self.graph[arrow.source], self.hidden[arrow.source]
        ways: dict[tuple[str, int | None, EdgeKind], _Way] = {}
        for before, way in self.into[arrow.source]:
            on = _passed(node, word, before.edge, arrow.edge, way.through)
            if on is None:
                continue
            # What has gone through an op is told apart by the node it started at, not the tensor.
            port = None if on else way.start.edge.source_port
            key = (way.start.source, port, way.start.edge.kind)
            if key in ways and ways[key].through != on:
                on = SEVERAL
            ways[key] = _Way(way.start, on)
        return ways.values()

    def _lead_back(
        self, arrow: Arrow, found: dict[object, Arrow], back: dict[object, Arrow]
    ) -> None:
        """Add what an edge that leads back becomes, to the edges or to the back edges."""
        for end, through in self._ends(arrow):
            for way in self._ways(arrow):
                start = way.start
                passed = _both(way.through, through)
                before = {start.source, *self.graph.ancestors([start.source])}
                if not passed:
                    edge = replace(end.edge, source_port=start.edge.source_port)
                    if end is not arrow:
                        edge = replace(edge, tensor=start.edge.tensor or arrow.edge.tensor)
                elif start.edge.kind is EdgeKind.CONTROL or arrow.edge.kind is EdgeKind.CONTROL:
                    edge = Edge(EdgeKind.CONTROL, None, None)
                else:
                    edge = self._through(passed, start)
                if end.target in before or (not passed and end is arrow):
                    words = arrow.edge.label
                    label = ", ".join(
                        filter(None, (words, f"{_THROUGH}{passed}" if passed else ""))
                    )
                    _add(back, Arrow(start.source, end.target, replace(edge, label=label or None)))
                else:
                    _add(found, Arrow(start.source, end.target, edge))

    def _bridge(self, way: _Way, arrow: Arrow) -> Arrow:
        """Return the edge that takes the place of a way through hidden ops."""
        start = way.start
        if start is arrow:
            return arrow
        if arrow.edge.kind is EdgeKind.CONTROL:
            edge = arrow.edge
        elif start.edge.kind is EdgeKind.CONTROL:
            edge = start.edge
        elif way.through:
            edge = self._through(way.through, start)
        else:
            argument, port = arrow.edge.argument, arrow.edge.target_port
            edge = replace(start.edge, target_port=port, argument=argument)
        return Arrow(start.source, arrow.target, edge)

    def _through(self, words: str, start: Arrow) -> Edge:
        """Return an edge that says what it goes through, and to which branch it belongs."""
        label = f"{_THROUGH}{words}"
        if start.edge.label is not None and self.graph[start.source].op.endswith(_CHOICES):
            label = f"{start.edge.label.partition(': ')[0]}, {label}"
        return Edge(EdgeKind.DATA, None, None, label=label)

    def _ends(self, arrow: Arrow) -> Iterator[tuple[Arrow, str]]:
        """Yield the edges into what is drawn that a back edge leads on to."""
        stack = [(arrow, "")]
        seen: set[tuple[str, int | None, str]] = set()
        while stack:
            edge, through = stack.pop()
            if edge.target not in self.hidden:
                yield edge, through
                continue
            node, word = self.graph[edge.target], self.hidden[edge.target]
            if (node.name, edge.edge.target_port, through) in seen or _tests(node, edge.edge):
                continue
            seen.add((node.name, edge.edge.target_port, through))
            for after in self.graph.outgoing(node.name):
                on = _passed(node, word, edge.edge, after.edge, through)
                if on is not None:
                    stack.append((after, on))


def _add(found: dict[object, Arrow], arrow: Arrow) -> None:
    """Add an edge; what goes through several ops between the same two nodes is one edge."""
    source, target, edge = arrow
    if edge.source_port is not None or edge.kind is EdgeKind.CONTROL or edge.label is None:
        key = (source, target, edge.source_port, edge.kind, edge.target_port, edge.label)
        found.setdefault(key, arrow)
        return
    words = edge.label.rpartition(_THROUGH)[0]
    known = found.setdefault((source, target, words), arrow)
    if known.edge.label != edge.label:
        several = replace(edge, label=f"{words}{_THROUGH}{SEVERAL}")
        found[source, target, words] = Arrow(source, target, several)


def _passed(node: Node, word: str, into: Edge, out: Edge, through: str) -> str | None:
    """Tell what something has gone through behind an op; None when it does not get there.

    Args:
        node: A hidden op.
        word: The word that hides it.
        into: By which edge it arrives.
        out: By which edge it would leave.
        through: What it has gone through before.
    """
    if EdgeKind.CONTROL in (into.kind, out.kind):
        return through
    kept = _kept(node, into.target_port)
    tested = node.op.endswith(_CHOICES) and into.target_port == 0
    if kept is None or tested:
        return _both(through, word)
    return through if kept == (out.source_port or 0) else None


def _kept(node: Node, port: int | None) -> int | None:
    """Return the output of an op that is the tensor of an input; None when there is none."""
    if port is None:
        return None
    if node.op in _SAME:
        return 0 if port == 0 else None
    if node.op in _SAME_PORTS or _holds_values(node):
        return port
    return None


def _holds_values(node: Node) -> bool:
    """Tell whether a node is the diamond or the merge of bodies that are drawn."""
    diamond = node.op.endswith(("While", *_CHOICES)) or node.name.rstrip("'").endswith("/merge")
    return node.kind is NodeKind.CONTROL_FLOW and not node.calls and diamond


def _tests(node: Node, edge: Edge) -> bool:
    """Tell whether an edge says that a loop goes on: nothing is made of that."""
    return edge.target_port is None and edge.kind is EdgeKind.DATA and node.op.endswith("While")


def _both(first: str, second: str) -> str:
    """Say what something goes through that goes through one and then the other."""
    return SEVERAL if first and second and first != second else first or second
