"""Make the group of the units of one level: divide what is too wide, fold what repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from graph2mermaid.graph import NodeKind
from graph2mermaid.passes.divide import (
    by_prefix,
    connected_parts,
    equal_parts,
    pieces,
    placed,
    repeated,
    rounded,
    worth_dividing,
)
from graph2mermaid.passes.inline import Body
from graph2mermaid.passes.level import Level, Part, Unit
from graph2mermaid.passes.repeats import can_merge, fold, folded
from graph2mermaid.passes.titles import span_title, trace_suffix
from graph2mermaid.passes.training import METRICS, metrics, updates, written
from graph2mermaid.passes.wiring import Wiring

MAX_CHILDREN = 24
"""A group with more children is divided further."""
_FEW = 12
"""A part of a divided group is divided as well when it has more children, and by name only."""
_LONE = 6
"""More arguments, results, variables or constants than this are one group on a wide level."""
_LEAST_STRETCH = 0.3
"""The least share of a level that repeats before the repetition divides it."""
_OPERANDS = 4
"""What an op has made of its arguments in a scope of its own name is no group up to this size."""
_HUB = 8
"""A node with more neighbors than this on one side belongs to no part of its level."""

_KINDS = {
    NodeKind.INPUT: "arguments",
    NodeKind.OUTPUT: "results",
    NodeKind.VARIABLE: "variables",
    NodeKind.CONST: "constants",
}


class Grower:
    """Makes groups of units, from the leaves up."""

    def __init__(self, wiring: Wiring, *, fold: bool = True, most: int = MAX_CHILDREN) -> None:
        self._wiring = wiring
        self._fold = fold
        self._most = most
        self._keys: set[str] = set()
        self._last: Level | None = None

    def group(self, key: str, title: str, units: Sequence[Unit], body: Body | None = None) -> Part:
        """Return the group of these units, none of its levels too wide."""
        key = self._unique(key)
        units = sorted(_with_operands(units), key=lambda unit: unit.leaf)
        suffix = trace_suffix(unit.name for unit in units if unit.named)
        if suffix:
            title = title.removesuffix(suffix)
            units = [
                unit._replace(name=unit.name.removesuffix(suffix)) if unit.named else unit
                for unit in units
            ]
            for unit in units:
                # What is inside a part may have had the suffix too: then its title has lost it.
                part = unit.part
                if part is not None and part.body is None and part.title != unit.name:
                    part.title = part.title.removesuffix(suffix)
        return self._group(key, title, units, body)

    def _group(
        self,
        key: str,
        title: str,
        units: list[Unit],
        body: Body | None = None,
        few: int | None = None,
    ) -> Part:
        if any(unit.part is not None and unit.part.gradient for unit in units):
            units = self._beside_training(key, units)
        wide = len(units) > self._most
        if len(units) > (self._most if few is None else few):
            units = self._by_name(key, units, must=wide)
        if len(units) > _FEW:
            units = self._averages(key, title, units)
        if self._fold:
            units = folded(self._level, units)
        if len(units) > self._most:
            units = self._alike(key, title, units)
        if len(units) > self._most:
            units = self._in_a_row(key, units)
        if len(units) > self._most:
            units = self._by_kind(key, units)
        return self._level(self._chunked(key, units)).part(key, title, body=body)

    def _by_name(self, key: str, units: list[Unit], *, must: bool) -> list[Unit]:
        groups = by_prefix(units)
        if not groups or not (must or worth_dividing(units, groups)):
            return units
        level = self._level(units)
        groups = rounded(level, groups)
        home = {at: number for number, (_, members) in enumerate(groups) for at in members}
        home = placed(level, home)
        inside: list[list[Unit]] = [[] for _ in groups]
        left: list[Unit] = []
        for at, unit in enumerate(level.units):
            (inside[home[at]] if at in home else left).append(unit)
        for (prefix, _), members in zip(groups, inside, strict=True):
            part = self._group(
                self._unique(f"{key}|{prefix}*"), prefix, members, few=min(_FEW, self._most)
            )
            left.append(Unit(prefix, part, members[0].leaf))
        return sorted(left, key=lambda unit: unit.leaf)

    def _beside_training(self, key: str, units: list[Unit]) -> list[Unit]:
        """Put together what a training step computes beside its gradients: Keras' metrics."""
        level = self._level(units)
        found = metrics(level)
        if not found or not can_merge(level, found):
            return units
        inside = set(found)
        members = [level.units[at] for at in found]
        part = self._group(self._unique(f"{key}|{METRICS}"), METRICS, members)
        left = [unit for at, unit in enumerate(level.units) if at not in inside]
        left.append(Unit(METRICS, part, members[0].leaf))
        return sorted(left, key=lambda unit: unit.leaf)

    def _averages(self, key: str, title: str, units: list[Unit]) -> list[Unit]:
        """Put together what a few variables beside the way of the data are updated with."""
        if not any("Assign" in self._wiring.nodes[unit.leaf].op for unit in units):
            return units
        level = self._level(units)
        gone: set[int] = set()
        made: list[Unit] = []
        for number, members in enumerate(written(level)):
            row = self._row(f"{key}|written {number}", [level.units[at] for at in members])
            self._name_by_variable(row, title)
            if row.part is not None:
                row.part.title = f"{row.part.title.rpartition('/')[2]} update"
                made.append(row._replace(name=row.part.title, named=False))
                gone.update(members)
        left = [unit for at, unit in enumerate(level.units) if at not in gone]
        return sorted([*left, *made], key=lambda unit: unit.leaf) if made else units

    def _alike(self, key: str, title: str, units: list[Unit]) -> list[Unit]:
        """Make one fold, or one group, of each set of connected parts that are equal."""
        level = self._level(units)

        def form(members: Sequence[int]) -> int:
            return Level(self._wiring, [level.units[at] for at in members]).loose_form()

        gone: set[int] = set()
        made: list[Unit] = []
        for number, parts in enumerate(_updates(level, form) or equal_parts(level, form)):
            members = [at for part in parts for at in part]
            if not can_merge(level, members):
                continue
            base = f"{key}|alike {number}"
            rows = [
                self._row(f"{base}.{i}", [level.units[at] for at in part])
                for i, part in enumerate(parts)
            ]
            word = self._word(rows[0], title)
            for row in rows:
                self._name_by_variable(row, title)
            if len(rows) == 1:
                made += rows
            elif self._fold:
                forms = {row.part.form for row in rows if row.part}
                made.append(fold(self._wiring, rows, word, varied=len(forms) > 1))
            else:
                part = self._plain(base, f"{len(parts)} × {word}", rows)
                made.append(Unit(word, part, rows[0].leaf))
            gone.update(members)
        if made and len(units) - len(gone) + len(made) > self._most:
            for number, members in enumerate(connected_parts(level, _HUB)):
                rest = [at for at in members if at not in gone]
                if len(rest) == len(members) > 2 and can_merge(level, members):
                    row = self._row(f"{key}|part {number}", [level.units[at] for at in members])
                    if row.part is not None:
                        row.part.title = self._word(row, title)
                    made.append(row)
                    gone.update(members)
        if not made:
            return units
        return sorted(
            [*(u for at, u in enumerate(level.units) if at not in gone), *made],
            key=lambda unit: unit.leaf,
        )

    def _in_a_row(self, key: str, units: list[Unit]) -> list[Unit]:
        """Make a group of each repetition of a pattern, and one fold of those that are equal.

        Repetitions are those of a chain: each reads the one before it.
        """
        level = self._level(units)
        strict = self._wiring.strict
        labels = [unit.part.form if unit.part else strict[unit.leaf] for unit in units]
        least = max(4, int(_LEAST_STRETCH * len(units)))
        found: list[Unit] = []
        done = 0
        for stretch in repeated(labels, least):
            if not _chained(level, stretch):
                continue
            found += units[done : stretch.start]
            rows = [self._row(f"{key}|row {at}", units[at : at + stretch.step]) for at in stretch]
            merge = self._fold and can_merge(level, range(stretch.start, stretch.stop))
            found += self._equal_rows(rows) if merge else rows
            done = stretch.stop
        return found + units[done:] if done else units

    def _equal_rows(self, rows: list[Unit]) -> list[Unit]:
        """Fold neighbors of one form that read each other."""
        level = Level(self._wiring, rows)
        runs: list[list[Unit]] = []
        for at, row in enumerate(level.units):
            before = runs[-1][0].part if runs else None
            same = before and row.part and before.form == row.part.form
            if same and at - 1 in level.before[at]:
                runs[-1].append(row)
            else:
                runs.append([row])
        return [run[0] if len(run) == 1 else fold(self._wiring, run, run[0].name) for run in runs]

    def _by_kind(self, key: str, units: list[Unit]) -> list[Unit]:
        """Put what is left of the arguments, results, variables and constants together."""
        for kind, word in _KINDS.items():
            same = [u for u in units if u.part is None and self._wiring.nodes[u.leaf].kind is kind]
            if len(same) > _LONE:
                part = self._plain(f"{key}|{word}", f"{len(same)} {word}", same)
                gone = {unit.leaf for unit in same}
                kept = [u for u in units if u.leaf not in gone]
                kept.append(Unit(word, part, same[0].leaf))
                units = sorted(kept, key=lambda unit: unit.leaf)
        return units

    def _chunked(self, key: str, units: list[Unit]) -> list[Unit]:
        """Cut a row that is still too wide into consecutive pieces, named by their ends.

        Where these are too many, they are cut into pieces again.
        """
        while len(units) > self._most:
            cut, units = self._cut(units)
            rows = [
                self._row(f"{key}|{piece.start}+", units[piece.start : piece.stop]) for piece in cut
            ]
            units = self._equal_rows(rows) if self._fold else rows
        return units

    def _cut(self, units: list[Unit]) -> tuple[list[range], list[Unit]]:
        """Return the pieces of a wide level, and its units in trace order."""
        level = self._level(units)
        self._last = None  # the level takes more memory than all that is made of its pieces
        return pieces(level, self._most), level.units

    def _level(self, units: list[Unit]) -> Level:
        """Return the level of these units, again when it was the last one asked for."""
        if self._last is None or self._last.given is not units:
            self._last = None  # of a wide level only one at a time
            self._last = Level(self._wiring, units)
        return self._last

    def _row(self, key: str, units: list[Unit]) -> Unit:
        title = span_title([unit.part.title if unit.part else unit.name for unit in units])
        return Unit(title, self._plain(key, title, units), units[0].leaf)

    def _plain(self, key: str, title: str, units: list[Unit]) -> Part:
        key = self._unique(key)
        return self._level(self._chunked(key, units)).part(key, title)

    def _word(self, row: Unit, title: str) -> str:
        """Call a part by what it does: parts that assign are updates, of the scope's name."""
        leaves = row.part.leaves if row.part else []
        assigns = any(self._wiring.nodes[leaf].op.startswith("Assign") for leaf in leaves)
        return f"{title} update".lstrip() if assigns else row.name

    def _name_by_variable(self, row: Unit, title: str) -> None:
        """Call an update by the variable that it writes; `title` is the optimizer's."""
        wiring = self._wiring
        if row.part is None:
            return
        written = [
            wiring.nodes[wiring.source[edge]]
            for leaf in row.part.leaves
            if wiring.nodes[leaf].op.startswith("Assign")
            for _, edge in wiring.into[leaf]
            if wiring.target_port[edge] == 0
        ]
        labels = [node.label for node in written if node.kind is NodeKind.VARIABLE and node.label]
        own = [label for label in labels if not label.startswith(f"{title}/")]
        if labels:
            # Beside the weight an update writes the slots that the optimizer keeps for it.
            row.part.title = own[-1] if own else labels[-1].removeprefix(f"{title}/")

    def _unique(self, key: str) -> str:
        while key in self._keys:
            key += "'"
        self._keys.add(key)
        return key


def _with_operands(units: Sequence[Unit]) -> Iterator[Unit]:
    """Yield the units; beside an op `Add` not a scope `Add`, but the few nodes that it holds."""
    ops = {unit.name for unit in units if unit.part is None}
    for unit in units:
        part = unit.part
        small = part is not None and not part.copies and len(part.leaves) <= _OPERANDS
        if part is not None and part.body is None and small and unit.name in ops:
            yield from (inner._replace(named=False) for inner in part.units)
        else:
            yield unit


def _updates(level: Level, form: Callable[[Sequence[int]], int]) -> list[list[list[int]]]:
    """Return the updates of an optimizer's variables by form, when they are most of the level."""
    parts = updates(level)
    if len(parts) < 2 or 2 * sum(map(len, parts)) < len(level.units):
        return []
    classes: dict[int, list[list[int]]] = {}
    for part in parts:
        classes.setdefault(form(part), []).append(part)
    return list(classes.values())


def _chained(level: Level, stretch: range) -> bool:
    """Tell whether each period of a stretch reads something of the one before it."""
    step = stretch.step
    return all(
        any(
            at - step <= maker < at
            for reader in range(at, at + step)
            for maker in level.before[reader]
        )
        for at in stretch[1:]
    )
