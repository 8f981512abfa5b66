"""A graph and all the bodies that its ops call, as one list of ops with ids.

The id of an op is the path to it. An op of the graph itself has its own name as id; an op in a
body that the op `CALL` refers to by its attribute `ROLE` has `CALL#ROLE/NAME`, where `CALL` is an
id again: `PartitionedCall#f/MatMul`, `while#body/while/cond#then_branch/while/cond/mul`. No op
name has a `#`, so an id can be taken apart, and an op of a body that is called twice has two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from graph2mermaid.graph import Binding, Call, EdgeKind, Graph, Node, NodeKind, TensorRef

_LOWERED_BODY = re.compile(r"/(then|else|body|cond|branch\d+)/_\d+/")
_ROLE_NAMES = {"then_branch": "then", "else_branch": "else", "body": "body", "cond": "cond"}
_BRANCH = re.compile(r"branches\[(\d+)\]")
_ONE_RESULT_EACH = frozenset({"Identity", "StopGradient", "PreventGradient", "Snapshot"})


@dataclass(frozen=True, slots=True)
class FlatOp:
    """One op where it is called from."""

    id: str
    node: Node
    inputs: tuple[TensorRef, ...] = ()
    """By port, as the op itself has them; see `Flat.source`."""
    waits: tuple[str, ...] = ()
    """What it comes after by control edges."""
    caller: str = ""
    """The op whose body it stands in."""
    role: str = ""
    """Which of the caller's bodies."""


@dataclass(frozen=True, slots=True)
class Body:
    """One body of one op: its arguments and results as ids."""

    arguments: tuple[TensorRef, ...]
    results: tuple[TensorRef, ...]


@dataclass
class Flat:
    """All ops, and how tensors go in and out of bodies."""

    ops: dict[str, FlatOp] = field(default_factory=dict)
    """In trace order, a body's ops after the op that calls it."""
    results: tuple[TensorRef, ...] = ()
    bodies: dict[str, dict[str, Body]] = field(default_factory=dict)
    """For each op with bodies, these by role."""
    aliases: dict[TensorRef, TensorRef] = field(default_factory=dict)
    """Tensors that are another one: arguments of calls and branches, results of calls."""
    arguments: dict[str, tuple[str, int]] = field(default_factory=dict)
    """For each argument of a loop's body or condition: the loop, and which of its variables."""
    lowered: dict[str, str] = field(default_factory=dict)
    """Ids by the names that ops have once calls are inlined and loops and branches are lowered."""

    def source(self, ref: TensorRef) -> TensorRef:
        """Return where a tensor comes from, calls and ops that only hand it on seen through."""
        for _ in range(len(self.ops) + 1):
            if ref in self.aliases:
                ref = self.aliases[ref]
                continue
            before = self.before(ref)
            if before is None:
                return ref
            ref = before
        return ref

    def before(self, ref: TensorRef) -> TensorRef | None:
        """Return what an op that only hands on its input gets, or None for any other op."""
        op = self.ops.get(ref.node)
        if op is None:
            return None
        if op.node.op in _ONE_RESULT_EACH:
            return op.inputs[0] if op.inputs else None
        if op.node.op == "IdentityN" and ref.port < len(op.inputs):
            return op.inputs[ref.port]
        return None

    def real(self, ref: TensorRef) -> TensorRef:
        """Return the tensor itself, in whatever body it is; ops that hand on are not seen through."""
        for _ in range(len(self.ops) + 1):
            if ref not in self.aliases:
                break
            ref = self.aliases[ref]
        return ref


def flatten(graph: Graph) -> Flat:
    """Return every op of a graph and of the bodies it calls, each once for each way to it."""
    flat = Flat(results=tuple(_refs(graph.outputs, "")))
    _Flattener(graph, flat).place(graph, "", "", "", "", ())
    return flat


def is_choice(bodies: Mapping[str, Body]) -> bool:
    """Tell whether the bodies are branches, of which one runs."""
    return all(role in ("then_branch", "else_branch") or _BRANCH.match(role) for role in bodies)


def branch_index(role: str) -> int:
    """Return the number of a branch among several; 0 for those of an If."""
    found = _BRANCH.fullmatch(role)
    return int(found[1]) if found else 0


def is_loop(bodies: Mapping[str, Body]) -> bool:
    """Tell whether the bodies are the condition and the body of a loop."""
    return set(bodies) == {"cond", "body"}


def lowered_name(name: str) -> str:
    """Return a name from an optimized graph without the counters of lowered bodies."""
    while "/_" in name:
        shorter = _LOWERED_BODY.sub(r"/\1/_/", name)
        if shorter == name:
            break
        name = shorter
    return name


class _Flattener:
    def __init__(self, top: Graph, flat: Flat) -> None:
        self._functions = top.functions
        self._flat = flat

    def place(
        self,
        graph: Graph,
        prefix: str,
        lowered: str | None,
        caller: str,
        role: str,
        path: tuple[str, ...],
    ) -> None:
        """Add the ops of one graph; `path` are the functions on the way to it."""
        for node in graph.nodes():
            data, waits = [], []
            for arrow in graph.incoming(node.name):
                if arrow.edge.kind is EdgeKind.DATA:
                    data.append(TensorRef(prefix + arrow.source, arrow.edge.source_port or 0))
                else:
                    waits.append(prefix + arrow.source)
            op_id = prefix + node.name
            op = FlatOp(op_id, node, tuple(data), tuple(waits), caller, role)
            self._flat.ops[op_id] = op
            if lowered is not None:
                self._flat.lowered.setdefault(lowered_name(lowered + node.name), op_id)
            for call in node.calls:
                if call.function in self._functions and call.function not in path:
                    name = None if lowered is None else lowered + node.name
                    self._enter(op, call, name, path)

    def _enter(self, op: FlatOp, call: Call, lowered: str | None, path: tuple[str, ...]) -> None:
        function = self._functions[call.function]
        prefix = f"{op.id}#{call.role}/"
        body = Body(tuple(_refs(function.inputs, prefix)), tuple(_refs(function.outputs, prefix)))
        self._flat.bodies.setdefault(op.id, {})[call.role] = body
        inside = _lowered_prefix(op.node, call, lowered)
        self.place(function, prefix, inside, op.id, call.role, (*path, call.function))
        self._connect(op, call, body)

    def _connect(self, op: FlatOp, call: Call, body: Body) -> None:
        aliases = self._flat.aliases
        if op.node.kind is NodeKind.CALL:
            aliases.update(zip(body.arguments, op.inputs, strict=False))
            for port, result in enumerate(body.results):
                aliases[TensorRef(op.id, port)] = result
        elif is_choice({call.role: body}):
            aliases.update(zip(body.arguments, op.inputs[1:], strict=False))
        elif call.role in ("cond", "body") and op.node.kind is NodeKind.CONTROL_FLOW:
            for port, ref in enumerate(body.arguments):
                self._flat.arguments[ref.node] = (op.id, port)


def _lowered_prefix(node: Node, call: Call, name: str | None) -> str | None:
    """Return what the names of a body's ops begin with once it is put in place."""
    if name is None:
        return None
    if node.kind is NodeKind.CALL:
        return f"{name}/"
    if node.kind is not NodeKind.CONTROL_FLOW:
        return None
    branch = _BRANCH.fullmatch(call.role)
    role = f"branch{branch[1]}" if branch else _ROLE_NAMES.get(call.role)
    return f"{name}/{role}/_/" if role else None


def _refs(bindings: Iterable[Binding], prefix: str) -> Iterator[TensorRef]:
    for binding in bindings:
        for ref in binding.tensors:
            yield TensorRef(prefix + ref.node, ref.port)
