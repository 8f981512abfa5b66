"""The functions that ops of a traced graph call, under names without TensorFlow's counters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from graph2mermaid.graph import (
    Arrow,
    Binding,
    Call,
    Graph,
    Node,
    NodeKind,
    Stage,
    TensorRef,
)
from graph2mermaid.sources.bindings import plain_outputs, ref_to
from graph2mermaid.sources.function_def import graph_from_function_def
from graph2mermaid.sources.names import argument_name, unique_names
from graph2mermaid.sources.op_walk import Walked, walk
from graph2mermaid.sources.structure import tensor_spec


class Bodies:
    """The functions that ops of a FuncGraph may name, and the ones that they do."""

    def __init__(self, func_graph: Any) -> None:
        self._holders: list[Any] = [func_graph]
        self._walked: dict[str, tuple[Any, Walked]] = {}
        self._graphs: dict[str, Graph] = {}
        self._names: dict[str, str] = {}

    def reach(self, calls: Mapping[str, list[tuple[str, str]]]) -> dict[str, Graph]:
        """Walk every function reachable from these calls; return the bodies by unique name."""
        order: list[str] = []
        queue = [name for pairs in calls.values() for _, name in pairs]
        while queue:
            raw = queue.pop(0)
            if raw in order:
                continue
            inner = self._read(raw)
            if inner is not None:
                order.append(raw)
                queue += inner
        self._names = unique_names(order)
        return {self._names[raw]: self._body(raw) for raw in order}

    def name(self, raw: str) -> str:
        """Return the unique name of a reached function; a missing one keeps its own."""
        return self._names.get(raw, raw)

    def _read(self, raw: str) -> list[str] | None:
        """Read one body; return the raw names that it calls, or None when it is nowhere."""
        func_graph = self._func_graph(raw)
        if func_graph is not None:
            self._holders.append(func_graph)
            walked = walk(func_graph)
            self._walked[raw] = (func_graph, walked)
            return [name for pairs in walked.calls.values() for _, name in pairs]
        definition = self._definition(raw)
        if definition is None:
            return None
        graph = graph_from_function_def(definition, name=raw)
        self._graphs[raw] = graph
        return [call.function for node in graph.nodes() for call in node.calls]

    def _func_graph(self, raw: str) -> Any:
        """Find the Python FuncGraph of a library function.

        Private `Graph._functions` (2.9.3 and 2.21.0) holds AtomicFunctions or
        _EagerDefinedFunctions; both have `.graph` where the function was traced in this process.
        """
        for holder in self._holders:
            function = holder._functions.get(raw)
            graph = getattr(function, "graph", None)
            if graph is not None and hasattr(graph, "get_operations"):
                return graph
        return None

    def _definition(self, raw: str) -> Any:
        """Return the FunctionDef, from a graph that holds it or from the runtime."""
        from tensorflow.python.eager import context

        for holder in self._holders:
            function = holder._functions.get(raw)
            if function is not None:
                return function.definition if hasattr(function, "definition") else None
        try:
            return context.context().get_function_def(raw)
        except Exception:  # its type differs between versions
            return None

    def _body(self, raw: str) -> Graph:
        if raw in self._graphs:
            return _renamed(self._graphs[raw], self.name)
        func_graph, walked = self._walked[raw]
        inputs = tuple(
            Binding(t.op.name, (ref_to(t),), str(tensor_spec(t))) for t in func_graph.inputs
        )
        nodes = dict(walked.nodes)
        for binding in inputs:
            (ref,) = binding.tensors
            nodes[ref.node] = replace(nodes[ref.node], kind=NodeKind.INPUT)
        return with_stable_names(
            Graph.build(
                self.name(raw),
                Stage.TRACED,
                (with_calls(node, walked.calls, self) for node in nodes.values()),
                walked.arrows,
                inputs=inputs,
                outputs=plain_outputs(func_graph.outputs),
            )
        )


def with_calls(node: Node, calls: Mapping[str, list[tuple[str, str]]], bodies: Bodies) -> Node:
    """Return a node with the functions that it refers to, under their unique names."""
    if node.name not in calls:
        return node
    found = tuple(Call(role, bodies.name(raw)) for role, raw in calls[node.name])
    return replace(node, calls=found)


def with_stable_names(graph: Graph) -> Graph:
    """Rename arguments whose names hold a counter of the whole process.

    A placeholder for a captured tensor without a name is called by that tensor's number
    (`cond/54`), and the ones that fill up a loop condition by the condition's.
    """
    names: dict[str, str] = {}
    refs = [ref for binding in (*graph.inputs, *graph.captures) for ref in binding.tensors]
    for index, argument in enumerate(refs):
        scope, slash, last = argument.node.rpartition("/")
        stable = argument_name(argument.node)
        if last.isdecimal():
            stable = f"{scope}{slash}captured_{index}"
        if stable != argument.node and stable not in graph:
            names[argument.node] = stable
    if not names:
        return graph

    def ref(old: TensorRef) -> TensorRef:
        return TensorRef(names.get(old.node, old.node), old.port)

    def bindings(old: tuple[Binding, ...]) -> tuple[Binding, ...]:
        return tuple(
            replace(b, name=names.get(b.name, b.name), tensors=tuple(map(ref, b.tensors)))
            for b in old
        )

    return Graph.build(
        graph.name,
        graph.stage,
        [replace(node, name=names.get(node.name, node.name)) for node in graph.nodes()],
        [Arrow(names.get(a.source, a.source), a.target, a.edge) for a in graph.arrows()],
        inputs=bindings(graph.inputs),
        captures=bindings(graph.captures),
        outputs=bindings(graph.outputs),
        functions=graph.functions,
        source=graph.source,
    )


def _renamed(graph: Graph, name: Callable[[str], str]) -> Graph:
    nodes = [
        replace(node, calls=tuple(Call(c.role, name(c.function)) for c in node.calls))
        for node in graph.nodes()
    ]
    return Graph.build(
        name(graph.name),
        graph.stage,
        nodes,
        [*graph.arrows(), *graph.back_edges],
        inputs=graph.inputs,
        outputs=graph.outputs,
    )
