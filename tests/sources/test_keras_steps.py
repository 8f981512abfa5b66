"""`model.train_step` and its like as functions of x and y."""

from __future__ import annotations

import pytest

from graph2mermaid.errors import TargetError
from graph2mermaid.sources.keras_steps import KerasStep, step_function

pytestmark = pytest.mark.tf


@pytest.fixture(params=["keras", "tf_keras"])
def keras(request: pytest.FixtureRequest):
    """Keras 3, or the Keras 2 of TensorFlow 2.9; and tf_keras."""
    if request.param == "tf_keras":
        return pytest.importorskip("tf_keras")
    return pytest.importorskip("tensorflow").keras


def built(keras, loss: str = "mse", optimizer: str = "sgd"):
    model = keras.Sequential([keras.layers.InputLayer((4,)), keras.layers.Dense(3)])
    model.compile(optimizer, loss)
    return model


def specs(step: KerasStep) -> dict[str, tuple[str, list[int | None]]]:
    return {
        name: (spec.dtype.name, list(spec.shape))
        for name, spec in step.function.__annotations__.items()
    }


@pytest.mark.parametrize(
    ("loss", "y"),
    [("mse", ("float32", [None, 3])), ("sparse_categorical_crossentropy", ("int32", [None]))],
)
def test_what_a_built_model_knows(keras, loss: str, y: tuple[str, list[int | None]]):
    """x has the shape of the model's input, y that of its output, as the loss takes it."""
    step = step_function(built(keras, loss), "train_step", "m.py:model.train_step")
    assert specs(step) == {"x": ("float32", [None, 4]), "y": y}
    assert step.notes[0].startswith(f"y is taken to be {y[0]}[?")


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("name", ["train_step", "test_step", "predict_step"])
def test_steps_can_be_traced(keras, name: str, optimizer: str):
    """Training has gradients and an update of the variables, the other steps have none."""
    import tensorflow as tf

    step = step_function(built(keras, optimizer=optimizer), name, f"m.py:model.{name}").function
    arguments = [step.__annotations__[p] for p in ("x", "y")][: 1 if name == "predict_step" else 2]
    graph = tf.function(step).get_concrete_function(*arguments).graph
    names = " ".join(op.name for op in graph.get_operations())
    assert ("gradient_tape" in names.lower()) == (name == "train_step")


def test_the_optimizer_is_built_before(keras):
    """Making the optimizer's variables is no part of the step: it is traced only once."""
    import tensorflow as tf

    model = built(keras, optimizer="sgd")
    step = step_function(model, "train_step", "m.py:model.train_step").function
    tf.function(step).get_concrete_function(tf.TensorSpec([2, 4]), tf.TensorSpec([2, 3]))
    variables = model.optimizer.variables
    assert (variables() if callable(variables) else variables) or not hasattr(
        model.optimizer, "build"
    )


def test_a_model_that_is_not_built_takes_its_shape_from_x(keras):
    """With `--input` the variables are made from the shape that was given."""
    import tensorflow as tf

    model = keras.Sequential([keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    step = step_function(model, "train_step", "m.py:model.train_step")
    assert (step.function.__annotations__, step.notes) == ({}, ())
    tf.function(step.function).get_concrete_function(tf.TensorSpec([2, 4]), tf.TensorSpec([2, 3]))
    assert [tuple(v.shape) for v in model.trainable_variables] == [(4, 3), (3,)]


def test_a_model_that_is_not_compiled(keras):
    """There is no step without a loss and an optimizer, unless the user wrote it."""
    model = keras.Sequential([keras.layers.Dense(3)])
    with pytest.raises(TargetError) as caught:
        step_function(model, "train_step", "m.py:model.train_step")
    assert str(caught.value) == (
        "m.py:model.train_step: the model is not compiled; call its compile() in the file"
    )


@pytest.mark.parametrize(("unpacks", "parameters"), [(True, ["x", "y"]), (False, ["x"])])
def test_a_step_of_the_users_own(keras, unpacks: bool, parameters: list[str]):
    """One that takes its data apart is given x and y, one that does not gets x alone."""
    import inspect

    class Pairs(keras.Model):
        def train_step(self, data):
            x, y = data
            return {"loss": x + y}

    class Alone(keras.Model):
        def train_step(self, data):
            return {"loss": data * 2.0}

    model = Pairs() if unpacks else Alone()
    step = step_function(model, "train_step", "m.py:model.train_step").function
    assert list(inspect.signature(step).parameters) == parameters
