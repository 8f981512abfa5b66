"""Find groups that are made and wired in the same way, and keep one of them for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from graph2mermaid.passes.level import Level, Unit
from graph2mermaid.passes.titles import fold_title, stem
from graph2mermaid.passes.wiring import Wiring

LEAST_SAVED = 12
"""Folding that takes fewer nodes than this out of the drawing is not worth a reader's thought."""


def folded(level_of: Callable[[list[Unit]], Level], units: list[Unit]) -> list[Unit]:
    """Return the units with every chain of equal parts, and every set of them, as one part.

    Parts are equal when they have the same form, and are repeats when their titles differ in a
    number only: the projections `query`, `key` and `value` are equal, but three different things.
    """
    classes: dict[int, list[int]] = {}
    for at, unit in enumerate(units):
        if unit.part is not None:
            classes.setdefault(unit.part.form, []).append(at)
    worth = [found for found in classes.values() if _saves([units[at] for at in found])]
    if not worth:
        return units
    level = level_of(units)
    level_units, units = units, level.units
    again: dict[int, list[int]] = {}
    for at, unit in enumerate(units):
        if unit.part is not None:
            again.setdefault(unit.part.form, []).append(at)
    stems = Counter(stem(unit.part.title) for unit in units if unit.part)
    gone: set[int] = set()
    made: list[Unit] = []
    for members in again.values():
        for run in _runs(level, members):
            chosen = [units[at] for at in run]
            if not _saves(chosen):
                continue
            title = fold_title([unit.part.title for unit in chosen if unit.part], stems)
            if title is not None and can_merge(level, run):
                made.append(fold(level.wiring, chosen, title))
                gone.update(run)
    if not made:
        return level_units
    kept = [unit for at, unit in enumerate(units) if at not in gone]
    return sorted([*kept, *made], key=lambda unit: unit.leaf)


def fold(wiring: Wiring, units: Sequence[Unit], title: str, *, varied: bool = False) -> Unit:
    """Return one unit for several equal ones; the first is the one that is drawn."""
    level = Level(wiring, units)
    parts = [unit.part for unit in level.units if unit.part is not None]
    first = parts[0]
    part = level.part(
        first.key,
        f"{title} × {len(parts)}",
        copies=parts[1:],
        shown=first.units,
        varied=varied,
    )
    return Unit(part.title, part, level.units[0].leaf)


def _saves(units: Sequence[Unit]) -> bool:
    return len(units) > 1 and (len(units) - 1) * units[0].size >= LEAST_SAVED


def _runs(level: Level, members: Sequence[int]) -> list[list[int]]:
    """Cut equal parts into chains; those that are in no chain stand side by side."""
    chains: list[list[int]] = []
    for at in members:
        linked = chains and (
            at in level.after[chains[-1][-1]] or at in level.before[chains[-1][-1]]
        )
        if linked:
            chains[-1].append(at)
        else:
            chains.append([at])
    single = [chain[0] for chain in chains if len(chain) == 1]
    others = set(single)
    apart = [at for at in single if level.after[at].isdisjoint(others)]
    beside = [apart] if len(apart) > 2 else []
    return [*(chain for chain in chains if len(chain) > 1), *beside]


def can_merge(level: Level, members: Sequence[int]) -> bool:
    """Tell whether no path leaves the members and comes back: then merging them closes no cycle.

    Units stand in trace order, so what comes after the last member leads to none of them.
    """
    inside = set(members)
    last = max(inside)
    reached: set[int] = set()
    stack = [n for at in members for n in level.after[at] if n not in inside]
    while stack:
        at = stack.pop()
        if at in reached or at > last:
            continue
        reached.add(at)
        for neighbor in level.after[at]:
            if neighbor in inside:
                return False
            stack.append(neighbor)
    return True
