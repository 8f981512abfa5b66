"""The reports of real graphs as Markdown: read by a parser, they hold what was put into them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from graph2mermaid import Report
from graph2mermaid.report.anchors import heading_slug
from graph2mermaid.report.model import Section, plain
from graph2mermaid.views import make_report
from tests.report.reading import Read, read
from tests.tf import gallery

pytestmark = pytest.mark.tf

ALL = [
    *(pytest.param(make, id=name) for name, make in gallery.MAKERS.items()),
    *(pytest.param(make, id=name, marks=pytest.mark.slow) for name, make in gallery.MODELS.items()),
]


def titles(report: Report) -> list[str]:
    """Return the words of every heading that a report has."""

    def walk(sections: Iterator[Section]) -> Iterator[str]:
        for section in sections:
            yield plain(section.title)
            yield from walk(block for block in section.blocks if isinstance(block, Section))

    found = list(walk(iter(report.sections)))
    return found if len(report.sections) == 1 else [plain(report.title), *found]


def anchors(document: Read) -> set[str]:
    """Return what a link may lead to: the anchors written out, and those that hosts make."""
    made = set(document.anchors)
    repeats: Counter[str] = Counter()
    for _, words in document.headings:
        slug = heading_slug(words)
        made.add(f"{slug}-{repeats[slug]}" if repeats[slug] else slug)
        repeats[slug] += 1
    return made


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("make", ALL)
def test_a_report_is_read_as_it_was_meant(make):
    """No heading, table or diagram is lost, and every link leads somewhere."""
    report = make().report()
    document = read(report.to_markdown())
    assert document.others == []
    assert [words(title) for _, title in document.headings] == [*map(words, titles(report))]
    assert document.headings[0][0] == 1
    figures = list(report.figures())
    assert document.fences == [("mermaid", figure.text) for figure in figures]
    assert {target for _, target in document.links if target.startswith("#")} <= {
        f"#{anchor}" for anchor in anchors(document)
    }
    for table in document.tables:
        assert len({len(row) for row in table}) == 1


@pytest.mark.parametrize("fence", ["myst", "azure"])
@pytest.mark.parametrize("name", ["keras_3_lstm", "calls_a_lambda", "nothing"])
def test_other_fences(name: str, fence: str):
    """Each host finds as many blocks as there are diagrams; all else stays as it is."""
    capture = gallery.MAKERS[name]()
    usual, other = capture.report().to_markdown(), capture.report(fence=fence).to_markdown()
    count = len(list(capture.report().figures()))
    if fence == "myst":
        assert [info for info, _ in read(other).fences] == ["{mermaid}"] * count
    else:
        assert len(re.findall(r"^::: mermaid\n.*?\n:::$", other, re.MULTILINE | re.DOTALL)) == count
        assert "```" not in other
    restored = re.sub(r"^(::: ?|```\{?)mermaid\}?$", "```mermaid", other, flags=re.MULTILINE)
    assert re.sub(r"^:::$", "```", restored, flags=re.MULTILINE) == usual


def test_many_functions_make_one_report():
    """Each is under a heading of its own, and the list at the top leads to all of them."""
    names = ("wasteful", "nothing", "handed_back", "keywords", "calls_a_lambda", "long_names")
    report = make_report([gallery.MAKERS[name]() for name in names])
    document = read(report.to_markdown())
    assert [words(title) for _, title in document.headings] == [*map(words, titles(report))]
    assert len(document.items) == len(names)
    top = [target for _, target in document.links][: len(names)]
    assert {target.removeprefix("#") for target in top} <= anchors(document)
    assert len(set(top)) == len(names)
