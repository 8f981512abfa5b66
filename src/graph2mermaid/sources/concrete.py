"""A fresh trace (ConcreteFunction) of anything that can be called.

What was asked for is always traced anew: `get_concrete_function` on the user's own tf.function may
return an older trace that is more general, or that saw another state of the program.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from graph2mermaid.errors import SignatureError
from graph2mermaid.sources.arguments import Arguments, Ask, ask_on_command_line, choose
from graph2mermaid.sources.failures import trace_error
from graph2mermaid.sources.keras_call import calling, is_layer, layer_callee
from graph2mermaid.sources.names import function_name
from graph2mermaid.sources.objects import is_concrete_function, is_tf_function
from graph2mermaid.sources.parameters import Callee, Known, by_parameter, objects_among
from graph2mermaid.sources.signature import EXAMPLE, Given
from graph2mermaid.sources.specs import as_tf
from graph2mermaid.sources.traces import existing_traces, loaded_traces, note_on_others


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
    inner = _take_apart(function).function
    while isinstance(inner, functools.partial):
        inner = inner.func
    if is_layer(inner):
        return str(inner.name)
    found = getattr(_python_function(inner), "__name__", None) or getattr(inner, "name", None)
    return found if isinstance(found, str) else type(inner).__name__


class Traced(NamedTuple):
    """A ConcreteFunction, and what a reader must know of it."""

    concrete: Any
    notes: tuple[str, ...] = ()
    python_function: Any = None


def trace_of(function: Any, inputs: Inputs, *, name: str, ask: Ask = ask_on_command_line) -> Traced:
    """Trace a callable anew; what is a trace already is returned as it is.

    Raises:
        SignatureError: The inputs do not fit the function.
        TraceError: TensorFlow could not trace it.
    """
    traces = [function] if is_concrete_function(function) else loaded_traces(function)
    if traces is not None:
        return _existing(function, traces, inputs, name)
    parts = _take_apart(function)
    python_function = _python_function(parts.function)
    if _is_orphan(python_function):
        raise SignatureError(f"the object of the method {name} is gone; keep it in a variable")
    callee = _callee(parts, name)
    args, kwargs = _with_value(inputs, callee)
    chosen = choose(callee, args, kwargs, inputs.options, ask=ask)
    with _undisturbed() as notes:
        try:
            concrete = _trace(parts, callee, chosen)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            advice = _advice(chosen.assumed, error, ask)
            raise trace_error(
                error, name, python_function, shown=chosen.shown, advice=advice
            ) from error
    others: tuple[str, ...] = ()
    if is_tf_function(parts.function):
        others = note_on_others(parts.function, existing_traces(parts.function), concrete)
    return Traced(concrete, (*chosen.notes, *others, *notes), python_function)


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


def _advice(assumed: Sequence[str], error: BaseException, ask: Ask) -> str:
    """Say what to give instead of what was assumed, parts of a dict where it is one."""
    if type(error).__name__ == "UnliftableError":
        return "the initial value of a variable may not depend on the arguments"
    key = re.search(r"are valid indices, got ('[^']+')", str(error))
    if key and len(assumed) == 1:
        return ask({f"{assumed[0]}[{key[1]}]": EXAMPLE}, or_values=True)
    return ask(dict.fromkeys(assumed, EXAMPLE), or_values=True) if assumed else ""


class _Parts(NamedTuple):
    """A callable without the `functools.partial` around it."""

    function: Any
    """A tf.function, a Keras layer, or any other callable."""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = MappingProxyType({})

    @property
    def bound(self) -> bool:
        """Tell whether some arguments are given already."""
        return bool(self.args or self.kwargs)


def _take_apart(function: Any) -> _Parts:
    """Look for the tf.function or the layer inside a callable.

    Wrapping these once more would hide their ops behind a call.
    """
    inner = function
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    while isinstance(inner, functools.partial):
        args, kwargs = (*inner.args, *args), {**inner.keywords, **kwargs}
        inner = inner.func
    if _is_layer_method(inner, "__call__"):
        inner = inner.__self__
    elif is_tf_function(type(inner).__call__) and not is_layer(inner):
        inner = inner.__call__
    if is_tf_function(inner) or is_layer(inner):
        return _Parts(inner, args, kwargs)
    return _Parts(function)


def _python_function(function: Any) -> Any:
    if is_tf_function(function):
        return function.python_function
    return function.call if is_layer(function) else function


def _is_orphan(python_function: Any) -> bool:
    """Tell whether a tf.function is a method of an object that was thrown away.

    TensorFlow keeps only a weak reference (private TfMethodTarget, on both versions).
    """
    bound_to: Any = getattr(getattr(python_function, "__wrapped__", None), "__self__", None)
    return hasattr(bound_to, "weakrefself_target__") and bound_to.target is None


def _callee(parts: _Parts, name: str) -> Callee:
    """Describe a callable's arguments."""
    function, python_function = parts.function, _python_function(parts.function)
    layer = _layer_in(function)
    described = layer_callee(layer, name) if layer is not None else None
    if described is None:
        described = Callee(name, _signature(python_function, name))
    if is_tf_function(function):
        described = _as_tf_function_says(function, described)
    return replace(
        described,
        signature=_without_bound(described.signature, parts),
        namespace=getattr(inspect.unwrap(python_function), "__globals__", {}),
    )


def _layer_in(function: Any) -> Any:
    """Return a layer that is to be called itself, through its `call`, or by a tf.function."""
    inner = _python_function(function) if is_tf_function(function) else function
    inner = inner.__self__ if _is_layer_method(inner, "call") else inner
    return inner if is_layer(inner) else None


def _is_layer_method(function: Any, name: str) -> bool:
    return getattr(function, "__name__", "") == name and is_layer(
        getattr(function, "__self__", None)
    )


def _signature(python_function: Any, name: str) -> inspect.Signature:
    try:
        return inspect.signature(python_function)
    except (TypeError, ValueError):
        raise SignatureError(
            f"{name} does not say what its parameters are; name a Python function that calls it"
        ) from None


def _as_tf_function_says(function: Any, callee: Callee) -> Callee:
    """Add what a tf.function knows of its arguments: `input_signature`, or its first trace."""
    if function.input_signature is not None:
        own = by_parameter(callee.signature, function.input_signature, {})
        return replace(callee, known=[Known(own, fixed=True)], input_signature=own)
    traces = existing_traces(function)
    if not traces:
        return callee
    args, kwargs = traces[0].structured_input_signature
    first = Known(by_parameter(callee.signature, args, kwargs), "its first existing trace")
    objects = objects_among(callee.signature, args, kwargs)
    return replace(callee, known=[first, *callee.known], objects=objects)


def _without_bound(signature: inspect.Signature, parts: _Parts) -> inspect.Signature:
    """Return the signature of a partial: what is bound by position is gone, by name a default."""
    if not parts.bound:
        return signature

    def stand_in() -> None: ...

    stand_in.__signature__ = signature  # type: ignore[attr-defined]
    return inspect.signature(functools.partial(stand_in, *parts.args, **parts.kwargs))


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


def _trace(parts: _Parts, callee: Callee, chosen: Arguments) -> Any:
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


@contextlib.contextmanager
def _undisturbed() -> Iterator[list[str]]:
    """Trace as TensorFlow would by default, and leave no mark on the process's random numbers.

    Yields:
        A list for notes, filled when the context is entered.
    """
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.eager import context

    notes: list[str] = []
    eagerly = tf.config.functions_run_eagerly()
    if eagerly:
        notes.append(
            "tf.config.run_functions_eagerly(True) is set: calls run op by op, without this graph;"
            " it was traced with the switch off"
        )
        tf.config.run_functions_eagerly(False)
    # Initial values of variables made on the first call are drawn while tracing. TensorFlow's own
    # generator is private, the same on 2.9.3 and 2.21.0, and absent until it is used.
    rng = getattr(context.context(), "_rng", None)
    states = random.getstate(), np.random.get_state(), rng and rng.getstate()
    try:
        with _own_conversions():
            yield notes
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        if rng:
            rng.setstate(states[2])
        tf.config.run_functions_eagerly(eagerly)


@contextlib.contextmanager
def _own_conversions() -> Iterator[None]:
    """Let AutoGraph convert every function anew.

    It keeps what it has converted by code object, and code objects are equal when their text and
    line are, whatever their file: of two checkouts of a program the second would be shown with
    the lines of the first. Private, the same on 2.9.3 and 2.21.0.
    """
    from tensorflow.python.autograph.impl import api
    from tensorflow.python.autograph.pyct import cache

    transpiler = api._TRANSPILER
    kept = transpiler._cache
    transpiler._cache = cache.CodeObjectCache()
    try:
        yield
    finally:
        transpiler._cache = kept
