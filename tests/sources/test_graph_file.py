"""Graph files: every form they come in, and what is no graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph2mermaid.errors import TargetError
from graph2mermaid.sources.graph_file import graph_from_file, read_graph_def

pytestmark = pytest.mark.tf


def matmul(op="MatMul"):
    """Make the GraphDef of one matrix product, without shapes but those of its inputs."""
    import tensorflow as tf

    with tf.Graph().as_default() as built:
        x = tf.compat.v1.placeholder(tf.float32, [None, 4], name="x")
        w = tf.compat.v1.placeholder(tf.float32, [4, 3], name="w")
        tf.nn.relu(tf.matmul(x, w, name="product"), name="y")
        tf.identity(w, name="unrelated")
    proto = built.as_graph_def()
    next(node for node in proto.node if node.name == "product").op = op
    return proto


def meta_graph(**signatures):
    """Put it in a MetaGraphDef with signatures of the given names, from x to the given op."""
    from tensorflow.core.protobuf import meta_graph_pb2

    meta = meta_graph_pb2.MetaGraphDef(graph_def=matmul())
    meta.meta_info_def.tags.append("serve")
    for name, op in signatures.items():
        signature = meta.signature_def[name]
        signature.inputs["image"].name = "x:0"
        signature.outputs["score"].name = f"{op}:0"
        for info in (signature.inputs["image"], signature.outputs["score"]):
            info.dtype = 1
            info.tensor_shape.dim.add().size = -1
            info.tensor_shape.dim.add().size = 4
    return meta


def saved_model(*metas):
    """Put MetaGraphDefs in a SavedModel proto."""
    from tensorflow.core.protobuf import saved_model_pb2

    return saved_model_pb2.SavedModel(saved_model_schema_version=1, meta_graphs=metas)


def binary(proto):
    """Write a proto as bytes."""
    return proto.SerializeToString()


def text(proto):
    """Write a proto as text, with a comment before it."""
    from google.protobuf import text_format

    return b"# a graph\n\n" + text_format.MessageToString(proto).encode()


@pytest.mark.parametrize("written", [binary, text], ids=["binary", "text"])
@pytest.mark.parametrize(
    "proto",
    [matmul, meta_graph, lambda: saved_model(meta_graph())],
    ids=["GraphDef", "MetaGraphDef", "SavedModel"],
)
@pytest.mark.parametrize("name", ["g.pb", "g.pbtxt"])
def test_the_content_says_which_form_a_file_has(tmp_path, proto, written, name):
    """All forms of one graph are the same graph, whatever the file is called."""
    path = tmp_path / name
    path.write_bytes(written(proto()))
    assert read_graph_def(path) == matmul()


def test_shapes_that_the_file_lacks_are_worked_out(tmp_path):
    """TensorFlow's shape functions tell what follows from the shapes of the inputs."""
    path = tmp_path / "g.pb"
    path.write_bytes(binary(matmul()))
    graph, notes = graph_from_file(path)
    assert graph.name == "g"
    assert str(graph["product"].outputs[0]) == "float32[?,3]"
    assert [b.name for b in graph.outputs] == ["y", "unrelated"]
    assert notes == ()


def test_shapes_that_the_file_has_are_kept(tmp_path):
    """A file with shapes is not worked through again."""
    proto = matmul()
    for node in proto.node:
        shape = node.attr["_output_shapes"].list.shape.add()
        shape.dim.add().size = 9
    path = tmp_path / "g.pb"
    path.write_bytes(binary(proto))
    graph, _ = graph_from_file(path)
    assert {str(node.outputs[0]) for node in graph.nodes()} == {"float32[9]"}


def test_an_op_that_this_tensorflow_lacks_costs_the_shapes_alone(tmp_path):
    """The graph is complete; a note names the op."""
    path = tmp_path / "g.pb"
    path.write_bytes(binary(matmul(op="MyMatMul")))
    graph, notes = graph_from_file(path)
    assert len(graph) == 5
    assert graph["y"].outputs[0].shape is None
    (note,) = notes
    assert note.startswith(f"{path}: shapes are shown only where the file has them: ")
    assert note.endswith("this TensorFlow has no op MyMatMul.")


def test_a_graph_that_tensorflow_refuses_is_shown_all_the_same(tmp_path):
    """Shapes that contradict each other are the file's fault, not a reason to stop."""
    proto = matmul()
    next(n for n in proto.node if n.name == "w").attr["shape"].shape.dim[0].size = 5
    path = tmp_path / "g.pb"
    path.write_bytes(binary(proto))
    graph, notes = graph_from_file(path)
    assert len(graph) == 5
    assert "Dimensions must be equal" in notes[0]
    assert "\n" not in notes[0]


def test_the_default_signature_gives_names_and_the_part_to_show(tmp_path):
    """What a request needs is shown under the names of the signature; the rest is left out."""
    path = tmp_path / "g.pb"
    path.write_bytes(binary(meta_graph(serving_default="y", other="unrelated")))
    graph, notes = graph_from_file(path)
    assert list(graph.dag) == ["x", "w", "product", "y"]
    assert [(b.name, str(b.tensors[0]), b.type) for b in graph.inputs] == [
        ("image", "x:0", "float32[?,4]")
    ]
    assert [(b.name, str(b.tensors[0])) for b in graph.outputs] == [("score", "y:0")]
    assert graph["x"].label == "image"
    assert "serving_default" in notes[0]


def test_without_a_default_signature_the_whole_graph_is_shown(tmp_path):
    """Of several signatures none is preferred; a note names them."""
    path = tmp_path / "g.pb"
    path.write_bytes(binary(meta_graph(one="y", other="unrelated")))
    graph, notes = graph_from_file(path)
    assert len(graph) == 5
    assert "one, other" in notes[0]


def test_the_graph_for_serving_is_chosen_among_several(tmp_path):
    """A SavedModel may hold a graph for training as well."""
    training = meta_graph()
    training.meta_info_def.tags[:] = ["train"]
    training.graph_def.node.add(name="only_here", op="NoOp")
    path = tmp_path / "g.pb"
    path.write_bytes(binary(saved_model(training, meta_graph())))
    assert read_graph_def(path) == matmul()


def _truncated():
    return binary(matmul())[:-7]


def _foreign():
    from tensorflow.core.framework import op_def_pb2

    return binary(op_def_pb2.OpList(op=[op_def_pb2.OpDef(name="Relu", summary="x")]))


DAMAGED = "is damaged or not a graph: it is no GraphDef, MetaGraphDef or SavedModel proto"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (lambda: b"", "is empty"),
        (lambda: b" \n", "is empty"),
        (lambda: b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", DAMAGED),
        (lambda: b"import tensorflow as tf\n", DAMAGED),
        (_truncated, DAMAGED),
        (_foreign, DAMAGED),
        (lambda: b"versions { producer: 1 }", "the graph in it has no nodes"),
        (lambda: b"meta_graphs { }", "the graph in it has no nodes"),
        (lambda: b"saved_model_schema_version: 1", "the graph in it has no nodes"),
        (lambda: b'node { name: "x" op: "Relu"\ninput }', "is not a GraphDef in text form: 2:"),
        (lambda: b'node { name: "\xff" }', "is not a GraphDef in text form: "),
    ],
    ids=[
        "empty",
        "blank",
        "picture",
        "Python",
        "truncated",
        "other proto",
        "no nodes",
        "no nodes inside",
        "no graphs",
        "bad text",
        "not UTF-8",
    ],
)
def test_what_is_no_graph_is_one_clear_line(tmp_path, content, said):
    """The message names the file and says what is wrong with it, on one line."""
    path = tmp_path / "g.pb"
    path.write_bytes(content())
    with pytest.raises(TargetError) as caught:
        graph_from_file(path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_says_why():
    """The system's own words, without its error number."""
    with pytest.raises(TargetError, match=r"^nowhere\.pb: No such file or directory$"):
        read_graph_def(Path("nowhere.pb"))


def test_a_signature_of_tensors_that_are_not_there_is_damage(tmp_path):
    """A signature that leads nowhere is named with the tensor it means."""
    path = tmp_path / "g.pb"
    path.write_bytes(binary(meta_graph(serving_default="nowhere")))
    with pytest.raises(TargetError, match="damaged graph: 'score' is nowhere:0, not in it"):
        graph_from_file(path)
