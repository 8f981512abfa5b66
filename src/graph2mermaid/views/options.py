"""What a reader can choose about every view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal, get_args, get_origin, get_type_hints

from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.report.model import Fence, Host

Level = Literal["simple", "ops"]
Tensors = Literal["edges", "nodes"]
Direction = Literal["TD", "LR"]
Color = Literal["kind", "device"]


@dataclass(frozen=True, slots=True)
class Options:
    """How views draw and write. Each field is the command line's option of the same name.

    Raises:
        Graph2MermaidError: A value is not one of those a field can take.
    """

    level: Level = "simple"
    """`simple` absorbs plumbing into its consumers; `ops` shows every op."""
    tensors: Tensors = "edges"
    """Whether a named tensor is words on an edge or a node of its own."""
    direction: Direction = "TD"
    hide: tuple[str, ...] = ()
    """Op types and scopes that are left out of diagrams."""
    ghosts: bool = False
    """Whether the Grappler view draws the ops that were removed."""
    color: Color = "kind"
    host: Host = "github"
    fence: Fence = "mermaid"
    depth: int | None = None
    """How many levels of groups the overview opens at most."""
    max_nodes: int | None = None
    """How many nodes a page has at most, stubs not counted; None is what a person can read."""
    fold: bool = True
    """Whether equal groups are drawn once; False is `--no-fold`."""
    focus: str | None = None
    """An op or a scope that gets a picture of its own, with what is around it."""
    hops: int | None = None
    """How many edges away from `focus` the picture ends; None is 1."""
    from_: str | None = None
    to: str | None = None
    """With `from_`: two ops or scopes, all paths between which get a picture of their own."""
    out_dir: bool = False
    """Whether each picture goes to a file of its own, so that there may be any number of them."""

    def __post_init__(self) -> None:
        """Check every value, since callers may pass words a user typed."""
        hints = get_type_hints(type(self))
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "hide":
                object.__setattr__(self, "hide", _names(value))
            elif get_origin(hints[field.name]) is not Literal:
                _check(field.name, value)
            elif value not in get_args(hints[field.name]):
                raise Graph2MermaidError(
                    f"{field.name}: {value!r} is not one of {', '.join(get_args(hints[field.name]))}"
                )
        if self.hops is not None and self.focus is None:
            raise Graph2MermaidError("hops: it counts from focus, which is not given")
        if (self.from_ is None) != (self.to is None):
            given, missing = ("from", "to") if self.to is None else ("to", "from")
            raise Graph2MermaidError(f"{given}: a path has two ends, and {missing} is not given")


LEAST_NODES = 4
"""With fewer on a page, pages are about nothing but each other."""

_LEAST = {"depth": 0, "hops": 0, "max_nodes": LEAST_NODES}
_SWITCHES = ("fold", "ghosts", "out_dir")


def _check(name: str, value: object) -> None:
    if name in _SWITCHES:
        if not isinstance(value, bool):
            raise Graph2MermaidError(f"{name}: {value!r} is neither True nor False")
    elif value is None:
        return
    elif name in _LEAST:
        if not isinstance(value, int) or isinstance(value, bool) or value < _LEAST[name]:
            raise Graph2MermaidError(
                f"{name}: {value!r} is not a whole number from {_LEAST[name]} on"
            )
    elif not isinstance(value, str) or not value:
        raise Graph2MermaidError(f"{name}: {value!r} is not the name of an op or a scope")


def _names(value: Sequence[str]) -> tuple[str, ...]:
    if isinstance(value, str) or not all(value):
        raise Graph2MermaidError(
            f"hide: {value!r} is not a tuple of op types or scopes, as in hide=('Identity',)"
        )
    return tuple(value)
