"""What becomes of a trace: the graphs of the later stages, added to its capture."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from graph2mermaid.capture import GRAPPLER_NOTE, MEMORY_NOTE, XLA_NOTE, Capture
from graph2mermaid.errors import SignatureError
from graph2mermaid.graph import Graph, Stage
from graph2mermaid.provenance import recorded
from graph2mermaid.sources.buffers import memory_plan
from graph2mermaid.sources.concrete import Traced
from graph2mermaid.sources.grappler import NotOptimizedError, Stages, optimize
from graph2mermaid.sources.hlo_capture import with_hlo
from graph2mermaid.sources.runtime import given_arguments, made_up_arguments
from graph2mermaid.sources.xla import ASSUMED, NotCompiledError, compile_hlo


@dataclass(frozen=True)
class Further:
    """Which stages are wanted after tracing, and what may be done for them."""

    grappler: bool = False
    runtime: bool = False
    run: bool | None = None
    """Whether the function may run; None when it may with values that the user gave."""
    replay: bool = True
    """Whether to find out which optimizer did what."""
    asked: bool = False
    """Whether the user named the views: then what cannot be had is said."""
    memory: bool = False
    """Whether to find out where XLA keeps its values."""
    xla: bool = False
    """Whether to find out what XLA compiles."""


TRACED_ONLY = Further()

_NODE = re.compile(r"\s*\[\[")
"""What TensorFlow adds to a message: `[[{{node Sqrt}}]]`."""


def later_stages(
    views: Sequence[str] | None, *, run: bool | None = None, replay: bool = True
) -> Further:
    """Return the stages that some views need; None stands for the usual views."""
    wanted = set(("grappler",) if views is None else views)
    everything = "all" in wanted
    grappler = everything or "grappler" in wanted
    runtime = everything or "runtime" in wanted
    memory = everything or "memory" in wanted
    xla = everything or "xla" in wanted
    asked = views is not None and (grappler or runtime)
    return Further(grappler, runtime, run, replay, asked, memory, xla)


def with_later_stages(capture: Capture, traced: Traced, further: Further) -> Capture:
    """Return the capture with the graphs of the stages that are wanted.

    What cannot be had is a note in the capture; what is there already is kept.

    Args:
        capture: Of the traced graph.
        traced: The trace itself.
        further: What is wanted.
    """
    if further.memory or further.xla:
        capture = _compiled(capture, traced, further)
    if not (further.grappler or further.runtime):
        return capture
    arguments, notes = _arguments(capture, traced, further)
    try:
        found = _optimized(capture, traced, further, arguments, notes)
    except NotOptimizedError as error:
        # That it could not run either is no news: the reason is the same, or follows from it.
        return replace(capture, notes=(*capture.notes, f"{GRAPPLER_NOTE} {error}"))
    graphs = {**capture.graphs, Stage.GRAPPLER: found.optimized.graph}
    if found.runtime is not None:
        graphs[Stage.RUNTIME] = found.runtime
    return replace(
        capture,
        graphs=graphs,
        optimization=recorded(capture.traced, found.optimized, onednn=_onednn(found.runtime)),
        notes=(*capture.notes, *notes),
    )


def _compiled(capture: Capture, traced: Traced, further: Further) -> Capture:
    """Add what XLA makes of the function, or the note that says why there is nothing.

    Values that the user gave are used, since compiling does not run the function.
    """
    concrete, notes = traced.concrete, list(capture.notes)
    arguments = None
    with contextlib.suppress(SignatureError):
        arguments = _given(traced)
    views = [XLA_NOTE] * further.xla + [MEMORY_NOTE] * further.memory
    try:
        compiled = compile_hlo(concrete, capture.traced, arguments, count_before=further.xla)
    except NotCompiledError as error:
        return replace(capture, notes=(*notes, *(f"{view} {error}" for view in views)))
    if compiled.assumed:
        assumed = ", ".join(compiled.assumed)
        typed = " ".join(f"--input '{text}'" for text in compiled.assumed)
        others = f"; for others give {typed}" if traced.arguments is not None else ""
        notes.append(f"{views[0]} unknown dimensions were taken as {ASSUMED}: {assumed}{others}")
    if further.xla:
        capture = with_hlo(
            capture, compiled.hlo.hlo_module, before=compiled.before, assumed=compiled.assumed
        )
    if further.memory:
        capture = replace(capture, memory=memory_plan(compiled.hlo, capture.traced))
    return replace(capture, notes=tuple(notes))


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
            reason = _NODE.split(str(error))[0].rstrip(" .")
            notes.append(
                f"{GRAPPLER_NOTE} running the function failed, so its graph was found without: {reason}"
            )
    return optimize(traced.concrete, graph, with_replay=further.replay)


def _arguments(
    capture: Capture, traced: Traced, further: Further
) -> tuple[list[Any] | None, list[str]]:
    """Return what to run the function with, or None when it is not to run."""
    if further.run is False:
        return None, []
    from tensorflow.python.eager import context

    try:
        with context.eager_mode():  # the program may have switched it off
            values = _given(traced)
            if values is not None:
                return values, []
            if further.run:
                return made_up_arguments(traced.concrete, capture.traced), []
    except SignatureError as error:
        return None, [f"{GRAPPLER_NOTE} the function was not run: {error}"]
    return None, []


def _given(traced: Traced) -> list[Any] | None:
    """Return the values that the user gave, if there is one for each argument."""
    import tensorflow as tf

    chosen = traced.arguments
    if chosen is None or not traced.has_values:
        return None
    args, kwargs = chosen.values
    leaves = tf.nest.flatten((args, dict(kwargs)))
    if any(isinstance(leaf, tf.TypeSpec) for leaf in leaves):
        return None
    return given_arguments(traced.concrete, args, kwargs)


_ONEDNN_OPS = frozenset({"MatMul", "BatchMatMulV2", "Conv2D", "DepthwiseConv2dNative"})
"""The ops that oneDNN always takes over when it is on, for float32 numbers."""


def _onednn(runtime: Graph | None) -> bool | None:
    """Tell whether oneDNN is on, which by default depends on the processor.

    What is executed tells it: oneDNN's kernels have names of their own. None where nothing does.
    """
    ops = [node for node in runtime.nodes() if node.device] if runtime is not None else []
    if any(node.op.startswith("_Mkl") for node in ops):
        return True
    asked = os.environ.get("TF_ENABLE_ONEDNN_OPTS", "").lower()
    if asked in ("0", "false"):
        return False
    kernels = (node for node in ops if node.op in _ONEDNN_OPS and "CPU" in node.device)
    if any(spec.dtype == "float32" for node in kernels for spec in node.outputs):
        return False
    return True if asked in ("1", "true") else None
