"""Which optimized op stands for which traced op: by name where it says so, then along the wires.

Names are only a start. An op that has kept name and type computes what it did; so whatever its
inputs are now computes what its inputs were, and that tells where those went: an equal op, an op
the optimizer added, a constant, or the input of an op that was taken out.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from graph2mermaid.graph import NodeKind, TensorRef, plain_op
from graph2mermaid.provenance.facts import COMMUTATIVE, Facts, said
from graph2mermaid.provenance.flat import Flat, FlatOp, branch_index, is_choice, lowered_name

INTERFACE = frozenset({"Placeholder", "PlaceholderV2", "_Arg", "_DeviceArg", "VarHandleOp"})
_LOWERED = frozenset(["Switch", "SwitchN", "Merge", "Enter", "Exit", "NextIteration", "LoopCond"])
_PASSED_THROUGH = frozenset({"Switch", "SwitchN", "Enter", "Exit", "NextIteration"})
_OPTIMIZER = re.compile(r"(\w+Optimizer|AutoMixedPrecision|ConstantFolding)")
_CLUSTER = re.compile(r"(?:^|/)cluster_\d+_\d+/")
_CONVERSIONS = re.compile(r"-(AutoMixedPrecision|LayoutOptimizer)$")
_FARTHEST = 8
"""How many ops in a row may be bypassed."""


def named_optimizer(name: str) -> str | None:
    """Return the optimizer that the name of an added op tells."""
    found = _OPTIMIZER.search(name)
    if found is None and _CLUSTER.search(name):
        return "XLA clustering"
    return found[1] if found else None


@dataclass(frozen=True, slots=True)
class Bypass:
    """Ops that were taken out: the reader of the last one reads the input of the first."""

    ops: tuple[str, ...]
    producer: TensorRef
    """The optimized tensor that is read instead."""
    consumer: str
    """The optimized op that reads it."""
    source: TensorRef
    """The traced tensor that the first of them took."""
    target: TensorRef
    """The traced tensor that the last of them made."""


@dataclass
class Matches:
    """What belongs together."""

    traced: dict[str, str] = field(default_factory=dict)
    """For an optimized op, the traced op whose place it has."""
    image: dict[str, str] = field(default_factory=dict)
    """The other way round."""
    lowered: dict[str, str] = field(default_factory=dict)
    """For an optimized op that is part of a lowered loop, branch or call: the traced op that was
    lowered; empty when that is not known."""
    stands_for: dict[str, list[str]] = field(default_factory=dict)
    """For an optimized op without a place in the traced graph: the traced ops that it replaces."""
    replaced: dict[str, list[str]] = field(default_factory=dict)
    """The other way round."""
    merged: dict[str, list[str]] = field(default_factory=dict)
    """For a traced op: the optimized ops that are read in its place, and compute the same."""
    bypassed: dict[str, Bypass] = field(default_factory=dict)
    """For a traced op, where it was taken out first."""
    rewired: set[str] = field(default_factory=set)
    """The optimized ops that have name and type of a traced op, but other inputs, as when a product
    is put together in another way. What they compute may not be what the traced op did."""
    mixed: set[str] = field(default_factory=set)
    """The optimized ops that do the work of several traced ops in another way: none of these has
    the same result."""


def match(facts: Facts, optimized: Flat) -> Matches:
    """Find what belongs together."""
    return _Matcher(facts, optimized).run()


class _Matcher:
    def __init__(self, facts: Facts, optimized: Flat) -> None:
        self._facts = facts
        self._traced = facts.flat
        self._optimized = optimized
        self._found = Matches()
        self._todo: deque[tuple[str, str]] = deque()
        self._resolved: dict[TensorRef, TensorRef] = {}

    def run(self) -> Matches:
        for op in self._optimized.ops.values():
            traced = self._by_name(op)
            if traced is None:
                self._find_lowered(op)
            elif traced not in self._found.image:
                if self._has_its_value(op, self._traced.ops[traced]):
                    self._pair(op.id, traced)
                else:
                    self._take_over([traced], [op.id])
        self._results()
        for op in self._optimized.ops.values():
            if op.node.op == "Merge":
                self._compare_branches(op)
        while self._todo:
            self._compare_inputs(*self._todo.popleft())
        for op in self._optimized.ops.values():
            if self._is_new(op.id) and op.id not in self._found.stands_for:
                self._by_name_inside(op)
        return self._found

    def _pair(self, optimized: str, traced: str) -> None:
        self._found.traced[optimized] = traced
        self._found.image[traced] = optimized
        self._todo.append((optimized, traced))

    def _has_its_value(self, new: FlatOp, old: FlatOp) -> bool:
        """Tell whether an op can have the result of the one that had its name.

        When `(x * 2) / 24` becomes `x` times one constant, that constant takes the name of an op
        that is no constant.
        """
        if new.node.kind is not NodeKind.CONST:
            return True
        if old.node.kind is NodeKind.CONST and None not in (new.node.value, old.node.value):
            return new.node.value == old.node.value
        return self._facts.constant[old.id]

    def _take_over(self, traced: Sequence[str], optimized: Sequence[str]) -> None:
        """Note that some new ops do the work of several others, each result aside."""
        for new in optimized:
            self._found.mixed.add(new)
            for old in traced:
                _add(self._found.stands_for, new, old)
                _add(self._found.replaced, old, new)

    # -- by name --------------------------------------------------------------------------

    def _by_name(self, op: FlatOp) -> str | None:
        if op.caller:
            caller = self._found.traced.get(op.caller)
            name = None if caller is None else f"{caller}#{op.role}/{op.node.name}"
            return name if name in self._traced.ops else None
        if op.id in self._traced.ops:
            return op.id
        return self._traced.lowered.get(lowered_name(op.id))

    def _find_lowered(self, op: FlatOp) -> None:
        """Recognize what lowering and inlining leave: their names begin with that of the op."""
        if op.node.kind is NodeKind.CONST:
            return
        name = op.id.removeprefix("ConstantFoldingCtrl/")
        inlined = name.startswith("Func/") or "/Func/" in name
        if name != op.id or inlined or plain_op(op.node.op) in _LOWERED or op.node.op == "Identity":
            found = self._lowered_from(name.removeprefix("Func/"))
            if found or inlined or plain_op(op.node.op) in _LOWERED:
                self._found.lowered[op.id] = found

    def _lowered_from(self, name: str) -> str:
        parts = lowered_name(name).split("/")
        for length in range(len(parts) - 1, 0, -1):
            found = self._traced.lowered.get("/".join(parts[:length]))
            if found is not None and found in self._traced.bodies:
                return found
        return ""

    def _by_name_inside(self, op: FlatOp) -> None:
        """An added op may name the op it replaces; it does if both read the same tensors."""
        if not named_optimizer(op.id) or not op.inputs:
            return
        scopes = [s for s in lowered_name(op.id).split("/") if not _OPTIMIZER.search(s)]
        words = scopes.pop().split("_") if scopes else []
        read = {self._found.traced.get(self._resolve(ref).node) for ref in op.inputs}
        for start in range(1, len(words)):
            name = "/".join([*scopes, "_".join(words[start:])])
            traced = self._traced.lowered.get(name)
            if traced is not None and traced not in self._found.image:
                sources = (self._traced.source(r).node for r in self._traced.ops[traced].inputs)
                if read == set(sources):
                    self._found.replaced[traced] = [op.id]
                    self._found.stands_for[op.id] = [traced]
                return

    # -- along the wires ------------------------------------------------------------------

    def _results(self) -> None:
        """What a function returned, it still returns, in the same order."""
        if len(self._traced.results) != len(self._optimized.results):
            return
        for traced, optimized in zip(self._traced.results, self._optimized.results, strict=True):
            if optimized.node not in self._found.traced:
                self._relate(traced, self._resolve(optimized), optimized.node)
        returned = [op.id for op in self._optimized.ops.values() if op.node.op == "_Retval"]
        for traced, name in zip(self._traced.results, returned, strict=False):
            if traced.node not in self._found.image and len(returned) == len(self._traced.results):
                self._found.traced[name] = traced.node
                self._found.image[traced.node] = name

    def _compare_inputs(self, optimized: str, traced: str) -> None:
        new, old = self._optimized.ops[optimized], self._traced.ops[traced]
        if not same_form(new, old):
            return
        now = [self._resolve(ref) for ref in new.inputs]
        before = [self._traced.source(ref) for ref in old.inputs]
        if new.node.op in COMMUTATIVE:
            self._take_out_pairs(before, now, self._stands)
            if len(before) > 1 and not self._sort(before, now):
                new_ops = [ref.node for ref in now if self._is_new(ref.node)]
                gone = [ref.node for ref in before if ref.node not in self._found.image]
                self._take_over(gone, new_ops)
                self._found.rewired.add(optimized)
                return
        for was, ref in zip(before, now, strict=True):
            if not self._stands(ref, was):
                self._relate(was, ref, optimized)

    @staticmethod
    def _take_out_pairs(
        before: list[TensorRef], now: list[TensorRef], same: Callable[[TensorRef, TensorRef], bool]
    ) -> None:
        for was in list(before):
            found = next((ref for ref in now if same(ref, was)), None)
            if found is not None:
                before.remove(was)
                now.remove(found)

    def _is_new(self, optimized: str) -> bool:
        found = self._found
        return optimized not in found.traced and optimized not in found.lowered

    def _compare_branches(self, merge: FlatOp) -> None:
        """The inputs of a Merge are what its branches return, in their order."""
        choice = self._found.lowered.get(merge.id, "")
        bodies = self._traced.bodies.get(choice, {})
        if not bodies or not is_choice(bodies):
            return
        roles = sorted(bodies, key=lambda role: (role == "else_branch", branch_index(role)))
        results = [bodies[role].results for role in roles]
        now = [self._resolve(ref) for ref in merge.inputs]
        if len(now) != len(results):
            return
        rows = [[self._traced.source(ref) for ref in row] for row in zip(*results, strict=False)]
        sure = [row for row in rows if any(map(self._stands, now, row))]
        chosen = rows if len(rows) == 1 else sure
        if len(chosen) == 1:
            for was, ref in zip(chosen[0], now, strict=True):
                if not self._stands(ref, was):
                    self._relate(was, ref, merge.id)

    def _sort(self, before: list[TensorRef], now: list[TensorRef]) -> bool:
        """Put what is left of the inputs of a commutative op in the same order, if that is certain.

        Either each leads, by ops that are gone, to a survivor that is read instead; or each is of
        another op type. Where a sum was put together in another way neither is so.
        """
        left = list(now)
        chosen = []
        for was in before:
            found = next((ref for ref in left if self._leads_to(ref, was)), None)
            if found is not None:
                left.remove(found)
                chosen.append(found)
        if not left:
            now[:] = chosen
            return True
        was_types = [self._type(self._traced, ref) for ref in before]
        types = [self._type(self._optimized, ref) for ref in now]
        if len(set(types)) != len(types) or set(was_types) != set(types):
            return False
        now.sort(key=lambda ref: was_types.index(self._type(self._optimized, ref)))
        return True

    @staticmethod
    def _type(flat: Flat, ref: TensorRef) -> str:
        return flat.ops[ref.node].node.op if ref.node in flat.ops else ""

    def _leads_to(self, now: TensorRef, was: TensorRef) -> bool:
        producer = self._found.traced.get(now.node)
        return producer is not None and self._path(was, producer) is not None

    def _stands(self, now: TensorRef, was: TensorRef) -> bool:
        """Tell whether an optimized tensor is known to be a traced one."""
        traced = self._found.traced.get(now.node)
        if traced is not None and (traced == was.node or self._is_equal(traced, was.node)):
            return True
        if was.node in self._traced.arguments:
            loop, port = self._traced.arguments[was.node]
            inputs = self._traced.ops[loop].inputs
            return self._found.lowered.get(now.node) == loop or (
                port < len(inputs) and self._stands(now, self._traced.source(inputs[port]))
            )
        return now.node in self._found.lowered and was.node in self._traced.bodies

    def _is_equal(self, one: str, other: str) -> bool:
        numbers = self._facts.number
        return other in numbers and numbers[one] == numbers[other]

    def _relate(self, was: TensorRef, now: TensorRef, reader: str) -> None:
        """Note that an op reads `now` where it read `was`: both must be the same."""
        found = self._found
        if was.node not in self._traced.ops or now.node not in self._optimized.ops:
            return
        if now.node in found.lowered:
            return
        other = found.traced.get(now.node)
        if other is None:
            if was.node not in found.image and same_form(
                self._optimized.ops[now.node], self._traced.ops[was.node]
            ):
                self._pair(now.node, was.node)
                return
            _add(found.stands_for, now.node, was.node)
            _add(found.replaced, was.node, now.node)
        elif (path := self._path(was, other)) is not None:
            bypass = Bypass(tuple(path), now, reader, self._before(path[0], other), was)
            for name in path:
                found.bypassed.setdefault(name, bypass)
        elif was.node not in found.image and self._may_equal(was.node, other, now.node):
            _add(found.merged, was.node, now.node)

    def _may_equal(self, was: str, other: str, now: str) -> bool:
        if self._optimized.ops[now].node.kind is NodeKind.CONST:
            return self._facts.constant[was]
        return self._traced.ops[was].node.op == self._traced.ops[other].node.op

    def _path(self, was: TensorRef, producer: str) -> list[str] | None:
        """Return the ops that are gone between a surviving producer and a traced tensor."""
        todo: deque[tuple[TensorRef, tuple[str, ...]]] = deque([(was, ())])
        seen: set[str] = set()
        while todo:
            ref, after = todo.popleft()
            if ref.node == producer:
                return list(after) or None
            op = self._traced.ops.get(ref.node)
            if op is None or ref.node in self._found.image or ref.node in seen:
                continue
            if len(after) == _FARTHEST:
                continue
            seen.add(ref.node)
            todo += [(self._traced.source(r), (ref.node, *after)) for r in op.inputs]
        return None

    def _before(self, first: str, producer: str) -> TensorRef:
        refs = [self._traced.source(ref) for ref in self._traced.ops[first].inputs]
        return next(ref for ref in refs if ref.node == producer)

    def _resolve(self, ref: TensorRef) -> TensorRef:
        """Return what an optimized tensor is, seen through what lowering and conversions add."""
        if ref not in self._resolved:
            current = ref
            for _ in range(len(self._optimized.ops) + 1):
                current = self._optimized.source(current)
                op = self._optimized.ops.get(current.node)
                if op is None or not op.inputs or not self._is_clear(op):
                    break
                current = op.inputs[0]
            self._resolved[ref] = current
        return self._resolved[ref]

    def _is_clear(self, op: FlatOp) -> bool:
        if op.id in self._found.traced:
            return False
        return plain_op(op.node.op) in _PASSED_THROUGH or bool(_CONVERSIONS.search(op.id))


def same_form(new: FlatOp, old: FlatOp) -> bool:
    """Tell whether two ops do the same with their inputs."""
    return new.node.op == old.node.op and len(new.inputs) == len(old.inputs)


def same_attributes(new: FlatOp, old: FlatOp) -> bool:
    """Tell whether two ops of one type are the same in detail."""
    return said(new.node) == said(old.node)


def _add(table: dict[str, list[str]], key: str, value: str) -> None:
    values = table.setdefault(key, [])
    if value not in values:
        values.append(value)
