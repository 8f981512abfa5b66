"""A report as Markdown that reads the same on every host.

Plain blocks only. Folding parts (`<details>`) would hide long tables where it works, but MkDocs
shows the Markdown inside as raw text, and Sphinx' other builders drop it. Long tables are cut
instead, and stand below the diagram under headings, which hosts list beside the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, chain, repeat
from types import MappingProxyType

from graph2mermaid.mermaid.budget import GITLAB_UNITS, measure
from graph2mermaid.report.anchors import Anchors
from graph2mermaid.report.inline import line
from graph2mermaid.report.model import (
    Fence,
    Figure,
    Items,
    Note,
    Paragraph,
    Report,
    Section,
    Table,
    Text,
    contents_line,
)

_DEEPEST_HEADING = 6


def write_report(report: Report) -> str:
    """Return a report as Markdown that ends with one newline."""
    anchors = Anchors(report)
    chunks: list[str] = []
    level = 1
    if len(report.sections) != 1:
        contents = (
            contents_line(section, f"#{anchors.target(section)}") for section in report.sections
        )
        chunks += [f"# {line(report.title)}", *_items(contents)]
        level = 2
    for section in report.sections:
        writer = _SectionWriter(
            anchors, report.fence, {**dict(report.elsewhere), **anchors.targets(section)}
        )
        chunks += writer.section(section, level)
    if report.host == "gitlab":
        chunks += _gitlab(report)
    return "\n\n".join(chunks) + "\n"


def fenced(text: str, fence: Fence) -> str:
    """Return Mermaid text between the marks that make a host draw it, at the start of the line."""
    body = text.strip("\n")
    if fence == "azure":
        return f"::: mermaid\n{body}\n:::"
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    marks = "`" * max(3, longest + 1)
    word = "{mermaid}" if fence == "myst" else "mermaid"
    return f"{marks}{word}\n{body}\n{marks}"


@dataclass(frozen=True)
class _SectionWriter:
    """Writes one section of the report, and those inside it."""

    anchors: Anchors
    fence: Fence
    targets: Mapping[str, str]

    def line(self, text: Text) -> str:
        return line(text, self.targets)

    def section(self, section: Section, level: int) -> Iterator[str]:
        anchor = self.anchors.written(section)
        if anchor:
            yield f'<a id="{anchor}"></a>'
        yield f"{'#' * min(level, _DEEPEST_HEADING)} {self.line(section.title)}"
        for block in section.blocks:
            if isinstance(block, Section):
                yield from self.section(block, level + 1)
            else:
                yield from self.block(block)

    def block(self, block: Figure | Table | Note | Paragraph | Items) -> Iterator[str]:
        match block:
            case Figure():
                yield fenced(block.text, self.fence)
                yield from (line(text) for text in (block.legend, *block.diagram.left_out) if text)
            case Table():
                yield self.table(block)
                yield from (self.line(text) for text in (block.caption,) if text)
            case Note():
                yield f"> **{block.kind.capitalize()}:** {self.line(block.text)}"
            case Paragraph():
                yield self.line(block.text)
            case Items():
                yield from _items(block.lines, self.targets, block.levels)

    def table(self, table: Table) -> str:
        heads = (column.title for column in table.columns)
        rule = ("---:" if column.number else "---" for column in table.columns)
        rows = ((self.line(cell) for cell in row) for row in table.rows)
        return "\n".join(map(_row, (map(line, heads), rule, *rows)))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _items(
    lines: Iterable[Text],
    targets: Mapping[str, str] = MappingProxyType({}),
    levels: Iterable[int] = (),
) -> Iterator[str]:
    # Four spaces for a level: Python-Markdown, which MkDocs uses, takes no less.
    items = "\n".join(
        f"{'    ' * level}- {line(text, targets)}"
        for text, level in zip(lines, chain(levels, repeat(0)), strict=False)
    )
    if items:
        yield items


def _gitlab(report: Report) -> Iterator[str]:
    ends = list(accumulate(measure(figure.text).units for figure in report.figures()))
    if not ends:
        return
    what = "1 diagram" if len(ends) == 1 else f"{len(ends)} diagrams"
    drawn = sum(end <= GITLAB_UNITS for end in ends)
    verdict = (
        "GitLab draws them without a click"
        if drawn == len(ends)
        else f"GitLab draws the first {GITLAB_UNITS:,}, {drawn} of {what}, and the rest on a click"
    )
    yield f"Mermaid text: {ends[-1]:,} characters in {what}. {verdict}."
