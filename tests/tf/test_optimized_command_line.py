"""The Grappler and runtime views on the command line, each run in a process of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from graph2mermaid import serde
from graph2mermaid.graph import Stage
from graph2mermaid.optimization import Way
from tests.cli.conftest import command, environment, program
from tests.report.reading import read
from tests.tf.reading import op_types

pytestmark = pytest.mark.tf


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorflow")
    monkeypatch.chdir(tmp_path)


def write(text: str) -> None:
    Path("model.py").write_text("import tensorflow as tf\n\n" + text, encoding="utf-8")


def with_environment(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words),
        env=environment(**more),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def headings(markdown: str) -> list[str]:
    return [title for level, title in read(markdown).headings if level == 2]


DENSE = """
SHAPES = [tf.TensorSpec([8, 4]), tf.TensorSpec([4, 2]), tf.TensorSpec([2])]

@tf.function(input_signature=SHAPES)
def dense(x, w, b):
    y = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))
    return tf.transpose(tf.transpose(y * (tf.constant(2.0) * 3.0)))

values = (tf.ones([8, 4]), tf.ones([4, 2]), [1.0, 2.0])
"""


def test_the_usual_views():
    """Without options the report has the traced graph and Grappler's; nothing ran."""
    write(DENSE)
    done = program("model.py:dense")
    assert (done.returncode, done.stderr) == (0, "")
    assert headings(done.stdout) == ["Traced graph", "Grappler graph"]
    assert "Found without running the function." in done.stdout


def test_all_views_and_a_run():
    """`--view all --run` has every view, and says that the function ran."""
    write(DENSE)
    done = program("model.py:dense", "--view", "all", "--run")
    assert (done.returncode, done.stderr) == (0, "")
    assert headings(done.stdout)[:3] == ["Traced graph", "Grappler graph", "Runtime graph"]
    assert "Recorded by TensorFlow while the function ran." in done.stdout
    assert "What ran differs" not in done.stdout


COUNTING = """
import pathlib

count = tf.Variable(1.0, name="count")

def note():
    with open("ran.txt", "a") as file:
        file.write("x")

@tf.function
def step(x):
    tf.py_function(note, [], [])
    count.assign_add(tf.reduce_sum(x))
    return count * 1.0

values = [tf.constant([2.0, 3.0])]

import atexit
atexit.register(lambda: pathlib.Path("count.txt").write_text(str(count.numpy())))
"""


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        ([], 1),
        (["--no-run"], 0),
        (["--run"], 1),
        (["--view", "traced"], 0),
    ],
    ids=["values", "forbidden", "asked", "traced only"],
)
def test_values_run_the_function(options: list[str], runs: int):
    """With `--inputs` it runs once where a view needs it, and its variable is put back."""
    write(COUNTING)
    done = program("model.py:step", "--inputs", "model.py:values", "--out", "o.md", *options)
    assert (done.returncode, done.stderr) == (0, "")
    ran = Path("ran.txt")
    assert (ran.read_text() if ran.exists() else "") == "x" * runs
    assert Path("count.txt").read_text() == "1.0"


def test_values_of_a_function_with_a_signature():
    """They are traced as the signature says, and the function runs with them."""
    write(DENSE)
    done = program("model.py:dense", "--inputs", "model.py:values", "--save", "d.g2m.json")
    assert (done.returncode, done.stderr) == (0, "")
    (capture,) = serde.load("d.g2m.json")
    assert capture.optimization is not None
    assert capture.optimization.way is Way.RUN


def test_no_replay():
    """Without the replay there is no table of passes, and the rest is as before."""
    write(DENSE)
    done = program("model.py:dense", "--view", "grappler", "--no-replay")
    assert (done.returncode, done.stderr) == (0, "")
    titles = [title for _, title in read(done.stdout).headings]
    assert "By pass" not in titles
    assert {"Before and after", "What changed", "What was removed"} <= set(titles)


JIT = """
@tf.function(jit_compile=True, input_signature=[tf.TensorSpec([4])])
def fast(x):
    return tf.nn.relu(x) + 1.0
"""


def test_a_function_that_xla_compiles():
    """The reason is said once: as the error where it is all that was asked for, else as a note."""
    write(JIT)
    reason = "XLA compiles it as a whole (jit_compile=True)"
    alone = program("model.py:fast", "--view", "grappler", "--run")
    assert (alone.returncode, alone.stdout) == (2, "")
    assert alone.stderr == f"Error: model.py:fast: Grappler view: {reason}\n"
    usual = program("model.py:fast")
    assert usual.returncode == 0
    assert usual.stderr == f"Note: model.py:fast: Grappler view: {reason}\n"
    assert headings(usual.stdout) == ["Inputs, captures and outputs", *headings(usual.stdout)[1:]]
    assert usual.stdout.count(reason) == 1


def test_a_capture_without_an_optimized_graph():
    """Rendering it says how to record one; its default views are what it holds."""
    write(DENSE)
    made = program("model.py:dense", "--view", "traced", "--save", "d.g2m.json", "--out", "d.md")
    assert made.returncode == 0
    done = program("render", "d.g2m.json", "--view", "grappler")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "Error: model.py:dense: the capture holds no optimized graph; record it with "
        "--view grappler\n"
    )
    assert program("render", "d.g2m.json").stdout == Path("d.md").read_text(encoding="utf-8")


def test_a_capture_with_an_optimized_graph():
    """Rendering it gives the same report as recording it."""
    write(DENSE)
    views = ["--view", "all"]
    made = program("model.py:dense", *views, "--save", "d.g2m.json", "--out", "d.md")
    assert made.returncode == 0
    assert "optimization" in json.loads(Path("d.g2m.json").read_text())["captures"][0]
    done = program("render", "d.g2m.json", *views)
    assert done.stdout == Path("d.md").read_text(encoding="utf-8")


FILES = """
class Model(tf.Module):
    def __init__(self):
        self.w = tf.Variable(tf.ones([4, 3]), name="w")

    @tf.function(input_signature=[tf.TensorSpec([None, 4], name="features")])
    def serve(self, x):
        return {"scores": tf.nn.softmax(tf.matmul(x, self.w))}

model = Model()
tf.saved_model.save(model, "saved", signatures={"serving_default": model.serve})
graph = model.serve.get_concrete_function().graph.as_graph_def()
tf.io.write_graph(graph, ".", "g.pb", as_text=False)
layers = [tf.keras.layers.InputLayer((4,)), tf.keras.layers.Dense(3, activation="relu")]
tf.keras.Sequential(layers).save("net.h5")
"""


def test_model_files():
    """A signature of a SavedModel and a Keras file are optimized; a graph file says why not."""
    write(FILES)
    made = program("list", "model.py")
    assert Path("saved").is_dir(), made.stderr
    done = program("saved", "net.h5", "--view", "grappler", "--save", "all.g2m.json")
    assert done.returncode == 0
    saved, keras = serde.load("all.g2m.json")
    after = op_types(saved.graphs[Stage.GRAPPLER])
    assert {"MatMul", "Softmax", "NoOp"} <= set(after)
    assert op_types(keras.graphs[Stage.GRAPPLER])["_FusedMatMul"] == 1
    usual = program("g.pb", "--out", "g.md")
    assert (usual.returncode, usual.stderr) == (0, "")
    asked = program("g.pb", "--view", "grappler")
    assert asked.returncode == 2
    assert asked.stderr == (
        "Error: g.pb: Grappler view: a graph file holds no function that could be optimized; a "
        "SavedModel does\n"
    )


TWO_DEVICES = """
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)

@tf.function(input_signature=[tf.TensorSpec([2])])
def where(x):
    with tf.device("CPU:1"):
        y = x * 2.0
    with tf.device("CPU:0"):
        return y + 1.0

strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    w = tf.Variable(1.0, name="w")

@tf.function(input_signature=[tf.TensorSpec([2])])
def step(x):
    per_replica = strategy.run(lambda t: tf.reduce_sum(t * w), args=(x,))
    return strategy.reduce("SUM", per_replica, axis=None)
"""


@pytest.mark.parametrize("name", ["where", "step"])
def test_two_devices(name: str):
    """What each device executes stands in a frame, and two tensors are sent between them."""
    write(TWO_DEVICES)
    done = program(f"model.py:{name}", "--view", "runtime", "--run", "--save", "two.g2m.json")
    assert done.returncode == 0, done.stderr
    assert "on 2 devices. 2 edges go from one device to another." in done.stdout
    assert '["CPU:0"]' in done.stdout
    assert '["CPU:1"]' in done.stdout
    assert done.stdout.count('"sent<br/>') == 2
    (capture,) = serde.load("two.g2m.json")
    assert not {"_Send", "_Recv"} & set(op_types(capture.graphs[Stage.RUNTIME]))


CLUSTERED = """
@tf.function(input_signature=[tf.TensorSpec([16, 16])])
def score(x):
    return tf.reduce_sum(tf.nn.softmax(tf.matmul(x, x) * 2.0 + 1.0))
"""


def test_auto_clustering():
    """Only the plumbing of XLA's clusters is left, which is said, with no counter in a name."""
    write(CLUSTERED)
    flags = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"
    done = with_environment("model.py:score", "--view", "grappler", "--run", TF_XLA_FLAGS=flags)
    assert done.returncode == 0, done.stderr
    assert "XLA compiles clusters of ops together" in done.stdout
    assert "cluster_0_1/xla_run" in done.stdout
    assert "could not be mapped" not in done.stdout
    assert "What ran differs" not in done.stdout


def test_without_onednn():
    """A bias that is added with `+` is not fused then, and the report says why."""
    write(CLUSTERED.replace("tf.nn.softmax(tf.matmul(x, x) * 2.0 + 1.0)",
                            "tf.nn.relu(tf.matmul(x, x) + tf.ones([16]))"))  # fmt: skip
    done = with_environment("model.py:score", "--view", "all", TF_ENABLE_ONEDNN_OPTS="0")
    assert done.returncode == 0, done.stderr
    assert "only oneDNN fuses that" in done.stdout
    assert "_Mkl" not in done.stdout


def test_a_program_without_eager_execution():
    """The function can be recorded all the same."""
    write("tf.compat.v1.disable_eager_execution()\n" + CLUSTERED)
    done = program("model.py:score", "--view", "grappler", "--run")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Recorded by TensorFlow while the function ran." in done.stdout
