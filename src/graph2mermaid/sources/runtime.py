"""What the devices execute of a function, and calls of it that leave no mark."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graph2mermaid.errors import SignatureError
from graph2mermaid.graph import Arrow, Graph, Stage
from graph2mermaid.sources.attr_values import Shape
from graph2mermaid.sources.optimized_graph import to_graph
from graph2mermaid.sources.replay import held_by

_SENDS = frozenset({"_Send", "_HostSend"})
_RECEIVES = frozenset({"_Recv", "_HostRecv"})
SENT = "sent"
"""The label of an edge between two devices."""


def executed(
    partitions: Sequence[Any], traced: Graph, shapes: Mapping[str, tuple[Shape, ...]]
) -> Graph:
    """Make one graph of what each device executes.

    Every op has its device. What a `_Send` op on one device hands to a `_Recv` op on another is
    one edge with the label `sent`; neither op is in the graph.

    Args:
        partitions: The GraphDef of each device, arguments called as in the traced graph.
        traced: The traced graph.
        shapes: Shapes by op name, as far as they are known.
    """
    joined, crossing = _joined(partitions)
    graph = to_graph(joined, traced, stage=Stage.RUNTIME, shapes=shapes)
    if not crossing:
        return graph
    return Graph.build(
        graph.name,
        graph.stage,
        graph.nodes(),
        (_labelled(arrow, crossing) for arrow in (*graph.arrows(), *graph.back_edges)),
        inputs=graph.inputs,
        captures=graph.captures,
        outputs=graph.outputs,
        functions=graph.functions,
        source=graph.source,
    )


def _joined(partitions: Sequence[Any]) -> tuple[Any, frozenset[tuple[str, str]]]:
    """Put partitions together; return the graph, and the ends of every edge between devices."""
    joined = type(partitions[0])(versions=partitions[0].versions)
    joined.library.CopyFrom(partitions[0].library)
    sent = {
        _key(node): node.input[0] for part in partitions for node in part.node if node.op in _SENDS
    }
    received = {
        node.name: sent[_key(node)]
        for part in partitions
        for node in part.node
        if node.op in _RECEIVES and _key(node) in sent
    }
    arrived = {_key(n) for part in partitions for n in part.node if n.name in received}
    crossing = set()
    for node in (node for part in partitions for node in part.node):
        if node.name in received or (node.op in _SENDS and _key(node) in arrived):
            continue
        added = joined.node.add()
        added.CopyFrom(node)
        for index, text in enumerate(node.input):
            source = _sender(text, received)
            if source is not None:
                added.input[index] = source
                crossing.add((_op_of(source), node.name))
    return joined, frozenset(crossing)


def _sender(text: str, received: Mapping[str, str]) -> str | None:
    """Return what an input is on the device that it comes from, or None when it is this one."""
    tensor = received.get(_op_of(text))
    if tensor is None:
        return None
    while (before := received.get(_op_of(tensor))) is not None:  # from device to device to device
        tensor = before
    return f"^{_op_of(tensor)}" if text[0] == "^" else tensor


def _op_of(text: str) -> str:
    return text.lstrip("^").partition(":")[0]


def _key(node_def: Any) -> tuple[bytes, bytes, bytes]:
    attr = node_def.attr
    return attr["tensor_name"].s, attr["send_device"].s, attr["recv_device"].s


def _labelled(arrow: Arrow, crossing: frozenset[tuple[str, str]]) -> Arrow:
    if arrow[:2] not in crossing:
        return arrow
    return arrow._replace(edge=replace(arrow.edge, label=SENT))


# --- running it ------------------------------------------------------------------------------


@contextlib.contextmanager
def undisturbed(concrete: Any) -> Iterator[None]:
    """Put the variables of a function back to what they were.

    What it changes elsewhere (files, tables, iterators, the Python program) stays changed.
    """
    import tensorflow as tf

    values = []
    for outside, inside in concrete.graph.captures:
        held = held_by(inside) if inside.dtype == tf.resource else None
        # Tables and iterators are resources as well; reading one as a variable is an error.
        if held is None:
            continue
        with contextlib.suppress(tf.errors.OpError):
            value = tf.raw_ops.ReadVariableOp(resource=outside, dtype=tf.as_dtype(held.dtype))
            values.append((outside, tf.raw_ops.DeepCopy(x=value)))
    try:
        yield
    finally:
        for outside, value in values:
            tf.raw_ops.AssignVariableOp(resource=outside, value=value)


def given_arguments(concrete: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Return the tensors of example values, one for each input but the captured ones.

    Args:
        concrete: The function, traced for these values.
        args: Positional values.
        kwargs: Values by parameter.

    Raises:
        SignatureError: They do not fit the trace.
    """
    import tensorflow as tf

    inputs = _arguments(concrete)
    found = [
        value
        for value in tf.nest.flatten((tuple(args), dict(kwargs)), expand_composites=True)
        if hasattr(value, "dtype") and hasattr(value, "shape")
    ]
    if len(found) != len(inputs):
        raise SignatureError(
            f"the function takes {len(inputs)} tensors and there are {len(found)} values"
        )
    try:
        return [
            value if value.dtype in (tf.resource, tf.variant) else tf.cast(value, tensor.dtype)
            for value, tensor in zip(found, inputs, strict=True)
        ]
    except (TypeError, ValueError, tf.errors.OpError) as error:
        raise SignatureError(f"the values do not fit the trace: {error}") from error


def made_up_arguments(concrete: Any, traced: Graph) -> list[Any]:
    """Make tensors to run a function with.

    Unknown dimensions are 2, floats are normal with a fixed seed, integers 0, booleans False.

    Raises:
        SignatureError: A string, a handle or a tensor of unknown rank, which cannot be made up.
    """
    inputs = _arguments(concrete)
    names = {ref.node: binding.name for binding in traced.inputs for ref in binding.tensors}
    return [_made_up(tensor, names.get(tensor.op.name, tensor.op.name)) for tensor in inputs]


def _made_up(tensor: Any, name: str) -> Any:
    import numpy as np
    import tensorflow as tf

    dtype = tensor.dtype
    if dtype in (tf.string, tf.resource, tf.variant):
        raise SignatureError(f"{name} is a {dtype.name}, which cannot be made up: give --inputs")
    if tensor.shape.rank is None:
        raise SignatureError(
            f"{name} has an unknown rank, so no value can be made up: give --input "
            f"{name}={dtype.name}[2,2]"
        )
    shape = [2 if size is None else size for size in tensor.shape]
    if not (dtype.is_floating or dtype.is_complex):
        return tf.zeros(shape, dtype)
    random = np.random.default_rng(zlib.crc32(name.encode()))
    return tf.cast(tf.constant(random.standard_normal(shape)), dtype)


def _arguments(concrete: Any) -> list[Any]:
    return list(concrete.inputs[: len(concrete.inputs) - len(concrete.captured_inputs)])
