"""What devices execute, and runs that leave no mark."""

from __future__ import annotations

import pytest

from graph2mermaid.errors import SignatureError
from graph2mermaid.graph import Stage
from graph2mermaid.optimization import Way
from graph2mermaid.sources.grappler import NotOptimizedError, optimize
from graph2mermaid.sources.runtime import SENT, executed, given_arguments, made_up_arguments
from graph2mermaid.sources.tf_function import graph_of
from tests.sources.optimizable import MAKERS

pytestmark = pytest.mark.tf
tf = pytest.importorskip("tensorflow")


def test_every_op_has_its_device():
    """The runtime graph says where each op runs, and has the kernels that are executed."""
    case = MAKERS["dense"]()
    concrete = case.function.get_concrete_function(*case.args)
    found = optimize(concrete, graph_of(concrete, name="f"), with_replay=False).runtime
    assert found is not None
    assert found.stage is Stage.RUNTIME
    assert {node.device for node in found.nodes()} == {
        "/job:localhost/replica:0/task:0/device:CPU:0"
    }
    assert {node.name for node in found.nodes()} == {"x", "w", "b", "Relu"}


def test_a_loop_is_closed_by_back_edges():
    """A lowered loop is a cycle only through its next iteration."""
    case = MAKERS["loop_with_branch"]()
    concrete = case.function.get_concrete_function(*case.args)
    stages = optimize(concrete, graph_of(concrete, name="f"), with_replay=False)
    for graph in (stages.optimized.graph, stages.runtime):
        assert graph is not None
        assert graph.back_edges
        assert {graph[arrow.source].op for arrow in graph.back_edges} == {"NextIteration"}


def test_what_is_sent_between_devices_is_one_edge():
    """A pair of `_Send` and `_Recv` is an edge from the op that made the tensor to its reader."""
    concrete = tf.function(lambda x: tf.sin(x) + tf.cos(x)).get_concrete_function(
        tf.TensorSpec([3])
    )
    traced = graph_of(concrete, name="f")
    first, second = partition("x", "Sin", send=True), partition("x", "Cos", send=False)
    found = executed([first, second], traced, {"x": ((3,),)})
    assert [node.name for node in found.nodes()] == ["x", "Sin", "Cos"]
    edges = [(a.source, a.target, a.edge.label) for a in found.arrows()]
    assert edges == [("x", "Sin", None), ("x", "Cos", SENT)]
    assert all(str(a.edge.tensor) == "float32[3]" for a in found.arrows())
    assert found["Cos"].device == "/device:CPU:1"


def partition(argument: str, op: str, *, send: bool):
    """Make the part of a graph on one device: it sends its argument, or reads what was sent."""
    from tensorflow.core.framework import graph_pb2

    graph = graph_pb2.GraphDef()
    device = f"/device:CPU:{0 if send else 1}"
    if send:
        node = graph.node.add(name=argument, op="_Arg", device=device)
        node.attr["T"].type = 1
        node.attr["index"].i = 0
    crossing = graph.node.add(name=f"{argument}/_{1 if send else 2}", device=device)
    crossing.op = "_Send" if send else "_Recv"
    crossing.attr["tensor_name"].s = b"edge_1"
    crossing.attr["T" if send else "tensor_type"].type = 1
    if send:
        crossing.input.append(argument)
    reader = graph.node.add(name=op, op=op, device=device)
    reader.attr["T"].type = 1
    source = argument if send else crossing.name
    reader.input.append(source)
    return graph


@pytest.mark.parametrize("name", ["training_step", "order_matters"])
def test_a_run_leaves_variables_as_they_were(name):
    """The function runs on the given values; what it did to its variables is undone."""
    case = MAKERS[name]()
    concrete = case.function.get_concrete_function(*case.args)
    before = [variable.numpy().tolist() for variable in case.variables]
    found = optimize(concrete, graph_of(concrete, name="f"), arguments=case.args, with_replay=False)
    assert [variable.numpy().tolist() for variable in case.variables] == before
    assert found.optimized.way is Way.RUN
    assert found.optimized.differences == ()


def test_a_run_that_fails_says_why():
    """The user's own check is the reason, on one line."""

    @tf.function
    def f(x):
        tf.debugging.assert_greater(x, 0.0, message="not positive")
        return x

    concrete = f.get_concrete_function(tf.TensorSpec([]))
    with pytest.raises(NotOptimizedError, match="not positive"):
        optimize(concrete, graph_of(concrete, name="f"), arguments=[tf.constant(-1.0)])


def test_arguments_can_be_made_up():
    """Unknown dimensions are 2, integers 0, booleans False, floats the same every time."""

    @tf.function
    def f(x, i, b):
        return x, i, b

    specs = (tf.TensorSpec([None, 3]), tf.TensorSpec([2], tf.int32), tf.TensorSpec([], tf.bool))
    concrete = f.get_concrete_function(*specs)
    graph = graph_of(concrete, name="f")
    x, i, b = made_up_arguments(concrete, graph)
    assert x.shape == [2, 3]
    assert (x.numpy() == made_up_arguments(concrete, graph)[0].numpy()).all()
    assert (i.numpy().tolist(), b.numpy().tolist()) == ([0, 0], False)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (lambda: tf.TensorSpec([], tf.string), "x is a string"),
        (lambda: tf.TensorSpec(None), r"--input x=float32\[2,2\]"),
    ],
    ids=["string", "unknown rank"],
)
def test_what_cannot_be_made_up_is_named(spec, words):
    """The message says which argument it is, and what to type."""
    concrete = tf.function(lambda x: x).get_concrete_function(spec())
    with pytest.raises(SignatureError, match=words):
        made_up_arguments(concrete, graph_of(concrete, name="f"))


def test_values_become_tensors_of_the_trace():
    """Structures are taken apart as TensorFlow does, and types follow the trace."""
    spec = {"b": tf.TensorSpec([2]), "a": tf.TensorSpec([], tf.int32)}
    concrete = tf.function(lambda d: d["a"]).get_concrete_function(spec)
    values = {"b": tf.constant([1, 2]), "a": tf.constant(3)}
    found = given_arguments(concrete, (values,), {})
    assert [(t.dtype.name, t.numpy().tolist()) for t in found] == [
        ("int32", 3),
        ("float32", [1.0, 2.0]),
    ]
    with pytest.raises(SignatureError, match="takes 2 tensors and there are 1"):
        given_arguments(concrete, (tf.constant(1),), {})
