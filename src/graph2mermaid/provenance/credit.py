"""Credit each change to the optimizer that made it, as a replay of them one by one shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from graph2mermaid.optimization import OpChange, PassChange
from graph2mermaid.provenance.flat import Flat, lowered_name
from graph2mermaid.provenance.model import Fate, How, NodeOrigin, OpFate, Provenance

_STAYED = frozenset({Fate.KEPT, Fate.UNEXPLAINED})
_TURNED = frozenset({Fate.CHANGED, Fate.FOLDED, Fate.FUSED})


def credit(provenance: Provenance, traced: Flat, passes: Sequence[PassChange]) -> Provenance:
    """Return the provenance with the optimizers that the replay names.

    A replay is not the real schedule. What it did not do, or did otherwise, is credited to none.

    Args:
        provenance: How the two graphs hang together.
        traced: The ops of the traced graph.
        passes: The replay.
    """
    return _Credit(provenance, traced, passes).run()


class _Credit:
    def __init__(self, provenance: Provenance, traced: Flat, passes: Sequence[PassChange]) -> None:
        self._provenance = provenance
        self._traced = traced
        self._by_node: dict[str, list[tuple[str, OpChange]]] = {}
        self._by_op: dict[str, list[tuple[str, OpChange]]] = {}
        for step in passes:
            for change in step.changes:
                entry = (step.optimizer, change)
                self._by_node.setdefault(lowered_name(change.name), []).append(entry)
                op = self._op_called(change.name)
                if op is not None:
                    self._by_op.setdefault(op, []).append(entry)

    def run(self) -> Provenance:
        ops = {name: replace(op, by=self._for_op(op)) for name, op in self._provenance.ops.items()}
        nodes = {
            name: replace(node, by=self._for_node(node, ops))
            for name, node in self._provenance.nodes.items()
        }
        return replace(self._provenance, nodes=nodes, ops=ops)

    def _op_called(self, name: str) -> str | None:
        return name if name in self._traced.ops else self._traced.lowered.get(lowered_name(name))

    def _for_op(self, op: OpFate) -> str | None:
        if op.fate in _STAYED:
            return None
        nodes = self._provenance.nodes
        if op.fate in _TURNED:
            now = {nodes[name].op for name in op.into}
            by = self._last(self._by_op, op.id, lambda change: _became(change, now))
            if by is None and op.fate is Fate.CHANGED:
                by = self._last(self._by_op, op.id, _reads_others)
            if by is not None:
                return by
        if op.fate is Fate.INLINED:
            return self._placed(op.id)
        return self._removed(op.id)

    def _placed(self, name: str) -> str | None:
        """Return who put a call in place, or one that an argument belongs to.

        An op with its name may be left that holds what has to wait: it is of another type.
        """
        while name:
            for optimizer, change in self._by_op.get(name, ()):
                if change.removed or change.retyped:
                    return optimizer
            name = self._traced.ops[name].caller
        return None

    def _removed(self, name: str) -> str | None:
        """Return who removed an op; one of a body that never came out of it went with the call."""
        while name:
            if name in self._by_op:
                return self._last(self._by_op, name, lambda change: change.removed)
            name = self._traced.ops[name].caller
        return None

    def _for_node(self, node: NodeOrigin, ops: dict[str, OpFate]) -> str | None:
        if node.how in (How.KEPT, How.UNEXPLAINED):
            return None
        if node.how is How.MERGED:
            merged = (ops[name] for name in node.origins if ops[name].fate is Fate.MERGED)
            return next((op.by for op in merged if op.by), None)
        name = lowered_name(node.name)
        by = self._last(self._by_node, name, lambda change: _became(change, {node.op}))
        if by is None and node.how is How.CHANGED:
            by = self._last(self._by_node, name, _reads_others)
        return by

    @staticmethod
    def _last(
        table: dict[str, list[tuple[str, OpChange]]], name: str, holds: Callable[[OpChange], bool]
    ) -> str | None:
        found = [optimizer for optimizer, change in table.get(name, ()) if holds(change)]
        return found[-1] if found else None


def _became(change: OpChange, ops: set[str]) -> bool:
    """Tell whether a name began to stand for one of these op types, or for another form of it."""
    before, after = change.before, change.after
    if after is None or after.op not in ops:
        return False
    if before is None or before.op != after.op:
        return True
    return dict(before.details) != dict(after.details)


def _reads_others(change: OpChange) -> bool:
    """Tell whether an op is still there, and reads other ops."""
    before, after = change.before, change.after
    return before is not None and after is not None and before.inputs != after.inputs
