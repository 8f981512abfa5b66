"""The tree that a flat graph is read by: function bodies, name scopes and their parts."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from graph2mermaid.graph import Graph
from graph2mermaid.passes.grow import MAX_CHILDREN, Grower
from graph2mermaid.passes.inline import Body, Inlined
from graph2mermaid.passes.level import Part, Unit
from graph2mermaid.passes.scopes import GRADIENTS, Branch, scope_tree
from graph2mermaid.passes.titles import is_op_name, loss_title
from graph2mermaid.passes.training import METRICS
from graph2mermaid.passes.wiring import Wiring

__all__ = ["MAX_CHILDREN", "Group", "group_tree"]


@dataclass(frozen=True)
class Group:
    """Several nodes and groups under one title.

    A group with a `body` is a function's; the others are name scopes, or parts of one that was
    too wide. A group with `copies` is a fold: it stands for itself and for each of them.
    """

    key: str
    title: str
    children: tuple[Group | str, ...]
    """Groups, and the names of single nodes, in trace order; of a fold, those of one instance."""
    body: Body | None = None
    copies: tuple[Group, ...] = ()
    """The other instances of a fold."""
    varied: bool = False
    """The copies are wired in the same way, but their shapes differ."""
    role: str = ""
    """`gradients`, `optimizer`, `loss` or `metrics` in a training step, where the names say so."""
    signature: str = ""
    """Equal for groups of the same ops, shapes and wiring inside; empty when not known."""
    size: int = field(init=False, repr=False, compare=False)
    """The number of nodes in it at any depth, copies included."""

    def __post_init__(self) -> None:
        """Count the nodes."""
        own = sum(child.size if isinstance(child, Group) else 1 for child in self.children)
        object.__setattr__(self, "size", own + sum(copy.size for copy in self.copies))

    @property
    def instances(self) -> int:
        """How many equal groups it stands for."""
        return 1 + len(self.copies)

    def leaves(self) -> Iterator[str]:
        """Yield the names of all nodes in it, at any depth, those of copies included."""
        return iter(self._leaves)

    def shown(self) -> Iterator[str]:
        """Yield the names of the nodes that a page of it is about: those of one instance."""
        return iter(self._shown)

    @functools.cached_property
    def _leaves(self) -> tuple[str, ...]:
        # A page is drawn several times before it fits, and asks every time.
        return (
            self._shown + tuple(_leaves(list(reversed(self.copies))))
            if self.copies
            else self._shown
        )

    @functools.cached_property
    def _shown(self) -> tuple[str, ...]:
        return tuple(_leaves(list(reversed(self.children))))

    def groups(self) -> list[Group]:
        """Return its direct groups."""
        return [child for child in self.children if isinstance(child, Group)]


def _leaves(stack: list[Group | str]) -> Iterator[str]:
    while stack:  # not by recursion: scopes may be a thousand deep
        item = stack.pop()
        if isinstance(item, str):
            yield item
        else:
            stack.extend(reversed(item.copies))
            stack.extend(reversed(item.children))


def group_tree(
    inlined: Inlined,
    graph: Graph | None = None,
    *,
    scopes: Mapping[str, str] | None = None,
    fold: bool = True,
    most: int = MAX_CHILDREN,
) -> Group:
    """Return the tree of all nodes of the flat graph (or of `graph`, made from it by a pass).

    Args:
        inlined: Where the nodes come from: their homes are the bodies of functions.
        graph: The nodes and edges, when they are not those of `inlined`.
        scopes: The scopes of nodes that belong elsewhere than their names say.
        fold: Draw equal groups once.
        most: A group with more children is divided further.
    """
    graph = inlined.graph if graph is None else graph
    wiring = Wiring(graph, frozenset(body.call for body in inlined.bodies.values()))
    root = scope_tree(graph, inlined, scopes)
    grower = Grower(wiring, fold=fold, most=most)
    made: dict[int, Part] = {}
    for branch in root.from_the_leaves_up():
        made[id(branch)] = _part(branch, grower, wiring, made)
    return _group(made[id(root)], wiring)


def _part(branch: Branch, grower: Grower, wiring: Wiring, made: Mapping[int, Part]) -> Part:
    """Make the group of a scope; scopes of one node, or of one scope, are what they hold."""
    units: list[Unit] = []
    for leaf in branch.nodes:
        node = wiring.nodes[wiring.index[leaf]]
        name = leaf.rpartition("/")[2]
        units.append(Unit(name, None, wiring.index[leaf], not is_op_name(name, node.op)))
    for key, child in branch.children.items():
        part = made[id(child)]
        name = child.title if child.body is not None and child.title else key
        only = part.units[0] if len(part.units) == 1 and not part.copies else None
        if only is None or part.body is not None:
            units.append(Unit(name, part, min(unit.leaf for unit in part.units)))
        elif only.part is None:
            named = not is_op_name(name, wiring.nodes[only.leaf].op)
            units.append(Unit(name, None, only.leaf, named))
        elif only.part.body is not None:
            units.append(Unit(name, only.part, only.leaf))
        else:
            inner = only.part
            inner.title = part.title if part.gradient else f"{part.title}/{inner.title}"
            inner.gradient = part.gradient
            units.append(Unit(name, inner, only.leaf))
    if branch.body is not None and len(units) == 1:
        inside = units[0].part  # a body that is one scope, or one more call, is that
        if inside is not None and inside.body is None and not inside.copies:
            units = list(inside.units)
    title = GRADIENTS if branch.gradient else branch.title
    if len(units) == 1 and branch.body is None and branch.key:
        part = Part(branch.key, title, tuple(units))  # whoever holds it takes what it holds
    else:
        part = grower.group(branch.key, title, units, branch.body)
    part.gradient = branch.gradient
    return part


def _group(root: Part, wiring: Wiring) -> Group:
    """Freeze parts into groups, from the leaves up, and give them their last titles."""
    done: dict[int, Group] = {}
    roles = _roles(root, wiring)
    stack: list[tuple[Part, bool, bool]] = [(root, False, False)]
    while stack:
        part, gradient, ready = stack.pop()
        inner = [unit.part for unit in part.units if unit.part is not None]
        if not ready:
            stack.append((part, gradient, True))
            below = gradient or part.gradient
            stack += [(each, below, False) for each in inner]
            stack += [(each, gradient, False) for each in part.copies]
            continue
        role = roles.get(id(part), "")
        title = _last_title(part.title, role, gradient)
        done[id(part)] = Group(
            part.key,
            title,
            tuple(
                done[id(unit.part)] if unit.part else wiring.nodes[unit.leaf].name
                for unit in part.units
            ),
            part.body,
            tuple(done[id(each)] for each in part.copies),
            part.varied,
            role,
            part.signature,
        )
    return done[id(root)]


def _roles(root: Part, wiring: Wiring) -> dict[int, str]:
    """Find the gradients, the loss and the optimizer among the outermost groups."""
    parts = [unit.part for unit in root.units if unit.part is not None and not unit.part.body]
    tapes = [part for part in parts if part.gradient]
    if not tapes:
        return {}
    roles = {id(part): GRADIENTS for part in tapes}
    made = {leaf for part in tapes for leaf in part.leaves}
    for part in parts:
        if part.gradient:
            continue
        if part.title == METRICS and not part.units[0].part:
            roles[id(part)] = METRICS
            continue
        assigns = any(wiring.nodes[leaf].op.startswith("Assign") for leaf in part.leaves)
        if assigns and any(wiring.source[edge] in made for _, edge in part.entering):
            roles[id(part)] = "optimizer"
        elif loss_title(part.title):
            roles[id(part)] = "loss"
    return roles


def _last_title(title: str, role: str, gradient: bool) -> str:
    """Say what a group is for; tell a gradient from the forward group of the same name."""
    if role == "optimizer":
        return f"optimizer: {title}"
    if role == "loss":
        return loss_title(title) or title
    return _of_gradient(title) if gradient else title


def _of_gradient(title: str) -> str:
    """Tell the group of a gradient from the forward one of the same name."""
    name, times, count = title.partition(" × ")
    return f"{name} gradient{times}{count}"
