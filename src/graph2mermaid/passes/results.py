"""Give every result of the function a node of its own."""

from __future__ import annotations

import re

from graph2mermaid.graph import Arrow, Edge, Graph, Node, NodeKind, TensorSpec, with_ends

_UNNAMED = re.compile(r"output_\d+")


def with_results(graph: Graph) -> Graph:
    """Add an output node for each result that has tensors, fed by the ops that make it.

    A result without a name of its own takes the Python variable's.
    """
    nodes: list[Node] = []
    arrows: list[Arrow] = []
    taken: set[str] = set()
    for binding in graph.outputs:
        tensors = [ref for ref in binding.tensors if ref.node in graph]
        if not tensors:
            continue
        name = f"output:{binding.name}"
        while name in taken or name in graph:
            name += "'"
        taken.add(name)
        specs = tuple(graph.tensor(ref) or TensorSpec("?") for ref in tensors)
        label = binding.name
        if _UNNAMED.fullmatch(label) and len(tensors) == 1:
            label = _assigned_name(graph, tensors[0].node) or label
        attrs = {"type": binding.type} if len(tensors) > 1 and binding.type else {}
        nodes.append(Node(name, "output", NodeKind.OUTPUT, specs, label=label, attrs=attrs))
        for port, (ref, spec) in enumerate(zip(tensors, specs, strict=True)):
            edge = Edge(source_port=ref.port, target_port=port, tensor=spec)
            arrows.append(Arrow(ref.node, name, edge))
    return with_ends(graph, nodes, arrows)


def _assigned_name(graph: Graph, name: str) -> str | None:
    """Follow Identity ops back to the op that a user's variable holds."""
    node = graph[name]
    while node.op == "Identity" and node.variable is None:
        before = [a for a in graph.incoming(node.name) if a.edge.target_port == 0]
        if not before or before[0].edge.source_port:
            return None
        node = graph[before[0].source]
    return node.tensor_name(0) if node.variable and len(node.outputs) == 1 else None
