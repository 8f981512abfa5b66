"""The values of small constants in HLO, as a reader sees them."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence

from graph2mermaid.hlo import Shape

MOST_VALUES = 8
"""A constant with more elements is shown by its type and shape alone."""

_FLOATS = {"f16": "e", "bf16": "f", "f32": "f", "f64": "d"}
"""XLA's types of floating point numbers, and what `struct` calls them."""


def value_words(shape: Shape, values: Sequence[float | int | bool | str]) -> str | None:
    """Return `2.0`, `[1 2]`: the numbers of a constant, each as short as its precision allows.

    Args:
        shape: Its type and shape.
        values: Its numbers in order, or how they are printed.
    """
    if shape.size != len(values):
        return None
    try:
        words = [_word(shape.dtype, value) for value in values]
    except (ValueError, OverflowError):  # complex numbers, and types of a few bits
        return None
    return _nested(shape.dims, iter(words))


def _word(dtype: str, value: float | bool | str) -> str:
    if dtype == "pred":
        return str(value == "true" if isinstance(value, str) else bool(value))
    if dtype not in _FLOATS:
        return str(int(value))
    number = float(value)
    if not math.isfinite(number):
        return str(number)
    form = _FLOATS[dtype]
    exact = struct.pack(form, number)
    found = (float(f"{number:.{digits}g}") for digits in range(1, 18))
    return str(next((n for n in found if _packs(form, n) == exact), number))


def _packs(form: str, number: float) -> bytes | None:
    try:
        return struct.pack(form, number)
    except OverflowError:  # rounded up past the largest number
        return None


def _nested(dims: Sequence[int], words: Iterator[str]) -> str:
    if not dims:
        return next(words)
    return f"[{' '.join(_nested(dims[1:], words) for _ in range(dims[0]))}]"
