"""The textbook figure: op, tensor, op."""

from __future__ import annotations

from graph2mermaid.passes.absorb import absorb
from graph2mermaid.passes.results import with_results
from graph2mermaid.passes.tensors import with_tensor_nodes
from tests.builders import MULTIPLY_ADD, graph


def drawn(text: str) -> list[tuple[str, str]]:
    shown = with_tensor_nodes(absorb(with_results(graph(text))).graph)
    names = {node.name: node.label or node.api or node.name for node in shown.nodes()}
    return [(names[a.source], names[a.target]) for a in shown.arrows()]


def test_the_figure_every_newcomer_sees():
    """Seven nodes and six edges, under the names that the user wrote."""
    assert sorted(drawn(MULTIPLY_ADD)) == sorted(
        [
            ("x", "tf.multiply"),
            ("y", "tf.multiply"),
            ("tf.multiply", "product"),
            ("product", "tf.add"),
            ("b", "tf.add"),
            ("tf.add", "result"),
        ]
    )


def test_one_tensor_read_twice_is_one_node():
    """The op makes the tensor once; each reader has an edge from it."""
    text = "x:Placeholder float32[2] -> e:Exp float32[2] var=h -> a:Relu float32[2] => y; e -> b:Neg float32[2] => z"
    found = drawn(text)
    assert found.count(("e", "h")) == 1
    assert ("h", "a") in found
    assert ("h", "b") in found


def test_outputs_of_one_op_are_tensors_of_their_own():
    """Port 0 and port 1 are two nodes, the second under TensorFlow's own name."""
    text = "x:Placeholder float32[2] -> s:Split float32[1] float32[1] -> a:Relu float32[1] => y; s -1> b:Neg float32[1] => z"
    found = drawn(text)
    assert ("s:1", "b") in found
    assert ("s", "a") in found
