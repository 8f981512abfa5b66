"""What one GraphDef has otherwise than another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from graph2mermaid.graph import Scalar
from graph2mermaid.optimization import OpChange, OpForm
from graph2mermaid.sources.attr_values import dtype_name, read_attribute, read_shape
from graph2mermaid.sources.attributes import attribute_text, constant_text
from graph2mermaid.sources.op_defs import ARGUMENT_OPS, RESULT_OPS

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_FUSED = "fused_ops"
_PLACEHOLDER = "Placeholder"
"""What an argument is in a traced graph; the runtime's own op for it says nothing more."""


class Snapshot:
    """A graph's ops, ready to be compared.

    The `_Retval` ops, which stand for results, are left out: that a result comes from another op
    shows in the changes of that op.
    """

    def __init__(self, graph_def: Any, instead: Mapping[str, Any] = _NOTHING) -> None:
        """Take the graph, which must not change any more.

        Args:
            graph_def: The graph.
            instead: NodeDefs by name that are meant where the graph has another of that name.
        """
        self.nodes = {node.name: node for node in graph_def.node if node.op not in RESULT_OPS}
        self.nodes |= {name: node for name, node in instead.items() if name in self.nodes}
        self.keys = {name: _key(node) for name, node in self.nodes.items()}

    def __len__(self) -> int:
        """Return the number of ops."""
        return len(self.nodes)

    def forms(self) -> dict[str, OpForm]:
        """Return every op by name."""
        return {name: op_form(node) for name, node in self.nodes.items()}


def changes(before: Snapshot, after: Snapshot) -> tuple[OpChange, ...]:
    """Return what became of each op of `before`, and what is new in `after`."""
    if before.keys == after.keys:
        return ()
    return (*_gone_or_changed(before, after), *_added(before, after))


def op_form(node_def: Any) -> OpForm:
    """Return what matters of a NodeDef when two graphs are compared."""
    op = _PLACEHOLDER if node_def.op in ARGUMENT_OPS else node_def.op
    return OpForm(op, tuple(node_def.input), _details(node_def))


def _gone_or_changed(before: Snapshot, after: Snapshot) -> Iterator[OpChange]:
    for name, key in before.keys.items():
        other = after.keys.get(name)
        if other is None:
            yield OpChange(name, op_form(before.nodes[name]), None)
        elif key != other and _in_one_order(key) != _in_one_order(other):
            yield OpChange(name, op_form(before.nodes[name]), op_form(after.nodes[name]))


def _added(before: Snapshot, after: Snapshot) -> Iterator[OpChange]:
    names = (name for name in after.nodes if name not in before.nodes)
    return (OpChange(name, None, op_form(after.nodes[name])) for name in names)


def _key(node: Any) -> tuple[str, ...]:
    """Return what two ops that are alike have in common."""
    fused = node.attr[_FUSED].list.s if node.op.startswith("_Fused") else ()
    return (node.op, *map(repr, fused), *node.input)


def _in_one_order(key: tuple[str, ...]) -> list[str]:
    """Sort what an op only waits for, which has no order."""
    return [*(t for t in key if t[0] != "^"), *sorted(t for t in key if t[0] == "^")]


def _details(node_def: Any) -> Mapping[str, Scalar]:
    attr = node_def.attr
    if _FUSED in attr:
        return {_FUSED: attribute_text(read_attribute(attr[_FUSED]))}
    if node_def.op != "Const" or "value" not in attr:
        return {}
    tensor = attr["value"].tensor
    shape = read_shape(tensor.tensor_shape)
    found: dict[str, Scalar] = {
        "dtype": dtype_name(tensor.dtype),
        "shape": None if shape is None else ",".join(map(str, shape)),
    }
    value = constant_text(tensor)
    return found if value is None else {**found, "value": value}
