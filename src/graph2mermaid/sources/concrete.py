"""A fresh trace (ConcreteFunction) of anything that can be called.

What was asked for is always traced anew: `get_concrete_function` on the user's own tf.function may
return an older trace that is more general, or that saw another state of the program.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from graph2mermaid.errors import SignatureError
from graph2mermaid.sources.arguments import (
    Arguments,
    Ask,
    ShapesNeededError,
    ask_on_command_line,
    choose,
)
from graph2mermaid.sources.callees import (
    Parts,
    callee_of,
    is_orphan,
    python_function_of,
    take_apart,
)
from graph2mermaid.sources.examples import Places, that_work, unknown_ranks
from graph2mermaid.sources.failures import trace_error
from graph2mermaid.sources.fitting import that_fit
from graph2mermaid.sources.keras_call import calling, is_layer
from graph2mermaid.sources.names import function_name
from graph2mermaid.sources.objects import is_concrete_function, is_tf_function
from graph2mermaid.sources.parameters import (
    Callee,
    example_places,
)
from graph2mermaid.sources.signature import EXAMPLE, Given, parse_inputs, path_text
from graph2mermaid.sources.specs import as_tf
from graph2mermaid.sources.traces import existing_traces, loaded_traces, note_on_others
from graph2mermaid.sources.undisturbed import undisturbed


@dataclass(frozen=True)
class Inputs:
    """What the user gave for a function's arguments."""

    args: tuple[Any, ...] = ()
    """Positional values or TypeSpecs."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Sequence[Given]] = field(default_factory=dict)
    """What `--input` says, by parameter."""
    value: Any = None
    """What `--inputs` holds: all arguments in one value, or None."""

    def __bool__(self) -> bool:
        """Tell whether anything was given."""
        return bool(self.args or self.kwargs or self.options) or self.value is not None


def callable_name(function: Any) -> str:
    """Return what to call a function that was not named by a target."""
    traces = [function] if is_concrete_function(function) else loaded_traces(function)
    if traces:
        name = traces[0].name
        return function_name(name.decode() if isinstance(name, bytes) else name)
    inner = take_apart(function).function
    while isinstance(inner, functools.partial):
        inner = inner.func
    if is_layer(inner):
        return str(inner.name)
    found = getattr(python_function_of(inner), "__name__", None) or getattr(inner, "name", None)
    return found if isinstance(found, str) else type(inner).__name__


class Traced(NamedTuple):
    """A ConcreteFunction, and what a reader must know of it."""

    concrete: Any
    notes: tuple[str, ...] = ()
    python_function: Any = None
    names: Mapping[str, str] = MappingProxyType({})
    """The user's own names of places in arguments: `left` for `inputs[0]`."""
    arguments: Arguments | None = None
    """What it was traced with; None when it was a trace already."""
    has_values: bool = False
    """Whether the user gave values, not only types."""


def trace_of(function: Any, inputs: Inputs, *, name: str, ask: Ask = ask_on_command_line) -> Traced:
    """Trace a callable anew; what is a trace already is returned as it is.

    Raises:
        SignatureError: The inputs do not fit the function.
        TraceError: TensorFlow could not trace it.
    """
    traces = [function] if is_concrete_function(function) else loaded_traces(function)
    if traces is not None:
        return _existing(function, traces, inputs, name)
    parts = take_apart(function)
    python_function = python_function_of(parts.function)
    if is_orphan(python_function):
        raise SignatureError(f"the object of the method {name} is gone; keep it in a variable")
    attempt = _Attempt(parts, callee_of(parts, name), inputs, ask)
    with undisturbed() as notes:
        try:
            chosen = attempt.arguments()
        except ShapesNeededError as error:
            raise _with_examples_that_work(error, attempt) from None
        try:
            concrete = _trace(parts, attempt.callee, chosen)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            advice = _advice(attempt, chosen, error)
            raise trace_error(
                error, name, python_function, shown=chosen.shown, advice=advice
            ) from error
    if chosen.assumed and ask is ask_on_command_line:
        chosen = replace(
            attempt, callee=_with_examples_that_fit(attempt, chosen, concrete)
        ).arguments()
    others: tuple[str, ...] = ()
    if is_tf_function(parts.function):
        others = note_on_others(parts.function, existing_traces(parts.function), concrete)
    return Traced(
        concrete,
        (*chosen.notes, *others, *notes),
        python_function,
        _names(attempt.callee),
        chosen,
        inputs.value is not None or bool(inputs.args or inputs.kwargs),
    )


def _existing(function: Any, traces: Sequence[Any], inputs: Inputs, name: str) -> Traced:
    """Return the first of these traces as it is."""
    if not traces:
        raise SignatureError(f"{name} was saved without any trace; there is nothing to show")
    if inputs:
        raise SignatureError(
            f"{name} is traced already, so it cannot be traced for other inputs; give none"
        )
    notes = note_on_others(function, traces, traces[0]) if len(traces) > 1 else ()
    return Traced(traces[0], notes)


def _names(callee: Callee) -> dict[str, str]:
    """Return the names of places that have only a number; a parameter, or a key, is a name."""
    return {
        path_text(parameter, path): alias
        for alias, (parameter, path) in callee.aliases.items()
        if path and isinstance(path[-1], int) and alias not in callee.signature.parameters
    }


def _open_parameters(callee: Callee, chosen: Arguments) -> list[str]:
    """Return the parameters that nothing was given for, and nothing known of."""
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        name
        for name, parameter in callee.signature.parameters.items()
        if (name in chosen.assumed and name not in callee.derived)
        or (
            parameter.kind in variadic and name in callee.examples and name not in chosen.parameters
        )
    ]


def _advice(attempt: _Attempt, chosen: Arguments, error: BaseException) -> str:
    """Say what to give instead of what was assumed.

    On the command line it is tried first. In Python the objects live on after an error, and
    would be built by a trial.
    """
    if type(error).__name__ == "UnliftableError":
        return "the initial value of a variable may not depend on the arguments"
    places = example_places(attempt.callee, _open_parameters(attempt.callee, chosen))
    if not places:
        return ""
    if attempt.ask is not ask_on_command_line:
        return attempt.ask(places, or_values=True)
    found = that_work(unknown_ranks(places), attempt.failure)
    return attempt.ask(found, or_values=True) if found else _VALUES


_VALUES = "give values with --inputs FILE:NAME"


def _with_examples_that_work(error: ShapesNeededError, attempt: _Attempt) -> SignatureError:
    """Return the error with shapes that a copy of the layer could be traced with."""
    callee = attempt.callee
    if attempt.ask is not ask_on_command_line or callee.duplicate is None:
        return error
    duplicate = callee.duplicate

    def failure(places: Places) -> BaseException | None:
        parts = take_apart(duplicate())
        another = replace(attempt, parts=parts, callee=callee_of(parts, callee.name))
        return another.failure(places)

    try:
        found = that_work(error.places, failure)
    except Exception:  # there can be no copy: so it is not tried
        return error
    advice = attempt.ask(found) if found else _VALUES
    return SignatureError(f"{callee.name} is {callee.needs_shapes}; {advice}")


def _with_places(
    options: Mapping[str, Sequence[Given]], places: Places
) -> dict[str, Sequence[Given]]:
    """Add places as they would be typed."""
    typed = parse_inputs((name, str(spec)) for name, spec in places.items())
    return {name: [*options.get(name, ()), *typed.get(name, ())] for name in {**options, **typed}}


def _with_examples_that_fit(attempt: _Attempt, chosen: Arguments, concrete: Any) -> Callee:
    """Return the callee with examples for what was assumed that its graph takes."""
    callee = attempt.callee
    places = {name: EXAMPLE for name in chosen.assumed if not callee.examples.get(name)}
    found = that_fit(concrete, places)
    return replace(
        callee, examples={**callee.examples, **{name: {name: spec} for name, spec in found.items()}}
    )


@dataclass(frozen=True)
class _Attempt:
    """A function, and what was given for its arguments."""

    parts: Parts
    callee: Callee
    inputs: Inputs
    ask: Ask

    def arguments(self, places: Places = MappingProxyType({})) -> Arguments:
        """Decide on every argument, with these places as if they were typed too."""
        args, kwargs = _with_value(self.inputs, self.callee)
        options = _with_places(self.inputs.options, places)
        return choose(self.callee, args, kwargs, options, ask=self.ask)

    def failure(self, places: Places) -> BaseException | None:
        """Trace with these places, and return what goes wrong; what it prints was printed before."""
        silence = io.StringIO()
        try:
            with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
                _trace(self.parts, self.callee, self.arguments(places))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return error
        return None


def _with_value(inputs: Inputs, callee: Callee) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Take the value of `--inputs` as arguments.

    A tuple or list is the positional arguments, a dict whose keys are parameter names the keyword
    arguments, anything else the single argument.
    """
    value = as_tf(inputs.value)
    if value is None:
        return as_tf(inputs.args), as_tf(inputs.kwargs)
    if isinstance(value, tuple | list):
        return value, {}
    if isinstance(value, Mapping) and value and set(value) <= set(callee.signature.parameters):
        return (), value
    return (value,), {}


def _trace(parts: Parts, callee: Callee, chosen: Arguments) -> Any:
    """Make a new tf.function of a callable, and trace it."""
    import tensorflow as tf

    function = parts.function
    args, kwargs = (*parts.args, *chosen.args), {**parts.kwargs, **chosen.kwargs}
    if is_tf_function(function):
        fresh = function._clone(function.python_function)
        if chosen.overridden:
            fresh = _without_input_signature(function)
        elif callee.input_signature is not None and not parts.bound:
            args, kwargs = (), {}
    elif is_layer(function):
        positional = list(inspect.signature(function.call).parameters)[: len(parts.args)]
        fresh = tf.function(calling(function, {*positional, *parts.kwargs, *chosen.parameters}))
    else:
        fresh = tf.function(function)
    return fresh.get_concrete_function(*args, **kwargs)


def _without_input_signature(function: Any) -> Any:
    """Return a tf.function like another one that takes any arguments.

    The options are private attributes, the same on 2.9.3 and 2.21.0.
    """
    import tensorflow as tf

    fresh = tf.function(
        function.python_function,
        autograph=function._autograph,
        jit_compile=function._jit_compile,
        reduce_retracing=function._reduce_retracing,
        experimental_autograph_options=function._experimental_autograph_options,
    )
    for option in ("_attributes", "_implements", "_shared_rendezvous"):
        if hasattr(function, option):
            setattr(fresh, option, getattr(function, option))
    return fresh
