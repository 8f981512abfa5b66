"""The clusters of ops that XLA compiles together when auto-clustering is on."""

from __future__ import annotations

import re
from typing import Any

_CLUSTER = re.compile(r"^(\^?)cluster_(\d+)_(?=\d+/)")


def has_clusters(graph_def: Any) -> bool:
    """Tell whether XLA took ops of a graph out, into functions that are in no library."""
    return any(node.op == "_XlaCompile" for node in graph_def.node)


def with_numbered_clusters(graph_def: Any) -> Any:
    """Number the clusters of a graph from 0; TensorFlow numbers those of the whole process.

    Args:
        graph_def: The graph, which is changed where it has clusters.
    """
    if not has_clusters(graph_def):
        return graph_def
    found = (_CLUSTER.match(node.name) for node in graph_def.node)
    numbers = sorted({int(match[2]) for match in found if match})
    new = {number: index for index, number in enumerate(numbers)}

    def renamed(text: str) -> str:
        return _CLUSTER.sub(lambda m: f"{m[1]}cluster_{new.get(int(m[2]), m[2])}_", text)

    for node in graph_def.node:
        node.name = renamed(node.name)
        for index, text in enumerate(node.input):
            node.input[index] = renamed(text)
    return graph_def
