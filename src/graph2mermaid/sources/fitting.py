"""Whether shapes fit a graph that was traced without them, told without the user's Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graph2mermaid.graph import TensorSpec
from graph2mermaid.sources.examples import Places, that_work, unknown_ranks

_MOST_OPS = 2_000
"""Working out the shapes of more would take longer than it is worth."""


def that_fit(concrete: Any, places: Places) -> Places:
    """Return examples for arguments of unknown rank, with shapes that the graph's ops take.

    Args:
        concrete: The function, traced with unknown ranks.
        places: What would be shown for each argument, by its name.
    """
    graph = concrete.graph
    placeholders = {tensor.op.name for tensor in graph.inputs}
    if not places or not placeholders.issuperset(places) or len(graph.get_operations()) > _MOST_OPS:
        return places
    try:
        graph_def = graph.as_graph_def()
    except Exception:  # too large for one message, or with ops that have no form as one
        return places
    found = that_work(places, lambda shapes: _misfit(graph_def, graph, shapes))
    return found or unknown_ranks(places)


def _misfit(graph_def: Any, graph: Any, places: Mapping[str, TensorSpec]) -> BaseException | None:
    """Build the graph anew with these shapes, and return what TensorFlow says against them."""
    import tensorflow as tf

    changed = type(graph_def)()
    changed.CopyFrom(graph_def)
    for node in changed.node:
        if node.name in places:
            if (
                tf.dtypes.as_dtype(places[node.name].dtype).as_datatype_enum
                != node.attr["dtype"].type
            ):
                return TypeError("another type is another graph")
            _set_shape(node, places[node.name].shape)
        elif node.op == "ReadVariableOp":
            # In a new graph a handle does not tell the shape of its variable.
            shape = graph.get_operation_by_name(node.name).outputs[0].shape
            del node.input[:]
            node.op = "Placeholder"
            _set_shape(node, None if shape.rank is None else tuple(shape.as_list()))
    try:
        with tf.Graph().as_default():
            tf.graph_util.import_graph_def(changed, name="")
    except Exception as error:
        return error
    return None


def _set_shape(node: Any, shape: tuple[int | None, ...] | None) -> None:
    import tensorflow as tf

    node.attr["shape"].shape.CopyFrom(tf.TensorShape(shape).as_proto())
