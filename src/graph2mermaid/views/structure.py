"""The traced view: the function as its author wrote it, op by op."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from graph2mermaid.capture import Capture
from graph2mermaid.graph import Graph
from graph2mermaid.report.model import Code, Note, Paragraph, Section, Text
from graph2mermaid.views import tables
from graph2mermaid.views.drawing import Picture, draw
from graph2mermaid.views.flat import counted
from graph2mermaid.views.options import Options
from graph2mermaid.views.pictures import key_of, overview, shown, tables_and_parts

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
    pictures = shown(draw(graph, options), options.out_dir) if len(graph) else []
    blocks = (
        Paragraph(_what(capture, graph)),
        *notes(capture),
        *overview(graph, pictures, options.out_dir),
        *((tables.summary(graph),) if len(graph) else ()),
        *_details(graph, pictures, options.out_dir),
    )
    return Section("Traced graph", blocks, summary=_size(graph), key=key_of(pictures[:1]))


def notes(capture: Capture) -> tuple[Note, ...]:
    """Return what a reader must know of a capture, whatever is shown of it."""
    return tuple(Note(_note(note)) for note in capture.notes)


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
    words = [counted(ops, "op"), counted(edges, "edge")]
    if bodies:
        words.append(counted(bodies, "function body", "function bodies"))
    return _enumerated(words)


def _details(graph: Graph, pictures: Sequence[Picture], separate: bool) -> Iterator[Section]:
    found = (
        ("Inputs, captures and outputs", tables.interface(graph)),
        ("Ops by type", tables.op_types(graph)),
        ("Ops by source line", tables.source_lines(graph)),
        ("Function bodies", tables.function_bodies(graph)),
    )
    yield from tables_and_parts(found, pictures, separate)
