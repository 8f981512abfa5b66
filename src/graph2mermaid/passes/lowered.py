"""Draw lowered loops and branches as the While and If they were.

What the runtime executes has Switch, Merge, Enter, Exit and NextIteration in the place of control
flow. This pass makes of it what [`inline`][graph2mermaid.passes.inline.inline] makes of a traced
graph: a diamond for each loop and each choice, a frame for each body, back edges for the next
iteration. The ops it takes out are the `members` of the diamond.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from graph2mermaid.graph import (
    Arrow,
    Call,
    Edge,
    EdgeKind,
    Graph,
    Node,
    NodeKind,
    SourceLine,
    TensorRef,
    plain_op,
)
from graph2mermaid.passes.bodies import Body, body_title, branch_word, is_handle
from graph2mermaid.passes.contexts import (
    Choice,
    Context,
    Loop,
    Variable,
    data_into,
    data_out_of,
    find_control_flow,
)
from graph2mermaid.passes.inline import MAX_DEPTH, Inlined

__all__ = ["raised"]

_CONTROL = Edge(EdgeKind.CONTROL, None, None)
_LOWERED = frozenset({"Enter", "Exit", "Switch", "SwitchN", "Merge", "NextIteration", "LoopCond"})
_NUMBERED = re.compile(r"_\d+")


def raised(graph: Graph, *, traced: Graph | None = None, simple: bool = True) -> Inlined:
    """Return the graph with its lowered control flow as diamonds and bodies.

    Args:
        graph: A graph at the stage `grappler` or `runtime`, or a frozen one.
        traced: Where to look up the source lines of its If and While ops.
        simple: Leave out loop variables that only count (TensorFlow's own `loop_counter`).
    """
    if not any(plain_op(node.op) in _LOWERED for node in graph.nodes()):
        return Inlined(graph, {}, {}, ())
    return _Raiser(graph, traced, simple).run()


class _Raiser:
    def __init__(self, graph: Graph, traced: Graph | None, simple: bool) -> None:
        self._graph = graph
        self._simple = simple
        self._found = find_control_flow(graph)
        self._lines = _source_lines(traced)
        self._moved: dict[TensorRef, TensorRef] = {}
        """Where a tensor of an op that is gone comes from."""
        self._words: dict[TensorRef, str] = {}
        self._gone: dict[str, str] = {}
        """For each op that is taken out, the diamond that it is part of."""
        self._arrows: list[Arrow] = []
        self._back: list[Arrow] = []
        self._heads: dict[str, Node] = {}
        """The diamonds and merges, by the op in whose place they stand."""
        self._bodies: dict[str, Body] = {}
        self._home: dict[str, str] = {}
        self._returned = {ref.node for b in graph.outputs for ref in b.tensors}
        self._counting: set[str] = set()
        """The Switch ops of loop variables that only count."""
        self._names: dict[str, str] = {}
        """For each loop or choice, the name of its diamond."""

    def run(self) -> Inlined:
        loops, choices = list(self._found.loops.values()), list(self._found.choices.values())
        if not loops and not choices:
            return Inlined(self._graph, {}, {}, ())
        for loop in loops:
            self._loop(loop)
        for choice in choices:
            self._choice(choice)
        for loop in loops:
            self._connect_loop(loop)
        for choice in choices:
            self._connect_choice(choice)
        nodes = self._nodes()
        for node in nodes:
            self._connect(node.name)
            self._place(node.name, self._context(node.name))
        for choice in choices:
            self._choose(choice, nodes)
        built = Graph.build(
            self._graph.name,
            self._graph.stage,
            nodes,
            self._arrows,
            inputs=self._graph.inputs,
            captures=self._graph.captures,
            outputs=tuple(
                replace(b, tensors=tuple(self._resolve(ref) for ref in b.tensors))
                for b in self._graph.outputs
            ),
            source=self._graph.source,
        )
        kept = [a for a in self._graph.back_edges if a.source in built and a.target in built]
        flat = replace(built, back_edges=(*built.back_edges, *kept, *self._back))
        return Inlined(flat, self._bodies, self._home, ())

    # -- what goes ------------------------------------------------------------------------

    def _take(self, names: Iterable[str], head: str) -> None:
        self._gone.update(dict.fromkeys(names, head))

    def _free(self, name: str) -> str:
        """Return a name for a diamond that no op has."""
        while name in self._graph and name not in self._gone:
            name += "'"
        return name

    def _loop(self, loop: Loop) -> None:
        head = self._names[loop.name] = self._free(loop.name)
        self._take([loop.test, *loop.enters], head)
        specs = []
        for port, variable in enumerate(loop.variables):
            ops = (variable.merge, variable.switch, variable.next.source, *variable.exits)
            self._take(ops, head)
            self._take(self._pivots(variable.switch), head)
            counters = self._only_counts(variable) if self._simple else set()
            if counters:
                self._counting.add(variable.switch)
                self._take(counters, head)
            merged = self._graph[variable.merge].outputs
            specs.append(merged[:1])
            place = TensorRef(head, port)
            if self._unchanged(variable):
                place = _ref(data_into(self._graph, variable.enter)[0])
            refs = [TensorRef(variable.merge), *(TensorRef(name) for name in variable.exits)]
            for ref in (*refs, TensorRef(variable.switch, 0), TensorRef(variable.switch, 1)):
                self._moved[ref] = place
        nexts = (variable.next.source for variable in loop.variables)
        for name in (loop.test, *loop.enters, *nexts):
            for arrow in data_into(self._graph, name)[:1]:
                self._moved[TensorRef(name)] = _ref(arrow)
        outputs = tuple(spec for pair in specs for spec in pair)
        line = self._lines.get(_last(loop.name))
        device = self._graph[loop.test].device
        self._heads[head] = Node(
            head, "While", NodeKind.CONTROL_FLOW, outputs, device=device, source=line
        )

    def _only_counts(self, variable: Variable) -> set[str]:
        """Return the ops between a loop variable and its next value, if it goes nowhere else."""
        if not self._returned.isdisjoint(variable.exits):
            return set()
        if any(self._graph.outgoing(name) for name in variable.exits):
            return set()
        if [a.target for a in data_out_of(self._graph, variable.merge)] != [variable.switch]:
            return set()
        pivots = self._pivots(variable.switch)
        found: set[str] = set()
        queue = [a.target for a in data_out_of(self._graph, variable.switch, 1)]
        while queue:
            name = queue.pop()
            if name in found or name == variable.next.source or name in pivots:
                continue
            after = self._graph.outgoing(name)
            if not after or plain_op(self._graph[name].op) in _LOWERED:
                return set()
            found.add(name)
            queue += [arrow.target for arrow in after]
        return found

    def _unchanged(self, variable: Variable) -> bool:
        """Tell whether a loop hands a value round as it is."""
        arriving = data_into(self._graph, variable.next.source)
        return bool(arriving) and _ref(arriving[0]) == TensorRef(variable.switch, 1)

    def _choice(self, choice: Choice) -> None:
        head = self._names[choice.name] = self._free(choice.name)
        self._take(choice.switches, head)
        for switch in choice.switches:
            self._take(self._pivots(switch), head)
        for switch in choice.switches:
            value = data_into(self._graph, switch)[0]
            for port in range(max(2, len(self._graph[switch].outputs))):
                ref = TensorRef(switch, port)
                if is_handle(value):
                    self._moved[ref] = _ref(value)
                else:
                    self._moved[ref] = TensorRef(head, choice.switches.index(switch))
                    self._words[ref] = branch_word(choice.role(port))
        op = "Case" if choice.many else "If"
        line = self._lines.get(_last(choice.name))
        device = self._graph[choice.switches[0]].device
        self._heads[head] = Node(head, op, NodeKind.CONTROL_FLOW, device=device, source=line)
        merge = self._free(f"{choice.name}/merge")
        for port, name in enumerate(choice.merges):
            self._gone[name] = merge
            self._moved[TensorRef(name)] = TensorRef(merge, port)
        if choice.merges:
            outputs = tuple(s for n in choice.merges for s in self._graph[n].outputs[:1])
            device = self._graph[choice.merges[0]].device
            self._heads[merge] = Node(merge, "Merge", NodeKind.CONTROL_FLOW, outputs, device=device)

    def _pivots(self, switch: str) -> list[str]:
        """Return the ops that only say which way a Switch went: their values go nowhere."""
        return [
            arrow.target
            for arrow in self._graph.outgoing(switch)
            if self._graph[arrow.target].op == "Identity"
            and not data_out_of(self._graph, arrow.target)
        ]

    # -- the edges of a diamond -------------------------------------------------------------

    def _connect_loop(self, loop: Loop) -> None:
        head = self._names[loop.name]
        for port, variable in enumerate(loop.variables):
            if self._unchanged(variable) or variable.switch in self._counting:
                continue
            for arrow in data_into(self._graph, variable.enter):
                self._data(arrow, head, port)
            for arrow in data_into(self._graph, variable.next.source):
                self._lead_back(arrow, head, port, "next iteration")
        for arrow in data_into(self._graph, loop.test):
            self._lead_back(arrow, head, None, "goes on while true")
        self._place(head, self._found.contexts[loop.enters[0]])

    def _lead_back(self, arrow: Arrow, head: str, port: int | None, label: str) -> None:
        source = self._resolve(_ref(arrow))
        spec = arrow.edge.tensor if label == "next iteration" else None
        if port is None or source != TensorRef(head, port):
            edge = Edge(source_port=source.port, target_port=port, tensor=spec, label=label)
            self._back.append(Arrow(source.node, head, edge))

    def _connect_choice(self, choice: Choice) -> None:
        head = self._names[choice.name]
        tested = next(
            a for a in data_into(self._graph, choice.switches[0]) if a.edge.target_port == 1
        )
        self._data(tested, head, 0)
        for port, switch in enumerate(choice.switches, 1):
            value = data_into(self._graph, switch)[0]
            if _ref(value) != choice.tested and not is_handle(value):
                self._data(value, head, port)
        self._place(head, self._found.contexts[choice.switches[0]])
        for port, name in enumerate(choice.merges):
            merge = self._gone[name]
            for arrow in data_into(self._graph, name):
                self._data(arrow, merge, port)
            self._place(merge, self._found.contexts[name])

    def _data(self, arrow: Arrow, target: str, port: int | None) -> None:
        ref = _ref(arrow)
        source = self._resolve(ref)
        label = self._words.get(ref, arrow.edge.label)
        edge = replace(arrow.edge, source_port=source.port, target_port=port, label=label)
        self._arrows.append(Arrow(source.node, target, edge))

    def _resolve(self, ref: TensorRef) -> TensorRef:
        while ref in self._moved:
            ref = self._moved[ref]
        if ref.node in self._gone and ref.node not in self._heads:
            return TensorRef(self._gone[ref.node])  # what lowering itself never reads
        return ref

    # -- what stays -------------------------------------------------------------------------

    def _nodes(self) -> list[Node]:
        members: dict[str, list[str]] = {}
        for name, head in self._gone.items():
            members.setdefault(head, []).append(name)
        nodes: dict[str, Node] = {}
        for node in self._graph.nodes():
            name = self._gone.get(node.name, "")
            if not name:
                nodes[node.name] = node
            elif name not in nodes:
                nodes[name] = replace(self._heads[name], members=tuple(members[name]))
        return list(nodes.values())

    def _connect(self, name: str) -> None:
        """Add the edges into an op that stays; waiting for its own body to start says nothing."""
        if name not in self._graph or name in self._gone:
            return
        for arrow in self._graph.incoming(name):
            if arrow.edge.kind is EdgeKind.DATA:
                self._data(arrow, name, arrow.edge.target_port)
            elif arrow.source not in self._gone:
                self._arrows.append(arrow)
            elif self._found.contexts[arrow.source] == self._found.contexts[name]:
                ends = self._gone[arrow.source]
                if "Exit" in self._graph[arrow.source].op or self._heads[ends].op == "Merge":
                    self._arrows.append(Arrow(ends, name, _CONTROL))

    def _context(self, name: str) -> Context:
        return self._found.contexts.get(name, ()) if name not in self._gone else ()

    def _place(self, name: str, context: Context) -> None:
        """Put a node into its innermost frame; frames nest no deeper than is drawn."""
        if name in self._home or not context:
            return
        parent: str | None = None
        for depth, (of, role) in enumerate(context[:MAX_DEPTH], 1):
            key = f"{self._names[of]}#{role}"
            if key not in self._bodies:
                self._bodies[key] = self._body(of, role, key, parent, depth)
            parent = key
        if parent is not None:
            self._home[name] = parent

    def _body(self, of: str, role: str, key: str, parent: str | None, depth: int) -> Body:
        head = self._heads[self._names[of]]
        roles = [role]
        if of in self._found.choices and self._found.choices[of].many:
            ports = range(
                len(self._graph[self._found.choices[of].switches[0]].outputs) or len(roles)
            )
            roles = [f"branches[{port}]" for port in ports]
        calling = replace(head, calls=tuple(Call(name, "") for name in roles))
        title = body_title(calling, Call(role, ""))
        return Body(key, "", head.name, role, parent, depth, title)

    def _choose(self, choice: Choice, nodes: Iterable[Node]) -> None:
        """A branch that takes nothing from its diamond still runs only when it is chosen."""
        head = self._names[choice.name]
        fed = {a.target for a in self._arrows if a.source == head}
        first: dict[str, str] = {}
        reached: set[str] = set()
        for node in nodes:
            context = self._context(node.name)
            for of, role in context[-1:]:
                if of == choice.name:
                    first.setdefault(role, node.name)
                    if node.name in fed:
                        reached.add(role)
        for role, name in first.items():
            if role not in reached:
                self._arrows.append(Arrow(head, name, replace(_CONTROL, label=branch_word(role))))


def _ref(arrow: Arrow) -> TensorRef:
    return TensorRef(arrow.source, arrow.edge.source_port or 0)


def _last(name: str) -> str:
    """Return an op's name in the function it was traced in: what follows the last number.

    Lowering puts the ops of a body under `CALL/body/_1/`.
    """
    parts = name.split("/")
    numbered = [at for at, part in enumerate(parts) if _NUMBERED.fullmatch(part)]
    return "/".join(parts[numbered[-1] + 1 :]) if numbered else name


def _source_lines(traced: Graph | None) -> Mapping[str, SourceLine]:
    """Return the lines of the control flow ops by name, where the name is there only once."""
    if traced is None:
        return {}
    found: dict[str, list[SourceLine]] = {}
    for graph in (traced, *traced.functions.values()):
        for node in graph.nodes():
            if node.kind is NodeKind.CONTROL_FLOW and node.source is not None:
                found.setdefault(node.name, []).append(node.source)
    return {name: lines[0] for name, lines in found.items() if len(set(lines)) == 1}
