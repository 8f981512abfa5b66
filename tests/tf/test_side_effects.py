"""Variables, prints and checks: what changes something is drawn in the order it happens in."""

from __future__ import annotations

import networkx as nx
import pytest

import graph2mermaid
from graph2mermaid import EdgeKind, NodeKind, TraceError
from tests.tf.drawn import Drawn, drawn
from tests.tf.reading import rows

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tf


@pytest.fixture(scope="module")
def step() -> Drawn:
    counter = tf.Variable(1.0, name="counter")

    def step(x):
        before = counter.read_value()
        counter.assign_add(x)
        tf.print("counter =", counter)
        tf.debugging.assert_greater(x, 0.0)
        return before, counter * 1.0

    return drawn(tf.function(step), tf.TensorSpec([]))


def control(seen: Drawn) -> set[tuple[str, str]]:
    arrows = seen.graph.arrows()
    return {(a.source, a.target) for a in arrows if a.edge.kind is EdgeKind.CONTROL}


class TestOrder:
    """Read, assign, print and check."""

    def test_the_graph_has_every_wait(self, step: Drawn):
        """Nothing but control edges says what comes first."""
        assert len(step.graph) == 26
        waits = control(step)
        assert ("Read/ReadVariableOp", "AssignAddVariableOp") in waits
        assert ("AssignAddVariableOp", "ReadVariableOp") in waits
        assert ("AssignAddVariableOp", "StringFormat/ReadVariableOp") in waits
        assert ("PrintV2", "assert_greater/Assert/AssertGuard") in waits
        last = [n.name for n in step.graph.nodes() if n.op == "NoOp"][-1]
        assert len(step.graph.incoming(last)) == 6
        assert {b.tensors[0].node for b in step.graph.outputs} == {
            a.target for a in step.graph.outgoing(last)
        }
        assert step.graph["PrintV2"].outputs == step.graph["AssignAddVariableOp"].outputs == ()

    def test_a_read_before_a_write_keeps_its_place(self, step: Drawn):
        """The value before is not the variable's at the end, so the read is a box of its own."""
        assert ("ReadVariableOp", "AssignAddVariableOp") in step.dotted
        assert ("ReadVariableOp", "", "before") in step.links
        assert not any(start == "counter" and end == "before" for start, _, end in step.links)

    def test_the_drawing_has_one_order(self, step: Drawn):
        """Following the arrows leads from the assignment to the print, the check and the end."""
        links = nx.DiGraph((link.source, link.target) for link in step.diagram.links)
        boxes = {box.lines[0]: name for name, box in step.diagram.boxes.items()}
        order = ["AssignAddVariableOp", "tf.print", "if", "merge", "before"]
        assert all(nx.has_path(links, boxes[a], boxes[b]) for a, b in nx.utils.pairwise(order))

    def test_a_check_is_a_branch_that_fails(self, step: Drawn):
        """The check stands in the else branch; the other way is past it."""
        node = next(n for n in step.graph.nodes() if n.op == "If")
        bodies = {call.role: step.body(call.function) for call in node.calls}
        assert (bodies["then_branch"]["Assert"], bodies["else_branch"]["Assert"]) == (0, 1)
        assert "Assert" in step.frames["else"]
        assert "then" not in step.frames
        assert ("if", "merge") in step.dotted
        assert any(box.startswith("Greater | in tf.debugging.assert_greater") for box in step.boxes)

    def test_what_tracing_adds_has_no_line(self, step: Drawn):
        """The last NoOp and the Identity of a result were written by nobody."""
        for node in step.graph.nodes():
            if node.op == "NoOp" or node.name in ("Identity_1", "Identity_2"):
                assert node.source is None
                assert node.api is None


@pytest.fixture(scope="module")
def training() -> Drawn:
    kernel = tf.Variable(tf.ones([4, 3]), name="kernel")
    bias = tf.Variable(tf.zeros([3]), name="bias")

    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x, kernel) + bias - y))
        gw, gb = tape.gradient(loss, [kernel, bias])
        kernel.assign_sub(0.1 * gw)
        bias.assign_sub(0.1 * gb)
        return loss

    return drawn(tf.function(train_step), tf.TensorSpec([8, 4]), tf.TensorSpec([8, 3]))


class TestTraining:
    """Forward, gradients and assignments in one function."""

    def test_every_part_is_there(self, training: Drawn):
        """Gradients stand in a scope of their own; assignments have no result."""
        graph = training.graph
        gradients = sum(n.name.startswith("gradient_tape/") for n in graph.nodes())
        assert (len(graph), gradients) in [(37, 16), (39, 18)]  # of 2.21 and of 2.9
        updates = [n.name for n in graph.nodes() if n.op == "AssignSubVariableOp"]
        assert len(updates) == 2
        assert all(
            a.edge.kind is EdgeKind.CONTROL for name in updates for a in graph.outgoing(name)
        )
        assert [b.name for b in graph.captures] == ["kernel", "bias"]

    def test_variables_are_cylinders_that_are_read_and_written(self, training: Drawn):
        """A read whose order the data shows is part of the variable."""
        assert "kernel | float32[4,3]" in training.boxes
        assert ("kernel", "", "tf.matmul") in training.links
        assert ("kernel", "", "AssignSubVariableOp") in training.links
        assert not any("ReadVariableOp" in box for box in training.boxes)
        assert ("AssignSubVariableOp", "loss") in training.dotted

    def test_only_what_is_known_has_a_name(self, training: Drawn):
        """The loss has its variable; two gradients of one call have none."""
        names = {node.variable for node in training.graph.nodes()} - {None}
        assert names == {"loss"}

    def test_parameters_are_counted(self, training: Drawn):
        """Twelve and three."""
        report = training.capture.report().to_markdown()
        assert rows(report, "Parameters (elements of the variables)") == ["15"]


def test_a_custom_gradient_is_a_bridge():
    """IdentityN has the function's arguments as spare outputs; the picture goes past it."""

    @tf.custom_gradient
    def clipped_tanh(x):
        y = tf.tanh(x)

        def grad(dy):
            return tf.clip_by_value(dy, -1.0, 1.0) * (1.0 - y * y)

        return y, grad

    def apply(x):
        return clipped_tanh(x) * 2.0

    seen = drawn(tf.function(apply), tf.TensorSpec([3]))
    (bridge,) = [n for n in seen.graph.nodes() if n.op == "IdentityN"]
    assert len(bridge.outputs) == 2
    assert [a.edge.source_port for a in seen.graph.outgoing(bridge.name)] == [0]
    assert ("tf.tanh", "y | float32[3]", "* Mul") in seen.links


class TestVariablesMadeInside:
    """Variables that a function makes."""

    def test_on_the_first_call(self):
        """It is a captured variable; its initial value is no part of the function."""

        class Lazy(tf.Module):  # type: ignore[name-defined]
            def __init__(self):
                super().__init__()
                self.v = None

            @tf.function
            def __call__(self, x):
                if self.v is None:
                    self.v = tf.Variable(tf.random.normal([3]), name="lazy")
                return x + self.v

        lazy = Lazy()
        seen = drawn(lazy, tf.TensorSpec([3]))
        assert seen.types()["ReadVariableOp"] == 1
        assert not any("Random" in op for op in seen.types())
        assert [b.name for b in seen.graph.captures] == ["lazy"]
        assert seen.graph[seen.graph.captures[0].tensors[0].node].kind is NodeKind.VARIABLE
        assert ("lazy", "", "+ AddV2") in seen.links

    def test_on_every_call(self):
        """One line says what is wrong with it."""

        @tf.function
        def broken(x):
            return tf.Variable(x) + 1.0

        with pytest.raises(TraceError) as caught:
            graph2mermaid.trace(broken, tf.TensorSpec([3]))
        assert "\n" not in str(caught.value)
        assert "broken" in str(caught.value)
