"""Functions with little to draw, or with much that nothing reads."""

from __future__ import annotations

import pytest

from graph2mermaid import Graph2MermaidError
from graph2mermaid.mermaid.diagram import Look
from tests.tf import gallery
from tests.tf.reading import labels, looks

pytestmark = pytest.mark.tf


def test_what_nothing_reads_is_still_traced():
    """The traced graph has every op, those whose results are dropped as well."""
    graph = gallery.wasteful().traced
    assert len(graph) == 15
    assert {"Exp", "RandomStandardNormal", "Unique"} <= {node.op for node in graph.nodes()}
    shown = " ".join(labels(gallery.wasteful()))
    assert all(word in shown for word in ("tf.exp", "tf.random.normal", "tf.unique"))


def test_an_argument_that_nothing_reads_is_shown():
    """The signature has it, so the diagram and the table do."""
    capture = gallery.wasteful()
    assert "unused\nfloat32[3]" in labels(capture)
    assert not capture.traced.outgoing("unused")
    assert "| `unused` | input | `float32[3]` |" in capture.report().to_markdown()


def test_nothing_to_draw_is_a_note():
    """A function without ops has a report that says so, and no empty diagram."""
    report = gallery.nothing().report()
    assert not list(report.figures())
    assert "has no ops, so there is nothing to draw" in report.to_markdown()
    with pytest.raises(Graph2MermaidError, match="nothing to draw"):
        gallery.nothing().to_mermaid()


def test_an_argument_handed_back_is_two_results():
    """Argument and results alone are a diagram: what is between them is plumbing."""
    capture = gallery.handed_back()
    assert looks(capture) == [Look.INPUT, Look.OUTPUT, Look.OUTPUT]
    assert [node.op for node in capture.traced.nodes()] == ["Placeholder", "Identity", "Identity"]
    figure = next(capture.report().figures())
    assert [(link.source, link.dotted) for link in figure.diagram.links] == [("x", False)] * 2


def test_a_constant_needs_no_argument():
    """What is multiplied is shown with its values; nothing is worked out ahead of Grappler."""
    capture = gallery.constant()
    assert capture.traced.inputs == ()
    assert [node.op for node in capture.traced.nodes()] == ["Const", "Const", "Mul", "Identity"]
    assert looks(capture) == [Look.CONST, Look.CONST, Look.OP, Look.OUTPUT]
    assert labels(capture)[:2] == ["2.0", "3.0"]
