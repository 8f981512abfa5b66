"""The ops of one traced graph, each with the user's line and the variable it is assigned to."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from graph2mermaid.graph import Arrow, Edge, EdgeKind, Node
from graph2mermaid.sources.attributes import (
    called_functions,
    constant_text,
    node_kind,
    shown_attrs,
)
from graph2mermaid.sources.callsite import CallSite, call_site
from graph2mermaid.sources.statements import assigned_variables
from graph2mermaid.sources.structure import tensor_spec

_CONTROL = Edge(EdgeKind.CONTROL, None, None)


@dataclass
class Walked:
    """What was read of one graph."""

    nodes: dict[str, Node] = field(default_factory=dict)
    arrows: list[Arrow] = field(default_factory=list)
    calls: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """For each op that refers to functions: (role, raw name in the library)."""


def walk(func_graph: Any) -> Walked:
    """Read every op of one FuncGraph, function bodies left alone."""
    walked = Walked()
    sites: list[tuple[Node, CallSite]] = []
    for op in func_graph.get_operations():
        # On 2.9.3 a loop's captures are, in the graph of its condition, placeholders whose Python
        # side was never made: both these properties raise an AttributeError.
        site = call_site(getattr(op, "traceback", None), op.type)
        attrs = op.node_def.attr
        calls = list(called_functions(attrs))
        if calls:
            walked.calls[op.name] = calls
        node = Node(
            op.name,
            op.type,
            node_kind(op.type),
            outputs=tuple(tensor_spec(tensor) for tensor in op.outputs),
            api=site.api,
            value=constant_text(attrs["value"].tensor) if op.type == "Const" else None,
            attrs=shown_attrs(attrs, _attr_defaults(op.type)),
            device=op.device,
            source=site.source,
        )
        sites.append((node, site))
        walked.arrows += _arrows_into(op)
    variables = assigned_variables([(node, site.statements) for node, site in sites], walked.arrows)
    for node, _ in sites:
        variable = variables.get(node.name)
        walked.nodes[node.name] = replace(node, variable=variable) if variable else node
    return walked


def _arrows_into(op: Any) -> Iterator[Arrow]:
    for port, tensor in enumerate(getattr(op, "inputs", ())):
        producer = tensor.op
        argument = _argument_name(op, port) if producer.type == "Const" else None
        edge = Edge(EdgeKind.DATA, tensor.value_index, port, tensor_spec(tensor), argument)
        yield Arrow(producer.name, op.name, edge)
    for producer in op.control_inputs:
        yield Arrow(producer.name, op.name, _CONTROL)


def _argument_name(op: Any, port: int) -> str | None:
    """Return the op definition's own name for an input; list arguments take several ports."""
    for argument in op.op_def.input_arg:
        if argument.number_attr:
            length = op.get_attr(argument.number_attr)
        elif argument.type_list_attr:
            length = len(op.get_attr(argument.type_list_attr))
        else:
            length = 1
        if port < length:
            return str(argument.name)
        port -= length
    return None


@functools.cache
def _attr_defaults(op_type: str) -> Mapping[str, Any]:
    from tensorflow.python.framework import op_def_registry

    op_def = op_def_registry.get(op_type)
    if op_def is None:
        return {}
    return {a.name: a.default_value for a in op_def.attr if a.HasField("default_value")}
