"""Nested arguments: dicts, lists, tuples and named tuples, as TensorFlow takes them apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from graph2mermaid.sources.signature import Path
from graph2mermaid.sources.structure import describe, tensor_spec

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def is_nest(value: Any) -> bool:
    """Tell whether a value is taken apart rather than taken as a leaf."""
    return isinstance(value, Mapping | list | tuple)


def leaves_with_paths(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every leaf with the way to it, in the order it is written."""
    if not is_nest(value):
        yield path, value
        return
    for key, item in _items(value):
        yield from leaves_with_paths(item, (*path, key))


def map_with_paths(function: Callable[[Path, Any], Any], value: Any, path: Path = ()) -> Any:
    """Return the same structure with every leaf replaced by `function(path, leaf)`."""
    if not is_nest(value):
        return function(path, value)
    items = {key: map_with_paths(function, item, (*path, key)) for key, item in _items(value)}
    if isinstance(value, Mapping):
        return items
    if hasattr(value, "_fields"):
        return type(value)(**items)
    return list(items.values()) if isinstance(value, list) else tuple(items.values())


def describe_nest(value: Any) -> str:
    """Return one argument in words: `float32[?,4]`, `2`, `{'a': int32[], 'b': None}`."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k!r}: {describe_nest(v)}" for k, v in value.items()) + "}"
    if is_nest(value):
        inner = ", ".join(describe_nest(item) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if type(value).__module__ == "numpy" and hasattr(value, "shape"):
        return str(tensor_spec(value))
    if is_forgotten(value):
        return "an object"
    return _ADDRESS.sub("", describe(value).removeprefix("Python value "))


def is_forgotten(value: Any) -> bool:
    """Tell whether a trace's argument was an object that TensorFlow did not keep."""
    return type(value).__name__ == "UnknownArgument"


def _items(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return value.items()
    return zip(getattr(value, "_fields", None) or range(len(value)), value, strict=True)
