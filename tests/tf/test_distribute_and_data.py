"""What runs on several devices, and what is fed by an input pipeline."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import graph2mermaid
from graph2mermaid import NodeKind, serde
from tests.cli.conftest import program
from tests.tf import gallery
from tests.tf.reading import labels, op_types, rows

pytestmark = pytest.mark.tf

MIRRORED = """
import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    w = tf.Variable(1.0, name="w")

@tf.function(input_signature=[tf.TensorSpec([2])])
def step(x):
    per_replica = strategy.run(lambda t: tf.reduce_sum(t * w), args=(x,))
    return strategy.reduce("SUM", per_replica, axis=None)
"""


@pytest.fixture
def mirrored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> graph2mermaid.Capture:
    """Trace a replicated step in a process of its own, since devices are set once in each."""
    pytest.importorskip("tensorflow")
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MIRRORED)
    done = program("model.py:step", "--save", "step.g2m.json", "--out", "step.md")
    assert done.returncode == 0, done.stderr
    (capture,) = serde.load("step.g2m.json")
    return capture


def test_a_replicated_step_has_a_body_for_each_device(mirrored):
    """The replicas' ops stand side by side, each on its device, and are joined at the end."""
    graph = mirrored.traced
    devices = {node.name: node.device[-5:] for node in graph.nodes()}
    assert {name: devices[name] for name in ("mul", "Sum", "replica_1/mul", "replica_1/Sum")} == {
        "mul": "CPU:0",
        "Sum": "CPU:0",
        "replica_1/mul": "CPU:1",
        "replica_1/Sum": "CPU:1",
    }
    (join,) = [node.name for node in graph.nodes() if node.op == "AddN"]
    assert {arrow.source for arrow in graph.incoming(join)} >= {"Sum", "replica_1/Sum"}


def test_a_mirrored_variable_is_one_variable(mirrored):
    """It has a handle on each device, and its parameters count once."""
    (capture,) = mirrored.traced.captures
    assert (capture.name, capture.type) == ("w", "Variable float32[]")
    assert len(capture.tensors) == 2
    markdown = Path("step.md").read_text(encoding="utf-8")
    assert rows(markdown, "Variables") == ["1"]
    assert rows(markdown, "Parameters (elements of the variables)") == ["1"]


def test_each_replica_reads_its_own_part(mirrored):
    """The diagram shows both handles, since they are in the memory of different devices."""
    traced = dataclasses.replace(mirrored, optimization=None)
    shown = [words for words in labels(traced) if words.startswith("w")]
    assert shown == ["w\nfloat32[]", "w/replica_1\nfloat32[]"]
    assert [b.name for b in mirrored.traced.inputs] == ["x"]


def test_a_pipeline_is_one_captured_value():
    """The functions of its stages are not part of the graph that reads from it."""
    capture = gallery.pipeline_step()
    graph = capture.traced
    assert op_types(graph)["IteratorGetNext"] == 2
    (dataset,) = [b for b in graph.captures if b.type == "variant"]
    assert graph[dataset.tensors[0].node].kind is NodeKind.VARIABLE
    assert graph.functions == {}
    markdown = capture.report().to_markdown()
    assert rows(markdown, "Variables") == ["0"]


def test_what_reads_from_a_pipeline_keeps_its_order():
    """The second element comes after the first, which a dotted edge says."""
    capture = gallery.pipeline_step()
    diagram = next(capture.report().figures()).diagram
    reads = [n.name for n in capture.traced.nodes() if n.op == "IteratorGetNext"]
    order = {(link.source, link.target) for link in diagram.links if link.dotted}
    assert (reads[0], reads[1]) in order


def test_a_stage_can_be_traced_by_itself():
    """A function that only a pipeline calls is a target like any other."""
    import tensorflow as tf

    @tf.function
    def scale(v):
        return tf.cast(v, tf.float32) / 255.0

    tf.data.Dataset.range(3).map(scale)
    graph = graph2mermaid.trace(scale, tf.TensorSpec([], tf.int64)).traced
    assert set(op_types(graph)) == {"Placeholder", "Cast", "Const", "RealDiv", "Identity"}


def test_a_stage_is_shown_for_what_its_pipeline_gives_it():
    """Without a shape the trace that the pipeline made says which, and the note says so."""
    import tensorflow as tf

    @tf.function
    def scale(v):
        return tf.cast(v, tf.float32) / 255.0

    tf.data.Dataset.range(3).map(scale)
    capture = graph2mermaid.trace(scale)
    assert [b.type for b in capture.traced.inputs] == ["int64[]"]
    assert capture.notes == ("v: int64[] as in its first existing trace",)
