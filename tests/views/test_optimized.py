"""The Grappler view of small graphs, before and after."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from graph2mermaid.capture import Capture
from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.graph import Graph, Stage
from graph2mermaid.mermaid.diagram import Look
from graph2mermaid.optimization import OpChange, OpForm, Way
from graph2mermaid.views import Options, make_report
from tests.builders import MULTIPLY_ADD, capture
from tests.golden_files import Golden, unused
from tests.graph_strategies import models
from tests.report.reading import Read, read
from tests.views.optimized_captures import DENSE, DENSE_OPTIMIZED, dense, optimized, step

MANY_WAYS = (
    """
    x:Placeholder float32[2]; unused:Placeholder float32[2]
    a:Const float32[] value=2.0; b:Const float32[] value=2.0
    x -> scaled:Mul float32[2]; a -> scaled
    scaled -> squared:Mul float32[2]; scaled -> squared
    squared -> sqrt:Sqrt float32[2] -> divided:RealDiv float32[2]
    x -> divided -> twice:Mul float32[2]; b -> twice => output_0
    x -> sigmoid:Sigmoid float32[2] -> ArgMax:ArgMax int64[] => label
    axis:Const int32[] value=0 -> ArgMax
    x -> exp:Exp float32[2]
    """,
    """
    x:Placeholder float32[2]; a:Const float32[] value=2.0
    x -> scaled:Mul float32[2]; a -> scaled
    scaled -> ArithmeticOptimizer/ReplaceMulWithSquare_squared:Square float32[2]
    ArithmeticOptimizer/ReplaceMulWithSquare_squared -> sqrt:Rsqrt float32[2]
    sqrt -> divided:Mul float32[2]; x -> divided -> twice:Mul float32[2]; a -> twice => output_0
    x -> ArgMax:ArgMax int64[] => label; axis:Const int32[] value=0 -> ArgMax
    odd:Const float32[] value=1.0 -> printed:PrintV2
    """,
)
"""Ops that were changed, added, merged, taken out and never needed, and one without an origin."""


def many_ways() -> Capture:
    return optimized(
        *MANY_WAYS,
        way=Way.RUN,
        options={"remapping": "OFF"},
        optimizers={"constfold": True, "remap": False},
        passes=(
            step("arithmetic", {"squared": ("Mul", ""), "sqrt": ("Sqrt", "Rsqrt")}),
            step("remap", {}, note="crashed: Check failed"),
        ),
        differences=(
            OpChange("gone", OpForm("Relu"), None),
            OpChange("sqrt", OpForm("Sqrt"), OpForm("Rsqrt")),
        ),
        notes=("The shape of x was assumed.",),
    )


def blocked() -> Capture:
    used_twice = f"{DENSE}; MatMul -> Tanh:Tanh float32[8,3] => other"
    return optimized(used_twice, used_twice, name="dense")


BLOCK = """
    x -> layer_{n}/MatMul:MatMul float32[8,8]; w -> layer_{n}/MatMul
    layer_{n}/MatMul -> layer_{n}/BiasAdd:BiasAdd float32[8,8]; b -> layer_{n}/BiasAdd
    layer_{n}/BiasAdd -> layer_{n}/Relu:Relu float32[8,8]
    layer_{n}/a:Const float32[] value={n}.0; layer_{n}/b:Const float32[] value=0.5
    layer_{n}/a -> layer_{n}/scale:Mul float32[]; layer_{n}/b -> layer_{n}/scale
    layer_{n}/Relu -> layer_{n}/mul:Mul float32[8,8]; layer_{n}/scale -> layer_{n}/mul
    layer_{n}/mul -> layer_{n}/Tanh:Tanh float32[8,8]
"""
BLOCK_OPTIMIZED = """
    x -> layer_{n}/Relu:_FusedMatMul float32[8,8]; w -> layer_{n}/Relu; b -> layer_{n}/Relu
    layer_{n}/scale:Const float32[] value={n}.5
    layer_{n}/Relu -> layer_{n}/mul:Mul float32[8,8]; layer_{n}/scale -> layer_{n}/mul
    layer_{n}/mul -> layer_{n}/Tanh:Tanh float32[8,8]
"""
START = "x:Placeholder float32[8,8]; w:Placeholder float32[8,8]; b:Placeholder float32[8]"


def blocks() -> Capture:
    """Build a graph that is too large for one picture."""
    ends = [f"layer_{n}/Tanh => out_{n}" for n in range(16)]
    before, after = (
        "\n".join([START, *(block.format(n=n) for n in range(16)), *ends])
        for block in (BLOCK, BLOCK_OPTIMIZED)
    )
    return optimized(before, after, name="blocks")


GOLDEN: dict[str, Callable[[], Capture]] = {
    "dense": dense,
    "many_ways": many_ways,
    "blocked": blocked,
}


def shown(found: Capture, **options: Any) -> Read:
    """Return the report's parts as a reader sees them."""
    return read(markdown(found, **options))


def markdown(found: Capture, **options: Any) -> str:
    return make_report([found], ["grappler"], Options(**options)).to_markdown()


def table(document: Read, first: str) -> list[list[str]]:
    """Return the rows of the table whose first column has this heading."""
    return next(rows[1:] for rows in document.tables if rows[0][0] == first)


@pytest.mark.parametrize("name", GOLDEN)
def test_reports(name: str, golden: Golden):
    """The report is what was reviewed, byte for byte."""
    golden(f"optimized/{name}.md", markdown(GOLDEN[name]()))


def test_every_golden_report_is_used():
    """A golden file that no test compares with is deleted with its test."""
    assert unused("optimized/*.md", [f"{name}.md" for name in GOLDEN]) == []


def test_the_first_line_says_what_happened():
    """The ops before and after, and how many went which way, are told before the diagram."""
    first = shown(dense()).paragraphs[0]
    assert first.startswith("What Grappler made of it: 14 ops became 6, 3 fused into 1 kernel")
    assert "3 folded into 1 constant, 4 removed" in first
    assert first.endswith("Found without running the function.")


def test_what_ran_is_told_from_what_was_found_without_running():
    """The reader knows whether the function ran."""
    assert (
        shown(many_ways()).paragraphs[0].endswith("Recorded by TensorFlow while the function ran.")
    )


def test_each_way_has_a_look_and_a_word():
    """A fused kernel, a folded constant and an added or changed op differ by more than color."""
    boxes = [
        box
        for found in (dense(), many_ways())
        for figure in make_report([found], ["grappler"]).figures()
        for box in figure.diagram.boxes.values()
    ]
    said = {box.look: "\n".join(box.lines) for box in boxes}
    assert "fused: MatMul,\nBiasAdd, Relu" in said[Look.FUSED]
    assert "folded: 3 ops" in said[Look.FOLDED]
    assert "added: ArithmeticOptimizer" in said[Look.ADDED]
    assert any("was Sqrt" in "\n".join(box.lines) for box in boxes if box.look is Look.CHANGED)


def test_what_the_reader_must_know():
    """Options, a taken-out op, what is not explained and differences are notes at the top."""
    notes = "\n".join(shown(many_ways()).quotes)
    assert "The program sets optimizer options: remapping=OFF" in notes
    assert "Sigmoid was taken out between x and ArgMax" in notes
    assert "2 ops could not be mapped between the two graphs" in notes
    assert "What ran differs from the offline result in 2 ops" in notes
    assert "The shape of x was assumed." in notes


def test_differences_are_listed():
    """What ran and what was made offline stand side by side."""
    rows = next(
        rows for rows in shown(many_ways()).tables if rows[0] == ["Op", "Offline", "What ran"]
    )
    assert rows[1:] == [["gone", "Relu", "none"], ["sqrt", "Sqrt", "Rsqrt"]]


def test_a_pass_that_crashed_is_in_the_table():
    """A pass without a result says why, instead of being left out."""
    (row,) = (row for row in table(shown(many_ways()), "Pass") if row[0] == "remapper")
    assert row[1] == "crashed: Check failed"


def test_each_pass_says_what_it_did():
    """The table of passes names the kernels, and counts what was folded and removed."""
    rows = {row[0]: row[1] for row in table(shown(dense()), "Pass")}
    assert rows == {
        "model pruner": "1 removed",
        "constant folding": "3 ops folded into 1 constant",
        "remapper": "MatMul + BiasAdd + Relu into _FusedMatMul",
        "dependency optimization": "3 removed",
    }


def test_the_share_that_the_replay_explains():
    """What the replay does not explain is a stated number."""
    text = markdown(optimized(DENSE, DENSE_OPTIMIZED, passes=(step("pruning", {}),)))
    assert "The replay explains 0 of 10 changed ops (0.0%)." in text
    assert "The replay explains 10 of 10 changed ops (100.0%)." in markdown(dense())


def test_why_a_chain_was_not_fused():
    """The chain is named with its line and what stands in the way."""
    (item,) = shown(blocked()).items
    assert item == (
        "MatMul + BiasAdd + Relu (MatMul) at model.py:4: something else reads the result of MatMul."
    )


def test_what_to_write_instead():
    """Where another op would be fused, the report names it."""
    plus = DENSE.replace(":BiasAdd", ":AddV2")
    (item,) = shown(optimized(plus, plus, onednn=False)).items
    assert item.endswith(
        "the bias is added with +; only oneDNN fuses that, while tf.nn.bias_add is fused without it"
        " as well."
    )
    assert "added with `+`; only" in markdown(optimized(plus, plus, onednn=False))


def test_a_closed_group_says_what_is_in_it():
    """A group counts the fused kernels and folded constants that it hides."""
    boxes = next(make_report([blocks()], ["grappler"]).figures()).diagram.boxes.values()
    texts = ["\n".join(box.lines) for box in boxes]
    fused = [int(n) for text in texts for n in re.findall(r"(\d+) fused", text)]
    folded = [int(n) for text in texts for n in re.findall(r"(\d+) folded", text)]
    assert fused
    assert folded
    assert all(count <= 16 for count in fused + folded)


@pytest.mark.parametrize("make", [dense, many_ways, blocked, blocks])
def test_the_tables_add_up(make: Callable[[], Capture]):
    """The counts on both sides add up to the number of ops there."""
    assert_adds_up(make())


def assert_adds_up(found: Capture) -> None:
    document = shown(found)
    for first in ("Traced ops", "Ops after Grappler"):
        *rows, last = table(document, first)
        counts = [int(row[1].replace(",", "")) for row in rows]
        assert sum(counts) == int(last[1].replace(",", ""))


@settings(max_examples=30)
@given(models(most=8, depth=1), models(most=8))
def test_the_tables_of_any_two_graphs_add_up(before: Graph, after: Graph):
    """Whatever became of a graph, its report can be made and its counts add up."""
    assert_adds_up(optimized(before, replace(after, stage=Stage.GRAPPLER)))


class TestMissing:
    """Captures without an optimized graph."""

    def test_it_was_never_recorded(self):
        """The line says how to record it."""
        with pytest.raises(
            Graph2MermaidError, match=r"model.py:f: .* record it with --view grappler"
        ):
            make_report([capture(MULTIPLY_ADD)], ["grappler"])

    @pytest.mark.parametrize("view", ["grappler", "runtime"])
    def test_it_could_not_be_made(self, view):
        """The line is the reason that was noted."""
        found = capture(MULTIPLY_ADD, notes=("Grappler view: XLA compiles it as a whole",))
        with pytest.raises(Graph2MermaidError, match=r"model.py:f: Grappler view: XLA compiles it"):
            make_report([found], [view])

    def test_the_reason_is_said_once(self):
        """Beside another capture the reason stands in the section, one time."""
        found = capture(MULTIPLY_ADD, notes=("Grappler view: XLA compiles it as a whole",))
        text = make_report([found, dense()], ["grappler"]).to_markdown()
        assert text.count("XLA compiles it as a whole") == 1


def test_the_usual_views():
    """Without a choice the traced graph comes first, then Grappler's, where there is one."""
    titles = [
        title for level, title in read(make_report([dense()]).to_markdown()).headings if level == 2
    ]
    assert titles == ["Traced graph", "Grappler graph"]
    only = read(make_report([capture(MULTIPLY_ADD)]).to_markdown())
    assert "Grappler graph" not in [title for _, title in only.headings]
