"""What a capture offers by itself: its graph, its diagram, its display in a notebook."""

from __future__ import annotations

import pytest

from graph2mermaid.capture import Capture
from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.graph import Stage
from tests.builders import MULTIPLY_ADD, capture


def test_a_notebook_gets_every_form():
    """JupyterLab draws the Mermaid text, others show the Markdown or the one-line form."""
    shown = capture(MULTIPLY_ADD)
    bundle = shown._repr_mimebundle_(include=None, exclude=None)
    assert set(bundle) == {"text/vnd.mermaid", "text/markdown", "text/plain"}
    assert bundle["text/vnd.mermaid"] == shown.to_mermaid()
    assert bundle["text/vnd.mermaid"].startswith("graph TD\n")
    assert "```mermaid\ngraph TD\n" in bundle["text/markdown"]
    assert bundle["text/plain"] == repr(shown)


def test_an_empty_function_displays_itself_all_the_same():
    """Where there is nothing to draw the notebook gets the words, not an error."""
    bundle = capture("")._repr_mimebundle_()
    assert set(bundle) == {"text/markdown", "text/plain"}


def test_options_reach_the_diagram():
    """The options of a view are keywords of `to_mermaid`."""
    shown = capture(MULTIPLY_ADD)
    assert shown.to_mermaid(direction="LR").startswith("graph LR\n")
    assert shown.to_mermaid(tensors="nodes").count('("product') == 1


def test_a_capture_without_a_traced_graph():
    """What is not there is named."""
    with pytest.raises(Graph2MermaidError, match=r"^f\.py:f: the capture holds no traced graph$"):
        _ = Capture("f.py:f", "f", {}).traced
    assert Stage.TRACED in capture(MULTIPLY_ADD).graphs
