"""Functions that call functions, and which of a function's traces is shown."""

from __future__ import annotations

from collections import Counter

import pytest

import graph2mermaid
from graph2mermaid import NodeKind
from tests.tf.drawn import Drawn, drawn
from tests.tf.reading import rows

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tf


@pytest.fixture(scope="module")
def twice() -> Drawn:
    @tf.function
    def inner(a, b):
        return tf.nn.relu(tf.matmul(a, b) + 1.0)

    def outer(x):
        return inner(x, x) + inner(x, 2.0 * x)

    return drawn(tf.function(outer), tf.TensorSpec([2, 2]))


class TestCalledTwice:
    """A helper that is called at two places."""

    def test_two_calls_of_one_body(self, twice: Drawn):
        """The call sites are two ops, the function is one; two arguments are two edges."""
        calls = [n for n in twice.graph.nodes() if n.kind is NodeKind.CALL]
        assert [n.name for n in calls] == ["PartitionedCall", "PartitionedCall_1"]
        assert {c.function for n in calls for c in n.calls} == {"inner"}
        first = [a.edge.target_port for a in twice.graph.incoming("PartitionedCall")]
        assert first == [0, 1]

    def test_the_body_is_drawn_at_each_call(self, twice: Drawn):
        """A reader follows the data through both; equal constants stay apart."""
        assert len(twice.titles) == 2
        assert all(title.startswith("inner · ") for title in twice.titles)
        assert sum(box == "tf.matmul" for box in twice.boxes) == 2
        assert sum(box == "1.0" for box in twice.boxes) == 2
        assert ("x", "× 2", "tf.matmul") in twice.links

    def test_the_table_has_one_function_and_two_callers(self, twice: Drawn):
        """Ops of a body are counted once, however often it is called."""
        callers, ops, inputs, outputs = rows(twice.capture.report().to_markdown(), "`inner`")
        assert "`PartitionedCall (f)`" in callers
        assert "`PartitionedCall_1 (f)`" in callers
        assert (ops, inputs, outputs) == ("7", "2", "1")


def test_a_function_called_in_a_python_loop():
    """Every round is a call of the same function, one after the other."""

    @tf.function
    def halve(x):
        return x / 2.0

    def f(x):
        for _ in range(3):
            x = halve(x)
        return x

    seen = drawn(tf.function(f), tf.TensorSpec([2]))
    assert list(seen.graph.functions) == ["halve"]
    assert len(seen.titles) == 3
    assert seen.links.count(("/ RealDiv", "x | float32[2]", "/ RealDiv")) == 2


def test_a_function_called_inside_a_loop():
    """The frame of the call stands inside the frame of the loop's body."""

    @tf.function
    def shrink(x):
        return tf.tanh(x)

    def f(x):
        while tf.reduce_sum(x) > 1.0:
            x = shrink(x)
        return x

    seen = drawn(tf.function(f), tf.TensorSpec([2]))
    (body,) = [fr for fr in seen.diagram.frames if fr.lines[0].startswith("body of while")]
    assert [frame.lines[0].partition(" · ")[0] for frame in body.frames] == ["shrink"]
    assert ("tf.tanh", "while") in seen.dotted


def test_calls_that_print_keep_their_order():
    """What waits for a call waits for its last op, and its first op waits for what is before."""

    @tf.function
    def say(x):
        tf.print("inside", x)
        return x + 1.0

    def f(x):
        tf.print("before")
        y = say(x)
        tf.print("after")
        return y

    seen = drawn(tf.function(f), tf.TensorSpec([]))
    assert seen.types()["StatefulPartitionedCall"] == 1
    assert ("tf.print", "StringFormat") in seen.dotted  # of the print inside
    assert ("tf.print", "tf.print") in seen.dotted
    assert ("+ AddV2", "", "y") in seen.links


def test_what_is_called_too_deep_has_a_picture_of_its_own():
    """Frames nest two deep; below them a call is a node, and the function is drawn further down."""

    @tf.function
    def third(x):
        return tf.exp(x)

    @tf.function
    def second(x):
        return third(x) + 1.0

    @tf.function
    def first(x):
        return second(x) + 2.0

    def f(x):
        return first(x) + 3.0

    seen = drawn(tf.function(f), tf.TensorSpec([2]))
    assert list(seen.frames) == ["first", "second"]
    assert any(box.startswith("calls third") for box in seen.boxes)
    figures = [figure.diagram for figure in seen.capture.report().figures()]
    assert [d.title for d in figures] == ["f", "third"]
    assert ["tf.exp"] in [list(box.lines) for box in figures[1].boxes.values()]


def test_an_unrolled_loop_is_hundreds_of_ops():
    """A Python `range` leaves no loop behind; every picture stays under the caps, and says so."""

    def deep(x):
        for _ in range(120):
            x = tf.tanh(x * 0.5 + 0.1)
        return x

    capture = graph2mermaid.trace(tf.function(deep), tf.TensorSpec([4]))
    graph = capture.traced
    assert (len(graph), graph.edge_count) == (602, 601)
    ops = Counter(node.op for node in graph.nodes())
    assert (ops["Tanh"], ops["While"], ops["StatelessWhile"]) == (120, 0, 0)
    assert [n.variable for n in graph.nodes() if n.op == "Tanh"] == ["x"] * 120
    figures = list(capture.report().figures())
    assert all(len(figure.diagram.links) <= 450 for figure in figures)
    assert all(len(figure.text.encode("utf-16-le")) <= 2 * 45_000 for figure in figures)
    shown = sum(len(figure.diagram.boxes) for figure in figures[:1])
    assert shown < 60


class TestWhichTrace:
    """What was asked for is traced, whatever was traced before."""

    def test_a_python_number_is_part_of_the_trace(self):
        """The report says for which number, and names the other traces."""

        @tf.function
        def power(x, n):
            for _ in range(n):
                x = x * x
            return x

        power(tf.ones([2]), 1)
        power(tf.ones([2]), 2)
        power(tf.ones([3]), 2)
        seen = drawn(power, tf.TensorSpec([2]), 2)
        assert seen.types()["Mul"] == 2
        assert {b.name: b.type for b in seen.graph.inputs} == {
            "x": "float32[2]",
            "n": "Python value 2",
        }
        (note,) = seen.capture.notes
        assert "other existing traces" in note
        assert all(f"n: {n}" in note or f"n: Python value {n}" in note for n in (1, 2))
        assert drawn(power, tf.TensorSpec([2]), tf.TensorSpec([], tf.int32)).types()["Mul"] == 0

    @pytest.mark.parametrize("relaxed_first", [True, False], ids=["relaxed first", "static first"])
    def test_a_relaxed_trace_is_not_shown_for_a_static_shape(self, relaxed_first: bool):
        """TensorFlow would hand out the more general trace; the report has what was asked for."""

        @tf.function
        def double(x):
            return x * 2.0

        first, second = ([None], [2]) if relaxed_first else ([2], [None])
        double.get_concrete_function(tf.TensorSpec(first))
        double.get_concrete_function(tf.TensorSpec(second))
        seen = drawn(double, tf.TensorSpec([2]))
        assert [b.type for b in seen.graph.inputs] == ["float32[2]"]
        assert "x | float32[2]" in seen.boxes
        assert "float32[?]" in " ".join(seen.capture.notes)

    def test_a_changed_attribute_is_seen(self):
        """A method is traced anew for each object, and for what the object is now."""

        class Scaler(tf.Module):  # type: ignore[name-defined]
            def __init__(self, k):
                super().__init__()
                self.k = k

            @tf.function
            def forward(self, x):
                return x * self.k

        a, b = Scaler(2.0), Scaler(3.0)
        spec = tf.TensorSpec([2])
        assert "2.0" in drawn(a.forward, spec).boxes
        assert "3.0" in drawn(b.forward, spec).boxes
        a.forward.get_concrete_function(spec)
        a.k = 10.0
        seen = drawn(a.forward, spec)
        assert seen.graph["mul/y"].value == "10.0"
        assert [binding.name for binding in seen.graph.inputs] == ["x"]
