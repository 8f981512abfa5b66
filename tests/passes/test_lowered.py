"""What the runtime lowers is drawn as the loop or the choice that it was."""

from __future__ import annotations

import pytest

from graph2mermaid.graph import Graph, NodeKind, Stage
from graph2mermaid.passes.inline import Inlined
from graph2mermaid.passes.lowered import raised
from tests.builders import graph

LOOP = """
    x:Placeholder float32[3] -> while/enter/_1:Enter float32[3] attr.frame_name=while
    n:Placeholder int32[] -> while/enter/_2:Enter int32[] attr.frame_name=while
    zero:Const int32[] value=0 -> while/enter/_3:Enter int32[] attr.frame_name=while
    while/enter/_1 -> while/merge/_4:Merge float32[3] int32[]
    while/enter/_2 -> while/merge/_5:Merge int32[] int32[]
    while/enter/_3 -> while/merge/_6:Merge int32[] int32[]
    while/merge/_4 -> while/cond/_0/Sum:Sum float32[] -> while/cond/_0/Less:Less bool[]
    while/merge/_5 -> while/cond/_0/Less
    while/cond/_0/Less -> while/LoopCond/_7:LoopCond bool[]
    while/merge/_4 -> while/x_switch/_8:Switch float32[3] float32[3]
    while/merge/_5 -> while/n_switch/_9:Switch int32[] int32[]
    while/merge/_6 -> while/loop_counter_switch/_10:Switch int32[] int32[]
    while/LoopCond/_7 -> while/x_switch/_8
    while/LoopCond/_7 -> while/n_switch/_9
    while/LoopCond/_7 -> while/loop_counter_switch/_10
    while/x_switch/_8 -1> while/body/_1/Relu:Relu float32[3] -> while/next_iteration/_11:NextIteration float32[3]
    while/n_switch/_9 -1> while/next_iteration/_12:NextIteration int32[]
    while/loop_counter_switch/_10 -1> while/loop_body_control/_13:Identity int32[]
    while/loop_body_control/_13 ~> while/body/_1/one:Const int32[] value=1
    while/loop_counter_switch/_10 -1> while/body/_1/add:AddV2 int32[]
    while/body/_1/one -> while/body/_1/add -> while/next_iteration/_14:NextIteration int32[]
    while/next_iteration/_11 -> while/merge/_4
    while/next_iteration/_12 -> while/merge/_5
    while/next_iteration/_14 -> while/merge/_6
    while/x_switch/_8 -> while/exit/_15:Exit float32[3] -> out:Exp float32[3] => y
"""

CHOICE = """
    x:Placeholder float32[3]
    p:Placeholder bool[] -> cond/switch_pred/_1:Switch bool[] bool[]
    p -> cond/switch_pred/_1
    cond/switch_pred/_1 -> cond/pivot_f/_2:Identity bool[]
    cond/switch_pred/_1 -1> cond/pivot_t/_3:Identity bool[]
    x -> cond/x/_4:Switch float32[3] float32[3]
    p -> cond/x/_4
    cond/pivot_t/_3 ~> cond/then/_5/Relu:Relu float32[3]
    cond/x/_4 -1> cond/then/_5/Relu
    cond/pivot_f/_2 ~> cond/else/_6/zeros:Const float32[3] value=0
    cond/else/_6/zeros -> cond/output/_7:Merge float32[3] int32[]
    cond/then/_5/Relu -> cond/output/_7 -> out:Exp float32[3] => y
"""


def edges(inlined: Inlined) -> set[tuple[str, str, str]]:
    return {(a.source, a.target, a.edge.label or "") for a in inlined.graph.arrows()}


def ways_back(inlined: Inlined) -> set[tuple[str, str, str]]:
    return {(a.source, a.target, a.edge.label or "") for a in inlined.graph.back_edges}


def test_a_loop_is_a_diamond_with_condition_and_body():
    """Its values go in, round and out; one that does not change is read from outside."""
    drawn = raised(graph(LOOP))
    assert edges(drawn) == {
        ("x", "while", ""),
        ("while", "while/cond/_0/Sum", ""),
        ("while/cond/_0/Sum", "while/cond/_0/Less", ""),
        ("n", "while/cond/_0/Less", ""),
        ("while", "while/body/_1/Relu", ""),
        ("while", "out", ""),
    }
    assert ways_back(drawn) == {
        ("while/body/_1/Relu", "while", "next iteration"),
        ("while/cond/_0/Less", "while", "goes on while true"),
    }
    assert {key: body.title for key, body in drawn.bodies.items()} == {
        "while#cond": "condition of while",
        "while#body": "body of while",
    }
    assert drawn.home["while/cond/_0/Sum"] == "while#cond"
    assert drawn.home["while/body/_1/Relu"] == "while#body"
    assert not {"while", "out"} & drawn.home.keys()


def test_a_counter_is_drawn_when_every_op_is():
    """At the level of ops the variable that only counts goes round as well."""
    drawn = raised(graph(LOOP), simple=False)
    assert ("while/body/_1/add", "while", "next iteration") in ways_back(drawn)
    assert ("zero", "while", "") in edges(drawn)


def test_a_choice_is_a_diamond_with_its_branches():
    """A branch that takes nothing hangs on the diamond all the same; results meet in the merge."""
    drawn = raised(graph(CHOICE))
    assert edges(drawn) == {
        ("p", "cond", ""),
        ("x", "cond", ""),
        ("cond", "cond/then/_5/Relu", "then"),
        ("cond", "cond/else/_6/zeros", "else"),
        ("cond/then/_5/Relu", "cond/merge", ""),
        ("cond/else/_6/zeros", "cond/merge", ""),
        ("cond/merge", "out", ""),
    }
    assert drawn.home == {
        "cond/then/_5/Relu": "cond#then_branch",
        "cond/else/_6/zeros": "cond#else_branch",
    }


def test_the_line_of_a_loop_comes_from_the_traced_graph():
    """The runtime knows no lines; the op of the same name does."""
    traced = graph("x:Placeholder float32[3] -> while:While float32[3] src=model.py:7")
    titles = [body.title for body in raised(graph(LOOP), traced=traced).bodies.values()]
    assert titles == ["condition of while · model.py:7", "body of while · model.py:7"]


@pytest.mark.parametrize("text", [LOOP, CHOICE], ids=["loop", "choice"])
@pytest.mark.parametrize("simple", [True, False], ids=["simple", "ops"])
def test_every_op_is_a_node_or_part_of_a_diamond(text: str, simple: bool):
    """Nothing that was lowered is lost: what has no node of its own is named in one."""
    lowered = graph(text)
    drawn = raised(lowered, simple=simple).graph
    names = [node.name for node in drawn.nodes() if node.name in lowered]
    members = [name for node in drawn.nodes() for name in node.members]
    assert sorted([*names, *members]) == sorted(node.name for node in lowered.nodes())


def test_a_broken_loop_stays_as_it_is():
    """Where a Merge has no way back there is no loop to draw."""
    text = "\n".join(line for line in LOOP.splitlines() if "_11 ->" not in line)
    broken: Graph = graph(text)
    drawn = raised(broken).graph
    assert {node.name for node in drawn.nodes()} == {node.name for node in broken.nodes()}


def test_a_graph_without_control_flow_is_itself():
    """Nothing is copied where there is nothing to raise."""
    plain = graph("x:Placeholder float32[2] -> r:Relu float32[2] => y", stage=Stage.GRAPPLER)
    assert raised(plain).graph is plain


def test_a_diamond_is_control_flow():
    """The diamond has the op type that was lowered, and an output for each value it carries."""
    diamond = raised(graph(LOOP)).graph["while"]
    assert (diamond.op, diamond.kind) == ("While", NodeKind.CONTROL_FLOW)
    assert [str(spec) for spec in diamond.outputs] == ["float32[3]", "int32[]", "int32[]"]


def test_a_counter_that_is_a_result_is_drawn():
    """Nothing has to read a loop's last value for it to matter: it may be what is returned."""
    text = f"{LOOP}\n while/loop_counter_switch/_10 -> while/exit/_16:Exit int32[] => steps"
    assert ("while/body/_1/add", "while", "next iteration") in ways_back(raised(graph(text)))
