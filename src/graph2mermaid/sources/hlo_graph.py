"""An HLO module as a Graph: its entry computation, and what that calls as functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from graph2mermaid.graph import (
    Arrow,
    Binding,
    Call,
    Edge,
    Graph,
    Node,
    NodeKind,
    Scalar,
    SourceLine,
    Stage,
    TensorRef,
)
from graph2mermaid.hlo import (
    CONTAINERS,
    NO_OPS,
    NO_WORK,
    Computation,
    Instruction,
    Module,
    Origins,
    cost,
)
from graph2mermaid.sources.hlo_arguments import Argument, arguments_of, results_of

_ROLES: Mapping[str, str] = {
    "condition": "cond",
    "true_computation": "then_branch",
    "false_computation": "else_branch",
}
"""What the roles of computations are called in TensorFlow's own graphs."""

_KINDS: Mapping[str, NodeKind] = {
    "constant": NodeKind.CONST,
    "fusion": NodeKind.CALL,
    "call": NodeKind.CALL,
    "while": NodeKind.CONTROL_FLOW,
    "conditional": NodeKind.CONTROL_FLOW,
}
"""The other opcodes, but for parameters, are ops."""

_NOT_SHOWN = frozenset({"index", "iota_dimension"})


def graph_of_module(module: Module, *, name: str, traced: Graph | None = None) -> Graph:
    """Return the graph of an HLO module, one node for each instruction.

    The graph is that of the entry computation. What a fusion, loop, branch or call runs is among its
    functions; the small functions of reductions and sorts are words on the node (`to_apply`).

    Each node has in its attributes its shape in XLA's form (`layout`), and a kernel its `flops` (where they
    are known) and `bytes`.

    Args:
        module: As it was optimized, or before.
        name: What the function is called in a report.
        traced: The traced graph that was compiled; instructions then have the ops that they come
            from as their `origin`, and arguments and results the names that users know.
    """
    origins = Origins(traced) if traced is not None else None
    known = arguments_of(module.top, traced)
    names = _stable_names(module)
    maker = _Maker(module, origins, known, names)
    bodies = [module.computations[key] for key in _bodies(module)]
    functions = {names[body.name]: maker.graph(body, names[body.name]) for body in bodies}
    top = maker.graph(module.top, name)
    inputs = [one for one in known.values() if one.kind is NodeKind.INPUT]
    captures = [one for one in known.values() if one.kind is not NodeKind.INPUT]
    results = results_of(module.top, traced)
    return Graph.build(
        name,
        Stage.XLA,
        top.nodes(),
        top.arrows(),
        inputs=tuple(one.binding for one in inputs) or (() if captures else top.inputs),
        captures=tuple(one.binding for one in captures),
        outputs=tuple(
            Binding(name, one.tensors) for name, one in zip(results, top.outputs, strict=True)
        ),
        functions=functions,
        source=traced.source if traced is not None else None,
    )


def _bodies(module: Module) -> Iterator[str]:
    """Yield the computations that are drawn: all but those of reductions, sorts and the like."""
    called = {
        key
        for one in module.instructions()
        if one.opcode in _KINDS
        for _, key in one.called
        if key in module.computations
    }
    yield from (key for key in module.computations if key in called and key != module.entry)


@dataclass(frozen=True)
class _Maker:
    module: Module
    origins: Origins | None
    known: Mapping[str, Argument] = field(default_factory=dict)
    """For parameters of the entry, the argument or capture that each is."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What the computations are called here."""

    def graph(self, computation: Computation, name: str) -> Graph:
        """Return the graph of one computation."""
        result = computation.result
        refs = [TensorRef(result.name, at) for at in range(len(result.shape.leaves))]
        return Graph.build(
            name,
            Stage.XLA,
            [self._node(computation, one) for one in computation.instructions],
            (arrow for one in computation.instructions for arrow in _arrows(computation, one)),
            inputs=tuple(_parameter_binding(one) for one in computation.parameters),
            outputs=tuple(Binding(f"output_{at}", (ref,)) for at, ref in enumerate(refs)),
        )

    def _node(self, computation: Computation, one: Instruction) -> Node:
        fused = self.module.fused(one)
        origin, source = self._origin(one, fused.instructions if fused else ())
        known = self.known.get(one.name) if computation is self.module.top else None
        kind = NodeKind.INPUT if one.parameter is not None else _KINDS.get(one.opcode, NodeKind.OP)
        return Node(
            one.name,
            one.opcode,
            kind if known is None else known.kind,
            one.shape.specs,
            label=None if known is None else known.binding.name,
            value=one.value,
            holds=one.shape.specs[0] if known and known.kind is NodeKind.VARIABLE else None,
            attrs=dict(self._attrs(computation, one)),
            source=source,
            calls=tuple(self._calls(one)),
            origin=origin,
        )

    def _origin(
        self, one: Instruction, inside: Iterable[Instruction]
    ) -> tuple[tuple[str, ...], SourceLine | None]:
        """Return the TensorFlow ops that an instruction comes from, and the line of its result."""
        if self.origins is None:
            names = [part for part in one.op_name.split(";") if part and part not in NO_OPS]
            return tuple(dict.fromkeys(names)), None
        own = self.origins.places(one.op_name)
        places = [place for part in (*inside, one) for place in self.origins.places(part.op_name)]
        lines = (self.origins.node(place).source for place in reversed(own))
        line = next((line for line in lines if line is not None), None)
        return tuple(dict.fromkeys(place.name for place in places)), line

    def _attrs(self, computation: Computation, one: Instruction) -> Iterator[tuple[str, Scalar]]:
        yield "layout", str(one.shape)
        for key in sorted(one.attrs):
            if key not in _NOT_SHOWN:
                yield key, one.attrs[key].strip("{}") if key == "dimensions" else one.attrs[key]
        if one.op_type:
            yield "op_type", one.op_type
        if one.op_name and one.op_name not in NO_OPS:
            yield "op_name", one.op_name
        if one.opcode not in _KINDS and one.called:
            yield "to_apply", ", ".join(self._in_words(key) for _, key in one.called)
        if one.trip_count is not None:
            yield "trip_count", one.trip_count
        if self.runs(computation) and one.opcode not in NO_WORK | CONTAINERS:
            yield from self._cost(computation, one)

    def _calls(self, one: Instruction) -> Iterator[Call]:
        if one.opcode not in _KINDS:
            return
        for role, key in one.called:
            word = role.replace("branch_computations[", "branches[")
            yield Call(_ROLES.get(role, word), self.names.get(key, key))

    def _in_words(self, key: str) -> str:
        """Return `add` for a function of one operation, else its name and how much is in it."""
        name = self.names.get(key, key)
        if key not in self.module.computations:
            return name
        computation = self.module.computations[key]
        inside = [one.opcode for one in computation.instructions if one.parameter is None]
        if inside == [computation.result.opcode]:
            direction = computation.result.attrs.get("direction", "")
            return f"{inside[0]} {direction}".rstrip()
        return f"{name} ({len(inside)} instructions)"

    def runs(self, computation: Computation) -> bool:
        """Tell whether the instructions of a computation are kernels, not parts of one."""
        return computation.name in self.module.executed

    def _cost(self, computation: Computation, one: Instruction) -> Iterator[tuple[str, Scalar]]:
        found = cost(self.module, computation, one)
        if found.flops is not None:
            yield "flops", found.flops
        yield "bytes", found.nbytes


_COUNTER = re.compile(r"_\d+((?:_const_\d+)?__)")
"""The number of a function in its process, in the name of the computation made of it."""


def _stable_names(module: Module) -> dict[str, str]:
    """Return what to call each computation: the same in every process."""
    found: dict[str, str] = {}
    for key in module.computations:
        name = _COUNTER.sub(r"\1", key)
        while name in found.values():
            name += "'"
        found[key] = name
    return found


def _parameter_binding(one: Instruction) -> Binding:
    refs = tuple(TensorRef(one.name, at) for at in range(len(one.shape.leaves)))
    return Binding(one.name, refs, str(one.shape.specs[0]) if len(refs) == 1 else "")


def _arrows(computation: Computation, one: Instruction) -> Iterator[Arrow]:
    """Yield the edges into an instruction; each element of a tuple is an output of its own."""
    for at, operand in enumerate(one.operands):
        source = computation.by_name[operand].shape
        first, count = 0, len(source.leaves)
        if one.opcode == "get-tuple-element" and source.elements is not None:
            first = sum(len(element.leaves) for element in source.elements[: one.index])
            count = len(one.shape.leaves)
        if count == 1:
            yield Arrow(
                operand,
                one.name,
                Edge(source_port=first, target_port=at, tensor=source.specs[first]),
            )
        else:
            # A whole tuple is handed on.
            port = first if one.opcode == "get-tuple-element" else None
            yield Arrow(
                operand, one.name, Edge(source_port=port, target_port=at, count=max(count, 1))
            )
