"""What is around a name, and what lies between two."""

from __future__ import annotations

import pytest

from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.passes.select import around, between, find, keep
from tests.builders import graph

MODEL = graph("""
    x:Placeholder label=images
    x -> net/dense_1/MatMul:MatMul -> net/dense_1/Relu:Relu var=hidden -> net/dense_2/MatMul:MatMul
    net/dense_2/MatMul -> Softmax:Softmax
    x -> side:Neg
    side ~> Softmax
""")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Softmax", ["Softmax"]),
        ("images", ["x"]),
        ("hidden", ["net/dense_1/Relu"]),
        ("net/dense_1", ["net/dense_1/MatMul", "net/dense_1/Relu"]),
        ("net/dense_1/", ["net/dense_1/MatMul", "net/dense_1/Relu"]),
        ("dense_2", ["net/dense_2/MatMul"]),
        ("net/dense", ["net/dense_1/MatMul", "net/dense_1/Relu", "net/dense_2/MatMul"]),
        ("dense", ["net/dense_1/MatMul", "net/dense_1/Relu", "net/dense_2/MatMul"]),
        ("Relu", ["net/dense_1/Relu"]),
    ],
)
def test_names_that_users_know(name: str, expected: list[str]):
    """An op's name, an argument, a Python variable, a scope with and without Keras' numbers."""
    assert find(MODEL, name) == expected


def test_the_exact_name_comes_before_a_similar_one():
    """`dense` is the layer of that name, when there is one beside `dense_1`."""
    both = graph("dense/MatMul:MatMul -> dense_1/MatMul:MatMul")
    assert find(both, "dense") == ["dense/MatMul"]


def test_plumbing_is_found_in_what_it_is_part_of():
    """An op that was absorbed leads to its place; one without a place is said to be plumbing."""
    assert find(MODEL, "read", {"read": "via", "via": "x"}) == ["x"]
    with pytest.raises(Graph2MermaidError, match=r"'NoOp' is plumbing .* --level ops"):
        find(MODEL, "NoOp", {"NoOp": ""})


@pytest.mark.parametrize(
    ("name", "hint"),
    [("sofmax", "; close to it: Softmax"), ("dense_9", "; close to it: dense_"), ("~~", "")],
)
def test_an_unknown_name_is_one_line_with_the_closest(name: str, hint: str):
    """The message says what is there instead, if anything is like it."""
    with pytest.raises(Graph2MermaidError) as raised:
        find(MODEL, name)
    said = str(raised.value)
    assert said.startswith(f"there is no op, argument, variable or scope '{name}' in f{hint}")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("hops", "expected"),
    [
        (0, {"Softmax"}),
        (1, {"Softmax", "net/dense_2/MatMul", "side"}),
        (2, {"Softmax", "net/dense_2/MatMul", "side", "net/dense_1/Relu", "x"}),
        (9, set(MODEL.dag)),
    ],
)
def test_a_neighborhood_ends_after_some_hops(hops: int, expected: set[str]):
    """Edges of any kind and direction are followed."""
    assert around(MODEL, ["Softmax"], hops) == expected


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("side", "Softmax", {"side", "Softmax"}),
        ("hidden", "Softmax", {"net/dense_1/Relu", "net/dense_2/MatMul", "Softmax"}),
        ("images", "Softmax", set(MODEL.dag)),
        ("Softmax", "images", set()),
        ("side", "hidden", set()),
    ],
)
def test_paths_are_all_that_lie_between(start: str, end: str, expected: set[str]):
    """Every node on some path is there, and nothing else; paths have a direction."""
    assert between(MODEL, find(MODEL, start), find(MODEL, end)) == expected


def test_paths_go_through_loops():
    """A back edge is a way too."""
    loop = graph("m:Merge -> n:NextIteration -> m; m -> out:Exit; n -> side:Neg")
    assert loop.back_edges
    assert between(loop, ["n"], ["out"]) == {"m", "n", "out"}


def test_what_is_left_out_is_counted():
    """Nodes outside, and edges with one end outside, make up the rest of the graph."""
    part = keep(MODEL, around(MODEL, ["Softmax"], 1))
    assert list(part.graph.dag) == ["net/dense_2/MatMul", "Softmax", "side"]
    assert (part.nodes_left_out, part.edges_cut, part.graph.edge_count) == (3, 2, 2)
