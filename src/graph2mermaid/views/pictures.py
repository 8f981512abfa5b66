"""The blocks of a section that show pictures: the first one, and below it those of its parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from graph2mermaid.graph import Graph
from graph2mermaid.mermaid.theme import legend
from graph2mermaid.report.model import (
    Block,
    Code,
    Figure,
    Items,
    Note,
    Paragraph,
    Ref,
    Section,
    Table,
    Text,
)
from graph2mermaid.views import tables
from graph2mermaid.views.drawing import Picture
from graph2mermaid.views.flat import counted

__all__ = ["MOST_PARTS", "key_of", "overview", "shown", "tables_and_parts"]

MOST_PARTS = 40
"""Hosts draw each diagram in a frame of its own; GitLab refuses more than 50 on a page."""
FEW_PARTS = 5
"""More parts than this are listed before the first of them."""


def _missing(pictures: Sequence[Picture]) -> int:
    """Count the parts that pictures mention and that have none of their own here."""
    drawn = {picture.key for picture in pictures}
    return len({key for picture in pictures for _, key in picture.parts} - drawn)


def shown(pictures: Iterable[Picture], separate: bool) -> list[Picture]:
    """Return the pictures that a report has: all of them only where each part has its own file."""
    return list(islice(pictures, None if separate else MOST_PARTS + 1))


def overview(graph: Graph, pictures: Sequence[Picture], separate: bool) -> Iterator[Block]:
    """Yield the first picture, or the note that there is none.

    Args:
        graph: What was drawn.
        pictures: All pictures of it that are shown.
        separate: The others go to files of their own.
    """
    if not pictures:
        yield Note((Code(graph.name), " has no ops, so there is nothing to draw."))
    elif not pictures[0].diagram.boxes:
        yield Note("Every op is hidden, so there is nothing to draw.")
    else:
        yield from _figure(pictures[0], _titles(pictures), separate)


def _figure(picture: Picture, titles: Mapping[str, str], separate: bool = False) -> Iterator[Block]:
    yield Figure(picture.diagram, picture.text, legend(picture.diagram))
    parts = [(title, key) for title, key in picture.parts if key in titles]
    if parts:
        words = "Drawn in files of their own: " if separate else "Drawn below: "
        yield Paragraph((words, *_references(parts, titles), "."))


def _references(
    parts: Iterable[tuple[str, str]], titles: Mapping[str, str]
) -> Iterator[str | Code | Ref]:
    """Lead to parts; one that is equal to another has no picture of its own, but that one's."""
    comma = ""
    for title, key in dict.fromkeys(parts):
        yield comma
        yield Ref(Code(title), _reference(key))
        if title != titles[key]:
            yield " (drawn as "
            yield Code(titles[key])
            yield ")"
        comma = ", "


def _titles(pictures: Iterable[Picture]) -> dict[str, str]:
    return {picture.key: picture.title for picture in pictures}


def _reference(key: str) -> str:
    """The overview has an empty key, which leads nowhere."""
    return f"picture {key}"


def key_of(pictures: Sequence[Picture]) -> str:
    """Return the key of a section that starts with the first of some pictures."""
    return _reference(pictures[0].key) if pictures else ""


def tables_and_parts(
    found: Iterable[tuple[str, Table | None]], pictures: Sequence[Picture], separate: bool
) -> Iterator[Section]:
    """Yield the sections below a first picture: titled tables, cut labels, and the other pictures.

    Args:
        found: Titles and tables; where there is no table there is no section.
        pictures: All pictures that are shown.
        separate: The others go to files of their own.
    """
    here = pictures[:1] if separate else pictures
    names = tables.full_names(picture.diagram for picture in here)
    for title, table in (*found, ("Full names", names)):
        if table is not None:
            yield Section(title, (table,))
    if len(pictures) > 1:
        yield Section("Parts", tuple(_parts_below(pictures, separate)))


def _parts_below(pictures: Sequence[Picture], separate: bool) -> Iterator[Block]:
    """Yield a section for each picture but the first, with a list of them when they are many."""
    titles = _titles(pictures)
    missing = _missing(pictures)
    if missing:
        smaller = counted(missing, "smaller part has", "smaller parts have")
        yield Paragraph(f"{smaller} no diagram here: hosts do not draw that many in one file.")
    if separate or len(pictures) - 1 > FEW_PARTS:
        yield _contents(pictures[1:])
    for picture in pictures[1:]:
        names = tables.full_names([picture.diagram]) if separate else None
        blocks = (
            *_above(picture, titles),
            *_figure(picture, titles, separate),
            *((Section("Full names", (names,)),) if names else ()),
        )
        key = _reference(picture.key)
        yield Section(Code(picture.title), blocks, key=key, own_page=separate)


def _contents(pictures: Sequence[Picture]) -> Items:
    """List the parts, each under the one that it is a part of."""
    keys = {picture.key for picture in pictures}
    inside: dict[str | None, list[Picture]] = {}
    for picture in pictures:
        inside.setdefault(picture.parent if picture.parent in keys else None, []).append(picture)
    lines: list[Text] = []
    levels: list[int] = []
    stack = [(picture, 0) for picture in reversed(inside.get(None, []))]
    while stack:
        picture, level = stack.pop()
        lines.append(Ref(Code(picture.title), _reference(picture.key)))
        levels.append(level)
        stack += [(part, level + 1) for part in reversed(inside.get(picture.key, []))]
    return Items(tuple(lines), tuple(levels))


def _above(picture: Picture, titles: Mapping[str, str]) -> Iterator[Block]:
    if picture.parent is not None and picture.parent in titles:
        title = Code(titles[picture.parent])
        yield Paragraph(("A part of ", Ref(title, _reference(picture.parent)), "."))
