"""`model.train_step` and its like as functions of x and y."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import pytest

from graph2mermaid.errors import SignatureError, TargetError
from graph2mermaid.sources.concrete import Inputs
from graph2mermaid.sources.keras_steps import step_function
from graph2mermaid.sources.signature import parse_inputs, split_input
from graph2mermaid.sources.tracing import trace_callable

pytestmark = pytest.mark.tf


@pytest.fixture(params=["keras", "tf_keras"])
def keras(request: pytest.FixtureRequest):
    """Keras 3, or the Keras 2 of TensorFlow 2.9; and tf_keras."""
    if request.param == "tf_keras":
        return pytest.importorskip("tf_keras")
    return pytest.importorskip("tensorflow").keras


def compiled(model, loss="mse", optimizer: str = "sgd"):
    model.compile(optimizer, loss)
    return model


def built(keras):
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])


def blocks(keras):
    """A subclassed model with a layer of its own inside, as most are written."""

    layer: Any = keras.layers.Layer
    model: Any = keras.Model

    class Block(layer):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(8, name="inner")

        def call(self, x):
            return self.dense(x)

    class Blocks(model):
        def __init__(self):
            super().__init__()
            self.block = Block()
            self.head = keras.layers.Dense(3, name="head")

        def call(self, x):
            return self.head(self.block(x))

    return Blocks()


def of_a_dict(keras):
    """A subclassed model that takes parts of a dict, one of which must have 8 columns."""

    model: Any = keras.Model

    class Parts(model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(8)

        def call(self, inputs):
            return self.dense(inputs["image"]) + inputs["aux"]

    return Parts()


def joined(keras, form: str):
    left, right = keras.Input((4,), name="left"), keras.Input((6,), name="right")
    inputs = [left, right] if form == "list" else {"left": left, "right": right}
    return keras.Model(inputs, keras.layers.Dense(2)(keras.layers.Concatenate()([left, right])))


def traced(model, *options: str, name: str = "train_step"):
    """Trace a step with `--input` options."""
    step = step_function(model, name, f"m.py:m.{name}")
    inputs = Inputs(options=parse_inputs(map(split_input, options)))
    return trace_callable(step, inputs, target=f"m.py:m.{name}", name=name)


def inputs_of(capture) -> dict[str, str]:
    return {binding.name: binding.type for binding in capture.traced.inputs}


@pytest.mark.parametrize(
    ("loss", "y"),
    [("mse", "float32[?,3]"), ("sparse_categorical_crossentropy", "int32[?]")],
)
def test_what_a_built_model_knows(keras, loss: str, y: str):
    """x has the shape of the model's input, y that of its output, as the loss takes it."""
    capture = traced(compiled(built(keras), loss))
    assert inputs_of(capture) == {"x": "float32[?,4]", "y": y}
    assert capture.notes == (
        f"y: {y} assumed, as the model's output and loss suggest; type --input 'y={y}'",
    )


def test_nothing_is_said_of_labels_that_are_given(keras):
    """With both arguments known nothing is assumed."""
    assert traced(compiled(built(keras)), "y=f32[?,3]").notes == ()


def test_labels_for_several_outputs(keras):
    """There are labels for each output, each as its own loss takes them."""
    x = keras.Input((4,))
    model = keras.Model(x, [keras.layers.Dense(2)(x), keras.layers.Dense(5)(x)])
    compiled(model, ["mse", "sparse_categorical_crossentropy"])
    expected = {"x": "float32[?,4]", "y[0]": "float32[?,2]", "y[1]": "int32[?]"}
    assert inputs_of(traced(model)) == expected
    assert inputs_of(traced(model, "y[0]=f32[8,2]")) == {**expected, "y[0]": "float32[8,2]"}


@pytest.mark.parametrize("name", ["train_step", "test_step", "predict_step"])
@pytest.mark.parametrize("form", ["list", "dict"])
def test_several_inputs_are_known(keras, form: str, name: str):
    """A model with several inputs needs no shapes; those in a list have their layers' names."""
    capture = traced(compiled(joined(keras, form)), name=name)
    names = ["left", "right"] if form == "list" else ["x['left']", "x['right']"]
    found = inputs_of(capture)
    assert list(found)[:2] == names
    assert [found[n] for n in names] == ["float32[?,4]", "float32[?,6]"]


@pytest.mark.parametrize("place", ["left", "x.left", "x[0]", "x['left']"])
def test_one_of_several_inputs(keras, place: str):
    """Each input may be given by its name, by that name in x, or by its number."""
    found = inputs_of(traced(compiled(joined(keras, "list")), f"{place}=f32[8,4]"))
    assert (found["left"], found["right"]) == ("float32[8,4]", "float32[?,6]")


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("name", ["train_step", "test_step", "predict_step"])
def test_steps_can_be_traced(keras, name: str, optimizer: str):
    """Training has gradients and an update of the variables, the other steps have none."""
    capture = traced(compiled(built(keras), optimizer=optimizer), name=name)
    names = " ".join(node.name for node in capture.traced.nodes())
    assert ("gradient_tape" in names.lower()) == (name == "train_step")


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_subclassed_model_that_was_never_called(keras, optimizer: str):
    """Its variables are made first, as `fit` does; x alone is enough, and Keras warns of nothing."""
    model = compiled(blocks(keras), optimizer=optimizer)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        capture = traced(model, "x=f32[?,4]")
    assert [str(w.message) for w in caught if "keras" in w.filename] == []
    assert inputs_of(capture) == {"x": "float32[?,4]", "y": "float32[?,3]"}
    assert sorted(tuple(v.shape) for v in model.trainable_variables) == [(3,), (4, 8), (8,), (8, 3)]


def test_variables_have_the_path_of_their_layers(keras):
    """A variable is called by the layers that hold it, not by its last word alone."""
    capture = traced(blocks(keras), "x=f32[?,4]", name="predict_step")
    names = [binding.name for binding in capture.traced.captures]
    for end in ("/inner/kernel", "/inner/bias", "/head/kernel", "/head/bias"):
        assert sum(name.endswith(end) for name in names) == 1


def test_a_subclassed_model_that_was_called(keras):
    """It is traced with the shapes it was built with, its labels follow from them."""
    import tensorflow as tf

    model = blocks(keras)
    model(tf.zeros([2, 4]))
    assert inputs_of(traced(compiled(model))) == {"x": "float32[?,4]", "y": "float32[?,3]"}


@pytest.mark.parametrize("name", ["train_step", "predict_step"])
def test_the_line_for_a_model_that_is_not_built_works(keras, name: str):
    """Every part of a dict is asked for, with shapes that the model takes; it stays unbuilt."""
    import shlex

    model = compiled(of_a_dict(keras))
    with pytest.raises(SignatureError, match="is a Keras model that is not built; type ") as caught:
        traced(model, name=name)
    assert not model.built
    options = [w for w in shlex.split(str(caught.value).partition("type ")[2]) if w != "--input"]
    assert [option.partition("=")[0] for option in options] == ["x['image']", "x['aux']"]
    assert traced(model, *options, name=name).traced is not None


def test_the_optimizer_is_built_before(keras):
    """Making the optimizer's variables is no part of the step: it is traced only once."""
    model = compiled(built(keras))
    traced(model, "x=f32[2,4]", "y=f32[2,3]")
    variables = model.optimizer.variables
    assert (variables() if callable(variables) else variables) or not hasattr(
        model.optimizer, "build"
    )


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

    class Pairs(keras.Model):
        def train_step(self, data):
            x, y = data
            return {"loss": x + y}

    class Alone(keras.Model):
        def train_step(self, data):
            return {"loss": data * 2.0}

    model = Pairs() if unpacks else Alone()
    step = step_function(model, "train_step", "m.py:model.train_step")
    assert list(inspect.signature(step).parameters) == parameters
