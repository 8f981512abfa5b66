"""Captures of targets: functions in files, model files, and inputs named on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from graph2mermaid.capture import Capture
from graph2mermaid.errors import SignatureError, TargetError
from graph2mermaid.sources.environment import environment
from graph2mermaid.sources.target import parse, resolve
from graph2mermaid.sources.tracing import Request, capture

pytestmark = pytest.mark.tf

MODEL = """\
import tensorflow as tf


@tf.function
def layer(x, w, training=False):
    y = tf.matmul(x, w)
    return tf.nn.dropout(y, 0.5) if training else y
"""

ARGUMENTS = """\
import tensorflow as tf

values = tf.ones([2, 3]), tf.ones([3, 4])
nothing = None


def by_name():
    return {"x": tf.ones([5, 3]), "w": tf.ones([3, 4]), "training": True}


def fails():
    raise ValueError("no data here")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a model and a file of arguments for it."""
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "data.py").write_text(ARGUMENTS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def captured(text: str, *inputs: tuple[str, str], **rest: Any) -> Capture:
    (found,) = capture(resolve(parse(text)), Request(inputs, **rest))
    return found


def test_a_function_in_a_file(folder: Path):
    """A capture has the target as typed, the function's name, and the graph's source."""
    found = captured("model.py:layer", ("x", "f32[8,16]"), ("w", "f32[16,4]"))
    assert (found.target, found.name, found.notes) == ("model.py:layer", "layer", ())
    assert [node.op for node in found.traced.nodes()][:3] == ["Placeholder"] * 2 + ["MatMul"]
    assert (found.traced.name, str(found.traced.source)) == ("layer", "model.py:4")
    assert found.environment == environment()


@pytest.mark.parametrize(
    ("named", "shapes"),
    [("data.py:values", ["float32[2,3]", "float32[3,4]"]), ("data.py:by_name", ["float32[5,3]"])],
)
def test_inputs_from_a_file(folder: Path, named: str, shapes: list[str]):
    """`--inputs` names a value, or a function that returns one."""
    found = captured("model.py:layer", inputs_from=named)
    assert [binding.type for binding in found.traced.inputs][: len(shapes)] == shapes


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (
            "data.py",
            "--inputs data.py: name what holds the arguments: --inputs data.py:example_args",
        ),
        ("data.py:nothing", "--inputs data.py:nothing: there are no arguments in it, only None"),
        (
            "data.py:fails",
            (
                "--inputs data.py:fails: cannot load data.py:fails: ValueError at data.py:12:"
                " no data here"
            ),
        ),
        (
            "dta.py:values",
            (
                "--inputs dta.py:values: there is no file, folder or module called 'dta.py'; did you"
                " mean data.py?"
            ),
        ),
    ],
    ids=["no name", "None", "fails", "no file"],
)
def test_inputs_that_cannot_be_had(folder: Path, named: str, message: str):
    """What is wrong with `--inputs` is said with the option."""
    with pytest.raises((SignatureError, TargetError)) as caught:
        captured("model.py:layer", inputs_from=named)
    assert str(caught.value) == message


def test_a_saved_model_as_a_target(folder: Path):
    """A SavedModel is read by its signature; its shapes are in the file."""

    class Saved(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
        def serve(self, x):
            return {"y": x * 2.0}

    tf.saved_model.save(Saved(), "saved")
    found = captured("saved:serving_default")
    assert [binding.name for binding in found.traced.inputs] == ["x"]
    with pytest.raises(SignatureError) as caught:
        captured("saved", ("x", "f32[2,2]"))
    assert str(caught.value) == "saved has its shapes in the file; leave --input and --inputs out"


def test_a_graph_def_as_a_target(folder: Path):
    """A GraphDef file is a graph as it is."""
    with tf.Graph().as_default() as graph:
        tf.compat.v1.placeholder(tf.float32, [2], name="x") * 2.0
    tf.io.write_graph(graph.as_graph_def(), ".", "g.pb", as_text=False)
    assert [node.op for node in captured("g.pb").traced.nodes()] == ["Placeholder", "Const", "Mul"]


@pytest.mark.parametrize("given", [(), (("inputs", "f32[8,4]"),)], ids=["alone", "with shapes"])
def test_a_keras_file_as_a_target(folder: Path, given: tuple[tuple[str, str], ...]):
    """A model file is loaded, and traced with its own inputs or the given ones."""
    keras = tf.keras
    model = keras.Sequential([keras.layers.InputLayer((4,)), keras.layers.Dense(2)])
    name = "m.h5" if tf.__version__.startswith("2.9.") else "m.keras"
    model.save(name)
    (binding,) = captured(name, *given).traced.inputs
    assert (binding.name, binding.type) == ("inputs", "float32[8,4]" if given else "float32[?,4]")
