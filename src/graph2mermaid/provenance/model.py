"""What became of every traced op, and where every op of the optimized graph came from: the data."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


class How(str, enum.Enum):
    """How an op of the optimized graph came about."""

    KEPT = "kept"
    CHANGED = "changed"  # the same place, but another op type or other attributes
    FOLDED = "folded"  # computed by the optimizer: a constant now
    FUSED = "fused"  # one kernel that does what several ops did
    MERGED = "merged"  # kept, and stands for equal ops as well
    LOWERED = "lowered"  # part of a loop, branch or call that was put in place
    ADDED = "added"  # made by an optimizer
    UNEXPLAINED = "unexplained"


class Fate(str, enum.Enum):
    """What became of a traced op."""

    KEPT = "kept"
    CHANGED = "changed"  # its place has another type of op, or other attributes
    FOLDED = "folded"  # a constant now, or part of one
    FUSED = "fused"  # part of another op's kernel
    MERGED = "merged"  # an equal op does its work
    REPLACED = "replaced"  # an op that the optimizer added does its work
    INLINED = "inlined"  # a call, loop or branch that was put in place, or its argument
    DEAD = "dead"  # no result and no side effect needs it
    UNTAKEN = "untaken"  # in a branch that is never taken
    REDUNDANT = "redundant"  # it changed nothing
    BYPASSED = "bypassed"  # its reader takes its input; see `Suspect`
    SHAPE_ONLY = "shape_only"  # only the shape of its result was needed
    UNEXPLAINED = "unexplained"


GONE = frozenset({Fate.DEAD, Fate.UNTAKEN, Fate.REDUNDANT, Fate.BYPASSED, Fate.SHAPE_ONLY})
"""The fates of ops that nothing does the work of any more."""
_NEEDS_NO_PASS = frozenset({Fate.KEPT, Fate.UNEXPLAINED})


@dataclass(frozen=True, slots=True)
class Folded:
    """A constant that the optimizer computed."""

    dtype: str
    shape: tuple[int | None, ...] | None
    nbytes: int | None
    value: str | None = None
    """As text, when it is small."""
    equals: str | None = None
    """The traced op whose result it is. None when it is a constant that the traced function never
    computes, as when `(x * 2) / 24` becomes `x` times one constant."""


@dataclass(frozen=True, slots=True)
class NodeOrigin:
    """Where an op of the optimized graph came from."""

    name: str
    """Its id; see [`flat`][graph2mermaid.provenance.flat]."""
    op: str
    how: How
    origins: tuple[str, ...] = ()
    """The ids of the traced ops whose work it does, in trace order."""
    was: str | None = None
    """For a changed op or one that was fused: the op type that had its name."""
    folded: Folded | None = None
    why: str | None = None
    """For an added op: the optimizer that its name tells, or what it is for."""
    by: str | None = None
    """The optimizer that the replay credits."""


@dataclass(frozen=True, slots=True)
class OpFate:
    """What became of a traced op."""

    id: str
    op: str
    fate: Fate
    into: tuple[str, ...] = ()
    """The ids of the optimized ops that do its work, in the order of the optimized graph."""
    by: str | None = None
    """The optimizer that the replay credits."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """An op that changes its input, and was taken out from between two ops that are still there.

    The optimized function may return something else than the traced one: `argmax(sigmoid(x))`
    loses the sigmoid, and with it the ties between inputs that it rounds to the same number.
    """

    ops: tuple[str, ...]
    """The ids of the traced ops that were taken out, from producer to consumer."""
    producer: str
    """The id of the optimized op that is read instead."""
    consumer: str
    """The id of the optimized op that reads it."""


@dataclass(frozen=True)
class Provenance:
    """How a traced and an optimized graph hang together; bodies of functions included."""

    nodes: Mapping[str, NodeOrigin]
    """Every op of the optimized graph by id, in its order."""
    ops: Mapping[str, OpFate]
    """Every op of the traced graph by id, in trace order."""
    suspects: tuple[Suspect, ...] = ()

    @cached_property
    def node_counts(self) -> Mapping[How, int]:
        """How many optimized ops came about each way; the numbers add up to `len(nodes)`."""
        found = Counter(node.how for node in self.nodes.values())
        return {how: found[how] for how in How if found[how]}

    @cached_property
    def op_counts(self) -> Mapping[Fate, int]:
        """How many traced ops had each fate; the numbers add up to `len(ops)`."""
        found = Counter(op.fate for op in self.ops.values())
        return {fate: found[fate] for fate in Fate if found[fate]}

    @property
    def explained(self) -> float:
        """The share of all ops on both sides that are explained, from 0 to 1."""
        missing = self.node_counts.get(How.UNEXPLAINED, 0)
        missing += self.op_counts.get(Fate.UNEXPLAINED, 0)
        total = len(self.nodes) + len(self.ops)
        return 1 - missing / total if total else 1.0

    @property
    def credited(self) -> float:
        """The share of the traced ops that did not stay as they were for which a pass is credited."""
        changed = [op for op in self.ops.values() if op.fate not in _NEEDS_NO_PASS]
        return sum(op.by is not None for op in changed) / len(changed) if changed else 1.0
