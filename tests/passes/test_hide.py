"""What is hidden is counted, and what flowed through it still flows."""

from __future__ import annotations

import pytest

from graph2mermaid.passes.hide import hide
from tests.builders import graph

TEXT = (
    "x:Placeholder float32[2] -> enc/r:Relu float32[2] -> enc/e:Exp float32[2] -> s:Sum float32[]"
)


@pytest.mark.parametrize(
    ("wanted", "left", "count"),
    [
        (["Relu"], [("x", "enc/e"), ("enc/e", "s")], 1),
        (["enc"], [("x", "s")], 2),
        (["enc/"], [("x", "s")], 2),
        (["enc/r", "Exp"], [("x", "s")], 2),
        (["en"], [("x", "enc/r"), ("enc/r", "enc/e"), ("enc/e", "s")], 0),
        (["Sum"], [("x", "enc/r"), ("enc/r", "enc/e")], 1),
    ],
    ids=[
        "a type",
        "a scope",
        "a scope with a slash",
        "an op and a type",
        "no scope",
        "the last op",
    ],
)
def test_paths_stay(wanted, left, count):
    """Ops are hidden by type, name or scope, and their neighbors are joined."""
    shown, hidden = hide(graph(TEXT), wanted)
    assert [(a.source, a.target) for a in shown.arrows()] == left
    assert hidden == count


def test_a_loop_still_goes_round():
    """What leads back through a hidden op leads back from what comes before it."""
    text = "m:Merge float32[] -> e:Exp float32[] -> n:NextIteration float32[]; n -> m"
    shown, hidden = hide(graph(text), ["NextIteration"])
    assert hidden == 1
    assert [(a.source, a.target) for a in shown.back_edges] == [("e", "m")]


def test_everything_can_be_hidden():
    """Hiding all leaves an empty graph, not an error."""
    shown, hidden = hide(graph(TEXT), ["Placeholder", "Relu", "Exp", "Sum"])
    assert (len(shown), hidden) == (0, 4)
