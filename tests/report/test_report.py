"""A report as Markdown: its order, its links, its fences, its parts."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.mermaid.diagram import Box, Diagram
from graph2mermaid.report.anchors import heading_slug
from graph2mermaid.report.model import (
    Code,
    Column,
    Figure,
    Items,
    Link,
    Note,
    Paragraph,
    Ref,
    Report,
    Section,
    Table,
    Text,
    plain,
)
from tests.graph_strategies import words
from tests.report.reading import read


def figure(text: str = 'graph TD\n  n0["a"]\n', legend: str = "", *left_out: str) -> Figure:
    return Figure(Diagram("d", "", {"a": Box(("a",))}, left_out=left_out), text, legend)


def report(*titles: Text, **fields) -> Report:
    """A report of one section for each title, with a diagram in each."""
    return Report("All", tuple(Section(title, (figure(),)) for title in titles), **fields)


def test_one_section_is_the_report():
    """A report of one section bears that section's title, and no list of contents."""
    assert report(Code("f")).to_markdown() == ('# `f`\n\n```mermaid\ngraph TD\n  n0["a"]\n```\n')


def test_every_kind_of_block():
    """Blocks stand under each other in their order, with one empty line between them."""
    table = Table(
        (Column("Op"), Column("Count", number=True)),
        ((Code("MatMul"), "1,000"), (("a", Code("b")), "")),
        caption="... and 3 more.",
    )
    section = Section(
        "Title",
        (
            Paragraph(("The graph of ", Code("f"), ".")),
            Note("An assumption."),
            Note("A failure.", "warning"),
            figure("graph TD\n", "A legend.", "2 ops are left out."),
            table,
            Items(("one", Link("two", "two.md"))),
            Items(()),
            Section("Inner", (Paragraph("words"),)),
        ),
    )
    assert Report("R", (section,)).to_markdown() == (
        """\
# Title

The graph of `f`.

> **Note:** An assumption.

> **Warning:** A failure.

```mermaid
graph TD
```

A legend.

2 ops are left out.

| Op | Count |
| --- | ---: |
| `MatMul` | 1,000 |
| a`b` |  |

... and 3 more.

- one
- [two](two.md)

## Inner

words
"""
    )


def test_several_sections_start_with_links_to_them():
    """The list on top leads to each section, with a few words about it."""
    found = read(
        Report(
            "Two",
            (
                Section(Code("f"), summary="3 ops"),
                Section("g", summary=("calls ", Code("f"))),
            ),
        ).to_markdown()
    )
    assert found.headings == [(1, "Two"), (2, "f"), (2, "g")]
    assert found.items == ["f: 3 ops", "g: calls f"]
    assert found.links == [("f", "#f"), ("g", "#g")]


def test_references_lead_to_the_section_of_their_key():
    """A key is known within one section of the report; elsewhere its words stay words."""

    def target(name: str) -> Section:
        inner = Section("Part", (Paragraph(("up to ", Ref(Code(name), "top"))),), key="part")
        return Section(name, (Paragraph(Ref("the part", "part")), inner), key="top")

    lost = Section("h", (Paragraph(("see ", Ref("it", "part"))),))
    found = read(Report("All", (target("f"), target("g"), lost)).to_markdown())
    assert found.links[3:] == [
        ("the part", "#part"),
        ("f", "#f"),
        ("the part", "#g-part"),
        ("g", "#g"),
    ]
    assert found.paragraphs[-1] == "see it"


def test_an_empty_report_is_a_title():
    """Nothing to say is said in one line."""
    assert Report("Nothing").to_markdown() == "# Nothing\n"


def test_headings_that_collide_get_anchors_of_their_own():
    """Links lead to the section that was meant, though hosts would give both the same anchor."""
    twice = Report(
        "f",
        (
            Section(Code("f"), (Section("Ops"), Section("Ops"))),
            Section(Code("F"), (Section("Ops"),)),
        ),
    )
    text = twice.to_markdown()
    assert [line for line in text.splitlines() if line] == [
        "# f",
        "- [`f`](#f-2)",
        "- [`F`](#f-3)",
        '<a id="f-2"></a>',
        "## `f`",
        "### Ops",
        '<a id="f-2-ops"></a>',
        "### Ops",
        '<a id="f-3"></a>',
        "## `F`",
        '<a id="f-3-ops"></a>',
        "### Ops",
    ]


@pytest.mark.parametrize(
    ("title", "anchor"),
    [
        ("Ops by type", "ops-by-type"),
        ("a - b", "a-b"),  # GitHub says a---b, GitLab a-b
        ("日本語", "section"),
        ("<lambda>", "lambda"),
        ("model.py:f", "modelpyf"),
        ("...", "section"),
        ("_private", "_private"),
    ],
)
def test_anchors_are_those_of_every_host(title: str, anchor: str):
    """Where hosts disagree about a heading's anchor, it is written out."""
    text = Report("R", (Section(title), Section("other"))).to_markdown()
    explicit = heading_slug(title) != anchor
    assert f"(#{anchor})" in text
    assert (f'<a id="{anchor}"></a>' in text) == explicit


sections = st.recursive(
    st.builds(Section, words),
    lambda inner: st.builds(Section, words, st.lists(inner, max_size=3).map(tuple)),
    max_leaves=6,
)


@given(words, st.lists(sections, max_size=4).map(tuple))
def test_anchors_are_unique(title: str, found: tuple[Section, ...]):
    """A link of the list leads to its section: no heading before it has the same anchor."""
    text = Report(title, found).to_markdown()
    first: dict[str, int] = {}
    repeats: Counter[str] = Counter()
    tops: list[int] = []
    for number, line in enumerate(text.splitlines()):
        if line.startswith("<a id="):
            first.setdefault(line.split('"')[1], number + 2)  # it stands above the heading
        elif line.startswith("#"):
            slug = heading_slug(read(line).headings[0][1])
            first.setdefault(f"{slug}-{repeats[slug]}" if repeats[slug] else slug, number)
            repeats[slug] += 1
            tops += [number] if line.startswith("## ") else []
    leads_to = [first[target.removeprefix("#")] for _, target in read(text).links]
    assert leads_to == (tops if len(found) > 1 else [])


@pytest.mark.parametrize(
    ("fence", "first", "last"),
    [
        ("mermaid", "```mermaid", "```"),
        ("myst", "```{mermaid}", "```"),
        ("azure", "::: mermaid", ":::"),
    ],
)
def test_fences(fence, first: str, last: str):
    """Each host's fence starts in the first column, around the text as it is."""
    text = report("f", fence=fence).to_markdown()
    assert f'\n{first}\ngraph TD\n  n0["a"]\n{last}\n' in text


def test_a_fence_is_longer_than_any_in_the_text():
    """Text that holds a fence cannot end the block."""
    section = Section("f", (figure('graph TD\n%%\n```\n````\nn0["a"]\n'), Paragraph("after")))
    found = read(Report("R", (section,)).to_markdown())
    assert found.fences == [("mermaid", 'graph TD\n%%\n```\n````\nn0["a"]\n')]
    assert found.paragraphs == ["after"]


def test_github_needs_no_count_of_characters():
    """What only GitLab counts is not said elsewhere."""
    assert "characters" not in report("f", "g").to_markdown()


@pytest.mark.parametrize(
    ("lengths", "line"),
    [
        ([100], "Mermaid text: 100 characters in 1 diagram. GitLab draws them without a click."),
        (
            [1000, 1000],
            "Mermaid text: 2,000 characters in 2 diagrams. GitLab draws them without a click.",
        ),
        (
            [1000, 1500, 900],
            (
                "Mermaid text: 3,400 characters in 3 diagrams. GitLab draws the first 2,000, "
                "1 of 3 diagrams, and the rest on a click."
            ),
        ),
    ],
    ids=["one", "just", "over"],
)
def test_gitlab_counts_characters(lengths: list[int], line: str):
    """For GitLab the sum is said, and how many diagrams are drawn without a click."""
    blocks = tuple(figure("x" * length) for length in lengths)
    text = Report("R", (Section("f", blocks),), host="gitlab").to_markdown()
    assert text.endswith(f"\n\n{line}\n")


def test_gitlab_has_nothing_to_count():
    """A report without a diagram has no such line."""
    assert Report("R", (Section("f"),), host="gitlab").to_markdown() == "# f\n"


def test_the_first_diagram_is_the_first_in_reading_order():
    """Sections inside sections are read where they stand."""
    inner = Section("inner", (figure("graph TD\n%% 1\n"),))
    outer = Section("outer", (Paragraph("words"), inner, figure("graph TD\n%% 2\n")))
    both = Report("R", (Section("empty"), outer))
    assert both.first_diagram() == "graph TD\n%% 1\n"
    assert [found.text[-2] for found in both.figures()] == ["1", "2"]


def test_no_diagram_is_an_error_of_one_line():
    """Where one is asked for and there is none, the message says of what."""
    with pytest.raises(Graph2MermaidError, match=r"^nothing\(\): there is nothing to draw"):
        Report(Code("nothing()"), (Section("f"),)).first_diagram()


def test_a_report_of_one_target_is_one_page():
    """There is nothing to list."""
    (page,) = report(Code("f")).pages()
    assert (page.name, page.report) == ("f", Report(Code("f"), report(Code("f")).sections))


def test_pages_are_listed_by_the_first():
    """With several targets an index leads to the others, which are complete reports."""
    pages = report(Code("f"), Code("<lambda>"), Code("F"), Code("con"), Code("index")).pages()
    assert [page.name for page in pages] == ["index", "f", "lambda", "F-2", "con_", "index-2"]
    found = read(pages[0].report.to_markdown())
    assert found.headings == [(1, "All")]
    assert found.links == [
        ("f", "f.md"),
        ("<lambda>", "lambda.md"),
        ("F", "F-2.md"),
        ("con", "con_.md"),
        ("index", "index-2.md"),
    ]
    assert read(pages[2].report.to_markdown()).headings == [(1, "<lambda>")]


def test_pages_keep_fence_and_host():
    """What was chosen for the report holds for its parts."""
    pages = report("f", "g", fence="myst", host="gitlab").pages()
    assert {(page.report.fence, page.report.host) for page in pages} == {("myst", "gitlab")}


@given(st.lists(words, max_size=5))
def test_page_names_are_file_names(titles: list[str]):
    """Any title gives a name that all file systems can hold, and tell from the others."""
    names = [page.name for page in report(*map(Code, titles)).pages()]
    assert len({name.casefold() for name in names}) == len(names)
    assert all(
        set(name) <= set(name) & set("-_") | {c for c in name if c.isalnum()} for name in names
    )
    assert all(0 < len(name.encode()) < 100 for name in names)


def test_rows_have_a_cell_for_each_column():
    """A table that would come out crooked is refused when it is made."""
    with pytest.raises(ValueError, match="1 cells in a table of 2 columns"):
        Table((Column("a"), Column("b")), (("x",),))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a", "a"),
        (Code("a"), "a"),
        (Link(Code("a"), "#b"), "a"),
        (("a", Code("b"), Link("c", "d")), "abc"),
    ],
)
def test_plain_words(text: Text, words: str):
    """The words of a text are known without their form."""
    assert plain(text) == words
