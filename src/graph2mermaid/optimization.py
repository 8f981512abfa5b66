"""What Grappler, TensorFlow's graph optimizer, made of a function: the graph, and how it came about.

Plain data, recorded by `sources.grappler` and read by everything that explains or draws it. Names
of ops are those of the traced graph as long as an op keeps its name; an op of a called function
is, once the call is inlined, `CALL/INNER`, and one of a lowered loop or branch `CALL/body/_1/INNER`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from graph2mermaid.graph import Graph, Scalar

_EMPTY: Mapping[str, Scalar] = MappingProxyType({})


class Way(str, enum.Enum):
    """How an optimized graph was come by."""

    OFFLINE = "offline"  # recorded by TensorFlow, or made by Grappler; the function did not run
    RUN = "run"  # recorded by TensorFlow while the function ran


@dataclass(frozen=True, slots=True)
class OpForm:
    """An op as a GraphDef has it, reduced to what an optimizer may change of it."""

    op: str
    """The op type."""
    inputs: tuple[str, ...] = ()
    """As in a NodeDef: `x`, `split:1`, `^waited_for`."""
    details: Mapping[str, Scalar] = field(default_factory=lambda: _EMPTY)
    """What makes it another op beside type and inputs, where it has any: `fused_ops`, `dtype`,
    `shape` and (when small) `value` of a constant."""


@dataclass(frozen=True, slots=True)
class OpChange:
    """What became of one op name: it was added, removed, or means something else now."""

    name: str
    before: OpForm | None
    """None when it was added."""
    after: OpForm | None
    """None when it was removed."""

    @property
    def added(self) -> bool:
        """Tell whether there was no op of this name before."""
        return self.before is None

    @property
    def removed(self) -> bool:
        """Tell whether no op has this name any more."""
        return self.after is None

    @property
    def retyped(self) -> bool:
        """Tell whether the name stands for another type of op now: `Mul` became `Const`."""
        return (
            self.before is not None and self.after is not None and self.before.op != self.after.op
        )


@dataclass(frozen=True, slots=True)
class PassChange:
    """What one optimizer did when all optimizers were replayed one at a time.

    The passes of a replay follow each other: each starts from the result of the one before. The
    real schedule repeats some of them, so a replay may end in another graph than the real one.
    """

    optimizer: str
    """Its name as Grappler's options have it: `constfold`, `remap`."""
    round: int
    """0 for what TensorFlow does before Grappler (called functions, loops and branches are put in
    place); then the iteration of Grappler's schedule, counted from 1."""
    changes: tuple[OpChange, ...] = ()
    """In the order of the graph before, then what was added in the order of the graph after."""
    nodes_before: int = 0
    nodes_after: int = 0
    note: str | None = None
    """Why there is no result: it crashed, or it was stopped. The next pass starts as this one did."""


@dataclass(frozen=True)
class Optimized:
    """The graph that TensorFlow runs, and what is known about how it came about."""

    graph: Graph
    """Stage `grappler`."""
    way: Way
    options: Mapping[str, Scalar] = field(default_factory=lambda: _EMPTY)
    """The optimizer options that the process has set to something else than the default."""
    optimizers: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))
    """Every optimizer of this TensorFlow in the order in which they run, and whether it is on."""
    passes: tuple[PassChange, ...] = ()
    """The replay; empty when there was none."""
    replayed: Mapping[str, OpForm] = field(default_factory=dict)
    """The ops that the replay ended in."""
    differences: tuple[OpChange, ...] = ()
    """When the function ran and was optimized offline as well: what the offline graph (`before`)
    has otherwise than the one that ran (`after`)."""
    notes: tuple[str, ...] = ()
    """What a reader must know: options that differ, a crash, a time-out."""
