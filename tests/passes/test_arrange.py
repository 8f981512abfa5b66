"""Optimized graphs in the order and the parts of the traced ones."""

from __future__ import annotations

from hypothesis import given

from graph2mermaid.graph import Graph, NodeKind, Stage
from graph2mermaid.passes.arrange import Arranged, beside_readers, in_traced_order
from tests.builders import graph
from tests.graph_strategies import graphs


def optimized(text: str) -> Graph:
    return graph(text, stage=Stage.GRAPPLER)


def edges(found: Graph) -> list[tuple[str, str]]:
    return [(arrow.source, arrow.target) for arrow in found.arrows()]


def arranged(text: str, **firsts: str) -> Arranged:
    return beside_readers(optimized(text), {}, firsts)


def test_the_order_is_that_of_the_trace():
    """What was added stands before its reader."""
    traced = graph("x:Placeholder -> a:Relu -> b:Tanh -> c:Relu")
    found = in_traced_order(
        optimized("c:Relu; new:Neg; b:Tanh; x:Placeholder -> a:Relu -> b -> new -> c"), traced, {}
    )
    assert list(found.names()) == ["x", "a", "b", "new", "c"]


def test_an_op_that_stands_for_several_is_where_the_first_was():
    """Which of them the optimizer kept does not matter."""
    traced = graph("x:Placeholder -> a:Shape -> b:Relu; x -> c:Shape -> d:Relu")
    found = in_traced_order(
        optimized("x:Placeholder -> c:Shape -> b:Relu; c -> d:Relu"), traced, {"c": "a"}
    )
    assert list(found.names()) == ["x", "c", "b", "d"]


def test_operands_of_commutative_ops_have_one_order():
    """Grappler sorts them by name; parts that are equal are to be drawn as equal."""
    traced = graph("x:Placeholder; c:Const value=2; x -> m:Mul; c -> m; x -> s:Sub; c -> s")
    found = in_traced_order(
        optimized("x:Placeholder; c:Const value=2; c -> m:Mul; x -> m; c -> s:Sub; x -> s"),
        traced,
        {},
    )
    sources = {name: [a.source for a in found.incoming(name)] for name in ("m", "s")}
    assert sources == {"m": ["x", "c"], "s": ["c", "x"]}


def test_a_constant_of_several_parts_stands_in_each():
    """Otherwise one of many equal constants ties all parts to the one it was kept in."""
    found = arranged(
        """x:Placeholder; b/eps:Const value=1
        x -> a/add:Add -> b/add:Add; b/eps -> a/add; b/eps -> b/add"""
    )
    assert edges(found.graph) == [
        ("x", "a/add"),
        ("a/eps", "a/add"),
        ("a/add", "b/add"),
        ("b/eps", "b/add"),
    ]
    assert (found.shared, found.graph["a/eps"].members) == (1, ("b/eps",))


def test_constants_that_stand_as_traced_stay():
    """One around its readers, one in the scope of the op that reads it, one that is returned."""
    text = """
    x:Placeholder; c:Const value=1; x -> a/add:Add -> b/add:Add; c -> a/add; c -> b/add
    n/y:Const value=2 -> n:Neg; r/c:Const value=3 => r
    """
    found = arranged(text)
    assert found.graph == optimized(text)
    assert found.shared == 0


def test_a_constant_that_one_other_part_reads_moves_there():
    """It is drawn once."""
    found = arranged("x:Placeholder -> a/add:Add; b/eps:Const value=1 -> a/add")
    assert (list(found.graph.names()), found.shared) == (["x", "a/eps", "a/add"], 0)


def test_scopes_of_optimizers_are_none():
    """What they add belongs to the part that it was added for, or to its reader."""
    found = arranged(
        """x:Placeholder -> l/ArithmeticOptimizer/Rewrite_add:AddN -> l/b:Relu
        ConstantFolding/l/c:Const value=1 -> l/b"""
    )
    assert found.scopes == {"l/ArithmeticOptimizer/Rewrite_add": "l", "ConstantFolding/l/c": "l"}


def test_an_op_that_stands_for_several_belongs_to_the_first():
    """A forward pass does not read its own gradients because of it."""
    found = arranged("x:Placeholder -> grad/Shape:Shape -> f/b:Relu", **{"grad/Shape": "f/Shape"})
    assert found.scopes == {"grad/Shape": "f"}


@given(graphs())
def test_nothing_is_lost(found: Graph):
    """All edges are there, and every node but constants that are drawn elsewhere."""
    after = beside_readers(in_traced_order(found, found, {}), {})
    names = {member for node in after.graph.nodes() for member in (node.name, *node.members)}
    assert names >= set(found.names()) - {n for n in found.names() if _unread(found, n)}
    assert after.graph.edge_count == found.edge_count


def _unread(found: Graph, name: str) -> bool:
    return found[name].kind is NodeKind.CONST and not found.outgoing(name)
