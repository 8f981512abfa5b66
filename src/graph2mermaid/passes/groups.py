"""The tree that a flat graph is read by: function bodies and name scopes, down to single ops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from graph2mermaid.graph import Graph, Node, NodeKind
from graph2mermaid.passes.inline import Body, Inlined

MAX_CHILDREN = 30
"""A group with more children is divided further."""


@dataclass(frozen=True)
class Group:
    """Several nodes and groups under one title.

    A group with a `body` is a function's; the others are name scopes, or parts of one that was
    too wide.
    """

    key: str
    title: str
    children: tuple[Group | str, ...]
    """Groups, and the names of single nodes, in trace order."""
    body: Body | None = None

    def leaves(self) -> Iterator[str]:
        """Yield the names of all nodes in it, at any depth."""
        for child in self.children:
            if isinstance(child, Group):
                yield from child.leaves()
            else:
                yield child

    def groups(self) -> list[Group]:
        """Return its direct groups."""
        return [child for child in self.children if isinstance(child, Group)]


def group_tree(inlined: Inlined, graph: Graph | None = None) -> Group:
    """Return the tree of all nodes of the flat graph (or of `graph`, made from it by a pass)."""
    graph = inlined.graph if graph is None else graph
    root = _Branch("", "", None, {})
    for node in graph.nodes():
        branch = root
        for key, title, body in _path(node, inlined.home.get(node.name), inlined.bodies):
            found = branch.children.get(key)
            if not isinstance(found, _Branch):
                found = branch.children[key] = _Branch(key, title, body, {})
            branch = found
        branch.children[f"node:{node.name}"] = node.name
    return _simplified(root)


@dataclass
class _Branch:
    key: str
    title: str
    body: Body | None
    children: dict[str, _Branch | str]


_Step = tuple[str, str, Body | None]


def _path(node: Node, home: str | None, bodies: Mapping[str, Body]) -> list[_Step]:
    """Return the groups that a node is in, outermost first."""
    if node.kind in (NodeKind.OUTPUT, NodeKind.INPUT) and home is None:
        return []
    return _steps(node.name, home, bodies)


def _steps(name: str, home: str | None, bodies: Mapping[str, Body]) -> list[_Step]:
    steps: list[_Step] = []
    if home is not None:
        body = bodies[home]
        steps += _steps(body.call, body.parent, bodies)
        steps.append((body.key, "", body))
        name = name.removeprefix(f"{body.call}/")
    base = home or ""
    parts = name.split("/")[:-1]
    for count in range(1, len(parts) + 1):
        steps.append((f"{base}|{'/'.join(parts[:count])}", parts[count - 1], None))
    return steps


def _simplified(branch: _Branch) -> Group:
    """Drop groups of one node, join groups of one group, and divide what is too wide."""
    children: list[Group | str] = []
    for child in branch.children.values():
        if isinstance(child, str):
            children.append(child)
            continue
        group = _simplified(child)
        only = group.children[0] if len(group.children) == 1 else None
        if only is None or group.body is not None:
            children.append(group)
        elif isinstance(only, str) or only.body is not None:
            children.append(only)
        else:
            children.append(
                Group(only.key, f"{group.title}/{only.title}", only.children, only.body)
            )
    if branch.body is not None and len(children) == 1 and isinstance(children[0], Group):
        only_group = children[0]  # a body that is one scope, or one more call, is that
        children = list(only_group.children) if only_group.body is None else children
    return Group(branch.key, branch.title, _divided(branch.key, children), branch.body)


def _divided(key: str, children: Sequence[Group | str]) -> tuple[Group | str, ...]:
    """Cut a row of too many children into consecutive parts, named by their position."""
    if len(children) <= MAX_CHILDREN:
        return tuple(children)
    parts = min(MAX_CHILDREN // 2, -(-len(children) // (MAX_CHILDREN // 2)))
    size = -(-len(children) // parts)
    cut = [
        Group(
            f"{key}|part {start}",
            f"{start + 1} to {min(start + size, len(children))} of {len(children)}",
            _divided(f"{key}|part {start}", children[start : start + size]),
        )
        for start in range(0, len(children), size)
    ]
    return tuple(cut)
