"""Whole reports of small graphs, as a reader gets them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from graph2mermaid.capture import Capture
from graph2mermaid.graph import Binding
from graph2mermaid.views import Options, make_report
from tests.builders import MULTIPLY_ADD, capture, graph
from tests.golden_files import Golden, unused

DENSE = """
    x:Placeholder float32[8,64]
    w:Placeholder holds=float32[64,64] label=dense/kernel
    b:Placeholder holds=float32[64] label=dense/bias
    six:Const float32[] value=6.0
    w -> MatMul/ReadVariableOp:ReadVariableOp float32[64,64]
    x -> MatMul:MatMul float32[8,64] api=tf.matmul attr.transpose_b=False src=model.py:9:dense
    MatMul/ReadVariableOp -> MatMul
    b -> BiasAdd/ReadVariableOp:ReadVariableOp float32[64]
    MatMul -> BiasAdd:BiasAdd float32[8,64] api=tf.nn.bias_add src=model.py:9:dense
    BiasAdd/ReadVariableOp -> BiasAdd
    BiasAdd -> Relu:Relu float32[8,64] api=tf.nn.relu var=h src=model.py:9:dense
    six -> mul:Mul float32[8,64] api=* var=result src=model.py:10:dense
    Relu -> mul -> Identity:Identity float32[8,64] => output_0
"""

LOOP = """
    x:Placeholder float32[?]
    limit:Const int32[] value=10
    start:Const int32[] value=0
    start -> while:StatelessWhile int32[] float32[?] calls=cond=while_cond,body=while_body src=m.py:4:f
    x -> while -1> Sum:Sum float32[] api=tf.reduce_sum var=total src=m.py:6:f
    axes:Const int32[1] value=[0] -(reduction_indices)> Sum
    Sum -> Identity:Identity float32[] => output_0
"""
LOOP_BODIES = {
    "while_cond": graph(
        """
        i:Placeholder int32[]; h:Placeholder float32[?]
        ten:Const int32[] value=10
        i -> Less:Less bool[] api=< src=m.py:4:f
        ten -> Less => output_0
        """,
        name="while_cond",
    ),
    "while_body": graph(
        """
        i:Placeholder int32[]; h:Placeholder float32[?]
        one:Const int32[] value=1
        i -> add:AddV2 int32[] api=+ var=i src=m.py:5:f => output_0
        one -> add
        h -> Relu:Relu float32[?] api=tf.nn.relu var=h src=m.py:5:f => output_1
        """,
        name="while_body",
    ),
}

AWKWARD = """
    a|b:Placeholder float32[2] label=batch['a|b']
    a|b -> `end`:Relu float32[2] api=tf.nn.relu var=*star* src=my_model.py:3:<lambda>
    `end` -> __init__/</div>:[link](x) float32[2] -> #1.:Identity float32[2] => ```fence
"""

MANY = "\n".join(
    [
        "x:Placeholder float32[2]",
        *(f"v{i}:Placeholder holds=float32[{i}] label=layer_{i}/kernel" for i in range(30)),
        *(f"x -> op{i}:Kind{i % 25} float32[2] src=model.py:{i}:f" for i in range(60)),
    ]
)


@dataclass(frozen=True)
class Case:
    """Captures, and how they are shown."""

    captures: Sequence[Capture]
    options: dict[str, Any] = field(default_factory=dict)


def multiply_add() -> Capture:
    traced = graph(MULTIPLY_ADD, name="multiply_add", source="model.py:5:multiply_add")
    return capture(traced, target="model.py:multiply_add")


def dense() -> Capture:
    return capture(graph(DENSE, name="dense", source="model.py:8:dense"), target="model.py:dense")


def loop() -> Capture:
    traced = graph(LOOP, name="f", functions=LOOP_BODIES, source="m.py:3:f")
    return capture(traced, target="m.py:f")


def noted() -> Capture:
    text = """
        x:Placeholder float32[...]
        v:Placeholder holds=float32[?,4] label=v
        table:Placeholder resource[]
        x -> find:LookupTableFindV2 float32[...] => out
        table -> find
        v -> read:ReadVariableOp float32[?,4] => value
    """
    traced = graph(
        text,
        inputs=(
            Binding("x", graph("x:Placeholder float32[...]").inputs[0].tensors, "float32[...]"),
            Binding("scale", (), "Python value 2.0"),
        ),
    )
    notes = (
        "The shape of x was assumed; say --input 'x=float32[8,64]' for a graph of your own shape.",
        "Other traces exist: f(x=float32[3]).",
    )
    return capture(traced, notes=notes)


def nothing() -> Capture:
    return capture(graph("", name="nothing"), target="trivial.py:nothing")


CASES = {
    "multiply_add": Case([multiply_add()]),
    "multiply_add_tensor_nodes": Case([multiply_add()], {"tensors": "nodes"}),
    "dense": Case([dense()]),
    "dense_every_op": Case([dense()], {"level": "ops", "direction": "LR"}),
    "loop": Case([loop()]),
    "notes": Case([noted()]),
    "nothing": Case([nothing()]),
    "awkward_names": Case([capture(graph(AWKWARD, name="<lambda>"), target="a b.py:<lambda>")]),
    "many_rows": Case([capture(graph(MANY))]),
    "several": Case([multiply_add(), nothing(), dense()], {"fence": "myst", "host": "gitlab"}),
}


@pytest.mark.parametrize("name", CASES)
def test_reports(name: str, golden: Golden):
    """The report is what was reviewed, byte for byte."""
    case = CASES[name]
    report = make_report(case.captures, ["traced"], Options(**case.options))
    golden(f"{name}.md", report.to_markdown())


def test_every_golden_report_is_used():
    """A golden file that no test compares with is deleted with its test."""
    assert unused("*.md", [f"{name}.md" for name in CASES]) == []
