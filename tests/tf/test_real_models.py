"""Models of real size: the graph has what TensorFlow's own GraphDef has, counted another way."""

from __future__ import annotations

from typing import Any

import pytest

from graph2mermaid import Capture
from graph2mermaid.mermaid.budget import fits, readable
from tests.tf import gallery
from tests.tf.reading import counted, op_types, recounted, rows

pytestmark = [pytest.mark.tf, pytest.mark.slow]


def elements(variables: Any) -> int:
    """Add up the sizes of variables, by their shapes."""
    total = 0
    for variable in variables:
        size = 1
        for dimension in variable.shape:
            size *= int(dimension)
        total += size
    return total


def parameters(capture: Capture) -> int:
    """Return the number of parameters that the report states, without the rounded one."""
    (cell,) = rows(capture.report().to_markdown(), "Parameters (elements of the variables)")
    return int(cell.split("(")[-1].rstrip(")").replace(",", ""))


def by_tensorflow(function: Any, *specs: Any) -> Any:
    """Trace anew and return TensorFlow's own account of the graph."""
    import tensorflow as tf

    return tf.function(function).get_concrete_function(*specs).graph.as_graph_def()


def variable_names(capture: Capture) -> list[str]:
    return [b.name for b in capture.traced.captures if b.type.startswith("Variable")]


MODELS = [
    pytest.param(gallery.mobilenet, gallery.mobilenet_inference, id="MobileNetV2"),
    pytest.param(gallery.resnet, gallery.resnet_inference, id="ResNet50"),
]


@pytest.mark.parametrize(("model", "capture"), MODELS)
def test_every_op_and_edge_of_a_model(model, capture):
    """Op types and edges are those of the GraphDef."""
    expected = by_tensorflow(lambda x: model()(x, training=False), gallery.images())
    assert counted(capture().traced) == recounted(expected)


@pytest.mark.parametrize(("model", "capture"), MODELS)
def test_every_parameter_of_a_model(model, capture):
    """The report states as many as Keras counts, and each variable has its name."""
    assert parameters(capture()) == model().count_params()
    paths = [getattr(v, "path", v.name.removesuffix(":0")) for v in model().variables]
    assert sorted(variable_names(capture())) == sorted(paths)


def test_every_op_and_edge_of_a_training_step():
    """So are those of forward pass, gradients and update together."""
    import tensorflow as tf

    step, _ = gallery.resnet_step()
    capture = gallery.resnet_training()
    expected = by_tensorflow(step.python_function, gallery.images(8), tf.TensorSpec([8], tf.int32))
    types, edges = recounted(expected)
    assert counted(capture.traced) == (types, edges)
    markdown = capture.report().to_markdown()
    assert rows(markdown, "Ops") == [f"{types.total():,}"]
    control = sum(name.startswith("^") for node in expected.node for name in node.input)
    assert rows(markdown, "Control edges") == [f"{control:,}"]
    assert rows(markdown, "Data edges") == [f"{edges - control:,}"]


def test_every_parameter_of_a_training_step():
    """The optimizer's variables count as well; each trainable variable shows under its name."""
    _, optimizer = gallery.resnet_step()
    capture = gallery.resnet_training()
    # Keras 2 makes variables of the learning rate and the momentum as well, and does not list them.
    listed = optimizer.variables() if callable(optimizer.variables) else optimizer.variables
    others = 2 if callable(optimizer.variables) else 0
    assert parameters(capture) == gallery.resnet().count_params() + elements(listed) + others
    names = set(variable_names(capture))
    trainable = gallery.resnet().trainable_variables
    assert {getattr(v, "path", v.name.removesuffix(":0")) for v in trainable} <= names


def test_each_variable_is_updated():
    """One op for each weight and its momentum, one for each average, one for the step's number."""
    ops = op_types(gallery.resnet_training().traced)
    weights = len(gallery.resnet().trainable_variables)
    averages = len(gallery.resnet().non_trainable_variables)
    plain = ops["AssignVariableOp"] + ops["AssignAddVariableOp"] + ops["AssignSubVariableOp"]
    fused = ops["ResourceApplyKerasMomentum"]  # Keras 2: weight and momentum at once
    assert fused in (0, weights)
    assert plain + 2 * fused == 2 * weights + averages + 1


@pytest.mark.parametrize("name", gallery.MODELS)
def test_every_diagram_can_be_read_and_drawn(name):
    """None is above the caps of any host, and the overview not above what a person reads."""
    figures = list(gallery.MODELS[name]().report().figures())
    assert len(figures) > 1
    assert all(fits(figure.text) for figure in figures)
    assert readable(figures[0].diagram)
