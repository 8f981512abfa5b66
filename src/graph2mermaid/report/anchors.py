"""Names that links and files go by: unique, and the same on every host."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from graph2mermaid.report.inline import seen
from graph2mermaid.report.model import Report, Section

_PORTABLE = re.compile(r"[a-z0-9_]+(-[a-z0-9_]+)*")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)
_LONGEST = 60


class Anchors:
    """The anchor of every heading of a report.

    Hosts make an anchor from a heading's words. They agree about it only for plain ASCII words
    that no earlier heading has; every other heading gets an anchor of its own, written out.
    """

    def __init__(self, report: Report) -> None:
        self._taken: set[str] = set()
        self._repeats: Counter[str] = Counter()
        self._of: dict[int, tuple[str, bool]] = {}
        if len(report.sections) > 1:
            self._choose(seen(report.title), "")
        for section in report.sections:
            self._add(section, "")

    def target(self, section: Section) -> str:
        """Return what a link to the section says after the `#`."""
        return self._of[id(section)][0]

    def targets(self, section: Section) -> dict[str, str]:
        """Return the link target of every key of a section and of those under it."""
        found = {section.key: f"#{self.target(section)}"} if section.key else {}
        for block in section.blocks:
            if isinstance(block, Section):
                found |= self.targets(block)
        return found

    def written(self, section: Section) -> str | None:
        """Return the anchor to write before the heading, or None where the host makes it."""
        anchor, explicit = self._of[id(section)]
        return anchor if explicit else None

    def _add(self, section: Section, parent: str) -> None:
        anchor, _ = self._of[id(section)] = self._choose(seen(section.title), parent)
        for block in section.blocks:
            if isinstance(block, Section):
                self._add(block, anchor)

    def _choose(self, title: str, parent: str) -> tuple[str, bool]:
        slug = heading_slug(title)
        repeat = self._repeats[slug]
        self._repeats[slug] += 1
        automatic = f"{slug}-{repeat}" if repeat else slug
        if not repeat and slug not in self._taken and _PORTABLE.fullmatch(slug):
            self._taken.add(slug)
            return slug, False
        words = "-".join(re.findall(r"[a-z0-9_]+", title.lower()))[:_LONGEST] or "section"
        # Made from the section above rather than counted, so that it stays when others come.
        self._taken.add(automatic)
        return unique(f"{parent}-{words}" if parent else words, self._taken), True


def heading_slug(title: str) -> str:
    """Return the anchor that GitHub makes from a heading, before it counts repeats."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def file_name(title: str) -> str:
    """Return a name that every file system can hold, without an extension."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", title)[:_LONGEST].strip("-") or "graph"
    return f"{name}_" if _RESERVED.fullmatch(name) else name


def unique(name: str, taken: set[str]) -> str:
    """Return the name, or with a number after it when it is taken, and note it as taken.

    Names that differ only in case count as the same, as they do on some file systems.
    """
    found = next(option for option in _counted(name) if option.casefold() not in taken)
    taken.add(found.casefold())
    return found


def _counted(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1
