"""The runtime view of small graphs: what each device executes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings

from graph2mermaid.capture import Capture
from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.graph import Graph, Stage
from graph2mermaid.mermaid.diagram import Look
from graph2mermaid.views import Options, make_report
from tests.builders import MULTIPLY_ADD, capture, graph
from tests.golden_files import Golden, unused
from tests.graph_strategies import models
from tests.report.reading import Read, read
from tests.views.optimized_captures import DENSE_OPTIMIZED, dense, optimized

ZERO = "/job:localhost/replica:0/task:0/device:CPU:0"
ONE = "/job:localhost/replica:0/task:0/device:CPU:1"


def executed(text: str, *, crossing: frozenset[tuple[str, str]] = frozenset()) -> Graph:
    """Build a runtime graph; edges between these ops say that their tensor was sent."""
    made = graph(text, stage=Stage.RUNTIME)
    arrows = [
        a._replace(edge=replace(a.edge, label="sent")) if a[:2] in crossing else a
        for a in (*made.arrows(), *made.back_edges)
    ]
    return Graph.build(
        made.name,
        made.stage,
        made.nodes(),
        arrows,
        inputs=made.inputs,
        captures=made.captures,
        outputs=made.outputs,
    )


def with_runtime(found: Capture, runtime: Graph) -> Capture:
    return replace(found, graphs={**found.graphs, Stage.RUNTIME: runtime})


def onednn() -> Capture:
    """Build a kernel that oneDNN renames, and an op that placing adds."""
    text = DENSE_OPTIMIZED.replace(":_FusedMatMul", ":_MklNativeFusedMatMul")
    text = text.replace("src=", f"device={ZERO} src=")
    return with_runtime(dense(), executed(f"{text}; mul -> copy:_Copy float32[8,3]"))


def two_devices() -> Capture:
    before = f"""
        x:Placeholder float32[2] device={ZERO}
        two:Const float32[] value=2.0 device={ONE}
        x -> mul:Mul float32[2] device={ONE} var=y; two -> mul
        one:Const float32[] value=1.0 device={ZERO}
        mul -> add:AddV2 float32[2] device={ZERO}; one -> add => output_0
    """
    runtime = executed(before, crossing=frozenset({("x", "mul"), ("mul", "add")}))
    return with_runtime(optimized(before, before, name="where"), runtime)


LOOP = f"""
    x:Placeholder float32[] device={ZERO}; zero:Const int32[] value=0 device={ZERO}
    zero -> while/Enter:Enter int32[] attr.frame_name=w device={ONE}
    x -> while/Enter_1:Enter float32[] attr.frame_name=w device={ONE}
    while/Enter -> while/Merge:Merge int32[] int32[] device={ONE}
    while/Enter_1 -> while/Merge_1:Merge float32[] int32[] device={ONE}
    while/cond/three:Const int32[] value=3 device={ONE}
    while/Merge -> while/cond/_0/Less:Less bool[] device={ONE}; while/cond/three -> while/cond/_0/Less
    while/cond/_0/Less -> while/LoopCond:LoopCond bool[] device={ONE}
    while/Merge -> while/Switch:Switch int32[] int32[] device={ONE}; while/LoopCond -> while/Switch
    while/Merge_1 -> while/Switch_1:Switch float32[] float32[] device={ONE}
    while/LoopCond -> while/Switch_1
    while/body/_1/one:Const int32[] value=1 device={ONE}
    while/Switch -1> while/body/_1/add:AddV2 int32[] device={ONE}; while/body/_1/one -> while/body/_1/add
    while/Switch_1 -1> while/body/_1/Tanh:Tanh float32[] device={ONE}
    while/body/_1/add -> while/NextIteration:NextIteration int32[] device={ONE}
    while/body/_1/Tanh -> while/NextIteration_1:NextIteration float32[] device={ONE}
    while/NextIteration -> while/Merge; while/NextIteration_1 -> while/Merge_1
    while/Switch_1 -> while/Exit:Exit float32[] device={ONE}
    while/Exit -> Neg:Neg float32[] device={ZERO} => output_0
"""


def loop_on_a_device() -> Capture:
    text = "x:Placeholder float32[] -> Neg:Neg float32[] => output_0"
    runtime = executed(LOOP, crossing=frozenset({("x", "while/Enter_1"), ("while/Exit", "Neg")}))
    return with_runtime(capture(graph(text, name="spin"), target="model.py:spin"), runtime)


GOLDEN: dict[str, Callable[[], Capture]] = {
    "onednn": onednn,
    "two_devices": two_devices,
    "loop_on_a_device": loop_on_a_device,
}


def shown(found: Capture) -> Read:
    return read(make_report([found], ["runtime"]).to_markdown())


@pytest.mark.parametrize("name", GOLDEN)
def test_reports(name: str, golden: Golden):
    """The report is what was reviewed, byte for byte."""
    text = make_report([GOLDEN[name]()], ["runtime"], Options()).to_markdown()
    golden(f"runtime/{name}.md", text)


def test_every_golden_report_is_used():
    """A golden file that no test compares with is deleted with its test."""
    assert unused("runtime/*.md", [f"{name}.md" for name in GOLDEN]) == []


def test_the_first_line_says_where_it_is_executed():
    """Ops, devices and the edges between devices are counted at the top."""
    assert shown(two_devices()).paragraphs[0] == (
        "What the devices execute: 5 ops on 2 devices. 2 edges go from one device to another."
    )


def test_a_frame_for_each_device():
    """Each device is a frame, and what goes from one to the other says so."""
    figure = next(make_report([two_devices()], ["runtime"]).figures())
    assert 'subgraph s0["CPU:0"]' in figure.text
    assert 'subgraph s1["CPU:1"]' in figure.text
    sent = [link for link in figure.diagram.links if "sent" in link.lines]
    assert [link.lines[-1] for link in sent] == ["float32[2]", "float32[2]"]


def test_a_loop_stands_in_the_frame_of_its_device():
    """The loop is a loop, with its condition and body in the frame of the device that runs it."""
    text = next(make_report([loop_on_a_device()], ["runtime"]).figures()).text
    depths = {
        line.strip().partition('["')[2]: len(line) - len(line.lstrip())
        for line in text.splitlines()
        if "subgraph" in line
    }
    outside = depths['CPU:1"]']
    assert depths['CPU:0"]'] == outside
    assert depths['condition of while"]'] == depths['body of while"]'] > outside
    assert "next iteration" in text


def test_what_came_after_grappler():
    """An op that oneDNN renamed and one that placing added are marked and listed."""
    found = onednn()
    boxes = next(make_report([found], ["runtime"]).figures()).diagram.boxes.values()
    said = {box.look: "\n".join(box.lines) for box in boxes}
    assert "was _FusedMatMul" in said[Look.CHANGED]
    assert "added at run time" in said[Look.ADDED]
    rows = next(rows[1:] for rows in shown(found).tables if rows[0][1] == "After Grappler")
    assert rows == [["Relu", "_FusedMatMul", "_MklNativeFusedMatMul"], ["copy", "", "_Copy"]]


@pytest.mark.parametrize("make", GOLDEN.values(), ids=GOLDEN)
def test_the_devices_add_up(make: Callable[[], Capture]):
    """Every op is counted on one device, or on none."""
    found = make()
    assert_adds_up(found)


def assert_adds_up(found: Capture) -> None:
    runtime = found.graphs[Stage.RUNTIME]
    rows = next((rows[1:] for rows in shown(found).tables if rows[0] == ["Device", "Ops"]), [])
    assert sum(int(row[1].replace(",", "")) for row in rows) == len(runtime)


@settings(max_examples=30)
@given(models(most=10))
def test_any_graph_adds_up(made: Graph):
    """Whatever is executed where, the report can be made and the counts add up."""
    nodes = [replace(node, device=(ZERO, ONE, "")[at % 3]) for at, node in enumerate(made.nodes())]
    runtime = Graph.build(
        made.name, Stage.RUNTIME, nodes, (*made.arrows(), *made.back_edges),
        inputs=made.inputs, captures=made.captures, outputs=made.outputs,
    )  # fmt: skip
    assert_adds_up(with_runtime(capture(made), runtime))


class TestMissing:
    """Captures without a runtime graph."""

    def test_it_was_never_recorded(self):
        """The line says how to record it."""
        with pytest.raises(Graph2MermaidError, match="record it with --view runtime"):
            make_report([capture(MULTIPLY_ADD)], ["runtime"])

    def test_the_function_cannot_be_executed(self):
        """Where there is an optimized graph the line does not ask for what was done already."""
        with pytest.raises(Graph2MermaidError, match=r"model.py:dense: it cannot be executed here"):
            make_report([dense()], ["runtime"])

    def test_there_is_nothing_to_execute(self):
        """A function without ops is told from one that cannot be executed."""
        with pytest.raises(Graph2MermaidError, match="there is no op to execute"):
            make_report([optimized("", "")], ["runtime"])
