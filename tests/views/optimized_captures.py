"""Captures of optimized graphs, written as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graph2mermaid.capture import Capture
from graph2mermaid.graph import Graph, Stage
from graph2mermaid.optimization import OpChange, OpForm, Optimized, PassChange, Way
from graph2mermaid.provenance import recorded
from tests.builders import capture, graph


def optimized(
    before: str | Graph,
    after: str | Graph,
    *,
    onednn: bool | None = None,
    name: str = "f",
    functions: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    **rest: Any,
) -> Capture:
    """Build a capture of a traced graph and of what became of it.

    Args:
        before: The traced graph.
        after: The optimized one.
        onednn: Whether oneDNN is on.
        name: The function's name.
        functions: The bodies that the traced graph calls.
        notes: The capture's own notes.
        rest: Further fields of `Optimized`.
    """
    traced = graph(before, name=name, functions=functions) if isinstance(before, str) else before
    made = graph(after, name=name, stage=Stage.GRAPPLER) if isinstance(after, str) else after
    fields: dict[str, Any] = {"way": Way.OFFLINE, **rest}
    found = capture(traced, target=f"model.py:{name}", notes=tuple(notes))
    return replace(
        found,
        graphs={**found.graphs, Stage.GRAPPLER: made},
        optimization=recorded(traced, Optimized(made, **fields), onednn=onednn),
    )


def step(optimizer: str, changes: Mapping[str, tuple[str, str]], note: str | None = None) -> Any:
    """Build what one optimizer did: for each op the type it had and has, or the empty string.

    Args:
        optimizer: Its name.
        changes: The types by op name.
        note: Why there is no result.
    """
    forms = {
        name: (OpForm(old) if old else None, OpForm(new) if new else None)
        for name, (old, new) in changes.items()
    }
    found = tuple(OpChange(name, *pair) for name, pair in forms.items())
    return PassChange(optimizer, 1, found, 20, 20 - len(found), note)


DENSE = """
    x:Placeholder float32[8,4]; w:Placeholder float32[4,3]; b:Placeholder float32[3]
    x -> MatMul:MatMul float32[8,3] api=tf.matmul src=model.py:4:dense
    w -> MatMul -> BiasAdd:BiasAdd float32[8,3] api=tf.nn.bias_add src=model.py:4:dense
    b -> BiasAdd -> Relu:Relu float32[8,3] api=tf.nn.relu var=y src=model.py:4:dense
    two:Const float32[] value=2.0 src=model.py:5:dense
    three:Const float32[] value=3.0 src=model.py:5:dense
    two -> six:Mul float32[] api=* src=model.py:5:dense; three -> six
    Relu -> mul:Mul float32[8,3] api=* src=model.py:5:dense; six -> mul
    perm:Const int32[2] value=[1,0] src=model.py:6:dense
    mul -> transpose:Transpose float32[3,8] src=model.py:6:dense; perm -> transpose
    transpose -> transpose_1:Transpose float32[8,3] src=model.py:6:dense; perm -> transpose_1
    transpose_1 -> Identity:Identity float32[8,3] => output_0
"""
DENSE_OPTIMIZED = """
    x:Placeholder float32[8,4]; w:Placeholder float32[4,3]; b:Placeholder float32[3]
    x -> Relu:_FusedMatMul attr.fused_ops=[BiasAdd,Relu] float32[8,3] src=model.py:4:dense
    w -> Relu; b -> Relu
    six:Const float32[] value=6.0 src=model.py:5:dense
    Relu -> mul:Mul float32[8,3] api=* src=model.py:5:dense; six -> mul => output_0
"""
DENSE_PASSES = (
    step("pruning", {"Identity": ("Identity", "")}),
    step("constfold", {"six": ("Mul", "Const"), "two": ("Const", ""), "three": ("Const", "")}),
    step("remap", {"MatMul": ("MatMul", ""), "BiasAdd": ("BiasAdd", ""),
                   "Relu": ("Relu", "_FusedMatMul")}),
    step("dependency", {"perm": ("Const", ""), "transpose": ("Transpose", ""),
                        "transpose_1": ("Transpose", "")}),
)  # fmt: skip


def dense(**rest: Any) -> Capture:
    """Build the function that shows most: a fused kernel, a constant, a pair that cancels."""
    return optimized(DENSE, DENSE_OPTIMIZED, name="dense", passes=DENSE_PASSES, **rest)
