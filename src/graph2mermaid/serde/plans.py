"""Memory plans as data for a capture file, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from graph2mermaid.errors import CaptureError
from graph2mermaid.memory import Allocation, AllocationKind, MemoryPlan, Order, Value


def plan_to_data(plan: MemoryPlan) -> dict[str, Any]:
    """Return what `json.dumps` takes."""
    data: dict[str, Any] = {
        "order": plan.order.value,
        "schedule": list(plan.schedule),
        "allocations": [
            [b.index, b.nbytes, b.kind.value, b.parameter, b.label, [_row(v) for v in b.values]]
            for b in plan.allocations
        ],
        "same": [list(ids) for ids in plan.same],
    }
    return {**plan.extra, **data}


def _row(v: Value) -> list[Any]:
    place = [v.id, v.instruction, list(v.index), v.nbytes, v.offset, v.start, v.end]
    return [*place, v.opcode, v.type, v.op]


def plan_from_data(data: Mapping[str, Any]) -> MemoryPlan:
    """Return what `plan_to_data` made data of.

    Raises:
        CaptureError: The data is of another form.
    """
    known = {"order", "schedule", "allocations", "same"}
    try:
        plan = MemoryPlan(
            tuple(_allocation(*row) for row in data["allocations"]),
            tuple(map(_text, data["schedule"])),
            Order(data["order"]),
            tuple(tuple(map(_count, ids)) for ids in data["same"]),
            MappingProxyType({key: value for key, value in data.items() if key not in known}),
        )
        _check(plan)
    except (KeyError, TypeError, ValueError) as error:
        raise CaptureError(f"the memory plan is damaged: {type(error).__name__} {error}") from error
    return plan


def _check(plan: MemoryPlan) -> None:
    for value in plan.values:
        if not value.start <= value.end <= len(plan.schedule):
            raise ValueError(f"{value.name} is alive at steps that there are not")


def _allocation(
    index: object,
    nbytes: object,
    kind: object,
    parameter: object,
    label: object,
    values: Sequence[Sequence[Any]],
) -> Allocation:
    return Allocation(
        _count(index),
        _count(nbytes),
        AllocationKind(kind),
        tuple(_value(*row) for row in values),
        None if parameter is None else _count(parameter),
        _text(label),
    )


def _value(
    id_: object,
    instruction: object,
    index: Sequence[object],
    nbytes: object,
    offset: object,
    start: object,
    end: object,
    *words: object,
) -> Value:
    opcode, type_, op = map(_text, words)
    return Value(
        _count(id_),
        _text(instruction),
        _count(nbytes),
        _count(start),
        _count(end),
        _count(offset),
        tuple(map(_count, index)),
        opcode,
        type_,
        op,
    )


_MOST = 2**63


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
        raise ValueError(f"{value!r} is no count")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value
