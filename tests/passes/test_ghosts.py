"""Ghosts put into a graph, whatever their neighbors are."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from graph2mermaid.graph import Graph, Node, NodeKind
from graph2mermaid.passes.ghosts import AS_TRACED, Ghost, with_ghosts
from graph2mermaid.passes.inline import Inlined
from tests.builders import graph
from tests.graph_strategies import graphs


def haunted(text: str | Graph, *ghosts: Ghost, **gone: str):
    drawn = graph(text) if isinstance(text, str) else text
    return with_ghosts(drawn, Inlined(drawn, {}, {}, ()), gone, ghosts)


def ghost(name: str, makers: str = "", readers: str = "") -> Ghost:
    node = Node(name, "Tanh", NodeKind.GHOST, attrs={"removed": "it changes nothing"})
    return Ghost(node, tuple(makers.split()), tuple(readers.split()))


def edges(found: Graph) -> list[tuple[str, str]]:
    return [(a.source, a.target) for a in found.arrows() if a.edge.label == AS_TRACED]


def test_a_ghost_stands_after_what_it_reads():
    """The order of a drawing is that of the nodes."""
    found = haunted("x:Placeholder -> a:Relu -> b:Relu -> c:Relu", ghost("g", "a", "c"))
    assert list(found.graph.names()) == ["x", "a", "g", "b", "c"]
    assert edges(found.graph) == [("a", "g"), ("g", "c")]


def test_a_reader_that_comes_earlier_now_gets_no_edge():
    """The graph stays without cycles, and the edge is counted."""
    found = haunted("x:Placeholder -> a:Relu -> b:Relu", ghost("g", "b", "a"))
    assert edges(found.graph) == [("b", "g")]
    assert found.edges_dropped == 1


def test_ghosts_read_ghosts():
    """A chain of removed ops is a chain, in whatever order its neighbors stand."""
    found = haunted(
        "x:Placeholder -> a:Relu -> b:Relu", ghost("g", "b"), ghost("h", "g", "a"), ghost("i", "h")
    )
    assert edges(found.graph) == [("b", "g"), ("g", "h"), ("h", "i")]
    assert found.edges_dropped == 1


def test_a_taken_name_is_changed():
    """The op that has the name keeps it."""
    found = haunted("x:Placeholder -> g:Relu", ghost("g", "x"))
    assert list(found.graph.names()) == ["x", "g'", "g"]


def test_ghosts_without_neighbors_are_counted():
    """They are not in the graph."""
    found = haunted("x:Placeholder -> a:Relu", ghost("g", "nowhere"), ghost("h", "a"))
    assert (list(found.graph.names()), found.not_placed) == (["x", "a", "h"], 1)


@given(graphs(), st.data())
def test_any_ghosts_leave_the_graph_as_it_is(drawn: Graph, data: st.DataObject):
    """No op and no edge is lost, no cycle is made, and every ghost is placed or counted."""
    names = [*drawn.names(), "nowhere"]
    some = st.lists(st.sampled_from(names), max_size=3).map(tuple)
    ghosts: list[Ghost] = []
    for number in range(data.draw(st.integers(0, 5))):
        made = tuple(g.node.name for g in ghosts if data.draw(st.booleans()))
        node = Node(f"ghost {number}", "Tanh", NodeKind.GHOST, attrs={"removed": ""})
        ghosts.append(Ghost(node, (*made, *data.draw(some)), data.draw(some)))
    found = haunted(drawn, *ghosts)
    assert [n for n in found.graph.names() if n in drawn] == list(drawn.names())
    assert sum(a.edge.label != AS_TRACED for a in found.graph.arrows()) == sum(
        1 for _ in drawn.arrows()
    )
    assert found.graph.back_edges == drawn.back_edges
    assert nx.is_directed_acyclic_graph(found.graph.dag)
    assert len(found.graph) - len(drawn) + found.not_placed == len(ghosts)
