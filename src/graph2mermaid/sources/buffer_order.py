"""The order in which the instructions of an XLA module run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graph2mermaid.sources.buffer_flow import RUN_IN_PLACE, Flow, Row


@dataclass(frozen=True)
class Flattened:
    """The instructions that run, each loop body and branch before the instruction it belongs to."""

    keys: tuple[int, ...]
    """Ids of instructions."""
    entered: Mapping[int, int]
    """For loops, branches and calls: the position at which the first of their bodies begins."""
    scheduled: bool
    """Whether it is XLA's own schedule."""


def flattened(module: Any, flow: Flow, trace: Any = ()) -> Flattened:
    """Return the order of a module's instructions.

    Args:
        module: An `HloModuleProto`.
        flow: Its buffers.
        trace: The events of XLA's allocator, for a module without a schedule.
    """
    sequences = {
        key: list(sequence.instruction_ids) for key, sequence in module.schedule.sequences.items()
    }
    scheduled = module.entry_computation_id in sequences
    keys: list[int] = []
    entered: dict[int, int] = {}
    running: set[int] = set()

    def walk(computation: int) -> None:
        if computation in running:
            return
        running.add(computation)
        sequence = sequences.get(computation)
        if sequence is None:
            sequence = _by_trace(computation, flow, trace)
        for key in sequence:
            instruction = flow.instructions[key]
            if instruction.opcode in RUN_IN_PLACE:
                entered[key] = len(keys)
                called = list(instruction.called_computation_ids)
                if instruction.opcode == "while":
                    called.reverse()  # the condition is asked first
                for one in called:
                    walk(one)
            keys.append(key)

    walk(module.entry_computation_id)
    return Flattened(tuple(keys), entered, scheduled)


_TRIES = 8
"""How often an order is put right where it would have two values in one place."""

_Waits = dict[int, dict[int, None]]
"""For instructions those that run before them, beside those that they read."""


def _by_trace(computation: int, flow: Flow, trace: Any) -> list[int]:
    """Return an order that dependencies allow and in which buffers come and go as in the trace.

    What the trace does not tell runs as late as it can, as XLA has it: small values that are
    made early would be in memory all the time. Where two values would have one place at the same
    time, the one that can waits for the other.
    """
    part = flow.computations[computation]
    told = _told(part, flow, trace)
    waits = {key: dict(found) for key, found in told.items()}
    traced = {event.buffer_id for event in trace}
    blocks = [block for block in flow.blocks if not any(row[0] in traced for row in block)]
    best = _in_order(part, flow, waits)
    if not _allowed(best, flow):
        return _in_order(part, flow, {})
    for _ in range(_TRIES):
        clashes = list(_clashes(best, blocks, flow))
        settled = [_settle(clash, best, waits, flow) for clash in clashes]  # each of them
        if not any(settled):
            break
        order = _in_order(part, flow, waits)
        if not _allowed(order, flow):
            break
        best = order
    return best


def _told(part: Any, flow: Flow, trace: Any) -> _Waits:
    """Return what the trace says of an order: makers of buffers follow each other, and readers."""
    here = {one.id for one in part.instructions}
    readers = _readers(here, flow)
    waits: _Waits = defaultdict(dict)
    last: int | None = None
    freed: list[int] = []
    for event in trace:
        maker = flow.defined.get(event.buffer_id, (-1, ()))[0]
        if event.kind == event.FREE:
            freed += readers.get(event.buffer_id, ())
        elif maker in here and maker != last:
            if last is not None:
                waits[maker][last] = None
            # What had the last word on a buffer ran before the next one was made.
            waits[maker].update(dict.fromkeys(key for key in freed if key != maker))
            last, freed = maker, []
    return waits


def _readers(keys: Iterable[int], flow: Flow) -> dict[int, list[int]]:
    found: defaultdict[int, list[int]] = defaultdict(list)
    for key in sorted(keys):
        for id_ in flow.reads(key):
            found[id_].append(key)
    return found


def _in_order(part: Any, flow: Flow, waits: _Waits) -> list[int]:
    """Return the instructions, each after those that it waits for, and as late as that allows."""
    order: dict[int, None] = {}
    seen: set[int] = set()
    makers = list(waits)  # in the order of the trace, so the last one leads to all others
    for first in (*makers, part.root_id, *(one.id for one in part.instructions)):
        stack = [(first, False)]
        while stack:
            key, ready = stack.pop()
            if ready:
                order[key] = None
            elif key not in seen:
                seen.add(key)
                stack.append((key, True))
                stack += [(source, False) for source in reversed(_before(key, flow, waits))]
    return list(order)


def _before(key: int, flow: Flow, waits: _Waits) -> list[int]:
    one = flow.instructions[key]
    return [*waits.get(key, ()), *one.operand_ids, *one.control_predecessor_ids]


def _allowed(order: Sequence[int], flow: Flow) -> bool:
    """Tell whether every instruction follows what it reads."""
    place = {key: at for at, key in enumerate(order)}
    return all(place[source] < at for key, at in place.items() for source in _before(key, flow, {}))


def _clashes(
    order: Sequence[int], blocks: Sequence[Sequence[Row]], flow: Flow
) -> Iterator[tuple[int, int]]:
    """Yield pairs of buffers that have a byte in common while both are in use."""
    place = {key: at for at, key in enumerate(order)}
    readers = _readers(order, flow)
    for block in blocks:
        rows = []
        for id_, offset, size in block:
            maker = flow.defined.get(id_, (-1, ()))[0]
            if maker in place and maker != order[-1]:
                end = max((place[key] for key in readers.get(id_, ())), default=place[maker])
                rows.append((place[maker], end, offset, offset + size, id_))
        rows.sort()
        for at, (_, end, low, high, id_) in enumerate(rows):
            for start, _, other_low, other_high, other in rows[at + 1 :]:
                if start < end and low < other_high and other_low < high:
                    yield id_, other


def _settle(clash: tuple[int, int], order: Sequence[int], waits: _Waits, flow: Flow) -> bool:
    """Let one of two buffers wait until the other one is read, the second if it can."""
    readers = _readers(order, flow)
    for first, then in (clash, clash[::-1]):
        maker = flow.defined[then][0]
        last = [key for key in readers.get(first, ()) if key != maker]
        if last and not any(maker in _ancestors(key, flow, waits) for key in last):
            waits.setdefault(maker, {}).update(dict.fromkeys(last))
            return True
    return False


def _ancestors(key: int, flow: Flow, waits: _Waits) -> set[int]:
    found: set[int] = set()
    stack = [key]
    while stack:
        for source in _before(stack.pop(), flow, waits):
            if source not in found:
                found.add(source)
                stack.append(source)
    return found
