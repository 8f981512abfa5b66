"""Where the ops of a lowered graph stand: in which loop's condition or body, in which branch.

The runtime has no If and While. It lowers them to Switch, Merge, Enter, Exit and NextIteration
(TensorFlow's `core/common_runtime/lower_while_op.cc` and `lower_if_op.cc`); a tensor behind the
output of a Switch that was not taken is dead, and everything that reads it is skipped. The same
rule read backwards says which ops belong to which body, whatever they are called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import networkx as nx

from graph2mermaid.graph import Arrow, EdgeKind, Graph, TensorRef, plain_op

Context = tuple[tuple[str, str], ...]
"""The bodies that an op stands in, outermost first: (name of the loop or branch, role)."""

_IN_BRANCH = re.compile(r"(.+)/(?:then|else|branch\d+)/_\d+/")
_MOST_ROUNDS = 20
"""Each round settles one more level of nesting."""


@dataclass
class Variable:
    """One value that a loop carries: the ops it goes through."""

    enter: str
    merge: str
    switch: str
    next: Arrow
    """From NextIteration back to the Merge."""
    exits: tuple[str, ...]


@dataclass
class Loop:
    """A While as it was lowered."""

    name: str
    test: str
    """The LoopCond."""
    variables: list[Variable]
    enters: list[str] = field(default_factory=list)
    """All its Enter ops, those of values that do not change included."""


@dataclass
class Choice:
    """An If or a Case as it was lowered."""

    name: str
    tested: TensorRef
    switches: list[str] = field(default_factory=list)
    merges: list[str] = field(default_factory=list)
    many: bool = False
    """It chooses by an index among several branches."""

    def role(self, port: int) -> str:
        """Return the role of the body behind an output of one of its Switch ops."""
        if self.many:
            return f"branches[{port}]"
        return "then_branch" if port else "else_branch"


@dataclass
class Lowered:
    """The control flow that was found in a lowered graph."""

    loops: dict[str, Loop]
    choices: dict[str, Choice]
    contexts: Mapping[str, Context]
    """For each op, what it stands in."""


def find_control_flow(graph: Graph) -> Lowered:
    """Find the loops and branches of a graph, and what stands in them.

    A loop that is not of the form that lowering gives (a damaged graph) is left as it is.
    """
    loops = _loops(graph)
    in_loops = {v.switch for loop in loops.values() for v in loop.variables}
    choices = _choices(graph, in_loops)
    return Lowered(loops, choices, _Contexts(graph, loops, choices).settle())


def data_into(graph: Graph, name: str) -> list[Arrow]:
    """Return the data edges into an op, by port."""
    return [a for a in graph.incoming(name) if a.edge.kind is EdgeKind.DATA]


def data_out_of(graph: Graph, name: str, port: int = 0) -> list[Arrow]:
    """Return the data edges out of one output of an op."""
    return [
        a
        for a in graph.outgoing(name)
        if a.edge.kind is EdgeKind.DATA and (a.edge.source_port or 0) == port
    ]


def _loops(graph: Graph) -> dict[str, Loop]:
    back = {
        a.target: a for a in graph.back_edges if plain_op(graph[a.source].op) == "NextIteration"
    }
    found: dict[str, Loop] = {}
    for node in graph.nodes():
        if node.op != "LoopCond":
            continue
        switches = [a.target for a in data_out_of(graph, node.name) if a.edge.target_port == 1]
        variables = [_variable(graph, name, back) for name in switches]
        known = [variable for variable in variables if variable is not None]
        if known and len(known) == len(variables):
            name = node.name.rpartition("/LoopCond")[0] or node.name
            loop = Loop(name, node.name, sorted(known, key=lambda v: _serial(v.merge)))
            loop.enters = [variable.enter for variable in known]
            found[node.name] = loop
    _constant_enters(graph, found)
    return found


def _serial(name: str) -> tuple[int, str]:
    """Sort ops by the number at the end of their names, in which lowering made them."""
    number = name.rpartition("_")[2]
    return (int(number), name) if number.isdecimal() else (0, name)


def _variable(graph: Graph, switch: str, back: Mapping[str, Arrow]) -> Variable | None:
    arriving = [a.source for a in data_into(graph, switch) if a.edge.target_port == 0]
    merge = arriving[0] if arriving else ""
    if not merge or plain_op(graph[merge].op) != "Merge" or merge not in back:
        return None
    enters = [a.source for a in data_into(graph, merge)]
    if len(enters) != 1 or plain_op(graph[enters[0]].op) != "Enter":
        return None
    exits = [a.target for a in data_out_of(graph, switch, 0)]
    if any(plain_op(graph[name].op) != "Exit" for name in exits):
        return None
    return Variable(enters[0], merge, switch, back[merge], tuple(exits))


def _constant_enters(graph: Graph, loops: Mapping[str, Loop]) -> None:
    """Give each Enter of a value that does not change to its loop, by the frame's name."""
    frames = {graph[loop.enters[0]].attrs.get("frame_name"): loop for loop in loops.values()}
    known = {enter for loop in loops.values() for enter in loop.enters}
    for node in graph.nodes():
        if plain_op(node.op) == "Enter" and node.name not in known:
            loop = frames.get(node.attrs.get("frame_name"))
            if loop is not None:
                loop.enters.append(node.name)


def _choices(graph: Graph, in_loops: set[str]) -> dict[str, Choice]:
    """Gather the Switch ops of one predicate; an If has one for each of its inputs."""
    by_test: dict[TensorRef, list[str]] = {}
    for node in graph.nodes():
        if plain_op(node.op) in ("Switch", "SwitchN") and node.name not in in_loops:
            tests = [a for a in data_into(graph, node.name) if a.edge.target_port == 1]
            if tests and graph[tests[0].source].op != "LoopCond":
                ref = TensorRef(tests[0].source, tests[0].edge.source_port or 0)
                by_test.setdefault(ref, []).append(node.name)
    found: dict[str, Choice] = {}
    for ref, switches in by_test.items():
        prefixes = [name.rpartition("/switch_pred")[0] for name in switches]
        prefixes += [_prefix(graph, name) for name in switches] if not any(prefixes) else []
        names = sorted({p for p in prefixes if p}, key=len, reverse=True) or [f"{ref.node}/if"]
        for name in names:
            many = any(plain_op(graph[switch].op) == "SwitchN" for switch in switches)
            found[name] = Choice(name, ref, many=many)
        for switch in switches:
            own = next((name for name in names if switch.startswith(f"{name}/")), names[0])
            found[own].switches.append(switch)
    return {name: choice for name, choice in found.items() if choice.switches}


def _prefix(graph: Graph, switch: str) -> str:
    """Return the name of the op whose branch reads a Switch: `cond` for `cond/then/_3/Relu`."""
    readers = (_IN_BRANCH.match(arrow.target) for arrow in graph.outgoing(switch))
    return next((found[1] for found in readers if found), "")


class _Contexts:
    """Carries the contexts along the edges until nothing changes."""

    def __init__(
        self, graph: Graph, loops: Mapping[str, Loop], choices: Mapping[str, Choice]
    ) -> None:
        self._graph = graph
        self._found: dict[str, Context] = {}
        self._base: dict[str, Context] = {loop.name: () for loop in loops.values()}
        self._choices = choices
        self._enters = {name: loop for loop in loops.values() for name in loop.enters}
        self._merges = {v.merge: loop for loop in loops.values() for v in loop.variables}
        self._switches = {v.switch: loop for loop in loops.values() for v in loop.variables}
        self._chosen = {name: choice for choice in choices.values() for name in choice.switches}
        self._order = list(nx.topological_sort(graph.dag))

    def settle(self) -> Mapping[str, Context]:
        for _ in range(_MOST_ROUNDS):
            before = dict(self._base)
            for name in self._order:
                self._found[name] = self._context(name)
            if before == self._base:
                break
        return self._found

    def _context(self, name: str) -> Context:
        if name in self._merges:
            return (*self._base[self._merges[name].name], (self._merges[name].name, "cond"))
        if name in self._switches:
            return self._base[self._switches[name].name]
        arriving = self._graph.incoming(name)
        context = max((self._behind(arrow) for arrow in arriving), key=len, default=())
        op = plain_op(self._graph[name].op)
        if name in self._enters:
            loop = self._enters[name].name
            self._base[loop] = max(self._base[loop], context, key=len)
        elif op == "Merge" and context and context[-1][0] in self._choices:
            choice = self._choices[context[-1][0]]
            if name not in choice.merges:
                choice.merges.append(name)
            return context[:-1]
        return context

    def _behind(self, arrow: Arrow) -> Context:
        """Return the context that an edge brings to its target."""
        source, port = arrow.source, arrow.edge.source_port
        context = self._found[source]
        if source in self._switches and port == 1:
            return (*context, (self._switches[source].name, "body"))
        if source in self._chosen and port is not None:
            return (*context, (self._chosen[source].name, self._chosen[source].role(port)))
        return context


__all__ = ["Choice", "Context", "Loop", "Lowered", "Variable", "find_control_flow"]
