"""Draw tensors as nodes: the figure of op, tensor, op that textbooks have."""

from __future__ import annotations

from dataclasses import replace

from graph2mermaid.graph import Arrow, EdgeKind, Graph, Node, NodeKind, TensorRef

_OWN_TENSOR = frozenset({NodeKind.INPUT, NodeKind.CONST, NodeKind.VARIABLE, NodeKind.OUTPUT})


def with_tensor_nodes(graph: Graph) -> Graph:
    """Put a node on every tensor that flows between ops.

    Arguments, constants and variables are tensors already, and a result's node is the tensor
    that is returned; so `x -> op -> y -> op -> result` needs one node more than it has ops.
    """
    results = _returned(graph)
    nodes: dict[str, Node] = {node.name: node for node in graph.nodes()}
    arrows: dict[tuple[str, str, object], Arrow] = {}
    position: dict[str, list[Node]] = {}
    for index, arrow in enumerate(graph.arrows()):
        source = graph[arrow.source]
        if arrow.edge.kind is EdgeKind.CONTROL or source.kind in _OWN_TENSOR:
            arrows[arrow.source, arrow.target, index] = arrow
            continue
        ref = TensorRef(arrow.source, arrow.edge.source_port or 0)
        holder = results.get(ref)
        if holder is None:
            holder = f"tensor:{ref}"
            if holder not in nodes:
                label = source.tensor_name(ref.port) or str(ref).removesuffix(":0")
                spec = (arrow.edge.tensor,) if arrow.edge.tensor else ()
                tensor = Node(holder, "tensor", NodeKind.TENSOR, spec, label=label)
                nodes[holder] = tensor
                position.setdefault(arrow.source, []).append(tensor)
        edge = replace(arrow.edge, target_port=0, label=None)
        arrows.setdefault((arrow.source, holder, ref.port), Arrow(arrow.source, holder, edge))
        if holder != arrow.target:
            arrows[holder, arrow.target, index] = Arrow(
                holder, arrow.target, replace(arrow.edge, source_port=0)
            )
    ordered: list[Node] = []
    for node in graph.nodes():
        ordered += [node, *position.get(node.name, [])]
    built = Graph.build(graph.name, graph.stage, ordered, arrows.values(), source=graph.source)
    return replace(built, back_edges=graph.back_edges)


def _returned(graph: Graph) -> dict[TensorRef, str]:
    """Return the tensors that are one result each, and the result's node."""
    found: dict[TensorRef, list[str]] = {}
    for node in graph.nodes():
        if node.kind is NodeKind.OUTPUT and len(node.outputs) == 1:
            for arrow in graph.incoming(node.name):
                if arrow.edge.kind is EdgeKind.DATA:
                    ref = TensorRef(arrow.source, arrow.edge.source_port or 0)
                    found.setdefault(ref, []).append(node.name)
    return {ref: names[0] for ref, names in found.items() if len(names) == 1}
