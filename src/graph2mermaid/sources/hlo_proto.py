"""An HloProto, as XLA gives it out, to plain data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from graph2mermaid.hlo import Computation, Instruction, Module, Shape
from graph2mermaid.sources.hlo_values import MOST_VALUES, value_words

TRIP_COUNT = re.compile(r'"known_trip_count":\s*\{\s*"n":\s*"(\d+)"')
"""Where XLA writes how many times a loop runs: in its backend's settings, which are JSON."""


def module_of(proto: Any) -> Module:
    """Return the module in an `HloModuleProto`.

    Instructions stand in the order in which they run where the module says it (TensorFlow 2.9 does
    not), else with all that they read before them.
    """
    names = {one.id: one.name for one in proto.computations}
    sequences = {at: list(one.instruction_ids) for at, one in proto.schedule.sequences.items()}
    found = [_computation(one, names, sequences.get(one.id)) for one in proto.computations]
    entry = names.get(proto.entry_computation_id) or proto.entry_computation_name
    by_name = {one.name: one for one in found}
    return Module(proto.name, entry, by_name, scheduled=bool(sequences))


def _computation(
    proto: Any, computations: Mapping[int, str], sequence: Sequence[int] | None
) -> Computation:
    by_id = {one.id: one for one in proto.instructions}
    names = {at: one.name for at, one in by_id.items()}
    types = {one.name: one.shape.element_type for one in proto.instructions}
    ordered: Iterable[Any] = proto.instructions
    if sequence is not None and set(sequence) == set(by_id):
        ordered = [by_id[at] for at in sequence]
    made = tuple(_instruction(one, names, computations, types) for one in ordered)
    return Computation(proto.name, made, names[proto.root_id])


def _instruction(
    proto: Any, names: Mapping[int, str], computations: Mapping[int, str], types: Mapping[str, int]
) -> Instruction:
    opcode = proto.opcode
    operands = tuple(names[at] for at in proto.operand_ids)
    called = [computations[at] for at in proto.called_computation_ids]
    trips = TRIP_COUNT.search(_backend(proto)) if opcode == "while" else None
    choice = opcode == "conditional" and types.get(operands[0]) == _PRED
    return Instruction(
        proto.name,
        opcode,
        _shape(proto.shape),
        operands,
        tuple(zip(roles(opcode, len(called), by_truth=choice), called, strict=True)),
        _attrs(proto),
        proto.metadata.op_name,
        proto.metadata.op_type,
        proto.parameter_number if opcode == "parameter" else None,
        _value(proto.literal) if opcode == "constant" else None,
        int(trips[1]) if trips else None,
    )


_PRED = 1
"""`PRED` in XLA's list of types."""


def roles(opcode: str, number: int, *, by_truth: bool = False) -> tuple[str, ...]:
    """Return what the computations are to an instruction, by the words that HLO is printed with.

    Args:
        opcode: Of the instruction.
        number: How many computations it calls.
        by_truth: Whether it chooses between two of them by a truth value.
    """
    if opcode == "while":
        return ("body", "condition")[:number]
    if opcode == "conditional":
        if by_truth and number == 2:
            return ("true_computation", "false_computation")
        return tuple(f"branch_computations[{at}]" for at in range(number))
    if opcode == "select-and-scatter":
        return ("select", "scatter")[:number]
    if opcode in ("fusion", "async-start"):
        return ("calls",) * number
    if opcode == "custom-call":
        return ("called_computations",) * number
    return ("to_apply",) * number


def _backend(proto: Any) -> str:
    """Return a backend's settings, which are bytes."""
    return bytes(proto.backend_config).decode("utf-8", errors="replace")


# -- shapes -----------------------------------------------------------------------------------


def _shape(proto: Any) -> Shape:
    if proto.element_type == _TUPLE:
        return Shape(elements=tuple(_shape(element) for element in proto.tuple_shapes))
    dynamic = tuple(at for at, unknown in enumerate(proto.is_dynamic_dimension) if unknown)
    layout = tuple(proto.layout.minor_to_major)
    return Shape(_type_word(proto.element_type), tuple(proto.dimensions), layout, dynamic)


_TUPLE = 13
"""`TUPLE` in XLA's list of types."""


@lru_cache(maxsize=64)
def _type_word(number: int) -> str:
    """Return XLA's word for a type: `f32`. The list is the same in 2.9.3 and 2.21.0, but for its end."""
    from tensorflow.compiler.xla import xla_data_pb2

    return str(xla_data_pb2.PrimitiveType.Name(number)).lower()


def _value(literal: Any) -> str | None:
    shape = _shape(literal.shape)
    if shape.elements is not None or not 0 < shape.size <= MOST_VALUES:
        return None
    field = f"{shape.dtype}s"
    values = getattr(literal, field, None) or literal.preds
    if isinstance(values, bytes):
        return value_words(shape, _unpacked(values, shape))
    return value_words(shape, list(values)) if len(values) == shape.size else None


def _unpacked(data: bytes, shape: Shape) -> list[float]:
    """Return the numbers of a type that a proto holds as bytes."""
    import numpy as np

    if shape.dtype == "bf16":
        wide = np.frombuffer(data, "<u2").astype("<u4") << 16
        return [float(n) for n in wide.view("<f4")]
    forms = {"f16": "<f2", "s8": "i1", "u8": "u1", "s16": "<i2", "u16": "<u2"}
    if shape.dtype not in forms:
        return []
    return [n.item() for n in np.frombuffer(data, forms[shape.dtype])]


# -- attributes, in the words of printed HLO -----------------------------------------------------


def _attrs(proto: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    if proto.opcode in _WITH_DIMENSIONS:
        found["dimensions"] = _braced(proto.dimensions)
    if proto.opcode == "iota":
        found["iota_dimension"] = ",".join(map(str, proto.dimensions))
    if proto.opcode == "get-tuple-element":
        found["index"] = str(proto.tuple_index)
    if proto.HasField("window") and proto.window.dimensions:
        found["window"] = _window(proto.window.dimensions)
    if proto.HasField("convolution_dimension_numbers"):
        found["dim_labels"] = _dim_labels(
            proto.convolution_dimension_numbers, len(proto.shape.dimensions)
        )
    if proto.opcode == "convolution" and proto.feature_group_count > 1:
        found["feature_group_count"] = str(proto.feature_group_count)
    if proto.HasField("dot_dimension_numbers"):
        found |= _dot_dims(proto.dot_dimension_numbers)
    if proto.slice_dimensions:
        found["slice"] = _slices(proto.slice_dimensions)
    if proto.dynamic_slice_sizes:
        found["dynamic_slice_sizes"] = _braced(proto.dynamic_slice_sizes)
    words = {key: getattr(proto, field) for key, field in _WORDS.items()}
    return found | {key: word for key, word in words.items() if word}


_WORDS = {
    "direction": "comparison_direction",
    "kind": "fusion_kind",
    "custom_call_target": "custom_call_target",
}


_WITH_DIMENSIONS = frozenset(
    {"broadcast", "concatenate", "map", "reduce", "reverse", "sort", "transpose"}
)

KEPT_ATTRS = frozenset(
    {
        "custom_call_target",
        "dim_labels",
        "dimensions",
        "direction",
        "dynamic_slice_sizes",
        "feature_group_count",
        "index",
        "iota_dimension",
        "kind",
        "lhs_batch_dims",
        "lhs_contracting_dims",
        "rhs_batch_dims",
        "rhs_contracting_dims",
        "slice",
        "window",
    }
)
"""The attributes that say what an instruction computes; the rest is for compilers."""


def _braced(numbers: Iterable[int]) -> str:
    return f"{{{','.join(map(str, numbers))}}}"


def _slices(dimensions: Iterable[Any]) -> str:
    ends = (
        f"[{one.start}:{one.limit}{f':{one.stride}' * (one.stride != 1)}]" for one in dimensions
    )
    return f"{{{', '.join(ends)}}}"


def _dot_dims(numbers: Any) -> dict[str, str]:
    fields = {
        "lhs_batch_dims": numbers.lhs_batch_dimensions,
        "lhs_contracting_dims": numbers.lhs_contracting_dimensions,
        "rhs_batch_dims": numbers.rhs_batch_dimensions,
        "rhs_contracting_dims": numbers.rhs_contracting_dimensions,
    }
    return {key: _braced(dims) for key, dims in fields.items() if dims}


def _window(dimensions: Sequence[Any]) -> str:
    """Return `{size=3x3 stride=2x2 pad=1_1x1_1}`; what is the same as without it is left out."""
    words = [f"size={'x'.join(str(one.size) for one in dimensions)}"]
    if any(one.stride != 1 for one in dimensions):
        words.append(f"stride={'x'.join(str(one.stride) for one in dimensions)}")
    if any(one.padding_low or one.padding_high for one in dimensions):
        words.append(f"pad={'x'.join(f'{d.padding_low}_{d.padding_high}' for d in dimensions)}")
    if any(one.base_dilation != 1 for one in dimensions):
        words.append(f"lhs_dilate={'x'.join(str(one.base_dilation) for one in dimensions)}")
    if any(one.window_dilation != 1 for one in dimensions):
        words.append(f"rhs_dilate={'x'.join(str(one.window_dilation) for one in dimensions)}")
    if any(one.window_reversal for one in dimensions):
        words.append(f"rhs_reversal={'x'.join(str(int(d.window_reversal)) for d in dimensions)}")
    return f"{{{' '.join(words)}}}"


def _dim_labels(numbers: Any, rank: int) -> str:
    """Return `b01f_01io->b01f`: what each dimension of input, kernel and result is."""
    taken = _labels(
        rank,
        b=numbers.input_batch_dimension,
        f=numbers.input_feature_dimension,
        spatial=numbers.input_spatial_dimensions,
    )
    kernel = _labels(
        rank,
        i=numbers.kernel_input_feature_dimension,
        o=numbers.kernel_output_feature_dimension,
        spatial=numbers.kernel_spatial_dimensions,
    )
    made = _labels(
        rank,
        b=numbers.output_batch_dimension,
        f=numbers.output_feature_dimension,
        spatial=numbers.output_spatial_dimensions,
    )
    return f"{taken}_{kernel}->{made}"


def _labels(rank: int, *, spatial: Iterable[int], **others: int) -> str:
    found = ["?"] * rank
    for label, at in (*others.items(), *((str(n), at) for n, at in enumerate(spatial))):
        if 0 <= at < rank:
            found[at] = label
    return "".join(found)
