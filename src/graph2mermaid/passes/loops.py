"""A loop in a flat graph: a diamond holds its values, condition and body hang on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from graph2mermaid.graph import Arrow, Edge, Graph, Node, TensorRef
from graph2mermaid.passes.bodies import (
    behind_identity,
    counting_ops,
    flat_refs,
    only_counts,
)
from graph2mermaid.passes.placing import Draft, Level, read_ports, source_of

NEXT_ITERATION = "next iteration"
GOES_ON = "goes on while true"


@dataclass(frozen=True)
class _Loop:
    node: Node
    level: Level
    body: Graph
    constant: frozenset[int]
    """Values that the body hands round as they are; they go past the diamond."""
    counting: frozenset[int]
    """Values that only count, in a simple drawing."""

    @property
    def direct(self) -> frozenset[int]:
        return self.constant | self.counting


def place_loop(draft: Draft, node: Node, level: Level) -> None:
    """A diamond holds the loop's values; condition and body hang on it, and lead back."""
    loop = _read(draft, node, level)
    head = draft.add(replace(node, calls=(), variable=None), level)
    level.names[node.name] = head
    for arrow in level.graph.incoming(node.name):
        if arrow.edge.target_port not in loop.direct:
            draft.connect(arrow, level, head)
    names = _place_bodies(draft, loop, head)
    for arrow in level.graph.incoming(node.name):
        port = arrow.edge.target_port
        if port is None:
            continue
        result = TensorRef(node.name, port)
        name = level.known[result] = names.get(port)
        if port in loop.constant:
            level.sources[result] = draft.resolve(source_of(arrow), level)
        elif name is not None:
            level.labels[result] = name


def _read(draft: Draft, node: Node, level: Level) -> _Loop:
    functions = {call.role: draft.function(call) for call in node.calls}
    body, cond = functions["body"], functions["cond"]
    arguments, results = flat_refs(body.inputs), flat_refs(body.outputs)
    constant = {i for i, ref in enumerate(results) if behind_identity(body, ref) == arguments[i]}
    counting: set[int] = set()
    if draft.simple:
        counting = set(range(len(results))) - constant - read_ports(node, level.graph)
        counting = {i for i in counting if only_counts(body, cond, i)}
    return _Loop(node, level, body, frozenset(constant), frozenset(counting))


def _place_bodies(draft: Draft, loop: _Loop, head: str) -> dict[int, str | None]:
    """Place condition and body, and return what the loop's values are called.

    A value enters under a name, and leaves the body under one. Only where both are the same is
    it the loop's name for it: in `y = x` before the loop and `y = 2 * y` inside, `x` is not. What
    the body calls its values can depend on what they are called when they enter, so the body is
    placed under the names from outside first, and again without those that it does not confirm.
    """
    names = draft.names_of_inputs(loop.node, loop.level)
    mark = draft.mark()
    while True:
        _place_under(draft, loop, head, "cond", names)
        inner = _place_under(draft, loop, head, "body", names)
        results = enumerate(flat_refs(loop.body.outputs))
        after = {
            at: draft.name(behind_identity(loop.body, ref), inner)
            for at, ref in results
            if at not in loop.counting
        }
        wrong = [at for at in after if names.get(at) is not None and names[at] != after[at]]
        if not wrong:
            return names
        names |= dict.fromkeys(wrong)
        draft.undo(mark)


def _place_under(
    draft: Draft, loop: _Loop, head: str, role: str, names: Mapping[int, str | None]
) -> Level:
    call = next(call for call in loop.node.calls if call.role == role)
    inner = draft.enter(loop.node, call, loop.level)
    draft.pass_arguments(loop.node, inner, loop.level, head, names, direct=loop.direct)
    if role == "body":
        skipped = counting_ops(inner.graph, loop.counting)
        inner.names.update(dict.fromkeys(skipped, ""))
        draft.counters.update((f"{inner.prefix}/{name}", None) for name in sorted(skipped))
    draft.place(draft, inner)
    if role == "body":
        _lead_on(draft, loop, inner, head)
    else:
        _lead_back(draft, inner, head, names)
    return inner


def _lead_on(draft: Draft, loop: _Loop, inner: Level, head: str) -> None:
    """Lead what the body makes back to the diamond; a value may take the place of another."""
    for port, ref in enumerate(flat_refs(inner.graph.outputs)):
        source = draft.resolve(ref, inner) if port not in loop.direct else None
        if source is not None and source != TensorRef(head, port):
            spec = loop.node.outputs[port] if port < len(loop.node.outputs) else None
            edge = Edge(
                source_port=source.port, target_port=port, tensor=spec, label=NEXT_ITERATION
            )
            draft.back.append(Arrow(source.node, head, edge))


def _lead_back(draft: Draft, inner: Level, head: str, names: Mapping[int, str | None]) -> None:
    """Lead the condition back to the diamond; it may be one of the loop's own values."""
    for ref in flat_refs(inner.graph.outputs):
        source = draft.resolve(ref, inner)
        tested = draft.resolve(behind_identity(inner.graph, ref), inner)
        own = names.get(tested.port) if tested.node == head else None
        label = f"{GOES_ON}: {own}" if own else GOES_ON
        # A condition takes the place of none of the values.
        edge = Edge(source_port=source.port, target_port=None, label=label)
        draft.back.append(Arrow(source.node, head, edge))
