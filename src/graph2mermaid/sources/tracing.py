"""From a target, or any callable, to a Capture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graph2mermaid.capture import GRAPPLER_NOTE, Capture
from graph2mermaid.errors import SignatureError, TargetError
from graph2mermaid.graph import Stage
from graph2mermaid.sources import target as targets
from graph2mermaid.sources.arguments import Ask, ask_on_command_line
from graph2mermaid.sources.concrete import Inputs, Traced, trace_of
from graph2mermaid.sources.environment import environment
from graph2mermaid.sources.graph_file import graph_from_file
from graph2mermaid.sources.hlo_file import capture_of_hlo_file, is_hlo_proto
from graph2mermaid.sources.keras_model import load_keras_model
from graph2mermaid.sources.loading import explained
from graph2mermaid.sources.saved_model import trace_from_saved_model
from graph2mermaid.sources.signature import parse_inputs
from graph2mermaid.sources.stages import TRACED_ONLY, Further, with_later_stages
from graph2mermaid.sources.target import Resolved, TargetKind
from graph2mermaid.sources.tf_function import graph_of


@dataclass(frozen=True)
class Request:
    """What the user asks of one target beside its name."""

    inputs: tuple[tuple[str, str], ...] = ()
    """The `--input` options, each as `(NAME, SPEC)`."""
    inputs_from: str | None = None
    """`--inputs`: `FILE:NAME` or `MODULE:NAME`."""
    unsafe: bool = False
    """Whether Keras may load code (Lambda layers) from model files."""
    further: Further = TRACED_ONLY
    """The stages that are wanted beside the traced one."""


def capture(resolved: Resolved, request: Request | None = None) -> list[Capture]:
    """Make the captures of one target.

    Args:
        resolved: The target. A capture file is none here: `graph2mermaid.serde` reads it.
        request: What is asked beside it.

    Raises:
        SignatureError: The inputs do not fit the function.
        TargetError: A model file cannot be read, or `--inputs` names nothing that can be used.
        TraceError: TensorFlow could not trace it.
    """
    request = request or Request()
    if resolved.kind in (TargetKind.SAVED_MODEL, TargetKind.GRAPH_DEF, TargetKind.HLO):
        if request.inputs or request.inputs_from:
            raise SignatureError(
                f"{resolved.text} has its shapes in the file; leave --input and --inputs out"
            )
        if resolved.kind is TargetKind.HLO:
            return [capture_of_hlo_file(Path(resolved.obj), resolved.text, resolved.name)]
        return [_capture_of_file(resolved, request.further)]
    inputs = Inputs(
        options=parse_inputs(request.inputs),
        value=_value(request.inputs_from) if request.inputs_from else None,
    )
    function, notes = resolved.obj, resolved.notes
    if resolved.kind is TargetKind.KERAS_FILE:
        function, found = load_keras_model(Path(resolved.obj), unsafe=request.unsafe)
        notes = (*notes, *found)
    with resolved.running():
        target, name = resolved.text, resolved.name
        further = request.further
        return [
            trace_callable(function, inputs, target=target, name=name, notes=notes, further=further)
        ]


def trace_callable(
    function: Any,
    inputs: Inputs | None = None,
    *,
    target: str,
    name: str,
    notes: Sequence[str] = (),
    ask: Ask = ask_on_command_line,
    further: Further = TRACED_ONLY,
) -> Capture:
    """Trace a callable and return what was traced.

    Args:
        function: A tf.function, ConcreteFunction, Keras model or layer, or any other callable.
        inputs: What the user gave for its arguments; the rest is taken from the function itself.
        target: What the user called it, for the capture and for messages.
        name: Its own name.
        notes: What is to be said beside what is found out here.
        ask: Makes the words that tell the user how to give shapes.
        further: The stages that are wanted beside the traced one.

    Raises:
        SignatureError: The inputs do not fit the function.
        TraceError: TensorFlow could not trace it.
    """
    traced = trace_of(function, inputs or Inputs(), name=target, ask=ask)
    graph = graph_of(
        traced.concrete,
        name=name,
        python_function=traced.python_function,
        names=traced.names,
    )
    graphs = {Stage.TRACED: graph}
    found = Capture(target, name, graphs, environment(), notes=(*notes, *traced.notes))
    return with_later_stages(found, traced, further)


def _capture_of_file(resolved: Resolved, further: Further) -> Capture:
    path = Path(resolved.obj)
    concrete = None
    if resolved.kind is TargetKind.SAVED_MODEL:
        graph, notes, concrete = trace_from_saved_model(path, resolved.signature or None)
        missing = "TensorFlow cannot load the model"
    else:
        try:
            graph, notes = graph_from_file(path)
        except TargetError:
            if is_hlo_proto(path):  # by another name than *.hlo.pb
                return capture_of_hlo_file(path, resolved.text, resolved.name)
            raise
        missing = "a graph file holds no function that could be optimized; a SavedModel does"
    found = Capture(
        resolved.text,
        resolved.name,
        {Stage.TRACED: graph},
        environment(),
        notes=(*resolved.notes, *notes),
    )
    if concrete is not None:
        return with_later_stages(found, Traced(concrete), further)
    if further.asked:
        return replace(found, notes=(*found.notes, f"{GRAPPLER_NOTE} {missing}"))
    return found


def _value(text: str) -> Any:
    """Return what `--inputs` names; a function is called for it."""
    try:
        value = _named_value(text)
    except TargetError as error:
        raise TargetError(f"--inputs {text}: {error}") from error
    if value is None:
        raise SignatureError(f"--inputs {text}: there are no arguments in it, only None")
    return value


def _named_value(text: str) -> Any:
    name = targets.parse(text)
    loaded = targets.load(name)
    if not name.attribute:
        raise TargetError(f"name what holds the arguments: --inputs {text}:example_args")
    value = targets.look_up(name, loaded)
    if callable(value) and not hasattr(value, "dtype"):
        with loaded.home.entered(loaded.shown), explained(text):
            return value()
    return value
