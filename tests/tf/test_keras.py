"""Keras models and layers as they are called: the ops that Keras makes, under its own names."""

from __future__ import annotations

import re

import pytest

import graph2mermaid
from graph2mermaid import Capture, NodeKind
from tests.tf import gallery
from tests.tf.reading import edge_labels, labels, op_types, rows

pytestmark = pytest.mark.tf


def captured(capture: Capture) -> list[tuple[str, str]]:
    return [(binding.name, binding.type) for binding in capture.traced.captures]


def test_a_model_is_traced_for_its_own_inputs():
    """A model is no tf.function; its input's shape and the names of its layers are known."""
    capture = gallery.sequential()
    assert [str(b.type) for b in capture.traced.inputs] == ["float32[?,4]"]
    assert captured(capture) == [
        ("mlp/hidden/kernel", "Variable float32[4,3]"),
        ("mlp/hidden/bias", "Variable float32[3]"),
        ("mlp/logits/kernel", "Variable float32[3,2]"),
        ("mlp/logits/bias", "Variable float32[2]"),
    ]
    assert rows(capture.report().to_markdown(), "Parameters (elements of the variables)") == ["23"]


def test_a_variable_stands_for_its_read():
    """Keras reads kernels in a scope called Cast; no Cast is drawn, since there is none."""
    capture = gallery.sequential()
    assert "mlp_1/hidden_1/Cast/ReadVariableOp" in capture.traced
    assert "Cast" not in op_types(capture.traced)
    shown = labels(capture)
    assert not any("Cast" in words for words in shown)
    assert [words for words in shown if words.startswith("tf.")] == [
        "tf.matmul",
        "tf.nn.bias_add",
        "tf.nn.relu",
        "tf.matmul",
        "tf.nn.bias_add",
    ]


def test_keras_3_takes_batch_normalization_apart():
    """Training computes the moments, and assigns both averages before it returns."""
    capture = gallery.batch_norm_training()
    ops = op_types(capture.traced)
    assert not any("FusedBatchNorm" in op for op in ops)
    assert [ops[op] for op in ("Mean", "SquaredDifference", "Rsqrt", "AssignVariableOp")] == [
        2,
        1,
        1,
        2,
    ]
    diagram = next(capture.report().figures()).diagram
    updates = {key for key, box in diagram.boxes.items() if box.lines[0].endswith(" update")}
    result = next(key for key, box in diagram.boxes.items() if box.look.value == "output")
    assert {diagram.boxes[key].lines[0] for key in updates} == {
        "moving_mean update",
        "moving_variance update",
    }
    assert {(k.target, k.dotted) for k in diagram.links if k.source in updates} == {(result, True)}


def test_inference_assigns_nothing():
    """The same layer without training only reads its averages."""
    ops = op_types(gallery.batch_norm_inference().traced)
    assert "AssignVariableOp" not in ops
    assert ops["Rsqrt"] == 1


def test_keras_2_has_one_op_for_it():
    """FusedBatchNormV3 has six outputs."""
    (fused,) = [
        node for node in gallery.batch_norm_fused().traced.nodes() if node.op == "FusedBatchNormV3"
    ]
    assert len(fused.outputs) == 6


def test_a_recurrent_layer_is_a_loop():
    """Keras 3 has a stateful While; its variables are read inside the body."""
    graph = gallery.keras_3_lstm().traced
    (loop,) = [node for node in graph.nodes() if node.op == "While"]
    assert loop.kind is NodeKind.CONTROL_FLOW
    bodies = {call.role: graph.functions[call.function] for call in loop.calls}
    ops = op_types(bodies["body"])
    assert [ops[op] for op in ("ReadVariableOp", "Sigmoid", "Tanh")] == [3, 3, 2]
    assert not any("Cudnn" in op for body in graph.functions.values() for op in op_types(body))


def test_the_loop_is_drawn_with_its_body():
    """The body's part has the cell's ops, and the loop's variables lead into it by name."""
    shown = labels(gallery.keras_3_lstm())
    assert sum(words.startswith("while\n") for words in shown) == 1
    assert sum(words.startswith("tf.sigmoid") for words in shown) == 3
    assert sum(words.startswith("tf.tanh") for words in shown) == 2
    for variable in ("kernel", "recurrent_kernel", "bias"):
        assert any(words.startswith(f"lstm/lstm_cell/{variable}\n") for words in shown)


def test_a_recurrent_layer_of_keras_2():
    """Its loop is inside a function that is called; all three variables are named outside."""
    capture = gallery.tf_keras_lstm()
    graph = capture.traced
    assert [name.rpartition("/")[2] for name, _ in captured(capture)] == [
        "kernel",
        "recurrent_kernel",
        "bias",
    ]
    everywhere = [n for g in (graph, *graph.functions.values()) for n in g.nodes()]
    (loop,) = [node for node in everywhere if node.op in ("While", "StatelessWhile")]
    assert {call.role for call in loop.calls} == {"cond", "body"}
    assert all(call.function in graph.functions for call in loop.calls)
    assert any(words.startswith("while") for words in labels(capture))


def test_one_tensor_may_be_query_key_and_value():
    """The argument has three consumers in the graph, and three edges in the diagram."""
    capture = gallery.attention()
    ops = op_types(capture.traced)
    assert [ops[op] for op in ("BatchMatMulV2", "Einsum", "Softmax", "ReadVariableOp")] == [
        4,
        2,
        1,
        8,
    ]
    assert len({arrow.target for arrow in capture.traced.outgoing("x")}) == 3
    diagram = next(capture.report().figures()).diagram
    assert len([link for link in diagram.links if link.source == "x"]) == 3


def test_a_transformer_block():
    """Every variable is named once, and each residual connection is an addition of two tensors."""
    capture = gallery.transformer_block()
    names = [name for name, _ in captured(capture)]
    assert len(names) == len(set(names)) == 16
    assert {name.split("/")[0] for name in names} == {
        "attention",
        "norm_1",
        "expand",
        "contract",
        "norm_2",
    }
    # Query, key, value and output: 4 x (32 x 32 + 32); the dense layers; the norms: 4 x 32.
    assert sum(sizes(capture)) == 4 * 1056 + (32 * 64 + 64) + (64 * 32 + 32) + 128
    shown = " ".join(labels(capture))
    assert all(word in shown for word in ("tf.nn.softmax", "tf.einsum", "Erf"))


def sizes(capture: Capture) -> list[int]:
    nodes = (capture.traced[b.tensors[0].node] for b in capture.traced.captures)
    return [node.holds.size for node in nodes if node.holds and node.holds.size]


def test_types_are_on_the_edges_of_a_mixed_model():
    """What is cast is seen: variables stay float32, edges become bfloat16."""
    capture = gallery.mixed_precision()
    casts = [node for node in capture.traced.nodes() if node.op == "Cast"]
    assert [node.outputs[0].dtype for node in casts] == ["bfloat16"] * 3
    assert {type_ for _, type_ in captured(capture)} == {
        "Variable float32[10,4]",
        "Variable float32[12,2]",
        "Variable float32[2]",
    }
    assert {"float32[2,3,4]", "bfloat16[2,12]"} <= set(edge_labels(capture))
    assert [b.type for b in capture.traced.outputs] == ["bfloat16[2,2]"]


def test_an_embedding_is_a_gather():
    """Keras 3 reads the table and gathers from it, after it has made negative numbers positive."""
    ops = op_types(gallery.mixed_precision().traced)
    assert [ops[op] for op in ("GatherV2", "ResourceGather", "Less", "SelectV2")] == [1, 0, 1, 1]


def test_what_fit_runs_for_a_batch():
    """Forward, backward, update and metrics are all in the graph of `train_step`."""
    capture = gallery.fit_step()
    ops = op_types(capture.traced)
    assert ops["AssignSubVariableOp"] == 2
    assert ops["AssignVariableOp"] + ops["AssignAddVariableOp"] == 3
    assert any(node.name.startswith("gradient_tape/") for node in capture.traced.nodes())
    assert [b.name for b in capture.traced.outputs] == ["loss"]
    # Keras numbers the optimizers of a process.
    names = {re.sub(r"^sgd_\d+/", "sgd/", name) for name, _ in captured(capture)}
    assert {"net/dense/kernel", "net/dense/bias", "sgd/learning_rate", "loss/total"} <= names
    shown = labels(capture)
    assert sum(words == "AssignSubVariableOp" for words in shown) >= 2


def test_train_function_is_refused_with_the_step_to_type(tmp_path, monkeypatch):
    """Keras 3's `train_function` loops over an iterator; `train_step` is what a batch runs."""
    gallery.keras_3()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fit.py").write_text(
        "import keras\n"
        "model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])\n"
        "model.compile('sgd', 'mse')\n"
        "model.make_train_function()\n"
    )
    with pytest.raises(graph2mermaid.TargetError) as caught:
        graph2mermaid.load("fit.py:model.train_function")
    assert str(caught.value) == (
        "fit.py:model.train_function is a loop in Python, not a graph; type fit.py:model.train_step"
    )
    capture = graph2mermaid.load("fit.py:model.train_step")
    assert isinstance(capture, Capture)
    assert [b.name for b in capture.traced.inputs] == ["x", "y"]
    assert any(note.startswith("y: float32[?,3] assumed, as ") for note in capture.notes)
    assert op_types(capture.traced)["AssignSubVariableOp"] == 2
