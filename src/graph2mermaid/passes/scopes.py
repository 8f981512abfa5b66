"""The tree of function bodies and name scopes, as the names of the nodes say it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from graph2mermaid.graph import EdgeKind, Graph, Node, NodeKind
from graph2mermaid.passes.inline import Body, Inlined

GRADIENTS = "gradients"
FUSED = "calls"
"""The role of what a fusion of XLA stands for."""
_TAPE = "gradient_tape"
"""The scope that TensorFlow gives to all that `GradientTape.gradient` makes."""

_COUNTERS = frozenset({"iteration", "iterations", "iter"})
"""What optimizers call the variable that counts their steps."""


@dataclass(eq=False)
class Branch:
    """A body or a scope."""

    key: str
    title: str
    body: Body | None = None
    gradient: bool = False
    """It is the scope of all gradients."""
    nodes: list[str] = field(default_factory=list)
    children: dict[str, Branch] = field(default_factory=dict)

    def from_the_leaves_up(self) -> Iterator[Branch]:
        """Yield every branch after all that are inside it, itself last."""
        order = [self]
        for branch in order:
            order.extend(branch.children.values())
        yield from reversed(order)


def scope_tree(graph: Graph, inlined: Inlined, scopes: Mapping[str, str] | None = None) -> Branch:
    """Return the scopes of a flat graph; `scopes` are those that names do not tell."""
    root = Branch("", "")
    known: dict[tuple[str | None, str], Branch] = {(None, ""): root}
    moved = _moved(graph, inlined)
    taped = _is_taped(graph)

    def branch_of(home: str | None, scope: str) -> Branch:
        found = known.get((home, scope))
        if found is not None:
            return found
        branch = root if home is None else body_branch(inlined.bodies[home])
        path = ""
        for part in scope.split("/") if scope else ():
            path = f"{path}/{part}" if path else part
            child = known.get((home, path))
            if child is None:
                child = Branch(f"{home or ''}|{path}", part, gradient=part == _TAPE)
                known[home, path] = branch.children[part] = child
            branch = child
        known[home, scope] = branch
        return branch

    def body_branch(body: Body) -> Branch:
        found = known.get((body.key, ""))
        if found is None:
            scope = _local(body.call, body.parent, inlined)
            # TensorFlow calls the gradient of a function outside the scope of the others.
            is_gradient = taped and body.parent is None and _is_gradient(body)
            outer = branch_of(body.parent, _TAPE if is_gradient and not scope else scope)
            found = Branch(body.key, _own_title(body), body)
            # Next to scopes of the same name: a key cannot be a scope's name.
            outer.children[f"body:{body.key}"] = known[body.key, ""] = found
        return found

    for node in graph.nodes():
        home = inlined.home.get(node.name)
        if node.kind in (NodeKind.OUTPUT, NodeKind.INPUT) and home is None:
            root.nodes.append(node.name)
            continue
        scope = moved.get(node.name)
        if scope is None and scopes is not None and node.name in scopes:
            scope = _local(f"{scopes[node.name]}/", home, inlined)
        if scope is None:
            scope = _local(node.name, home, inlined)
        branch_of(home, scope).nodes.append(node.name)
    return root


def _own_title(body: Body) -> str:
    """Return the name of a fusion, whose equals may be folded; other bodies are what they are to a call."""
    return body.call.rpartition("/")[2].replace(".", "_") if body.role == FUSED else ""


def _local(name: str, home: str | None, inlined: Inlined) -> str:
    """Return the scope of a node inside its body."""
    if home is not None:
        name = name.removeprefix(f"{inlined.bodies[home].call}/")
    return name.rpartition("/")[0]


def _moved(graph: Graph, inlined: Inlined) -> dict[str, str]:
    """Return the scopes of the nodes that a training step leaves outside the one they belong to.

    TensorFlow adds up gradients, and Keras counts the optimizer's steps, outside any scope.
    """
    if not _is_taped(graph):
        return {}
    moved: dict[str, str] = {}
    loose = [n for n in graph.nodes() if n.name not in inlined.home and _is_loose(n)]
    scopes = {name.partition("/")[0] for name in graph.names() if "/" in name}
    counters: dict[str, str] = {}
    for node in graph.nodes():
        owner, _, last = (node.label or "").rpartition("/")
        if node.kind is NodeKind.VARIABLE and owner in scopes and last in _COUNTERS:
            counters[node.name] = owner
            if not node.name.startswith(f"{owner}/"):
                moved[node.name] = owner

    moved |= {n.name: _TAPE for n in loose if _only_for_gradients(graph, inlined, n)}

    def home(name: str) -> str:
        return moved.get(name) or counters.get(name) or name.rpartition("/")[0]

    for node in loose:
        if node.name in moved:
            continue
        makers = [
            home(a.source)
            for a in graph.incoming(node.name)
            if a.edge.kind is EdgeKind.DATA and not _is_constant(graph, a.source)
        ]
        common = _common(makers)
        summed = node.op == "AddN" and common.partition("/")[0] == _TAPE
        if summed or common in counters.values():
            moved[node.name] = common
    constants = [n for n in graph.nodes() if n.kind is NodeKind.CONST]
    for node in reversed([*constants, *loose]):
        if node.name in moved or node.name in inlined.home:
            continue
        common = _common([home(arrow.target) for arrow in graph.outgoing(node.name)])
        known = common.partition("/")[0] == _TAPE or common in counters.values()
        if known and _is_constant(graph, node.name):
            moved[node.name] = common
    return moved


def _is_taped(graph: Graph) -> bool:
    return any(name.startswith(f"{_TAPE}/") for name in graph.names())


def _is_gradient(body: Body) -> bool:
    """Tell whether a body is the gradient of another function, by the name that we give it."""
    return body.function.endswith((" (backward)", " (gradient)"))


def _only_for_gradients(graph: Graph, inlined: Inlined, node: Node) -> bool:
    """Tell whether only gradients of functions read a node: zeros for what nothing depends on."""
    homes = [inlined.home.get(arrow.target) for arrow in graph.outgoing(node.name)]
    return bool(homes) and all(
        home is not None and _is_gradient(_outermost(inlined, home)) for home in homes
    )


def _outermost(inlined: Inlined, key: str) -> Body:
    body = inlined.bodies[key]
    while body.parent is not None:
        body = inlined.bodies[body.parent]
    return body


def _is_loose(node: Node) -> bool:
    return "/" not in node.name and node.kind in (NodeKind.OP, NodeKind.CONST)


def _is_constant(graph: Graph, name: str) -> bool:
    """Tell whether a node is a constant, or one that was only cast."""
    node = graph[name]
    if node.kind is NodeKind.CONST:
        return True
    before = graph.incoming(name) if node.op == "Cast" else ()
    return bool(before) and all(graph[a.source].kind is NodeKind.CONST for a in before)


def _common(paths: list[str]) -> str:
    """Return the innermost scope that all these scopes are in."""
    if not paths:
        return ""
    parts = [path.split("/") for path in paths]
    shared: list[str] = []
    for row in zip(*parts):  # noqa: B905  # the shortest path ends it
        if len(set(row)) > 1:
            break
        shared.append(row[0])
    return "/".join(shared)
