"""Find the parts of a training step that no name scope holds: metrics, and the variables' updates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graph2mermaid.graph import NodeKind
from graph2mermaid.passes.level import Level

METRICS = "metrics"

_LEAST = 6
"""Fewer ops than this beside the way of the data need no group."""
_ENDS = frozenset({NodeKind.INPUT, NodeKind.OUTPUT})


def metrics(level: Level) -> list[int]:
    """Return the units that only count and average what the step has computed, on its top level.

    They lead neither to the gradients nor come from them, and write variables of their own. Keras
    gives them no scope. Without gradients there are none.
    """
    tapes = [at for at, unit in enumerate(level.units) if unit.part and unit.part.gradient]
    if not tapes:
        return []
    before, after = _by_data(level)
    trained = _reached(tapes, before) | _reached(tapes, after)
    beside = {
        at
        for at, unit in enumerate(level.units)
        if at not in trained and level.kind(at) not in _ENDS and not (unit.part and unit.part.body)
    }
    # A variable or a constant that something else reads as well is not theirs alone.
    found = [at for at in sorted(beside) if after[at] <= beside or level.kind(at) is NodeKind.OP]
    writes = any(_writes(level, at) for at in found)
    return found if writes and len(found) >= _LEAST else []


def updates(level: Level) -> list[list[int]]:
    """Return the parts of an optimizer that update one variable each, with the slots beside it.

    What all of them read, the learning rate and the number of the step, is in none of them: an
    update is what hangs together when the variables are left out, and reads that only come before
    a write of what they read. Then it takes the variables and constants that it alone uses.
    """
    kinds = [level.kind(at) for at in range(len(level.units))]
    passive = {NodeKind.VARIABLE, NodeKind.CONST, *_ENDS}
    parent = list(range(len(kinds)))

    def top(at: int) -> int:
        while parent[at] != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    for link in level.links:
        waits = level.wiring.target_port[link.edge] < 0 and not _writes(level, link.source)
        if waits or kinds[link.source] in passive or kinds[link.target] in passive:
            continue
        first, second = sorted((top(link.source), top(link.target)))
        parent[second] = first
    found: dict[int, list[int]] = {}
    for at, kind in enumerate(kinds):
        if kind not in passive:
            found.setdefault(top(at), []).append(at)
    home = {
        at: key
        for key, members in found.items()
        if any(_writes(level, at) for at in members)
        for at in members
    }
    for at, kind in enumerate(kinds):
        readers = {home.get(n, -1) for n in level.after[at]}
        if kind in passive - _ENDS and len(readers) == 1 and -1 not in readers:
            found[readers.pop()].append(at)
    return [sorted(found[key]) for key in dict.fromkeys(home.values()) if len(found[key]) > 1]


def written(level: Level) -> list[list[int]]:
    """Return for each write of a variable what is computed for it alone, where that is much.

    A batch normalization moves two averages beside the way of its data.
    """
    writes = [at for at in range(len(level.units)) if level.kind(at) is NodeKind.OP]
    writes = [at for at in writes if _writes(level, at)]
    found: list[list[int]] = []
    for at in writes if len(writes) <= _FEW_WRITES else ():
        own = {at}
        stack = [at]
        while stack:
            for maker in level.before[stack.pop()]:
                if maker not in own and level.kind(maker) in _OWN and level.after[maker] <= own:
                    own.add(maker)
                    stack.append(maker)
                    stack += own & level.after[maker]  # a variable that two of them read
        if len(own) >= _LEAST_WRITTEN:
            found.append(sorted(own))
    return found


_OWN = frozenset({NodeKind.OP, NodeKind.CONST, NodeKind.VARIABLE})
_FEW_WRITES = 4
"""With more writes of variables than this a level is an optimizer's."""
_LEAST_WRITTEN = 4


def _writes(level: Level, at: int) -> bool:
    unit = level.units[at]
    leaves = unit.part.leaves if unit.part else (unit.leaf,)
    nodes = level.wiring.nodes
    return any("Assign" in nodes[leaf].op or "Apply" in nodes[leaf].op for leaf in leaves)


def _by_data(level: Level) -> tuple[list[set[int]], list[set[int]]]:
    """Return for each unit those that it reads, and those that read it; order aside."""
    before: list[set[int]] = [set() for _ in level.units]
    after: list[set[int]] = [set() for _ in level.units]
    for link in level.links:
        if level.wiring.target_port[link.edge] >= 0:
            before[link.target].add(link.source)
            after[link.source].add(link.target)
    return before, after


def _reached(start: Iterable[int], step: Sequence[set[int]]) -> set[int]:
    reached = set(start)
    stack = list(reached)
    while stack:
        for at in step[stack.pop()]:
            if at not in reached:
                reached.add(at)
                stack.append(at)
    return reached
