"""Captures to the text of a capture file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping

from graph2mermaid.capture import Capture
from graph2mermaid.errors import CaptureError
from graph2mermaid.graph import (
    Arrow,
    Binding,
    EdgeKind,
    Graph,
    Node,
    NodeKind,
    Scalar,
    SourceLine,
    Stage,
    TensorSpec,
)
from graph2mermaid.hlo import compilation_to_data
from graph2mermaid.memory import MemoryPlan
from graph2mermaid.provenance import optimization_to_data
from graph2mermaid.serde.plans import plan_to_data
from graph2mermaid.serde.read import SCHEMA, Captures

_NULL = object()
"""A value that is written as null; None leaves the key out."""


def dumps(captures: Iterable[Capture]) -> str:
    """Return the text of a capture file.

    Raises:
        CaptureError: Something in a capture's `extra` has no form in JSON.
    """
    extra = captures.extra if isinstance(captures, Captures) else {}
    rows = _Rows(map(_capture_json, captures))
    try:
        text = _text(_Block(_object(extra, schema=SCHEMA, captures=rows)), "\n")
    except (TypeError, ValueError, RecursionError) as error:
        raise CaptureError(f"the capture cannot be written as JSON: {error}") from error
    # Half a surrogate pair has no UTF-8; in JSON it can stand as an escape.
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text) + "\n"


class _Rows(list[object]):
    """A list that is written one item a line."""


class _Block(dict[str, object]):
    """An object that is written one key a line."""


_encode = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(",", ":"), default=dict
).encode


def _text(value: object, line: str) -> str:
    """Return the JSON of a value; `line` is the line feed and indent that it stands at."""
    inner = line + " "
    if isinstance(value, _Rows) and value:
        return f"[{inner}{f',{inner}'.join(_text(item, inner) for item in value)}{line}]"
    if isinstance(value, _Block):
        items = (f"{_encode(key)}: {_text(item, inner)}" for key, item in sorted(value.items()))
        return f"{{{inner}{f',{inner}'.join(items)}{line}}}"
    return _encode(value)


def _object(extra: Mapping[str, object], **fields: object) -> dict[str, object]:
    """Return an object of the fields that are not None, and of the keys that are no field."""
    found = {
        key: None if value is _NULL else value for key, value in fields.items() if value is not None
    }
    return {key: value for key, value in extra.items() if key not in fields} | found


def _capture_json(capture: Capture) -> _Block:
    environment = capture.environment
    made_with = _object(
        environment.extra,
        tensorflow=environment.tensorflow or None,
        keras=environment.keras or None,
        python=environment.python or None,
        devices=environment.devices or None,
    )
    graphs = {stage.value: _graph_json(graph, stage) for stage, graph in capture.graphs.items()}
    return _Block(
        _object(
            capture.extra,
            target=capture.target,
            name=capture.name,
            graphs=_Block(graphs) if graphs else {},
            environment=made_with or None,
            notes=_Rows(capture.notes) or None,
            optimization=None
            if capture.optimization is None
            else optimization_to_data(capture.optimization),
            memory=None if capture.memory is None else _memory_json(capture.memory),
            compilation=None
            if capture.compilation is None
            else compilation_to_data(capture.compilation),
        )
    )


def _memory_json(plan: MemoryPlan) -> _Block:
    data = plan_to_data(plan)
    return _Block({**data, "allocations": _Rows(data["allocations"])})


def _graph_json(graph: Graph, stage: Stage, key: str | None = None) -> _Block:
    functions = (_graph_json(body, graph.stage, key) for key, body in graph.functions.items())
    return _Block(
        _object(
            graph.extra,
            name=graph.name,
            key=None if key == graph.name else key,
            stage=None if graph.stage is stage else graph.stage.value,
            nodes=_Rows(map(_node_json, graph.nodes())),
            edges=_Rows(_arrow_json(graph, arrow) for arrow in graph.arrows()),
            back_edges=_Rows(_arrow_json(graph, arrow) for arrow in graph.back_edges) or None,
            inputs=_Rows(map(_binding_json, graph.inputs)) or None,
            captures=_Rows(map(_binding_json, graph.captures)) or None,
            outputs=_Rows(map(_binding_json, graph.outputs)) or None,
            functions=_Rows(functions) or None,
            source=_line_json(graph.source),
            attrs=_attrs_json(graph.attrs) or None,
        )
    )


def _node_json(node: Node) -> dict[str, object]:
    return _object(
        node.extra,
        name=node.name,
        op=node.op,
        kind=None if node.kind is NodeKind.OP else node.kind.value,
        outputs=[str(tensor) for tensor in node.outputs] or None,
        api=node.api,
        variable=node.variable,
        label=node.label,
        value=node.value,
        holds=None if node.holds is None else str(node.holds),
        attrs=_attrs_json(node.attrs) or None,
        device=node.device or None,
        source=_line_json(node.source),
        calls=[[call.role, call.function] for call in node.calls] or None,
        members=node.members or None,
        origin=node.origin or None,
    )


def _arrow_json(graph: Graph, arrow: Arrow) -> dict[str, object]:
    edge = arrow.edge
    usual_port = None if edge.kind is EdgeKind.CONTROL else 0
    usual_tensor = _tensor_at(graph[arrow.source], edge.source_port)
    tensor = None if edge.tensor is None else str(edge.tensor)
    return _object(
        edge.extra,
        source=arrow.source,
        target=arrow.target,
        kind=None if edge.kind is EdgeKind.DATA else edge.kind.value,
        source_port=_unless(edge.source_port, usual_port),
        target_port=_unless(edge.target_port, usual_port),
        tensor=_unless(tensor, None if usual_tensor is None else str(usual_tensor)),
        argument=edge.argument,
        label=edge.label,
        count=_unless(edge.count, 1),
    )


def _unless(value: object, usual: object) -> object:
    """Leave out what a reader takes for granted."""
    return None if value == usual else _NULL if value is None else value


def _tensor_at(node: Node, port: int | None) -> TensorSpec | None:
    return node.outputs[port] if port is not None and 0 <= port < len(node.outputs) else None


def _binding_json(binding: Binding) -> dict[str, object]:
    tensors = [str(ref) for ref in binding.tensors] or None
    return _object({}, name=binding.name, tensors=tensors, type=binding.type or None)


def _line_json(line: SourceLine | None) -> list[object] | None:
    if line is None:
        return None
    return [line.file, line.line, line.function] if line.function else [line.file, line.line]


def _attrs_json(attrs: Mapping[str, Scalar]) -> dict[str, object]:
    """JSON has no infinity; it is written as `{"float": "inf"}`."""
    return {
        key: {"float": str(value)}
        if isinstance(value, float) and not math.isfinite(value)
        else value
        for key, value in attrs.items()
    }
