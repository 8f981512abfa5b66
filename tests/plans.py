"""Memory plans written as text, so that tests read like the plan they are about.

A line that begins with a number is an allocation: `27 temporary 4096`, with `label=w` for a
parameter. The lines below it are its values: `h float32[8,64] 2-5 @1024 op=Relu`, a name, a type
(`()` for a table of addresses), the steps from which and until which it is alive, counted from 0
(`2-` until the end), where it begins, and the op. The size follows from the type, or is `bytes=64`.
"""

from __future__ import annotations

import itertools

from graph2mermaid.memory import Allocation, AllocationKind, MemoryPlan, Order, Value
from tests.builders import spec


def plan(
    text: str,
    schedule: str,
    *,
    same: tuple[tuple[str, ...], ...] = (),
    order: Order = Order.SCHEDULE,
) -> MemoryPlan:
    """Build a plan from text.

    Args:
        text: The allocations and their values.
        schedule: The names of the instructions in order, separated by spaces.
        same: Names of values that are one to XLA.
        order: How the order is known.
    """
    steps = tuple(schedule.split())
    ids = itertools.count()
    blocks: list[Allocation] = []
    values: list[Value] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        if line[0].isdigit():
            blocks = _closed(blocks, values)
            blocks.append(_allocation(line.split()))
            values = []
        else:
            values.append(_value(line.split(), next(ids), len(steps)))
    blocks = _closed(blocks, values)
    by_name = {value.instruction: value.id for block in blocks for value in block.values}
    sets = tuple(tuple(by_name[name] for name in names) for names in same)
    return MemoryPlan(tuple(blocks), steps, order, sets)


def _closed(blocks: list[Allocation], values: list[Value]) -> list[Allocation]:
    if not blocks:
        return blocks
    last = blocks[-1]
    filled = Allocation(
        last.index, last.nbytes, last.kind, tuple(values), last.parameter, last.label
    )
    return [*blocks[:-1], filled]


def _allocation(words: list[str]) -> Allocation:
    index, kind, nbytes, *rest = words
    label = next((word.removeprefix("label=") for word in rest), "")
    number = int(index) if kind == "parameter" else None
    return Allocation(int(index), int(nbytes), AllocationKind(kind), (), number, label)


def _value(words: list[str], id_: int, steps: int) -> Value:
    name, type_, when, *rest = words
    start, _, end = when.partition("-")
    more = dict(word.split("=") for word in rest if "=" in word)
    offset = next((int(word[1:]) for word in rest if word[0] == "@"), 0)
    size = 8 if type_ == "()" else spec(type_).nbytes
    return Value(
        id_,
        name,
        int(more.get("bytes", size or 0)),
        int(start),
        int(end) if end else steps,
        offset,
        type="" if type_ == "()" else type_,
        op=more.get("op", ""),
    )
