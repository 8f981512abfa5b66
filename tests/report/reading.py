"""Markdown read back by a real parser, so that tests compare what a reader sees."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


@dataclass
class Read:
    """The parts of a document, in the order in which they stand."""

    headings: list[tuple[int, str]] = field(default_factory=list)
    paragraphs: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    quotes: list[str] = field(default_factory=list)
    tables: list[list[list[str]]] = field(default_factory=list)
    alignments: list[list[str]] = field(default_factory=list)
    fences: list[tuple[str, str]] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """Types of blocks that a report never has."""


def read(markdown: str) -> Read:
    """Parse a document."""
    found = Read()
    tokens = _PARSER.parse(markdown)
    around: list[str] = []
    for token in tokens:
        if token.nesting == 1:
            around.append(token.type if token.type != "heading_open" else f"heading_{token.tag}")
            _open(token, found)
        elif token.nesting == -1:
            around.pop()
        elif token.type == "inline":
            _inline(token, around, found)
        elif token.type == "fence":
            found.fences.append((token.info, token.content))
        else:
            found.others.append(token.type)
    return found


def words(markdown: str) -> str:
    """Parse one line, and return its words."""
    found = read(markdown)
    assert not found.others, found.others
    (paragraph,) = found.paragraphs or [""]
    return paragraph


def _open(token: Token, found: Read) -> None:
    if token.type == "table_open":
        found.tables.append([])
        found.alignments.append([])
    elif token.type == "tr_open":
        found.tables[-1].append([])
    elif token.type == "th_open":
        found.alignments[-1].append(str(token.attrs.get("style", "")))
    elif token.type in ("ordered_list_open", "em_open"):
        found.others.append(token.type)


def _inline(token: Token, around: list[str], found: Read) -> None:
    children = token.children or []
    text = _text(children)
    found.links += _links(children)
    found.anchors += re.findall(r'<a id="([^"]*)">', token.content)
    if around[-1].startswith("heading_h"):
        found.headings.append((int(around[-1][-1]), text))
    elif around[-1] in ("th_open", "td_open"):
        found.tables[-1][-1].append(text)
    elif "blockquote_open" in around:
        found.quotes.append(text)
    elif "list_item_open" in around:
        found.items.append(text)
    elif text:
        found.paragraphs.append(text)


def _text(children: list[Token]) -> str:
    parts = []
    for child in children:
        if child.type in ("text", "code_inline"):
            parts.append(child.content)
        elif child.type == "html_inline":
            assert child.content in ("<code>", "</code>", "</a>") or child.content.startswith(
                "<a id"
            )
        else:
            allowed = ("link_open", "link_close", "strong_open", "strong_close")
            assert child.type in allowed, child.type
    return "".join(parts)


def _links(children: list[Token]) -> list[tuple[str, str]]:
    links = []
    for at, child in enumerate(children):
        if child.type == "link_open":
            end = next(i for i in range(at, len(children)) if children[i].type == "link_close")
            links.append((_text(children[at + 1 : end]), str(child.attrs["href"])))
    return links
