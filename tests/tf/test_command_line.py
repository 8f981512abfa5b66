"""The command line on the files that people have: what they do when imported, and what they lack."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from graph2mermaid import serde
from graph2mermaid.graph import TensorSpec
from tests.cli.conftest import command, environment, program
from tests.tf import gallery
from tests.tf.reading import op_types

pytestmark = pytest.mark.tf


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorflow")
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str) -> None:
    Path(name).write_text("import tensorflow as tf\n\n" + text, encoding="utf-8")


LAYER = """
@tf.function
def layer(x, w, training=False):
    y = tf.matmul(x, w)
    return tf.nn.dropout(y, 0.5) if training else y
"""


def test_shapes_that_nobody_gave_are_said_with_the_line_to_type():
    """The note names the arguments without a shape, and what the guess changes in the graph."""
    write("model.py", LAYER)
    done = program("model.py:layer", "--save", "layer.g2m.json", "--out", "layer.md")
    assert done.returncode == 0
    assert done.stderr == (
        "Note: model.py:layer: shapes of x and w assumed: unknown rank float32 (a matmul then "
        "becomes BatchMatMulV2); type --input 'x=float32[?,64]' --input 'w=float32[?,64]'\n"
    )
    (capture,) = serde.load("layer.g2m.json")
    assert op_types(capture.traced)["BatchMatMulV2"] == 1


def test_shapes_that_were_given_leave_the_default_alone():
    """An argument with a default need not be named."""
    write("model.py", LAYER)
    words = ["--input", "x=f32[?,16]", "--input", "w=f32[16,4]", "--save", "layer.g2m.json"]
    done = program("model.py:layer", *words, "--out", "layer.md")
    assert (done.returncode, done.stderr) == (0, "")
    (capture,) = serde.load("layer.g2m.json")
    assert op_types(capture.traced)["MatMul"] == 1
    assert [(b.name, b.type) for b in capture.traced.inputs] == [
        ("x", "float32[?,16]"),
        ("w", "float32[16,4]"),
        ("training", "Python value False"),
    ]


def test_a_type_that_does_not_fit_is_shown_with_what_was_traced():
    """The line has TensorFlow's reason and the types that were given."""
    write("model.py", LAYER)
    words = ["--input", "x=int32[?,16]", "--input", "w=f32[16,4]"]
    done = program("model.py:layer", *words, "--out", "layer.md")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("Error: cannot trace model.py:layer: TypeError at model.py:6: ")
    assert done.stderr.endswith(" (traced with x: int32[?,16], w: float32[16,4])\n")
    assert not Path("layer.md").exists()


def test_a_file_that_trains_when_imported():
    """What it prints is kept apart, and the trained weight is a variable of the graph."""
    write(
        "model.py",
        """
print("loading...")
w = tf.Variable(0.0, name="w")

@tf.function
def train(x, y):
    with tf.GradientTape() as tape:
        loss = tf.square(w * x - y)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss

for _ in range(3):
    train(1.0, 2.0)
    print("one step")

@tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
def predict(x):
    return w * x

if __name__ == "__main__":
    print("main")
""",
    )
    done = program("model.py:predict", "--save", "predict.g2m.json")
    assert done.returncode == 0
    assert done.stdout.startswith("# `predict`\n")
    assert done.stderr.splitlines() == ["loading..."] + ["one step"] * 3
    (capture,) = serde.load("predict.g2m.json")
    (weight,) = capture.traced.captures
    assert (weight.name, weight.type) == ("w", "Variable float32[]")
    assert capture.traced[weight.tensors[0].node].holds == TensorSpec("float32", ())


def test_a_file_that_reads_its_arguments_when_imported():
    """Its parser sees none of ours, so its defaults hold."""
    write(
        "model.py",
        """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--units", type=int, default=4)
options = parser.parse_args()

@tf.function(input_signature=[tf.TensorSpec([2, 3], tf.float32)])
def project(x):
    return tf.matmul(x, tf.ones([3, options.units]))
""",
    )
    done = program("model.py:project", "--save", "p.g2m.json", "--out", "p.md")
    assert (done.returncode, done.stderr) == (0, "")
    (capture,) = serde.load("p.g2m.json")
    assert [b.type for b in capture.traced.outputs] == ["float32[2,4]"]


OBJECTS = """
import functools

@tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
def ready(x):
    return x + 1.0

def plain(x):
    return x * 2.0

part = functools.partial(tf.function(lambda x, k: x * k), k=2.0)

class Minus(tf.Module):
    def __call__(self, x):
        return x - 1.0

class Net(tf.Module):
    @tf.function
    def forward(self, x):
        return x

minus = Minus()
NUMBER = 3
"""


@pytest.mark.parametrize(
    ("name", "op", "inputs"),
    [
        ("ready", "AddV2", [("x", "float32[2]")]),
        ("plain", "Mul", [("x", "float32[2]")]),
        ("part", "Mul", [("x", "float32[2]"), ("k", "Python value 2.0")]),
        ("minus", "Sub", [("x", "float32[2]")]),
    ],
)
def test_what_can_be_called_can_be_traced(name: str, op: str, inputs: list[tuple[str, str]]):
    """Functions of every kind give their graph; a bound value stays a value."""
    write("model.py", OBJECTS)
    words = [] if name == "ready" else ["--input", "x=f32[2]"]
    done = program(f"model.py:{name}", *words, "--save", "o.g2m.json", "--out", "o.md")
    assert (done.returncode, done.stderr) == (0, "")
    (capture,) = serde.load("o.g2m.json")
    assert op_types(capture.traced)[op] == 1
    assert [(b.name, b.type) for b in capture.traced.inputs] == inputs


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Net", "model.py:Net is a class"),
        ("NUMBER", "model.py:NUMBER is a number (3), which cannot be traced"),
        ("redy", "model.py has no redy; did you mean model.py:ready?"),
    ],
)
def test_what_cannot_be_traced_is_one_line(name: str, said: str):
    """The line says what the name is, and status 2 goes with it."""
    write("model.py", OBJECTS)
    done = program(f"model.py:{name}")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"Error: {said}")
    assert done.stderr.count("\n") == 1


def test_a_model_that_is_not_built_gets_its_shape_from_the_command_line():
    """Its variables are made for the shape that was given."""
    keras = gallery.keras_of_tensorflow()
    source = "keras" if keras.__version__ >= "3" else "from tensorflow import keras"
    line = f"import {source}" if source == "keras" else source
    write("model.py", f"{line}\nmodel = keras.Sequential([keras.layers.Dense(2, name='out')])\n")
    words = ["--input", "inputs=f32[?,4]", "--save", "m.g2m.json", "--out", "m.md"]
    done = program("model.py:model", *words)
    assert (done.returncode, done.stderr) == (0, "")
    (capture,) = serde.load("m.g2m.json")
    assert [b.type for b in capture.traced.captures] == [
        "Variable float32[4,2]",
        "Variable float32[2]",
    ]


COUNTED = """
@tf.function
def inner(a):
    return tf.nn.relu(a @ a)

@tf.function(input_signature=[tf.TensorSpec([2, 2], tf.float32)])
def repeat(x):
    for _ in tf.range(3):
        x = inner(x)
    return tf.reduce_sum(x)
"""

KERAS = """
keras = tf.keras
layers = [keras.layers.InputLayer((4,)), keras.layers.Dense(3, activation="relu")]
model = keras.Sequential([*layers, keras.layers.BatchNormalization(), keras.layers.Dense(2)])
model.compile("adam", "mse")
"""


def run_with_seed(seed: str, *words: str) -> str:
    done = subprocess.run(
        command(*words),
        env=environment(PYTHONHASHSEED=seed),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (COUNTED, ["model.py:repeat"]),
        # Which of two equal ops Grappler keeps is chance where there are many.
        (KERAS, ["model.py:model.train_step", "--view", "traced"]),
    ],
    ids=["functions", "Keras"],
)
def test_the_same_input_gives_the_same_bytes(text: str, words: list[str]):
    """Neither hash seeds nor the functions traced before leave a mark in report or capture."""
    write("model.py", text)
    first = run_with_seed("1", *words, "--save", "first.g2m.json", "--quiet")
    second = run_with_seed("2", *words, "--save", "second.g2m.json", "--quiet")
    assert first == second
    assert Path("first.g2m.json").read_bytes() == Path("second.g2m.json").read_bytes()


def test_what_was_traced_before_leaves_no_mark():
    """Functions bear their names without TensorFlow's counter, and the lines of their own file."""
    write("model.py", COUNTED)
    alone = run_with_seed("1", "model.py:repeat")
    assert not re.search(r"__inference|_\d\d+\b", alone)
    write("other.py", COUNTED.replace("repeat", "other"))
    together = run_with_seed("1", "other.py:other", "model.py:repeat", "--out-dir", "pages")
    assert together == ""
    page = Path("pages/repeat.md").read_text(encoding="utf-8")
    assert page == alone
