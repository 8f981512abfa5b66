"""A report in parts that are files of their own, with links from one to the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from graph2mermaid.report.anchors import file_name, unique
from graph2mermaid.report.model import Block, Items, Page, Report, Section, contents_line, plain

_INDEX = "index"


def pages(report: Report) -> list[Page]:
    """Return a page for each section of a report, and for each section that wants its own."""
    taken = {_INDEX}
    several = len(report.sections) > 1
    made: list[Page] = []
    lines = []
    for section in report.sections:
        parts = list(_own(section))
        title = file_name(section.name or plain(section.title))
        name = unique(title, taken) if several or not parts else _INDEX
        names = [unique(file_name(f"{title}-{plain(part.title)}"), taken) for part in parts]
        files = {part.key: f"{part_name}.md" for part, part_name in zip(parts, names, strict=True)}
        whole = replace(section, blocks=tuple(_without_own(section)))
        if parts and section.key:
            files[section.key] = f"{name}.md"
        for page_name, page in zip((name, *names), (whole, *parts), strict=True):
            links = tuple((key, file) for key, file in files.items() if key != page.key)
            made.append(
                Page(page_name, Report(page.title, (page,), report.fence, report.host, links))
            )
        lines.append(contents_line(section, f"{name}.md"))
    if not several:
        return made
    contents = Section(report.title, (Items(tuple(lines)),))
    return [Page(_INDEX, Report(report.title, (contents,), report.fence, report.host)), *made]


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
