"""Whether ops that were taken out from between two others changed anything."""

from __future__ import annotations

from collections.abc import Sequence

from graph2mermaid.graph import TensorRef, TensorSpec
from graph2mermaid.provenance.facts import SHAPE_OPS, Facts
from graph2mermaid.provenance.flat import Flat, FlatOp
from graph2mermaid.provenance.match import Bypass

_HANDS_ON = frozenset({"Identity", "IdentityN", "StopGradient", "PreventGradient", "Snapshot"})
_ARRANGES = frozenset({"Reshape", "Squeeze", "ExpandDims"})
"""Ops that keep the elements and their order."""
_INVERSES = frozenset(
    [
        "Transpose",
        "Neg",
        "Conj",
        "Invert",
        "LogicalNot",
        "Reciprocal",
        "Inv",
        "Cast",
        "Bitcast",
        "ReverseV2",
    ]
)
"""Ops that two of may undo each other. An optimizer takes out only pairs that do."""
_NEUTRAL = frozenset(
    [
        "Add",
        "AddV2",
        "Sub",
        "Mul",
        "MulNoNan",
        "Div",
        "RealDiv",
        "DivNoNan",
        "Pow",
        "LogicalOr",
        "LogicalAnd",
        "BitwiseOr",
        "BitwiseXor",
        "FloorDiv",
        "TruncateDiv",
        "BiasAdd",
        "Maximum",
        "Minimum",
    ]
)
"""Ops that change nothing when their constant is the right one."""
_MAY_DO_NOTHING = frozenset(
    [
        "Cast",
        "Bitcast",
        "Transpose",
        "BroadcastTo",
        "Tile",
        "Pad",
        "PadV2",
        "MirrorPad",
        "Slice",
        "StridedSlice",
        "ReverseV2",
        "Sum",
        "Mean",
        "Prod",
        "Max",
        "Min",
        "All",
        "Any",
        "Concat",
        "ConcatV2",
        "AddN",
        "Split",
        "SplitV",
        "RandomShuffle",
        "SpaceToDepth",
        "DepthToSpace",
        "Roll",
        "ParallelConcat",
        "EnsureShape",
        "CheckNumerics",
        "PlaceholderWithDefault",
        "Pack",
        "GatherV2",
        "Select",
        "SelectV2",
        "ConjugateTranspose",
    ]
)
"""Ops that change nothing for some arguments: what comes out is then like what went in."""


def is_harmless(facts: Facts, optimized: Flat, bypass: Bypass) -> bool:
    """Tell whether the ops of a bypass leave every value that their reader looks at as it was."""
    ops = [facts.flat.ops[name] for name in bypass.ops]
    ops = [op for op in ops if op.node.op not in _HANDS_ON]
    if not ops:
        return True
    consumer = optimized.ops[bypass.consumer].node.op
    if consumer in SHAPE_OPS:
        return True
    if all(op.node.op in _ARRANGES for op in ops):
        alike = _alike(_spec(facts, bypass.source), _spec(facts, bypass.target))
        return alike or consumer in _ARRANGES
    ops = [op for op in ops if not _changes_nothing(facts, op)]
    alike = _alike(_spec(facts, bypass.source), _spec(facts, bypass.target))
    return not ops or (alike and _undo_each_other(ops))


def _changes_nothing(facts: Facts, op: FlatOp) -> bool:
    node = op.node
    specs = [_spec(facts, facts.flat.source(ref)) for ref in op.inputs]
    made = node.outputs[0] if node.outputs else None
    if node.op in _NEUTRAL:
        return any(_is_constant(facts, ref) for ref in op.inputs)
    if node.op in _ARRANGES | _MAY_DO_NOTHING:
        return bool(specs) and any(_alike(spec, made) for spec in specs)
    return False


def _undo_each_other(ops: Sequence[FlatOp]) -> bool:
    types = [op.node.op for op in ops if op.node.op not in _ARRANGES]
    return all(op in _INVERSES for op in types) and len(types) % 2 == 0


def _is_constant(facts: Facts, ref: TensorRef) -> bool:
    source = facts.flat.source(ref).node
    return source in facts.constant and facts.constant[source]


def _spec(facts: Facts, ref: TensorRef) -> TensorSpec | None:
    op = facts.flat.ops.get(ref.node)
    if op is None or ref.port >= len(op.node.outputs):
        return None
    return op.node.outputs[ref.port]


def _alike(one: TensorSpec | None, other: TensorSpec | None) -> bool:
    """Tell whether two tensors are of one type, and may be of one shape."""
    if one is None or other is None or one.dtype != other.dtype:
        return False
    if one.shape is None or other.shape is None:
        return True
    return len(one.shape) == len(other.shape) and all(
        a is None or b is None or a == b for a, b in zip(one.shape, other.shape, strict=True)
    )
