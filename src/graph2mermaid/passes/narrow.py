"""Groups that are too much for one page although everything in them is closed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from graph2mermaid.passes.groups import Group
from graph2mermaid.passes.titles import span_title

_PIECES = (20, 16, 12, 8, 6, 4, 3, 2)
_SHORTEST = 3
"""A piece of fewer ops is a page that is not worth the way to it."""


def narrower(group: Group) -> Iterator[Group]:
    """Yield the group again with its children in fewer and fewer pieces.

    Consecutive children become one group, named by its ends. Nothing is yielded for a group of two
    children, which cannot be divided further.
    """
    count = len(group.children)
    most = count - 1 if group.groups() else max(count // _SHORTEST, 2)
    for pieces in _PIECES:
        if pieces <= most and pieces < count:
            yield replace(group, children=tuple(_pieces(group, pieces)))


def _pieces(group: Group, number: int) -> Iterator[Group | str]:
    children = group.children
    bounds = [len(children) * piece // number for piece in range(number + 1)]
    for start, end in pairwise(bounds):
        piece = children[start:end]
        if len(piece) == 1:
            yield piece[0]
        else:
            yield Group(f"{group.key}|{number}:{start}+", span_title(_titles(piece)), piece)


def _titles(children: tuple[Group | str, ...]) -> list[str]:
    return [
        child.rpartition("/")[2] if isinstance(child, str) else child.title for child in children
    ]
