"""Names that Mermaid, Markdown or HTML take for their own words, and names without end."""

from __future__ import annotations

import re

import pytest

import graph2mermaid
from graph2mermaid.mermaid.escape import readable
from tests.report.reading import read
from tests.tf import gallery
from tests.tf.reading import labels, op_types, rows

pytestmark = pytest.mark.tf

IDS = re.compile(r"^\s*(?:subgraph )?([^\s\"\[({%]+)[\[({]", re.MULTILINE)


@pytest.mark.parametrize(("level", "boxes"), [("simple", 10), ("ops", 11)])
def test_keywords_are_words_and_never_ids(level: str, boxes: int):
    """Ops called `end` and `graph` are drawn; ids are numbers of the tool's own."""
    text = gallery.keywords().to_mermaid(level=level)
    ids = IDS.findall(text)
    assert len(ids) == len(set(ids)) == boxes
    assert all(re.fullmatch(r"[ns]\d+", name) for name in ids)


def test_names_that_are_keywords_are_all_shown():
    """At the level of ops each of them can be read in the diagram."""
    figures = gallery.keywords().report(level="ops").figures()
    words = {line for f in figures for box in f.diagram.boxes.values() for line in box.lines}
    expected = {"end", "x", "o", "graph", "style", "subgraph/Relu", "1layer/Relu", "click"}
    assert expected <= words


def test_a_lambda_is_not_taken_for_a_tag():
    """`<lambda>` is in headings, tables and frames, and none of them holds HTML."""
    capture = gallery.calls_a_lambda()
    assert list(capture.traced.functions) == ["<lambda>"]
    markdown = capture.report().to_markdown()
    document = read(markdown)
    assert any("<lambda>" in cell for table in document.tables for row in table for cell in row)
    (fence,) = document.fences
    assert "<lambda>" not in fence[1]
    titles = re.findall(r'subgraph s\d+\["([^"]*)"\]', fence[1])
    assert len(titles) == 1
    assert readable(titles[0]).startswith("<lambda> · gallery.py:")


def test_a_lambda_is_a_heading():
    """A report of a function without a name is called `<lambda>`."""
    import tensorflow as tf

    capture = graph2mermaid.trace(lambda x: x * 2.0, tf.TensorSpec([2]))
    assert read(capture.report().to_markdown()).headings[0] == (1, "<lambda>")


def test_what_a_lambda_computes_is_not_what_it_is_called():
    """`square = tf.function(lambda x: x * x)` names the function, and not the product in it."""
    capture = gallery.calls_a_lambda()
    body = capture.traced.functions["<lambda>"]
    assert [node.variable for node in body.nodes()] == [None] * len(body)


def test_the_caller_of_a_lambda_names_its_result():
    """What a lambda returns is what the statement that calls it keeps."""
    import tensorflow as tf

    def outer(x):
        twice = (lambda v: tf.multiply(v, 2.0))(x)
        return tf.nn.relu(twice)

    graph = graph2mermaid.trace(tf.autograph.experimental.do_not_convert(outer), tf.TensorSpec([2]))
    (product,) = [node for node in graph.traced.nodes() if node.op == "Mul"]
    assert product.variable == "twice"


def test_names_of_a_thousand_characters():
    """Labels stay short, ids stay apart, and nothing of the graph is lost."""
    capture = gallery.long_names()
    names = [node.name for node in capture.traced.nodes()]
    assert op_types(capture.traced)["Relu"] == 62
    assert max(map(len, names)) > 1000
    assert sum(words.startswith("tf.nn.relu") for words in ops_drawn(capture)) == 62
    for figure in capture.report(level="ops").figures():
        quoted = re.findall(r'"([^"]*)"', figure.text)
        lines = [line for words in quoted for line in words.split("<br/>")]
        assert max(len(readable(line)) for line in lines) <= 40


def ops_drawn(capture: graph2mermaid.Capture) -> list[str]:
    """Return the labels of ops, those that a page shows of its neighbors left out."""
    return [
        "\n".join(box.lines)
        for figure in capture.report().figures()
        for box in figure.diagram.boxes.values()
        if box.look.value == "op"
    ]


def test_long_names_stand_in_full_in_a_table():
    """What a label had to cut can be read below."""
    markdown = gallery.long_names().report(level="ops").to_markdown()
    document = read(markdown)
    full = next(t for t in document.tables if t[0] == ["In the diagram", "Full name"])
    assert max(len(row[1]) for row in full[1:]) > 1000
    assert all("…" in row[0] for row in full[1:])


def test_a_name_stands_once_in_the_table_of_what_goes_in_and_out():
    """Names that are keywords are the rows' own words."""
    markdown = gallery.keywords().report().to_markdown()
    assert rows(markdown, "`end`")[:2] == ["input", "`float32[2]`"]


def test_labels_are_words_of_the_program():
    """At the usual level calls are shown as written, and arguments by name."""
    shown = labels(gallery.keywords())
    assert shown[:4] == ["end\nfloat32[2]", "x\nfloat32[2]", "o\nfloat32[2]", "tf.add"]
