"""A report in parts that are files of their own, with links from one to the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from graph2mermaid.report.anchors import file_name, unique
from graph2mermaid.report.model import (
    Block,
    Items,
    Note,
    Page,
    Paragraph,
    Ref,
    Report,
    Section,
    Table,
    Text,
    contents_line,
    parts,
    plain,
)

_INDEX = "index"


def pages(report: Report) -> list[Page]:
    """Return a page for each section of a report, and for each section that wants its own."""
    taken = {_INDEX}
    several = len(report.sections) > 1
    made: list[Page] = []
    lines = []
    for section in report.sections:
        own = list(_own(section))
        title = file_name(section.name or plain(section.title))
        name = unique(title, taken) if several or not own else _INDEX
        names = [unique(file_name(f"{title}-{plain(part.title)}"), taken) for part in own]
        files = {part.key: f"{part_name}.md" for part, part_name in zip(own, names, strict=True)}
        whole = replace(section, blocks=tuple(_without_own(section)))
        if own and section.key:
            files[section.key] = f"{name}.md"
        for page_name, page in zip((name, *names), (whole, *own), strict=True):
            keys = (key for key in dict.fromkeys(_keys(page)) if key in files and key != page.key)
            links = tuple((key, files[key]) for key in keys)
            made.append(
                Page(page_name, Report(page.title, (page,), report.fence, report.host, links))
            )
        lines.append(contents_line(section, f"{name}.md"))
    if not several:
        return made
    contents = Section(report.title, (Items(tuple(lines)),))
    return [Page(_INDEX, Report(report.title, (contents,), report.fence, report.host)), *made]


def _keys(section: Section) -> Iterator[str]:
    """Yield the keys of all that a section's words lead to."""
    for text in _texts(section):
        yield from (part.key for part in parts(text) if isinstance(part, Ref))


def _texts(section: Section) -> Iterator[Text]:
    yield section.title
    for block in section.blocks:
        match block:
            case Section():
                yield from _texts(block)
            case Note() | Paragraph():
                yield block.text
            case Items():
                yield from block.lines
            case Table():
                yield block.caption
                yield from (cell for row in block.rows for cell in row)


def _own(section: Section) -> Iterator[Section]:
    for block in section.blocks:
        if isinstance(block, Section):
            if block.own_page:
                yield block
            yield from _own(block)


def _without_own(section: Section) -> Iterator[Block]:
    for block in section.blocks:
        if not isinstance(block, Section):
            yield block
        elif not block.own_page:
            yield replace(block, blocks=tuple(_without_own(block)))
