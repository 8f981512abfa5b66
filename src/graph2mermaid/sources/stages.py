"""What becomes of a trace: the graphs of the later stages, added to its capture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from graph2mermaid.capture import Capture
from graph2mermaid.errors import SignatureError
from graph2mermaid.graph import Stage
from graph2mermaid.provenance import recorded
from graph2mermaid.sources.concrete import Traced
from graph2mermaid.sources.grappler import NotOptimizedError, Stages, optimize
from graph2mermaid.sources.runtime import given_arguments, made_up_arguments


@dataclass(frozen=True)
class Further:
    """Which stages are wanted after tracing, and what may be done for them."""

    grappler: bool = False
    runtime: bool = False
    run: bool | None = None
    """Whether the function may run; None when it may with values that the user gave."""
    replay: bool = True
    """Whether to find out which optimizer did what."""


TRACED_ONLY = Further()


def later_stages(
    views: Sequence[str] | None, *, run: bool | None = None, replay: bool = True
) -> Further:
    """Return the stages that some views need; None stands for the usual views."""
    wanted = set(("grappler",) if views is None else views)
    everything = "all" in wanted
    return Further(
        grappler=everything or "grappler" in wanted,
        runtime=everything or "runtime" in wanted,
        run=run,
        replay=replay,
    )


def with_later_stages(capture: Capture, traced: Traced, further: Further) -> Capture:
    """Return the capture with the graphs of the stages that are wanted.

    What cannot be had is a note in the capture; what is there already is kept.

    Args:
        capture: Of the traced graph.
        traced: The trace itself.
        further: What is wanted.
    """
    if not (further.grappler or further.runtime):
        return capture
    arguments, notes = _arguments(capture, traced, further)
    try:
        found = _optimized(capture, traced, further, arguments, notes)
    except NotOptimizedError as error:
        return replace(capture, notes=(*capture.notes, *notes, f"{VIEW_NOTE} {error}"))
    graphs = {**capture.graphs, Stage.GRAPPLER: found.optimized.graph}
    if found.runtime is not None:
        graphs[Stage.RUNTIME] = found.runtime
    return replace(
        capture,
        graphs=graphs,
        optimization=recorded(capture.traced, found.optimized, onednn=_onednn()),
        notes=(*capture.notes, *notes),
    )


VIEW_NOTE = "Grappler view:"
"""How the note begins that stands in its place."""


def _optimized(
    capture: Capture,
    traced: Traced,
    further: Further,
    arguments: list[Any] | None,
    notes: list[str],
) -> Stages:
    """Run the function if there are arguments; when that fails, do without."""
    graph = capture.traced
    if arguments is not None:
        try:
            return optimize(traced.concrete, graph, arguments=arguments, with_replay=further.replay)
        except NotOptimizedError as error:
            notes.append(f"{VIEW_NOTE} running the function failed, so it was not run: {error}")
    return optimize(traced.concrete, graph, with_replay=further.replay)


def _arguments(
    capture: Capture, traced: Traced, further: Further
) -> tuple[list[Any] | None, list[str]]:
    """Return what to run the function with, or None when it is not to run."""
    if further.run is False:
        return None, []
    try:
        values = _given(traced)
        if values is not None:
            return values, []
        if further.run:
            return made_up_arguments(traced.concrete, capture.traced), []
    except SignatureError as error:
        return None, [f"{VIEW_NOTE} the function was not run: {error}"]
    return None, []


def _given(traced: Traced) -> list[Any] | None:
    """Return the values that the user gave, if there is one for each argument."""
    import tensorflow as tf

    chosen = traced.arguments
    if chosen is None or not traced.has_values:
        return None
    leaves = tf.nest.flatten((chosen.args, dict(chosen.kwargs)))
    if any(isinstance(leaf, tf.TypeSpec) for leaf in leaves):
        return None
    return given_arguments(traced.concrete, chosen.args, chosen.kwargs)


def _onednn() -> bool | None:
    """Tell whether oneDNN is on; by default that depends on the processor."""
    return {"0": False, "1": True}.get(os.environ.get("TF_ENABLE_ONEDNN_OPTS", ""))
