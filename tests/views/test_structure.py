"""What the traced view says of a graph."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from graph2mermaid.capture import Capture, Environment
from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.graph import Binding, Graph, Node, NodeKind, Stage, TensorRef, TensorSpec
from graph2mermaid.mermaid.diagram import Box, Diagram, Frame, Link
from graph2mermaid.report.model import Section
from graph2mermaid.views import make_report
from graph2mermaid.views.drawing import Picture
from graph2mermaid.views.options import Options
from graph2mermaid.views.pictures import MOST_PARTS
from graph2mermaid.views.structure import traced
from graph2mermaid.views.tables import readable_count
from tests.builders import capture, graph
from tests.report.reading import Read, read


def shown(found: Capture | Graph | str, **options: Any) -> Read:
    """Return the report of a capture, a graph or a text, as a reader sees it."""
    made = found if isinstance(found, Capture) else capture(found)
    return read(made.report(**options).to_markdown())


def table(found: Capture | Graph | str, first: str, **options: Any) -> list[list[str]]:
    """Return the rows of the table whose first column has a title."""
    tables = shown(found, **options).tables
    return next((rows[1:] for rows in tables if rows[0][0] == first), [])


def summary(found: Capture | Graph | str) -> dict[str, str]:
    """Return the counts of the summary."""
    return dict(table(found, "What"))


def pictures(diagrams: dict[str, str | None]) -> list[Picture]:
    """Return a picture for each key, each a part of the one that is named beside it."""
    keys = list(diagrams)
    return [
        Picture(
            key,
            f"title {key}",
            Diagram(key, "", {key: Box((key or "top",))}),
            tuple((f"title {part}", part) for part in keys if diagrams[part] == key),
            parent,
        )
        for key, parent in diagrams.items()
    ]


def test_the_first_line_says_what_is_shown():
    """Target, place, size and what it was made with stand in one line under the title."""
    found = shown(capture(graph("x:Placeholder -> r:Relu", source="model.py:5:f")))
    assert found.headings[0] == (1, "f")
    assert found.paragraphs[0] == (
        "The traced graph of model.py:f at model.py:5: 2 ops and 1 edge. "
        "Made with TensorFlow 2.21.0, Keras 3.15.0 and Python 3.11.2 on 1 x CPU."
    )


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        (Environment(), ""),
        (Environment("2.9.3"), " Made with TensorFlow 2.9.3."),
        (Environment(devices=("1 x CPU", "2 x GPU")), " Made on 1 x CPU, 2 x GPU."),
        (Environment("2.9.3", python="3.10.1"), " Made with TensorFlow 2.9.3 and Python 3.10.1."),
    ],
    ids=["nothing", "one", "devices", "two"],
)
def test_what_is_not_known_of_the_environment_is_not_said(environment: Environment, words: str):
    """A capture of a file knows less than one that was traced."""
    found = shown(capture("x:Placeholder", environment=environment))
    assert found.paragraphs[0] == f"The traced graph of model.py:f: 1 op and 0 edges.{words}"


def test_notes_stand_above_the_diagram():
    """What was assumed is read before the picture; options can be copied from it."""
    note = "shape of x assumed; type --input 'x=float32[?,4]' --input y=f32[] or --inputs FILE:NAME"
    text = capture("x:Placeholder", notes=(note,)).report().to_markdown()
    assert read(text).quotes == [f"Note: {note}"]
    assert text.index("> **Note:**") < text.index("```mermaid")
    for option in ("--input 'x=float32[?,4]'", "--input y=f32[]", "--inputs FILE:NAME"):
        assert f"`{option}`" in text


def test_ops_and_edges_are_counted_apart():
    """Ops of bodies, control edges and parallel edges each count where they belong."""
    found = graph(
        "x:Placeholder -> m:Mul ~> n:NoOp; x -> m -> c:PartitionedCall calls=f=g",
        functions={"g": "a:Placeholder -> b:Relu -> c:Relu"},
    )
    counts = summary(found)
    assert counts["Ops"] == "4"
    assert counts["Ops in function bodies"] == "3"
    assert counts["Data edges"] == "3"
    assert counts["Control edges"] == "1"
    assert counts["Functions"] == "1"


def test_back_edges_count_as_edges():
    """The edge that closes a loop is a data edge."""
    looped = graph("e:Enter -> m:Merge -> n:NextIteration -> m")
    assert summary(looped)["Data edges"] == "3"


PARAMETERS = "Parameters (elements of the variables)"


def test_parameters_are_the_elements_of_the_variables():
    """The sum is exact; tables and iterators are no variables."""
    counts = summary(
        "w:Placeholder holds=float32[3,4]; b:Placeholder holds=int64[]; t:Placeholder resource[]"
    )
    assert counts["Variables"] == "2"
    assert counts["Other resources"] == "1"
    assert counts[PARAMETERS] == "13"


def test_unknown_shapes_are_said_beside_the_parameters():
    """A sum that leaves out variables says how many."""
    text = "a:Placeholder holds=f32[3]; b:Placeholder holds=f32[?]; c:Placeholder holds=f32[...]"
    assert summary(text)[PARAMETERS] == "at least 3: the shape of 2 variables is unknown"


def test_the_handles_of_one_distributed_variable_are_one_variable():
    """A capture with several tensors is one variable, with the elements of one."""
    twice = graph("a:Placeholder holds=f32[5]; b:Placeholder holds=f32[5]")
    one = Binding("v", (TensorRef("a"), TensorRef("b")), "Variable f32[5]")
    counts = summary(replace(twice, captures=(one,)))
    assert (counts["Variables"], counts[PARAMETERS]) == ("1", "5")


def test_variables_inside_a_graph_are_counted():
    """A graph from a file has variables that no capture names."""
    handle = Node("v", "VarHandleOp", NodeKind.VARIABLE, (TensorSpec("resource", ()),))
    counts = summary(Graph.build("f", Stage.TRACED, [handle], []))
    assert counts["Variables"] == "1"
    assert counts[PARAMETERS] == "at least 0: the shape of 1 variable is unknown"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0"),
        (9_999, "9,999"),
        (10_000, "10.0 k (10,000)"),
        (25_583_592, "25.6 M (25,583,592)"),
        (175_000_000_000, "175.0 G (175,000,000,000)"),
    ],
)
def test_large_counts_have_a_short_form(number: int, words: str):
    """The exact number always stands beside the rounded one."""
    assert readable_count(number) == words


def test_what_goes_in_and_out():
    """Arguments, captures and results stand under the names the user knows."""
    found = graph(
        """
        batch_1:Placeholder float32[2,3] label=batch['zeta']
        Variable:Placeholder holds=float32[3] label=dense/kernel
        batch_1 -> s:Split float32[2] float32[?] =1> scores
        """,
        captures=(
            Binding("dense/kernel", (TensorRef("Variable"),), "Variable float32[3]"),
            Binding("k", (), "Python value 2"),
        ),
    )
    assert table(found, "Name") == [
        ["batch['zeta']", "input", "float32[2,3]", "24", "batch_1"],
        ["dense/kernel", "capture", "Variable float32[3]", "12", "Variable"],
        ["k", "capture", "Python value 2", "", ""],
        ["scores", "output", "float32[?]", "?", "s:1"],
    ]


def test_a_composite_tensor_is_one_row():
    """Its bytes are those of its parts, and its ops are all named."""
    ragged = graph("rt:Placeholder float32[8]; rt_1:Placeholder int64[3]")
    both = (TensorRef("rt"), TensorRef("rt_1"))
    found = replace(ragged, inputs=(Binding("rt", both, "RaggedTensor float32[2,?]"),))
    assert table(found, "Name") == [["rt", "input", "RaggedTensor float32[2,?]", "56", "rt, rt_1"]]


def test_a_name_without_an_op_is_still_listed():
    """A binding of a graph that others made may name an op that is not there."""
    gone = (Binding("y", (TensorRef("gone"),), "float32[2]"),)
    found = replace(graph("a:Relu"), captures=gone)
    assert table(found, "Name") == [["y", "capture", "float32[2]", "?", "gone"]]


def test_op_types_come_by_frequency_then_name():
    """Shares are of all ops."""
    assert table("a:Relu; b:Add; c:Relu; d:Abs", "Op type") == [
        ["Relu", "2", "50.0%"],
        ["Abs", "1", "25.0%"],
        ["Add", "1", "25.0%"],
    ]


def test_op_types_in_bodies_are_counted_apart():
    """With bodies there is a column for them, and shares are of both together."""
    found = graph("a:If calls=then_branch=g", functions={"g": "b:Relu; c:Relu; d:If"})
    assert table(found, "Op type") == [["If", "1", "1", "50.0%"], ["Relu", "0", "2", "50.0%"]]


def test_lines_come_by_the_number_of_their_ops():
    """A line is one row, whichever functions its ops belong to, bodies included."""
    found = graph(
        "a:Relu src=m.py:9:f; b:Relu src=m.py:2:f; c:Add src=m.py:9:g; d:Relu src=m.py:9:f; e:NoOp",
        functions={"g": "x:Relu src=m.py:3:g"},
    )
    assert table(found, "Line") == [
        ["m.py:9", "3", "Relu × 2, Add"],
        ["m.py:2", "1", "Relu"],
        ["m.py:3", "1", "Relu"],
    ]
    assert any("1 op has no line in your code" in line for line in shown(found).paragraphs)


def test_many_op_types_on_a_line_are_cut():
    """A cell names the most frequent ones and says how many more there are."""
    text = "; ".join(f"n{i}:Op{i} src=m.py:1:f" for i in range(8))
    assert table(text, "Line") == [["m.py:1", "8", "Op0, Op1, Op2, Op3, Op4, Op5 and 2 more"]]


def test_a_graph_without_lines_has_no_table_of_lines():
    """A graph from a file has no sources."""
    found = shown("a:Relu")
    assert "Ops by source line" not in [title for _, title in found.headings]


def test_bodies_say_where_they_are_called():
    """Each function is a row, with the ops that call it, in whichever graph they are."""
    found = graph(
        "x:Placeholder -> c:If calls=then_branch=on,else_branch=off",
        functions={
            "on": "a:Placeholder -> b:PartitionedCall calls=f=deep => y",
            "off": "a:Placeholder => y",
            "deep": "a:Placeholder -> b:Relu => y",
            "lost": "a:Add",
        },
    )
    assert table(found, "Function") == [
        ["on", "c (then_branch)", "2", "1", "1"],
        ["off", "c (else_branch)", "1", "1", "1"],
        ["deep", "b (f) in on", "2", "1", "1"],
        ["lost", "", "1", "0", "0"],
    ]


def test_long_labels_have_their_full_names_in_a_table():
    """What had to be cut in the diagram can be read below it."""
    long = "/".join(["very_long_scope"] * 20)
    (row,) = table(f"x:Placeholder label={long}", "In the diagram")
    assert row[1] == long
    assert len(row[0]) <= 40
    assert row[0].startswith("very_long_scope/")


def test_titles_and_edges_have_full_names_too():
    """Whatever is cut in a diagram is in the table: titles of inner frames, words on edges."""
    inner = Frame("inner", ("i" * 50,), ("a",))
    diagram = Diagram(
        "d",
        "",
        {"a": Box(("a",)), "b": Box(("b",))},
        (Link("a", "b", ("e" * 50,)),),
        (Frame("outer", ("short",), ("b",), (inner,)),),
    )
    section = traced(capture("x:Relu"), Options(), lambda *_: [Picture("", "f", diagram)])
    (names,) = [rows for rows in make_report_of(section).tables if rows[0][1] == "Full name"]
    assert [row[1] for row in names[1:]] == ["i" * 50, "e" * 50]


def test_long_tables_are_cut():
    """Twenty rows of each kind are shown, and the rest is counted."""
    text = "; ".join(
        f"x{i}:Placeholder label=in{i}; v{i}:Placeholder holds=f32[1]" for i in range(22)
    )
    rows = table(text, "Name")
    assert [row[1] for row in rows] == ["input"] * 20 + ["capture"] * 20
    assert "... and 2 more inputs, 2 more captures." in shown(text).paragraphs


def test_a_function_without_ops_has_a_note_and_no_diagram():
    """Mermaid cannot draw nothing."""
    found = shown(graph("", name="nothing"))
    assert found.fences == []
    assert found.quotes == ["Note: nothing has no ops, so there is nothing to draw."]
    assert found.tables == []


def test_when_all_is_hidden_there_is_a_note():
    """`hide` can leave nothing to draw."""
    found = shown("a:Relu", hide=("Relu",))
    assert found.fences == []
    assert found.quotes == ["Note: Every op is hidden, so there is nothing to draw."]
    assert summary("a:Relu")["Ops"] == "1"


def test_what_a_diagram_leaves_out_is_said_below_it():
    """The legend comes first, then the sentences of the diagram."""
    diagram = Diagram("d", "", {"a": Box(("a",))}, left_out=("2 ops are not shown.",))

    def draw(found: Graph, options: Options) -> list[Picture]:
        return [Picture("", "f", diagram)]

    section = traced(capture("x:Relu"), Options(), draw)
    made = make_report_of(section)
    assert made.paragraphs[1:3] == ["Box: op.", "2 ops are not shown."]


def make_report_of(section: Section) -> Read:
    """Return a report of one section, as a reader sees it."""
    from graph2mermaid.report.model import Report

    return read(Report("R", (section,)).to_markdown())


def test_parts_are_linked_both_ways():
    """Each picture names its parts and the one above it, wherever that has a section."""
    drawn = pictures({"": None, "a": "", "b": "a", "function:g": None})
    found = make_report_of(traced(capture("x:Relu"), Options(), lambda *_: drawn))
    assert found.headings[-4:] == [
        (2, "Parts"),
        (3, "title a"),
        (3, "title b"),
        (3, "title function:g"),
    ]
    assert found.links == [
        ("title a", "#title-a"),
        ("title", "#traced-graph"),
        ("title b", "#title-b"),
        ("title a", "#title-a"),
    ]
    assert len(found.fences) == 4


def test_only_the_nearest_parts_are_drawn():
    """A file has no more diagrams than hosts draw; the last ones, the deepest, are left out."""
    tree: dict[str, str | None] = {"": None}
    tree |= {f"p{number}": "" for number in range(MOST_PARTS - 1)}
    tree |= {f"q{number}": f"p{number}" for number in range(MOST_PARTS - 1)}
    drawn = pictures(tree)
    found = make_report_of(traced(capture("x:Relu"), Options(), lambda *_: drawn))
    assert len(found.fences) == MOST_PARTS + 1
    titles = [title for level, title in found.headings if level == 3]
    assert titles == [f"title {key}" for key in list(tree)[1 : MOST_PARTS + 1]]
    left_out = MOST_PARTS - 2
    assert any(line.startswith(f"{left_out} smaller parts have no") for line in found.paragraphs)


def test_a_capture_of_another_stage_is_an_error():
    """Without a traced graph there is no such view."""
    empty = Capture("m.py:f", "f", {})
    with pytest.raises(Graph2MermaidError, match=r"m\.py:f: the capture holds no traced graph"):
        make_report([empty])
