"""Words in a line: what a reader sees is what was meant, whatever the words are."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from graph2mermaid.report.inline import line
from graph2mermaid.report.model import Code, Link, Text, parts
from tests.graph_strategies import AWKWARD
from tests.report.reading import read, words

MARKS = "`*_|<>#[](){}~$&\\!-+=:.1ab \n"
nasty = st.sampled_from(AWKWARD) | st.text(MARKS, max_size=12) | st.text(max_size=12)
pieces = nasty | st.builds(Code, nasty) | st.builds(Link, nasty.filter(str.strip), nasty)
texts: st.SearchStrategy[Text] = pieces | st.lists(pieces, max_size=4).map(tuple)


def meant(text: Text) -> str:
    """Return what a reader should see."""
    seen = ""
    for part in parts(text):
        words = part if isinstance(part, str | Code) else part.words
        if isinstance(words, Code):
            seen += _clean(words.text).strip() or "(empty)"
        else:
            seen += _clean(words).strip() if isinstance(part, Link) else words
    return _clean(seen).strip()


def _clean(text: str) -> str:
    unprintable = re.sub(r"[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]", "\ufffd", text)
    return re.sub(r"\s+", " ", unprintable)


@given(texts)
def test_a_paragraph_reads_as_meant(text: Text):
    """No words become a mark, and no mark shows."""
    assert words(line(text)) == meant(text)


@given(texts, texts)
def test_a_cell_reads_as_meant(first: Text, second: Text):
    """The same holds in a table, where pipes count too."""
    found = read(f"| a | b |\n| --- | --- |\n| {line(first)} | {line(second)} |\n")
    assert found.tables == [[["a", "b"], [meant(first), meant(second)]]]


@given(texts)
def test_a_heading_reads_as_meant(text: Text):
    """The same holds in a heading, where hash marks at the end count too."""
    assert read(f"## {line(text)}\n").headings == [(2, meant(text))]


@given(texts.filter(meant))
def test_a_list_item_and_a_note_read_as_meant(text: Text):
    """The same holds in a list and in a quote."""
    found = read(f"- {line(text)}\n\n> {line(text)}\n")
    assert [*found.items, *found.quotes] == [meant(text)] * 2
    assert not found.others
