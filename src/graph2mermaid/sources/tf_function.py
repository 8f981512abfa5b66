"""A traced function (ConcreteFunction) as a Graph: every op, under the names the user knows."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graph2mermaid.graph import (
    Arrow,
    Binding,
    Call,
    Edge,
    EdgeKind,
    Graph,
    Node,
    NodeKind,
    SourceLine,
    Stage,
    TensorRef,
    TensorSpec,
)
from graph2mermaid.sources.attributes import (
    called_functions,
    constant_text,
    node_kind,
    shown_attrs,
    value_text,
)
from graph2mermaid.sources.callsite import CallSite, call_site, is_user_file, shown_path
from graph2mermaid.sources.function_def import graph_from_function_def
from graph2mermaid.sources.names import argument_name, unique_names
from graph2mermaid.sources.statements import assigned_variables
from graph2mermaid.sources.structure import argument_leaves, leaves, tensor_spec

_CONTROL = Edge(EdgeKind.CONTROL, None, None)


def graph_of(
    concrete: Any, *, name: str, stage: Stage = Stage.TRACED, python_function: Any = None
) -> Graph:
    """Walk a ConcreteFunction's FuncGraph.

    Args:
        concrete: A `tf.types.experimental.ConcreteFunction`, or one of a SavedModel's signatures.
        name: What the function is called in a report.
        stage: Recorded as it is.
        python_function: What was traced, where it is known: its definition is the graph's source.

    Returns:
        The graph with every op of the FuncGraph, its arguments and results under the names of
        the function's signature, and every function that an op refers to.
    """
    func_graph = concrete.graph
    library = _Library(func_graph)
    walked = _walk(func_graph)
    captures = _captures(func_graph, _variables(concrete))
    arguments = func_graph.inputs[: len(func_graph.inputs) - len(captures)]
    inputs = _input_bindings(concrete, arguments, python_function)
    nodes = _label(walked.nodes, inputs, captures)
    functions = library.reach(walked.calls)
    graph = Graph.build(
        name,
        stage,
        (_with_calls(node, walked.calls, library) for node in nodes.values()),
        walked.arrows,
        inputs=inputs,
        captures=_capture_bindings(captures),
        outputs=_output_bindings(concrete, func_graph.outputs),
        functions=functions,
        source=_definition(python_function),
    )
    return _with_stable_names(graph)


@dataclass
class _Walked:
    nodes: dict[str, Node] = field(default_factory=dict)
    arrows: list[Arrow] = field(default_factory=list)
    calls: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """For each op that refers to functions: (role, raw name in the library)."""


def _walk(func_graph: Any) -> _Walked:
    """Read every op of one FuncGraph, function bodies left alone."""
    walked = _Walked()
    sites: list[tuple[Node, CallSite]] = []
    for op in func_graph.get_operations():
        # On 2.9.3 a loop's captures are, in the graph of its condition, placeholders whose Python
        # side was never made: both these properties raise an AttributeError.
        site = call_site(getattr(op, "traceback", None), op.type)
        attrs = op.node_def.attr
        calls = list(called_functions(attrs))
        if calls:
            walked.calls[op.name] = calls
        node = Node(
            op.name,
            op.type,
            node_kind(op.type),
            outputs=tuple(tensor_spec(tensor) for tensor in op.outputs),
            api=site.api,
            value=constant_text(attrs["value"].tensor) if op.type == "Const" else None,
            attrs=shown_attrs(attrs, _attr_defaults(op.type)),
            device=op.device,
            source=site.source,
        )
        sites.append((node, site))
        walked.arrows += _arrows_into(op)
    variables = assigned_variables([(node, site.statements) for node, site in sites], walked.arrows)
    for node, _ in sites:
        variable = variables.get(node.name)
        walked.nodes[node.name] = replace(node, variable=variable) if variable else node
    return walked


def _arrows_into(op: Any) -> Iterator[Arrow]:
    for port, tensor in enumerate(getattr(op, "inputs", ())):
        producer = tensor.op
        argument = _argument_name(op, port) if producer.type == "Const" else None
        edge = Edge(EdgeKind.DATA, tensor.value_index, port, tensor_spec(tensor), argument)
        yield Arrow(producer.name, op.name, edge)
    for producer in op.control_inputs:
        yield Arrow(producer.name, op.name, _CONTROL)


def _argument_name(op: Any, port: int) -> str | None:
    """Return the op definition's own name for an input; list arguments take several ports."""
    for argument in op.op_def.input_arg:
        if argument.number_attr:
            length = op.get_attr(argument.number_attr)
        elif argument.type_list_attr:
            length = len(op.get_attr(argument.type_list_attr))
        else:
            length = 1
        if port < length:
            return str(argument.name)
        port -= length
    return None


@dataclass(frozen=True)
class _Capture:
    binding: Binding
    kind: NodeKind
    holds: TensorSpec | None = None
    value: str | None = None
    whole: int | None = None
    """For one replica's part of a distributed variable: which variable that is."""


def _variables(concrete: Any) -> Sequence[Any]:
    """Return the variables that are still there; the graph holds them only weakly."""
    try:
        return tuple(getattr(concrete, "variables", ()))
    except AssertionError:  # one was deleted since: "Called a function referencing variables ..."
        return ()


def _captures(func_graph: Any, variables: Sequence[Any]) -> list[_Capture]:
    """Tell apart what the function takes from around it: variables, tables, constants.

    `FuncGraph.captures` gives pairs (outside, placeholder inside) in the order of the last
    inputs, on 2.9.3 and 2.21.0.
    """
    by_handle = {id(v.handle): v for v in variables if hasattr(v, "handle")}
    by_handle |= {id(part.handle): v for v in variables for part in getattr(v, "values", ())}
    found = [
        _captured(outside, inside, by_handle.get(id(outside)))
        for outside, inside in func_graph.captures
    ]
    deferred = getattr(func_graph, "deferred_internal_captures", ())
    return found + [_captured(None, inside, None) for inside in deferred]


def _captured(outside: Any, inside: Any, variable: Any) -> _Capture:
    ref = TensorRef(inside.op.name, inside.value_index)
    spec = tensor_spec(inside)
    if variable is not None:
        value = tensor_spec(variable)
        name = str(variable.name).removesuffix(":0")
        binding = Binding(name, (ref,), f"Variable {value}")
        return _Capture(binding, NodeKind.VARIABLE, value, whole=_whole(variable))
    if spec.dtype in ("resource", "variant"):
        holds = _handle_data(inside)
        words = spec.dtype if holds is None else f"{spec.dtype} {holds}"
        return _Capture(Binding(ref.node, (ref,), words), NodeKind.VARIABLE, holds)
    text = value_text(outside.numpy()) if hasattr(outside, "numpy") else None
    words = f"constant {spec}" if hasattr(outside, "numpy") else str(spec)
    return _Capture(Binding(ref.node, (ref,), words), NodeKind.CONST, None, text)


def _whole(variable: Any) -> int | None:
    """Return which distributed variable one is a replica's part of.

    The private link is on the variable in 2.9.3, and on its handle in 2.21.0.
    """
    for part in (variable, getattr(variable, "handle", None)):
        link = getattr(part, "_distributed_container", None)
        whole = link() if callable(link) else None
        if whole is not None:
            return id(whole)
    return None


def _capture_bindings(captures: Sequence[_Capture]) -> tuple[Binding, ...]:
    """Return what a user takes for one capture: a variable, whatever its number of replicas."""
    found: dict[tuple[str, int], Binding] = {}
    for index, capture in enumerate(captures):
        key = ("one", index) if capture.whole is None else ("whole", capture.whole)
        first = found.get(key)
        tensors = (*(first.tensors if first else ()), *capture.binding.tensors)
        found[key] = replace(first or capture.binding, tensors=tensors)
    return tuple(found.values())


def _handle_data(tensor: Any) -> TensorSpec | None:
    """Return what a resource handle points to (private API, checked on 2.9.3 and 2.21.0)."""
    import tensorflow as tf
    from tensorflow.python.ops import handle_data_util

    data = handle_data_util.get_resource_handle_data(tensor)
    if not data or not data.is_set or len(data.shape_and_type) != 1:
        return None
    item = data.shape_and_type[0]
    shape = tf.TensorShape(item.shape)
    return tensor_spec(tf.TensorSpec(shape, tf.dtypes.as_dtype(item.dtype)))


def _label(
    nodes: Mapping[str, Node], inputs: Sequence[Binding], captures: Sequence[_Capture]
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


def _input_bindings(
    concrete: Any, arguments: Sequence[Any], python_function: Any
) -> tuple[Binding, ...]:
    signature = getattr(concrete, "structured_input_signature", None)
    if signature is None:
        return _plain_bindings(arguments)
    names = _parameter_names(concrete)
    extra = _variadic_name(python_function)
    if extra:
        names = [name for name in names if name in _positional_names(python_function)]
    found = argument_leaves(signature, names, extra or "args")
    if sum(leaf.tensors for leaf in found) != len(arguments):
        return _plain_bindings(arguments)
    rest = iter(arguments)
    return tuple(
        Binding(leaf.path, tuple(_ref(next(rest)) for _ in range(leaf.tensors)), leaf.type)
        for leaf in found
    )


def _plain_bindings(tensors: Sequence[Any]) -> tuple[Binding, ...]:
    return tuple(Binding(t.op.name, (_ref(t),), str(tensor_spec(t))) for t in tensors)


def _ref(tensor: Any) -> TensorRef:
    return TensorRef(tensor.op.name, tensor.value_index)


def _parameter_names(concrete: Any) -> list[str]:
    """Return the names of the positional parameters, `self` left out.

    2.21 has `function_type`; 2.9 has `_function_spec`; a pruned or loaded function has neither.
    """
    function_type = getattr(concrete, "function_type", None)
    if function_type is not None:
        return [
            name
            for name, parameter in function_type.parameters.items()
            if parameter.kind.name in ("POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD")
        ]
    spec = getattr(concrete, "_function_spec", None)
    if spec is not None:
        return [str(name) for name in spec.arg_names]
    return [str(name) for name in getattr(concrete, "_arg_keywords", None) or ()]


def _positional_names(python_function: Any) -> set[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return {p.name for p in _signature(python_function) if p.kind in kinds}


def _variadic_name(python_function: Any) -> str | None:
    """Return the name of `*rest`; TensorFlow numbers what it takes in its own ways."""
    variadic = (p for p in _signature(python_function) if p.kind is p.VAR_POSITIONAL)
    return next((p.name for p in variadic), None)


def _signature(python_function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(python_function).parameters.values())
    except (TypeError, ValueError):  # nothing, or nothing that has one
        return []


def _output_bindings(concrete: Any, outputs: Sequence[Any]) -> tuple[Binding, ...]:
    structure = concrete.structured_outputs
    if structure is None:
        return _plain_outputs(outputs)
    found = list(leaves(structure)) if not _is_leaf(structure) else None
    if found is None:
        leaf = next(leaves(structure, "output_0"))
        return (Binding(leaf.path, tuple(_ref(t) for t in outputs), leaf.type),)
    if sum(leaf.tensors for leaf in found) != len(outputs):
        return _plain_outputs(outputs)
    rest = iter(outputs)
    return tuple(
        Binding(leaf.path, tuple(_ref(next(rest)) for _ in range(leaf.tensors)), leaf.type)
        for leaf in found
    )


def _is_leaf(structure: Any) -> bool:
    return next(leaves(structure, "output_0"), None) is not None and not isinstance(
        structure, Mapping | list | tuple
    )


def _plain_outputs(outputs: Sequence[Any]) -> tuple[Binding, ...]:
    return tuple(
        Binding(f"output_{i}", (_ref(t),), str(tensor_spec(t))) for i, t in enumerate(outputs)
    )


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


@functools.cache
def _attr_defaults(op_type: str) -> Mapping[str, Any]:
    from tensorflow.python.framework import op_def_registry

    op_def = op_def_registry.get(op_type)
    if op_def is None:
        return {}
    return {a.name: a.default_value for a in op_def.attr if a.HasField("default_value")}


class _Library:
    """The functions that ops of a FuncGraph may name, and the ones that they do."""

    def __init__(self, func_graph: Any) -> None:
        self._holders: list[Any] = [func_graph]
        self._walked: dict[str, tuple[Any, _Walked]] = {}
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
            walked = _walk(func_graph)
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
            Binding(t.op.name, (_ref(t),), str(tensor_spec(t))) for t in func_graph.inputs
        )
        nodes = dict(walked.nodes)
        for binding in inputs:
            (ref,) = binding.tensors
            nodes[ref.node] = replace(nodes[ref.node], kind=NodeKind.INPUT)
        return _with_stable_names(
            Graph.build(
                self.name(raw),
                Stage.TRACED,
                (_with_calls(node, walked.calls, self) for node in nodes.values()),
                walked.arrows,
                inputs=inputs,
                outputs=_plain_outputs(func_graph.outputs),
            )
        )


def _with_calls(node: Node, calls: Mapping[str, list[tuple[str, str]]], library: _Library) -> Node:
    if node.name not in calls:
        return node
    found = tuple(Call(role, library.name(raw)) for role, raw in calls[node.name])
    return replace(node, calls=found)


def _with_stable_names(graph: Graph) -> Graph:
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
