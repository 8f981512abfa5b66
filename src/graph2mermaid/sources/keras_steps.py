"""One step of `model.fit`, `evaluate` or `predict`, as a function that can be traced.

`model.train_function` loops over data in Python; what TensorFlow runs is `model.train_step`, which
takes everything as one tuple. Here it becomes `train_step(x, y)`.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graph2mermaid.errors import TargetError

STEPS = ("train_step", "test_step", "predict_step")


@dataclass(frozen=True)
class KerasStep:
    """A step of a model, and what had to be assumed about its arguments."""

    function: Callable[..., Any]
    notes: tuple[str, ...] = ()


def step_function(model: Any, name: str, text: str) -> KerasStep:
    """Make `step(x, y)` (or `step(x)`) of a Keras model's method.

    The shapes a built model knows are annotations of the parameters.

    Args:
        model: A Keras model.
        name: One of `STEPS`.
        text: The target as typed, for messages.

    Raises:
        TargetError: The model has to be compiled first.
    """
    method = getattr(model, name)
    own = not type(model).__dict__.get(name, method).__module__.startswith(("keras", "tf_keras"))
    if name == "train_step" and not own and not _is_compiled(model):
        raise TargetError(f"{text}: the model is not compiled; call its compile() in the file")
    labeled = name != "predict_step" and not (own and _takes_x_alone(method))

    def with_labels(x: Any, y: Any) -> Any:
        _build(model, x, name)
        return method((x, y))

    def without_labels(x: Any) -> Any:
        _build(model, x, name)
        return method(x)

    step = with_labels if labeled else without_labels
    step.__name__ = step.__qualname__ = name
    x, y = _known_specs(model)
    step.__annotations__ = {key: spec for key, spec in (("x", x), ("y", y)) if spec is not None}
    if not labeled or y is None:
        return KerasStep(step)
    shape = ",".join("?" if n is None else str(n) for n in y.shape)
    note = (
        f"y is taken to be {y.dtype.name}[{shape}], as the model's output and loss suggest, "
        "unless --input or --inputs gives it"
    )
    return KerasStep(step, (note,))


def _build(model: Any, x: Any, name: str) -> None:
    """Make the variables before the step is traced, as `fit` does."""
    import tensorflow as tf

    with tf.init_scope():
        if not model.built and getattr(x, "shape", None) is not None and x.shape.rank is not None:
            model.build(x.shape)
        build = getattr(getattr(model, "optimizer", None), "build", None)
        if name == "train_step" and model.built and build is not None:
            build(model.trainable_variables)


def _is_compiled(model: Any) -> bool:
    return bool(getattr(model, "compiled", False) or getattr(model, "_is_compiled", False))


def _known_specs(model: Any) -> tuple[Any, Any]:
    """Return what a model with one input and one output takes as x and y, as far as is known."""
    import tensorflow as tf

    try:
        inputs, outputs = list(model.inputs or ()), list(model.outputs or ())
    except (AttributeError, TypeError, ValueError):  # not built, or subclassed
        return None, None
    x = tf.TensorSpec(inputs[0].shape, inputs[0].dtype) if len(inputs) == 1 else None
    if len(outputs) != 1:
        return x, None
    shape, dtype = tuple(outputs[0].shape), outputs[0].dtype
    loss = getattr(model, "loss", None)
    if "sparse" in str(getattr(loss, "name", None) or getattr(loss, "__name__", loss)).lower():
        shape, dtype = shape[:-1], tf.int32  # class numbers, not one number per class
    return x, tf.TensorSpec(shape, dtype)


def _takes_x_alone(method: Callable[..., Any]) -> bool:
    """Tell whether a user's own step never takes its argument apart, as autoencoders' do not."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    except (OSError, TypeError, SyntaxError):
        return False
    parameters = list(inspect.signature(method).parameters)
    data = parameters[0] if parameters else ""
    return not any(_takes_apart(node, data) for node in ast.walk(tree))


def _takes_apart(node: ast.AST, data: str) -> bool:
    """Tell whether a piece of code is `a, b = ... data ...` or `data[...]`."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Tuple, ast.List)):
        return any(isinstance(n, ast.Name) and n.id == data for n in ast.walk(node.value))
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == data
    )
