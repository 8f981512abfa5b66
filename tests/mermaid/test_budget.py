"""Limits: counted on the text, and what people can read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from graph2mermaid.mermaid import budget
from graph2mermaid.mermaid.diagram import Box, Diagram, Link
from graph2mermaid.mermaid.write import write
from tests.strategies import diagrams


def diagram(boxes, links):
    return Diagram(
        "t",
        "d",
        {str(number): Box(("b",)) for number in range(boxes)},
        tuple(Link(str(source), str(target)) for source, target in links),
    )


def chain(boxes):
    return diagram(boxes, [(number, number + 1) for number in range(boxes - 1)])


@pytest.mark.parametrize(
    ("text", "size"),
    [
        pytest.param("", (0, 0), id="nothing"),
        pytest.param("graph TD\n", (9, 0), id="header"),
        pytest.param("é漢🙂", (4, 0), id="units, not bytes or characters"),
        pytest.param("\ud800", (1, 0), id="lone surrogate"),
        pytest.param("n0 --> n1\nn0 -.-> n1\nn0 ==> n1", (30, 3), id="arrows"),
        pytest.param('n0 -->|"a --> b"| n1', (20, 1), id="arrow in a label"),
        pytest.param("accTitle: a --> b\n%% a --> b", (28, 0), id="arrows that are not drawn"),
    ],
)
def test_measure(text, size):
    """Units are UTF-16 units, and edges are arrows outside labels, titles and comments."""
    assert budget.measure(text) == size


@settings(max_examples=30)
@given(diagrams())
def test_measure_agrees_with_the_diagram(shown):
    """Whatever the labels, as many edges are counted as the diagram has."""
    text = write(shown)
    assert budget.measure(text).edges == len(shown.links)
    assert budget.fits(text)


@pytest.mark.parametrize(
    ("edges", "units", "fits"),
    [
        pytest.param(450, 45_000, True, id="at both caps"),
        pytest.param(451, 45_000, False, id="one edge more"),
        pytest.param(450, 45_001, False, id="one unit more"),
    ],
)
def test_caps(edges, units, fits):
    """A text fits up to and including the caps."""
    text = "n0 --> n1\n" * edges
    assert budget.fits(text + "x" * (units - len(text))) is fits


@pytest.mark.parametrize(
    ("shown", "readable"),
    [
        pytest.param(diagram(0, []), True, id="nothing"),
        pytest.param(diagram(30, [(0, 1)] * 40), True, id="at the reading numbers"),
        pytest.param(diagram(31, [(0, 1)] * 40), False, id="one box more"),
        pytest.param(diagram(30, [(0, 1)] * 41), False, id="one edge more"),
        pytest.param(chain(60), True, id="chain"),
        pytest.param(chain(61), False, id="too long a chain"),
        pytest.param(
            diagram(40, [(i, i + 1) for i in range(39)] + [(0, 2)]), False, id="chain with a branch"
        ),
        pytest.param(
            diagram(40, [(i, i + 1) for i in range(39) if i != 20]), False, id="two chains"
        ),
        pytest.param(diagram(40, []), False, id="boxes side by side"),
    ],
)
def test_readable(shown, readable):
    """A page is small, or a single file of boxes."""
    assert budget.readable(shown) is readable
