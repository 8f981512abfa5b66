"""Models from files, all the way to the report: what a file holds shows as the model itself does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import graph2mermaid
from graph2mermaid import Capture, NodeKind
from tests.tf import gallery
from tests.tf.reading import counted, labels, op_types, recounted

pytestmark = [
    pytest.mark.tf,
    pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file"),
]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def loaded(path: str) -> Capture:
    capture = graph2mermaid.load(path)
    assert isinstance(capture, Capture)
    return capture


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
def test_a_keras_file_is_the_model(suffix: str):
    """Its graph has the ops, edges, shapes and variables of the model that was saved."""
    keras = gallery.keras_of_tensorflow()
    if suffix == ".keras" and keras.__version__ < "2.12":
        pytest.skip("Keras 2.9 has no .keras format")
    model = gallery.mlp(keras)
    model.save(f"mlp{suffix}")
    original, copy = graph2mermaid.trace(model).traced, loaded(f"mlp{suffix}").traced
    assert counted(copy) == counted(original)
    assert [b.type for b in copy.inputs] == ["float32[?,4]"]
    assert [b.type for b in copy.captures] == [b.type for b in original.captures]
    endings = ["hidden/kernel", "hidden/bias", "logits/kernel", "logits/bias"]
    assert ["/".join(b.name.split("/")[-2:]) for b in copy.captures] == endings


def exported() -> Any:
    """Export a model as a SavedModel, the way its Keras has for it."""
    import tensorflow as tf

    keras = gallery.keras_of_tensorflow()
    model = gallery.mlp(keras)
    if hasattr(model, "export"):
        model.export("exported", verbose=False)
    else:
        tf.saved_model.save(model, "exported")
    return model


def test_an_exported_model_shows_the_real_ops():
    """A signature calls one function; its ops are drawn, not the call."""
    exported()
    capture = loaded("exported:serving_default")
    inside = sum(
        (op_types(body) for body in capture.traced.functions.values()), op_types(capture.traced)
    )
    assert (inside["MatMul"], inside["BiasAdd"], inside["Relu"]) == (2, 2, 1)
    drawn = [words for words in labels(capture) if words in ("MatMul", "BiasAdd", "Relu")]
    assert drawn == ["MatMul", "BiasAdd", "Relu", "MatMul", "BiasAdd"]


def test_an_exported_model_has_the_variables_of_the_model():
    """Type, shape and the layer's name are all there."""
    model = exported()
    capture = loaded("exported:serving_default")
    stated = {b.type for b in capture.traced.captures}
    assert stated == {f"Variable float32[{','.join(map(str, v.shape))}]" for v in model.variables}
    assert all(any(layer in b.name for layer in ("hidden", "logits"))
               for b in capture.traced.captures)  # fmt: skip


def test_a_saved_signature_has_the_names_of_its_author():
    """The input is called as in the TensorSpec, the output as in the dictionary."""
    import tensorflow as tf

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(tf.ones([4, 3]), name="w")

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="features")])
        def serve(self, x):
            return {"scores": tf.nn.softmax(tf.matmul(x, self.w))}

    model = Model()
    tf.saved_model.save(model, "saved", signatures={"serving_default": model.serve})
    capture = loaded("saved")
    names = {
        role: [b.name for b in bindings]
        for role, bindings in (
            ("in", capture.traced.inputs),
            ("captured", capture.traced.captures),
            ("out", capture.traced.outputs),
        )
    }
    assert names == {"in": ["features"], "captured": ["w"], "out": ["scores"]}
    assert {"features\nfloat32[?,4]", "w\nfloat32[4,3]", "MatMul", "Softmax"} <= set(
        labels(capture)
    )


def test_a_loop_of_tensorflow_1_in_a_file():
    """Every op and edge of the GraphDef is there; the ways back are dotted, the rest acyclic."""
    graph_def = gallery.version_1_loop()
    Path("loop.pb").write_bytes(graph_def.SerializeToString())
    capture = loaded("loop.pb")
    graph = capture.traced
    assert counted(graph) == recounted(graph_def)
    assert len(graph) == 37
    ops = op_types(graph)
    names = ("Enter", "Merge", "Switch", "NextIteration", "Exit", "LoopCond")
    assert [ops[op] for op in names] == [2, 3, 5, 2, 2, 1]
    assert {(graph[a.source].op, graph[a.target].op) for a in graph.back_edges} == {
        ("NextIteration", "Merge")
    }
    dotted = [
        link
        for figure in capture.report().figures()
        for link in figure.diagram.links
        if link.dotted
    ]
    assert {a[:2] for a in graph.back_edges} <= {(link.source, link.target) for link in dotted}
    frames = {n.attrs["frame_name"] for n in graph.nodes() if n.op == "Enter"}
    assert len(frames) == 1


def test_a_pruned_part_has_one_argument():
    """Placeholders that TensorFlow leaves behind when it prunes are no arguments of the part."""
    capture = gallery.frozen()
    graph = capture.traced
    assert [b.name for b in graph.inputs] == ["x"]
    assert [n.name for n in graph.nodes() if n.kind is NodeKind.INPUT] == ["x"]
    assert "1 argument," in capture.to_mermaid()
    left = op_types(graph)
    assert (left["Enter"], left["NextIteration"], left["LoopCond"]) == (2, 2, 1)


def test_what_a_loop_was_lowered_to_says_its_op_alone():
    """A dozen ops of one line need not each repeat the line."""
    capture = gallery.frozen()
    assert {"Enter", "Switch", "NextIteration", "LoopCond"} <= set(labels(capture))


def test_the_user_is_told_that_a_part_takes_no_other_inputs():
    """A concrete function has its shapes, and asking for others is an error."""
    import tensorflow as tf

    concrete = tf.function(lambda x: x * 2.0).get_concrete_function(tf.TensorSpec([2]))
    with pytest.raises(graph2mermaid.SignatureError, match="traced already"):
        graph2mermaid.trace(concrete, tf.TensorSpec([3]))
