"""`AttrValue` protos as plain Python values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

Shape = tuple[int | None, ...] | None

UNKNOWN_DTYPE = "unknown"
"""The type of a tensor whose op does not say."""


def read_attribute(value: Any) -> object:
    """Return the plain value of an `AttrValue`.

    Types become their names, shapes tuples (None for an unknown rank), lists tuples of such
    values, where an unknown rank is the text `[...]`. A tensor or a function becomes None.
    """
    return _READERS[value.WhichOneof("value")](value)


def read_attributes(attr: Mapping[str, Any]) -> dict[str, object]:
    """Return the plain values of an attribute map."""
    return {key: read_attribute(value) for key, value in attr.items()}


def read_shape(shape: Any) -> Shape:
    """Return a `TensorShapeProto` as a tuple, or None for an unknown rank."""
    if shape.unknown_rank:
        return None
    return tuple([dim.size if dim.size >= 0 else None for dim in shape.dim])


@cache
def dtype_name(number: int) -> str:
    """Return the name of a `DataType` number; a reference type is named like its base type."""
    from tensorflow.python.framework import dtypes

    if number <= 0:
        return UNKNOWN_DTYPE
    try:
        return str(dtypes.as_dtype(number).base_dtype.name)
    except TypeError:  # made by a TensorFlow that knows more types than this one
        return f"type{number}"


def decode(raw: bytes) -> str:
    """Return a bytes attribute as text; what is not UTF-8 in it is written as escapes."""
    return raw.decode("utf-8", "backslashreplace")


def _read_list(value: Any) -> object:
    # At most one of the fields is filled.
    for descriptor, items in value.list.ListFields():
        read = _LIST_ITEMS.get(descriptor.name)
        return tuple(map(read, items)) if read else None
    return ()


_LIST_ITEMS: Mapping[str, Callable[[Any], object]] = {
    "s": decode,
    "i": int,
    "f": float,
    "b": bool,
    "type": dtype_name,
    "shape": lambda shape: "[...]" if shape.unknown_rank else read_shape(shape),
}
_READERS: Mapping[str | None, Callable[[Any], object]] = {
    "s": lambda value: decode(value.s),
    "i": lambda value: value.i,
    "f": lambda value: value.f,
    "b": lambda value: value.b,
    "type": lambda value: dtype_name(value.type),
    "shape": lambda value: read_shape(value.shape),
    "tensor": lambda _: None,
    "func": lambda _: None,
    "list": _read_list,
    "placeholder": lambda value: value.placeholder,
    None: lambda _: None,
}
