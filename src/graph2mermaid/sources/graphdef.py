"""GraphDef and its function library to Graph."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from graph2mermaid.collector import collector_paused
from graph2mermaid.errors import TargetError
from graph2mermaid.graph import (
    Arrow,
    Binding,
    EdgeKind,
    Graph,
    Node,
    NodeKind,
    Stage,
    TensorRef,
)
from graph2mermaid.sources.function_def import graph_from_function_def
from graph2mermaid.sources.names import unique_names
from graph2mermaid.sources.node_defs import Library, NodeReader
from graph2mermaid.sources.op_defs import (
    ARGUMENT_OPS,
    DEFAULTED_OP,
    PLACEHOLDER_OPS,
    RESULT_OPS,
)
from graph2mermaid.sources.shapes import TOP, Shapes

_TRACED_RESULT = re.compile(r"Identity(_\d+)?")
_NO_RESULT = {NodeKind.INPUT, NodeKind.CONST, NodeKind.VARIABLE}


def graph_from_graph_def(
    graph_def: Any,
    *,
    name: str,
    stage: Stage = Stage.TRACED,
    inputs: Sequence[Binding] | None = None,
    outputs: Sequence[Binding] | None = None,
    shapes: Mapping[str, Shapes] = MappingProxyType({}),
) -> Graph:
    """Make a graph of every node and edge of a `GraphDef`, and of the functions its ops call.

    Args:
        graph_def: The proto. Types come from the op registry; shapes only as far as the proto
            has them.
        name: What the graph is called in a report.
        stage: Where in TensorFlow's pipeline the proto was taken.
        inputs: The arguments where they are known; else the placeholders that are no resources.
        outputs: The results where they are known; else the `Identity` ops that a traced function
            ends in, else every output of those ops that nothing depends on.
        shapes: Shapes that the proto does not have, as `infer_shapes` finds them.

    Raises:
        TargetError: Two nodes share a name, or an edge comes from no node.
    """
    library = Library({f.signature.name: f for f in graph_def.library.function})
    node_defs = list(graph_def.node)
    try:
        with collector_paused():
            names = unique_names(library.reachable(node_defs))
            reader = NodeReader(library, names)
            top_shapes = shapes.get(TOP, {})
            pairs = [reader.read(node_def, top_shapes) for node_def in node_defs]
            nodes = _named([node for node, _ in pairs], inputs)
            arrows = list(
                reader.arrows(
                    node_defs,
                    {node.name: node for node in nodes},
                    [resolved.inputs for _, resolved in pairs],
                    _find,
                )
            )
            return Graph.build(
                name,
                stage,
                nodes,
                arrows,
                inputs=tuple(inputs) if inputs is not None else _inputs(nodes),
                captures=_captures(nodes),
                outputs=tuple(outputs) if outputs is not None else _outputs(nodes, arrows),
                functions={
                    plain: graph_from_function_def(
                        library.functions[raw],
                        name=plain,
                        stage=stage,
                        reader=reader,
                        shapes=shapes.get(raw, {}),
                    )
                    for raw, plain in names.items()
                },
            )
    except ValueError as error:
        raise TargetError(f"{name}: damaged graph: {error}") from error


def _find(text: str) -> tuple[str, int]:
    """Take `split:1` apart; output 0 is written without a number."""
    if ":" not in text:
        return text, 0
    source, _, port = text.partition(":")
    return (source, int(port)) if port.isdecimal() else (text, 0)


def _named(nodes: Sequence[Node], inputs: Sequence[Binding] | None) -> list[Node]:
    """Mark the ops that are arguments, and give them the names the user knows."""
    if inputs is None:
        return [
            replace(node, kind=NodeKind.INPUT) if node.op == DEFAULTED_OP else node
            for node in nodes
        ]
    labels = {
        ref.node: binding.name if len(binding.tensors) == 1 else f"{binding.name}[{index}]"
        for binding in inputs
        for index, ref in enumerate(binding.tensors)
    }
    return [
        replace(node, kind=NodeKind.INPUT, label=labels[node.name]) if node.name in labels else node
        for node in nodes
    ]


def _inputs(nodes: Iterable[Node]) -> tuple[Binding, ...]:
    found = [node for node in nodes if node.kind is NodeKind.INPUT]
    return tuple(map(_binding, sorted(found, key=_argument_index)))


def _captures(nodes: Iterable[Node]) -> tuple[Binding, ...]:
    fed = PLACEHOLDER_OPS | ARGUMENT_OPS
    return tuple(_binding(n) for n in nodes if n.kind is NodeKind.VARIABLE and n.op in fed)


def _outputs(nodes: Sequence[Node], arrows: Sequence[Arrow]) -> tuple[Binding, ...]:
    results = sorted((node for node in nodes if node.op in RESULT_OPS), key=_argument_index)
    if results:
        returned = {a.target: a for a in arrows if a.edge.kind is EdgeKind.DATA}
        return tuple(
            Binding(
                node.label or node.name,
                (TensorRef(arrow.source, arrow.edge.source_port or 0),),
                str(arrow.edge.tensor or ""),
            )
            for node in results
            if (arrow := returned.get(node.name))
        )
    read = {a.source for a in arrows if a.edge.kind is EdgeKind.DATA}
    waited_for = {a.source for a in arrows}
    ends = [node for node in nodes if node.name not in read and node.kind not in _NO_RESULT]
    # What others only wait for is rather a step on the way, unless there is nothing else.
    sinks = [node for node in ends if node.name not in waited_for and node.outputs] or ends
    # A traced function ends in ops of these names; what else nothing reads was of no use to it.
    sinks = [node for node in sinks if _TRACED_RESULT.fullmatch(node.name)] or sinks
    return tuple(
        Binding(
            node.name if len(node.outputs) == 1 else f"{node.name}:{port}",
            (TensorRef(node.name, port),),
            str(spec),
        )
        for node in sinks
        for port, spec in enumerate(node.outputs)
    )


def _binding(node: Node) -> Binding:
    return Binding(
        node.label or node.name, (TensorRef(node.name),), "".join(map(str, node.outputs))
    )


def _argument_index(node: Node) -> int:
    index = node.attrs.get("index", 0)
    return index if isinstance(index, int) else 0
