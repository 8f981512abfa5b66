"""What a capture keeps of an optimization: everything a report says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from graph2mermaid.collector import collector_paused
from graph2mermaid.errors import CaptureError
from graph2mermaid.graph import Graph, Scalar
from graph2mermaid.optimization import OpChange, Optimized, PassChange, Way
from graph2mermaid.provenance.data import from_data, to_data
from graph2mermaid.provenance.explain import explain
from graph2mermaid.provenance.flat import flatten
from graph2mermaid.provenance.fusion import Blocked, Blocker, blocked_fusions
from graph2mermaid.provenance.model import Provenance

_NOTHING: Mapping[str, Scalar] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PassResult:
    """What one optimizer of the replay did, in numbers."""

    optimizer: str
    round: int
    added: int
    removed: int
    retyped: int
    """Ops that are of another type afterwards, under the same name."""
    nodes_after: int
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """An op that the offline graph has otherwise than the one that ran."""

    name: str
    offline: str
    """Its type; the empty string where there is none of that name."""
    ran: str


@dataclass(frozen=True)
class Optimization:
    """How the optimized graph of a capture came about."""

    way: Way
    provenance: Provenance
    blocked: tuple[Blocked, ...] = ()
    passes: tuple[PassResult, ...] = ()
    optimizers: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))
    """Every optimizer that may be credited, and whether it is on."""
    options: Mapping[str, Scalar] = field(default_factory=lambda: _NOTHING)
    """The optimizer options that the process has set to something else than the default."""
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()


def recorded(traced: Graph, optimized: Optimized, *, onednn: bool | None = None) -> Optimization:
    """Return what a capture keeps: the comparison of both graphs, and how the second was made.

    Args:
        traced: The graph that was optimized.
        optimized: What became of it.
        onednn: Whether TensorFlow optimizes for oneDNN; None when it is not known.
    """
    with collector_paused():
        flat = flatten(traced)
        provenance = explain(traced, optimized.graph, optimized.passes, flat=flat)
        blocked = blocked_fusions(
            traced, provenance, onednn=onednn, optimizers=optimized.optimizers, flat=flat
        )
    return Optimization(
        optimized.way,
        provenance,
        blocked,
        tuple(map(_result, optimized.passes)),
        optimized.optimizers,
        optimized.options,
        tuple(map(_difference, optimized.differences)),
        optimized.notes,
    )


def _result(step: PassChange) -> PassResult:
    return PassResult(
        step.optimizer,
        step.round,
        sum(change.added for change in step.changes),
        sum(change.removed for change in step.changes),
        sum(change.retyped for change in step.changes),
        step.nodes_after,
        step.note,
    )


def _difference(change: OpChange) -> Difference:
    before, after = change.before, change.after
    return Difference(change.name, before.op if before else "", after.op if after else "")


def optimization_to_data(optimization: Optimization) -> dict[str, Any]:
    """Return what `json.dumps` takes; what is empty is left out."""
    data: dict[str, Any] = {
        "way": optimization.way.value,
        "provenance": to_data(optimization.provenance),
        "blocked": [
            {"ops": list(b.ops), "blocker": b.blocker.value if b.blocker else None, "at": b.at}
            for b in optimization.blocked
        ],
        "passes": [
            [p.optimizer, p.round, p.added, p.removed, p.retyped, p.nodes_after, p.note]
            for p in optimization.passes
        ],
        "optimizers": [[name, on] for name, on in optimization.optimizers.items()],
        "options": dict(optimization.options),
        "differences": [[d.name, d.offline, d.ran] for d in optimization.differences],
        "notes": list(optimization.notes),
    }
    return {key: value for key, value in data.items() if value}


def optimization_from_data(data: Mapping[str, Any]) -> Optimization:
    """Return what [`optimization_to_data`][graph2mermaid.provenance.record] made data of.

    Raises:
        CaptureError: The data is of another form.
    """
    try:
        return Optimization(
            Way(data["way"]),
            from_data(data["provenance"]),
            tuple(map(_blocked, data.get("blocked", ()))),
            tuple(PassResult(*row) for row in data.get("passes", ())),
            MappingProxyType({str(name): bool(on) for name, on in data.get("optimizers", ())}),
            MappingProxyType(dict(data.get("options", {}))),
            tuple(Difference(*row) for row in data.get("differences", ())),
            _texts(data.get("notes", ())),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CaptureError(
            f"the optimization is damaged: {type(error).__name__} {error}"
        ) from error


def _blocked(entry: Mapping[str, Any]) -> Blocked:
    blocker = entry["blocker"]
    return Blocked(_texts(entry["ops"]), Blocker(blocker) if blocker else None, entry["at"])


def _texts(values: Sequence[object]) -> tuple[str, ...]:
    return tuple(str(value) for value in values)
