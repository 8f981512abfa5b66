"""The default command on real targets."""

from __future__ import annotations

import logging
import os
import re
import sys
from pathlib import Path

import click
import pytest

from graph2mermaid import serde
from graph2mermaid.cli.chatter import _only_errors, take_autograph_warnings
from graph2mermaid.cli.streams import stdout_is_stderr
from graph2mermaid.graph import Stage
from tests.cli.conftest import Run, names, program

MULTIPLY_ADD = """
import tensorflow as tf

@tf.function
def multiply_add(x: tf.TensorSpec([None, 4]), y: tf.TensorSpec([None, 4]), b: tf.TensorSpec([4])):
    product = tf.multiply(x, y)
    result = tf.add(product, b)
    return result

@tf.function
def free(x):
    return x + 1.0

def batch():
    return (tf.ones([2, 3]),)
"""


def write(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text, encoding="utf-8")


@pytest.mark.tf
class TestInProcess:
    """What the command does with targets and inputs."""

    @pytest.fixture(autouse=True)
    def _file(self) -> None:
        pytest.importorskip("tensorflow")
        write("model.py", MULTIPLY_ADD)

    def test_the_figure_everybody_sees_first(self, run: Run):
        """`--tensors nodes` draws exactly seven nodes and six edges."""
        result = run("model.py:multiply_add", "--format", "mmd", "--tensors", "nodes")
        assert (result.exit_code, result.stderr) == (0, "")
        names = dict(re.findall(r"^ +(n\d+)\W+(.+?)(?:<br/>.*)?\"?[\])}]+$", result.stdout, re.M))
        arrows = re.findall(r"^ +(n\d+) --> (n\d+)$", result.stdout, re.M)
        assert {(names[a].strip('"'), names[b].strip('"')) for a, b in arrows} == {
            ("x", "tf.multiply"),
            ("y", "tf.multiply"),
            ("tf.multiply", "product"),
            ("product", "tf.add"),
            ("b", "tf.add"),
            ("tf.add", "result"),
        }
        assert len(names) == 7

    def test_save_and_render_give_the_same_report(self, run: Run):
        """A capture holds all that the report was made of."""
        first = run("model.py:multiply_add", "--save", "saved.g2m.json")
        assert first.exit_code == 0, first.stderr
        assert run("render", "saved.g2m.json").stdout == first.stdout

    def test_input_gives_shapes(self, run: Run):
        """What `--input` says is what is traced, and nothing has to be assumed."""
        result = run("model.py:free", "--input", "x=f32[?,3]", "--save", "s.g2m.json")
        assert (result.exit_code, result.stderr) == (0, "")
        (capture,) = serde.load("s.g2m.json")
        assert [str(b.type) for b in capture.graphs[Stage.TRACED].inputs] == ["float32[?,3]"]

    def test_inputs_are_values(self, run: Run):
        """`--inputs` names a function that makes them."""
        result = run("model.py:free", "--inputs", "model.py:batch", "--save", "s.g2m.json")
        assert result.exit_code == 0, result.stderr
        (capture,) = serde.load("s.g2m.json")
        assert [str(b.type) for b in capture.graphs[Stage.TRACED].inputs] == ["float32[2,3]"]

    def test_an_assumed_shape_is_said(self, run: Run):
        """Standard error has the line to type, and so has the report."""
        result = run("model.py:free", "--out", "graph.md")
        assert result.exit_code == 0
        assert result.stderr.startswith("Note: model.py:free: ")
        assert "--input" in result.stderr
        assert "--input" in Path("graph.md").read_text(encoding="utf-8")

    def test_several_targets_make_one_report(self, run: Run):
        """Functions of one file, of a module and of a capture stand in one report."""
        run("model.py:free", "--input", "x=f32[2]", "--save", "free.g2m.json", "--quiet")
        result = run("model.py:multiply_add", "model:free", "free.g2m.json", "--quiet")
        assert result.exit_code == 0, result.stderr
        assert result.stdout.startswith("# Graphs of 3 functions\n")

    def test_a_wrong_input_is_one_line(self, run: Run):
        """A shape that does not fit the function ends with TensorFlow's reason and status 2."""
        result = run("model.py:multiply_add", "--input", "y=f32[3]", "--out", "graph.md")
        assert (result.exit_code, result.stdout) == (2, "")
        assert len(result.stderr.splitlines()) == 1
        assert result.stderr.startswith("Error: ")
        assert not Path("graph.md").exists()

    def test_a_dataset_is_not_drawn_yet(self, run: Run):
        """The view is promised, and its absence is said."""
        write("data.py", "import tensorflow as tf\nrows = tf.data.Dataset.range(3)")
        assert run("data.py:rows").stderr == (
            "Error: data.py:rows is a tf.data.Dataset; the dataset view does not exist yet\n"
        )

    def test_an_import_that_fails_inside_tensorflow(self, run: Run):
        """A decorator that refuses the user's function is shown with the user's line."""
        write(
            "odd.py",
            "import tensorflow as tf\n\nclass Odd(tf.Module):\n"
            "    @tf.function(input_signature=[tf.TensorSpec([2])])\n"
            "    def forward(this, x):\n        return x\n\nodd = Odd()\n",
        )
        result = run("odd.py:odd.forward")
        if result.exit_code:  # TensorFlow 2.9 takes it
            assert result.stderr.startswith("Error: cannot load odd.py: TypeError at odd.py:")
            assert "input_signature" in result.stderr


@pytest.mark.tf
class TestProgram:
    """What can be seen only from outside: a fresh process, its streams and its devices."""

    @pytest.fixture(autouse=True)
    def _tensorflow(self) -> None:
        pytest.importorskip("tensorflow")

    def test_standard_output_is_the_report_alone(self):
        """What the file, its threads, C code and the traced function print goes elsewhere."""
        write(
            "model.py",
            "import os, subprocess, sys\nimport tensorflow as tf\n"
            "print('loading')\nos.write(1, b'from C\\n')\n"
            "subprocess.run([sys.executable, '-c', 'print(\"from a child\")'])\n"
            "@tf.function(input_signature=[tf.TensorSpec([2])])\n"
            "def f(x):\n    print('tracing')\n    return x * 2.0\n",
        )
        done = program("model.py:f")
        assert done.returncode == 0
        assert done.stdout.startswith("# `f`\n")
        assert sorted(set(done.stderr.split("\n"))) == [
            "",
            "from C",
            "from a child",
            "loading",
            "tracing",
        ]

    def test_tensorflow_is_silent(self):
        """A run without notes says nothing at all on standard error."""
        write("model.py", MULTIPLY_ADD)
        done = program("model.py:multiply_add", "--out", "graph.md")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def test_a_file_may_configure_devices(self):
        """TensorFlow is not initialized before the file is loaded."""
        write(
            "model.py",
            "import tensorflow as tf\n"
            "tf.config.set_logical_device_configuration(\n"
            "    tf.config.list_physical_devices('CPU')[0],\n"
            "    [tf.config.LogicalDeviceConfiguration()] * 2)\n"
            "@tf.function(input_signature=[tf.TensorSpec([2])])\n"
            "def where(x):\n"
            "    with tf.device('CPU:1'):\n        y = x * 2.0\n"
            "    with tf.device('CPU:0'):\n        return y + 1.0\n",
        )
        done = program("model.py:where", "--save", "w.g2m.json", "--out", os.devnull)
        assert (done.returncode, done.stderr) == (0, "")
        (capture,) = serde.load("w.g2m.json")
        devices = {n.op: n.device[-5:] for n in capture.traced.nodes() if n.op in ("Mul", "AddV2")}
        assert devices == {"Mul": "CPU:1", "AddV2": "CPU:0"}

    def test_the_file_runs_once_and_not_as_a_program(self):
        """Several functions of one file load it once, its `__main__` block not at all."""
        write(
            "model.py",
            "import sys\nimport tensorflow as tf\n"
            "print('loaded with', sys.argv)\n"
            "spec = [tf.TensorSpec([2])]\n"
            "f = tf.function(lambda x: x, input_signature=spec)\n"
            "g = tf.function(lambda x: x, input_signature=spec)\n"
            "if __name__ == '__main__':\n    print('main')\n",
        )
        done = program("model.py:f", "model.py:g", "--out", "graph.md")
        assert (done.returncode, done.stderr) == (0, "loaded with ['model.py']\n")

    @pytest.mark.parametrize("switch", ["run_functions_eagerly(True)", "v1"])
    def test_switches_left_in_the_file(self, switch: str):
        """Eager functions and disabled eager execution do not keep a function from being traced."""
        line = "tf.compat.v1.disable_eager_execution()" if switch == "v1" else f"tf.config.{switch}"
        write(
            "model.py",
            f"import tensorflow as tf\n{line}\n@tf.function\n"
            "def f(x: tf.TensorSpec([2])):\n    return (x + 1.0) * 2.0\n",
        )
        done = program("model.py:f", "--format", "mmd")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("graph TD")

    def test_packages_and_awkward_names(self):
        """Relative imports, siblings, spaces, and names of standard modules all work."""
        file = (
            "import tensorflow as tf\n@tf.function(input_signature=[tf.TensorSpec([2])])\n"
            "def f(x):\n    return {}\n"
        )
        write("net/__init__.py", "")
        write("net/layers.py", "import tensorflow as tf\ndef act(x):\n    return tf.nn.relu(x)\n")
        write("helpers.py", "BIAS = 1.0")
        write("net/model.py", "import helpers\nfrom .layers import act\n"
              + file.format("act(x) + helpers.BIAS"))  # fmt: skip
        write("my model-v2.py", file.format("x * 2.0"))
        write("random.py", file.format("x - 2.0"))
        done = program("net/model.py:f", "my model-v2.py:f", "random.py:f", "net.model:f")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("# Graphs of 4 functions\n")

    def test_a_hanging_trace_is_ended(self):
        """`--timeout` counts tracing, too, and leaves the old file alone."""
        write(
            "model.py",
            "import time\nimport tensorflow as tf\n@tf.function\n"
            "def f(x: tf.TensorSpec([2])):\n    time.sleep(600)\n    return x\n",
        )
        write("graph.md", "old")
        done = program("model.py:f", "--timeout", "8", "--out", "graph.md")
        assert done.returncode == 2
        assert done.stderr.startswith("Error: loading and tracing took more than 8 s (--timeout)")
        assert Path("graph.md").read_text(encoding="utf-8") == "old"
        assert names() == ["graph.md", "model.py"]


def test_what_autograph_could_not_transform_becomes_a_note():
    """TensorFlow's warnings are dropped, but for the ones that concern the graph."""

    def record(level: int, text: str) -> logging.LogRecord:
        return logging.LogRecord("tensorflow", level, "file.py", 1, text, None, None)

    text = (
        "AutoGraph could not transform <bound method Net.call of <Net object at 0x7f00aa>> and "
        "will run it as-is.\nCause: no source\nTo silence this warning, decorate the function"
    )
    take_autograph_warnings()
    assert not _only_errors(record(logging.WARNING, text))
    assert not _only_errors(record(logging.WARNING, "something else"))
    assert _only_errors(record(logging.ERROR, "an error"))
    assert take_autograph_warnings() == [
        (
            "AutoGraph could not transform <bound method Net.call of <Net object>> and "
            "will run it as-is. Cause: no source"
        )
    ]
    assert take_autograph_warnings() == []


def test_streams_survive_a_wrapper(capfd: pytest.CaptureFixture[str]):
    """User code may wrap standard output in a stream of its own, which then goes away."""
    import gc
    import io

    with stdout_is_stderr():
        sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")
    gc.collect()
    click.echo("still here", err=True)
    assert capfd.readouterr().err == "still here\n"


def test_streams_are_put_back(capfd: pytest.CaptureFixture[str]):
    """After user code has run, standard output is standard output again."""
    with stdout_is_stderr():
        click.echo("inside")
        os.write(1, b"below\n")
    click.echo("outside")
    out, err = capfd.readouterr()
    assert (out, sorted(err.split())) == ("outside\n", ["below", "inside"])
