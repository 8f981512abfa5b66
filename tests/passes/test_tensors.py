"""The textbook figure: op, tensor, op."""

from __future__ import annotations

from graph2mermaid.passes.absorb import absorb
from graph2mermaid.passes.inline import inline
from graph2mermaid.passes.results import with_results
from graph2mermaid.passes.tensors import homes_of_tensors, with_tensor_nodes
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


LOOP = """
    x:Placeholder float32[2] var=x
    x -> e:Exp float32[2] var=h => h
    x -> while:While float32[2] float32[2] calls=cond=test,body=step => y
    e -> while
"""
STEP = """
    v:Placeholder float32[2]
    v -> mul:Mul float32[2] var=x => output_0
    w:Placeholder float32[2] -> mul
    w => output_1
"""
TEST = """
    v:Placeholder float32[2]
    w:Placeholder float32[2]
    v -> all:All bool[] => output_0
"""


def test_a_result_does_not_feed_a_loop():
    """A loop's value, and a tensor that a loop reads, are tensors beside the result."""
    flat = inline(graph(LOOP, functions={"test": TEST, "step": STEP})).graph
    shown = with_tensor_nodes(absorb(with_results(flat)).graph)
    found = {(a.source, a.target) for a in shown.arrows()}
    assert {("tensor:while:0", "output:y"), ("tensor:e:0", "output:h")} <= found
    assert {("tensor:while:0", "while/mul"), ("tensor:e:0", "while/mul")} <= found
    assert not any(start.startswith("output:") for start, _ in found)
    assert shown["tensor:while:0"].label == "x"


def test_a_tensor_stands_in_the_frame_of_its_op():
    """What a body makes is drawn inside it."""
    shown = with_tensor_nodes(graph("a:Exp float32[2] -> b:Neg float32[2] -> c:Relu"))
    assert homes_of_tensors(shown, {"a": "f"}) == {"tensor:a:0": "f"}


def test_several_tensors_stay_an_edge():
    """An edge out of a group is no tensor of the group; its words stay where they are."""
    text = "g:group kind=group label=dense -> r:Relu float32[2]"
    assert drawn(text) == [("dense", "r")]
