"""Where a compiled function keeps its values: which share memory, and who is alive when.

Plain data, read from XLA's buffer assignment by `sources.buffers`. Positions count the
instructions in the order in which they run, the bodies of loops and branches in their place.
"""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple


class AllocationKind(str, enum.Enum):
    """What a block of memory is for."""

    PARAMETER = "parameter"  # the caller's: arguments and variables
    OUTPUT = "output"  # handed to the caller at the end
    TEMPORARY = "temporary"
    CONSTANT = "constant"
    THREAD_LOCAL = "thread-local"  # scalars inside reducers and fusions


class Order(str, enum.Enum):
    """How the order of the instructions is known."""

    SCHEDULE = "schedule"  # XLA's own schedule
    TRACE = "trace"  # put together from the trace of XLA's allocator, where there is no schedule


@dataclass(frozen=True, slots=True)
class Value:
    """One array that an instruction makes, and the place it has in its allocation."""

    id: int
    """XLA's number of the logical buffer."""
    instruction: str
    nbytes: int
    start: int
    """The position of the instruction that makes it; 0 for arguments and constants."""
    end: int
    """The position of the last one that reads it; the length of the schedule for results."""
    offset: int = 0
    index: tuple[int, ...] = ()
    """Which part of a tuple it is; empty for what is no part of one."""
    opcode: str = ""
    type: str = ""
    """`float32[8,64]`; the empty string for a tuple, which is a table of addresses."""
    op: str = ""
    """The name of the TensorFlow op that the instruction computes, where it is known."""

    @property
    def name(self) -> str:
        """The instruction, with the part of its result: `while.2{1}`."""
        if not self.index:
            return self.instruction
        return f"{self.instruction}{{{','.join(map(str, self.index))}}}"

    def meets(self, other: Value) -> bool:
        """Tell whether both have a byte of the same allocation."""
        return (
            self.offset < other.offset + other.nbytes and other.offset < self.offset + self.nbytes
        )


@dataclass(frozen=True, slots=True)
class Allocation:
    """One block of memory, and the values that have their places in it at one time or another."""

    index: int
    nbytes: int
    kind: AllocationKind
    values: tuple[Value, ...] = ()
    """In the order in which they are made."""
    parameter: int | None = None
    """For a parameter its number."""
    label: str = ""
    """For a parameter the name that the user knows it by."""


class Overlap(NamedTuple):
    """Two values of one allocation that have a byte in common while both are alive."""

    allocation: int
    first: Value
    second: Value


class _Unit(NamedTuple):
    """Values that are one and the same to XLA: what a loop starts with, carries and ends with.

    At each step from start to end one of them is alive.
    """

    start: int
    end: int
    allocation: int
    values: tuple[Value, ...]


@dataclass(frozen=True)
class MemoryPlan:
    """The memory of one compiled function."""

    allocations: tuple[Allocation, ...]
    """In XLA's order."""
    schedule: tuple[str, ...]
    """The names of the instructions in the order in which they run."""
    order: Order = Order.SCHEDULE
    same: tuple[tuple[int, ...], ...] = ()
    """Ids of values that have to be in one place, as the state of a loop has."""
    extra: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """Every value but those in the memory of a single thread, in the order of allocations."""
        return tuple(value for block in self._shared() for value in block.values)

    @cached_property
    def by_kind(self) -> Mapping[AllocationKind, int]:
        """The bytes of all allocations of each kind."""
        found = Counter[AllocationKind]()
        for block in self.allocations:
            found[block.kind] += block.nbytes
        return found

    @cached_property
    def nbytes(self) -> int:
        """The bytes that the function needs, the memory of threads not counted."""
        return sum(block.nbytes for block in self._shared())

    @cached_property
    def without_reuse(self) -> int:
        """The bytes it would need if every value had a place of its own."""
        units = sum(max(v.nbytes for v in unit.values) for unit in self._units)
        return max(units, self.nbytes)

    @property
    def saved(self) -> int:
        """The bytes that are saved because values share memory."""
        return self.without_reuse - self.nbytes

    @property
    def peak(self) -> int:
        """The position at which most memory is in use; the first of several."""
        return self._peak[0]

    @property
    def peak_nbytes(self) -> int:
        """The bytes in use there. Arguments, variables and constants are in use all the time."""
        return self._peak[1]

    def alive(self, position: int) -> tuple[Value, ...]:
        """Return the values in use at a position, one for each place, the largest first.

        Arguments and constants are among them while they are still to be read.
        """
        found = [_at(unit, position) for unit in self._units if unit.start <= position <= unit.end]
        return tuple(sorted(found, key=lambda value: (-value.nbytes, value.start, value.id)))

    @cached_property
    def overlaps(self) -> tuple[Overlap, ...]:
        """Values whose places and lifetimes overlap, other than those that are one to XLA.

        A value that is made by the instruction that reads another one last is made in its place;
        that is no overlap.
        """
        found = []
        units = defaultdict(list)
        for unit in self._units:
            units[unit.allocation].append(unit)
        for allocation, inside in units.items():
            inside.sort(key=lambda unit: unit.start)
            active: list[_Unit] = []
            for unit in inside:
                active = [one for one in active if one.end > unit.start]
                found += [
                    Overlap(allocation, one.values[0], unit.values[0])
                    for one in active
                    if any(a.meets(b) for a in one.values for b in unit.values)
                ]
                active.append(unit)
        return tuple(found)

    def places(self, allocation: Allocation) -> tuple[Value, ...]:
        """Return the values of an allocation, those that are one to XLA as one of them.

        It has the lifetime of all of them, and is the first that a TensorFlow op makes.
        """
        found = []
        for unit in self._units:
            if unit.allocation == allocation.index:
                first = next((value for value in unit.values if value.op), unit.values[0])
                found.append(replace(first, start=unit.start, end=unit.end))
        return tuple(sorted(found, key=lambda value: (value.start, value.end, value.id)))

    @staticmethod
    def before(values: Sequence[Value]) -> dict[int, tuple[Value, ...]]:
        """Return for each of some values, by id, those that had its place until then.

        Args:
            values: Of one allocation, in the order in which they are made.
        """
        found: dict[int, tuple[Value, ...]] = {}
        holders: list[tuple[int, int, Value]] = []  # which bytes, and who had them last
        for value in values:
            low, high = value.offset, value.offset + value.nbytes
            had = [v for start, end, v in holders if start < high and low < end]
            found[value.id] = tuple(dict.fromkeys(had))
            rest = []
            for start, end, holder in holders:
                if start < low:
                    rest.append((start, min(end, low), holder))
                if high < end:
                    rest.append((max(start, high), end, holder))
            holders = [*(one for one in rest if one[0] < one[1]), (low, high, value)]
        return found

    # -- how it is worked out -----------------------------------------------------------------

    def _shared(self) -> Iterator[Allocation]:
        return (b for b in self.allocations if b.kind is not AllocationKind.THREAD_LOCAL)

    @cached_property
    def _units(self) -> tuple[_Unit, ...]:
        group_of = {id_: number for number, ids in enumerate(self.same) for id_ in ids}
        groups: defaultdict[tuple[int, int, int], list[Value]] = defaultdict(list)
        for block in self._shared():
            for value in block.values:
                # XLA puts what has to be one into one allocation.
                alone = value.id not in group_of
                key = (block.index, int(alone), value.id if alone else group_of[value.id])
                groups[key].append(value)
        return tuple(
            _Unit(run[0].start, max(v.end for v in run), allocation, tuple(run))
            for (allocation, *_), values in groups.items()
            for run in _runs(values)
        )

    @cached_property
    def _peak(self) -> tuple[int, int]:
        held = (AllocationKind.PARAMETER, AllocationKind.CONSTANT)
        used = Counter({b.index: b.nbytes for b in self._shared() if b.kind in held})
        begins: defaultdict[int, list[_Unit]] = defaultdict(list)
        ends: defaultdict[int, list[_Unit]] = defaultdict(list)
        for unit in self._units:
            if unit.allocation not in used:
                begins[unit.start].append(unit)
                ends[unit.end + 1].append(unit)
        active: defaultdict[int, dict[_Unit, None]] = defaultdict(dict)
        total = used.total()
        best = (0, total)
        for position in sorted({*begins, *ends}):
            for unit in ends[position]:
                active[unit.allocation].pop(unit, None)
            for unit in begins[position]:
                active[unit.allocation][unit] = None
            for allocation in {u.allocation for u in (*begins[position], *ends[position])}:
                covered = _covered([v for unit in active[allocation] for v in unit.values])
                total += covered - used[allocation]
                used[allocation] = covered
            if total > best[1]:
                best = (position, total)
        return best


def _runs(values: Sequence[Value]) -> Iterator[list[Value]]:
    """Part values that are one by the gaps in which none of them is alive.

    The old and the new value of a variable have one place, and may leave it to others meanwhile.
    """
    run: list[Value] = []
    for value in sorted(values, key=lambda value: (value.start, value.end, value.id)):
        if run and value.start > max(one.end for one in run):
            yield run
            run = []
        run.append(value)
    yield run


def _at(unit: _Unit, position: int) -> Value:
    """Return the value that stands for a unit at a position."""
    started = [value for value in unit.values if value.start <= position]
    return max(started, key=lambda value: value.start) if started else unit.values[0]


def _covered(values: Sequence[Value]) -> int:
    """Count the bytes that some values cover together."""
    total, reached = 0, 0
    for low, high in sorted((value.offset, value.offset + value.nbytes) for value in values):
        total += max(0, high - max(low, reached))
        reached = max(reached, high)
    return total
