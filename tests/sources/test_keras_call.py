"""Keras models and layers: their inputs, and traces that call them by the names of `call`."""

from __future__ import annotations

import functools
from typing import Any

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from graph2mermaid.errors import SignatureError, TraceError
from graph2mermaid.sources.concrete import Inputs
from graph2mermaid.sources.signature import parse_inputs, split_input
from graph2mermaid.sources.tracing import trace_callable
from tests.sources.traced import traced

pytestmark = pytest.mark.tf


@pytest.fixture(params=["keras", "tf_keras"])
def keras(request: pytest.FixtureRequest):
    """Keras 3, or the Keras 2 of TensorFlow 2.9; and tf_keras."""
    if request.param == "tf_keras":
        return pytest.importorskip("tf_keras", reason="tf_keras is for TensorFlow 2.16 and later")
    return tf.keras


def sequential(keras):
    return keras.Sequential([keras.Input((4,), name="features"), keras.layers.Dense(3)])


def functional(keras):
    a, b = keras.Input((4,), name="a"), keras.Input((2,), dtype="int32", name="b")
    return keras.Model({"a": a, "b": b}, keras.layers.Dense(2)(a))


def subclassed(keras):
    base: Any = keras.Model

    class Model(base):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(2)

        def call(self, x, training=False, mask=None):
            return self.dense(x) * (2.0 if training else 1.0)

    return Model()


def inputs_of(model, *options: str, **given: Any) -> dict[str, str]:
    """Trace a model and return the arguments of its graph."""
    inputs = Inputs(options=parse_inputs(map(split_input, options)), **given)
    capture = trace_callable(model, inputs, target="m.py:f", name="f")
    return {binding.name: binding.type for binding in capture.traced.inputs}


def test_a_built_model_knows_its_inputs(keras):
    """Nothing has to be given, and nothing is assumed; the argument is called as in `call`."""
    model = sequential(keras)
    assert inputs_of(model) == {"inputs": "float32[?,4]"}
    assert traced(model).notes == ()
    assert traced(model).concrete.inputs[0].name == "features:0"


@pytest.mark.parametrize("name", ["inputs", "features"])
def test_inputs_of_a_model_may_be_given(keras, name: str):
    """The parameter's name and that of the input layer both do."""
    assert inputs_of(sequential(keras), f"{name}=f32[8,4]") == {"inputs": "float32[8,4]"}


@pytest.mark.parametrize("name", ["b", "inputs['b']", "inputs.b"])
def test_one_of_several_inputs(keras, name: str):
    """One input may be given, the others stay as the model says."""
    expected = {"inputs['a']": "float32[?,4]", "inputs['b']": "int32[8,2]"}
    assert inputs_of(functional(keras), f"{name}=i32[8,2]") == expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "inputs['c']",
            "--input inputs['c']: m.py:f takes inputs['a'], inputs['b'] there, and no inputs['c']",
        ),
        (
            "c",
            (
                "m.py:f has no parameter 'c'; its parameters are inputs, training, mask, a and b:"
                " type --input \"inputs['a']=float32[?,4]\""
            ),
        ),
    ],
)
def test_no_such_input(keras, name: str, message: str):
    """A wrong name lists the parameters and the input layers."""
    with pytest.raises(SignatureError) as caught:
        traced(functional(keras), f"{name}=f32[1]")
    assert str(caught.value) == message


def test_a_list_of_inputs(keras):
    """Inputs in a list are numbered; their values may be given as a list."""
    a, b = keras.Input((4,)), keras.Input((2,))
    model = keras.Model([a, b], keras.layers.Dense(2)(a))
    assert inputs_of(model, "inputs[1]=f32[3,2]")["inputs[1]"] == "float32[3,2]"
    values = ([tf.ones([5, 4]), tf.ones([5, 2])],)
    assert inputs_of(model, value=values)["inputs[0]"] == "float32[5,4]"


@pytest.mark.parametrize(
    ("make", "what", "parameter"),
    [
        (subclassed, "a Keras model", "x"),
        (lambda keras: keras.Sequential([keras.layers.Dense(2)]), "a Keras model", "inputs"),
        (lambda keras: keras.layers.Dense(2), "a Keras layer", "inputs"),
    ],
    ids=["subclassed", "sequential", "layer"],
)
def test_what_is_not_built_needs_shapes(keras, make, what: str, parameter: str):
    """An unbuilt model is not spoiled by a guess: the line to type is shown. Then it is built."""
    model = make(keras)
    with pytest.raises(SignatureError) as caught:
        traced(model)
    assert str(caught.value) == (
        f"m.py:f is {what} that is not built; type --input '{parameter}=float32[?,64]'"
    )
    assert not model.built
    assert inputs_of(model, f"{parameter}=f32[?,7]") == {parameter: "float32[?,7]"}
    assert [tuple(v.shape) for v in model.trainable_variables] == [(7, 2), (2,)]


@pytest.mark.parametrize("make", [subclassed, lambda keras: keras.layers.Dense(2)])
def test_a_model_built_by_a_call(keras, make):
    """The shapes of the first call are taken, its batch size left open; a note says so."""
    model = make(keras)
    model(tf.ones([3, 5]))
    name = "inputs" if model.name.startswith("dense") else "x"
    found = traced(model)
    assert inputs_of(model) == {name: "float32[?,5]"}
    assert found.notes == (
        (
            f"{name}: float32[?,5] assumed from the shapes it was built with;"
            f" type --input '{name}=float32[?,5]'"
        ),
    )


def test_several_arguments(keras):
    """A layer with several arguments is called by their names."""
    layer = keras.layers.MultiHeadAttention(2, 4)
    expected = {"query": "float32[?,3,8]", "value": "float32[?,3,8]"}
    assert inputs_of(layer, "query=f32[?,3,8]", "value=f32[?,3,8]") == expected


def test_training(keras):
    """`training` may be bound by a partial, or given as a value; else it is left to Keras."""
    model = subclassed(keras)
    model(tf.ones([3, 5]))

    def scale(found) -> set[float]:
        ops = found.concrete.graph.get_operations()
        consts = [tf.make_ndarray(op.get_attr("value")) for op in ops if op.type == "Const"]
        return {float(value) for value in consts if value.shape == ()}

    assert scale(traced(model)) == {1.0}
    assert scale(traced(functools.partial(model, training=True))) == {2.0}
    assert scale(traced(model, kwargs={"training": True})) == {2.0}


@pytest.mark.parametrize(
    "function_of",
    [tf.function, lambda model: model.call, lambda model: model.__call__],
    ids=["tf.function", "call", "__call__"],
)
def test_functions_of_a_model(keras, function_of):
    """A tf.function around a model, and the model's methods, know its inputs as well."""
    found = traced(function_of(sequential(keras)))
    assert (found.concrete.inputs[0].shape.as_list(), found.notes) == ([None, 4], ())
    given = traced(function_of(sequential(keras)), "features=f32[8,4]")
    assert given.concrete.inputs[0].shape.as_list() == [8, 4]


def test_a_shape_that_does_not_fit(keras):
    """Keras' own words, on one line."""
    with pytest.raises(TraceError) as caught:
        traced(sequential(keras), "inputs=f32[8,5]")
    assert str(caught.value).startswith("cannot trace m.py:f: ValueError: Input 0 ")
    assert str(caught.value).endswith("(8, 5) (traced with inputs: float32[8,5])")
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_model_whose_call_takes_anything(keras):
    """Where `call` does not say what it takes, the model is traced as it is."""

    base: Any = keras.Model

    class Sum(base):
        def call(self, *tensors):
            return tf.add_n(tensors)

    found = traced(Sum(), "tensors[0]=f32[2]", "tensors[1]=f32[2]")
    assert len(found.concrete.inputs) == 2
