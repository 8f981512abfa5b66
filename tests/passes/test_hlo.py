"""Graphs of HLO as dataflow: tuples become edges, and what is called once is put in place."""

from __future__ import annotations

from graph2mermaid.graph import Graph, NodeKind
from graph2mermaid.passes.hlo import dataflow
from graph2mermaid.passes.inline import inline
from graph2mermaid.sources.hlo_graph import graph_of_module
from tests.hlo.modules import BRANCHES, DENSE, LOOP, module


def graph_of(text: str) -> Graph:
    return graph_of_module(module(text), name="f")


def edges(graph: Graph) -> set[tuple[str, str]]:
    return {(arrow.source, arrow.target) for arrow in (*graph.arrows(), *graph.back_edges)}


def test_a_fusion_is_a_call_of_its_members():
    """The graph of the entry has the fusion, its functions have what is in it."""
    graph = graph_of(DENSE)

    assert [node.op for node in graph.nodes()] == ["parameter"] * 3 + ["dot", "fusion"]
    assert graph["bias_relu"].kind is NodeKind.CALL
    assert [call.function for call in graph["bias_relu"].calls] == ["fused"]
    assert graph.functions["fused"]["zero"].value == "0.0"


def test_numbers_that_are_spread_are_edges():
    """In a simple drawing a broadcast of one number is an edge; that of an array is an op."""
    simple = dataflow(graph_of(DENSE)).graph.functions["fused"]
    every = dataflow(graph_of(DENSE), simple=False).graph.functions["fused"]

    assert ("zero", "max") in edges(simple)
    assert "wide" in simple
    assert {"zeros", "wide"} <= set(every.names())


def test_nodes_stand_below_the_scopes_of_their_ops():
    """An instruction of `layer/MatMul` is in the scope `layer`, and a variable where it is read."""
    scoped = DENSE.replace('op_name="MatMul"', 'op_name="layer/MatMul"')

    graph = dataflow(graph_of(scoped)).graph

    assert "layer/dot" in graph
    assert "bias_relu" in graph


def test_a_loop_hands_round_values_not_tuples():
    """The tuple of a loop is taken apart: each value enters, and comes back, by an edge of its own."""
    flow = dataflow(graph_of(LOOP))
    flat = inline(flow.graph).graph

    assert flow.tuples == 6
    assert not {node.op for node in flat.nodes()} & {"tuple", "get-tuple-element"}
    back = [(arrow.source, arrow.target) for arrow in flat.back_edges]
    assert ("while/twice", "while") in back


def test_a_branch_takes_its_own_operands():
    """Each branch reads from the choice what HLO gives to it alone."""
    inlined = inline(dataflow(graph_of(BRANCHES)).graph)

    flat = inlined.graph
    assert {body.role for body in inlined.bodies.values()} == {"then_branch", "else_branch"}
    into = {arrow.edge.source_port for arrow in flat.incoming("cond/sum")}
    assert into == {1, 2}
    assert {arrow.edge.source_port for arrow in flat.incoming("cond/minus")} == {3}
    assert {source for source, target in edges(flat) if target == "cond/merge"} == {
        "cond/sum",
        "cond/minus",
    }


def test_a_call_of_what_nothing_else_calls_is_put_in_place():
    """What XLA moved into a computation of its own is drawn where it runs."""
    text = DENSE.replace("fusion(%dot, %b), kind=kLoop, calls=", "call(%dot, %b), to_apply=")

    graph = dataflow(graph_of(text)).graph

    assert "bias_relu" not in graph
    assert ("dot", "sum") in edges(graph)
    assert graph.functions == {}
