"""What became of every traced op: small graphs, before and after."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph2mermaid.errors import CaptureError
from graph2mermaid.graph import Graph, Stage
from graph2mermaid.optimization import OpChange, OpForm, PassChange
from graph2mermaid.provenance import (
    GONE,
    Blocker,
    Fate,
    How,
    Provenance,
    Suspect,
    blocked_fusions,
    explain,
    from_data,
    to_data,
)
from tests.builders import graph
from tests.graph_strategies import graphs

DENSE = """
    x:Placeholder float32[8,4]; w:Placeholder float32[4,3]; b:Placeholder float32[3]
    x -> m:MatMul float32[8,3]; w -> m
    m -> bias:BiasAdd float32[8,3]; b -> bias
    bias -> r:Relu float32[8,3] -> out:Identity float32[8,3] => y
"""
FUSED_DENSE = """
    x:Placeholder float32[8,4]; w:Placeholder float32[4,3]; b:Placeholder float32[3]
    x -> r:_FusedMatMul attr.fused_ops=[BiasAdd,Relu] float32[...]; w -> r; b -> r
    r -> out:Identity float32[...] => y
"""


def optimized(text: str, **rest) -> Graph:
    return graph(text, stage=Stage.GRAPPLER, **rest)


def provenance(before: str | Graph, after: str) -> Provenance:
    traced = graph(before) if isinstance(before, str) else before
    found = explain(traced, optimized(after))
    assert_adds_up(found)
    return found


def assert_adds_up(found: Provenance) -> None:
    """Both sides are counted in full, and agree on what belongs together."""
    assert sum(found.node_counts.values()) == len(found.nodes)
    assert sum(found.op_counts.values()) == len(found.ops)
    pairs = {(op.id, name) for op in found.ops.values() for name in op.into}
    assert pairs == {(op, node.name) for node in found.nodes.values() for op in node.origins}
    for op in found.ops.values():
        assert not (op.into and op.fate in GONE), op


def fates(found: Provenance) -> dict[str, str]:
    return {op.id: op.fate.value for op in found.ops.values() if op.fate is not Fate.KEPT}


CASES = {
    "nothing changed": (DENSE, DENSE, {}),
    "fused along the wires": (DENSE, FUSED_DENSE, {"m": "fused", "bias": "fused", "r": "fused"}),
    "dead": (
        "x:Placeholder float32[] -> r:Relu float32[] => y; x -> t:Tanh float32[]",
        "x:Placeholder float32[] -> r:Relu float32[] => y",
        {"t": "dead"},
    ),
    "a value nobody reads of an op with an effect": (
        "x:Placeholder float32[] -> p:PrintV2; x -> r:Relu float32[] => y",
        "x:Placeholder float32[] -> p:PrintV2; x -> r:Relu float32[] => y",
        {},
    ),
    "folded": (
        (
            "x:Placeholder float32[]; a:Const float32[] value=2.0; b:Const float32[] value=3.0;"
            "a -> m:Mul float32[]; b -> m -> s:Sub float32[]; x -> s => y"
        ),
        "x:Placeholder float32[]; m:Const float32[] value=6.0 -> s:Sub float32[]; x -> s => y",
        {"a": "folded", "b": "folded", "m": "folded"},
    ),
    "equal constants": (
        (
            "x:Placeholder float32[]; a:Const float32[] value=2.0; b:Const float32[] value=2.0;"
            "x -> m:Mul float32[]; a -> m; m -> s:Sub float32[]; b -> s => y"
        ),
        (
            "x:Placeholder float32[]; a:Const float32[] value=2.0;"
            "x -> m:Mul float32[]; a -> m; m -> s:Sub float32[]; a -> s => y"
        ),
        {"b": "merged"},
    ),
    "equal ops": (
        (
            "x:Placeholder float32[] -> a:Tanh float32[]; x -> b:Tanh float32[];"
            "a -> s:Sub float32[]; b -> s => y"
        ),
        "x:Placeholder float32[] -> a:Tanh float32[] -> s:Sub float32[]; a -> s => y",
        {"b": "merged"},
    ),
    "another op type": (
        "x:Placeholder float32[] -> s:Sqrt float32[] => y",
        "x:Placeholder float32[] -> s:Rsqrt float32[] => y",
        {"s": "changed"},
    ),
    "an op that hands on": (
        "x:Placeholder float32[] -> i:Identity float32[] -> r:Relu float32[] => y",
        "x:Placeholder float32[] -> r:Relu float32[] => y",
        {"i": "redundant"},
    ),
    "a pair that undoes itself": (
        (
            "x:Placeholder float32[2,3]; p:Const int32[2] value=[1,0]; x -> a:Transpose float32[3,2];"
            "p -> a -> b:Transpose float32[2,3]; p -> b -> r:Relu float32[2,3] => y"
        ),
        "x:Placeholder float32[2,3] -> r:Relu float32[...] => y",
        {"p": "redundant", "a": "redundant", "b": "redundant"},
    ),
    "only the shape": (
        "x:Placeholder float32[2] -> t:Tanh float32[2] -> s:Shape int32[1] => y",
        "x:Placeholder float32[2]; s:Const int32[1] value=[2] => y",
        {"t": "shape_only", "s": "folded"},
    ),
    "an op put in its place": (
        "x:Placeholder float32[] -> m:Mul float32[]; x -> m -> r:Relu float32[] => y",
        (
            "x:Placeholder float32[] -> ArithmeticOptimizer/ReplaceMulWithSquare_m:Square float32[]"
            " -> r:Relu float32[] => y"
        ),
        {"m": "replaced"},
    ),
    "a product put together in another way": (
        (
            "x:Placeholder float32[]; a:Const float32[] value=2.0; b:Const float32[] value=3.0;"
            "x -> p:Mul float32[]; a -> p; b -> q:Mul float32[]; p -> q => y"
        ),
        "x:Placeholder float32[]; p:Const float32[] value=6.0; p -> q:Mul float32[]; x -> q => y",
        {"a": "folded", "b": "folded", "p": "folded", "q": "changed"},
    ),
}


@pytest.mark.parametrize(("before", "after", "expected"), CASES.values(), ids=CASES)
def test_fates(before: str, after: str, expected: dict[str, str]):
    """Each way in which an op may go is told from the others."""
    found = provenance(before, after)
    assert fates(found) == expected
    assert found.explained == 1


def test_a_fused_op_lists_what_it_absorbed():
    """A kernel's origins are all the ops of the chain, whatever its own name is."""
    kernel = provenance(DENSE, FUSED_DENSE).nodes["r"]
    assert (kernel.how, kernel.was, kernel.origins) == (How.FUSED, "Relu", ("m", "bias", "r"))


def test_a_folded_constant_says_what_it_is():
    """Type, size and value are told, and the op whose result it is."""
    before, after, _ = CASES["folded"]
    folded = provenance(before, after).nodes["m"].folded
    assert folded is not None
    assert (folded.dtype, folded.shape, folded.nbytes) == ("float32", (), 4)
    assert (folded.value, folded.equals) == ("6.0", "m")


def test_a_constant_that_nothing_computed_equals_nothing():
    """A constant with the name of an op that is no constant is not that op's value."""
    before, after, _ = CASES["a product put together in another way"]
    folded = provenance(before, after).nodes["p"].folded
    assert folded is not None
    assert folded.equals is None


def test_an_op_that_changes_its_input_is_flagged():
    """Taking out a sigmoid before an argmax may change the answer; both neighbors are named."""
    found = provenance(
        "x:Placeholder float32[2]; d:Const int32[] value=0; x -> s:Sigmoid float32[2]"
        " -> a:ArgMax int64[]; d -> a => y",
        "x:Placeholder float32[2]; d:Const int32[] value=0; x -> a:ArgMax int64[]; d -> a => y",
    )
    assert found.suspects == (Suspect(("s",), "x", "a"),)
    assert found.ops["s"].fate is Fate.BYPASSED


@pytest.mark.parametrize("case", sorted(set(CASES)))
def test_nothing_else_is_flagged(case: str):
    """What leaves every value as it was is not flagged."""
    assert provenance(*CASES[case][:2]).suspects == ()


def test_what_no_wire_explains_is_counted_and_not_guessed():
    """An op of the optimized graph that nothing leads to is unexplained on its side."""
    found = provenance(
        "x:Placeholder float32[] -> r:Relu float32[] => y",
        "x:Placeholder float32[] -> r:Relu float32[] => y; x -> odd:Tanh float32[] -> p:PrintV2",
    )
    assert found.node_counts[How.UNEXPLAINED] == 2
    assert found.explained == pytest.approx(1 - 2 / 6)


class TestBodies:
    """Ops of functions have an id for each way to them."""

    def test_a_body_called_twice(self):
        """Each call site has its own ids, and an equal constant of the second is merged."""
        before = graph(
            "x:Placeholder float32[] -> c:PartitionedCall calls=f=inner float32[]"
            " -> d:PartitionedCall calls=f=inner float32[] => y",
            functions={
                "inner": "a:Placeholder float32[] -> m:Mul float32[];"
                "k:Const float32[] value=2.0 -> m => r"
            },
        )
        found = provenance(
            before,
            "x:Placeholder float32[]; c/k:Const float32[] value=2.0; x -> c/m:Mul float32[];"
            "c/k -> c/m -> d/m:Mul float32[]; c/k -> d/m => y",
        )
        assert found.ops["d#f/k"].into == ("c/k",)
        assert found.nodes["c/k"].origins == ("c#f/k", "d#f/k")
        assert fates(found) == {
            "c": "inlined",
            "c#f/a": "inlined",
            "d": "inlined",
            "d#f/a": "inlined",
            "d#f/k": "merged",
        }

    BRANCHES = graph(
        "p:Placeholder bool[]; x:Placeholder float32[];"
        "p -> c:If calls=then_branch=t,else_branch=e float32[]; x -> c => y",
        functions={
            "t": "a:Placeholder float32[] -> i:Relu float32[] => r",
            "e": "a:Placeholder float32[] -> i:Tanh float32[] => r",
        },
    )

    def test_a_branch_that_was_lowered(self):
        """Lowered names lead back to the bodies; what lowering adds belongs to the choice."""
        found = provenance(
            self.BRANCHES,
            "p:Placeholder bool[]; x:Placeholder float32[]; x -> c/x/_5:Switch float32[] float32[];"
            "p -> c/x/_5; c/x/_5 -1> c/then/_0/i:Relu float32[]; c/x/_5 -> c/else/_1/i:Tanh float32[];"
            "c/then/_0/i -> c/output/_7:Merge float32[]; c/else/_1/i -> c/output/_7 => y",
        )
        assert found.nodes["c/then/_0/i"].origins == ("c#then_branch/i",)
        assert found.ops["c"].into == ("c/x/_5", "c/output/_7")
        assert found.node_counts == {How.KEPT: 4, How.LOWERED: 2}

    def test_a_branch_that_is_never_taken(self):
        """Where only one branch is left, the ops of the other one are told apart from dead ones."""
        found = provenance(
            self.BRANCHES,
            "p:Placeholder bool[]; x:Placeholder float32[] -> c/then/_0/i:Relu float32[] => y",
        )
        assert found.ops["c#else_branch/i"].fate is Fate.UNTAKEN


class TestCredit:
    """The replay of the optimizers says who did it."""

    REMAP = PassChange(
        "remap",
        1,
        (
            OpChange("m", OpForm("MatMul"), None),
            OpChange("bias", OpForm("BiasAdd"), None),
            OpChange("r", OpForm("Relu"), OpForm("_FusedMatMul")),
        ),
    )

    def test_each_change_is_credited(self):
        """Removed and fused ops have the optimizer that did it; kept ones have none."""
        found = explain(graph(DENSE), optimized(FUSED_DENSE), [self.REMAP])
        by = {op.id: op.by for op in found.ops.values() if op.by}
        assert by == dict.fromkeys(["m", "bias", "r"], "remap")
        assert found.nodes["r"].by == "remap"
        assert found.credited == 1

    def test_what_the_replay_did_not_do_is_credited_to_none(self):
        """The share that is credited is stated."""
        part = PassChange("remap", 1, self.REMAP.changes[2:])
        found = explain(graph(DENSE), optimized(FUSED_DENSE), [part])
        assert found.ops["m"].by is None
        assert found.credited == pytest.approx(1 / 3)


class TestBlocked:
    """Chains that usually are fused."""

    def test_a_fused_chain_is_not_blocked(self):
        """There is nothing to say of a chain that became one kernel."""
        traced = graph(DENSE)
        assert blocked_fusions(traced, explain(traced, optimized(FUSED_DENSE))) == ()

    @pytest.mark.parametrize(
        ("text", "options", "blocker", "at"),
        [
            (DENSE, {"optimizers": {"remap": False}}, Blocker.OPTIMIZER_OFF, ""),
            (DENSE.replace("float32", "float64"), {}, Blocker.DTYPE, "m"),
            (DENSE.replace(":MatMul", ":BatchMatMulV2"), {}, Blocker.RANK, "m"),
            (DENSE + "m -> t:Tanh float32[8,3] => z", {}, Blocker.USED_ELSEWHERE, "m"),
            (DENSE + "m => z", {}, Blocker.USED_ELSEWHERE, "m"),
            (DENSE.replace(":BiasAdd", ":AddV2"), {"onednn": False}, Blocker.PLUS, "bias"),
            (DENSE.replace(":BiasAdd", ":AddV2"), {"onednn": True}, None, ""),
            (DENSE, {}, None, ""),
        ],
        ids=["off", "dtype", "rank", "twice", "returned", "plus", "plus onednn", "not known"],
    )
    def test_blockers(self, text, options, blocker, at):
        """The reason is named where it can be told, with the op that it is about."""
        traced = graph(text)
        (found,) = blocked_fusions(traced, explain(traced, traced), **options)
        assert (found.ops, found.blocker, found.at) == (("m", "bias", "r"), blocker, at)


class TestData:
    """Provenance in files."""

    def test_round_trip(self):
        """What is read back is what was written, through JSON."""
        found = explain(graph(DENSE), optimized(FUSED_DENSE), [TestCredit.REMAP])
        assert from_data(json.loads(json.dumps(to_data(found)))) == found

    @pytest.mark.parametrize("data", [{}, {"nodes": [{}], "ops": [], "suspects": []}])
    def test_damaged_data(self, data):
        """Data of another form is an error that a caller can catch."""
        with pytest.raises(CaptureError, match="provenance is damaged"):
            from_data(data)


SMALL = graphs(most_nodes=4)


@settings(max_examples=40)
@given(SMALL, SMALL)
def test_any_two_graphs_add_up(before: Graph, after: Graph):
    """Whatever the graphs are, every op on both sides is counted once, and data round-trips."""
    found = explain(before, after)
    assert_adds_up(found)
    assert from_data(json.loads(json.dumps(to_data(found)))) == found
    assert explain(before, after) == found


@settings(max_examples=40)
@given(SMALL, st.booleans())
def test_a_graph_against_itself(before: Graph, onednn: bool):
    """Nothing is lost where nothing was done, and looking for chains fails on no graph."""
    found = explain(before, before)
    assert_adds_up(found)
    assert Counter(op.id for op in found.ops.values() if op.fate is Fate.UNEXPLAINED) == Counter()
    blocked_fusions(before, found, onednn=onednn)
