"""What TensorFlow's op registry says of an op type: argument names, result types, kind.

An op definition is looked up and taken apart once for each op type, and worked out once for each
combination of the attributes that its types and counts depend on. A graph has thousands of ops
and a few dozen of either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from graph2mermaid.graph import NodeKind
from graph2mermaid.sources.attr_values import UNKNOWN_DTYPE, dtype_name, read_attribute

ARGUMENT_OPS = frozenset({"_Arg", "_DeviceArg"})
PLACEHOLDER_OPS = frozenset({"Placeholder", "PlaceholderV2"})
DEFAULTED_OP = "PlaceholderWithDefault"
"""An input of a graph, but in a function the way to hide a constant from the optimizer."""
RESULT_OPS = frozenset({"_Retval", "_DeviceRetval"})
CONST_OPS = frozenset({"Const", "HostConst", "_HostConst", "ImmutableConst"})
_CALL_OPS = frozenset({"RemoteCall", "SymbolicGradient", "XlaLaunch", "XlaLaunchV2"})
_BODY_OPS = ("If", "Case", "While", "For")
_LOWERED_OPS = ("Switch", "SwitchN", "Merge", "Enter", "Exit", "NextIteration")
_CONTROL_FLOW_OPS = frozenset(
    {prefix + op for op in _BODY_OPS for prefix in ("", "Stateless", "_")}
    | {prefix + op for op in _LOWERED_OPS for prefix in ("", "Ref", "_")}
    | {"LoopCond", "ParallelFor"}
)


@dataclass(frozen=True, slots=True)
class Arg:
    """One argument or result of an op definition; it may stand for several tensors."""

    name: str
    dtype: str = ""
    """Its type when the definition fixes it."""
    type_attr: str = ""
    """The attribute that holds its type."""
    number_attr: str = ""
    """The attribute that says how many tensors it stands for."""
    type_list_attr: str = ""
    """The attribute that lists the type of each of its tensors."""
    is_ref: bool = False

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that its types and their number depend on."""
        return tuple(filter(None, (self.type_attr, self.number_attr, self.type_list_attr)))

    def types(self, values: Mapping[str, object]) -> tuple[str, ...]:
        """Return the type of each tensor it stands for, given an op's attributes."""
        if self.type_list_attr:
            listed = values.get(self.type_list_attr)
            return tuple(map(str, listed)) if isinstance(listed, tuple) else ()
        dtype = self.dtype or str(values.get(self.type_attr) or UNKNOWN_DTYPE)
        if not self.number_attr:
            return (dtype,)
        number = values.get(self.number_attr)
        return (dtype,) * number if isinstance(number, int) else ()


@dataclass(frozen=True, slots=True)
class Resolved:
    """An op definition with an op's own attributes filled in."""

    kind: NodeKind
    inputs: tuple[str, ...]
    """The argument name for each input; a list argument is there once for each tensor."""
    outputs: tuple[str, ...]
    """The type of each output."""
    ports: Mapping[str, int]
    """The first output of each result by name; a function body names outputs that way."""


@dataclass(frozen=True, slots=True, eq=False)
class OpForm:
    """The definition of one op type."""

    op: str
    inputs: tuple[Arg, ...]
    outputs: tuple[Arg, ...]
    defaults: Mapping[str, object]
    """The plain values that attributes have when an op does not say."""
    types: frozenset[str]
    """The attributes that only say what type inputs and outputs have."""
    functions: tuple[str, ...] = ()
    """The attributes that hold functions, in the order of the definition."""
    is_function: bool = False
    """Whether the op type is a function of the library, as calls were before PartitionedCall."""
    _attributes: tuple[str, ...] = ()
    _resolved: dict[tuple[object, ...], Resolved] = field(default_factory=dict)

    @property
    def refers(self) -> bool:
        """Whether its ops may refer to functions."""
        return self.is_function or bool(self.functions)

    def without_defaults(self, values: Mapping[str, object]) -> dict[str, object]:
        """Return the attributes that say something: no types, and no default values."""
        return {
            name: value
            for name, value in values.items()
            if name not in self.types
            and (name not in self.defaults or value != self.defaults[name])
        }

    def resolve(self, values: Mapping[str, object]) -> Resolved:
        """Fill in the attributes of one op.

        Args:
            values: The op's attributes: dtype names, numbers, and tuples of these.
        """
        key = tuple([values.get(name) for name in self._attributes])
        found = self._resolved.get(key)
        if found is None:
            found = self._resolved[key] = self._resolve({**self.defaults, **values})
        return found

    def _resolve(self, values: Mapping[str, object]) -> Resolved:
        ports: dict[str, int] = {}
        types: list[str] = []
        for arg in self.outputs:
            ports[arg.name] = len(types)
            types += arg.types(values)
        inputs = tuple(arg.name for arg in self.inputs for _ in arg.types(values))
        return Resolved(self._kind(types), inputs, tuple(types), ports)

    def _kind(self, types: Sequence[str]) -> NodeKind:
        if self.is_function:
            return NodeKind.CALL
        if kind := op_kind(self.op, types):
            return kind
        # Whatever has no input and gives out a handle holds state: a variable, a table, a queue.
        handles = [arg.is_ref or arg.dtype == "resource" for arg in self.outputs]
        if handles and all(handles) and not self.inputs:
            return NodeKind.VARIABLE
        return NodeKind.OP


def op_kind(op: str, output_types: Iterable[str]) -> NodeKind | None:
    """Return the kind of an op by its type alone, or None when the type does not decide it."""
    if op in CONST_OPS:
        return NodeKind.CONST
    if op in PLACEHOLDER_OPS or op in ARGUMENT_OPS:
        return NodeKind.VARIABLE if list(output_types) == ["resource"] else NodeKind.INPUT
    if op.endswith("PartitionedCall") or op in _CALL_OPS:
        return NodeKind.CALL
    if op in _CONTROL_FLOW_OPS:
        return NodeKind.CONTROL_FLOW
    return None


def registered_form(op: str) -> OpForm | None:
    """Return the definition of a registered op type, or None for an op this TensorFlow lacks."""
    try:
        return _registered_form(op)
    except KeyError:
        return None


@cache
def _registered_form(op: str) -> OpForm:
    # No public function reads the registry; this one is the same in TensorFlow 2.9 and 2.21.
    from tensorflow.python.framework import op_def_registry

    op_def = op_def_registry.get(op)
    if op_def is None:
        raise KeyError(op)  # not remembered: a library with the op may be loaded later
    return form_of(op_def)


def form_of(op_def: Any, *, is_function: bool = False) -> OpForm:
    """Take an `OpDef` apart: of a registered op, or the signature of a library function."""
    inputs = tuple(map(_arg, op_def.input_arg))
    outputs = tuple(map(_arg, op_def.output_arg))
    attributes = tuple(dict.fromkeys(name for arg in inputs + outputs for name in arg.attributes))
    defaults = {
        attr.name: read_attribute(attr.default_value)
        for attr in op_def.attr
        if attr.HasField("default_value")
    }
    types = frozenset(attr.name for attr in op_def.attr if attr.type in _TYPES)
    functions = tuple(a.name for a in op_def.attr if a.type in _FUNCTIONS)
    return OpForm(op_def.name, inputs, outputs, defaults, types, functions, is_function, attributes)


def _arg(arg_def: Any) -> Arg:
    return Arg(
        arg_def.name,
        dtype_name(arg_def.type) if arg_def.type else "",
        arg_def.type_attr,
        arg_def.number_attr,
        arg_def.type_list_attr,
        arg_def.is_ref or arg_def.type > _REF_OFFSET,
    )


_TYPES = ("type", "list(type)")
_FUNCTIONS = ("func", "list(func)")
_REF_OFFSET = 100  # DT_FLOAT_REF is DT_FLOAT + 100, and so on
