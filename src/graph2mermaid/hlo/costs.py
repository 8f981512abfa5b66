"""What a kernel computes and moves, worked out from shapes alone.

The counts follow XLA's own cost analysis (`xla/service/hlo_cost_analysis.cc`): a multiplication and
the addition that goes with it are two operations, whatever the device makes of them.

- `dot`: 2 × elements of the result × product of the contracted dimensions.
- `convolution`: 2 × elements of the result × elements of the kernel for one output feature, that is
  spatial size × input features of a group. Positions in the padding are counted, as the closed
  form `2·N·OH·OW·KH·KW·C·K` does; XLA leaves them out.
- `reduce`: (elements that go in - elements that come out) × operations of the reducer.
- `reduce-window`, `select-and-scatter`: elements of the result × (size of the window - 1), or the
  elements of the windows, × operations of the reducer.
- An elementwise operation: one for each element of the result; a transcendental function (`exponential`,
  `tanh`) counts as one as well, where XLA has a count of its own for them.
- Moving, changing type or shape, comparing with an index: none.
- A fusion: the sum over its instructions. A loop or call is no kernel; what it calls is.
- A custom call (a library's kernel): not known, but for a product of matrices of known shapes.

Bytes are those of all operands and of the result, each read or written once. An operand of which only
slices are read counts as these slices, and one that is updated in place as the update.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from graph2mermaid.hlo.model import Computation, Instruction, Module

_ELEMENTWISE = frozenset(
    {
        "abs",
        "add",
        "and",
        "atan2",
        "cbrt",
        "ceil",
        "clamp",
        "compare",
        "complex",
        "cosine",
        "count-leading-zeros",
        "divide",
        "erf",
        "exponential",
        "exponential-minus-one",
        "floor",
        "imag",
        "is-finite",
        "log",
        "log-plus-one",
        "logistic",
        "map",
        "maximum",
        "minimum",
        "multiply",
        "negate",
        "not",
        "or",
        "popcnt",
        "power",
        "real",
        "remainder",
        "round-nearest-afz",
        "round-nearest-even",
        "rsqrt",
        "select",
        "shift-left",
        "shift-right-arithmetic",
        "shift-right-logical",
        "sign",
        "sine",
        "sqrt",
        "subtract",
        "tan",
        "tanh",
        "xor",
    }
)
_SLICES = frozenset({"slice", "dynamic-slice", "gather"})


@dataclass(frozen=True, slots=True)
class Cost:
    """What a kernel costs each time that it runs."""

    flops: int | None
    """Operations on numbers; None where it is a library's kernel of unknown make."""
    nbytes: int
    """Bytes read and written."""

    @property
    def intensity(self) -> float | None:
        """Operations for each byte that is moved; None where one of them is not known."""
        return self.flops / self.nbytes if self.flops is not None and self.nbytes else None


def cost(module: Module, computation: Computation, instruction: Instruction) -> Cost:
    """Return what one kernel costs; see the module's docstring for the formulas.

    Args:
        module: Where it is from.
        computation: The computation that it stands in.
        instruction: The kernel.
    """
    return Cost(_flops(module, computation, instruction), _nbytes(module, computation, instruction))


# -- operations -------------------------------------------------------------------------------


def _flops(module: Module, computation: Computation, instruction: Instruction) -> int | None:
    fused = module.fused(instruction)
    if fused is not None:
        found = [_flops(module, fused, inner) for inner in fused.instructions]
        return None if None in found else sum(count for count in found if count is not None)
    shapes = [computation.by_name[name].shape for name in instruction.operands]
    formula = _FORMULAS.get(instruction.opcode)
    if formula is not None:
        return formula(module, instruction, [shape.dims for shape in shapes])
    if instruction.opcode == "custom-call":
        return None
    return instruction.shape.size if instruction.opcode in _ELEMENTWISE else 0


_Dims = Sequence[tuple[int, ...]]


def _dot(module: Module, dot: Instruction, dims: _Dims) -> int:  # noqa: ARG001
    contracted = [dims[0][at] for at in _numbers(dot.attrs.get("lhs_contracting_dims", ""))]
    return 2 * dot.shape.size * math.prod(contracted)


def _convolution(module: Module, conv: Instruction, dims: _Dims) -> int:  # noqa: ARG001
    _, kernel, _ = re.split(r"_|->", conv.attrs.get("dim_labels", "_->"))
    sizes = [size for label, size in zip(kernel, dims[1], strict=False) if label != "o"]
    return 2 * conv.shape.size * math.prod(sizes)


def _reduce(module: Module, reduce: Instruction, dims: _Dims) -> int:
    results = len(reduce.shape.leaves)
    combined = math.prod(dims[0]) - reduce.shape.size // results
    return max(combined, 0) * _reducer_flops(module, reduce)


def _reduce_window(module: Module, reduce: Instruction, dims: _Dims) -> int:  # noqa: ARG001
    window = re.search(r"size=([\dx]+)", reduce.attrs.get("window", ""))
    size = math.prod(map(int, window[1].split("x"))) if window else 1
    results = len(reduce.shape.leaves)
    return reduce.shape.size // results * max(size - 1, 0) * _reducer_flops(module, reduce)


def _scatter(module: Module, scatter: Instruction, dims: _Dims) -> int:
    return math.prod(dims[-1]) * _reducer_flops(module, scatter)


def _reducer_flops(module: Module, instruction: Instruction) -> int:
    reducers = [name for role, name in instruction.called if role in ("to_apply", "scatter")]
    if not reducers:
        return 1
    inner = module.computations[reducers[0]].instructions
    return sum(one.opcode in _ELEMENTWISE for one in inner)


_FORMULAS: Mapping[str, Callable[[Module, Instruction, _Dims], int]] = {
    "dot": _dot,
    "convolution": _convolution,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "scatter": _scatter,
    "select-and-scatter": _reduce_window,
}


def _numbers(text: str) -> list[int]:
    return [int(word) for word in re.findall(r"\d+", text)]


# -- bytes ------------------------------------------------------------------------------------


def _nbytes(module: Module, computation: Computation, instruction: Instruction) -> int:
    operands = list(dict.fromkeys(instruction.operands))  # one that is given twice is read once
    read = {name: computation.by_name[name].shape.nbytes for name in operands}
    written = instruction.shape.nbytes
    fused = module.fused(instruction)
    if fused is None:
        return _alone(computation, instruction, read, written)
    for parameter in fused.parameters:
        at = parameter.parameter or 0
        if at < len(instruction.operands):
            name = instruction.operands[at]
            read[name] = min(read[name], _read_of(fused, parameter))
    root = fused.result
    if root.opcode == "dynamic-update-slice":
        written = fused.by_name[root.operands[1]].shape.nbytes
    return sum(read.values()) + written


def _alone(
    computation: Computation, instruction: Instruction, read: Mapping[str, int], written: int
) -> int:
    first = instruction.operands[0] if instruction.operands else ""
    if instruction.opcode in _SLICES:
        return written + sum(size for name, size in read.items() if name != first) + written
    if instruction.opcode == "dynamic-update-slice":
        update = computation.by_name[instruction.operands[1]].shape.nbytes
        return update + sum(size for name, size in read.items() if name != first)
    return written + sum(read.values())


def _read_of(fused: Computation, parameter: Instruction) -> int:
    """Return how many bytes of a parameter a fusion reads: what it slices, or all of it."""
    total = 0
    for user in fused.instructions:
        if parameter.name not in user.operands:
            continue
        if user.opcode in _SLICES and user.operands[0] == parameter.name:
            total += user.shape.nbytes
        elif user.opcode == "dynamic-update-slice" and user.operands[0] == parameter.name:
            continue
        else:
            return parameter.shape.nbytes
    return min(total, parameter.shape.nbytes)
