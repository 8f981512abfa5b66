"""Draw tensors as nodes: the figure of op, tensor, op that textbooks have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graph2mermaid.graph import Arrow, EdgeKind, Graph, Node, NodeKind, TensorRef

_OWN_TENSOR = frozenset({NodeKind.INPUT, NodeKind.CONST, NodeKind.VARIABLE, NodeKind.OUTPUT})
# What stands for several nodes: which of them a tensor comes from is not known here.
_SEVERAL = frozenset({NodeKind.GROUP, NodeKind.ELIDED})


def with_tensor_nodes(graph: Graph) -> Graph:
    """Put a node on every tensor that flows between ops.

    Arguments, constants and variables are tensors already, and a result's node is the tensor
    that is returned, unless the tensor is one of a loop; so `x -> op -> y -> op -> result` needs
    one node more than it has ops. An edge that stands for several tensors, or for a way through
    what is not drawn, stays an edge.
    """
    results = _returned(graph)
    nodes: dict[str, Node] = {node.name: node for node in graph.nodes()}
    arrows: dict[tuple[str, str, object], Arrow] = {}
    position: dict[str, list[Node]] = {}
    for index, arrow in enumerate(graph.arrows()):
        source = graph[arrow.source]
        ref = _carried(arrow)
        if ref is None or source.kind in _OWN_TENSOR | _SEVERAL:
            arrows[arrow.source, arrow.target, index] = arrow
            continue
        name, word = _words(source, arrow)
        holder = results.get(ref)
        if holder is None:
            holder = f"tensor:{ref}"
            if holder not in nodes:
                label = name or str(ref).removesuffix(":0")
                spec = (arrow.edge.tensor,) if arrow.edge.tensor else ()
                tensor = Node(holder, "tensor", NodeKind.TENSOR, spec, label=label)
                nodes[holder] = tensor
                position.setdefault(arrow.source, []).append(tensor)
        edge = replace(arrow.edge, target_port=0, label=None)
        arrows.setdefault((arrow.source, holder, ref.port), Arrow(arrow.source, holder, edge))
        if holder != arrow.target:
            onward = replace(arrow.edge, source_port=0, label=word)
            arrows[holder, arrow.target, index] = Arrow(holder, arrow.target, onward)
    ordered: list[Node] = []
    for node in graph.nodes():
        ordered += [node, *position.get(node.name, [])]
    built = Graph.build(graph.name, graph.stage, ordered, arrows.values(), source=graph.source)
    return replace(built, back_edges=graph.back_edges)


def homes_of_tensors(graph: Graph, home: Mapping[str, str]) -> dict[str, str]:
    """Return the frame of each tensor's node: that of the op that makes it."""
    return {
        arrow.target: home[arrow.source]
        for arrow in graph.arrows()
        if graph[arrow.target].kind is NodeKind.TENSOR and arrow.source in home
    }


def _carried(arrow: Arrow) -> TensorRef | None:
    """Return the one tensor that an edge carries."""
    if arrow.edge.kind is EdgeKind.CONTROL or arrow.edge.source_port is None:
        return None
    return TensorRef(arrow.source, arrow.edge.source_port)


def _words(source: Node, arrow: Arrow) -> tuple[str | None, str | None]:
    """Return the name a user knows a tensor by, and what else is said about an edge.

    The values of a diamond have their names on the edges: `x`, `then: x`.
    """
    label = arrow.edge.label
    if label is not None and _is_loop(source):
        return label, None
    if label is not None and source.op.endswith(("If", "Case")):
        word, _, name = label.partition(": ")
        return name or None, word
    return source.tensor_name(arrow.edge.source_port), label


def _is_loop(node: Node) -> bool:
    return node.kind is NodeKind.CONTROL_FLOW and node.op.endswith("While")


def _returned(graph: Graph) -> dict[TensorRef, str]:
    """Return the tensors that are one result each, and the result's node.

    A tensor that goes round in a loop, or that a loop reads, is not a result yet.
    """
    found: dict[TensorRef, list[str]] = {}
    readers: dict[TensorRef, set[str]] = {}
    for arrow in graph.arrows():
        ref = _carried(arrow)
        if ref is None or _is_loop(graph[arrow.source]):
            continue
        node = graph[arrow.target]
        if node.kind is NodeKind.OUTPUT and len(node.outputs) == 1:
            found.setdefault(ref, []).append(node.name)
        else:
            readers.setdefault(ref, set()).add(node.name)
    single = {ref: names[0] for ref, names in found.items() if len(names) == 1}
    if not graph.back_edges or readers.keys().isdisjoint(single):
        return single
    inside = _in_loops(graph)
    return {ref: name for ref, name in single.items() if inside.isdisjoint(readers.get(ref, ()))}


def _in_loops(graph: Graph) -> set[str]:
    """Return the nodes that a back edge leads from, and all that makes their values after it."""
    found: set[str] = set()
    for arrow in graph.back_edges:
        found |= {arrow.source, *graph.ancestors([arrow.source])} - graph.ancestors([arrow.target])
    return found
