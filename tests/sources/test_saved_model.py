"""SavedModel folders, written by TensorFlow itself: what is found in them, and what is not."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from graph2mermaid.errors import TargetError
from graph2mermaid.graph import NodeKind
from graph2mermaid.sources.saved_model import (
    candidates,
    graph_from_saved_model,
    load_signature,
)

pytestmark = pytest.mark.tf


def make_module():
    """Make a module with a signature, a part of its own, and a function traced twice."""
    import tensorflow as tf

    @tf.function
    def double(x):
        return x * 2.0

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="features")])
    def serve(x):
        return {"scores": tf.nn.softmax(tf.matmul(x, module.w))}

    module = tf.Module()
    module.w = tf.Variable(tf.ones([4, 3]), name="w")
    module.serve = serve
    module.part = tf.Module()
    module.part.double = double
    module.part.double.get_concrete_function(tf.TensorSpec([2]))
    module.part.double.get_concrete_function(tf.TensorSpec([]))
    return module


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Save a module with two signatures."""
    import tensorflow as tf

    folder = tmp_path_factory.mktemp("saved") / "model"
    module = make_module()
    signatures = {"serving_default": module.serve, "same": module.serve}
    tf.saved_model.save(module, str(folder), signatures=signatures)
    return folder


def save_version_1(folder, op="Softmax"):
    """Save a model the way TensorFlow 1 did, with variables and what trains them."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        weights = v1.get_variable("w", [4, 3], use_resource=False)
        y = tf.identity(tf.nn.softmax(x @ weights, name="scores"), name="y")
        v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y))
        session.run(v1.global_variables_initializer())
        info = v1.saved_model.build_tensor_info
        signature = v1.saved_model.build_signature_def({"image": info(x)}, {"score": info(y)})
        builder = v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(session, ["serve"], {"predict": signature})
        builder.add_meta_graph(["train"])
        builder.save()
    if op != "Softmax":
        change(folder, b"\x12\x07Softmax", b"\x12\x07" + op.encode())
    return folder


def change(folder, old, new):
    """Change the bytes of a saved_model.pb."""
    path = folder / "saved_model.pb"
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))


def names(bindings):
    """List bindings as text."""
    return [f"{b.name} {b.type}" for b in bindings]


def ops(graph):
    """List the op types of a graph and of all its functions."""
    return {node.op for part in (graph, *graph.functions.values()) for node in part.nodes()}


def test_the_default_signature_shows_the_real_ops_and_the_users_names(saved):
    """The ops are in a called function; variables have their names, not `unknown`."""
    graph, notes = graph_from_saved_model(saved)
    assert graph.name == "serving_default"
    assert names(graph.inputs) == ["features float32[?,4]"]
    assert names(graph.outputs) == ["scores float32[?,3]"]
    assert [b.name for b in graph.captures] == ["w"]
    assert {"ReadVariableOp", "MatMul", "Softmax"} <= ops(graph)
    assert notes == ()


@pytest.mark.parametrize(
    ("asked", "inputs"),
    [("same", ["features"]), ("serve", ["x"]), ("part.double", ["x"])],
)
def test_signatures_and_functions_can_be_asked_for(saved, asked, inputs):
    """A name is a signature, or a tf.function by the path that leads to it."""
    graph, _ = graph_from_saved_model(saved, asked)
    assert graph.name == asked
    assert [b.name for b in graph.inputs] == inputs


def test_what_is_listed_can_be_asked_for(saved):
    """Signatures come with their arguments, and each name that is listed leads to a graph."""
    found = candidates(saved)
    assert [(c.path, c.kind, c.signature) for c in found] == [
        ("same", "signature", "(features: float32[?,4])"),
        ("serving_default", "signature", "(features: float32[?,4])"),
        ("serve", "tf.function", "(...)"),
        ("part.double", "tf.function", "(...)"),
    ]
    assert all(len(graph_from_saved_model(saved, c.path)[0]) > 0 for c in found)


def test_of_several_traces_one_is_shown_and_the_note_says_so(saved):
    """A saved function cannot be traced afresh; its first trace is taken."""
    graph, notes = graph_from_saved_model(saved, "part.double")
    assert str(graph["x"].outputs[0]) in {"float32[2]", "float32[]"}
    assert notes == (f"{saved}:part.double was saved with 2 traces; the first is shown.",)


def test_a_signature_can_be_called(saved):
    """What is loaded runs, and keeps its variables alive."""
    import tensorflow as tf

    concrete = load_signature(saved, "serving_default")
    scores = concrete(features=tf.ones([1, 4]))["scores"]
    assert scores.shape == (1, 3)


def test_the_only_function_needs_no_name(tmp_path):
    """Without a signature, a single tf.function is meant."""
    import tensorflow as tf

    tf.saved_model.save(make_module().part, str(tmp_path / "m"))
    graph, _ = graph_from_saved_model(tmp_path / "m")
    assert graph.name == "double"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("nope", "M has no signature 'nope'; there is M:same, M:serving_default, M:serve, M:part."),
        ("part", "M has no signature 'part'; there is "),
        ("__saved_model_init_op", "M has no signature '__saved_model_init_op'; there is "),
    ],
)
def test_an_unknown_signature_lists_those_there_are(saved, asked, said):
    """The names to type instead are given whole, before the model is loaded."""
    with pytest.raises(TargetError) as caught:
        graph_from_saved_model(saved, asked)
    assert str(caught.value).replace(str(saved), "M").startswith(said)


def test_without_a_default_the_choice_is_the_users(tmp_path):
    """Of several signatures or functions none is preferred."""
    import tensorflow as tf

    module = make_module()
    tf.saved_model.save(module, str(tmp_path / "a"), {"one": module.serve, "two": module.serve})
    with pytest.raises(TargetError, match=r"a has several signatures; there is \S+a:one, \S+a:two"):
        load_signature(tmp_path / "a")
    empty = tf.Module()
    empty.v = tf.Variable(1.0)
    tf.saved_model.save(empty, str(tmp_path / "b"))
    with pytest.raises(TargetError, match="has no signature; nothing in it can be traced"):
        load_signature(tmp_path / "b")


def test_models_of_tensorflow_1_load(tmp_path):
    """Of a model with several graphs that for serving is taken, and only what a request needs."""
    graph, notes = graph_from_saved_model(save_version_1(tmp_path / "v1"))
    assert graph.name == "predict"
    assert [b.name for b in graph.inputs] == ["image"]
    assert [b.name for b in graph.outputs] == ["score"]
    assert {"MatMul", "Softmax", "VariableV2"} <= ops(graph)
    assert "ApplyGradientDescent" not in ops(graph)
    assert notes == ()


def test_a_model_that_cannot_be_loaded_is_read_from_its_file(tmp_path):
    """An op that this TensorFlow lacks stops the loader; the graph is there all the same."""
    folder = save_version_1(tmp_path / "v1", op="SoftMix")
    graph, (note,) = graph_from_saved_model(folder)
    assert names(graph.inputs) == ["image float32[?,4]"]
    assert names(graph.outputs) == ["score float32[?,3]"]
    assert "SoftMix" in ops(graph)
    assert "ApplyGradientDescent" not in ops(graph)
    assert graph["w"].kind is NodeKind.VARIABLE
    assert note == (
        f"TensorFlow cannot load {folder}, so the graph is read from its file alone and can "
        "neither be optimized nor run: Op type not registered 'SoftMix'."
    )
    with pytest.raises(TargetError, match=r"cannot be loaded: Op type not registered 'SoftMix'$"):
        load_signature(folder)


def test_a_model_without_its_variables_is_read_from_its_file(saved, tmp_path):
    """The values are lost, the graph is not; a function other than a signature needs the loader."""
    folder = tmp_path / "m"
    shutil.copytree(saved, folder)
    shutil.rmtree(folder / "variables")
    graph, (note,) = graph_from_saved_model(folder)
    assert names(graph.inputs) == ["features float32[?,4]"]
    assert {"MatMul", "Softmax", "VarHandleOp"} <= ops(graph)
    assert "SaveV2" not in ops(graph)
    assert str(graph["w"].holds) == "float32[4,3]"
    assert "Failed to find any matching files" in note
    with pytest.raises(TargetError, match="cannot be loaded"):
        graph_from_saved_model(folder, "serve")


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\x08\x01\x12", "is damaged or not a graph"), (b"", "is empty")],
    ids=["damaged", "empty"],
)
def test_a_damaged_file_is_one_clear_line(tmp_path, content, said):
    """The message names the file in the folder."""
    (tmp_path / "saved_model.pb").write_bytes(content)
    with pytest.raises(TargetError, match=re.escape(str(tmp_path / "saved_model.pb"))) as caught:
        graph_from_saved_model(tmp_path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_another_folder_is_not_a_model():
    """The message says what is missing."""
    with pytest.raises(TargetError, match=r"^src is not a SavedModel: it has no saved_model\.pb$"):
        load_signature(Path("src"))


def test_what_keras_exports_is_read(tmp_path):
    """`model.export` writes a SavedModel with the names of layers on its variables."""
    keras = pytest.importorskip("keras", minversion="3")
    model = keras.Sequential(
        [keras.Input((4,), name="features"), keras.layers.Dense(3, activation="relu", name="h")]
    )
    model.export(str(tmp_path / "m"), verbose=False)
    graph, _ = graph_from_saved_model(tmp_path / "m")
    assert names(graph.inputs) == ["features float32[?,4]"]
    assert [b.name.rpartition("h/")[2] for b in graph.captures] == ["kernel", "bias"]
    assert {"MatMul", "Relu"} <= ops(graph)
    with pytest.raises(TargetError, match=r"there is \S+:serve, \S+:serving_default$"):
        graph_from_saved_model(tmp_path / "m", "nope")


def test_what_keras_2_saves_is_read(tmp_path):
    """Keras 2 writes SavedModels of its own; its functions for single layers are not offered."""
    import tensorflow as tf

    keras = tf.keras if tf.keras.__version__ < "3" else pytest.importorskip("tf_keras")
    model = keras.Sequential([keras.Input((4,), name="features"), keras.layers.Dense(3, name="h")])
    model.save(str(tmp_path / "m"), save_format="tf")
    graph, _ = graph_from_saved_model(tmp_path / "m")
    assert names(graph.inputs) == ["features float32[?,4]"]
    assert [b.name for b in graph.captures] == ["h/kernel", "h/bias"]
    with pytest.raises(TargetError, match=r"there is \S+:serving_default, \S+:__call__$"):
        graph_from_saved_model(tmp_path / "m", "nope")
