"""What Keras knows of a layer's or a model's arguments, for Keras 2, tf_keras and Keras 3."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from graph2mermaid.graph import TensorSpec
from graph2mermaid.sources.keras_build import duplicate
from graph2mermaid.sources.nests import is_nest, leaves_with_paths, map_with_paths
from graph2mermaid.sources.parameters import Callee, Known
from graph2mermaid.sources.signature import EXAMPLE, path_text
from graph2mermaid.sources.specs import without_name
from graph2mermaid.sources.uses import parts_used

_KERAS = ("keras.", "tf_keras.")
_NUMBERED = re.compile(r"(?:input|input_layer|keras_tensor|inputs|args)(?:_\d+)?|.*_input(?:_\d+)?")
"""Names that Keras makes up for input layers; they depend on what was made before."""


def is_layer(value: Any) -> bool:
    """Tell whether something is a Keras layer or model, without importing any Keras."""
    return any(
        base.__name__ == "Layer" and base.__module__.startswith(_KERAS)
        for base in type(value).__mro__
    )


def layer_callee(layer: Any, name: str) -> Callee | None:
    """Describe the arguments of a layer or model, or return None when `call` says too little."""
    signature = _signature(layer)
    first = next(iter(signature.parameters.values()), None)
    if first is None or first.kind is first.VAR_POSITIONAL:
        return None
    inputs = _model_inputs(layer)
    if inputs is not None:
        known = [Known({first.name: inputs}, fixed=True)]
    else:
        shapes = _built_with(layer, list(signature.parameters))
        known = [Known(shapes, "the shapes it was built with", assumed=True)] if shapes else []
    what = "model" if hasattr(layer, "compile") else "layer"
    parts = parts_used(layer.call, first.name)
    example = _first_example(layer)
    return Callee(
        name,
        signature,
        known,
        aliases=_aliases(first.name, inputs),
        examples={first.name: {path_text(first.name, path): example for path in parts or [()]}},
        duplicate=functools.partial(duplicate, layer),
        needs_shapes="" if getattr(layer, "built", True) else f"a Keras {what} that is not built",
    )


def calling(layer: Any, given: Collection[str]) -> Callable[..., Any]:
    """Return a function that calls a layer and has those parameters of its `call`.

    Every Keras layer's `__call__` takes `(*args, **kwargs)`: traced directly, its arguments would
    be called `args_0`.

    Args:
        layer: The layer or model.
        given: The parameters it is traced with; the rest is left to Keras.
    """
    signature = _signature(layer)
    first = next(iter(signature.parameters), "")
    if not first or signature.parameters[first].kind is inspect.Parameter.VAR_POSITIONAL:
        return layer  # type: ignore[no-any-return]
    shown = inspect.Signature(
        [
            parameter.replace(annotation=parameter.empty)
            for parameter in signature.parameters.values()
            if parameter.name in given
        ]
    )

    def call(*args: Any, **kwargs: Any) -> Any:
        by_name = dict(shown.bind(*args, **kwargs).arguments)
        for parameter in shown.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                by_name.update(by_name.pop(parameter.name, {}))
        return layer(by_name.pop(first), **by_name)

    call.__signature__ = shown  # type: ignore[attr-defined]
    return call


def _signature(layer: Any) -> inspect.Signature:
    """Return the signature of `call`, without the `**kwargs` that Keras' own models ignore."""
    signature = inspect.signature(layer.call)
    if not layer.call.__module__.startswith(_KERAS):
        return signature
    parameters = signature.parameters.values()
    return signature.replace(parameters=[p for p in parameters if p.kind is not p.VAR_KEYWORD])


def _model_inputs(model: Any) -> Any:
    """Return the specs of a functional or sequential model's inputs in their structure, or None."""
    # On Keras 3 a sequential model has `inputs` and no `input`; an unbuilt one raises for both.
    try:
        tensors = getattr(model, "inputs", None)
    except (AttributeError, ValueError):
        return None
    if not tensors or not hasattr(model, "compile"):
        return None
    try:
        structure = model.input
    except (AttributeError, ValueError):
        structure = tensors[0] if len(tensors) == 1 else list(tensors)
    return map_with_paths(lambda _, tensor: _spec(tensor), structure)


def _spec(tensor: Any) -> Any:
    """Return what a symbolic Keras tensor stands for, under its name where a user chose that."""
    import tensorflow as tf

    shape = tf.TensorShape(tensor.shape)
    spec = getattr(tensor, "type_spec", None)  # Keras 2 and tf_keras
    if spec is None and getattr(tensor, "sparse", False):
        spec = tf.SparseTensorSpec(shape, tensor.dtype)
    elif spec is None and getattr(tensor, "ragged", False):
        spec = tf.RaggedTensorSpec(shape, tensor.dtype, ragged_rank=tensor.ragged_rank or 1)
    if spec is not None and type(spec) is not tf.TensorSpec:
        return spec
    name = str(tensor.name).partition(":")[0]
    return tf.TensorSpec(shape, tensor.dtype, None if _NUMBERED.fullmatch(name) else name)


def _aliases(parameter: str, inputs: Any) -> dict[str, tuple[str, tuple[str | int, ...]]]:
    """Let the names of input layers stand for their place: `features` for `inputs[0]`."""
    if inputs is None:
        return {}
    return {
        spec.name: (parameter, path)
        for path, spec in leaves_with_paths(inputs)
        if getattr(spec, "name", None) and spec.name != parameter
    }


def _first_example(layer: Any) -> TensorSpec:
    """Return an example of what a layer takes: whole numbers where it looks them up first."""
    while getattr(layer, "layers", None) and type(layer).__name__ == "Sequential":
        layer = layer.layers[0]
    looks_up = type(layer).__name__ == "Embedding"
    return TensorSpec("int32", EXAMPLE.shape) if looks_up else EXAMPLE


def _built_with(layer: Any, parameters: Sequence[str]) -> dict[str, Any]:
    """Return what a layer was first called with, its batch size left open."""
    if not getattr(layer, "built", False):
        return {}
    saved = layer.save_spec() if hasattr(layer, "save_spec") else None  # Keras 2 models
    if saved is not None:
        args, kwargs = saved
        found = dict(zip(parameters, args, strict=False)) | dict(kwargs)
        return {
            name: map_with_paths(lambda _, spec: without_name(spec), value)
            for name, value in found.items()
            if name in parameters
        }
    # Private: `_build_shapes_dict` (Keras 3.15), `_build_input_shape` (Keras 2.9, tf_keras 2.21).
    shapes = getattr(layer, "_build_shapes_dict", None)
    if not shapes:
        shapes = {"input_shape": getattr(layer, "_build_input_shape", None)}
    by_parameter = {name.removesuffix("_shape"): shape for name, shape in shapes.items()}
    if len(by_parameter) == 1 and not set(by_parameter) & set(parameters):
        by_parameter = {parameters[0]: next(iter(by_parameter.values()))}
    return {
        name: _spec_of_shape(shape)
        for name, shape in by_parameter.items()
        if name in parameters and shape is not None
    }


def _spec_of_shape(shape: Any) -> Any:
    import tensorflow as tf

    if isinstance(shape, Mapping):
        return {key: _spec_of_shape(inner) for key, inner in shape.items()}
    if isinstance(shape, list | tuple) and any(is_nest(inner) for inner in shape):
        return type(shape)(_spec_of_shape(inner) for inner in shape)
    sizes = list(tf.TensorShape(shape))
    return tf.TensorSpec([None, *sizes[1:]] if sizes else [], tf.float32)
