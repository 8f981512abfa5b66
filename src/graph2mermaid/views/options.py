"""What a reader can choose about every view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal, get_args, get_type_hints

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
    color: Color = "kind"
    host: Host = "github"
    fence: Fence = "mermaid"

    def __post_init__(self) -> None:
        """Check every value, since callers may pass words a user typed."""
        hints = get_type_hints(type(self))
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "hide":
                object.__setattr__(self, "hide", _names(value))
            elif value not in get_args(hints[field.name]):
                raise Graph2MermaidError(
                    f"{field.name}: {value!r} is not one of {', '.join(get_args(hints[field.name]))}"
                )


def _names(value: Sequence[str]) -> tuple[str, ...]:
    if isinstance(value, str) or not all(value):
        raise Graph2MermaidError(
            f"hide: {value!r} is not a tuple of op types or scopes, as in hide=('Identity',)"
        )
    return tuple(value)
