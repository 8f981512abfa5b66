"""What is hidden is counted, and what flowed through it still flows."""

from __future__ import annotations

import pytest

from graph2mermaid.passes.hide import hide
from graph2mermaid.passes.inline import inline
from graph2mermaid.passes.results import with_results
from tests.builders import graph

TEXT = (
    "x:Placeholder float32[2] -> enc/r:Relu float32[2] -> enc/e:Exp float32[2] -> s:Sum float32[]"
)


@pytest.mark.parametrize(
    ("wanted", "left", "count"),
    [
        (["Relu"], [("x", "enc/e"), ("enc/e", "s")], 1),
        (["enc"], [("x", "s")], 2),
        (["enc/"], [("x", "s")], 2),
        (["enc/r", "Exp"], [("x", "s")], 2),
        (["en"], [("x", "enc/r"), ("enc/r", "enc/e"), ("enc/e", "s")], 0),
        (["Sum"], [("x", "enc/r"), ("enc/r", "enc/e")], 1),
    ],
    ids=[
        "a type",
        "a scope",
        "a scope with a slash",
        "an op and a type",
        "no scope",
        "the last op",
    ],
)
def test_paths_stay(wanted, left, count):
    """Ops are hidden by type, name or scope, and their neighbors are joined."""
    hidden = hide(graph(TEXT), wanted)
    assert [(a.source, a.target) for a in hidden.graph.arrows()] == left
    assert hidden.count == count


def test_a_loop_still_goes_round():
    """What leads back through a hidden op leads back from what comes before it."""
    text = "m:Merge float32[] -> e:Exp float32[] -> n:NextIteration float32[]; n -> m"
    hidden = hide(graph(text), ["NextIteration"])
    assert hidden.count == 1
    assert [(a.source, a.target) for a in hidden.graph.back_edges] == [("e", "m")]


def test_every_op_can_be_hidden():
    """Hiding all ops leaves what the function takes, not an error."""
    hidden = hide(graph(TEXT), ["Placeholder", "Relu", "Exp", "Sum"])
    assert ([node.name for node in hidden.graph.nodes()], hidden.count) == (["x"], 3)


READ = """
    x:Placeholder float32[2]
    MatMul/ReadVariableOp/resource:Placeholder holds=float32[2]
    x -> MatMul:MatMul float32[2] -> MatMul/Relu:Relu float32[2]
    MatMul/ReadVariableOp/resource -> MatMul
"""


@pytest.mark.parametrize(
    ("word", "left"),
    [
        ("MatMul", ["x", "MatMul/ReadVariableOp/resource", "MatMul/Relu"]),
        ("MatMul/", ["x", "MatMul/ReadVariableOp/resource", "MatMul"]),
    ],
    ids=["a type", "a scope"],
)
def test_a_type_is_not_a_scope(word: str, left: list[str]):
    """The name of an op type means that type, though ops and scopes are called so as well."""
    assert [node.name for node in hide(graph(READ), [word]).graph.nodes()] == left


def test_what_is_hidden_makes_no_claim_about_tensors():
    """An edge past a hidden op says what it goes through, and not which tensor arrives."""
    text = "a:Placeholder float32[2] -> m:Mul float32[2] -> r:Relu; b:Placeholder float32[2] -> m"
    arrows = list(hide(graph(text), ["Mul"]).graph.arrows())
    assert [(a.source, a.edge.label, a.edge.tensor) for a in arrows] == [
        ("a", "through Mul", None),
        ("b", "through Mul", None),
    ]


@pytest.mark.parametrize(
    ("wanted", "label"),
    [(["Mul", "Exp"], "through hidden ops"), (["in"], "through in")],
    ids=["two words", "a scope"],
)
def test_several_hidden_ops_are_one_way(wanted: list[str], label: str):
    """Two nodes are joined once, whatever number of hidden ops is between them."""
    text = """
        a:Placeholder float32[2] -> in/m:Mul float32[2] -> in/e:Exp float32[2] -> r:Sub
        in/m -> r
    """
    hidden = hide(graph(text), wanted).graph
    assert [(a.source, a.target, a.edge.label) for a in hidden.arrows()] == [("a", "r", label)]


def test_an_identity_hands_its_tensor_on():
    """Behind an op that changes nothing is the tensor from before it, with its name and type."""
    text = "a:Exp float32[2] var=h -> i:Identity float32[2] -> m:Mul float32[2]; a -1> m"
    (edge, _) = hide(graph(text), ["Identity"]).graph.arrows()
    assert (edge.source, edge.edge.label, str(edge.edge.tensor)) == ("a", None, "float32[2]")


LOOP = """
    x:Placeholder float32[2]
    k:Placeholder float32[]
    x -> while:While float32[2] float32[] calls=cond=test,body=step => y
    k -> while =1> z
"""
STEP = """
    v:Placeholder float32[2]
    s:Placeholder float32[]
    v -> mul:Mul float32[2] => output_0
    s -> neg:Neg float32[] => output_1
    s -> mul
"""
TEST = """
    v:Placeholder float32[2]
    s:Placeholder float32[]
    s -> less:Less bool[] => output_0
"""


def loop_without(word: str) -> tuple[set[tuple[str, str, str | None]], ...]:
    """Return the edges and the back edges of the loop when something in it is hidden."""
    flat = with_results(inline(graph(LOOP, functions={"test": TEST, "step": STEP})).graph)
    hidden = hide(flat, [word]).graph
    return tuple(
        {(a.source, a.target, a.edge.label) for a in arrows}
        for arrows in (hidden.arrows(), hidden.back_edges)
    )


def test_a_hidden_loop_joins_its_values_one_by_one():
    """What a loop is given, and what its body makes, goes where that value is read."""
    ahead, back = loop_without("While")
    assert ahead == {
        ("x", "while/mul", None),
        ("x", "output:y", None),
        ("k", "while/mul", None),
        ("k", "while/neg", None),
        ("k", "while/less", None),
        ("k", "output:z", None),
        ("while/mul", "output:y", None),
        ("while/neg", "output:z", None),
        ("while/neg", "while/less", None),
        ("while/neg", "while/mul", None),
    }
    assert back == {
        ("while/mul", "while/mul", "next iteration"),
        ("while/neg", "while/neg", "next iteration"),
    }


def test_a_loop_goes_round_through_a_hidden_op():
    """The way back starts where the hidden op's values come from, and says what it goes through."""
    _, back = loop_without("Mul")
    assert back == {
        ("while", "while", "next iteration, through Mul"),
        ("while/neg", "while", "next iteration"),
        ("while/less", "while", "goes on while true"),
    }


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("Rleu", "there is no such op type, op or scope; close to it: Relu"),
        ("nothing_like_it", "there is no such op type, op or scope."),
        ("x", "arguments, captures and results are always drawn."),
    ],
    ids=["a slip", "nothing close", "an argument"],
)
def test_a_word_that_hides_nothing(word: str, sentence: str):
    """It is said, with what was perhaps meant."""
    (unknown,) = hide(graph(TEXT), ["Exp", word]).unknown
    assert unknown.startswith(f"Nothing is hidden for {word}: {sentence}")


def test_what_is_elsewhere_is_not_unknown():
    """An op that another pass took out, or that has a picture of its own, has its name."""
    assert hide(graph(TEXT), ["Identity"], [graph("i:Identity")]).unknown == ()
