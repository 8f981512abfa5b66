"""The graphs that the runtime makes of a function, recorded without running it.

The first call of a function places its ops on devices, puts called functions, loops and branches
in place, optimizes the result and divides it by device. All of that happens before the arguments
are looked at, so a call that must fail (one argument has another type than the function's) leaves
the graphs and runs nothing. With good arguments the same way records a function that runs.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graph2mermaid.sources.failures import reason

_COUNTER = itertools.count()
_EXTRA = "graph2mermaid_unused"
_MISMATCH = "was expected to be a"
"""From the words with which the runtime refuses an argument of another type."""


class NotRecordedError(Exception):
    """The runtime made no graph of a function. One line."""


@dataclass(frozen=True)
class Recorded:
    """GraphDefs of one function at three points."""

    before: Any
    """As it was handed to the runtime: arguments are `_Arg` ops, results `_Retval` ops."""
    optimized: Any
    """After Grappler, or None when the runtime did not get that far."""
    partitions: tuple[Any, ...]
    """What each device executes."""
    failure: str | None = None
    """Why it did not get further: an op that has no kernel here. One line."""


def record(concrete: Any, arguments: Sequence[Any] | None = None) -> Recorded:
    """Let the runtime make its graphs of a ConcreteFunction, as on its first call.

    Args:
        concrete: The function; whether it ran before does not matter.
        arguments: A tensor for each of its inputs but the captured ones, and it runs; without
            them it does not.

    Raises:
        NotRecordedError: Nothing was recorded, because XLA compiles it as a whole; or it was to
            run and failed.
    """
    import tensorflow as tf
    from tensorflow.python.eager import context

    definition = _copy(concrete)
    with context.eager_mode():
        given = _stand_ins(concrete) if arguments is None else arguments
        inputs = [*given, *concrete.captured_inputs]
        if arguments is None and not _spoil(inputs):
            _add_argument(definition)
            inputs.append(tf.constant(False))
        with _recording() as recorded:
            failure = _call(definition, inputs, len(concrete.outputs))
            graphs = recorded()
    if arguments is not None and failure is not None:
        raise NotRecordedError(_words(definition, failure)) from failure
    found = _ours(graphs, concrete)
    if found is None:
        raise NotRecordedError(_why_not(definition, failure))
    failed = arguments is None and _MISMATCH not in str(failure)
    return replace(found, failure=_words(definition, failure)) if failed else found


def _copy(concrete: Any) -> Any:
    """Return the definition under a new name: a function that ran is not recorded again."""
    from tensorflow.core.framework import function_pb2

    definition = function_pb2.FunctionDef()
    definition.CopyFrom(concrete.function_def)
    definition.signature.name = f"__graph2mermaid_{next(_COUNTER)}"
    return definition


def _stand_ins(concrete: Any) -> list[Any]:
    """Return a tensor for each argument; they are never read, only their types and devices are."""
    import tensorflow as tf

    count = len(concrete.inputs) - len(concrete.captured_inputs)
    return [_stand_in(tensor, tf) for tensor in concrete.inputs[:count]]


def _stand_in(tensor: Any, tf: Any) -> Any:
    if tensor.dtype == tf.resource:
        return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name=_EXTRA)
    if tensor.dtype == tf.variant:
        return tf.raw_ops.EmptyTensorList(
            element_shape=tf.constant(-1), max_num_elements=tf.constant(-1), element_dtype=tf.int32
        )
    if tensor.dtype == tf.string:
        return tf.constant("")
    return tf.raw_ops.Cast(x=tf.constant(0), DstT=tensor.dtype)


def _spoil(inputs: list[Any]) -> bool:
    """Give one input another type, so that the call fails; handles stay: they tell what they hold.

    Returns:
        Whether there is such an input.
    """
    import tensorflow as tf

    for index, tensor in enumerate(inputs):
        dtype = getattr(tensor, "dtype", None)
        if dtype is not None and dtype not in (tf.resource, tf.variant):
            inputs[index] = tf.constant(0.0 if dtype == tf.bool else False)
            return True
    return False


def _add_argument(definition: Any) -> None:
    """Add an argument that can be spoilt, of type float32."""
    definition.signature.input_arg.add(name=_EXTRA, type=1)
    attr = definition.arg_attr[len(definition.signature.input_arg) - 1].attr
    attr["_output_shapes"].list.shape.add()


def _call(definition: Any, inputs: Sequence[Any], results: int) -> Exception | None:
    """Call a function once; return what it raised.

    The private modules are the same on 2.9.3 and 2.21.0.
    """
    from tensorflow.core.protobuf import config_pb2
    from tensorflow.python.eager import context, execute

    ctx = context.context()
    options = ctx.function_call_options
    config = options.config_proto_serialized
    if definition.signature.input_arg and definition.signature.input_arg[-1].name == _EXTRA:
        # Graphs below a number of ops are left alone; there is one more now.
        proto = config_pb2.ConfigProto.FromString(config)
        rewrite = proto.graph_options.rewrite_options
        rewrite.min_graph_nodes = (rewrite.min_graph_nodes or 4) + (rewrite.min_graph_nodes >= 0)
        config = proto.SerializeToString()
    attrs = ("executor_type", options.executor_type or "", "config_proto", config)
    name = definition.signature.name
    ctx.add_function_def(definition)
    try:
        execute.execute(name, results, list(inputs), attrs, ctx)
    except Exception as error:  # of many types, a Python function's own among them
        return error
    finally:
        ctx.remove_function(name)
    return None


@contextlib.contextmanager
def _recording() -> Iterator[Any]:
    """Record what the runtime instantiates.

    Yields:
        A function that returns the graphs so far.
    """
    import tensorflow as tf
    from tensorflow.python.eager import context

    # The graphs of a call that failed are handed over when the next op succeeds; the first time
    # that an op is used it is recorded too, and would be mixed with them.
    anything = tf.constant(0.0)
    tf.identity(anything)

    def recorded() -> Sequence[Any]:
        tf.identity(anything)
        found: Sequence[Any] = context.export_run_metadata().function_graphs
        return found

    context.enable_run_metadata()
    try:
        context.export_run_metadata()
        yield recorded
    finally:
        context.disable_run_metadata()
        context.context().disable_graph_collection()


def _ours(graphs: Sequence[Any], concrete: Any) -> Recorded | None:
    """Choose the function among everything that was recorded, by its ops' names.

    Every eager op that is used for the first time is recorded as a graph of its own.
    """
    inputs = {tensor.op.name for tensor in concrete.inputs}
    own = {op.name for op in concrete.graph.get_operations()} - inputs
    count = len(concrete.inputs)

    def fits(graph: Any) -> bool:
        nodes = graph.pre_optimization_graph.node
        arguments = sum(node.op == "_Arg" and node.name != _EXTRA for node in nodes)
        body = {node.name for node in nodes if node.op not in ("_Arg", "_Retval")}
        return arguments == count and body == own

    found = next(filter(fits, graphs), None)
    if found is None:
        return None
    graphs = (found.pre_optimization_graph, found.post_optimization_graph, *found.partition_graphs)
    for graph in graphs:
        for node in [node for node in graph.node if node.name == _EXTRA]:
            graph.node.remove(node)
    before, optimized, *partitions = graphs
    empty = not optimized.node and bool(before.node)
    return Recorded(before, None if empty else optimized, tuple(partitions))


def _why_not(definition: Any, failure: Exception | None) -> str:
    if "_XlaMustCompile" in definition.attr and definition.attr["_XlaMustCompile"].b:
        return "XLA compiles it as a whole (jit_compile=True)"
    return _words(definition, failure) or "the runtime recorded no graph of it"


def _words(definition: Any, failure: Exception | None) -> str:
    """Return what the runtime said, without the name that the function has only here."""
    words = reason(failure) if failure is not None else ""
    name = definition.signature.name
    return words.replace(f" [Op:{name}]", "").replace(f"{{{{function_node {name}}}}} ", "")
