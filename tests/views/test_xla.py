"""The XLA view of small modules."""

from __future__ import annotations

import pytest

from graph2mermaid.capture import Capture
from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.graph import Graph, Stage
from graph2mermaid.hlo import compilation_of
from graph2mermaid.sources.hlo_graph import graph_of_module
from graph2mermaid.views import Options, make_report
from graph2mermaid.views.kernels import kernels, launches
from tests.builders import graph as built
from tests.hlo.modules import BRANCHES, DENSE, LOOP, module

TRACED = built(
    "x:Placeholder float32[8,16]; w:Placeholder float32[16,4]; b:Placeholder float32[4];"
    "x -> MatMul:MatMul float32[8,4]; w -> MatMul -> add:AddV2 float32[8,4]; b -> add -> "
    "Relu:Relu float32[8,4] => y; x -> Shape:Shape int32[2] -> Sum:Sum int32[]"
)


def capture(text: str, traced: Graph | None = None) -> Capture:
    found = module(text)
    graphs = {Stage.XLA: graph_of_module(found, name="f", traced=traced)}
    if traced is not None:
        graphs[Stage.TRACED] = traced
    return Capture("model.py:f", "f", graphs, compilation=compilation_of(found, traced, before=20))


def report(found: Capture, **options) -> str:
    return make_report([found], ["xla"], Options(**options)).to_markdown()


def test_a_fusion_is_a_frame_with_its_name_and_kind():
    """What is fused stands in a frame, and the library's kernel beside it."""
    text = report(capture(DENSE, TRACED))

    assert 'subgraph s0["bias_relu · loop"]' in text
    assert '["dot<br/>MatMul"]' in text
    assert '["maximum<br/>Relu"]' in text
    assert (
        "What XLA compiled, without running it: 8 ops became 12 instructions in 2 kernels" in text
    )


def test_kernels_are_listed_with_ops_and_costs():
    """Each kernel has what it computes, its result, its ops, and what it costs."""
    text = report(capture(DENSE, TRACED))

    assert "| `dot` | dot | `float32[8,4]` | `MatMul` |  | 1,024 | 896 | 1.14 |" in text
    assert "| `bias_relu` | add, maximum (loop fusion) | `float32[8,4]` | `add`, `Relu` |" in text


def test_ops_lead_to_kernels_and_may_have_vanished():
    """For each op of the traced graph there is a kernel, or a row among those that are gone."""
    text = report(capture(DENSE, TRACED))

    where = text.partition("## Kernels by TensorFlow op")[2].partition("##")[0]
    gone = text.partition("## Ops that vanished")[2].partition("\n## ")[0]
    assert "| `add` | `AddV2` |  | `bias_relu` |" in where
    assert "`Shape`" in gone
    assert "`Sum`" in gone
    assert "MatMul" not in gone


def test_counts_before_and_after():
    """The table counts ops, instructions before and after, fusions and launches."""
    text = report(capture(DENSE, TRACED))

    assert "| HLO instructions before optimization | 20 |" in text
    assert "| HLO instructions after it | 12 |" in text
    assert "| of these inside fusions | 7 |" in text
    assert "| Kernels launched per step | 2 |" in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (DENSE, "2"),
        # Each iteration adds a counter and doubles; the test runs once more than the body.
        (LOOP, "10"),
        (LOOP.replace(", backend_config={", ", other={"), "0, and 3 for each iteration of a loop"),
        (BRANCHES, "at most 1"),
    ],
    ids=["dense", "known length", "unknown length", "branches"],
)
def test_launches_count_loops_and_branches(text: str, words: str):
    """A loop of known length counts as often as it runs, a choice as its largest branch."""
    assert launches(capture(text).graphs[Stage.XLA]).words == words


def test_loops_and_branches_are_drawn():
    """Bodies stand in frames, and nothing is left of XLA's tuples."""
    loop, branches = report(capture(LOOP)), report(capture(BRANCHES))

    assert "body of while" in loop
    assert "condition of while" in loop
    assert "next iteration" in loop
    assert "6 instructions (tuple, get-tuple-element) are drawn as edges." in loop
    assert '["then"]' in branches
    assert '["else"]' in branches


def test_layouts_are_shown_on_request():
    """How a result lies in memory is said at the level of ops, and not before."""
    assert "f32[8,4]{1,0}" not in report(capture(DENSE))
    assert "f32[8,4]{1,0}" in report(capture(DENSE), level="ops")


def test_equal_kernels_are_one_row():
    """Kernels that compute the same are counted in one row."""
    twice = DENSE.replace(
        "  ROOT %bias_relu =",
        "  %dot.1 = f32[8,4]{1,0} dot(%x, %w), lhs_contracting_dims={1}, "
        'rhs_contracting_dims={0}, metadata={op_type="MatMul" op_name="MatMul_1"}\n'
        "  ROOT %bias_relu =",
    )

    assert "| `dot` × 2 | dot |" in report(capture(twice))
    assert len(kernels(capture(twice).graphs[Stage.XLA])) == 3


def test_coverage_is_stated():
    """What no op of TensorFlow is named for is counted."""
    text = report(capture(LOOP))

    assert "1 of 13 instructions (7.7%) are mapped to a TensorFlow op by name" in text


def test_without_hlo_the_note_says_how_to_get_it():
    """A capture without it leads to the option, or says why there is none."""
    plain = Capture("model.py:f", "f", {Stage.TRACED: TRACED})
    failed = Capture("model.py:f", "f", {}, notes=("XLA view: XLA cannot compile Print",))

    with pytest.raises(Graph2MermaidError, match="record it with --view xla"):
        report(plain)
    with pytest.raises(Graph2MermaidError, match="cannot compile Print"):
        report(failed)
