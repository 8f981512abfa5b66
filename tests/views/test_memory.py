"""The memory view: of plans, of estimates, and of what it cannot show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from graph2mermaid.capture import Capture
from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.graph import Stage
from graph2mermaid.memory import Order
from graph2mermaid.mermaid.budget import fits, readable
from graph2mermaid.views import Options, make_report
from tests.builders import capture, graph
from tests.golden_files import Golden, unused
from tests.mermaid_js.browser import VERSIONS, Browser
from tests.plans import plan

DENSE = """
    x:Placeholder float32[8,64]
    w:Placeholder holds=float32[64,64] label=dense/kernel
    w -> MatMul/ReadVariableOp:ReadVariableOp float32[64,64]
    x -> MatMul:MatMul float32[8,64] api=tf.matmul src=model.py:9:dense
    MatMul/ReadVariableOp -> MatMul
    MatMul -> Relu:Relu float32[8,64] api=tf.nn.relu var=h src=model.py:9:dense
    Relu -> Softmax:Softmax float32[8,64] api=tf.nn.softmax src=model.py:10:dense => output_0
"""

DENSE_PLAN = """
    0 parameter 16384 label=dense/kernel
        arg1 float32[64,64] 0-2
    1 parameter 2048 label=x
        arg0 float32[8,64] 0-2
    2 output 2048
        dot float32[8,64] 2-3 op=MatMul
        fusion float32[8,64] 3-4 op=Relu
        divide float32[8,64] 6- op=Softmax
    3 temporary 2112
        reduce float32[8] 4-5 @2048 op=Softmax
        exponential float32[8,64] 5-6 op=Softmax
        sum float32[8] 5-6 @2048 op=Softmax
    4 output 16
        tuple () 7-
    5 constant 4
        zero float32[] 0-3 op=Relu
    6 thread-local 4
        inner float32[] 0-0
"""


def dense(**rest: Any) -> Capture:
    steps = "arg0 arg1 dot fusion reduce exponential divide tuple"
    found = plan(DENSE_PLAN, steps, order=rest.pop("order", Order.SCHEDULE))
    return capture(graph(DENSE, name="dense"), target="model.py:dense", **{"memory": found, **rest})


def estimated() -> Capture:
    return dense(memory=None, notes=("Memory view: XLA cannot compile Print at model.py:9",))


def without_shapes() -> Capture:
    text = "x:Placeholder float32[?,64] -> a:Relu float32[?,64] api=tf.nn.relu => y"
    return capture(graph(text, name="rows"), target="model.py:rows")


def many() -> Capture:
    """More values, arguments and blocks than a reader takes in."""
    lines = [
        *(f"{i} parameter 64 label=w{i}\n arg{i} float32[{16}] 0-1" for i in range(40)),
        "40 temporary 4096",
        *(f"v{i} float32[{1024 - i}] {i}-{i + 1} op=block_{i}/Relu" for i in range(40)),
        *(
            f"{41 + i} temporary 400\n a{i} float32[100] {i}-{i + 1}\n b{i} float32[100] {i + 2}-"
            for i in range(20)
        ),
    ]
    steps = " ".join(f"v{i}" for i in range(60))
    found = plan("\n".join(lines), steps, order=Order.TRACE)
    return dense(memory=found, notes=("XLA view: unknown dimensions were taken as 2: x=int32[2]",))


def overlapping() -> Capture:
    text = "0 temporary 4096\n a float32[1024] 0-3\n b float32[1024] 1-2"
    return dense(memory=plan(text, "a b c d"))


@dataclass(frozen=True)
class Case:
    """A capture, and how it is shown."""

    make: Callable[[], Capture]
    options: dict[str, Any] = field(default_factory=dict)


CASES = {
    "plan": Case(dense),
    "plan_left_to_right": Case(dense, {"direction": "LR"}),
    "estimate": Case(estimated),
    "no_shapes": Case(without_shapes),
    "many": Case(many),
    "overlap": Case(overlapping),
}


@pytest.mark.parametrize("name", CASES)
def test_reports(name: str, golden: Golden):
    """The report is what was reviewed, byte for byte."""
    case = CASES[name]
    report = make_report([case.make()], ["memory"], Options(**case.options))
    golden(f"memory/{name}.md", report.to_markdown())


def test_every_golden_report_is_used():
    """A golden file that no test compares with is deleted with its test."""
    assert unused("memory/*.md", [f"{name}.md" for name in CASES]) == []


@pytest.mark.parametrize("name", CASES)
def test_every_picture_can_be_drawn_and_read(name: str):
    """However much there is, a picture stays within what hosts draw and people read."""
    report = make_report([CASES[name].make()], ["memory"])
    for figure in report.figures():
        assert fits(figure.text)
        assert readable(figure.diagram)


def test_an_op_of_another_name_is_no_origin():
    """What XLA names after an op that was not traced has that name, and no line."""
    text = make_report([many()], ["memory"]).to_markdown()
    assert "block_0/Relu" in text
    assert "tf.nn.relu" not in text
    assert "model.py:9" not in text


def test_max_nodes_is_kept():
    """Fewer boxes can be asked for."""
    (figure,) = make_report([many()], ["memory"], Options(max_nodes=8)).figures()
    assert len(figure.diagram.boxes) == 8


def test_the_optimized_graph_is_estimated_where_there_is_one():
    """What is executed counts, and the report says which graph it was."""
    traced = graph(DENSE, name="dense")
    smaller = graph("x:Placeholder float32[8] => x", name="dense", stage=Stage.GRAPPLER)
    graphs = {Stage.TRACED: traced, Stage.GRAPPLER: smaller}
    report = make_report([capture(traced, graphs=graphs)], ["memory"]).to_markdown()
    assert "An estimate, from the shapes in the graph that Grappler made: 32 bytes" in report


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        (Stage.TRACED, "there is no op that could need memory"),
        (Stage.XLA, "there is no memory plan in it; a dump of the HloProto"),
    ],
    ids=["empty", "HLO text"],
)
def test_nothing_to_show_is_one_clear_line(stage: Stage, words: str):
    """What holds neither a plan nor a graph to estimate says so."""
    found = capture("", graphs={stage: graph("", stage=stage)})
    with pytest.raises(Graph2MermaidError, match=words):
        make_report([found], ["memory"])


@pytest.mark.node
@pytest.mark.parametrize("name", CASES)
def test_every_picture_is_drawn_by_mermaid(name: str, mermaid: Browser):
    """Every version of Mermaid that hosts use shows all that a picture means."""
    report = make_report([CASES[name].make()], ["memory"])
    for figure in report.figures():
        for version in VERSIONS:
            mermaid.assert_drawn(figure.text, figure.diagram, version)
