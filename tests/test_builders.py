"""The texts that other tests build their graphs from."""

from __future__ import annotations

import pytest

from graph2mermaid.graph import Call, EdgeKind, NodeKind, SourceLine, TensorRef, TensorSpec
from tests.builders import MULTIPLY_ADD, graph, spec


def test_a_chain():
    """Nodes stand in the order of the text, and inputs fill up in the order of the arrows."""
    built = graph("x:Placeholder -> m:MatMul; y:Placeholder -> m -> r:Relu => out", scope="enc")
    assert [node.name for node in built.nodes()] == ["enc/x", "enc/m", "enc/y", "enc/r"]
    ends = [(a.source, a.target, a.edge.source_port, a.edge.target_port) for a in built.arrows()]
    assert ends == [
        ("enc/x", "enc/m", 0, 0),
        ("enc/m", "enc/r", 0, 0),
        ("enc/y", "enc/m", 0, 1),
    ]
    assert [binding.name for binding in built.inputs] == ["enc/x", "enc/y"]
    assert built.outputs[0].tensors == (TensorRef("enc/r", 0),)


def test_arrows_name_ports_and_arguments():
    """Every part of an arrow reaches its edge."""
    built = graph("s:Split int32[] float32[2] -1:2(axis)> a:Add ~> b:NoOp")
    data, control = (arrow.edge for arrow in built.arrows())
    assert (data.source_port, data.target_port, data.argument) == (1, 2, "axis")
    assert data.tensor == TensorSpec("float32", (2,))
    assert (control.kind, control.source_port, control.target_port) == (
        EdgeKind.CONTROL,
        None,
        None,
    )


def test_words_after_a_node():
    """Each key sets the field of its name; the kind follows from the op."""
    built = graph(
        "c:If float32[?] api=tf.cond var=y src=m.py:3:f device=CPU members=a,b origin=o "
        "calls=then_branch=on,else_branch=off attr.n=3 attr.s=x attr.b=True attr.f=-0.5; "
        "v:Placeholder holds=float32[...] label=w; k:Const value=1; p:PartitionedCall; t:Op kind=tensor"
    )
    node = built["c"]
    assert (node.api, node.variable, node.device) == ("tf.cond", "y", "CPU")
    assert (node.members, node.origin) == (("a", "b"), ("o",))
    assert node.source == SourceLine("m.py", 3, "f")
    assert node.calls == (Call("then_branch", "on"), Call("else_branch", "off"))
    assert node.attrs == {"n": 3, "s": "x", "b": True, "f": -0.5}
    assert [node.kind for node in built.nodes()] == [
        NodeKind.CONTROL_FLOW,
        NodeKind.VARIABLE,
        NodeKind.CONST,
        NodeKind.CALL,
        NodeKind.TENSOR,
    ]
    assert built["v"].holds == TensorSpec("float32", None)
    assert built.captures[0].name == "w"


def test_the_first_example():
    """The function of the first page has six ops and five edges."""
    built = graph(MULTIPLY_ADD)
    assert (len(built), built.edge_count) == (6, 5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a -> b:Relu", "'a' is not declared"),
        ("a:Relu; a:Relu", "declared twice"),
        ("a:Relu ->", "leads nowhere"),
        ("a:Relu =>", "leads nowhere"),
        ("a:Relu float32", "not a tensor spec"),
    ],
)
def test_mistakes(text: str, words: str):
    """A text that says nothing sensible is refused."""
    with pytest.raises(ValueError, match=words):
        graph(text)


def test_specs():
    """A spec reads what it writes."""
    for text in ("float32[8,?]", "int32[]", "bool[...]"):
        assert str(spec(text)) == text
