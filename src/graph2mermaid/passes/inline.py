"""Put the bodies of called functions where they are called.

The result is one flat graph and the frames that its nodes stand in. It is for drawing: loops are
closed by back edges, a branch is a diamond that its arguments enter and a merge that its results
leave, and a plain call leaves nothing of itself but the frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from graph2mermaid.graph import Arrow, Call, Edge, EdgeKind, Graph, Node, NodeKind, TensorRef
from graph2mermaid.passes.bodies import (
    Body,
    accepts,
    behind_identity,
    flat_refs,
    in_order,
    is_only_op,
)
from graph2mermaid.passes.branches import place_branches
from graph2mermaid.passes.loops import place_loop
from graph2mermaid.passes.placing import Draft, Level, follow, source_of

__all__ = ["MAX_DEPTH", "Body", "Inlined", "inline"]

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
    counters: int = 0
    """How many ops that only count the iterations of a loop are not in the graph."""


def inline(graph: Graph, *, simple: bool = True) -> Inlined:
    """Return the flat graph of `graph` and all that it calls, two frames deep.

    Args:
        graph: A graph with its functions.
        simple: Leave out loop variables that only count (TensorFlow's own `loop_counter`).
    """
    if not any(node.calls for node in graph.nodes()):
        return Inlined(graph, {}, {}, ())
    draft = Draft(graph, simple, _place)
    level = Level(graph, "", None)
    _place(draft, level)
    flat = Graph.build(
        graph.name,
        graph.stage,
        draft.nodes.values(),
        draft.arrows,
        inputs=graph.inputs,
        captures=graph.captures,
        outputs=tuple(
            replace(b, tensors=tuple(follow(level.sources, ref) for ref in b.tensors))
            for b in graph.outputs
        ),
        source=graph.source,
    )
    flat = replace(flat, back_edges=(*flat.back_edges, *graph.back_edges, *draft.back))
    return Inlined(flat, draft.bodies, draft.home, tuple(draft.not_drawn), len(draft.counters))


def _place(draft: Draft, level: Level) -> None:
    """Place every node of a level, bodies included, and the edges between them."""
    for node in in_order(level.graph):
        if node.name in level.names or TensorRef(node.name) in level.sources:
            continue  # an argument that the caller has already connected
        bodies = _bodies_to_draw(draft, node, level)
        if not bodies:
            draft.add_with_edges(node, level)
        elif node.kind is NodeKind.CALL:
            _place_call(draft, node, bodies[0], level)
        elif len(bodies) == 2 and {c.role for c in bodies} == {"cond", "body"}:
            place_loop(draft, node, level)
        elif node.kind is NodeKind.CONTROL_FLOW:
            place_branches(draft, node, bodies, level)
        else:
            _place_user(draft, node, bodies, level)
    if level.graph is not draft.top:
        _close_loops(draft, level)


def _close_loops(draft: Draft, level: Level) -> None:
    """Add the edges that lead back in a body's own lowered loops."""
    for source, target, edge in level.graph.back_edges:
        end = level.names.get(target)
        start = TensorRef(level.names.get(source, ""))
        if edge.kind is EdgeKind.DATA:
            start = draft.resolve(TensorRef(source, edge.source_port or 0), level)
        port = start.port if edge.kind is EdgeKind.DATA else None
        if start.node and end:
            draft.back.append(Arrow(start.node, end, replace(edge, source_port=port)))


def _bodies_to_draw(draft: Draft, node: Node, level: Level) -> list[Call]:
    depth = level.body.depth if level.body else 0
    known = [call for call in node.calls if call.function in draft.top.functions]
    ports = [arrow.edge.target_port for arrow in level.graph.incoming(node.name)]
    given = sum(port is not None for port in ports)
    if not all(accepts(draft.function(call), node, call, given) for call in known):
        return []
    size = sum(len(draft.function(call)) for call in known)
    wrapper = node.kind is NodeKind.CALL and is_only_op(level.graph, node.name)
    if known and (depth < MAX_DEPTH or wrapper) and len(draft.nodes) + size <= MAX_NODES:
        return known
    draft.not_drawn.update(dict.fromkeys(call.function for call in known))
    return []


# -- plain calls --------------------------------------------------------------------------------


def _place_call(draft: Draft, node: Node, call: Call, level: Level) -> None:
    function = draft.function(call)
    inner = draft.enter(node, call, level)
    incoming = level.graph.incoming(node.name)
    arguments = flat_refs(function.inputs)
    for arrow in incoming:
        port = arrow.edge.target_port
        if port is not None and port < len(arguments):
            ref = source_of(arrow)
            inner.sources[arguments[port]] = draft.resolve(ref, level)
            _hand_on(level, ref, inner, arguments[port])
    draft.place(draft, inner)
    for port, ref in enumerate(flat_refs(function.outputs)):
        result = draft.resolve(ref, inner)
        level.sources[TensorRef(node.name, port)] = result
        _hand_on(inner, ref, level, TensorRef(node.name, port))
        if node.variable and draft.nodes[result.node].variable is None:
            _name_result(draft, result, node, port)
    level.ends[node.name] = draft.ends_of(inner)
    for arrow in incoming:
        if arrow.edge.kind is EdgeKind.CONTROL:
            for start in inner.starts():
                draft.connect(arrow, level, start)


def _hand_on(giving: Level, ref: TensorRef, taking: Level, place: TensorRef) -> None:
    """Let words and names go with a tensor from one level to another."""
    if ref in giving.labels:
        taking.labels[place] = giving.labels[ref]
    if ref in giving.known:
        taking.known[place] = giving.known[ref]


def _name_result(draft: Draft, result: TensorRef, node: Node, port: int) -> None:
    """The variable that a call's result is assigned to names the op that makes it."""
    inside = draft.nodes[result.node]
    names = (node.variable or "").split(", ")
    if len(inside.outputs) == 1 and inside.kind is NodeKind.OP and port < len(names):
        draft.nodes[result.node] = replace(inside, variable=names[port])


# -- functions of other ops (tf.data and the like) ------------------------------------------------


def _place_user(draft: Draft, node: Node, bodies: Sequence[Call], level: Level) -> None:
    """The op stays; the function it uses stands beside it, fed by the op."""
    user = draft.add_with_edges(replace(node, calls=()), level)
    for call in bodies:
        inner = draft.enter(node, call, level)
        for ref in flat_refs(inner.graph.inputs):
            argument = inner.graph[ref.node]
            named = replace(argument, label=argument.label or argument.name)
            inner.names[ref.node] = name = draft.add(named, inner)
            spec = argument.outputs[0] if argument.outputs else None
            draft.arrows.append(Arrow(user, name, Edge(tensor=spec, label=call.role)))
        draft.place(draft, inner)
        _place_results(draft, inner)


def _place_results(draft: Draft, inner: Level) -> None:
    """What such a function returns goes to the op, not to a consumer in the drawing."""
    for binding in inner.graph.outputs:
        for ref in binding.tensors:
            spec = inner.graph.tensor(ref)
            label = draft.name(behind_identity(inner.graph, ref), inner) or binding.name
            outputs = (spec,) if spec is not None else ()
            result = Node(binding.name, "output", NodeKind.OUTPUT, outputs, label=label)
            name = draft.add(result, inner)
            draft.data(ref, Edge(tensor=spec), inner, name)
