"""Why ops that usually become one kernel did not."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from graph2mermaid.graph import Graph, TensorRef, TensorSpec
from graph2mermaid.provenance.flat import Flat, FlatOp, flatten
from graph2mermaid.provenance.model import GONE, Fate, Provenance

_CORES = frozenset({"MatMul", "Conv2D", "DepthwiseConv2dNative"})
_BATCHED = frozenset({"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"})
_PLUS = frozenset({"Add", "AddV2"})
_NORMALIZATIONS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})
_ACTIVATIONS = frozenset({"Relu", "Relu6", "Elu", "LeakyRelu", "Tanh", "Sigmoid"})
_TYPES = {"MatMul": {"float32"}, "Conv2D": {"float32", "float64"}}
"""The types that TensorFlow's own fused kernels for CPUs know."""
_ONEDNN_TYPES = {"float32", "bfloat16"}
_NEEDS_ONEDNN = frozenset({"DepthwiseConv2dNative"})
_ACTIVATIONS_OF_ONEDNN = frozenset({"Tanh", "Sigmoid"})
_NOTHING: Mapping[str, bool] = MappingProxyType({})


class Blocker(str, enum.Enum):
    """What kept a chain of ops from becoming one kernel."""

    OPTIMIZER_OFF = "optimizer_off"  # the remapper is switched off
    USED_ELSEWHERE = "used_elsewhere"  # something else needs a result between them
    DTYPE = "dtype"  # there is no such kernel for the type
    RANK = "rank"  # a product of batches of matrices
    PLUS = "plus"  # `+` counts as a bias only with oneDNN; `tf.nn.bias_add` always does
    ONEDNN = "onednn"  # only oneDNN has such a kernel, and it is off
    NO_BIAS = "no_bias"  # an activation alone is not fused
    UNKNOWN_SHAPE = "unknown_shape"  # `+` counts as a bias only where shapes show that it is one
    DATA_FORMAT = "data_format"  # channels first, on a CPU
    TRAINING = "training"  # the normalization uses the batch's own mean and variance


@dataclass(frozen=True, slots=True)
class Blocked:
    """A chain of traced ops that usually becomes one kernel, and did not."""

    ops: tuple[str, ...]
    """Their ids, in the order of the data: product, bias, activation."""
    blocker: Blocker | None
    """None when it cannot be told."""
    at: str = ""
    """The id of the op it is about: the one whose result is needed elsewhere, the bias."""


def blocked_fusions(
    traced: Graph,
    provenance: Provenance,
    *,
    onednn: bool | None = None,
    optimizers: Mapping[str, bool] = _NOTHING,
    flat: Flat | None = None,
) -> tuple[Blocked, ...]:
    """Find the chains that usually are fused and were not, and what kept them from it.

    Args:
        traced: The graph that the provenance is about.
        provenance: What became of its ops.
        onednn: Whether TensorFlow optimizes for oneDNN; None when it is not known.
        optimizers: The optimizers by name, and whether each is on.
        flat: The ops of the traced graph, where they are known already.
    """
    remapper = optimizers.get("remap", optimizers.get("remapping", True))
    return tuple(_Search(flat or flatten(traced), provenance, onednn, remapper).run())


class _Search:
    def __init__(
        self, flat: Flat, provenance: Provenance, onednn: bool | None, remapper: bool
    ) -> None:
        self._flat = flat
        self._fates = provenance.ops
        self._onednn = onednn
        self._remapper = remapper
        self._readers: dict[str, list[str]] = {}
        for op in flat.ops.values():
            for ref in op.inputs:
                source = flat.source(ref).node
                if op.node.op not in ("Identity", "StopGradient", "PreventGradient"):
                    self._readers.setdefault(source, []).append(op.id)
        self._returned = {flat.source(ref).node for ref in flat.results}

    def run(self) -> Iterator[Blocked]:
        for op in self._flat.ops.values():
            fate = self._fates[op.id].fate
            if op.node.op not in _CORES | _BATCHED or fate not in (Fate.KEPT, Fate.FUSED):
                continue
            chain = self._chain(op)
            ids = tuple(link.id for link in chain)
            if fate is Fate.KEPT and len(chain) > 1:
                yield Blocked(ids, *self._blocker(chain))
            elif len(chain) == 3 and self._fates[ids[2]].fate is Fate.KEPT:
                blocker = self._blocker_of_activation(chain)
                if blocker is not None:
                    yield Blocked(ids, blocker, ids[1])

    def _blocker_of_activation(self, chain: list[FlatOp]) -> Blocker | None:
        """Say why a kernel ends before the activation; that convolutions have fewer is no news."""
        if len(self._following(chain[1])) > 1 or chain[1].id in self._returned:
            return Blocker.USED_ELSEWHERE
        special = chain[2].node.op in _ACTIVATIONS_OF_ONEDNN and chain[0].node.op == "MatMul"
        return Blocker.ONEDNN if special and self._onednn is False else None

    def _chain(self, core: FlatOp) -> list[FlatOp]:
        """Return a product or convolution with its bias or normalization, and its activation."""
        chain = [core]
        following = self._following(core)
        bias = next((op for op in following if self._is_bias(op, core)), None)
        if bias is not None:
            chain.append(bias)
        activation = next(
            (op for op in self._following(chain[-1]) if op.node.op in _ACTIVATIONS), None
        )
        return [*chain, activation] if activation is not None else chain

    def _following(self, op: FlatOp) -> list[FlatOp]:
        names = dict.fromkeys(self._readers.get(op.id, ()))
        alive = (name for name in names if self._fates[name].fate not in GONE)
        return [self._flat.ops[name] for name in alive]

    def _is_bias(self, op: FlatOp, core: FlatOp) -> bool:
        if op.node.op == "BiasAdd" or op.node.op in _NORMALIZATIONS:
            return bool(op.inputs) and self._flat.source(op.inputs[0]).node == core.id
        return op.node.op in _PLUS and self._addend(op, core) is not None

    def _addend(self, plus: FlatOp, core: FlatOp) -> TensorSpec | None:
        """Return what is added to a product when it may be a bias: one number for each channel."""
        others = [self._flat.source(ref) for ref in plus.inputs]
        others = [ref for ref in others if ref.node != core.id]
        spec = self._spec(others[0]) if len(others) == 1 else None
        return spec if spec is not None and (spec.shape is None or len(spec.shape) == 1) else None

    def _spec(self, ref: TensorRef) -> TensorSpec | None:
        outputs = self._flat.ops[ref.node].node.outputs if ref.node in self._flat.ops else ()
        return outputs[ref.port] if ref.port < len(outputs) else None

    def _blocker(self, chain: list[FlatOp]) -> tuple[Blocker | None, str]:
        core, second = chain[0], chain[1]
        if not self._remapper:
            return Blocker.OPTIMIZER_OFF, ""
        if core.node.op in _BATCHED:
            return Blocker.RANK, core.id
        if core.node.op in _NEEDS_ONEDNN and self._onednn is False:
            return Blocker.ONEDNN, core.id
        if not self._has_type(core):
            return Blocker.DTYPE, core.id
        if len(self._following(core)) > 1 or core.id in self._returned:
            return Blocker.USED_ELSEWHERE, core.id
        if second.node.op in _ACTIVATIONS:
            return Blocker.NO_BIAS, second.id
        if core.node.attrs.get("data_format") == "NCHW" and self._onednn is False:
            return Blocker.DATA_FORMAT, core.id
        if second.node.op in _NORMALIZATIONS and second.node.attrs.get("is_training") is not False:
            return Blocker.TRAINING, second.id
        if second.node.op in _PLUS:
            return self._blocker_of_plus(core, second)
        return None, ""

    def _has_type(self, core: FlatOp) -> bool:
        """Tell whether there may be a fused kernel for the type."""
        dtype = core.node.outputs[0].dtype if core.node.outputs else "float32"
        own = _TYPES.get(core.node.op, {"float32"})
        if self._onednn is None:
            return dtype in own | _ONEDNN_TYPES
        return dtype in (_ONEDNN_TYPES if self._onednn else own)

    def _blocker_of_plus(self, core: FlatOp, plus: FlatOp) -> tuple[Blocker | None, str]:
        if self._onednn is False:
            return Blocker.PLUS, plus.id
        addend = self._addend(plus, core)
        made = core.node.outputs[0].shape if core.node.outputs else None
        if addend is None or addend.size is None or not made or made[-1] is None:
            return Blocker.UNKNOWN_SHAPE, plus.id
        return None, ""
