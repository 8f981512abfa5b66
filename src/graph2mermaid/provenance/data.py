"""Provenance as plain data, for files: dicts, lists, text and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graph2mermaid.errors import CaptureError
from graph2mermaid.provenance.model import (
    Fate,
    Folded,
    How,
    NodeOrigin,
    OpFate,
    Provenance,
    Suspect,
)


def to_data(provenance: Provenance) -> dict[str, Any]:
    """Return what `json.dumps` takes; what is empty is left out."""
    return {
        "nodes": [_node_data(node) for node in provenance.nodes.values()],
        "ops": [_op_data(op) for op in provenance.ops.values()],
        "suspects": [
            {"ops": list(s.ops), "producer": s.producer, "consumer": s.consumer}
            for s in provenance.suspects
        ],
    }


def from_data(data: Mapping[str, Any]) -> Provenance:
    """Return the provenance that [`to_data`][graph2mermaid.provenance.to_data] made data of.

    Raises:
        CaptureError: The data is of another form.
    """
    try:
        nodes = [_node(entry) for entry in data["nodes"]]
        ops = [_op(entry) for entry in data["ops"]]
        suspects = [
            Suspect(tuple(s["ops"]), s["producer"], s["consumer"]) for s in data["suspects"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CaptureError(f"the provenance is damaged: {type(error).__name__} {error}") from error
    return Provenance(
        {node.name: node for node in nodes}, {op.id: op for op in ops}, tuple(suspects)
    )


def _node_data(node: NodeOrigin) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": node.name,
        "op": node.op,
        "how": node.how.value,
        "origins": list(node.origins),
        "was": node.was,
        "why": node.why,
        "by": node.by,
    }
    if node.folded is not None:
        shape = None if node.folded.shape is None else list(node.folded.shape)
        data["folded"] = {
            "dtype": node.folded.dtype,
            "shape": shape,
            "nbytes": node.folded.nbytes,
            "value": node.folded.value,
            "equals": node.folded.equals,
        }
    return _without_empty(data)


def _op_data(op: OpFate) -> dict[str, Any]:
    return _without_empty(
        {"id": op.id, "op": op.op, "fate": op.fate.value, "into": list(op.into), "by": op.by}
    )


def _without_empty(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value not in (None, [])}


def _node(data: Mapping[str, Any]) -> NodeOrigin:
    return NodeOrigin(
        data["name"],
        data["op"],
        How(data["how"]),
        tuple(data.get("origins", ())),
        data.get("was"),
        _folded(data["folded"]) if "folded" in data else None,
        data.get("why"),
        data.get("by"),
    )


def _folded(data: Mapping[str, Any]) -> Folded:
    shape = data["shape"]
    return Folded(
        data["dtype"],
        None if shape is None else tuple(shape),
        data["nbytes"],
        data["value"],
        data["equals"],
    )


def _op(data: Mapping[str, Any]) -> OpFate:
    return OpFate(
        data["id"], data["op"], Fate(data["fate"]), tuple(data.get("into", ())), data.get("by")
    )
