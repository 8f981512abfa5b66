"""What can be traced in a file or module of the user's, with signatures."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from graph2mermaid.sources.keras_call import is_layer
from graph2mermaid.sources.loading import Loaded
from graph2mermaid.sources.objects import (
    called_function,
    is_concrete_function,
    is_keras_model,
    is_tf_function,
    is_tf_module,
    is_traceable,
)


@dataclass(frozen=True)
class Candidate:
    """Something that can be named after the colon."""

    path: str
    """`multiply_add`, `net.forward`."""
    kind: str
    """`tf.function`, `function`, `tf.Module`, `Keras model`."""
    signature: str
    """`(x: float32[?,4], k=2.0)`."""


def candidates(loaded: Loaded) -> list[Candidate]:
    """Return what can be traced in a module, in the order it was defined.

    Names with a leading underscore are left out, and so is what the module imported.
    """
    return list(_candidates(loaded.module))


def signature_text(obj: Any) -> str:
    """Return the arguments that a function takes, with shapes where the function says them."""
    if is_concrete_function(obj):
        return _trace_text(obj)
    specs = getattr(obj, "input_signature", None) if is_tf_function(obj) else None
    function = obj.python_function if is_tf_function(obj) else obj
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return "(...)"
    if parameters and is_tf_function(obj) and parameters[0].name == "self":
        parameters = parameters[1:]  # a bound tf.function shows the function of the class
    if specs is None:
        return f"({', '.join(_parameter_text(p) for p in parameters)})"
    texts = [_spec_text(spec) for spec in specs]
    names = [p.name for p in parameters]
    names += [f"arg{i}" for i in range(len(names), len(texts))]
    return f"({', '.join(f'{name}: {text}' for name, text in zip(names, texts, strict=False))})"


def _trace_text(concrete: Any) -> str:
    args, kwargs = concrete.structured_input_signature
    named = {getattr(spec, "name", None) or f"arg{i}": spec for i, spec in enumerate(args)} | kwargs
    return f"({', '.join(f'{name}: {_spec_text(spec)}' for name, spec in named.items())})"


def _candidates(module: ModuleType) -> Iterator[Candidate]:
    seen: set[int] = set()
    for name, obj in list(vars(module).items()):
        if name.startswith("_") or isinstance(obj, (type, ModuleType)) or id(obj) in seen:
            continue
        if not _is_of(module, obj):
            continue
        seen.add(id(obj))
        kind = _kind(obj)
        if kind is not None:
            yield Candidate(name, kind, _signature_of(obj))
        if is_tf_module(obj) and not is_keras_model(obj):
            yield from _methods(name, obj)


def _kind(obj: object) -> str | None:
    if is_keras_model(obj):
        return "Keras model"
    if is_tf_function(obj):
        return "tf.function"
    if is_concrete_function(obj):
        return "concrete function"
    if not is_traceable(obj):
        return None
    if is_tf_module(obj):
        return "tf.Module"
    if isinstance(obj, functools.partial):
        return "partial"
    return "function" if inspect.isroutine(obj) else type(obj).__name__


def _signature_of(obj: Any) -> str:
    if is_keras_model(obj):
        return _model_signature(obj)
    return signature_text(called_function(obj))


def _model_signature(model: Any) -> str:
    try:
        inputs = list(model.inputs or ())
    except (AttributeError, TypeError, ValueError):  # not built yet
        inputs = []
    texts = [f"{getattr(i, 'name', '')}: {_spec_text(i)}" for i in inputs]
    return f"({', '.join(texts)})" if texts else "(not built: give --input)"


def _methods(name: str, module: object) -> Iterator[Candidate]:
    """Yield an object's own methods, in the order they were defined.

    Of a Keras layer only the tf.functions: the layer itself is what its `call` computes.
    """
    seen: set[str] = set()
    plain = not is_layer(module)
    for cls in type(module).__mro__:
        if cls.__module__.partition(".")[0] in ("tensorflow", "keras", "tf_keras", "builtins"):
            return
        for attribute, value in vars(cls).items():
            if attribute.startswith("_") or attribute in seen:
                continue
            seen.add(attribute)
            if is_tf_function(value) or (plain and inspect.isfunction(value)):
                kind = "tf.function" if is_tf_function(value) else "method"
                bound = getattr(module, attribute)
                yield Candidate(f"{name}.{attribute}", kind, signature_text(bound))


def _is_of(module: ModuleType, obj: Any) -> bool:
    """Tell whether an object was made in a module, rather than imported into it."""
    if is_tf_function(obj):
        obj = obj.python_function
    if isinstance(obj, functools.partial) or not inspect.isroutine(obj):
        return not _is_library_object(obj)
    return getattr(obj, "__module__", None) == module.__name__


def _is_library_object(obj: Any) -> bool:
    """Tell whether an object is a wrapper from a library, such as a NumPy ufunc."""
    return not is_tf_module(obj) and type(obj).__module__.partition(".")[0] in (
        "numpy",
        "builtins",
        "typing",
    )


def _parameter_text(parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    text = str(parameter.replace(annotation=inspect.Parameter.empty))
    if type(annotation).__name__ == "TensorSpec":
        return text.replace(parameter.name, f"{parameter.name}: {_spec_text(annotation)}", 1)
    return text


def _spec_text(spec: Any) -> str:
    """Return `float32[?,4]` for whatever has a dtype and a shape, else the type's name."""
    dtype = getattr(spec, "dtype", None)
    if isinstance(spec, dict):
        return "{" + ", ".join(f"{k!r}: {_spec_text(v)}" for k, v in spec.items()) + "}"
    if isinstance(spec, (list, tuple)):
        return f"({', '.join(map(_spec_text, spec))})"
    if dtype is None:
        return type(spec).__name__
    try:
        dimensions = ["?" if n is None else str(n) for n in spec.shape]
    except (TypeError, ValueError):  # unknown rank
        dimensions = ["..."]
    return f"{getattr(dtype, 'name', dtype)}[{','.join(dimensions)}]"
