"""Turn a graph of HLO instructions into dataflow that the other passes understand.

XLA hands several values around as one tuple, and bodies take and return one. Here each value is an
edge of its own, as in TensorFlow's graphs, so that loops and branches are drawn like theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from graph2mermaid.graph import Arrow, Binding, Edge, Graph, Node, NodeKind, TensorRef
from graph2mermaid.passes.bodies import flat_refs

_TUPLES = frozenset({"tuple", "get-tuple-element"})


@dataclass(frozen=True)
class Dataflow:
    """A graph without tuples, and how much of it is drawn as edges now."""

    graph: Graph
    tuples: int = 0
    """Instructions that only put values into tuples or take them out."""
    plumbing: int = 0
    """Instructions that only see the same memory otherwise, or spread a number to a shape."""


def dataflow(graph: Graph, *, simple: bool = True) -> Dataflow:
    """Return the graph with an edge for each value, and every node below its TensorFlow scope.

    A call of what nothing else calls is put in place, and a fusion of one instruction is that
    instruction.

    Args:
        graph: Of the stage `xla`, with its functions.
        simple: Draw views of the same memory, and numbers spread to a shape, as edges as well.
    """
    maker = _Maker(graph, simple)
    top = maker.flow(graph)
    parts = {key: maker.flow(body, key) for key, body in graph.functions.items()}
    parts = {key: part for key, part in parts.items() if key not in maker.placed}
    for part in (top, *parts.values()):
        _fit_branches(part, parts)
    within = _callers([top, *parts.values()])
    functions = {
        key: part.made(within.get(key, "") if key not in maker.fused else None)
        for key, part in parts.items()
    }
    return Dataflow(replace(top.made(""), functions=functions), maker.tuples, maker.plumbing)


@dataclass
class _Flow:
    """A computation while it is being made."""

    graph: Graph
    nodes: dict[str, Node] = field(default_factory=dict)
    arrows: list[Arrow] = field(default_factory=list)
    leaves: dict[str, list[TensorRef]] = field(default_factory=dict)
    """For each instruction, where the values that it stands for come from."""
    inputs: list[TensorRef] = field(default_factory=list)
    outputs: list[TensorRef] = field(default_factory=list)

    def made(self, within: str | None) -> Graph:
        """Return the graph, its nodes named below the scopes inside that of the calling op.

        Without a scope the names stay as they are.
        """
        scopes = {} if within is None else _scopes(self, within)
        names = _names(self.nodes, scopes)

        def moved(ref: TensorRef) -> TensorRef:
            return TensorRef(names.get(ref.node, ref.node), ref.port)

        def bound(bindings: Sequence[Binding], refs: Sequence[TensorRef]) -> tuple[Binding, ...]:
            left = [moved(ref) for ref in refs]
            found = []
            for binding in bindings:
                count = len(binding.tensors)
                found.append(replace(binding, tensors=tuple(left[:count])))
                left = left[count:]
            return (*found, *(Binding(ref.node, (ref,)) for ref in left))

        graph = self.graph
        known = flat_refs((*graph.inputs, *graph.captures))
        captures = [
            replace(b, tensors=tuple(moved(ref) for ref in b.tensors)) for b in graph.captures
        ]
        inputs = [
            ref for ref in self.inputs if TensorRef(ref.node) not in flat_refs(graph.captures)
        ]
        return Graph.build(
            graph.name,
            graph.stage,
            [replace(n, name=names.get(n.name, n.name)) for n in self.nodes.values()],
            [Arrow(names.get(a[0], a[0]), names.get(a[1], a[1]), a[2]) for a in self.arrows],
            inputs=bound(graph.inputs, inputs) if known or inputs else (),
            captures=tuple(captures),
            outputs=bound(graph.outputs, self.outputs),
            source=graph.source,
        )


class _Maker:
    def __init__(self, graph: Graph, simple: bool) -> None:
        self._functions = graph.functions
        self._simple = simple
        nodes = [n for part in (graph, *graph.functions.values()) for n in part.nodes()]
        self._times = Counter(call.function for node in nodes for call in node.calls)
        self.fused = {c.function for n in nodes if n.op == "fusion" for c in n.calls}
        self.placed: set[str] = set()
        """Functions that were put where they are called."""
        self.tuples = sum(node.op in _TUPLES for node in nodes)
        self.plumbing = 0

    def flow(self, graph: Graph, key: str = "") -> _Flow:
        """Take a computation's tuples apart."""
        flow = _Flow(graph)
        for node in graph.nodes():
            if node.kind in (NodeKind.INPUT, NodeKind.VARIABLE) or node.op == "parameter":
                self._parameter(flow, node)
        self._place(flow, graph, key)
        flow.outputs = [_at(flow, ref) for ref in flat_refs(graph.outputs)]
        return flow

    def _parameter(self, flow: _Flow, node: Node) -> None:
        if len(node.outputs) == 1:
            flow.nodes[node.name] = node
            flow.leaves[node.name] = [TensorRef(node.name)]
        else:
            flow.leaves[node.name] = []
            for at, spec in enumerate(node.outputs):
                leaf = replace(
                    node,
                    name=f"{node.name}.{at}",
                    label=f"{node.label or node.name}.{at}",
                    outputs=(spec,),
                    attrs={},
                )
                flow.nodes[leaf.name] = leaf
                flow.leaves[node.name].append(TensorRef(leaf.name))
        flow.inputs += flow.leaves[node.name]

    def _place(self, flow: _Flow, graph: Graph, key: str) -> None:
        results = {ref.node for ref in flat_refs(graph.outputs)}
        for node in graph.nodes():
            if node.name in flow.leaves:
                continue
            operands = _operands(flow, graph, node)
            if node.op in _TUPLES:
                flow.leaves[node.name] = [ref for refs in operands for ref in refs]
            elif self._is_bridge(graph, node, key) and node.name not in results:
                self.plumbing += 1
                flow.leaves[node.name] = operands[0]
            elif not self._in_place(flow, node, operands):
                _add(flow, node, operands)

    def _is_bridge(self, graph: Graph, node: Node, key: str) -> bool:
        """Tell whether an instruction is no work; what is a kernel of its own stays."""
        if not self._simple:
            return False
        if node.op == "broadcast":
            sources = [graph[arrow.source] for arrow in graph.incoming(node.name)]
            return key in self.fused and all(n.outputs and not n.outputs[0].shape for n in sources)
        return node.op == "bitcast"

    def _in_place(self, flow: _Flow, node: Node, operands: Sequence[Sequence[TensorRef]]) -> bool:
        """Put what a call runs in its place, or the only instruction of a fusion."""
        calls = [call.function for call in node.calls if call.function in self._functions]
        if node.kind is not NodeKind.CALL or len(calls) != 1 or self._times[calls[0]] > 1:
            return False
        body = self._functions[calls[0]]
        inside = [one for one in body.nodes() if one.op != "parameter"]
        if any(one.name in flow.nodes for one in body.nodes()):
            return False
        if node.op == "fusion" and (not self._simple or len(inside) != 1):
            return False
        parameters = [binding.tensors[0].node for binding in body.inputs if binding.tensors]
        for name, refs in zip(parameters, operands, strict=False):
            flow.leaves[name] = list(refs)
        self.placed.add(calls[0])
        if node.op == "fusion":
            only = inside[0]
            attrs = {**only.attrs, **node.attrs, "fusion": node.name}
            known = replace(
                node, op=only.op, kind=only.kind, calls=(), attrs=attrs, value=only.value
            )
            _add(flow, known, _operands(flow, body, only))
            return True
        self._place(flow, body, calls[0])
        flow.leaves[node.name] = [_at(flow, ref) for ref in flat_refs(body.outputs)]
        return True


def _operands(flow: _Flow, graph: Graph, node: Node) -> list[list[TensorRef]]:
    """Return the values that an instruction takes, operand by operand."""
    found = []
    for arrow in graph.incoming(node.name):
        refs = flow.leaves[arrow.source]
        port = arrow.edge.source_port
        if port is not None:
            refs = refs[port : port + arrow.edge.count]
        found.append(refs)
    return found


def _at(flow: _Flow, ref: TensorRef) -> TensorRef:
    return flow.leaves[ref.node][ref.port]


def _add(flow: _Flow, node: Node, operands: Sequence[Sequence[TensorRef]]) -> None:
    flow.nodes[node.name] = node
    flow.leaves[node.name] = [TensorRef(node.name, at) for at in range(max(len(node.outputs), 1))]
    refs = [ref for one in operands for ref in one]
    for port, ref in enumerate(refs):
        specs = flow.nodes[ref.node].outputs
        spec = specs[ref.port] if ref.port < len(specs) else None
        edge = Edge(source_port=ref.port, target_port=port, tensor=spec)
        flow.arrows.append(Arrow(ref.node, node.name, edge))


def _fit_branches(flow: _Flow, parts: Mapping[str, _Flow]) -> None:
    """Let every branch take all that a choice takes; each has operands of its own in HLO."""
    for node in flow.nodes.values():
        if node.op != "conditional":
            continue
        bodies = [parts[call.function] for call in node.calls if call.function in parts]
        counts = [len(body.inputs) for body in bodies]
        for at, body in enumerate(bodies):
            before, after = sum(counts[:at]), sum(counts[at + 1 :])
            body.inputs = [*_unused(body, before, 0), *body.inputs, *_unused(body, after, before)]


def _unused(body: _Flow, number: int, first: int) -> list[TensorRef]:
    names = [f"unused.{first + at}" for at in range(number)]
    body.nodes.update((name, Node(name, "parameter", NodeKind.INPUT)) for name in names)
    return [TensorRef(name) for name in names]


# -- scopes -----------------------------------------------------------------------------------


def _names(nodes: Mapping[str, Node], scopes: Mapping[str, str]) -> dict[str, str]:
    """Return the names below scopes; a variable has the last part of its own instead of `arg4.1`."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name, node in nodes.items():
        scope = scopes.get(name)
        if not scope:
            continue
        last = (node.label or "").rpartition("/")[2] if node.kind is NodeKind.VARIABLE else ""
        full = f"{scope}/{last}" if last and f"{scope}/{last}" not in taken else f"{scope}/{name}"
        taken.add(full)
        found[name] = full
    return found


def _callers(parts: Sequence[_Flow]) -> dict[str, str]:
    """Return the name of the TensorFlow op that each function is called by."""
    nodes = [node for part in parts for node in part.nodes.values()]
    return {call.function: _op_name(node) for node in nodes for call in node.calls}


def _op_name(node: Node) -> str:
    return str(node.attrs.get("op_name", "")).rpartition(";")[2]


def _innermost(node: Node, scope: str) -> str:
    """Return the scope of a fusion: that of the last op in it that is further inside than its result.

    A layer's bias and the addition that follows the layer are one kernel, which is the layer's.
    """
    outer = f"{scope}/" if scope else ""
    inside = [op.rpartition("/")[0] for op in node.origin if op.startswith(outer)]
    deeper = [one for one in inside if one != scope]
    return deeper[-1] if node.op == "fusion" and deeper else scope


def _scopes(flow: _Flow, within: str) -> dict[str, str]:
    """Return the scope of each node: that of its op, or of what it is made from or for."""
    scopes: dict[str, str] = {}
    for node in flow.nodes.values():
        name = _op_name(node)
        if name and node.kind not in (NodeKind.INPUT, NodeKind.VARIABLE, NodeKind.CONST):
            scope = _innermost(node, name.rpartition("/")[0])
            if within:
                scope = "" if name == within else scope.removeprefix(within).lstrip("/")
            scopes[node.name] = scope
    # What XLA adds by itself (copies, the first of two reductions) is for what reads it.
    own = {name for name, node in flow.nodes.items() if node.kind in (NodeKind.OP, NodeKind.CALL)}
    for source, target, _ in reversed(flow.arrows):
        if source in own and source not in scopes and target in scopes:
            scopes[source] = scopes[target]
    for source, target, _ in flow.arrows:
        if target not in scopes and source in scopes:
            scopes[target] = scopes[source]
    # A variable or a constant stands where it is read first.
    for source, target, _ in flow.arrows:
        if flow.nodes[source].kind is not NodeKind.INPUT and target in scopes:
            scopes.setdefault(source, scopes[target])
    return scopes
