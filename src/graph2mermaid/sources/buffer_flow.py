"""Which instructions of an XLA module make, hand on and read which buffers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from graph2mermaid.sources.buffer_order import Flattened

Place = tuple[int, tuple[int, ...]]
"""An instruction, by id, and which part of its result."""

Row = tuple[int, int, int]
"""A buffer in a block of memory: its number, where it begins, and its size."""

_HANDS_ON = frozenset({"tuple", "get-tuple-element", "bitcast", "opt-barrier", "add-dependency"})
"""Instructions that read no array: their result is where their operand is."""

_NOWHERE = -1

RUN_IN_PLACE = frozenset({"call", "while", "conditional", "async-start"})
"""Instructions whose computations have buffers of their own, and instructions that count."""


class Span(NamedTuple):
    """The positions from which and until which a buffer is in use."""

    start: int
    end: int


class Flow:
    """The buffers of a module: where each is made, and who reads it."""

    def __init__(self, proto: Any) -> None:
        module, assignment = proto.hlo_module, proto.buffer_assignment
        self.computations = {part.id: part for part in module.computations}
        self.entry = module.entry_computation_id
        self.instructions = {
            one.id: one for part in module.computations for one in part.instructions
        }
        self._home = {one.id: p.id for p in module.computations for one in p.instructions}
        self._by_name = {
            (part.name, one.name): one.id
            for part in module.computations
            for one in part.instructions
        }
        self._callers = {
            called: one.id
            for one in self.instructions.values()
            if one.opcode in RUN_IN_PLACE
            for called in one.called_computation_ids
        }
        places = (
            (buffer.id, self.place(buffer.defined_at)) for buffer in assignment.logical_buffers
        )
        self.defined = {id_: place for id_, place in places if place[0] in self.instructions}
        self._at = {place: id_ for id_, place in self.defined.items()}
        self.blocks: list[list[Row]] = [
            [(one.logical_buffer_id, one.offset, one.size) for one in block.assigned]
            for block in assignment.buffer_allocations
            if not block.is_thread_local
        ]
        self._held: dict[Place, frozenset[int]] = {}

    def place(self, location: Any) -> Place:
        """Return where a `LogicalBufferProto.Location` points: by id, or by name in older ones."""
        index = tuple(location.shape_index)
        if getattr(location, "instruction_name", ""):
            named = (location.computation_name, location.instruction_name)
            return self._by_name.get(named, _NOWHERE), index
        return getattr(location, "instruction_id", _NOWHERE), index

    def reads(self, key: int) -> frozenset[int]:
        """Return the buffers that an instruction reads."""
        instruction = self.instructions[key]
        found: set[int] = set()
        if instruction.opcode == "get-tuple-element":
            return self.held(instruction.operand_ids[0], ())
        if instruction.opcode in _HANDS_ON:
            return frozenset()
        for operand in instruction.operand_ids:
            for index in _indices(self.instructions[operand].shape):
                found |= self.held(operand, index)
        return frozenset(found)

    def held(self, key: int, index: tuple[int, ...]) -> frozenset[int]:
        """Return the buffers that a part of an instruction's result can be in."""
        place = (key, index)
        if place in self._at:
            return frozenset({self._at[place]})
        if place not in self._held:
            self._held[place] = frozenset()  # ends a walk in a circle, which no sound module has
            found = [self.held(*source) for source in self._sources(key, index)]
            self._held[place] = frozenset().union(*found)
        return self._held[place]

    def _sources(self, key: int, index: tuple[int, ...]) -> Iterator[Place]:
        """Yield where a part of a result is, when the instruction makes no buffer for it."""
        instruction = self.instructions[key]
        operands = instruction.operand_ids
        match instruction.opcode:
            case "tuple" if index:
                yield operands[index[0]], index[1:]
            case "get-tuple-element":
                yield operands[0], (instruction.tuple_index, *index)
            case "while" | "bitcast" | "opt-barrier" | "add-dependency" if operands:
                yield operands[0], index
            case "call" | "conditional":
                for called in instruction.called_computation_ids:
                    yield self.computations[called].root_id, index
            case "parameter":
                yield from self._argument(key, index)
            case _:
                yield from self._anything(operands)

    def _argument(self, key: int, index: tuple[int, ...]) -> Iterator[Place]:
        """Yield where a parameter comes from."""
        computation = self._home[key]
        if computation not in self._callers:
            return
        caller = self.instructions[self._callers[computation]]
        number = self.instructions[key].parameter_number
        if caller.opcode == "conditional":
            number = 1 + list(caller.called_computation_ids).index(computation)
        if caller.opcode == "while":
            number = 0
        if number < len(caller.operand_ids):
            yield caller.operand_ids[number], index

    def _anything(self, operands: Sequence[int]) -> Iterator[Place]:
        for operand in operands:
            for index in _indices(self.instructions[operand].shape):
                yield operand, index

    def spans(self, order: Flattened) -> dict[int, Span]:
        """Return from when until when each buffer is in use.

        Args:
            order: The instructions in the order in which they run.
        """
        position = {key: at for at, key in enumerate(order.keys)}
        last: defaultdict[int, int] = defaultdict(int)
        for key, at in position.items():
            # What goes into a loop and is read there is read again in each round, until it ends.
            opcode = self.instructions[key].opcode
            begun = order.entered.get(key, at) if opcode in ("call", "conditional") else at
            for id_ in self.reads(key):
                last[id_] = max(last[id_], begun)
        root = self.computations[self.entry].root_id
        for index in _indices(self.instructions[root].shape):
            for id_ in self.held(root, index):
                last[id_] = len(order.keys)
        for computation in self.computations.values():
            if computation.root_id in position and self._is_result(computation.id):
                # Results of a body are in use until the instruction that it belongs to ends.
                end = position.get(self._callers[computation.id], 0)
                for index in _indices(self.instructions[computation.root_id].shape):
                    for id_ in self.held(computation.root_id, index):
                        last[id_] = max(last[id_], end)
        return {
            id_: Span(start, max(start, last[id_]))
            for id_, (key, _) in self.defined.items()
            if key in position
            for start in [0 if self._is_there(key) else position[key]]
        }

    def _is_result(self, computation: int) -> bool:
        """Tell whether what a computation ends in is the result of the instruction it belongs to."""
        if computation not in self._callers:
            return False
        caller = self.instructions[self._callers[computation]]
        return bool(caller.opcode != "while" or caller.called_computation_ids[0] == computation)

    def _is_there(self, key: int) -> bool:
        """Tell whether a buffer is filled before the first instruction."""
        opcode = self.instructions[key].opcode
        return bool(
            opcode == "constant" or (opcode == "parameter" and self._home[key] == self.entry)
        )


def _indices(shape: Any, before: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Yield every place in a shape, tuples before their parts."""
    yield before
    for number, part in enumerate(shape.tuple_shapes):
        yield from _indices(part, (*before, number))
