"""The names users know: `batch['zeta']` for an argument, `scores` for a result."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from graph2mermaid.graph import TensorSpec


@dataclasses.dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf of an argument or result structure."""

    path: str
    value: Any
    """A TypeSpec, a tensor, None, or any Python value."""
    tensors: int
    """How many tensors are behind it: 0 for a Python value, several for a composite."""

    @property
    def type(self) -> str:
        """What the leaf is, in words: `float32[2]`, `RaggedTensor float32[3,?]`, `None`."""
        return describe(self.value)


def leaves(structure: Any, path: str = "") -> Iterator[Leaf]:
    """Yield the leaves in TensorFlow's own order (`tf.nest`: mappings by sorted key).

    The public way (`tf.nest.flatten_with_tuple_paths`) does not exist on all versions and says
    `batch/alpha/0`; this one writes paths as Python would.
    """
    if isinstance(structure, Mapping):
        for key in sorted(structure):
            yield from leaves(structure[key], f"{path}[{key!r}]" if path else str(key))
    elif isinstance(structure, tuple) and hasattr(structure, "_fields"):
        fields: tuple[str, ...] = structure._fields
        for name in fields:
            yield from leaves(getattr(structure, name), f"{path}.{name}" if path else name)
    elif isinstance(structure, list | tuple):
        for index, item in enumerate(structure):
            yield from leaves(item, f"{path}[{index}]" if path else f"output_{index}")
    elif _is_record(structure):
        for name in _record_fields(structure):
            yield from leaves(getattr(structure, name), f"{path}.{name}" if path else name)
    else:
        yield Leaf(path, structure, _tensor_count(structure))


def argument_leaves(
    signature: tuple[Any, Mapping[str, Any]], names: list[str], extra: str = "args"
) -> list[Leaf]:
    """Return the leaves of `(args, kwargs)`, each under its parameter's name.

    Args:
        signature: `ConcreteFunction.structured_input_signature`.
        names: The names of the positional parameters.
        extra: The name of the variadic one, which takes all further arguments.
    """
    args, kwargs = signature
    found: list[Leaf] = []
    for index, argument in enumerate(args):
        more = index - len(names)
        found += leaves(argument, names[index] if more < 0 else f"{extra}[{more}]")
    for name in sorted(kwargs):
        found += leaves(kwargs[name], name)
    return found


def describe(value: Any) -> str:
    """Say what a leaf is, short enough for a table cell."""
    import tensorflow as tf

    if value is None:
        return "None"
    kind = type(value).__name__
    if isinstance(value, tf.Variable) or kind == "VariableSpec":
        return f"Variable {tensor_spec(value)}"
    if isinstance(value, tf.TypeSpec) or tf.is_tensor(value):
        shaped = hasattr(value, "dtype") and hasattr(value, "shape")
        if isinstance(value, tf.TensorSpec | tf.Tensor) and shaped:
            return str(tensor_spec(value))
        name = kind.removesuffix("Spec")
        return f"{name} {tensor_spec(value)}" if shaped else name
    # An address is another one in every process.
    text = " ".join(re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value)).split())
    return f"Python value {text if len(text) <= 60 else text[:59] + '…'}"


def tensor_spec(tensor: Any) -> TensorSpec:
    """Return type and shape of anything with `dtype` and `shape`."""
    dtype = tensor.dtype
    name = getattr(dtype, "name", None) or str(dtype)
    return TensorSpec(name.removesuffix("_ref"), shape_of(tensor.shape))


def shape_of(shape: Any) -> tuple[int | None, ...] | None:
    """Return a TensorShape as a tuple, or None for an unknown rank."""
    if shape is None:
        return None
    rank = getattr(shape, "rank", None)
    if rank is None and hasattr(shape, "rank"):
        return None
    return tuple(None if n is None else int(n) for n in shape)


def _is_record(value: Any) -> bool:
    """Dataclasses and attrs classes are nests to TensorFlow when they say so themselves."""
    return hasattr(value, "__tf_flatten__") or hasattr(type(value), "__attrs_attrs__")


def _record_fields(value: Any) -> list[str]:
    if hasattr(type(value), "__attrs_attrs__"):
        return [field.name for field in type(value).__attrs_attrs__]
    return [field.name for field in dataclasses.fields(value)]


def _tensor_count(value: Any) -> int:
    import tensorflow as tf

    if isinstance(value, tf.TypeSpec) or tf.is_tensor(value) or isinstance(value, tf.Variable):
        return len(tf.nest.flatten(value, expand_composites=True))
    return 0
