"""A symbolic call of a Keras model, as `fit` makes one before it traces: then its variables exist."""

from __future__ import annotations

import copy
import sys
import warnings
from typing import Any

from graph2mermaid.sources.nests import leaves_with_paths, map_with_paths


def output_specs(model: Any, inputs: Any) -> Any:
    """Call a model with symbolic tensors, which makes its variables where it has none yet.

    Args:
        model: A model of Keras 3, tf_keras or the Keras 2 inside TensorFlow.
        inputs: What it is called with: a nest of TypeSpecs or tensors.

    Returns:
        The TensorSpecs of what it returns, in its structure; None where the inputs are no plain
        tensors of a known rank, and so nothing was called.
    """
    import tensorflow as tf

    leaves = [leaf for _, leaf in leaves_with_paths(inputs)]
    if not leaves or not all(_is_plain(leaf) for leaf in leaves):
        return None
    keras = _keras_3_of(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras on models that have no build(); they need none
        if keras is not None:
            symbols = map_with_paths(lambda _, t: _keras_tensor(keras, t), inputs)
            return map_with_paths(lambda _, t: _spec(t), model(symbols))
        with tf.__internal__.FuncGraph("symbolic_call").as_default():
            symbols = map_with_paths(
                lambda _, t: tf.compat.v1.placeholder(t.dtype, tf.TensorShape(t.shape)), inputs
            )
            return map_with_paths(lambda _, t: _spec(t), model(symbols))


def duplicate(model: Any) -> Any:
    """Return a model like one that has no variables yet, which a trial may build.

    Raises:
        Exception: Keras cannot make one, as when a class of the user's takes arguments.
    """
    # Keras copies by configuration, which few classes of users have. Private: what an object was
    # made with, in tf_keras and all versions of Keras 3 so far, but not in Keras 2.9.
    made_with = getattr(model, "_auto_config", None)
    if made_with is None or type(model).__module__.startswith(("keras.", "tf_keras.")):
        return copy.deepcopy(model)
    made = type(model)(**made_with.config)
    if getattr(model, "compiled", False) or getattr(model, "_is_compiled", False):
        made.compile_from_config(model.get_compile_config())
    return made


def variable_paths() -> dict[int, str]:
    """Return the path (`my_model/block/dense/kernel`) of each Keras 3 variable, by its tf.Variable.

    A tf.Variable of Keras 3 is called by its last word and the model; nothing in it leads to the
    Keras variable that holds it, and that may be held anywhere: so all objects are looked through.
    """
    import gc

    keras = sys.modules.get("keras")
    kind = getattr(keras, "Variable", None)
    if not isinstance(kind, type):  # Keras 2, or none
        return {}
    found = (obj for obj in gc.get_objects() if issubclass(type(obj), kind))
    return {id(v._value): str(v.path) for v in found if getattr(v, "_value", None) is not None}


def _is_plain(leaf: Any) -> bool:
    import tensorflow as tf

    if isinstance(leaf, tf.TypeSpec) and not isinstance(leaf, tf.TensorSpec):
        return False
    shape = getattr(leaf, "shape", None)
    return hasattr(leaf, "dtype") and shape is not None and tf.TensorShape(shape).rank is not None


def _keras_3_of(model: Any) -> Any:
    """Return the Keras 3 that a model is of, or None."""
    keras = sys.modules.get("keras")
    if not str(getattr(keras, "__version__", "")).startswith("3"):
        return None
    layer = getattr(getattr(keras, "layers", None), "Layer", None)
    return keras if isinstance(layer, type) and isinstance(model, layer) else None


def _keras_tensor(keras: Any, tensor: Any) -> Any:
    import tensorflow as tf

    shape = tuple(tf.TensorShape(tensor.shape).as_list())
    return keras.KerasTensor(shape, tf.dtypes.as_dtype(tensor.dtype).name)


def _spec(tensor: Any) -> Any:
    import tensorflow as tf

    return tf.TensorSpec(tensor.shape, tensor.dtype)
