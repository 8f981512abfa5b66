"""The flat graph while it is made: what is placed already, and where tensors come from by now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from graph2mermaid.graph import Arrow, Call, Edge, EdgeKind, Graph, Node, NodeKind, TensorRef
from graph2mermaid.passes.bodies import Body, body_title, flat_refs, is_handle, is_only_op

CONTROL = Edge(EdgeKind.CONTROL, None, None)

_T = TypeVar("_T")


@dataclass
class Level:
    """One graph being placed: where its tensors come from once placed."""

    graph: Graph
    prefix: str
    body: Body | None
    sources: dict[TensorRef, TensorRef] = field(default_factory=dict)
    """Tensors of this level that are another flat tensor: arguments, results of calls."""
    labels: dict[TensorRef, str] = field(default_factory=dict)
    """Words on the edges that leave a tensor."""
    known: dict[TensorRef, str | None] = field(default_factory=dict)
    """Names that users know tensors by, where the op that they come from does not tell."""
    names: dict[str, str] = field(default_factory=dict)
    ends: dict[str, list[str]] = field(default_factory=dict)
    """For a call that left no node: the flat nodes that a control edge from it waits for."""

    def starts(self) -> list[str]:
        """Return the flat nodes of a body that nothing inside it comes before."""
        arguments = {ref.node for ref in flat_refs(self.graph.inputs)}
        found: list[str] = []
        for node in self.graph.nodes():
            before = {a.source for a in self.graph.incoming(node.name)} - arguments
            before = {n for n in before if self.graph[n].kind is not NodeKind.CONST}
            if node.kind is not NodeKind.CONST and node.name not in arguments and not before:
                found.append(self.names.get(node.name, ""))
        return [name for name in found if name]


class Mark(NamedTuple):
    """How much was placed at some moment."""

    nodes: int
    arrows: int
    back: int
    bodies: int
    home: int
    not_drawn: int
    counters: int


@dataclass
class Draft:
    """What is placed so far, and how one more node, edge or frame is."""

    top: Graph
    simple: bool
    place: Callable[[Draft, Level], None]
    """Places every node of a level, bodies included, and the edges between them."""
    nodes: dict[str, Node] = field(default_factory=dict)
    arrows: list[Arrow] = field(default_factory=list)
    back: list[Arrow] = field(default_factory=list)
    bodies: dict[str, Body] = field(default_factory=dict)
    home: dict[str, str] = field(default_factory=dict)
    not_drawn: dict[str, None] = field(default_factory=dict)
    counters: dict[str, None] = field(default_factory=dict)
    """The ops that only count a loop's iterations, which are left out."""

    def mark(self) -> Mark:
        """Return what `undo` takes to come back to this moment."""
        return Mark(
            len(self.nodes),
            len(self.arrows),
            len(self.back),
            len(self.bodies),
            len(self.home),
            len(self.not_drawn),
            len(self.counters),
        )

    def undo(self, mark: Mark) -> None:
        """Take out again what was placed since."""
        _cut(self.nodes, mark.nodes)
        _cut(self.bodies, mark.bodies)
        _cut(self.home, mark.home)
        _cut(self.not_drawn, mark.not_drawn)
        _cut(self.counters, mark.counters)
        del self.arrows[mark.arrows :]
        del self.back[mark.back :]

    def function(self, call: Call) -> Graph:
        """Return the body that a call leads to."""
        return self.top.functions[call.function]

    def add(self, node: Node, level: Level, *, suffix: str = "") -> str:
        """Place a node in the frame of its level, and return its name in the flat graph."""
        name = self.flat_name(node.name + suffix, level.prefix)
        self.nodes[name] = replace(node, name=name, origin=node.origin or (node.name,))
        if level.body is not None:
            self.home[name] = level.body.key
        return name

    def flat_name(self, name: str, prefix: str) -> str:
        """Return a name below the prefix that no node has."""
        flat = name if not prefix or name.startswith(f"{prefix}/") else f"{prefix}/{name}"
        while flat in self.nodes:
            flat += "'"
        return flat

    def add_with_edges(self, node: Node, level: Level) -> str:
        """Place an op and the edges into it."""
        name = self.add(node, level)
        level.names[node.name] = name
        for arrow in level.graph.incoming(node.name):
            self.connect(arrow, level, name)
        return name

    def connect(self, arrow: Arrow, level: Level, target: str) -> None:
        """Add one edge of a level, its start followed to where the tensor really comes from."""
        if arrow.edge.kind is EdgeKind.CONTROL:
            for end in level.ends.get(arrow.source) or [level.names.get(arrow.source, "")]:
                if end:
                    self.arrows.append(Arrow(end, target, arrow.edge))
            return
        port = arrow.edge.source_port or 0
        self.data(TensorRef(arrow.source, port), arrow.edge, level, target)

    def data(self, ref: TensorRef, edge: Edge, level: Level, target: str) -> None:
        """Add an edge that carries a tensor of a level."""
        source = self.resolve(ref, level)
        label = level.labels.get(ref)
        self.arrows.append(
            Arrow(source.node, target, replace(edge, source_port=source.port, label=label))
        )

    def resolve(self, ref: TensorRef, level: Level) -> TensorRef:
        """Return the flat tensor that a tensor of a level is."""
        found = follow(level.sources, ref)
        return found if found is not ref else TensorRef(level.names[ref.node], ref.port)

    def name(self, ref: TensorRef, level: Level) -> str | None:
        """Return the name that a user knows a tensor by."""
        if ref in level.known:
            return level.known[ref]
        source = self.resolve(ref, level)
        return self.nodes[source.node].tensor_name(source.port)

    def enter(self, node: Node, call: Call, level: Level) -> Level:
        """Open the frame of a body; a wrapper around a single call gets none of its own."""
        function = self.function(call)
        flat_call = level.names.get(node.name) or self.flat_name(node.name, level.prefix)
        if node.kind is NodeKind.CALL and is_only_op(level.graph, node.name):
            return Level(function, flat_call, level.body)
        parent = level.body
        key = f"{flat_call}#{call.role}"
        body = Body(
            key,
            call.function,
            flat_call,
            call.role,
            parent.key if parent else None,
            parent.depth + 1 if parent else 1,
            body_title(node, call),
        )
        self.bodies[key] = body
        return Level(function, flat_call, body)

    def ends_of(self, level: Level) -> list[str]:
        """Return the flat nodes after which a body is done: its last NoOp, or its results."""
        last = [n.name for n in level.graph.nodes() if n.op == "NoOp"]
        last = [n for n in last if not any(level.graph[s].op == "NoOp" for s in level.graph.dag[n])]
        if last:
            return [level.names[name] for name in last if name in level.names]
        results = [self.resolve(ref, level).node for ref in flat_refs(level.graph.outputs)]
        return list(dict.fromkeys(results))

    def pass_arguments(
        self,
        node: Node,
        inner: Level,
        level: Level,
        entry: str,
        names: Mapping[int, str | None],
        *,
        word: str = "",
        first: int = 0,
        direct: Iterable[int] = (),
    ) -> None:
        """Connect a body's arguments: through the entry node, handles straight from their source.

        Args:
            node: The op that has the body.
            inner: The body.
            level: Where the op is.
            entry: The diamond.
            names: What the tensors are called, by the op's inputs.
            word: Which of several bodies it is.
            first: The op's input that becomes argument 0.
            direct: Arguments that pass the entry by.
        """
        arguments = flat_refs(inner.graph.inputs)
        for arrow in level.graph.incoming(node.name):
            port = arrow.edge.target_port
            if port is None or not 0 <= port - first < len(arguments):
                continue
            argument = arguments[port - first]
            name = inner.known[argument] = names.get(port)
            if is_handle(arrow) or port - first in direct:
                inner.sources[argument] = self.resolve(source_of(arrow), level)
            else:
                inner.sources[argument] = TensorRef(entry, port)
                label = f"{word}: {name}" if name and word else name or word
                if label:
                    inner.labels[argument] = label

    def names_of_inputs(self, node: Node, level: Level) -> dict[int, str | None]:
        """Return what users call the tensors that an op takes, by input."""
        return {
            arrow.edge.target_port: self.name(source_of(arrow), level)
            for arrow in level.graph.incoming(node.name)
            if arrow.edge.target_port is not None
        }


def read_ports(node: Node, graph: Graph) -> set[int]:
    """Return the outputs of an op that something reads; an Identity that leads nowhere does not."""
    results = flat_refs(graph.outputs)
    returned = {ref.node for ref in results}
    read = {ref.port for ref in results if ref.node == node.name}
    for arrow in graph.outgoing(node.name):
        target = graph[arrow.target]
        spare = target.op == "Identity" and target.name not in returned
        if arrow.edge.kind is EdgeKind.DATA and (not spare or graph.outgoing(target.name)):
            read.add(arrow.edge.source_port or 0)
    return read


def source_of(arrow: Arrow) -> TensorRef:
    """Return the tensor that an edge carries."""
    return TensorRef(arrow.source, arrow.edge.source_port or 0)


def follow(sources: Mapping[TensorRef, TensorRef], ref: TensorRef) -> TensorRef:
    """Return the tensor that one really is."""
    return sources.get(ref, ref)


def _cut(placed: dict[str, _T], size: int) -> None:
    while len(placed) > size:
        placed.popitem()
