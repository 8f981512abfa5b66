"""A choice in a flat graph: a diamond, the bodies that hang on it, and the merge behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graph2mermaid.graph import Arrow, Call, Edge, Node, NodeKind, TensorRef
from graph2mermaid.passes.bodies import (
    PLUMBING,
    behind_identity,
    branch_word,
    flat_refs,
    is_handle,
)
from graph2mermaid.passes.placing import CONTROL, Draft, Level, read_ports


def place_branches(draft: Draft, node: Node, bodies: Sequence[Call], level: Level) -> None:
    """A diamond takes condition and arguments; the merge after the branches has the results."""
    diamond = draft.add(replace(node, outputs=(), calls=(), variable=None), level)
    level.names[node.name] = diamond
    for arrow in level.graph.incoming(node.name):
        if not is_handle(arrow):
            draft.connect(arrow, level, diamond)
    names = draft.names_of_inputs(node, level)
    branches: list[Level] = []
    for call in sorted(bodies, key=lambda call: call.role == "else_branch"):
        inner = draft.enter(node, call, level)
        word = branch_word(call.role)
        draft.pass_arguments(node, inner, level, diamond, names, word=word, first=1)
        before = len(draft.arrows)
        draft.place(draft, inner)
        _choose(draft, inner, diamond, word, draft.arrows[before:])
        branches.append(inner)
    _merge(draft, node, branches, level, diamond)


def _choose(draft: Draft, inner: Level, diamond: str, word: str, arrows: Sequence[Arrow]) -> None:
    """A branch that takes nothing from the diamond still runs only when it is chosen."""
    if any(arrow.source == diamond for arrow in arrows):
        return
    inside = [name for name in inner.names.values() if name in draft.nodes]
    first = [name for name in inner.starts() if name in inside]
    first = [name for name in first if draft.nodes[name].op not in PLUMBING]
    first += [name for name in inside if draft.nodes[name].kind is NodeKind.CONST]
    for start in first[:1]:
        draft.arrows.append(Arrow(diamond, start, replace(CONTROL, label=word)))


def _merge(draft: Draft, node: Node, branches: Sequence[Level], level: Level, diamond: str) -> None:
    results = [flat_refs(inner.graph.outputs) for inner in branches]
    variable = node.variable or _agreed(draft, node, branches, results)
    merge_node = Node(node.name, "Merge", NodeKind.CONTROL_FLOW, node.outputs, variable=variable)
    merge = draft.add(merge_node, level, suffix="/merge")
    read = read_ports(node, level.graph)
    for inner, refs in zip(branches, results, strict=True):
        shown = [at for at in range(len(refs)) if at in read or not draft.simple]
        for port in shown:
            spec = node.outputs[port] if port < len(node.outputs) else None
            draft.data(refs[port], Edge(target_port=port, tensor=spec), inner, merge)
        if not shown:
            _end_in(draft, merge, inner, diamond)
    for port in range(len(node.outputs)):
        level.sources[TensorRef(node.name, port)] = TensorRef(merge, port)
    level.ends[node.name] = [merge]


def _end_in(draft: Draft, merge: str, inner: Level, diamond: str) -> None:
    """A branch without results is over when its last op is; one without ops is a way past."""
    idle = draft.simple and all(
        n.op in PLUMBING or n.kind in (NodeKind.INPUT, NodeKind.CONST) for n in inner.graph.nodes()
    )
    for end in [] if idle else draft.ends_of(inner):
        draft.arrows.append(Arrow(end, merge, CONTROL))
    if idle and inner.body:
        word = branch_word(inner.body.role)
        draft.arrows.append(Arrow(diamond, merge, replace(CONTROL, label=word)))


def _agreed(
    draft: Draft,
    node: Node,
    branches: Sequence[Level],
    results: Sequence[Sequence[TensorRef]],
) -> str | None:
    """Return the variables that hold the results whichever branch was taken."""
    found: list[str] = []
    for port in range(len(node.outputs)):
        names = {
            draft.name(behind_identity(inner.graph, refs[port]), inner)
            if port < len(refs)
            else None
            for inner, refs in zip(branches, results, strict=True)
        }
        name = names.pop()
        if names or name is None:
            return None
        found.append(name)
    return ", ".join(found) or None
