"""Bodies stand where they are called, and tensors go through them as they do at run time."""

from __future__ import annotations

import networkx as nx
import pytest

from graph2mermaid.graph import EdgeKind
from graph2mermaid.passes.absorb import absorb
from graph2mermaid.passes.inline import MAX_DEPTH, Inlined, inline
from graph2mermaid.passes.results import with_results
from tests.builders import graph

SQUARE = "a:Placeholder float32[2] -> sq:Square float32[2] => output_0"


def edges(inlined: Inlined) -> set[tuple[str, str]]:
    return {(a.source, a.target) for a in inlined.graph.arrows()}


def test_a_function_without_calls_is_itself():
    """Nothing is copied or renamed where there is nothing to put in place."""
    plain = graph("x:Placeholder float32[2] -> r:Relu float32[2] => y")
    assert inline(plain).graph is plain


def test_a_function_called_twice_stands_twice():
    """Each call has a frame with the body's ops; the call itself leaves no node."""
    top = graph(
        """
        x:Placeholder float32[2] -> one:PartitionedCall float32[2] calls=f=square
        one -> two:PartitionedCall float32[2] calls=f=square
        two -> r:Relu float32[2] => y
        """,
        functions={"square": SQUARE},
    )
    drawn = inline(top)
    assert edges(drawn) == {("x", "one/sq"), ("one/sq", "two/sq"), ("two/sq", "r")}
    assert [body.title for body in drawn.bodies.values()] == ["square", "square"]
    assert drawn.home == {"one/sq": "one#f", "two/sq": "two#f"}
    assert drawn.not_drawn == ()


def test_an_argument_returned_as_it_is():
    """A body that hands an argument through is an edge past it."""
    top = graph(
        "x:Placeholder float32[2] -> c:PartitionedCall float32[2] calls=f=same; c -> r:Relu => y;"
        "x -> other:Exp",
        functions={"same": "a:Placeholder float32[2] => output_0; b:NoOp"},
    )
    assert ("x", "r") in edges(inline(top))


def test_a_wrapper_has_no_frame():
    """A graph that is one call (a SavedModel's signature) is drawn as what it calls."""
    top = graph(
        "x:Placeholder float32[2] -> c:StatefulPartitionedCall float32[2] calls=f=square;"
        "c -> i:Identity float32[2] => y",
        functions={"square": SQUARE},
    )
    drawn = inline(top)
    assert drawn.bodies == {}
    assert edges(drawn) == {("x", "c/sq"), ("c/sq", "i")}


def test_control_edges_of_a_call_reach_into_the_body():
    """What a call waits for its first ops wait for; what waits for it waits for its last ones."""
    top = graph(
        """
        p:PrintV2 ~> c:StatefulPartitionedCall float32[2] calls=f=loud
        x:Placeholder float32[2] -> c -> r:Relu float32[2] => y
        q:PrintV2
        c ~> q
        """,
        functions={"loud": "a:Placeholder float32[2] -> say:PrintV2 ~> end:NoOp; a => output_0"},
    )
    drawn = inline(top)
    control = {
        (a.source, a.target) for a in drawn.graph.arrows() if a.edge.kind is EdgeKind.CONTROL
    }
    assert ("p", "c/say") in control
    assert ("c/end", "q") in control


BRANCH = """
    flag:Placeholder bool[]
    x:Placeholder float32[2] var=x
    flag -> cond:StatelessIf float32[2] calls=then_branch=yes,else_branch=no
    x -> cond => y
"""


def test_branches_hang_between_a_diamond_and_a_merge():
    """The diamond takes flag and argument; each branch starts there and ends in the merge."""
    top = graph(BRANCH, functions={"yes": SQUARE, "no": "a:Placeholder float32[2] => output_0"})
    drawn = inline(top)
    assert edges(drawn) == {
        ("flag", "cond"),
        ("x", "cond"),
        ("cond", "cond/sq"),
        ("cond/sq", "cond/merge"),
        ("cond", "cond/merge"),
    }
    labels = {(a.source, a.target): a.edge.label for a in drawn.graph.arrows()}
    assert labels["cond", "cond/sq"] == "then: x"
    assert labels["cond", "cond/merge"] == "else: x"
    assert [body.title for body in drawn.bodies.values()] == ["then", "else"]


LOOP = """
    zero:Const int32[] value=0
    x:Placeholder float32[2]
    w:Placeholder float32[2]
    zero -> while:StatelessWhile int32[] float32[2] float32[2] calls=cond=test,body=step
    x -> while
    w -> while
    while =1> y
"""
STEP = """
    i:Placeholder int32[]
    v:Placeholder float32[2]
    w:Placeholder float32[2]
    one:Const int32[] value=1
    i -> next:AddV2 int32[] => output_0
    one -> next
    v -> mul:Mul float32[2] => output_1
    w -> mul
    w => output_2
"""
TEST = """
    i:Placeholder int32[]
    v:Placeholder float32[2]
    w:Placeholder float32[2]
    v -> all:All bool[] => output_0
"""


def test_a_loop_goes_round_through_back_edges():
    """Loop variables start at a diamond and come back to it; the DAG stays one."""
    drawn = inline(graph(LOOP, functions={"test": TEST, "step": STEP}))
    assert nx.is_directed_acyclic_graph(drawn.graph.dag)
    assert ("while", "while/mul") in edges(drawn)
    assert {(a.source, a.target, a.edge.label) for a in drawn.graph.back_edges} == {
        ("while/mul", "while", "next iteration"),
        ("while/all", "while", "goes on while true"),
    }


def back_edges(top: str, **functions: str) -> set[tuple[str, int | None, int | None, str | None]]:
    return {
        (a.source, a.edge.source_port, a.edge.target_port, a.edge.label)
        for a in absorb(
            with_results(inline(graph(top, functions=functions)).graph)
        ).graph.back_edges
    }


SWAP = """
    x:Placeholder float32[2] var=x
    y:Placeholder float32[2] var=y
    x -> while:While float32[2] float32[2] bool[] calls=cond=test,body=step => a
    y -> while =1> b
    go:Placeholder bool[] var=go -> while
"""


def test_a_value_that_takes_the_place_of_another_leads_back():
    """`x, y = y, x` has no op, and is a way from one value of the diamond to the other."""
    step = """
        p:Placeholder float32[2]
        q:Placeholder float32[2]
        go:Placeholder bool[]
        q -> i:Identity float32[2] => output_0
        p => output_1
        go -> not:LogicalNot bool[] => output_2
    """
    test = "p:Placeholder float32[2]; q:Placeholder float32[2]; go:Placeholder bool[] => output_0"
    assert back_edges(SWAP, test=test, step=step) == {
        ("while", 1, 0, "next iteration"),
        ("while", 0, 1, "next iteration"),
        ("while/not", 0, 2, "next iteration"),
        ("while", 2, None, "goes on while true"),
    }


@pytest.mark.parametrize(
    ("inside", "outside"),
    [("x", "x"), ("y", None), ("", None)],
    ids=["the same", "another", "none"],
)
def test_a_loop_value_has_a_name_that_entry_and_body_agree_on(inside: str, outside: str | None):
    """What enters as `x` and leaves the body as `y` is not called `x` all the time."""
    named = STEP.replace(
        "mul:Mul float32[2]", f"mul:Mul float32[2] var={inside}" if inside else "mul:Mul float32[2]"
    )
    top = LOOP.replace("x:Placeholder float32[2]", "x:Placeholder float32[2] var=x")
    drawn = inline(graph(f"{top}; while -1> after:Relu", functions={"test": TEST, "step": named}))
    labels = {(a.source, a.target): a.edge.label for a in drawn.graph.arrows()}
    found = {labels["while", name] for name in ("while/mul", "while/all", "after")}
    assert found == {outside}
    assert drawn.graph["w"].name == "w"
    assert ("w", "while/mul") in labels


def test_names_that_depend_on_each_other():
    """A value that another name's value is put into has no name either; nothing is placed twice."""
    step = """
        p:Placeholder float32[2]
        q:Placeholder float32[2]
        go:Placeholder bool[]
        p -> call:PartitionedCall float32[2] calls=f=square => output_0
        p => output_1
        go -> not:LogicalNot bool[] var=go => output_2
    """
    test = "p:Placeholder float32[2]; q:Placeholder float32[2]; go:Placeholder bool[] => output_0"
    top = graph(SWAP, functions={"test": test, "step": step, "square": SQUARE})
    drawn = inline(top)
    assert [n.name for n in drawn.graph.nodes() if n.op == "Square"] == ["while/call/sq"]
    assert len(drawn.bodies) == 3
    labels = {a.target: a.edge.label for a in drawn.graph.arrows() if a.source == "while"}
    assert labels == {"while/call/sq": None, "while/not": "go"}


def test_what_a_loop_does_not_change_goes_past_it():
    """A loop variable that the body returns untouched comes straight from its source."""
    drawn = inline(graph(LOOP, functions={"test": TEST, "step": STEP}))
    assert ("w", "while/mul") in edges(drawn)
    assert ("w", "while") not in edges(drawn)


def test_a_counter_that_nothing_reads_is_plumbing():
    """TensorFlow's own loop counter is left out of the simple drawing, and is in the other."""
    top = graph(LOOP, functions={"test": TEST, "step": STEP})
    assert "while/next" not in inline(top).graph
    assert "while/next" in inline(top, simple=False).graph
    simple = absorb(with_results(inline(top).graph))
    assert "zero" not in simple.graph
    assert "while/one" not in simple.graph


def test_a_counter_that_the_condition_reads_stays():
    """`for i in range(n)` is a loop because of its counter."""
    counted = TEST.replace("v -> all:All bool[]", "i -> all:Less bool[]")
    assert "while/next" in inline(graph(LOOP, functions={"test": counted, "step": STEP})).graph


def test_frames_nest_two_deep():
    """A call inside two frames stays a call, and its function is named for a picture of its own."""
    inner = "a:Placeholder float32[2] -> c:PartitionedCall float32[2] calls=f={}; c -> n:Neg float32[2] => output_0"
    functions = {f"f{i}": inner.format(f"f{i + 1}") for i in range(4)} | {"f4": SQUARE}
    top = graph(inner.format("f0"), functions=functions)
    drawn = inline(top)
    assert max(body.depth for body in drawn.bodies.values()) == MAX_DEPTH
    assert drawn.not_drawn == ("f2",)
    assert [c.function for n in drawn.graph.nodes() for c in n.calls] == ["f2"]


def test_the_functions_of_other_ops_stand_beside_them():
    """A dataset op keeps its place and feeds the function that it runs."""
    top = graph(
        "ds:Placeholder variant[] -> m:MapDataset variant[] calls=f=square => y",
        functions={"square": SQUARE},
    )
    drawn = inline(top)
    assert {("ds", "m"), ("m", "m/a"), ("m/a", "m/sq")} <= edges(drawn)
    assert [body.title for body in drawn.bodies.values()] == ["f of MapDataset"]


def test_a_function_that_is_nowhere_stays_a_call():
    """A name without a body is drawn as the call that it is."""
    drawn = inline(
        graph("x:Placeholder float32[2] -> c:PartitionedCall float32[2] calls=f=gone => y")
    )
    assert edges(drawn) == {("x", "c")}
    assert drawn.not_drawn == ()


def test_what_two_loop_values_share_is_no_counter():
    """A value that nothing reads is left out only if what makes it is nothing else's value."""
    top = """
        a:Placeholder float32[]
        b:Placeholder float32[]
        a -> while:While float32[] float32[] calls=cond=test,body=step
        b -> while
    """
    test = "p:Placeholder float32[]; q:Placeholder float32[]; p -> less:Less bool[] => output_0"
    step = """
        p:Placeholder float32[]
        q:Placeholder float32[]
        q -> abs:Abs float32[] => output_0
        abs -> neg:Neg float32[] => output_1
    """
    assert {"while/abs", "while/neg"} <= set(
        inline(graph(top, functions={"test": test, "step": step})).graph.names()
    )
