"""An HLO module as plain data: what XLA says of a function, whichever form it was read from.

A module is made of computations; one of them is the entry, the others are the bodies of fusions,
loops, branches, and the small functions that reductions and sorts call. The names of instructions
are unique in their module.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from graph2mermaid.graph import TensorSpec

_EMPTY: Mapping[str, str] = MappingProxyType({})

_DTYPES: Mapping[str, str] = MappingProxyType(
    {
        "pred": "bool",
        "bf16": "bfloat16",
        **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
        **{f"s{bits}": f"int{bits}" for bits in (2, 4, 8, 16, 32, 64)},
        **{f"u{bits}": f"uint{bits}" for bits in (2, 4, 8, 16, 32, 64)},
        **{f"c{bits}": f"complex{bits}" for bits in (64, 128)},
        "f8e4m3fn": "float8_e4m3fn",
        "f8e5m2": "float8_e5m2",
    }
)
"""XLA's types, and what TensorFlow calls them."""

NO_WORK = frozenset(
    {
        "parameter",
        "constant",
        "tuple",
        "get-tuple-element",
        "bitcast",
        "after-all",
        "add-dependency",
        "domain",
        "opt-barrier",
        "partition-id",
        "replica-id",
    }
)
"""Opcodes that are no kernel: they name what is there already."""

CONTAINERS = frozenset(
    {"while", "conditional", "call", "async-start", "async-done", "async-update"}
)
"""Opcodes that are no kernel of their own: what they call is."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Type, dimensions and layout of a value, or the shapes of a tuple's elements."""

    dtype: str = ""
    """XLA's word: `f32`, `pred`, `token`. Empty for a tuple."""
    dims: tuple[int, ...] = ()
    """For a dimension that is only known when it runs, the most that it can be."""
    layout: tuple[int, ...] = ()
    """The dimensions from the one that varies fastest: `(1, 0)` is row by row."""
    dynamic: tuple[int, ...] = ()
    """The dimensions that are only known when it runs."""
    elements: tuple[Shape, ...] | None = None
    """None unless it is a tuple."""

    def __str__(self) -> str:
        """Return XLA's own form: `f32[8,4]{1,0}`, `(s32[], f32[<=4]{0})`."""
        if self.elements is not None:
            return f"({', '.join(map(str, self.elements))})"
        dims = (f"<={n}" if at in self.dynamic else str(n) for at, n in enumerate(self.dims))
        layout = f"{{{','.join(map(str, self.layout))}}}" if self.layout else ""
        return f"{self.dtype}[{','.join(dims)}]{layout}"

    @property
    def size(self) -> int:
        """The number of elements; of a tuple, of all of it."""
        if self.elements is not None:
            return sum(element.size for element in self.elements)
        return math.prod(self.dims)

    @property
    def nbytes(self) -> int:
        """The size in bytes, without the padding or table of pointers that a device may add."""
        return sum(spec.nbytes or 0 for spec in self.specs)

    @property
    def leaves(self) -> tuple[Shape, ...]:
        """The shapes of all that it holds, tuples in tuples taken apart."""
        if self.elements is None:
            return (self,)
        return tuple(leaf for element in self.elements for leaf in element.leaves)

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        """The same in TensorFlow's words; dimensions that are known only when it runs are None."""
        return tuple(leaf._spec() for leaf in self.leaves)

    def _spec(self) -> TensorSpec:
        # The bound is what memory is taken for; `dynamic` says that it is a bound.
        return TensorSpec(_DTYPES.get(self.dtype, self.dtype), self.dims)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One HLO instruction."""

    name: str
    opcode: str
    shape: Shape
    operands: tuple[str, ...] = ()
    called: tuple[tuple[str, str], ...] = ()
    """(role, computation): `calls`, `to_apply`, `body`, `condition`, `branch_computations[0]`."""
    attrs: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    """What is printed behind the operands and decides what it computes, in XLA's own words:
    `kind`, `custom_call_target`, `window`, `dim_labels`, `dimensions`, `direction`."""
    op_name: str = ""
    """The name of the TensorFlow op, or several with `;` between them."""
    op_type: str = ""
    parameter: int | None = None
    """For a parameter, which one."""
    value: str | None = None
    """For a small constant, its value as text."""
    trip_count: int | None = None
    """For a loop, how many times its body runs, where XLA knows."""

    @property
    def index(self) -> int:
        """Which element a `get-tuple-element` takes."""
        return int(self.attrs.get("index", "0"))


@dataclass(frozen=True)
class Computation:
    """A sequence of instructions, the last of which need not be its result."""

    name: str
    instructions: tuple[Instruction, ...]
    root: str

    @cached_property
    def by_name(self) -> Mapping[str, Instruction]:
        """The instructions by name."""
        return {instruction.name: instruction for instruction in self.instructions}

    @property
    def result(self) -> Instruction:
        """The instruction that is the computation's result."""
        return self.by_name[self.root]

    @property
    def parameters(self) -> tuple[Instruction, ...]:
        """The parameters in order."""
        found = [one for one in self.instructions if one.parameter is not None]
        return tuple(sorted(found, key=lambda one: one.parameter or 0))


@dataclass(frozen=True)
class Module:
    """An HLO module."""

    name: str
    entry: str
    """The name of the computation that runs."""
    computations: Mapping[str, Computation]
    """In the order of the module: what is called comes before what calls it."""
    scheduled: bool = False
    """Whether the instructions of a computation stand in the order in which they run."""

    def instructions(self) -> Iterator[Instruction]:
        """Yield the instructions of all computations."""
        for computation in self.computations.values():
            yield from computation.instructions

    @property
    def top(self) -> Computation:
        """The entry computation."""
        return self.computations[self.entry]

    @cached_property
    def executed(self) -> tuple[str, ...]:
        """The computations whose instructions are executed one by one, the entry first.

        What a fusion stands for is one kernel, and what a reduction calls is part of one.
        """
        found = {self.entry: None}
        stack = [self.entry]
        while stack:
            for one in self.computations[stack.pop()].instructions:
                if one.opcode in CONTAINERS:
                    new = [key for _, key in one.called if key not in found]
                    found.update(dict.fromkeys(new))
                    stack += new
        return tuple(found)

    def kernels(self) -> Iterator[tuple[Computation, Instruction]]:
        """Yield every instruction that is a kernel of its own, with its computation."""
        for key in self.executed:
            computation = self.computations[key]
            for one in computation.instructions:
                if one.opcode not in NO_WORK | CONTAINERS:
                    yield computation, one

    def fused(self, instruction: Instruction) -> Computation | None:
        """Return the computation that a fusion stands for; None for anything else."""
        if instruction.opcode != "fusion":
            return None
        return next((self.computations[name] for role, name in instruction.called), None)
