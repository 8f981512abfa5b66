"""Which argument, variable or result each parameter and result of an HLO module is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from graph2mermaid.graph import (
    Binding,
    EdgeKind,
    Graph,
    Node,
    NodeKind,
    TensorRef,
    TensorSpec,
)
from graph2mermaid.hlo import Computation

_UNNAMED = re.compile(r"output_\d+")
_READS = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape"})


@dataclass(frozen=True)
class Argument:
    """What a parameter of the entry computation is to the user."""

    binding: Binding
    kind: NodeKind
    """Input, variable, or a constant that was captured."""


def arguments_of(entry: Computation, traced: Graph | None) -> Mapping[str, Argument]:
    """Return what the parameters of an entry computation are, by their names.

    The parameters are the arguments and captures in order, but for those that have to be known at
    compile time: these are compiled in, and no parameter any more.
    """
    if traced is None:
        return {}
    found: dict[str, Argument] = {}
    waiting = list(_known(traced))
    for parameter in entry.parameters:
        spec = parameter.shape.specs[0] if len(parameter.shape.leaves) == 1 else None
        at = next((i for i, (_, node) in enumerate(waiting) if spec and _fits(node, spec)), None)
        if at is None or spec is None:
            continue
        name, node = waiting[at]
        del waiting[: at + 1]
        binding = Binding(name, (TensorRef(parameter.name),), _type(node, spec))
        found[parameter.name] = Argument(binding, node.kind)
    return found


def _known(traced: Graph) -> list[tuple[str, Node]]:
    bindings = (*traced.inputs, *traced.captures)
    return [
        (traced[ref.node].label or binding.name, traced[ref.node])
        for binding in bindings
        for ref in binding.tensors
        if ref.node in traced
    ]


def _fits(node: Node, spec: TensorSpec) -> bool:
    known = node.holds or (node.outputs[0] if node.outputs else None)
    if known is None:
        return True
    if known.dtype != spec.dtype and known.dtype not in ("resource", "variant"):
        return False
    if known.shape is None or spec.shape is None:
        return True
    pairs = zip(known.shape, spec.shape, strict=False)
    return len(known.shape) == len(spec.shape) and all(a is None or a == b for a, b in pairs)


def _type(node: Node, spec: TensorSpec) -> str:
    word = {NodeKind.VARIABLE: "Variable ", NodeKind.CONST: "constant "}.get(node.kind, "")
    return f"{word}{spec}"


def results_of(entry: Computation, traced: Graph | None) -> list[str]:
    """Return the names of the results: those of the function, then the variables it has changed."""
    number = len(entry.result.shape.leaves)
    names = list(_result_names(traced)) if traced is not None else []
    names = names[:number]
    left = number - len(names)
    if traced is not None and left:
        changed = _changed(traced)
        if len(changed) == left:
            names += [f"new {name}" for name in changed]
    names += [f"output_{at}" for at in range(len(names), number)]
    taken: dict[str, int] = {}
    for at, name in enumerate(names):
        taken[name] = taken.get(name, 0) + 1
        if taken[name] > 1:
            names[at] = f"{name} ({taken[name]})"
    return names


def _result_names(traced: Graph) -> list[str]:
    found = []
    for binding in traced.outputs:
        for ref in binding.tensors:
            name = binding.name
            if _UNNAMED.fullmatch(name) and len(binding.tensors) == 1:
                name = _assigned(traced, ref) or name
            found.append(name)
    return found


def _assigned(traced: Graph, ref: TensorRef) -> str | None:
    """Return the Python variable that a result was assigned to, through any number of Identity ops."""
    while ref.node in traced:
        node = traced[ref.node]
        if node.variable is not None:
            return node.tensor_name(ref.port)
        before = [a for a in traced.incoming(ref.node) if a.edge.kind is EdgeKind.DATA]
        if node.op != "Identity" or len(before) != 1:
            return None
        ref = TensorRef(before[0].source, before[0].edge.source_port or 0)
    return None


def _changed(traced: Graph) -> list[str]:
    """Return the variables that an op assigns to, in the order of the captures."""
    found = []
    for name, node in _known(traced):
        if node.kind is not NodeKind.VARIABLE or node.name not in traced:
            continue
        ops = {traced[arrow.target].op for arrow in traced.outgoing(node.name)}
        if ops - _READS - {"NoOp", "Identity"}:
            found.append(name)
    return found
