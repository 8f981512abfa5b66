"""How large a diagram may be: what Mermaid still draws, and what people still read."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from graph2mermaid.mermaid.diagram import Diagram

MAX_EDGES = 450
"""Mermaid draws 500; one more is an error."""
MAX_UNITS = 45_000
"""Mermaid draws 50,000 UTF-16 units; one more silently becomes a picture of an error."""
GITLAB_UNITS = 2_000
"""Above this, in one block or in the earlier ones of the page together, GitLab asks for a click."""

READABLE_NODES = 30
READABLE_EDGES = 40
READABLE_CHAIN = 60
"""Nodes in a single file, which stays legible at any length."""

_QUOTED = re.compile(r'"[^"\n]*"')
_NOT_DRAWN = re.compile(r"^\s*(?:accTitle\b|accDescr\b|%%).*$", re.MULTILINE)
_ARROWS = ("-->", "-.->", "==>")
_ARROW = re.compile("|".join(map(re.escape, _ARROWS)))


class Size(NamedTuple):
    """What Mermaid's own limits count, measured on rendered text."""

    units: int
    edges: int


def measure(text: str) -> Size:
    """Count the UTF-16 units and the edges of a Mermaid text."""
    units = len(text.encode("utf-16-le", "surrogatepass")) // 2
    drawn = _NOT_DRAWN.sub("", _QUOTED.sub("", text))
    return Size(units, len(_ARROW.findall(drawn)))


def fits(text: str) -> bool:
    """Tell whether every host draws this text: it is below both caps."""
    # Most texts are far below them, however much is quoted or takes two units.
    if 2 * len(text) <= MAX_UNITS and sum(map(text.count, _ARROWS)) <= MAX_EDGES:
        return True
    size = measure(text)
    return size.units <= MAX_UNITS and size.edges <= MAX_EDGES


def readable(diagram: Diagram) -> bool:
    """Tell whether a person reads this on one page: a small diagram, or one longer chain."""
    nodes, edges = len(diagram.boxes), len(diagram.links)
    if nodes <= READABLE_NODES and edges <= READABLE_EDGES:
        return True
    return nodes <= READABLE_CHAIN and _is_chain(diagram)


def _is_chain(diagram: Diagram) -> bool:
    """Tell whether no box has two links in or out, and no two chains stand side by side."""
    out = Counter(link.source for link in diagram.links)
    into = Counter(link.target for link in diagram.links)
    single = all(count == 1 for count in (*out.values(), *into.values()))
    return single and len(diagram.links) >= len(diagram.boxes) - 1
