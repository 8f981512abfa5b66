"""XLA's buffer assignment as a memory plan, against what the proto says by itself."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from graph2mermaid.capture import Capture
from graph2mermaid.graph import Graph
from graph2mermaid.liveness import estimate
from graph2mermaid.memory import AllocationKind, MemoryPlan, Order
from graph2mermaid.sources.buffers import memory_plan
from graph2mermaid.sources.concrete import Inputs, trace_of
from graph2mermaid.sources.stages import later_stages
from graph2mermaid.sources.tf_function import graph_of
from graph2mermaid.sources.tracing import trace_callable
from graph2mermaid.sources.xla import compile_hlo, hlo_messages

pytestmark = pytest.mark.tf


def chain() -> Callable[..., Any]:
    import tensorflow as tf

    def chain(x, w):
        for _ in range(4):
            x = tf.matmul(x, w)
        return x

    return chain


def dense() -> Callable[..., Any]:
    import tensorflow as tf

    w, b = tf.Variable(tf.ones([64, 64])), tf.Variable(tf.ones([64]))

    def dense(x):
        h = tf.nn.relu(x @ w + b)
        y = tf.nn.relu(h @ w + b)
        return tf.nn.softmax(y), tf.reduce_sum(h)

    return dense


def loop() -> Callable[..., Any]:
    import tensorflow as tf

    w = tf.Variable(tf.ones([64, 64]))

    def loop(x):
        return tf.while_loop(lambda i, _: i < 9, lambda i, x: (i + 1, tf.tanh(x @ w)), (0, x))[1]

    return loop


def branch() -> Callable[..., Any]:
    import tensorflow as tf

    w = tf.Variable(tf.ones([64, 64]))

    def branch(x):
        y = tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.tanh(x @ w) @ w, lambda: x)
        return y + x

    return branch


def step() -> Callable[..., Any]:
    import tensorflow as tf

    w, v = tf.Variable(tf.ones([64, 64])), tf.Variable(tf.ones([64, 64]))

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.relu(tf.tanh(x @ w) @ v) ** 2.0)
        for variable, gradient in zip((w, v), tape.gradient(loss, [w, v])):  # noqa: B905 - AutoGraph of 2.9
            variable.assign_sub(0.1 * gradient)
        return loss

    return step


def wide() -> Callable[..., Any]:
    import tensorflow as tf

    w = tf.Variable(tf.ones([64, 64]))

    def wide(x):
        parts = [tf.nn.softmax(x @ w * float(i)) for i in range(8)]
        return tf.concat(parts, 1), tf.sort(x), tf.cumsum(x), tf.add_n(parts)

    return wide


MAKERS = {
    "chain": (chain, ([8, 64], [64, 64])),
    "dense": (dense, ([8, 64],)),
    "loop": (loop, ([8, 64],)),
    "branch": (branch, ([8, 64],)),
    "step": (step, ([8, 64],)),
    "wide": (wide, ([8, 64],)),
}


@functools.cache
def compiled(name: str) -> tuple[Any, Graph, MemoryPlan]:
    """Return the `HloProto`, the traced graph and the plan of one of the functions."""
    import tensorflow as tf

    maker, shapes = MAKERS[name]
    args = tuple(tf.TensorSpec(shape) for shape in shapes)
    traced = trace_of(maker(), Inputs(args), name=name)
    graph = graph_of(traced.concrete, name=name, python_function=traced.python_function)
    proto = compile_hlo(traced.concrete, graph).hlo
    found = memory_plan(proto, graph)
    assert found is not None
    return proto, graph, found


@pytest.mark.parametrize("name", MAKERS)
def test_totals_are_the_sums_over_the_proto(name: str):
    """Every allocation and every buffer is in the plan, at its size and place."""
    proto, _, found = compiled(name)
    said = proto.buffer_assignment
    assert [b.nbytes for b in found.allocations] == [b.size for b in said.buffer_allocations]
    rows = {
        (block.index, value.id, value.offset, value.nbytes)
        for block in found.allocations
        for value in block.values
    }
    assert rows == {
        (block.index, placed.logical_buffer_id, placed.offset, placed.size)
        for block in said.buffer_allocations
        for placed in block.assigned
    }
    threads = sum(block.size for block in said.buffer_allocations if block.is_thread_local)
    assert found.nbytes == sum(block.size for block in said.buffer_allocations) - threads
    parameters = [b for b in said.buffer_allocations if b.is_entry_computation_parameter]
    assert found.by_kind[AllocationKind.PARAMETER] == sum(b.size for b in parameters)
    if not said.buffer_aliases:
        assert found.without_reuse == sum(buffer.size for buffer in said.logical_buffers) - threads


@pytest.mark.parametrize("name", MAKERS)
def test_no_value_is_overwritten_while_it_is_alive(name: str):
    """Lifetimes that follow from the instructions agree with the places that XLA gave."""
    assert compiled(name)[2].overlaps == ()


@pytest.mark.parametrize("name", MAKERS)
def test_values_begin_in_the_order_of_the_allocator(name: str):
    """XLA's own allocator takes memory for the values in the order in which the plan has them."""
    proto, _, found = compiled(name)
    start = {value.id: value.start for value in found.values}
    taken = [
        start[event.buffer_id]
        for trace in proto.buffer_assignment.heap_simulator_traces
        for event in trace.events
        if event.kind != event.FREE and event.buffer_id in start
    ]
    assert taken == sorted(taken)


@pytest.mark.parametrize("name", MAKERS)
def test_no_instruction_runs_before_what_it_reads(name: str):
    """The order is one that the instructions allow, each of them once."""
    proto, _, found = compiled(name)
    assert len(set(found.schedule)) == len(found.schedule)
    place = {instruction: at for at, instruction in enumerate(found.schedule)}
    for computation in proto.hlo_module.computations:
        names = {one.id: one.name for one in computation.instructions}
        for one in computation.instructions:
            if one.name in place:
                assert all(place[names[key]] < place[one.name] for key in one.operand_ids)
    scheduled = bool(proto.hlo_module.schedule.sequences)
    assert found.order is (Order.SCHEDULE if scheduled else Order.TRACE)


@pytest.mark.parametrize("name", MAKERS)
def test_the_peak_lies_between_what_is_alive_and_what_is_there(name: str):
    """No more is in use than there is, and no less than the largest value with the arguments."""
    found = compiled(name)[2]
    assert found.by_kind[AllocationKind.PARAMETER] < found.peak_nbytes <= found.nbytes
    assert found.saved >= 0
    covered: defaultdict[int, set[int]] = defaultdict(set)
    home = {value.id: block.index for block in found.allocations for value in block.values}
    held = {AllocationKind.PARAMETER, AllocationKind.CONSTANT}
    always = {block.index for block in found.allocations if block.kind in held}
    for value in found.alive(found.peak):
        covered[home[value.id]] |= set(range(value.offset, value.offset + value.nbytes))
    counted = sum(len(these) for index, these in covered.items() if index not in always)
    assert counted + sum(found.by_kind[kind] for kind in held) == found.peak_nbytes


def test_a_chain_takes_turns():
    """Four products one after the other: the last takes the place that the first has left."""
    found = compiled("chain")[2]
    products = [value for value in found.values if value.op.startswith("MatMul")]
    products.sort(key=lambda value: value.start)
    assert [value.type for value in products] == ["float32[8,64]"] * 4
    place = {v.id: (b.kind, v.offset) for b in found.allocations for v in b.values}
    first, second, third, last = (place[value.id] for value in products)
    assert first == last
    assert first[0] is AllocationKind.OUTPUT
    assert len({first, second, third}) == 3
    assert found.saved == 8 * 64 * 4


def test_the_state_of_a_loop_is_one_value():
    """What goes around in a loop is counted once, however many buffers XLA calls it."""
    proto, _, found = compiled("loop")
    assert proto.buffer_assignment.buffer_aliases
    assert found.same
    assert found.without_reuse < sum(value.nbytes for value in found.values)


@pytest.mark.parametrize("name", ["dense", "step"])
def test_arguments_and_variables_have_the_names_of_the_user(name: str):
    """Each parameter is called what the program calls it."""
    _, graph, found = compiled(name)
    labels = {b.label for b in found.allocations if b.parameter is not None}
    known = {b.name for b in (*graph.inputs, *graph.captures)}
    assert labels == known


def test_a_module_without_a_plan_has_none():
    """A dump of the module alone holds no buffer assignment."""
    assert memory_plan(hlo_messages().HloProto()) is None


@pytest.mark.slow
def test_resnet50_is_what_the_proto_says():
    """The largest model of the facts: its totals, and a block that many values share."""
    import tensorflow as tf

    model = tf.keras.applications.ResNet50(weights=None)
    shape = tf.TensorSpec([1, 224, 224, 3])
    traced = trace_of(lambda x: model(x, training=False), Inputs((shape,)), name="resnet")
    graph = graph_of(traced.concrete, name="resnet", python_function=traced.python_function)
    found = memory_plan(compile_hlo(traced.concrete, graph).hlo, graph)
    assert found is not None
    assert 182e6 < found.without_reuse < 183e6
    assert 119e6 < found.nbytes < 120e6
    largest = max(
        (b for b in found.allocations if b.kind is AllocationKind.TEMPORARY), key=lambda b: b.nbytes
    )
    assert 16e6 < largest.nbytes < 17e6
    assert len(found.places(largest)) > 100
    assert found.overlaps == ()


def recorded(function: Callable[..., Any], *args: Any) -> Capture:
    return trace_callable(
        function, Inputs(args), target="m.py:f", name="f", further=later_stages(["memory"])
    )


def test_the_memory_view_compiles_and_does_not_run():
    """A function that is not marked for XLA has a plan all the same, and its Python runs once."""
    import tensorflow as tf

    variable = tf.Variable(0.0)

    @tf.function
    def count(x):
        variable.assign_add(1.0)
        return tf.nn.softmax(x)

    found = recorded(count, tf.TensorSpec([8, 64]))
    assert found.memory is not None
    assert variable.numpy() == 0.0
    assert found.notes == ()


def test_what_xla_cannot_compile_is_an_estimate_that_says_why():
    """The view is delivered, labelled, with the reason and what could not be counted."""
    import tensorflow as tf

    def words(x, text):
        tf.print(text)
        return tf.nn.relu(x)

    found = recorded(words, tf.TensorSpec([None, 64]), tf.TensorSpec([], tf.string))
    assert found.memory is None
    report = found.report(["memory"]).to_markdown()
    assert "An estimate, from the shapes in the traced graph: at least " in report
    assert "Memory view: XLA compiles numbers only, and text is a string" in report
    assert "The size of 3 of 3 tensors is unknown, and not counted" in report


def test_unknown_dimensions_are_said():
    """A plan for made-up shapes says which."""
    import tensorflow as tf

    def rows(x):
        return tf.nn.relu(x)

    found = recorded(rows, tf.TensorSpec([None, 64]))
    assert found.memory is not None
    (note,) = found.notes
    assert note.startswith("Memory view: unknown dimensions were taken as 2: x=float32[2,64]")
    assert note in found.report(["memory"]).to_markdown().replace("\\", "")


@pytest.mark.parametrize("name", MAKERS)
def test_the_estimate_is_no_less_than_the_arguments_and_no_more_than_everything(name: str):
    """What is estimated for the traced graph has every argument, variable and result in it."""
    _, graph, found = compiled(name)
    guess = estimate(graph)
    assert guess.unknown == ()
    assert guess.by_kind[AllocationKind.PARAMETER] == found.by_kind[AllocationKind.PARAMETER]
    assert guess.by_kind[AllocationKind.PARAMETER] < guess.peak_nbytes <= guess.without_reuse
