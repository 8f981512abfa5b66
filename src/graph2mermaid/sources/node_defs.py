"""NodeDefs to nodes and edges: what a GraphDef and a function body have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from graph2mermaid.graph import Arrow, Call, Edge, EdgeKind, Node, NodeKind, Scalar, TensorSpec
from graph2mermaid.sources.attr_values import UNKNOWN_DTYPE, read_attribute, read_shape
from graph2mermaid.sources.attributes import (
    OUTPUT_SHAPES,
    USER_NAME,
    attribute_texts,
    called_functions,
    constant_text,
    functions_in,
    is_small,
)
from graph2mermaid.sources.names import function_name
from graph2mermaid.sources.op_defs import (
    CONST_OPS,
    DEFAULTED_OP,
    PLACEHOLDER_OPS,
    OpForm,
    Resolved,
    form_of,
    registered_form,
)

Find = Callable[[str], tuple[str, int]]
"""Finds the op and output that a data input's text means; an op that does not exist is an error
later, when the graph is put together."""

# Ops whose `shape` attribute is the shape of their output; in VarHandleOp it is the variable's.
_VARIABLE_OPS = frozenset({"Variable", "VariableV2", "TemporaryVariable"})
_SHAPE_OF_OUTPUT = PLACEHOLDER_OPS | _VARIABLE_OPS | {DEFAULTED_OP}
_UNREGISTERED = Resolved(NodeKind.OP, (), (), {})
_CONTROL = Edge(EdgeKind.CONTROL, None, None)


class Library:
    """The functions of one file, and the definitions of every op type in it."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        """Take the FunctionDefs by raw name."""
        self.functions = functions
        self._forms: dict[str, OpForm | None] = {}

    def form(self, op: str) -> OpForm | None:
        """Return the definition of an op type, or None when neither TensorFlow nor the file has it."""
        if op not in self._forms:
            own = self.functions.get(op)
            self._forms[op] = (
                form_of(own.signature, is_function=True) if own else registered_form(op)
            )
        return self._forms[op]

    def references(self, node_def: Any) -> list[tuple[str, str]]:
        """Return the functions an op refers to: pairs of the role and the function's raw name."""
        form = self.form(node_def.op)
        if form and form.is_function:
            return [("f", node_def.op)]
        attr = node_def.attr
        if form is None:
            return list(called_functions(attr))
        held = [name for name in form.functions if name in attr]
        return [found for name in held for found in functions_in(name, attr[name])]

    def reachable(self, node_defs: Sequence[Any]) -> list[str]:
        """Return the raw names of the functions that ops refer to, those of their bodies included.

        The library of a file also holds functions that nothing calls.
        """
        reached: dict[str, None] = {}
        silent: set[str] = set()
        bodies = [node_defs]
        for body in bodies:  # grows while it is read: nearest functions first
            for node_def in body:
                op = node_def.op
                if op in silent:
                    continue
                form = self.form(op)
                if form is not None and not form.refers:
                    silent.add(op)
                    continue
                for _, raw in self.references(node_def):
                    if raw in self.functions and raw not in reached:
                        reached[raw] = None
                        bodies.append(self.functions[raw].node_def)
        return list(reached)


@dataclass(frozen=True, slots=True)
class _Said:
    """What a NodeDef says, its name and its inputs aside."""

    op: str
    values: Mapping[str, object]
    """Its attributes as plain values."""
    resolved: Resolved
    outputs: tuple[TensorSpec, ...]
    label: str | None
    value: str | None
    holds: TensorSpec | None
    attrs: Mapping[str, Scalar]
    device: str
    calls: tuple[Call, ...]


class NodeReader:
    """Makes nodes and edges from the NodeDefs of one file.

    It remembers what it made of each set of attributes, per type and shape and per edge: the
    8,477 ops of a ResNet-50 training step have 114 different sets, and share as many objects.
    """

    def __init__(self, library: Library, names: Mapping[str, str] | None = None) -> None:
        """Take the functions of the file.

        Args:
            library: All that the file has.
            names: The plain name of every reachable function by its raw name; without it, calls
                keep the raw names.
        """
        self._library = library
        self._names = names
        self._specs: dict[tuple[object, ...], tuple[TensorSpec, ...]] = {}
        self._edges: dict[tuple[object, ...], Edge] = {}
        self._said: dict[bytes, _Said] = {}
        self._scratch: Any = None

    def read(
        self, node_def: Any, shapes: Mapping[str, object] = MappingProxyType({})
    ) -> tuple[Node, Resolved]:
        """Make the node of a NodeDef, and say what its op definition knows about it.

        Args:
            node_def: The proto.
            shapes: The shapes of each op's outputs, where they are known better than from the
                op's attributes.
        """
        name, said = node_def.name, self._what_it_says(node_def)
        outputs, holds = said.outputs, said.holds
        if name in shapes:
            op = node_def.op
            values = {**said.values, OUTPUT_SHAPES: shapes[name]}
            outputs = self._outputs(op, said.resolved.outputs, values)
            holds = _holds(op, outputs, values)
        node = Node(
            name,
            said.op,
            said.resolved.kind,
            outputs,
            label=said.label if said.label != name else None,
            value=said.value,
            holds=holds,
            attrs=said.attrs,
            device=said.device,
            calls=said.calls,
        )
        return node, said.resolved

    def _what_it_says(self, node_def: Any) -> _Said:
        """Take a NodeDef apart, or find what was made of one that says the same."""
        value = node_def.attr.get("value") if node_def.op in CONST_OPS else None
        if value is not None and not is_small(value.tensor):
            return self._take_apart(node_def)  # a copy would cost more than it saves
        if self._scratch is None:
            self._scratch = type(node_def)()
        copy = self._scratch
        copy.CopyFrom(node_def)
        for field in ("name", "input", "experimental_debug_info"):
            copy.ClearField(field)
        key = copy.SerializeToString()
        said = self._said.get(key)
        if said is None:
            said = self._said[key] = self._take_apart(node_def)
        return said

    def _take_apart(self, node_def: Any) -> _Said:
        op = node_def.op
        form = self._library.form(op)
        values: dict[str, object] = {}
        value_text = None
        for key, value in node_def.attr.items():
            if key == "value" and value.HasField("tensor"):
                value_text = constant_text(value.tensor)
                values[OUTPUT_SHAPES] = (read_shape(value.tensor.tensor_shape),)
            else:
                values[key] = read_attribute(value)
        resolved = form.resolve(values) if form else _UNREGISTERED
        outputs = self._outputs(op, resolved.outputs, values)
        attrs = attribute_texts(form.without_defaults(values) if form else values)
        return _Said(
            function_name(op) if form and form.is_function else op,
            values,
            resolved,
            outputs,
            label=_label(op, values),
            value=value_text,
            holds=_holds(op, outputs, values),
            calls=self._calls(node_def, attrs) if form is None or form.refers else (),
            attrs=attrs,
            device=node_def.device,
        )

    def arrows(
        self,
        node_defs: Sequence[Any],
        nodes: Mapping[str, Node],
        arguments: Sequence[tuple[str, ...]],
        find: Find,
    ) -> Iterator[Arrow]:
        """Yield the edges into each op.

        Args:
            node_defs: The consumers.
            nodes: Every node of the graph by name.
            arguments: For each consumer, the argument name of each of its inputs.
            find: Finds the source of a data input.
        """
        for node_def, names in zip(node_defs, arguments, strict=True):
            target = node_def.name
            for port, text in enumerate(node_def.input):
                if text.startswith("^"):
                    yield Arrow(text[1:], target, _CONTROL)
                    continue
                source, source_port = find(text)
                yield Arrow(source, target, self._edge(nodes.get(source), source_port, port, names))

    def _edge(
        self, source: Node | None, source_port: int, port: int, arguments: tuple[str, ...]
    ) -> Edge:
        tensor = argument = None
        if source is not None:
            if source_port < len(source.outputs):
                tensor = source.outputs[source_port]
            if source.kind is NodeKind.CONST and port < len(arguments):
                argument = arguments[port]
        # Types are shared, so the object is as good as its value, and found much faster; the edge
        # keeps it alive.
        key = (source_port, port, id(tensor), argument)
        edge = self._edges.get(key)
        if edge is None:
            edge = self._edges[key] = Edge(
                source_port=source_port, target_port=port, tensor=tensor, argument=argument
            )
        return edge

    def _outputs(
        self, op: str, types: tuple[str, ...], values: Mapping[str, object]
    ) -> tuple[TensorSpec, ...]:
        shapes = values.get(OUTPUT_SHAPES)
        if shapes is None and op in _SHAPE_OF_OUTPUT:
            shapes = (values.get("shape"),)
        elif shapes is None and types != ("variant",):
            # Of If, While and iterators; a dataset's are its elements' shapes.
            shapes = values.get("output_shapes")
        key = (types, shapes)
        specs = self._specs.get(key)
        if specs is None:
            specs = self._specs[key] = output_specs(types, shapes)
        return specs

    def _calls(self, node_def: Any, attrs: dict[str, Scalar]) -> tuple[Call, ...]:
        calls = []
        for role, raw in self._library.references(node_def):
            if self._names is None:
                calls.append(Call(role, raw))
            elif raw in self._names:
                calls.append(Call(role, self._names[raw]))
            else:
                attrs[role] = function_name(raw)  # the file does not hold the function
        return tuple(calls)


def output_specs(types: tuple[str, ...], shapes: object) -> tuple[TensorSpec, ...]:
    """Return type and shape of each output, `shapes` being one per output or not known."""
    known = shapes if isinstance(shapes, tuple) else ()
    if not types:  # an op type that this TensorFlow does not have
        types = (UNKNOWN_DTYPE,) * len(known)
    if len(known) != len(types):
        known = (None,) * len(types)
    return tuple(
        TensorSpec(dtype, shape if isinstance(shape, tuple) else None)
        for dtype, shape in zip(types, known, strict=True)
    )


def _label(op: str, values: Mapping[str, object]) -> str | None:
    """Return the name the user knows an input or a variable by."""
    label = values.get(USER_NAME) or (values.get("shared_name") if op == "VarHandleOp" else None)
    return label if isinstance(label, str) else None


def _holds(
    op: str, outputs: tuple[TensorSpec, ...], values: Mapping[str, object]
) -> TensorSpec | None:
    """Return what a variable op holds: that of a v1 variable is its own output."""
    if op in _VARIABLE_OPS and outputs:
        return outputs[0]
    dtype, shape = values.get("dtype"), values.get("shape")
    if op != "VarHandleOp" or not isinstance(dtype, str):
        return None
    return TensorSpec(dtype, shape if isinstance(shape, tuple) else None)
