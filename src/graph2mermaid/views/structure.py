"""The traced view: the function as its author wrote it, op by op."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from graph2mermaid.capture import Capture
from graph2mermaid.graph import Graph
from graph2mermaid.mermaid.theme import legend
from graph2mermaid.mermaid.write import write
from graph2mermaid.report.model import (
    Block,
    Code,
    Figure,
    Items,
    Note,
    Paragraph,
    Ref,
    Section,
    Text,
)
from graph2mermaid.views import tables
from graph2mermaid.views.drawing import Picture, draw
from graph2mermaid.views.options import Options

MOST_PARTS = 40
"""Hosts draw each diagram in a frame of its own; GitLab refuses more than 50 on a page."""
FEW_PARTS = 5
"""More parts than this are listed before the first of them."""

_OPTION = re.compile(r"(--[a-z][a-z-]*(?: '[^']*'| [A-Z]+:[A-Z]+| [^\s,;]+=[^\s,;]+)?)")

Draw = Callable[[Graph, Options], Iterable[Picture]]


def traced(capture: Capture, options: Options, draw: Draw = draw) -> Section:
    """Return the section about the traced graph.

    The diagram comes first, under one line that says what it is; what can be counted follows,
    then the tables, and last the diagrams of the parts that the first one shows closed.

    Args:
        capture: What was recorded of the target.
        options: How to draw.
        draw: Makes the pictures of a graph, the overview first.

    Raises:
        Graph2MermaidError: The capture holds no traced graph.
    """
    graph = capture.traced
    most = None if options.out_dir else MOST_PARTS + 1
    pictures = list(islice(draw(graph, options), most)) if len(graph) else []
    blocks = (
        Paragraph(_what(capture, graph)),
        *(Note(_note(note)) for note in capture.notes),
        *_overview(graph, pictures, options.out_dir),
        *((tables.summary(graph),) if len(graph) else ()),
        *_details(graph, pictures, options.out_dir),
    )
    return Section("Traced graph", blocks, summary=_size(graph), key=_key(pictures[:1]))


def _what(capture: Capture, graph: Graph) -> Text:
    """Say in one line what is shown, where it stands, and what it was made with."""
    place = (" at ", Code(str(graph.source))) if graph.source else ()
    return (
        "The traced graph of ",
        Code(capture.target),
        *place,
        f": {_size(graph)}.",
        *_made_with(capture),
    )


def _note(words: str) -> Text:
    """Show options of the command line as code, to be copied as they are."""
    return tuple(Code(piece) if at % 2 else piece for at, piece in enumerate(_OPTION.split(words)))


def _made_with(capture: Capture) -> Iterator[str]:
    environment = capture.environment
    versions = (
        ("TensorFlow", environment.tensorflow),
        ("Keras", environment.keras),
        ("Python", environment.python),
    )
    known = [f"{name} {version}" for name, version in versions if version]
    devices = ", ".join(environment.devices)
    if known or devices:
        made = f" Made with {_enumerated(known)}" if known else " Made"
        yield f"{made} on {devices}." if devices else f"{made}."


def _enumerated(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _size(graph: Graph) -> str:
    ops, edges, bodies = len(graph), graph.edge_count, len(graph.functions)
    words = [_counted(ops, "op"), _counted(edges, "edge")]
    if bodies:
        words.append(_counted(bodies, "function body", "function bodies"))
    return _enumerated(words)


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _missing(pictures: Sequence[Picture]) -> int:
    """Count the parts that pictures mention and that have none of their own here."""
    drawn = {picture.key for picture in pictures}
    return len({key for picture in pictures for _, key in picture.parts} - drawn)


def _overview(graph: Graph, pictures: Sequence[Picture], separate: bool) -> Iterator[Block]:
    if not pictures:
        yield Note((Code(graph.name), " has no ops, so there is nothing to draw."))
    elif not pictures[0].diagram.boxes:
        yield Note("Every op is hidden, so there is nothing to draw.")
    else:
        yield from _figure(pictures[0], {picture.key for picture in pictures}, separate)


def _figure(picture: Picture, drawn: Collection[str], separate: bool = False) -> Iterator[Block]:
    yield Figure(picture.diagram, write(picture.diagram), legend(picture.diagram))
    parts = [(title, key) for title, key in picture.parts if key in drawn]
    if parts:
        words = "Drawn in files of their own: " if separate else "Drawn below: "
        yield Paragraph((words, *_references(parts), "."))


def _references(parts: Iterable[tuple[str, str]]) -> Iterator[str | Ref]:
    comma = ""
    for title, key in parts:
        yield comma
        yield Ref(Code(title), _reference(key))
        comma = ", "


def _reference(key: str) -> str:
    """The overview has an empty key, which leads nowhere."""
    return f"picture {key}"


def _key(pictures: Sequence[Picture]) -> str:
    return _reference(pictures[0].key) if pictures else ""


def _details(graph: Graph, pictures: Sequence[Picture], separate: bool) -> Iterator[Section]:
    here = pictures[:1] if separate else pictures
    found = (
        ("Inputs, captures and outputs", tables.interface(graph)),
        ("Ops by type", tables.op_types(graph)),
        ("Ops by source line", tables.source_lines(graph)),
        ("Function bodies", tables.function_bodies(graph)),
        ("Full names", tables.full_names(picture.diagram for picture in here)),
    )
    for title, table in found:
        if table is not None:
            yield Section(title, (table,))
    if len(pictures) > 1:
        yield Section("Parts", tuple(_parts(pictures, separate)))


def _parts(pictures: Sequence[Picture], separate: bool) -> Iterator[Block]:
    titles = {picture.key: picture.title for picture in pictures}
    missing = _missing(pictures)
    if missing:
        smaller = _counted(missing, "smaller part has", "smaller parts have")
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
