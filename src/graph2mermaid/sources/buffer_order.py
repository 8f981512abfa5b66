"""The order in which the instructions of an XLA module run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from graph2mermaid.sources.buffer_flow import RUN_IN_PLACE, Flow


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


def _by_trace(computation: int, flow: Flow, trace: Any) -> list[int]:
    """Return an order that dependencies allow and in which buffers come and go as in the trace.

    What the trace does not tell runs as late as it can, as XLA has it: small values that are
    made early would be in memory all the time.
    """
    part = flow.computations[computation]
    order: dict[int, None] = {}
    for key in (*_told(part, flow, trace), part.root_id, *(one.id for one in part.instructions)):
        _with_sources(key, flow, order)
    return list(order)


def _told(part: Any, flow: Flow, trace: Any) -> Iterator[int]:
    """Yield instructions in the order that the trace tells: makers of buffers, and last readers."""
    here = {one.id for one in part.instructions}
    readers: defaultdict[int, list[int]] = defaultdict(list)
    for one in part.instructions:
        for id_ in flow.reads(one.id):
            readers[id_].append(one.id)
    freed: list[int] = []
    for event in trace:
        maker = flow.defined.get(event.buffer_id, (-1, ()))[0]
        if event.kind == event.FREE:
            freed += readers[event.buffer_id]
        elif maker in here:
            # What had the last word on a buffer ran before the next one was made.
            yield from freed
            yield maker
            freed = []


def _with_sources(key: int, flow: Flow, order: dict[int, None]) -> None:
    """Add an instruction to an order, after all that it waits for."""
    stack = [(key, False)]
    while stack:
        key, ready = stack.pop()
        if ready:
            order[key] = None
        elif key not in order:
            one = flow.instructions[key]
            stack.append((key, True))
            sources = (*one.operand_ids, *one.control_predecessor_ids)
            stack += [(source, False) for source in reversed(sources) if source not in order]
