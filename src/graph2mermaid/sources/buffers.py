"""XLA's buffer assignment, as the memory plan of a compiled function."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graph2mermaid.graph import Graph
from graph2mermaid.memory import Allocation, AllocationKind, MemoryPlan, Order, Value
from graph2mermaid.sources.buffer_flow import Flow, Span
from graph2mermaid.sources.buffer_order import flattened
from graph2mermaid.sources.hlo_arguments import Argument, arguments_of
from graph2mermaid.sources.hlo_proto import module_of

_DTYPES = {
    "PRED": "bool",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "BF16": "bfloat16",
    "C64": "complex64",
    "C128": "complex128",
    **{f"S{bits}": f"int{bits}" for bits in (4, 8, 16, 32, 64)},
    **{f"U{bits}": f"uint{bits}" for bits in (4, 8, 16, 32, 64)},
}


def memory_plan(proto: Any, traced: Graph | None = None) -> MemoryPlan | None:
    """Return the memory plan in an `HloProto`, or None when there is no buffer assignment in it.

    Args:
        proto: Of an optimized module. Where it has no schedule (TensorFlow 2.9) the order is
            put together from the trace of XLA's allocator.
        traced: The graph that was compiled, which has the user's names of the parameters.
    """
    assignment = proto.buffer_assignment
    if not assignment.buffer_allocations:
        return None
    flow = Flow(proto)
    arguments = arguments_of(module_of(proto.hlo_module).top, traced)
    order = flattened(proto.hlo_module, flow, _events(assignment))
    spans = flow.spans(order)
    buffers = {buffer.id: buffer for buffer in assignment.logical_buffers}

    def values(block: Any) -> Iterator[Value]:
        for placed in block.assigned:
            if placed.logical_buffer_id in buffers:
                yield _value(placed, flow, spans)

    allocations = tuple(
        Allocation(
            block.index,
            block.size,
            _kind(block),
            tuple(sorted(values(block), key=lambda v: (v.start, v.end, v.id))),
            block.parameter_number if block.is_entry_computation_parameter else None,
            _label(block, flow, arguments),
        )
        for block in assignment.buffer_allocations
    )
    names = tuple(flow.instructions[key].name for key in order.keys)
    how = Order.SCHEDULE if order.scheduled else Order.TRACE
    return MemoryPlan(allocations, names, how, tuple(_same(assignment, flow)))


def _label(block: Any, flow: Flow, arguments: Mapping[str, Argument]) -> str:
    """Return what the user calls a parameter."""
    if not block.is_entry_computation_parameter:
        return ""
    places = (flow.defined.get(placed.logical_buffer_id) for placed in block.assigned)
    names = (flow.instructions[place[0]].name for place in places if place is not None)
    return next((arguments[name].binding.name for name in names if name in arguments), "")


def _events(assignment: Any) -> list[Any]:
    """Return what XLA's allocator did, of the trace that tells most."""
    traces = [list(trace.events) for trace in assignment.heap_simulator_traces]
    return max(traces, key=len, default=[])


def _kind(block: Any) -> AllocationKind:
    if block.is_entry_computation_parameter:
        return AllocationKind.PARAMETER
    if block.is_constant:
        return AllocationKind.CONSTANT
    if block.is_thread_local:
        return AllocationKind.THREAD_LOCAL
    return AllocationKind.OUTPUT if block.maybe_live_out else AllocationKind.TEMPORARY


def _value(placed: Any, flow: Flow, spans: dict[int, Span]) -> Value:
    id_ = placed.logical_buffer_id
    key, index = flow.defined[id_]
    instruction = flow.instructions[key]
    span = spans.get(id_, Span(0, 0))
    return Value(
        id_,
        instruction.name,
        placed.size,
        span.start,
        span.end,
        placed.offset,
        index,
        instruction.opcode,
        _type(instruction.shape, index),
        instruction.metadata.op_name,
    )


def _type(shape: Any, index: Sequence[int]) -> str:
    """Return `float32[8,64]`, or the empty string for a tuple."""
    for part in index:
        shape = shape.tuple_shapes[part]
    word = (
        type(shape)
        .DESCRIPTOR.fields_by_name["element_type"]
        .enum_type.values_by_number[shape.element_type]
        .name
    )
    if word == "TUPLE":
        return ""
    return f"{_DTYPES.get(word, word.lower())}[{','.join(map(str, shape.dimensions))}]"


def _same(assignment: Any, flow: Flow) -> Iterator[tuple[int, ...]]:
    """Yield the ids of values that XLA has found to be one, each set once."""
    at = {place: id_ for id_, place in flow.defined.items()}
    leader: dict[int, int] = {}

    def find(id_: int) -> int:
        while leader.get(id_, id_) != id_:
            id_ = leader[id_]
        return id_

    for alias in assignment.buffer_aliases:
        other = at.get(flow.place(alias.location))
        if other is not None:
            one, two = sorted((find(alias.source_buffer_id), find(other)))
            leader[two] = one
    sets: defaultdict[int, list[int]] = defaultdict(list)
    for id_ in sorted({*leader, *leader.values()}):
        sets[find(id_)].append(id_)
    yield from (tuple(ids) for ids in sets.values() if len(ids) > 1)
