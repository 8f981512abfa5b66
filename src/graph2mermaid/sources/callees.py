"""Any callable as what is to be traced: the tf.function or layer inside it, and its arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from graph2mermaid.errors import SignatureError
from graph2mermaid.graph import TensorSpec
from graph2mermaid.sources.keras_call import is_layer, layer_callee
from graph2mermaid.sources.objects import is_tf_function
from graph2mermaid.sources.parameters import (
    DESCRIBED,
    Callee,
    Known,
    by_parameter,
    objects_among,
)
from graph2mermaid.sources.signature import EXAMPLE, path_text
from graph2mermaid.sources.traces import existing_traces
from graph2mermaid.sources.uses import parts_used


class Parts(NamedTuple):
    """A callable without the `functools.partial` around it."""

    function: Any
    """A tf.function, a Keras layer, or any other callable."""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = MappingProxyType({})

    @property
    def bound(self) -> bool:
        """Tell whether some arguments are given already."""
        return bool(self.args or self.kwargs)


def take_apart(function: Any) -> Parts:
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
        return Parts(inner, args, kwargs)
    return Parts(function)


def python_function_of(function: Any) -> Any:
    """Return the Python function of a tf.function or a layer; of any other callable itself."""
    if is_tf_function(function):
        return function.python_function
    return function.call if is_layer(function) else function


def is_orphan(python_function: Any) -> bool:
    """Tell whether a tf.function is a method of an object that was thrown away.

    TensorFlow keeps only a weak reference (private TfMethodTarget, on both versions).
    """
    bound_to: Any = getattr(getattr(python_function, "__wrapped__", None), "__self__", None)
    return hasattr(bound_to, "weakrefself_target__") and bound_to.target is None


def callee_of(parts: Parts, name: str) -> Callee:
    """Describe a callable's arguments."""
    function, python_function = parts.function, python_function_of(parts.function)
    if hasattr(function, DESCRIBED):
        return getattr(function, DESCRIBED)(name)  # type: ignore[no-any-return]
    layer = _layer_in(function)
    described = layer_callee(layer, name) if layer is not None else None
    if described is None:
        signature = _signature(python_function, name)
        described = Callee(name, signature, examples=_examples(python_function, signature))
    if is_tf_function(function):
        described = _as_tf_function_says(function, described)
    return replace(
        described,
        signature=_without_bound(described.signature, parts),
        namespace=getattr(inspect.unwrap(python_function), "__globals__", {}),
    )


def _examples(
    python_function: Any, signature: inspect.Signature
) -> dict[str, Mapping[str, TensorSpec]]:
    """Return what to show for parameters that the function takes apart."""
    found: dict[str, Mapping[str, TensorSpec]] = {}
    for name, parameter in signature.parameters.items():
        numbered = parameter.kind is parameter.VAR_POSITIONAL
        paths = parts_used(python_function, name, numbered=numbered)
        if parameter.kind is parameter.VAR_KEYWORD:
            typed = [path_text(str(path[0]), path[1:]) for path in paths]
        else:
            typed = [path_text(name, path) for path in paths]
        if typed:
            found[name] = dict.fromkeys(typed, EXAMPLE)
    return found


def _layer_in(function: Any) -> Any:
    """Return a layer that is to be called itself, through its `call`, or by a tf.function."""
    inner = python_function_of(function) if is_tf_function(function) else function
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


def _without_bound(signature: inspect.Signature, parts: Parts) -> inspect.Signature:
    """Return the signature of a partial: what is bound by position is gone, by name a default."""
    if not parts.bound:
        return signature

    def stand_in() -> None: ...

    stand_in.__signature__ = signature  # type: ignore[attr-defined]
    return inspect.signature(functools.partial(stand_in, *parts.args, **parts.kwargs))
