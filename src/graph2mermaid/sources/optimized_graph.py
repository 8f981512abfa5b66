"""A GraphDef of the runtime as a Graph, under the names that the traced graph has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from graph2mermaid.graph import Arrow, Binding, Graph, Node, Stage, TensorRef, TensorSpec
from graph2mermaid.sources.attr_values import Shape
from graph2mermaid.sources.graphdef import graph_from_graph_def
from graph2mermaid.sources.op_defs import ARGUMENT_OPS, RESULT_OPS
from graph2mermaid.sources.shapes import TOP

_FUSED = ("_Fused", "_MklFused")


def traced_names(concrete: Any, traced: Graph) -> list[str]:
    """Return what the traced graph calls each input of a function, captured ones included."""
    # A placeholder whose name holds a counter has another one there, at the same place.
    operations = [op.name for op in concrete.graph.get_operations()]
    nodes = [node.name for node in traced.nodes()]
    names = dict(zip(operations, nodes, strict=True)) if len(operations) == len(nodes) else {}
    return [names.get(tensor.op.name, tensor.op.name) for tensor in concrete.inputs]


def with_argument_names(graph_def: Any, arguments: list[str]) -> Any:
    """Return a graph in which arguments are called as in the traced graph.

    The runtime has names of its own for them (`sgd_assignaddvariableop_resource`).
    """
    taken = {node.name for node in graph_def.node if node.op not in ARGUMENT_OPS}
    names = {}
    for node in graph_def.node:
        if node.op in ARGUMENT_OPS:
            name = arguments[node.attr["index"].i]
            if name not in taken:
                names[node.name] = name
    copy = type(graph_def)()
    copy.CopyFrom(graph_def)
    for node in copy.node:
        if node.op in ARGUMENT_OPS:
            node.name = names.get(node.name, node.name)
        for index, text in enumerate(node.input):
            source, colon, port = text.partition(":")
            name = names.get(source.lstrip("^"))
            if name is not None:
                node.input[index] = f"{'^' if text[0] == '^' else ''}{name}{colon}{port}"
    return copy


def to_graph(
    graph_def: Any,
    traced: Graph,
    *,
    stage: Stage,
    shapes: Mapping[str, tuple[Shape, ...]] | None = None,
) -> Graph:
    """Make a graph of what the runtime made of a traced function.

    Arguments, captures and results are bound as in the traced graph. An op that has kept its name
    and type has its Python variable, API name and source line; one that has kept its name alone
    the source line. `_Retval` ops are not in the graph: `outputs` says where results come from.

    Args:
        graph_def: The graph, its arguments called as in the traced one.
        traced: The traced graph.
        stage: Where the graph was taken.
        shapes: Shapes by op name, as far as they are known.
    """
    results, body = _without_results(graph_def)
    made = graph_from_graph_def(
        body, name=traced.name, stage=stage, inputs=(), outputs=(), shapes={TOP: shapes or {}}
    )
    nodes = {node.name: _as_traced(node, traced) for node in made.nodes()}
    arrows = (_with_tensor(arrow, nodes) for arrow in (*made.arrows(), *made.back_edges))
    return Graph.build(
        traced.name,
        stage,
        nodes.values(),
        arrows,
        inputs=_still_there(traced.inputs, nodes),
        captures=_still_there(traced.captures, nodes),
        outputs=tuple(_outputs(traced.outputs, results, nodes)),
        functions=made.functions,
        source=traced.source,
    )


def _without_results(graph_def: Any) -> tuple[dict[int, str], Any]:
    """Take the `_Retval` ops out; return what each result is by index, and the rest."""
    results = {
        node.attr["index"].i: node.input[0]
        for node in graph_def.node
        if node.op in RESULT_OPS and node.input
    }
    rest = type(graph_def)(versions=graph_def.versions)
    rest.library.CopyFrom(graph_def.library)
    rest.node.extend(node for node in graph_def.node if node.op not in RESULT_OPS)
    return results, rest


def _as_traced(node: Node, traced: Graph) -> Node:
    """Give an op what the traced op of its name has; for an argument, the op is that one."""
    if node.name not in traced:
        return node
    known = traced[node.name]
    if node.op in ARGUMENT_OPS:
        return replace(known, attrs=known.attrs, device=node.device)
    outputs = _better(node.outputs, known.outputs)
    if node.op != known.op:
        # A fused kernel has the name of the last op that it does, and that one's result.
        variable = known.variable if node.op.startswith(_FUSED) else None
        return replace(node, source=known.source, variable=variable, outputs=outputs)
    return replace(
        node,
        api=known.api,
        variable=known.variable,
        label=known.label,
        source=known.source,
        holds=node.holds or known.holds,
        outputs=outputs,
    )


def _better(found: tuple[TensorSpec, ...], known: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
    """Return, for each output, the shape of the traced op where none is known."""
    if len(found) != len(known):
        return found
    return tuple(
        old if new.dtype == old.dtype and _unknown(new) > _unknown(old) else new
        for new, old in zip(found, known, strict=True)
    )


def _unknown(spec: TensorSpec) -> float:
    return float("inf") if spec.shape is None else spec.shape.count(None)


def _with_tensor(arrow: Arrow, nodes: Mapping[str, Node]) -> Arrow:
    """Say on an edge what its source is known to give."""
    port, outputs = arrow.edge.source_port, nodes[arrow.source].outputs
    if port is None or port >= len(outputs) or arrow.edge.tensor == outputs[port]:
        return arrow
    return arrow._replace(edge=replace(arrow.edge, tensor=outputs[port]))


def _still_there(bindings: Iterable[Binding], nodes: Mapping[str, Node]) -> tuple[Binding, ...]:
    """Return the bindings without the tensors that are in the graph no more."""
    return tuple(
        replace(binding, tensors=tuple(ref for ref in binding.tensors if ref.node in nodes))
        for binding in bindings
    )


def _outputs(
    bindings: Iterable[Binding], results: Mapping[int, str], nodes: Mapping[str, Node]
) -> Iterable[Binding]:
    index = 0
    for binding in bindings:
        refs = []
        for _ in binding.tensors:
            source, _, port = results.get(index, "").partition(":")
            if source in nodes:
                refs.append(TensorRef(source, int(port or 0)))
            index += 1
        yield replace(binding, tensors=tuple(refs))
