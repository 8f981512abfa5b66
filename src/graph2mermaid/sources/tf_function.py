"""A traced function (ConcreteFunction) as a Graph: every op, under the names the user knows."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graph2mermaid.graph import Binding, Graph, Node, NodeKind, SourceLine, Stage
from graph2mermaid.sources.bindings import input_bindings, output_bindings
from graph2mermaid.sources.bodies import Bodies, with_calls, with_stable_names
from graph2mermaid.sources.callsite import is_user_file, shown_path
from graph2mermaid.sources.captured import Captured, capture_bindings, captures_of, variables_of
from graph2mermaid.sources.op_walk import walk


def graph_of(
    concrete: Any,
    *,
    name: str,
    stage: Stage = Stage.TRACED,
    python_function: Any = None,
    names: Mapping[str, str] | None = None,
) -> Graph:
    """Walk a ConcreteFunction's FuncGraph.

    Args:
        concrete: A `tf.types.experimental.ConcreteFunction`, or one of a SavedModel's signatures.
        name: What the function is called in a report.
        stage: Recorded as it is.
        python_function: What was traced, where it is known: its definition is the graph's source.
        names: The user's own names of places in arguments: `left` for `inputs[0]`.

    Returns:
        The graph with every op of the FuncGraph, its arguments and results under the names of
        the function's signature, and every function that an op refers to.
    """
    func_graph = concrete.graph
    bodies = Bodies(func_graph)
    walked = walk(func_graph)
    captures = captures_of(func_graph, variables_of(concrete))
    arguments = func_graph.inputs[: len(func_graph.inputs) - len(captures)]
    inputs = input_bindings(concrete, arguments, python_function, names or {})
    nodes = _label(walked.nodes, inputs, captures)
    functions = bodies.reach(walked.calls)
    graph = Graph.build(
        name,
        stage,
        (with_calls(node, walked.calls, bodies) for node in nodes.values()),
        walked.arrows,
        inputs=inputs,
        captures=capture_bindings(captures),
        outputs=output_bindings(concrete, func_graph.outputs),
        functions=functions,
        source=_definition(python_function),
    )
    return with_stable_names(graph)


def _label(
    nodes: Mapping[str, Node], inputs: Sequence[Binding], captures: Sequence[Captured]
) -> dict[str, Node]:
    """Mark arguments and captures among the nodes, and give them the user's names."""
    # A placeholder that is no argument (the default of an optional input, a leftover of pruning)
    # is an op like any other.
    labelled = {
        name: replace(node, kind=NodeKind.OP) if node.kind is NodeKind.INPUT else node
        for name, node in nodes.items()
    }
    for binding in inputs:
        for ref, part in zip(binding.tensors, _part_names(binding), strict=True):
            labelled[ref.node] = replace(labelled[ref.node], kind=NodeKind.INPUT, label=part)
    for capture in captures:
        (ref,) = capture.binding.tensors
        labelled[ref.node] = replace(
            labelled[ref.node],
            kind=capture.kind,
            label=capture.binding.name,
            holds=capture.holds,
            value=capture.value,
        )
    return labelled


_PARTS: Mapping[str, tuple[str, ...]] = {
    "RaggedTensor": ("values", "row_splits"),
    "SparseTensor": ("indices", "values", "dense_shape"),
    "IndexedSlices": ("values", "indices", "dense_shape"),
}


def _part_names(binding: Binding) -> list[str]:
    """Name the tensors behind one argument: `sp.indices`; a plain tensor is the argument itself."""
    if len(binding.tensors) == 1:
        return [binding.name]
    parts = _PARTS.get(binding.type.partition(" ")[0], ())
    if len(parts) != len(binding.tensors):
        parts = tuple(f"part{i}" for i in range(len(binding.tensors)))
    return [f"{binding.name}.{part}" for part in parts]


def _definition(python_function: Any) -> SourceLine | None:
    """Return where a function is defined; for a callable object, where its `__call__` is."""
    function = python_function
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    if not hasattr(function, "__code__") and not hasattr(function, "__func__"):
        function = vars(type(function)).get("__call__") or type(function).__call__
    code = getattr(inspect.unwrap(function), "__code__", None) if function else None
    if code is None or not is_user_file(code.co_filename):
        return None
    return SourceLine(shown_path(code.co_filename), code.co_firstlineno, code.co_name)
