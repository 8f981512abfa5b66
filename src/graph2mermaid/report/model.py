"""What a report is, before it is text: titled sections of figures, tables, notes and paragraphs.

Everything in it holds plain words. How they are escaped is known to the writer alone
(`graph2mermaid.report.markdown`), so no view has to think of Markdown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.mermaid.diagram import Diagram

Fence = Literal["mermaid", "myst", "azure"]
Host = Literal["github", "gitlab"]


@dataclass(frozen=True, slots=True)
class Code:
    """A name from the user's program or from TensorFlow, shown letter by letter."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """Words that lead to another file, or to an `#anchor` in the same one."""

    words: str | Code
    target: str


@dataclass(frozen=True, slots=True)
class Ref:
    """Words that lead to the section of a key, under the same section of the report.

    Where there is no such section they are words alone.
    """

    words: str | Code
    key: str


Text = str | Code | Link | Ref | tuple[str | Code | Link | Ref, ...]
"""Words in a line: plain, code, a link, or several of these one after the other."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    number: bool = False
    """Whether its cells are numbers, which stand on the right."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns, each row with one cell for each column."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Text, ...], ...]
    caption: Text = ""
    """A line below the table: what it leaves out, or how to read it."""

    def __post_init__(self) -> None:
        """Check that no row is too long or too short."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{len(row)} cells in a table of {len(self.columns)} columns")


@dataclass(frozen=True, slots=True)
class Figure:
    """A diagram, its Mermaid text, and the line that explains its shapes and colors."""

    diagram: Diagram
    text: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A line of running words."""

    text: Text


@dataclass(frozen=True, slots=True)
class Note:
    """Something the reader must know: an assumption, or what could not be done."""

    text: Text
    kind: Literal["note", "warning"] = "note"


@dataclass(frozen=True, slots=True)
class Items:
    """A list of lines."""

    lines: tuple[Text, ...]
    levels: tuple[int, ...] = ()
    """How far each line is moved in; all are at 0 when empty."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it; sections among its blocks get smaller headings."""

    title: Text
    blocks: tuple[Block, ...] = ()
    summary: Text = ""
    """A few words for the list of sections at the top of a report of several."""
    name: str = ""
    """What a file made of this section alone is called; the title, when empty."""
    key: str = ""
    """What a `Ref` says to lead here."""
    own_page: bool = False
    """Whether it goes to a file of its own where a report is written as several."""


Block = Figure | Table | Note | Paragraph | Items | Section


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a report that is written to a file of its own."""

    name: str
    """Unique in its report; safe as a file name on every system; without an extension."""
    report: Report


@dataclass(frozen=True, slots=True)
class Report:
    """Everything there is to read about some targets, ready to be written.

    A report of one section bears the section's title; one of several starts with a list of links
    to them.
    """

    title: Text
    sections: tuple[Section, ...] = ()
    fence: Fence = "mermaid"
    host: Host = "github"
    elsewhere: tuple[tuple[str, str], ...] = ()
    """(key, file) of the sections that a `Ref` leads to and that stand in other files."""

    def to_markdown(self) -> str:
        """Return the whole report as Markdown that ends with one newline."""
        # The writer is built on this module, so it is taken when called.
        from graph2mermaid.report.markdown import write_report

        return write_report(self)

    def figures(self) -> Iterator[Figure]:
        """Yield every figure in reading order."""
        for section in self.sections:
            yield from _figures(section)

    def first_diagram(self) -> str:
        """Return the Mermaid text of the first figure, without a fence.

        Raises:
            Graph2MermaidError: The report has no figure.
        """
        for figure in self.figures():
            return figure.text
        raise Graph2MermaidError(f"{plain(self.title)}: there is nothing to draw, it has no ops")

    def pages(self) -> list[Page]:
        """Return the report in parts, a file each: one for each target, and for each of its parts.

        The first page is `index` when there are several. With several targets it links to theirs
        as `NAME.md`; else it is the target's own.
        """
        from graph2mermaid.report.pages import pages

        return pages(self)


def plain(text: Text) -> str:
    """Return the words without their form."""
    if isinstance(text, str):
        return text
    if isinstance(text, tuple):
        return "".join(plain(part) for part in text)
    return text.text if isinstance(text, Code) else plain(text.words)


def parts(text: Text) -> tuple[str | Code | Link | Ref, ...]:
    """Return the words as a tuple, whatever form they came in."""
    return text if isinstance(text, tuple) else (text,)


def contents_line(section: Section, target: str) -> Text:
    """Return the line that leads to a section: its title as a link, and its summary."""
    title = section.title if isinstance(section.title, Code) else plain(section.title)
    tail = (": ", *parts(section.summary)) if section.summary else ()
    return (Link(title, target), *tail)


def _figures(section: Section) -> Iterator[Figure]:
    for block in section.blocks:
        if isinstance(block, Figure):
            yield block
        elif isinstance(block, Section):
            yield from _figures(block)
