"""Estimates of memory from shapes: what is counted, when, and what could not be."""

from __future__ import annotations

import pytest

from graph2mermaid.liveness import estimate
from graph2mermaid.memory import AllocationKind
from tests.builders import graph

CHAIN = """
    x:Placeholder float32[1024]
    x -> a:Relu float32[1024] -> b:Relu float32[1024] -> c:Relu float32[1024] -> d:Relu float32[1024]
    d => result
"""


def test_a_chain_has_two_results_at_a_time():
    """While an op of a chain runs, what it reads and what it makes are in memory."""
    found = estimate(graph(CHAIN))
    assert found.peak_nbytes == 3 * 4096
    assert found.without_reuse == 5 * 4096
    assert found.saved == 2 * 4096
    assert [t.ref.node for t in found.alive(found.peak)] == ["a", "b"]
    assert found.order[found.peak] == "b"
    assert found.unknown == ()


def test_a_result_that_is_read_late_stays():
    """What a gradient needs of the way forward is in memory until then, and its reader is known."""
    text = CHAIN + "a -> e:Mul float32[1024]; d -> e => product"
    found = estimate(graph(text))
    alive = {t.ref.node: t.last_reader for t in found.alive(found.order.index("d"))}
    assert alive == {"a": "e", "c": "d", "d": ""}


@pytest.mark.parametrize("op", ["Identity", "Reshape", "Squeeze", "StopGradient", "EnsureShape"])
def test_what_hands_on_its_input_takes_no_memory(op: str):
    """The readers of such an op keep what it reads."""
    found = estimate(
        graph(
            f"""
            x:Placeholder float32[8]
            x -> a:Relu float32[8] -> same:{op} float32[8] -> b:Relu float32[8] => result
            """
        )
    )
    assert [t.ref.node for t in found.tensors] == ["x", "a", "b"]
    (a,) = (t for t in found.tensors if t.ref.node == "a")
    assert a.last_reader == "b"


def test_a_variable_is_counted_once_and_its_handle_not():
    """What a variable holds is there all the time; to read it makes no copy."""
    found = estimate(
        graph("w:Placeholder holds=float32[8] -> r:ReadVariableOp float32[8] -> a:Relu float32[8]")
    )
    assert found.by_kind[AllocationKind.PARAMETER] == 32
    assert [t.ref.node for t in found.tensors] == ["w", "a"]
    assert found.unknown == ()


def test_unknown_sizes_are_stated_and_not_counted():
    """Without static shapes nothing is guessed: the tensors are listed."""
    found = estimate(
        graph(
            """
            x:Placeholder float32[?,4]; s:Placeholder string[2]
            x -> a:Relu float32[?,4] -> b:Sum float32[] => total
            """
        )
    )
    assert [str(t.ref) for t in found.unknown] == ["x:0", "s:0", "a:0"]
    assert found.peak_nbytes == 4


def test_what_a_body_keeps_counts_while_it_is_called():
    """The most that a called function keeps beside its arguments and results is in use at the call."""
    body = graph(
        """
        y:Placeholder float32[8]
        y -> wide:Tile float32[1024] -> narrow:Sum float32[8] => out
        """,
        name="body",
    )
    found = estimate(
        graph(
            "x:Placeholder float32[8] -> call:PartitionedCall float32[8] calls=f=body => out",
            functions={"body": body},
        )
    )
    assert found.inside == {1: 4096}
    assert found.peak_nbytes == 32 + 32 + 4096


def test_a_function_that_calls_itself_ends():
    """Recursion is counted once."""
    again = graph(
        "y:Placeholder float32[8] -> c:PartitionedCall float32[8] calls=f=again => out",
        name="again",
    )
    found = estimate(graph("x:Placeholder float32[8] -> c:PartitionedCall float32[8] calls=f=again",
                           functions={"again": again}))  # fmt: skip
    assert found.peak_nbytes == 64


def test_an_empty_graph_needs_nothing():
    """There is a result for a graph without ops."""
    found = estimate(graph(""))
    assert (found.peak_nbytes, found.without_reuse, found.tensors) == (0, 0, ())
