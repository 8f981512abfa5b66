"""Op attributes as a reader sees them: what fits on a line, never a whole tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from graph2mermaid.graph import NodeKind, Scalar
from graph2mermaid.sources.attr_values import decode, read_attribute, read_shape
from graph2mermaid.sources.names import function_name
from graph2mermaid.sources.op_defs import op_kind, registered_form

MAX_TEXT = 200
"""Longer attribute texts are cut."""
MAX_ITEMS = 16
"""Longer lists are cut."""
MAX_VALUES = 8
"""A constant with more elements is shown by its type and shape alone."""

OUTPUT_SHAPES = "_output_shapes"
"""The attribute with the shapes of all outputs, where whoever wrote the file knew them."""
USER_NAME = "_user_specified_name"
"""The attribute with the name of an argument as the user wrote it."""

# Shown elsewhere (as the shape of an output), numbered anew in every process, or bookkeeping.
_NOT_SHOWN = frozenset(
    {"config_proto", "container", "debug_name", "executor_type", "shape", "shared_name", "token"}
)
# TensorFlow's own attributes begin with an underline; these few decide how an op is run.
_SHOWN = ("_Xla", "_xla", "_noinline", "_implements", "_kernel")


def node_kind(op: str) -> NodeKind:
    """Return the kind of an op of this type; a placeholder counts as an input."""
    form = registered_form(op)
    return form.resolve({}).kind if form else op_kind(op, ()) or NodeKind.OP


def shown_attrs(attr: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return those attributes of an op that say something, sorted by name.

    Left out are types, which stand at the tensors, and what has its default value.

    Args:
        attr: The `AttrValue` protos of a NodeDef.
        defaults: The `AttrValue` protos of the op definition.
    """
    said = {
        key: read_attribute(value)
        for key, value in attr.items()
        if not (value.HasField("type") or (value.HasField("list") and value.list.type))
        and value != defaults.get(key)
    }
    return attribute_texts(said)


def attribute_texts(values: Mapping[str, object]) -> dict[str, Scalar]:
    """Return those of an op's or a function's plain values that fit on a line, sorted by name."""
    texts = {key: attribute_text(values[key]) for key in sorted(values) if _is_shown(key)}
    return {key: text for key, text in texts.items() if text is not None}


def _is_shown(key: str) -> bool:
    return key not in _NOT_SHOWN and (key[0] != "_" or key.startswith(_SHOWN))


def attribute_text(value: object) -> Scalar:
    """Return a plain value as a scalar, or None when it is not worth a line."""
    if isinstance(value, str):
        # Some attributes hold the raw name of a function, with its counter.
        text = function_name(value) if value.startswith("__") else value
        return _cut(text) if text and text.isprintable() else None
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, tuple):
        return _list_text(value)
    return value if isinstance(value, int) else None


def called_functions(attr: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the functions that any attributes hold: pairs of role and raw name."""
    for key in sorted(attr):
        yield from functions_in(key, attr[key])


def functions_in(role: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the functions that one `AttrValue` holds; a list gives the roles `branches[0]`..."""
    if value.HasField("func"):
        yield role, value.func.name
    elif value.HasField("list"):
        for index, function in enumerate(value.list.func):
            yield f"{role}[{index}]", function.name


def constant_text(tensor: Any) -> str | None:
    """Return the value of a `TensorProto` as text, or None when it is not small.

    The number of elements is taken from the shape: a tensor of one repeated value is stored as a
    single number and must not be expanded to see that it is too big.
    """
    from tensorflow import make_ndarray

    if not is_small(tensor):
        return None
    try:
        return value_text(make_ndarray(tensor))
    except (KeyError, TypeError, ValueError):  # damaged, or a type that has no numbers (variant)
        return None


def is_small(tensor: Any) -> bool:
    """Tell whether a `TensorProto` has a known number of elements, and few of them."""
    shape = read_shape(tensor.tensor_shape)
    return (
        shape is not None and None not in shape and math.prod(n or 0 for n in shape) <= MAX_VALUES
    )


def value_text(array: Any) -> str | None:
    """Return a NumPy array (or scalar, or bytes) as text, or None when it is not small."""
    size = getattr(array, "size", 1)
    if size > MAX_VALUES:
        return None
    return _cut(_values_text(array)) if size else "[]"


def _values_text(values: Any) -> str:
    if getattr(values, "ndim", 0):
        return f"[{', '.join(map(_values_text, values))}]"
    element = values[()] if hasattr(values, "ndim") else values
    return repr(decode(element)) if isinstance(element, bytes) else str(element)


def _list_text(items: tuple[object, ...]) -> str:
    shown = ["?" if item is None else str(attribute_text(item)) for item in items[:MAX_ITEMS]]
    if len(items) > MAX_ITEMS:
        shown.append("...")
    return _cut(f"[{','.join(shown)}]")


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."
