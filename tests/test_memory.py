"""What a memory plan says: what is in use when, what shares a place, and what that saves."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph2mermaid.errors import CaptureError
from graph2mermaid.memory import (
    Allocation,
    AllocationKind,
    MemoryPlan,
    Value,
)
from graph2mermaid.serde import dumps, loads
from graph2mermaid.serde.plans import plan_from_data, plan_to_data
from tests.builders import capture
from tests.plans import plan

CHAIN = plan(
    """
    0 parameter 4096 label=x
        x float32[1024] 0-1
    1 temporary 8192
        a float32[1024] 1-2 @0
        b float32[1024] 2-3 @4096
        c float32[1024] 3-4 @0
    2 output 4096
        d float32[1024] 4-
    """,
    "x a b c d",
)
"""Four results one after the other, of which only two are needed at a time."""


def test_a_chain_needs_two_places_in_turn():
    """What each value of a chain takes over is known, and so is what that saves."""
    assert CHAIN.nbytes == 4 * 4096
    assert CHAIN.without_reuse == 5 * 4096
    assert CHAIN.saved == 4096
    before = CHAIN.before(CHAIN.allocations[1].values)
    names = {
        value.name: [earlier.name for earlier in before[value.id]] for value in CHAIN.values[1:4]
    }
    assert names == {"a": [], "b": [], "c": ["a"]}
    assert CHAIN.overlaps == ()


def test_the_peak_is_the_first_step_at_which_most_is_in_use():
    """Arguments are in use all the time, other values from when they are made to their last use."""
    assert (CHAIN.peak, CHAIN.peak_nbytes) == (2, 3 * 4096)
    assert [value.name for value in CHAIN.alive(2)] == ["a", "b"]
    assert [value.name for value in CHAIN.alive(4)] == ["c", "d"]


def test_a_value_made_in_the_place_of_its_operand_takes_no_more():
    """Bytes that two values have in common are counted once, and that is no overlap."""
    found = plan(
        """
        0 temporary 4096
            a float32[1024] 0-1
            b float32[1024] 1-2
        """,
        "a b c",
    )
    assert found.peak_nbytes == 4096
    assert found.overlaps == ()


def test_values_that_overlap_are_found():
    """Two values with a byte in common and a step between them are named."""
    found = plan(
        """
        0 temporary 6144
            a float32[1024] 0-3 @0
            b float32[1024] 1-2 @2048
            c float32[8] 1-2 @6112
        """,
        "a b c d",
    )
    assert [(o.first.name, o.second.name) for o in found.overlaps] == [("a", "b"), ("b", "c")]


def test_the_state_of_a_loop_is_one_value():
    """What a loop starts with, carries and ends with is in memory from first to last, once."""
    text = """
        0 temporary 4096
            start float32[1024] 0-5
            carried float32[1024] 2-3
            end float32[1024] 5-6
    """
    one = plan(text, "a b c d e f g", same=(("start", "carried", "end"),))
    assert [value.name for value in one.alive(4)] == ["carried"]
    assert [(v.name, v.start, v.end) for v in one.places(one.allocations[0])] == [("start", 0, 6)]
    assert one.without_reuse == 4096
    three = plan(text, "a b c d e f g")
    assert [value.name for value in three.alive(3)] == ["start", "carried"]
    assert [(o.first.name, o.second.name) for o in three.overlaps] == [("start", "carried")]
    assert three.without_reuse == 3 * 4096


def test_a_variable_may_lend_its_place():
    """Between the last use of its old value and its new one another value may be there."""
    found = plan(
        """
        0 parameter 4096 label=w
            old float32[1024] 0-1
            other float32[1024] 2-3
            new float32[1024] 4-
        """,
        "a b c d e",
        same=(("old", "new"),),
    )
    assert found.overlaps == ()
    assert found.without_reuse == 3 * 4096


def test_memory_of_threads_is_not_counted():
    """Scalars inside reductions exist once for each thread, so no total has them."""
    found = plan("0 thread-local 4\n a float32[] 0-0", "x")
    assert (found.nbytes, found.values) == (0, ())
    assert found.by_kind[AllocationKind.THREAD_LOCAL] == 4


values = st.builds(
    lambda nbytes, offset, start, length: (nbytes, offset, start, start + length),
    st.integers(1, 20),
    st.integers(0, 30),
    st.integers(0, 10),
    st.integers(0, 5),
)


@given(st.lists(values, max_size=12))
def test_what_a_plan_says_agrees_with_counting_every_byte(rows: list[tuple[int, int, int, int]]):
    """Peak and overlaps are those that a table of every byte at every step gives."""
    made = [
        Value(id_, f"v{id_}", nbytes, start, end, offset)
        for id_, (nbytes, offset, start, end) in enumerate(rows)
    ]
    block = Allocation(0, 60, AllocationKind.TEMPORARY, tuple(made))
    found = MemoryPlan((block,), tuple(f"v{i}" for i in range(16)))
    cells = [
        {byte for v in made if v.start <= step <= v.end for byte in _bytes(v)} for step in range(16)
    ]
    assert found.peak_nbytes == max(map(len, cells))
    if made:
        assert len(cells[found.peak]) == found.peak_nbytes
    wrong = {
        (a.id, b.id)
        for a in made
        for b in made
        if (a.start, a.id) < (b.start, b.id) and b.start < a.end and _bytes(a) & _bytes(b)
    }
    assert {(o.first.id, o.second.id) for o in found.overlaps} == wrong


def _bytes(value: Value) -> set[int]:
    return set(range(value.offset, value.offset + value.nbytes))


@pytest.mark.parametrize("found", [CHAIN, MemoryPlan((), ())], ids=["chain", "empty"])
def test_a_plan_survives_json(found: MemoryPlan):
    """A plan is the same after it was written and read."""
    assert plan_from_data(json.loads(json.dumps(plan_to_data(found)))) == found


def test_a_capture_file_carries_the_plan():
    """What is rendered later from a file has the plan that was recorded."""
    written = capture("x:Placeholder float32[1024] => x", memory=CHAIN)
    (found,) = loads(dumps([written]), origin="test")
    assert found.memory == CHAIN


def test_unknown_keys_are_kept():
    """What a newer version wrote is there again when the plan is written."""
    data = {**plan_to_data(CHAIN), "color": "red"}
    assert plan_to_data(plan_from_data(data)) == data


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"order": "schedule", "schedule": [1], "allocations": [], "same": []},
        {"order": "guess", "schedule": [], "allocations": [], "same": []},
        {"order": "schedule", "schedule": [], "allocations": [[0, -1, "output", None, "", []]],
         "same": []},
        {"order": "schedule", "schedule": [], "allocations": [[0, 1, "output"]], "same": []},
        {"order": "schedule", "schedule": [], "same": [],
         "allocations": [[0, 1, "output", None, "", [[0, "v", [], 1, 0, 0, 0, "add"]]]]},
        {"order": "schedule", "schedule": ["v"], "same": [],
         "allocations": [[0, 1, "output", None, "", [[0, "v", [], 1, 0, 0, 2, "add", "", ""]]]]},
    ],
    ids=["empty", "no text", "no order", "no size", "short row", "short value", "no such step"],
)  # fmt: skip
def test_a_damaged_plan_is_said_to_be_damaged(broken: dict[str, object]):
    """Data of another form is one clear error."""
    with pytest.raises(CaptureError, match="the memory plan is damaged"):
        plan_from_data(broken)
