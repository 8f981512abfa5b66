"""The bodies of functions as they are drawn: what they are called, and what their ops are for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import networkx as nx

from graph2mermaid.graph import (
    Arrow,
    Binding,
    Call,
    EdgeKind,
    Graph,
    Node,
    NodeKind,
    SourceLine,
    TensorRef,
)

PLUMBING = ("Identity", "IdentityN", "NoOp", "Placeholder")
"""Ops that hand on what they get, or nothing."""

_MOST_TITLE = 40
"""Longer titles are cut where they are drawn, and would lose the line number."""


@dataclass(frozen=True, slots=True)
class Body:
    """One function body in its place: a frame of the drawing."""

    key: str
    function: str
    call: str
    """The flat name of the op that calls it."""
    role: str
    parent: str | None
    depth: int
    title: str
    """What a reader calls it: `inner · model.py:3`, `then · model.py:8`."""


def accepts(function: Graph, node: Node, call: Call, given: int) -> bool:
    """Tell whether a body has the inputs and outputs of the call; a damaged file's may not.

    `given` is the number of tensors that the op takes.
    """
    refs = (*flat_refs(function.inputs), *flat_refs(function.outputs))
    if not all(ref.node in function for ref in refs):
        return False
    takes, gives = len(flat_refs(function.inputs)), len(flat_refs(function.outputs))
    if node.kind is NodeKind.CALL:
        return takes >= given and gives >= len(node.outputs)
    if call.role == "cond":
        return takes >= given and gives == 1
    if call.role == "body":
        return takes == gives == given
    if node.kind is NodeKind.CONTROL_FLOW:
        return takes >= given - 1
    return True


def body_title(node: Node, call: Call) -> str:
    """Name a body by what it is to the op that calls it, and where that is."""
    words = _body_words(node, call)
    if node.source is None:
        return words
    return f"{words} · {_short_place(node.source, _MOST_TITLE - len(words) - 3)}"


def _body_words(node: Node, call: Call) -> str:
    if node.kind is NodeKind.CALL:
        return call.function
    if call.role in ("cond", "body"):
        return f"{'condition' if call.role == 'cond' else 'body'} of while"
    if node.kind is not NodeKind.CONTROL_FLOW:
        return f"{call.role} of {node.op}"
    # The last branch runs for every index that has none of its own.
    last = call.role.startswith("branches[") and call.role == node.calls[-1].role
    return f"{branch_word(call.role)} or other" if last else branch_word(call.role)


def _short_place(source: SourceLine, room: int) -> str:
    """Return `long_fi….py:12`: what is cut for room is the file's name, never the line."""
    file, line = source.file.rpartition("/")[2], f":{source.line}"
    spare = max(room - len(line), 8)
    if len(file) > spare:
        file = f"{file[: spare - 4]}….py" if file.endswith(".py") else f"{file[: spare - 1]}…"
    return file + line


def branch_word(role: str) -> str:
    """Return the word for a branch in a diagram: `then`, `else`, `branch 2`."""
    if role.startswith("branches["):
        return f"branch {role[len('branches[') : -1]}"
    return role.removesuffix("_branch")


def is_handle(arrow: Arrow) -> bool:
    """Tell whether an edge carries a variable's handle, which is the same everywhere."""
    return arrow.edge.tensor is not None and arrow.edge.tensor.dtype == "resource"


def flat_refs(bindings: Iterable[Binding]) -> list[TensorRef]:
    """Return the tensors behind arguments or results, in the order of the ports."""
    return [ref for binding in bindings for ref in binding.tensors]


def in_order(graph: Graph) -> list[Node]:
    """Return the nodes so that every producer comes before its consumers, else in trace order."""
    position = {name: index for index, name in enumerate(graph.dag)}
    ordered = nx.lexicographical_topological_sort(graph.dag, key=position.__getitem__)
    return [graph[name] for name in ordered]


def is_only_op(graph: Graph, name: str) -> bool:
    """Tell whether a graph is no more than a wrapper around one call."""
    return all(
        node.name == name
        or node.kind in (NodeKind.INPUT, NodeKind.VARIABLE, NodeKind.CONST)
        or node.op in ("Identity", "NoOp", "Placeholder")
        for node in graph.nodes()
    )


def behind_identity(graph: Graph, ref: TensorRef) -> TensorRef:
    """Follow Identity ops back to the tensor that they hand on."""
    while graph[ref.node].op == "Identity":
        before = [a for a in graph.incoming(ref.node) if a.edge.kind is EdgeKind.DATA]
        if len(before) != 1:
            break
        ref = TensorRef(before[0].source, before[0].edge.source_port or 0)
    return ref


def counting_ops(body: Graph, counting: Iterable[int]) -> set[str]:
    """Return the ops of a loop body that only carry the given loop variables on."""
    arguments, results = flat_refs(body.inputs), flat_refs(body.outputs)
    found: set[str] = set()
    for index in counting:
        after = nx.descendants(body.dag, arguments[index].node)
        found |= after & (nx.ancestors(body.dag, results[index].node) | {results[index].node})
    return found


def only_counts(body: Graph, cond: Graph, index: int) -> bool:
    """Tell whether a loop variable influences nothing but itself."""
    argument = flat_refs(body.inputs)[index].node
    results = [ref.node for ref in flat_refs(body.outputs)]
    result = results.pop(index)
    after = nx.descendants(body.dag, argument)
    own = nx.ancestors(body.dag, result) | {result}
    tested = flat_refs(cond.inputs)[index].node
    read = bool(cond.outgoing(tested)) or any(r.node == tested for r in flat_refs(cond.outputs))
    return bool(after) and after <= own and after.isdisjoint(results) and not read
