"""Which output an op reads, how often, and what flows there."""

from __future__ import annotations

import networkx as nx
import pytest

from tests.tf.drawn import drawn

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tf


def multiply_add(x, y, b):
    product = tf.multiply(x, y)
    result = tf.add(product, b)
    return result


ROWS = [None, 4]


def test_the_figure_with_tensors_as_nodes():
    """Seven nodes and six edges: op, tensor, op, as in a textbook."""
    specs = [tf.TensorSpec(ROWS), tf.TensorSpec(ROWS), tf.TensorSpec([4])]
    seen = drawn(tf.function(multiply_add), *specs, tensors="nodes")
    assert sorted(seen.boxes) == sorted(
        [
            "x | float32[?,4]",
            "y | float32[?,4]",
            "b | float32[4]",
            "tf.multiply",
            "product | float32[?,4]",
            "tf.add",
            "result | float32[?,4]",
        ]
    )
    assert sorted(seen.links) == sorted(
        [
            ("x", "", "tf.multiply"),
            ("y", "", "tf.multiply"),
            ("tf.multiply", "", "product"),
            ("product", "", "tf.add"),
            ("b", "", "tf.add"),
            ("tf.add", "", "result"),
        ]
    )


def test_the_figure_with_tensors_on_edges():
    """By default a tensor is words on an edge, unless a box says the same."""
    specs = [tf.TensorSpec(ROWS), tf.TensorSpec(ROWS), tf.TensorSpec([4])]
    seen = drawn(tf.function(multiply_add), *specs)
    assert len(seen.boxes) == 6
    assert ("tf.multiply", "product | float32[?,4]", "tf.add") in seen.links
    assert ("tf.add", "", "result") in seen.links
    assert 'n3 -->|"product<br/>float32[?,4]"| n4' in seen.capture.to_mermaid()


def test_every_parallel_edge_is_kept():
    """The same tensor on two ports is two edges of the graph, and one arrow that says so."""

    def repeat_use(x):
        y = x * x
        z = tf.matmul(y, y)
        return tf.concat([z, z, z], axis=0)

    seen = drawn(tf.function(repeat_use), tf.TensorSpec([2, 2]))
    assert seen.graph.edge_count == 9
    assert nx.DiGraph(seen.graph.dag).number_of_edges() == 5
    assert [a.edge.target_port for a in seen.graph.outgoing("MatMul")] == [0, 1, 2]
    assert seen.links == [
        ("x", "× 2", "* Mul"),
        ("* Mul", "y | float32[2,2] | × 2", "tf.matmul"),
        ("tf.matmul", "z | float32[2,2] | × 3", "tf.concat"),
        ("tf.concat", "", "output_0"),
    ]
    assert "tf.concat | axis=0" in seen.boxes


def test_ports_past_the_first_are_named():
    """`split` and `split:1` are not mixed up."""

    def ports(x):
        first, second = tf.split(x, 2)  # noqa: RUF059 - the second output is read
        values, _ = tf.math.top_k(x, 2)
        uniq, idx = tf.unique(x)
        return second + values, uniq, idx

    seen = drawn(tf.function(ports), tf.TensorSpec([4]))
    read = [(a.source, a.edge.source_port) for a in seen.graph.incoming("add")]
    assert read == [("split", 1), ("TopKV2", 0)]
    assert ("tf.split", "second = split:1 | float32[2]", "+ AddV2") in seen.links
    assert ("tf.math.top_k", "values | float32[2]", "+ AddV2") in seen.links
    assert ("tf.unique", "uniq", "output_1") in seen.links
    assert ("tf.unique", "idx = Unique:1", "output_2") in seen.links


@pytest.mark.parametrize("level", ["simple", "ops"])
def test_no_op_is_lost(level: str):
    """Every op of the trace and of the bodies in place is a box, or part of one, or plumbing."""
    from graph2mermaid.passes.absorb import absorb
    from graph2mermaid.passes.inline import inline
    from graph2mermaid.passes.results import with_results

    weights = tf.Variable(tf.ones([2, 2]), name="weights")

    @tf.function
    def layer(x):
        return tf.nn.relu(tf.matmul(x, weights))

    def f(x):
        for _ in tf.range(3):
            if tf.reduce_sum(x) > 0.0:
                x = layer(x)
            else:
                weights.assign_add(x)
        tf.print(tf.shape(x))
        return tf.reshape(x, [4])

    graph = drawn(tf.function(f), tf.TensorSpec([2, 2])).graph
    inlined = inline(graph, simple=level == "simple")
    done = absorb(with_results(inlined.graph))
    nodes = list(done.graph.nodes())
    kept = {node.name for node in nodes} | {m for node in nodes for m in node.members}
    flat = {node.name for node in inlined.graph.nodes()}
    assert flat <= kept | set(done.gone)
    placed = {o for node in inlined.graph.nodes() for o in node.origin}
    assert {node.name for node in graph.nodes()} <= placed | flat
    if level == "ops":
        bodies = {
            node.name
            for name in {body.function for body in inlined.bodies.values()}
            for node in graph.functions[name].nodes()
            if node.op != "Placeholder" and not node.calls
        }
        assert bodies <= placed
