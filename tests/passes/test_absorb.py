"""Plumbing goes, and nothing that a user wrote goes with it."""

from __future__ import annotations

import pytest

from graph2mermaid.graph import EdgeKind, Graph
from graph2mermaid.passes.absorb import absorb
from graph2mermaid.passes.results import with_results
from tests.builders import MULTIPLY_ADD, graph


def ends(drawn: Graph) -> list[tuple[str, str]]:
    return [(arrow.source, arrow.target) for arrow in drawn.arrows()]


def test_a_read_is_the_variable():
    """A variable's value flows from the variable itself; the read is named as its member."""
    done = absorb(
        graph(
            "w:Placeholder resource[] holds=float32[4] -> read:ReadVariableOp float32[4] -> r:Relu"
        )
    )
    assert ends(done.graph) == [("w", "r")]
    assert done.gone == {"read": "w"}
    assert done.graph["w"].members == ("read",)


def test_a_read_in_call_order_is_the_variable_that_nothing_writes():
    """Two calls of one function are in order, but what they read is the same all along."""
    done = absorb(
        graph(
            """
            w:Placeholder resource[] holds=float32[4]
            w -> one:ReadVariableOp float32[4] -> a:Exp float32[4]
            a ~> gate:NoOp ~> two:ReadVariableOp float32[4]
            w -> two -> b:Neg float32[4]
            """
        )
    )
    assert done.gone == {"one": "w", "gate": "", "two": "w"}
    assert ends(done.graph) == [("w", "a"), ("w", "b")]


def test_a_read_that_nothing_uses_goes():
    """Keras asks a variable for its shape, which is known: the read is left, and its order."""
    done = absorb(
        graph(
            """
            w:Placeholder resource[] holds=float32[4] -> read:ReadVariableOp float32[4]
            first:PrintV2 ~> read ~> w2:AssignVariableOp
            w -> w2
            """
        )
    )
    assert done.gone == {"read": "w"}
    assert sorted(ends(done.graph)) == [("first", "w2"), ("w", "w2")]


def test_reads_around_a_write_are_ops():
    """What a read comes before or after changes its value, so the reads and the order stay."""
    done = absorb(
        graph(
            """
            v:Placeholder resource[] holds=float32[]
            v -> first:ReadVariableOp float32[] => before
            v -> add:AssignAddVariableOp
            first ~> add
            v -> second:ReadVariableOp float32[] => after
            add ~> second
            """
        )
    )
    assert done.gone == {}
    assert {("first", "add"), ("add", "second")} <= set(ends(done.graph))


def test_a_read_that_the_write_is_computed_from_is_the_variable():
    """In an update the order shows by itself: the new value comes from the old one."""
    done = absorb(
        graph(
            """
            v:Placeholder resource[] holds=float32[]
            v -> old:ReadVariableOp float32[] -> new:Mul float32[]
            v -> update:AssignVariableOp
            new -> update
            old ~> update
            """
        )
    )
    assert done.gone == {"old": "v"}
    assert ends(done.graph) == [("v", "new"), ("v", "update"), ("new", "update")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "c:Const int32[] value=-1 -(axis)> s:Softmax; x:Placeholder float32[2] -> s",
            {"axis": "-1"},
        ),
        ("x:Placeholder float32[2]; c:Const int32[2] value=[4,1] -> r:Reshape", {}),
        (
            "x:Placeholder float32[2]; c:Const int32[2] value=[4,1] -(shape)> r:Reshape",
            {"shape": "[4,1]"},
        ),
        ("c:Const float32[] value=2.0 -(axis)> s:Softmax", {}),
        ("c:Const int32[9] -(shape)> s:Reshape", {}),
    ],
    ids=["axis", "no argument name", "shape", "a float is data", "a long one stays"],
)
def test_structural_constants_become_words(text, words):
    """An integer that says how an op works is text in the op; anything else is data."""
    done = absorb(graph(text))
    consumer = next(node for node in done.graph.nodes() if node.op in ("Softmax", "Reshape"))
    assert dict(consumer.attrs) == words
    assert ("c" in done.graph) == (not words)


def test_a_constant_with_both_uses_stays_for_the_data():
    """The edge that became words is gone, the one that carries a value is not."""
    done = absorb(
        graph(
            "c:Const int32[] value=1 -(axis)> s:Softmax; c -> add:AddV2; x:Placeholder float32[2] -> s"
        )
    )
    assert ends(done.graph) == [("c", "add"), ("x", "s")]
    assert dict(done.graph["s"].attrs) == {"axis": "1"}


def test_identity_is_a_bridge():
    """Chains of Identity become one edge from the port that they start at."""
    done = absorb(
        graph("x:Split float32[1] float32[1] -1> a:Identity float32[1] -> b:Identity -> r:Relu")
    )
    (arrow,) = done.graph.arrows()
    assert (arrow.source, arrow.target, arrow.edge.source_port) == ("x", "r", 1)
    assert done.gone == {"a": "x", "b": "x"}


def test_what_an_identity_waits_for_its_consumer_waits_for():
    """An ordering through a bridge is not lost."""
    done = absorb(
        graph("p:PrintV2 ~> i:Identity float32[]; x:Exp float32[] -> i -> r:Relu float32[]")
    )
    kinds = {(a.source, a.target): a.edge.kind for a in done.graph.arrows()}
    assert kinds == {("x", "r"): EdgeKind.DATA, ("p", "r"): EdgeKind.CONTROL}


@pytest.mark.parametrize(
    ("before", "after", "stays"),
    [(3, 1, False), (1, 3, False), (3, 2, False), (4, 4, False), (2, 0, False), (101, 100, True)],
)
def test_a_noop_is_a_bridge(before, after, stays):
    """What follows a NoOp waits for all that it gathers; only where that is a crowd it stays."""
    text = ";".join(
        [
            "n:NoOp",
            *(f"a{i}:PrintV2 ~> n" for i in range(before)),
            *(f"n ~> b{i}:PrintV2" for i in range(after)),
        ]
    )
    done = absorb(graph(text))
    assert ("n" in done.graph) == stays
    assert done.graph.edge_count == (before + after if stays else before * after)


def test_unread_constants_go_and_unread_arguments_stay():
    """A constant that nothing reads says nothing; an argument that nothing reads does."""
    done = absorb(graph("c:Const float32[] value=1.0; x:Placeholder float32[]; y:Exp float32[]"))
    assert list(done.graph.dag) == ["x", "y"]


def test_a_returned_constant_stays():
    """A constant behind nothing but Identity is the function's result."""
    done = absorb(with_results(graph("c:Const int32[] value=3 -> i:Identity int32[] => answer")))
    assert ends(done.graph) == [("c", "output:answer")]


def test_results_take_the_variables_name():
    """A result without a name of its own is called what the user called it."""
    drawn = with_results(graph(MULTIPLY_ADD.replace("=> result", "=> output_0")))
    assert drawn["output:output_0"].label == "result"
    done = absorb(drawn)
    assert set(done.gone) == {"Identity"}
    assert len(done.graph) == 6
    assert done.graph.edge_count == 5
