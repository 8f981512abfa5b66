"""FunctionDef, the body of a library function, to Graph."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from graph2mermaid.graph import Binding, Graph, Node, NodeKind, Scalar, Stage, TensorRef
from graph2mermaid.sources.attr_values import UNKNOWN_DTYPE, Shape, read_attributes
from graph2mermaid.sources.attributes import OUTPUT_SHAPES, USER_NAME, attribute_texts
from graph2mermaid.sources.names import argument_name
from graph2mermaid.sources.node_defs import Library, NodeReader, output_specs
from graph2mermaid.sources.op_defs import Resolved, form_of

_ARG_OP = "_Arg"


def graph_from_function_def(
    function_def: Any,
    *,
    name: str,
    stage: Stage = Stage.TRACED,
    reader: NodeReader | None = None,
    shapes: Mapping[str, tuple[Shape, ...]] = MappingProxyType({}),
) -> Graph:
    """Make the graph of a function body.

    Its arguments become `_Arg` nodes. `inputs` and `outputs` have one binding for each position
    of a call; the ops that must run although nothing reads their results are named in the
    attribute `control_outputs`.

    Args:
        function_def: The proto.
        name: What the function is called in a report.
        stage: Where in TensorFlow's pipeline the proto was taken.
        reader: That of the file; without it, calls keep the raw names of functions.
        shapes: The shapes of each op's outputs, where they are known better than from the proto.

    Raises:
        ValueError: The body refers to an op that it does not hold, or holds one twice.
    """
    reader = reader or NodeReader(Library({}))
    node_defs = list(function_def.node_def)
    pairs = [reader.read(node_def, shapes) for node_def in node_defs]
    nodes = {node.name: node for node, _ in pairs}
    args = _arguments(function_def, nodes, shapes)
    nodes |= {node.name: node for node in args.values()}
    names = _Names(args, {node.name: resolved for node, resolved in pairs})
    arrows = reader.arrows(node_defs, nodes, [resolved.inputs for _, resolved in pairs], names.find)
    return Graph.build(
        name,
        stage,
        [*args.values(), *(node for node, _ in pairs)],
        arrows,
        inputs=tuple(
            Binding(node.label or node.name, (TensorRef(node.name),), str(node.outputs[0]))
            for node in args.values()
        ),
        outputs=tuple(
            _result(arg.name, function_def.ret.get(arg.name, ""), names, nodes)
            for arg in function_def.signature.output_arg
        ),
        attrs=_function_attrs(function_def),
    )


class _Names:
    """What the inputs of a body's ops mean: `argument`, or `op:result:index`."""

    def __init__(self, args: Mapping[str, Node], resolved: Mapping[str, Resolved]) -> None:
        self._args = args
        self._resolved = resolved

    def find(self, text: str) -> tuple[str, int]:
        """Return the op and its output."""
        source, _, rest = text.partition(":")
        result, _, index = rest.partition(":")
        if not index and source in self._args:
            return self._args[source].name, 0
        # Each result of an op has its own count, while the outputs of a node are counted through.
        first = self._resolved[source].ports.get(result, 0) if source in self._resolved else 0
        return source, first + (int(index) if index.isdecimal() else 0)


def _arguments(
    function_def: Any, taken: Mapping[str, Node], known: Mapping[str, object]
) -> dict[str, Node]:
    """Return an input node for each argument, by the argument's name."""
    signature = form_of(function_def.signature, is_function=True)
    shapes = read_attributes(function_def.attr).get("_input_shapes")
    args: dict[str, Node] = {}
    for index, arg in enumerate(signature.inputs):
        values: dict[str, object] = {}
        if isinstance(shapes, tuple) and index < len(shapes):
            values[OUTPUT_SHAPES] = (shapes[index],)
        if index in function_def.arg_attr:
            values |= read_attributes(function_def.arg_attr[index].attr)
        if arg.name in known and arg.name not in taken:
            values[OUTPUT_SHAPES] = known[arg.name]
        outputs = output_specs(arg.types(values)[:1] or (UNKNOWN_DTYPE,), values.get(OUTPUT_SHAPES))
        name = own_name = argument_name(arg.name)
        if name in taken or any(name == node.name for node in args.values()):
            name = f"{arg.name} (argument)"
        label = str(values.get(USER_NAME) or own_name)
        args[arg.name] = Node(
            name, _ARG_OP, NodeKind.INPUT, outputs, label=label if label != name else None
        )
    return args


def _result(name: str, text: str, names: _Names, nodes: Mapping[str, Node]) -> Binding:
    if not text:
        return Binding(name)
    ref = TensorRef(*names.find(text))
    if ref.node not in nodes:
        raise ValueError(f"result {name!r}: no node {ref.node!r}")
    outputs = nodes[ref.node].outputs
    return Binding(name, (ref,), str(outputs[ref.port]) if ref.port < len(outputs) else "")


def _function_attrs(function_def: Any) -> dict[str, Scalar]:
    attrs = attribute_texts(read_attributes(function_def.attr))
    if function_def.control_ret:
        ops = [function_def.control_ret[name] for name in function_def.signature.control_output]
        attrs["control_outputs"] = ", ".join(dict.fromkeys(ops))
    return attrs
