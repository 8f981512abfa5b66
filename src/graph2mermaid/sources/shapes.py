"""Shapes that a graph file does not hold, worked out by TensorFlow's own shape functions."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from graph2mermaid.collector import collector_paused
from graph2mermaid.sources.attr_values import Shape
from graph2mermaid.sources.attributes import OUTPUT_SHAPES
from graph2mermaid.sources.failures import reason
from graph2mermaid.sources.node_defs import Library

Shapes = Mapping[str, tuple[Shape, ...]]
"""The shape of each output of each op."""

TOP = ""
"""The key of the graph itself, beside those of its functions."""


def has_shapes(graph_def: Any) -> bool:
    """Tell whether whoever wrote the graph wrote down the shapes as well."""
    return any(OUTPUT_SHAPES in node_def.attr for node_def in graph_def.node)


_MANY = 20_000
"""The Python objects of more ops than this are worth a search for garbage: 3 KiB each."""


def infer_shapes(graph_def: Any) -> tuple[Mapping[str, Shapes], str | None]:
    """Work out shapes by building the graph in TensorFlow, without running anything.

    Returns:
        Shapes by the raw name of each reachable function, and `TOP` for the graph itself; and,
        when TensorFlow cannot build the graph, the reason in words.
    """
    with collector_paused():
        found = _inferred(graph_def)
    if len(graph_def.node) > _MANY:
        gc.collect()
    return found


def _inferred(graph_def: Any) -> tuple[Mapping[str, Shapes], str | None]:
    from tensorflow import Graph
    from tensorflow.graph_util import import_graph_def
    from tensorflow.python.framework import function_def_to_graph as converter

    library = Library({f.signature.name: f for f in graph_def.library.function})
    reachable = [library.functions[raw] for raw in library.reachable(graph_def.node)]
    bodies = [graph_def.node, *(function.node_def for function in reachable)]
    unknown = {n.op for body in bodies for n in body if library.form(n.op) is None}
    if unknown:
        return MappingProxyType({}), f"this TensorFlow has no op {', '.join(sorted(unknown))}"
    graph = Graph()
    try:
        with graph.as_default():
            import_graph_def(graph_def, name="")
    except Exception as error:
        return MappingProxyType({}), reason(error)
    found = {TOP: _shapes_in(graph)}
    for function in reachable:
        try:
            with graph.as_default():
                # Private; with these arguments the same in TensorFlow 2.9 and 2.21.
                body = converter.function_def_to_graph(function)
        except Exception:  # noqa: S112 - the shapes of one body are not worth more
            continue
        found[function.signature.name] = _shapes_in(body)
    return found, None


def _shapes_in(graph: Any) -> Shapes:
    return {
        op.name: tuple([_shape(tensor.shape) for tensor in op.outputs])
        for op in graph.get_operations()
    }


def _shape(shape: Any) -> Shape:
    return None if shape.rank is None else tuple(shape.as_list())
