"""The text of a capture file to captures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial
from types import MappingProxyType

from graph2mermaid.capture import Capture, Environment
from graph2mermaid.errors import CaptureError
from graph2mermaid.graph import (
    Arrow,
    Binding,
    Call,
    Edge,
    EdgeKind,
    Graph,
    Node,
    NodeKind,
    Scalar,
    SourceLine,
    Stage,
    TensorRef,
    TensorSpec,
)
from graph2mermaid.hlo import Compilation, compilation_from_data
from graph2mermaid.memory import MemoryPlan
from graph2mermaid.provenance import Optimization, optimization_from_data
from graph2mermaid.serde.fields import Damage, Fields, choice, inside, number, shown, text
from graph2mermaid.serde.plans import plan_from_data

SCHEMA = 1

_MOST_ELEMENTS = 2**63
_MOST_DIMENSIONS = 254
"""Both are TensorFlow's own limits."""


class Captures(tuple[Capture, ...]):  # noqa: SLOT001 - a tuple with a field needs a dict
    """The captures of one file, with the keys at its top that this version does not know."""

    extra: Mapping[str, object] = MappingProxyType({})


def loads(document: str, *, origin: str) -> Captures:
    """Read the text of a capture file; `origin` says in messages where it came from.

    Raises:
        CaptureError: It is no capture file, is damaged, or is of a newer schema.
    """
    try:
        return _file(_parsed(document))
    except Damage as damage:
        raise CaptureError(f"{origin}: {damage}") from damage
    except (RecursionError, MemoryError) as error:
        raise CaptureError(f"{origin}: damaged: nested too deeply, or too large") from error


def _parsed(document: str) -> object:
    try:
        return json.loads(document, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise Damage(f"not a capture file: not JSON at {place}: {error.msg}") from error
    except ValueError as error:  # a number of thousands of digits
        raise Damage("damaged: a number is out of range") from error


def _no_constant(word: str) -> object:
    raise Damage(f"damaged: {word} is not JSON")


def _file(value: object) -> Captures:
    if not isinstance(value, dict) or "schema" not in value:
        raise Damage("not a capture file: it has no schema")
    schema = number(value.pop("schema"), "schema")
    if schema > SCHEMA:
        raise Damage(
            f"made by a newer version: it has schema {schema}, and this version of graph2mermaid "
            f"reads up to {SCHEMA}; upgrade graph2mermaid"
        )
    fields = Fields(value)
    found = Captures(fields.each("captures", _capture, required=True))
    found.extra = fields.rest()
    return found


def _capture(value: object) -> Capture:
    fields = Fields(value)
    graphs: dict[Stage, Graph] = {}
    for word, graph in fields.entries("graphs").items():
        stage = choice(word, Stage, "graphs")
        graphs[stage] = inside(f"graphs.{word}", partial(_graph, stage=stage), graph)
    return Capture(
        target=fields.text("target"),
        name=fields.text("name"),
        graphs={stage: graphs[stage] for stage in Stage if stage in graphs},
        environment=fields.maybe("environment", _environment) or Environment(),
        notes=fields.each("notes", text),
        optimization=fields.maybe("optimization", _optimization),
        memory=fields.maybe("memory", _memory),
        compilation=fields.maybe("compilation", _compilation),
        extra=fields.rest(),
    )


def _optimization(value: object) -> Optimization:
    if not isinstance(value, dict):
        raise Damage("not an object")
    try:
        return optimization_from_data(value)
    except CaptureError as error:
        raise Damage(f"damaged: {error}") from error


def _compilation(value: object) -> Compilation:
    if not isinstance(value, dict):
        raise Damage("not an object")
    try:
        return compilation_from_data(value)
    except CaptureError as error:
        raise Damage(f"damaged: {error}") from error


def _memory(value: object) -> MemoryPlan:
    if not isinstance(value, dict):
        raise Damage("not an object")
    try:
        return plan_from_data(value)
    except CaptureError as error:
        raise Damage(f"damaged: {error}") from error


def _environment(value: object) -> Environment:
    fields = Fields(value)
    return Environment(
        tensorflow=fields.text("tensorflow", ""),
        keras=fields.text("keras", ""),
        python=fields.text("python", ""),
        devices=fields.each("devices", text),
        extra=fields.rest(),
    )


def _graph(value: object, stage: Stage, *, body: bool = False) -> Graph:
    fields = Fields(value)
    stage = fields.choice("stage", Stage, stage)
    listed = fields.each("nodes", _node, required=True)
    nodes = {node.name: node for node in listed}
    if len(nodes) < len(listed):
        raise Damage("two nodes have the same name", "nodes")
    functions: tuple[tuple[str, Graph], ...] = ()
    if fields.has("functions"):
        if body:
            raise Damage("a body has no functions of its own", "functions")
        functions = fields.each("functions", partial(_function, stage=stage))
    arrows = fields.each("edges", partial(_arrow, nodes=nodes))
    back_edges = fields.each("back_edges", partial(_arrow, nodes=nodes))
    graph = Graph.build(
        fields.text("name"),
        stage,
        nodes.values(),
        arrows,
        inputs=fields.each("inputs", partial(_binding, nodes=nodes)),
        captures=fields.each("captures", partial(_binding, nodes=nodes)),
        outputs=fields.each("outputs", partial(_binding, nodes=nodes)),
        functions=dict(functions),
        source=fields.maybe("source", _line),
        attrs=_attrs(fields),
        extra=fields.rest(),
    )
    # A file that puts them among the edges is read too; then they are here already.
    return replace(graph, back_edges=(*graph.back_edges, *back_edges)) if back_edges else graph


def _function(value: object, stage: Stage) -> tuple[str, Graph]:
    key = value.pop("key", None) if isinstance(value, dict) else None
    graph = _graph(value, stage, body=True)
    return (graph.name if key is None else text(key, "key")), graph


def _node(value: object) -> Node:
    fields = Fields(value)
    return Node(
        name=fields.text("name"),
        op=fields.text("op"),
        kind=fields.choice("kind", NodeKind, NodeKind.OP),
        outputs=fields.each("outputs", _spec),
        api=fields.text_or_none("api"),
        variable=fields.text_or_none("variable"),
        label=fields.text_or_none("label"),
        value=fields.text_or_none("value"),
        holds=fields.maybe("holds", _spec),
        attrs=_attrs(fields),
        device=fields.text("device", ""),
        source=fields.maybe("source", _line),
        calls=fields.each("calls", _call),
        members=fields.each("members", text),
        origin=fields.each("origin", text),
        extra=fields.rest(),
    )


def _arrow(value: object, nodes: Mapping[str, Node]) -> Arrow:
    fields = Fields(value)
    source, target = fields.text("source"), fields.text("target")
    for name in (source, target):
        if name not in nodes:
            raise Damage(f"there is no node {shown(name)}")
    kind = fields.choice("kind", EdgeKind, EdgeKind.DATA)
    usual_port = None if kind is EdgeKind.CONTROL else 0
    port = fields.number_or_null("source_port", usual_port)
    outputs = nodes[source].outputs
    usual_tensor = outputs[port] if port is not None and port < len(outputs) else None
    edge = Edge(
        kind=kind,
        source_port=port,
        target_port=fields.number_or_null("target_port", usual_port),
        tensor=fields.maybe("tensor", _spec_or_null) if fields.has("tensor") else usual_tensor,
        argument=fields.text_or_none("argument"),
        label=fields.text_or_none("label"),
        count=fields.number("count", 1),
        extra=fields.rest(),
    )
    return Arrow(source, target, edge)


def _binding(value: object, nodes: Mapping[str, Node]) -> Binding:
    fields = Fields(value)
    binding = Binding(fields.text("name"), fields.each("tensors", _ref), fields.text("type", ""))
    for ref in binding.tensors:
        if ref.node not in nodes:
            raise Damage(f"there is no node {shown(ref.node)}", "tensors")
    return binding


def _ref(value: object) -> TensorRef:
    node, colon, port = text(value).rpartition(":")
    if not colon or not _is_count(port):
        raise Damage(f"{shown(value)} is not of the form name:port")
    return TensorRef(node, number(int(port)))


def _spec_or_null(value: object) -> TensorSpec | None:
    return None if value is None else _spec(value)


def _spec(value: object) -> TensorSpec:
    return _spec_of(text(value))


@lru_cache(maxsize=4096)
def _spec_of(words: str) -> TensorSpec:
    dtype, bracket, dims = words.removesuffix("]").rpartition("[")
    sizes = dims.split(",") if dims else []
    if not bracket or not words.endswith("]"):
        raise Damage(f"{shown(words)} is not of the form float32[8,?]")
    if dims == "...":
        return TensorSpec(dtype, None)
    if len(sizes) > _MOST_DIMENSIONS or not all(n == "?" or _is_count(n) for n in sizes):
        raise Damage(f"{shown(words)} is not of the form float32[8,?]")
    spec = TensorSpec(dtype, tuple(None if n == "?" else int(n) for n in sizes))
    if (spec.size or 0) >= _MOST_ELEMENTS:
        raise Damage(f"{shown(words)} has too many elements")
    return spec


def _is_count(digits: str) -> bool:
    return digits.isascii() and digits.isdigit() and len(digits) < 20


def _line(value: object) -> SourceLine:
    if not isinstance(value, list) or len(value) not in (2, 3):
        raise Damage(f"a line is [file, line, function], not {shown(value)}")
    return SourceLine(text(value[0]), number(value[1]), *map(text, value[2:]))


def _call(value: object) -> Call:
    if not isinstance(value, list) or len(value) != 2:
        raise Damage(f"a call is [role, function], not {shown(value)}")
    return Call(text(value[0]), text(value[1]))


def _attrs(fields: Fields) -> dict[str, Scalar]:
    return {
        key: inside(f"attrs.{key}", _scalar, value)
        for key, value in fields.entries("attrs").items()
    }


def _scalar(value: object) -> Scalar:
    if value is None or isinstance(value, str | int | float):
        return value
    words = value.get("float") if isinstance(value, dict) and len(value) == 1 else None
    if words not in ("inf", "-inf", "nan"):
        raise Damage("a text, number, truth value or null is needed, not " + shown(value))
    return float(words)
