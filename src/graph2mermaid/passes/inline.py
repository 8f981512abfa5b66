"""Put the bodies of called functions where they are called.

The result is one flat graph and the frames that its nodes stand in. It is for drawing: loops are
closed by back edges, a branch is a diamond that its arguments enter and a merge that its results
leave, and a plain call leaves nothing of itself but the frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from graph2mermaid.graph import Arrow, Call, Edge, EdgeKind, Graph, Node, NodeKind, TensorRef
from graph2mermaid.passes.bodies import (
    PLUMBING,
    Body,
    accepts,
    behind_identity,
    body_title,
    branch_word,
    counting_ops,
    flat_refs,
    in_order,
    is_handle,
    is_only_op,
    only_counts,
)

__all__ = ["MAX_DEPTH", "Body", "Inlined", "inline"]

_CONTROL = Edge(EdgeKind.CONTROL, None, None)

MAX_DEPTH = 2
"""Frames nest no deeper; see the reading numbers in the documentation."""
MAX_NODES = 20_000
"""No further body is put in place once the flat graph has this many nodes."""


@dataclass(frozen=True)
class Inlined:
    """A flat graph, the frames in it, and what was left as a call."""

    graph: Graph
    bodies: Mapping[str, Body]
    home: Mapping[str, str]
    """For each node inside a frame, the key of the innermost one."""
    not_drawn: tuple[str, ...]
    """Functions that are called but have no frame, in the order of their calls."""


def inline(graph: Graph, *, simple: bool = True) -> Inlined:
    """Return the flat graph of `graph` and all that it calls, two frames deep.

    Args:
        graph: A graph with its functions.
        simple: Leave out loop variables that only count (TensorFlow's own `loop_counter`).
    """
    if not any(node.calls for node in graph.nodes()):
        return Inlined(graph, {}, {}, ())
    return _Inliner(graph, simple).run()


@dataclass
class _Level:
    """One graph being placed: where its tensors come from once placed."""

    graph: Graph
    prefix: str
    body: Body | None
    sources: dict[TensorRef, TensorRef] = field(default_factory=dict)
    """Tensors of this level that are another flat tensor: arguments, results of calls."""
    labels: dict[TensorRef, str] = field(default_factory=dict)
    """Words on the edges that leave a tensor."""
    known: dict[TensorRef, str] = field(default_factory=dict)
    """Names that users know tensors by, where the op that they come from does not tell."""
    names: dict[str, str] = field(default_factory=dict)
    starts: dict[str, list[str]] = field(default_factory=dict)
    """For a call that left no node: the flat nodes that a control edge to it waits for."""
    ends: dict[str, list[str]] = field(default_factory=dict)


class _Inliner:
    def __init__(self, graph: Graph, simple: bool) -> None:
        self._top = graph
        self._simple = simple
        self._nodes: dict[str, Node] = {}
        self._arrows: list[Arrow] = []
        self._back: list[Arrow] = []
        self._bodies: dict[str, Body] = {}
        self._home: dict[str, str] = {}
        self._not_drawn: dict[str, None] = {}

    def run(self) -> Inlined:
        level = _Level(self._top, "", None)
        self._place(level)
        resolve = level.sources
        flat = Graph.build(
            self._top.name,
            self._top.stage,
            self._nodes.values(),
            self._arrows,
            inputs=self._top.inputs,
            captures=self._top.captures,
            outputs=tuple(
                replace(b, tensors=tuple(_follow(resolve, ref) for ref in b.tensors))
                for b in self._top.outputs
            ),
            source=self._top.source,
        )
        flat = replace(flat, back_edges=(*flat.back_edges, *self._top.back_edges, *self._back))
        return Inlined(flat, self._bodies, self._home, tuple(self._not_drawn))

    def _place(self, level: _Level) -> None:
        """Add every node of a level, bodies included, and the edges between them."""
        for node in in_order(level.graph):
            if node.name in level.names or TensorRef(node.name) in level.sources:
                continue  # an argument that the caller has already connected
            bodies = self._bodies_to_draw(node, level)
            if not bodies:
                self._place_plain(node, level)
            elif node.kind is NodeKind.CALL:
                self._place_call(node, bodies[0], level)
            elif len(bodies) == 2 and {c.role for c in bodies} == {"cond", "body"}:
                self._place_loop(node, level)
            elif node.kind is NodeKind.CONTROL_FLOW:
                self._place_branches(node, bodies, level)
            else:
                self._place_user(node, bodies, level)

    def _bodies_to_draw(self, node: Node, level: _Level) -> list[Call]:
        depth = level.body.depth if level.body else 0
        known = [call for call in node.calls if call.function in self._top.functions]
        ports = [arrow.edge.target_port for arrow in level.graph.incoming(node.name)]
        given = sum(port is not None for port in ports)
        if not all(
            accepts(self._top.functions[call.function], node, call, given) for call in known
        ):
            return []
        size = sum(len(self._top.functions[call.function]) for call in known)
        wrapper = node.kind is NodeKind.CALL and is_only_op(level.graph, node.name)
        if known and (depth < MAX_DEPTH or wrapper) and len(self._nodes) + size <= MAX_NODES:
            return known
        self._not_drawn.update(dict.fromkeys(call.function for call in known))
        return []

    # -- one op ---------------------------------------------------------------------------

    def _add(self, node: Node, level: _Level, *, suffix: str = "", body: Body | None = None) -> str:
        name = self._flat_name(node.name + suffix, level.prefix)
        self._nodes[name] = replace(node, name=name, origin=node.origin or (node.name,))
        home = body or level.body
        if home is not None:
            self._home[name] = home.key
        return name

    def _flat_name(self, name: str, prefix: str) -> str:
        flat = name if not prefix or name.startswith(f"{prefix}/") else f"{prefix}/{name}"
        while flat in self._nodes:
            flat += "'"
        return flat

    def _place_plain(self, node: Node, level: _Level) -> str:
        name = self._add(node, level)
        level.names[node.name] = name
        for arrow in level.graph.incoming(node.name):
            self._connect(arrow, level, name)
        return name

    def _connect(self, arrow: Arrow, level: _Level, target: str) -> None:
        """Add one edge of a level, its start followed to where the tensor really comes from."""
        if arrow.edge.kind is EdgeKind.CONTROL:
            for end in level.ends.get(arrow.source) or [level.names.get(arrow.source, "")]:
                if end:
                    self._arrows.append(Arrow(end, target, arrow.edge))
            return
        port = arrow.edge.source_port or 0
        self._data(TensorRef(arrow.source, port), arrow.edge, level, target)

    def _data(self, ref: TensorRef, edge: Edge, level: _Level, target: str) -> None:
        source = self._resolve(ref, level)
        label = level.labels.get(ref)
        self._arrows.append(
            Arrow(source.node, target, replace(edge, source_port=source.port, label=label))
        )

    def _resolve(self, ref: TensorRef, level: _Level) -> TensorRef:
        found = _follow(level.sources, ref)
        return found if found is not ref else TensorRef(level.names[ref.node], ref.port)

    def _name(self, ref: TensorRef, level: _Level) -> str | None:
        """Return the name that a user knows a tensor by."""
        if ref in level.known:
            return level.known[ref]
        source = self._resolve(ref, level)
        return self._nodes[source.node].tensor_name(source.port)

    def _read_ports(self, node: Node, level: _Level) -> set[int]:
        """Return the outputs of an op that something reads; an Identity that leads nowhere does not."""
        results = flat_refs(level.graph.outputs)
        returned = {ref.node for ref in results}
        read = {ref.port for ref in results if ref.node == node.name}
        for arrow in level.graph.outgoing(node.name):
            target = level.graph[arrow.target]
            spare = target.op == "Identity" and target.name not in returned
            if arrow.edge.kind is EdgeKind.DATA and (
                not spare or level.graph.dag.out_degree(target.name)
            ):
                read.add(arrow.edge.source_port or 0)
        return read

    # -- plain calls ----------------------------------------------------------------------

    def _place_call(self, node: Node, call: Call, level: _Level) -> None:
        function = self._top.functions[call.function]
        inner = self._enter(node, call, level)
        incoming = level.graph.incoming(node.name)
        arguments = flat_refs(function.inputs)
        for arrow in incoming:
            port = arrow.edge.target_port
            if port is not None and port < len(arguments):
                ref = TensorRef(arrow.source, arrow.edge.source_port or 0)
                inner.sources[arguments[port]] = self._resolve(ref, level)
                if ref in level.labels:
                    inner.labels[arguments[port]] = level.labels[ref]
                if ref in level.known:
                    inner.known[arguments[port]] = level.known[ref]
        self._place(inner)
        for port, ref in enumerate(flat_refs(function.outputs)):
            result = self._resolve(ref, inner)
            level.sources[TensorRef(node.name, port)] = result
            if ref in inner.known:
                level.known[TensorRef(node.name, port)] = inner.known[ref]
            if ref in inner.labels:
                level.labels[TensorRef(node.name, port)] = inner.labels[ref]
            if node.variable and self._nodes[result.node].variable is None:
                self._name_result(result, node, port)
        level.ends[node.name] = self._ends_of(inner)
        waits = [a for a in incoming if a.edge.kind is EdgeKind.CONTROL]
        for arrow in waits:
            for start in self._starts_of(inner):
                self._connect(arrow, level, start)

    def _name_result(self, result: TensorRef, node: Node, port: int) -> None:
        """The variable that a call's result is assigned to names the op that makes it."""
        inside = self._nodes[result.node]
        names = (node.variable or "").split(", ")
        if len(inside.outputs) == 1 and inside.kind is NodeKind.OP and port < len(names):
            self._nodes[result.node] = replace(inside, variable=names[port])

    def _enter(self, node: Node, call: Call, level: _Level) -> _Level:
        """Open the frame of a body; a wrapper around a single call gets none of its own."""
        function = self._top.functions[call.function]
        flat_call = level.names.get(node.name) or self._flat_name(node.name, level.prefix)
        if node.kind is NodeKind.CALL and is_only_op(level.graph, node.name):
            return _Level(function, flat_call, level.body)
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
        self._bodies[key] = body
        return _Level(function, flat_call, body)

    def _starts_of(self, level: _Level) -> list[str]:
        """Return the flat nodes of a body that nothing inside it comes before."""
        arguments = {ref.node for ref in flat_refs(level.graph.inputs)}
        starts: list[str] = []
        for node in level.graph.nodes():
            before = {a.source for a in level.graph.incoming(node.name)} - arguments
            before = {n for n in before if level.graph[n].kind is not NodeKind.CONST}
            if node.kind is not NodeKind.CONST and node.name not in arguments and not before:
                starts += level.starts.get(node.name) or [level.names.get(node.name, "")]
        return [name for name in starts if name]

    def _ends_of(self, level: _Level) -> list[str]:
        """Return the flat nodes after which a body is done: its last NoOp, or its results."""
        last = [n.name for n in level.graph.nodes() if n.op == "NoOp"]
        last = [n for n in last if not any(level.graph[s].op == "NoOp" for s in level.graph.dag[n])]
        if last:
            return [level.names[name] for name in last if name in level.names]
        results = [self._resolve(ref, level).node for ref in flat_refs(level.graph.outputs)]
        return list(dict.fromkeys(results))

    # -- branches -------------------------------------------------------------------------

    def _place_branches(self, node: Node, bodies: Sequence[Call], level: _Level) -> None:
        """A diamond takes condition and arguments; the merge after the branches has the results."""
        diamond = self._add(replace(node, outputs=(), calls=()), level)
        level.names[node.name] = diamond
        for arrow in level.graph.incoming(node.name):
            if not is_handle(arrow):
                self._connect(arrow, level, diamond)
        branches: list[_Level] = []
        for call in sorted(bodies, key=lambda call: call.role == "else_branch"):
            inner = self._enter(node, call, level)
            word = branch_word(call.role)
            self._pass_arguments(node, inner, level, diamond, word, first=1)
            before = len(self._arrows)
            self._place(inner)
            self._choose(inner, diamond, word, self._arrows[before:])
            branches.append(inner)
        self._merge(node, branches, level, diamond)

    def _choose(self, inner: _Level, diamond: str, word: str, arrows: Sequence[Arrow]) -> None:
        """A branch that takes nothing from the diamond still runs only when it is chosen."""
        if any(arrow.source == diamond for arrow in arrows):
            return
        inside = [name for name in inner.names.values() if name in self._nodes]
        first = [name for name in self._starts_of(inner) if name in inside]
        first = [name for name in first if self._nodes[name].op not in PLUMBING]
        first += [name for name in inside if self._nodes[name].kind is NodeKind.CONST]
        for start in first[:1]:
            self._arrows.append(Arrow(diamond, start, replace(_CONTROL, label=word)))

    def _merge(self, node: Node, branches: Sequence[_Level], level: _Level, diamond: str) -> None:
        results = [flat_refs(inner.graph.outputs) for inner in branches]
        variable = node.variable or self._agreed(node, branches, results)
        merge_node = Node(
            node.name, "Merge", NodeKind.CONTROL_FLOW, node.outputs, variable=variable
        )
        merge = self._add(merge_node, level, suffix="/merge")
        read = self._read_ports(node, level)
        for inner, refs in zip(branches, results, strict=True):
            shown = [at for at in range(len(refs)) if at in read or not self._simple]
            for port in shown:
                spec = node.outputs[port] if port < len(node.outputs) else None
                self._data(refs[port], Edge(target_port=port, tensor=spec), inner, merge)
            if not shown:
                self._end_in(merge, inner, diamond)
        for port in range(len(node.outputs)):
            level.sources[TensorRef(node.name, port)] = TensorRef(merge, port)
        level.ends[node.name] = [merge]

    def _end_in(self, merge: str, inner: _Level, diamond: str) -> None:
        """A branch without results is over when its last op is; one without ops is a way past."""
        idle = self._simple and all(
            n.op in PLUMBING or n.kind in (NodeKind.INPUT, NodeKind.CONST)
            for n in inner.graph.nodes()
        )
        for end in [] if idle else self._ends_of(inner):
            self._arrows.append(Arrow(end, merge, _CONTROL))
        if idle and inner.body:
            word = branch_word(inner.body.role)
            self._arrows.append(Arrow(diamond, merge, replace(_CONTROL, label=word)))

    def _agreed(
        self, node: Node, branches: Sequence[_Level], results: Sequence[Sequence[TensorRef]]
    ) -> str | None:
        """Return the variables that hold the results whichever branch was taken."""
        found: list[str] = []
        for port in range(len(node.outputs)):
            names = {
                self._name(behind_identity(inner.graph, refs[port]), inner)
                if port < len(refs)
                else None
                for inner, refs in zip(branches, results, strict=True)
            }
            name = names.pop()
            if names or name is None:
                return None
            found.append(name)
        return ", ".join(found) or None

    def _pass_arguments(
        self,
        node: Node,
        inner: _Level,
        level: _Level,
        entry: str,
        word: str,
        *,
        first: int = 0,
        direct: Iterable[int] = (),
    ) -> None:
        """Connect a body's arguments: through the entry node, handles straight from their source.

        `first` is the op's input that becomes argument 0; `direct` are arguments that pass the
        entry by.
        """
        arguments = flat_refs(inner.graph.inputs)
        for arrow in level.graph.incoming(node.name):
            port = arrow.edge.target_port
            if port is None or not 0 <= port - first < len(arguments):
                continue
            argument = arguments[port - first]
            ref = TensorRef(arrow.source, arrow.edge.source_port or 0)
            name = self._name(ref, level)
            if name:
                inner.known[argument] = name
            if is_handle(arrow) or port - first in direct:
                inner.sources[argument] = self._resolve(ref, level)
            else:
                inner.sources[argument] = TensorRef(entry, port)
                label = f"{word}: {name}" if name and word else name or word
                if label:
                    inner.labels[argument] = label

    # -- loops ----------------------------------------------------------------------------

    def _place_loop(self, node: Node, level: _Level) -> None:
        """A diamond holds the loop's values; condition and body hang on it, and lead back."""
        roles = {call.role: call for call in node.calls}
        body_graph = self._top.functions[roles["body"].function]
        cond_graph = self._top.functions[roles["cond"].function]
        arguments, results = flat_refs(body_graph.inputs), flat_refs(body_graph.outputs)
        constant = {
            i for i, ref in enumerate(results) if behind_identity(body_graph, ref) == arguments[i]
        }
        counting: set[int] = set()
        if self._simple:
            counting = set(range(len(results))) - constant - self._read_ports(node, level)
            counting = {i for i in counting if only_counts(body_graph, cond_graph, i)}
        head = self._add(replace(node, calls=()), level)
        level.names[node.name] = head
        for arrow in level.graph.incoming(node.name):
            if arrow.edge.target_port not in constant | counting:
                self._connect(arrow, level, head)
        direct = constant | counting
        for role in ("cond", "body"):
            inner = self._enter(node, roles[role], level)
            self._pass_arguments(node, inner, level, head, "", direct=direct)
            skipped = counting_ops(inner.graph, counting) if role == "body" else set()
            inner.names.update(dict.fromkeys(skipped, ""))
            self._place(inner)
            self._lead_back(node, inner, head, direct, role)
        for arrow in level.graph.incoming(node.name):
            port = arrow.edge.target_port
            if port is None:
                continue
            ref = TensorRef(arrow.source, arrow.edge.source_port or 0)
            name = self._name(ref, level)
            if name is not None:
                level.known[TensorRef(node.name, port)] = name
            if port in constant:
                level.sources[TensorRef(node.name, port)] = self._resolve(ref, level)
            elif name is not None:
                level.labels[TensorRef(node.name, port)] = name

    def _lead_back(
        self, node: Node, inner: _Level, head: str, skipped: set[int], role: str
    ) -> None:
        for port, ref in enumerate(flat_refs(inner.graph.outputs)):
            if role == "body" and port in skipped:
                continue
            source = self._resolve(ref, inner)
            label = "next iteration" if role == "body" else "goes on while true"
            spec = node.outputs[port] if role == "body" and port < len(node.outputs) else None
            edge = Edge(source_port=source.port, target_port=port, tensor=spec, label=label)
            if source.node != head:
                self._back.append(Arrow(source.node, head, edge))

    # -- functions of other ops (tf.data and the like) --------------------------------------

    def _place_user(self, node: Node, bodies: Sequence[Call], level: _Level) -> None:
        """The op stays; the function it uses stands beside it, fed by the op."""
        user = self._place_plain(replace(node, calls=()), level)
        for call in bodies:
            inner = self._enter(node, call, level)
            for ref in flat_refs(inner.graph.inputs):
                argument = inner.graph[ref.node]
                named = replace(argument, label=argument.label or argument.name)
                inner.names[ref.node] = name = self._add(named, inner)
                spec = argument.outputs[0] if argument.outputs else None
                self._arrows.append(Arrow(user, name, Edge(tensor=spec, label=call.role)))
            self._place(inner)
            self._place_results(inner)

    def _place_results(self, inner: _Level) -> None:
        """What such a function returns goes to the op, not to a consumer in the drawing."""
        for binding in inner.graph.outputs:
            for ref in binding.tensors:
                spec = inner.graph.tensor(ref)
                label = self._name(behind_identity(inner.graph, ref), inner) or binding.name
                outputs = (spec,) if spec is not None else ()
                result = Node(binding.name, "output", NodeKind.OUTPUT, outputs, label=label)
                name = self._add(result, inner)
                self._data(ref, Edge(tensor=spec), inner, name)


def _follow(sources: Mapping[TensorRef, TensorRef], ref: TensorRef) -> TensorRef:
    return sources.get(ref, ref)
