"""The values of small constants in HLO, as a reader sees them."""

from __future__ import annotations

from collections.abc import Sequence

from graph2mermaid.hlo import Shape

MOST_VALUES = 8
"""A constant with more elements is shown by its type and shape alone."""

_FLOATS = {"f16": "float16", "f32": "float32", "f64": "float64"}


def value_words(shape: Shape, values: Sequence[float | int | bool | str]) -> str | None:
    """Return `2.0`, `[1 2]`: the numbers of a constant in its own precision.

    Args:
        shape: Its type and shape.
        values: Its numbers in order, or how they are printed.
    """
    import numpy as np

    if shape.size != len(values):
        return None
    try:
        if shape.dtype in _FLOATS:
            array = np.array([float(v) for v in values], _FLOATS[shape.dtype])
        elif shape.dtype == "bf16":
            array = np.array([float(v) for v in values], "float32")
        elif shape.dtype == "pred":
            array = np.array([_truth(v) for v in values])
        else:
            array = np.array([int(v) for v in values])
    except (ValueError, OverflowError):  # complex numbers, and types of a few bits
        return None
    return " ".join(str(array.reshape(shape.dims)).split())


def _truth(value: float | bool | str) -> bool:
    return value == "true" if isinstance(value, str) else bool(value)
