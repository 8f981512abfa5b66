"""One step of `model.fit`, `evaluate` or `predict`, as a function that can be traced.

`model.train_function` loops over data in Python; what TensorFlow runs is `model.train_step`, which
takes everything as one tuple. Here it becomes `train_step(x, y)`.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graph2mermaid.errors import TargetError
from graph2mermaid.sources.keras_build import duplicate, output_specs
from graph2mermaid.sources.keras_call import layer_callee
from graph2mermaid.sources.nests import leaves_with_paths, map_with_paths
from graph2mermaid.sources.parameters import DESCRIBED, Callee, Derived
from graph2mermaid.sources.signature import Path

STEPS = ("train_step", "test_step", "predict_step")


def step_function(model: Any, name: str, text: str) -> Callable[..., Any]:
    """Make `step(x, y)` (or `step(x)`) of a Keras model's method.

    What the model knows of its arguments is found by `described_callee`.

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
    whole = own and _takes_x_alone(method)
    labeled = name != "predict_step" and not whole

    def with_labels(x: Any, y: Any) -> Any:
        _build(model, x, name)
        return method((x, y))

    def without_labels(x: Any) -> Any:
        _build(model, x, name)
        return method(x if whole else (x,))  # a list of inputs would be taken for x and y

    step = with_labels if labeled else without_labels
    step.__name__ = step.__qualname__ = name

    def described(called: str) -> Callee:
        def another() -> Callable[..., Any]:
            return step_function(duplicate(model), name, text)

        return replace(_callee(model, labeled, called), duplicate=another)

    setattr(step, DESCRIBED, described)
    return step


def _callee(model: Any, labeled: bool, name: str) -> Callee:
    """Describe the arguments of a step: x is what the model is called with."""
    parameters = ["x", "y"] if labeled else ["x"]
    signature = inspect.Signature(
        [inspect.Parameter(p, inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in parameters]
    )
    derived = {"y": Derived(functools.partial(_labels, model), _WHY)} if labeled else {}
    described = layer_callee(model, name)
    if described is None:
        return Callee(name, signature, derived=derived)
    first = next(iter(described.signature.parameters))
    examples = described.examples.get(first, {})
    return replace(
        described,
        signature=signature,
        known=[
            replace(known, values={"x": known.values[first]})
            for known in described.known
            if first in known.values
        ],
        aliases={alias: ("x", path) for alias, (_, path) in described.aliases.items()},
        examples={"x": {f"x{place.removeprefix(first)}": s for place, s in examples.items()}},
        derived=derived,
    )


_WHY = "the model's output and loss suggest"


def _build(model: Any, x: Any, name: str) -> None:
    """Make the variables before the step is traced, as `fit` does."""
    import tensorflow as tf

    with tf.init_scope():
        if not model.built:
            output_specs(model, x)
        build = getattr(getattr(model, "optimizer", None), "build", None)
        if name == "train_step" and model.built and build is not None:
            build(model.trainable_variables)


def _labels(model: Any, chosen: Mapping[str, Any]) -> Any:
    """Return the specs of what a model is compared with, given its arguments; None if unknown."""
    outputs = _known_outputs(model)
    if outputs is None:
        try:
            outputs = output_specs(model, chosen.get("x"))
        except Exception:  # tracing meets it again, and says what it is
            return None
    if outputs is None:
        return None
    paths = [path for path, _ in leaves_with_paths(outputs)]
    names = list(getattr(model, "output_names", None) or ())
    return map_with_paths(
        lambda path, spec: _label(spec, _loss_at(model, paths.index(path), path, names)), outputs
    )


def _label(spec: Any, loss: Any) -> Any:
    import tensorflow as tf

    shape = tf.TensorShape(spec.shape)
    name = getattr(loss, "name", None) or getattr(loss, "__name__", loss)
    if "sparse" in str(name).lower() and shape.rank:
        return tf.TensorSpec(shape[:-1], tf.int32)  # class numbers, not one number per class
    return tf.TensorSpec(shape, spec.dtype)


def _loss_at(model: Any, index: int, path: Path, names: Sequence[str]) -> Any:
    """Return the loss for one output, out of those that the model was compiled with."""
    loss = getattr(model, "loss", None)
    if isinstance(loss, Mapping):
        keys = [*path, *names[index : index + 1]]
        return next((loss[key] for key in keys if key in loss), None)
    if isinstance(loss, Sequence) and not isinstance(loss, str):
        return loss[index] if index < len(loss) else None
    return loss


def _known_outputs(model: Any) -> Any:
    """Return the specs of a functional or sequential model's outputs in their structure, or None."""
    import tensorflow as tf

    try:
        tensors = list(model.outputs or ())
    except (AttributeError, TypeError, ValueError):  # not built, or subclassed
        return None
    try:
        structure = model.output
    except (AttributeError, ValueError):
        structure = tensors[0] if len(tensors) == 1 else tensors
    if not tensors:
        return None
    return map_with_paths(lambda _, t: tf.TensorSpec(tf.TensorShape(t.shape), t.dtype), structure)


def _is_compiled(model: Any) -> bool:
    return bool(getattr(model, "compiled", False) or getattr(model, "_is_compiled", False))


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
