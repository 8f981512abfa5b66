"""What the tests read out of captures, and what TensorFlow itself says of the same function."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import graph2mermaid
from graph2mermaid import Capture, Graph, Stage
from graph2mermaid.mermaid.diagram import Look


def labels(capture: Capture) -> list[str]:
    """Return the words of every box of every diagram, lines joined by line feeds."""
    figures = capture.report().figures()
    return ["\n".join(box.lines) for figure in figures for box in figure.diagram.boxes.values()]


def edge_labels(capture: Capture) -> list[str]:
    """Return the words on every edge of every diagram."""
    figures = capture.report().figures()
    return ["\n".join(link.lines) for figure in figures for link in figure.diagram.links]


def looks(capture: Capture) -> list[Look]:
    """Return how the boxes of the first diagram are drawn."""
    figure = next(capture.report().figures())
    return [box.look for box in figure.diagram.boxes.values()]


def op_types(graph: Graph) -> Counter[str]:
    """Count the ops of a graph, bodies left out."""
    return Counter(node.op for node in graph.nodes())


@functools.cache
def with_onednn() -> bool:
    """Tell whether oneDNN is on in this process, by who computes a product."""
    import tensorflow as tf

    capture = graph2mermaid.optimize(lambda x: tf.matmul(x, x) * 2.0, tf.TensorSpec([4, 4]))
    return "_MklMatMul" in op_types(capture.graphs[Stage.RUNTIME])


def recounted(graph_def: Any) -> tuple[Counter[str], int]:
    """Count the op types and the edges of a GraphDef: each of its inputs is one edge."""
    types = Counter(node.op for node in graph_def.node)
    return types, sum(len(node.input) for node in graph_def.node)


def counted(graph: Graph) -> tuple[Counter[str], int]:
    """Count the same of a graph."""
    return op_types(graph), graph.edge_count


def rows(markdown: str, first: str) -> list[str]:
    """Return the other cells of a table row that starts with this cell."""
    line = next(line for line in markdown.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]
