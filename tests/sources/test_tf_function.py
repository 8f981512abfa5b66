"""A ConcreteFunction becomes a graph: every op and edge, captures told apart, bodies by name."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import graph2mermaid
from graph2mermaid import EdgeKind, Graph, NodeKind, Stage
from graph2mermaid.sources.tf_function import graph_of

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tf


def traced(function: Any, *specs: Any) -> Graph:
    return graph2mermaid.trace(function, *specs).traced


def scalar() -> Any:
    return tf.TensorSpec([])


def test_every_op_edge_and_type_is_the_func_graphs():
    """Nothing is left out, nothing is added, and the order is the order of tracing."""

    def f(x, n):
        for _ in range(3):
            x = tf.concat([x, x], 0) * 2.0
        with tf.control_dependencies([tf.print(n)]):
            return tf.split(x, 2)[1]

    concrete = tf.function(f).get_concrete_function(tf.TensorSpec([2]), tf.TensorSpec([], tf.int32))
    graph = graph_of(concrete, name="f")
    ops = concrete.graph.get_operations()
    assert [(n.name, n.op) for n in graph.nodes()] == [(op.name, op.type) for op in ops]
    wanted = [
        (t.op.name, op.name, t.value_index, port) for op in ops for port, t in enumerate(op.inputs)
    ]
    waits = [(c.name, op.name) for op in ops for c in op.control_inputs]
    arrows = list(graph.arrows())
    data = [
        (a.source, a.target, a.edge.source_port, a.edge.target_port)
        for a in arrows
        if a.edge.kind is EdgeKind.DATA
    ]
    control = [(a.source, a.target) for a in arrows if a.edge.kind is EdgeKind.CONTROL]
    assert sorted(data) == sorted(wanted)
    assert sorted(control) == sorted(waits)
    for op in ops:
        for at, tensor in enumerate(op.outputs):
            spec = graph[op.name].outputs[at]
            assert spec.dtype == tensor.dtype.name
            assert spec.shape == (None if tensor.shape.rank is None else tuple(tensor.shape))
    assert graph.stage is Stage.TRACED
    assert graph.name == "f"


class TestCaptures:
    """What a function takes from around it."""

    def test_variables_constants_and_arguments(self):
        """A variable is known by its name and value, a captured tensor is a constant."""
        weights = tf.Variable(tf.ones([2, 3]), name="weights")
        offset = tf.constant([1.0, 2.0, 3.0])
        table = tf.random.normal([50])

        def f(x):
            return tf.matmul(x, weights) + offset + tf.reduce_sum(table)

        graph = traced(f, tf.TensorSpec([4, 2]))
        kinds = {
            graph[b.tensors[0].node].kind: b.type
            for b in graph.captures
            if b.type.startswith("Variable")
        }
        assert kinds == {NodeKind.VARIABLE: "Variable float32[2,3]"}
        weights_node = graph[graph.captures[0].tensors[0].node]
        assert (weights_node.label, str(weights_node.holds)) == ("weights", "float32[2,3]")
        constants = [n for n in graph.nodes() if n.kind is NodeKind.CONST]
        assert "[1.0, 2.0, 3.0]" in {n.value for n in constants}
        big = [n for n in constants if n.outputs[0].shape == (50,)]
        assert [n.value for n in big] == [None]
        assert [b.name for b in graph.inputs] == ["x"]

    def test_a_variable_among_the_arguments(self):
        """It is an argument, with the type of its value."""
        v = tf.Variable([1.0, 2.0], name="v")

        def f(v):
            return v * 2.0

        graph = traced(f, v)
        (argument,) = graph.inputs
        assert (argument.name, argument.type) == ("v", "Variable float32[2]")
        assert graph.captures == ()

    def test_the_same_variable_twice(self):
        """It is captured once."""
        v = tf.Variable(1.0, name="v")

        def f(x):
            return x * v + v

        assert [b.name for b in traced(f, scalar()).captures] == ["v"]

    def test_two_variables_of_one_name(self):
        """They are two captures, and two nodes."""
        one, two = tf.Variable(1.0, name="v"), tf.Variable(2.0, name="v")

        def f(x):
            return x * one + two

        graph = traced(f, scalar())
        assert [b.name for b in graph.captures] == ["v", "v"]
        assert len({b.tensors[0] for b in graph.captures}) == 2


class TestValues:
    """Constants and attributes as text."""

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (2.0, "2.0"),
            ([1, 2], "[1, 2]"),
            ([[1, 2], [3, 4]], "[[1, 2], [3, 4]]"),
            (True, "True"),
            ("a b", "'a b'"),
            ([0.0] * 8, "[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]"),
            ([0.0] * 9, None),
            ([], "[]"),
        ],
        ids=["number", "list", "matrix", "bool", "text", "eight", "nine", "empty"],
    )
    def test_a_small_constant_is_shown(self, value: Any, text: str | None):
        """A bigger one is known by its type and shape."""
        graph = traced(tf.function(lambda: tf.constant(value)))
        (node,) = [n for n in graph.nodes() if n.op == "Const"]
        assert node.value == text

    def test_attributes_that_say_something(self):
        """Types and defaults do not, and neither do names of the whole process."""

        def f(x):
            return tf.matmul(x, x, transpose_b=True), tf.nn.relu(x)

        graph = traced(f, tf.TensorSpec([2, 2]))
        assert dict(graph["MatMul"].attrs) == {"transpose_b": True}
        assert dict(graph["Relu"].attrs) == {}

    def test_a_device_that_was_asked_for(self):
        """It is recorded as TensorFlow has it."""

        def f(x):
            with tf.device("/CPU:0"):
                return tf.exp(x)

        assert "CPU:0" in traced(f, scalar())["Exp"].device

    def test_constants_say_what_they_are_for(self):
        """The edge from a constant has the consumer's own word for it."""

        def f(x):
            return tf.concat([x, [1.0]], axis=0), tf.reshape(x, [1, 2])

        graph = traced(f, tf.TensorSpec([2]))
        arguments = {a.edge.argument for a in graph.arrows()} - {None}
        assert {"axis", "values", "shape"} <= arguments


class TestFunctions:
    """Bodies of what ops call."""

    def test_only_what_is_reached_is_there(self):
        """A function that was traced along the way and is called by nothing is left out."""

        @tf.function
        def used(x):
            return x + 1.0

        @tf.function
        def unused(x):
            return x - 1.0

        def f(x):
            unused.get_concrete_function(scalar())
            return used(x)

        assert list(traced(f, scalar()).functions) == ["used"]

    def test_two_functions_of_one_name(self):
        """Names are unique, and the same in every process: no counter is in them."""

        def make(number):
            @tf.function
            def part(x):
                return x * number

            return part

        one, two = make(1.0), make(2.0)

        def f(x):
            return one(x) + two(x)

        graph = traced(f, scalar())
        names = list(graph.functions)
        assert len(set(names)) == 2
        assert names[0] == "part"
        values = [
            {n.value for n in body.nodes() if n.op == "Const"} for body in graph.functions.values()
        ]
        assert values == [{"1.0"}, {"2.0"}]

    def test_bodies_inside_bodies_are_all_at_the_top(self):
        """A body's own mapping is empty; whatever it calls is in the graph's."""

        @tf.function
        def inner(x):
            return tf.exp(x)

        def f(x):
            while tf.reduce_sum(x) < 1.0:
                x = inner(x)
            return x

        graph = traced(f, scalar())
        assert set(graph.functions) == {"while_cond", "while_body", "inner"}
        assert all(not body.functions for body in graph.functions.values())
        body = graph.functions["while_body"]
        assert {c.function for n in body.nodes() for c in n.calls} == {"inner"}
        assert len(body.inputs) == len(body.outputs)

    def test_the_same_trace_twice_is_the_same_graph(self):
        """What is traced anew is equal to what was traced before."""

        def f(x):
            if tf.reduce_sum(x) > 0.0:
                x = x * 2.0
            return x

        assert traced(f, scalar()) == traced(f, scalar())


def _top(x):
    return x + 1.0


class _Callable:
    def __call__(self, x):
        return _top(x)

    def method(self, x):
        return _top(x)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: _top, "_top"),
        (lambda: tf.function(_top), "_top"),
        (lambda: functools.partial(_top), "_top"),
        (_Callable, "__call__"),
        (lambda: _Callable().method, "method"),
    ],
    ids=["function", "tf.function", "partial", "object", "method"],
)
def test_where_a_function_stands(make, name: str):
    """The graph's source is the definition, whatever is wrapped around it."""
    kept = make()  # TensorFlow keeps only a weak reference to a method's object
    source = traced(kept, scalar()).source
    assert source is not None
    assert source.file.endswith("test_tf_function.py")
    assert source.function == name


def test_a_pruned_function():
    """A part of a wrapped graph has no signature; its tensors are known by their ops."""

    def make():
        x = tf.compat.v1.placeholder(tf.float32, [2], name="x")
        return tf.exp(x, name="y")

    wrapped = tf.compat.v1.wrap_function(make, [])
    graph = traced(wrapped.prune("x:0", "y:0"))
    assert [n.op for n in graph.nodes() if n.op == "Exp"] == ["Exp"]
    assert [b.type for b in graph.inputs] == ["float32[2]"]
    assert len(graph.outputs) == 1
