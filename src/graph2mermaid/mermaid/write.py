"""A diagram as Mermaid text, in the subset that draws the same on every version since 10.

Ids are counters, never names; every label is quoted and escaped; boxes are declared inside their
subgraphs and edges come after all of these, since Mermaid puts a box into the first subgraph that
mentions it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from graph2mermaid.mermaid.diagram import Box, Diagram, Frame, Link
from graph2mermaid.mermaid.escape import label, plain, shown
from graph2mermaid.mermaid.theme import DOTTED_STYLE, FRAME_STYLE, STYLES, TINTS, tints

MAX_DEPTH = 2
"""Frames in frames. With one more, the older layout engine's pictures are too wide to read."""

_FRAME_DIRECTION = {"TD": "TB", "LR": "LR"}  # inside a subgraph, TD is an error up to 11.12


def write(diagram: Diagram) -> str:
    """Return the Mermaid text of a diagram, ending in one line feed.

    Boxes get the ids `n0`, `n1`, ... and frames with boxes in them `s0`, `s1`, ..., both in the
    diagram's order. A frame stands where the first of its boxes would.

    Raises:
        ValueError: The diagram contradicts itself: an unknown box in a link or frame, a box in
            two frames, frames nested more than two deep, an unknown direction.
    """
    _check(diagram)
    return "\n".join((f"graph {diagram.direction}", *_indented(_Writer(diagram).lines()), ""))


class _Writer:
    """The lines of one diagram, and the ids they share."""

    def __init__(self, diagram: Diagram) -> None:
        self.diagram = diagram
        self.rank = {key: rank for rank, key in enumerate(diagram.boxes)}
        drawn = (frame for frame in _all_frames(diagram.frames) if not frame.empty)
        self.frame_ids = {frame: f"s{number}" for number, frame in enumerate(drawn)}

    def lines(self) -> Iterator[str]:
        title, description = plain(self.diagram.title), plain(self.diagram.description)
        if title:
            yield f"accTitle: {title}"
        if description:
            yield f"accDescr: {description}"
        framed = {key for frame in self.frame_ids for key in frame.boxes}
        free = [key for key in self.diagram.boxes if key not in framed]
        yield from self.members(free, self.diagram.frames)
        yield from map(self.link, self.diagram.links)
        yield from self.classes()
        yield from (f"style {frame_id} {FRAME_STYLE}" for frame_id in self.frame_ids.values())
        dotted = [str(i) for i, link in enumerate(self.diagram.links) if link.dotted]
        if dotted:  # last, since it is an error before the edges that it names
            yield f"linkStyle {','.join(dotted)} {DOTTED_STYLE}"

    def members(self, boxes: Iterable[str], frames: Iterable[Frame]) -> Iterator[str]:
        first: dict[int, str | Frame] = {self.rank[key]: key for key in boxes}
        first |= {self.first_rank(frame): frame for frame in frames if not frame.empty}
        for _, member in sorted(first.items()):
            if isinstance(member, Frame):
                yield from self.frame(member)
            else:
                yield self.box(member)

    def first_rank(self, frame: Frame) -> int:
        return min(self.rank[key] for part in _all_frames([frame]) for key in part.boxes)

    def frame(self, frame: Frame) -> Iterator[str]:
        # One line: Mermaid 11 draws the first box over a second line of the title.
        title = label([" · ".join(filter(None, frame.lines))])
        yield f'subgraph {self.frame_ids[frame]}["{title}"]'
        yield f"  direction {_FRAME_DIRECTION[self.diagram.direction]}"
        yield from _indented(self.members(frame.boxes, frame.frames))
        yield "end"

    def node_id(self, key: str) -> str:
        return f"n{self.rank[key]}"

    def box(self, key: str) -> str:
        box: Box = self.diagram.boxes[key]
        style = STYLES[box.look]
        return f'{self.node_id(key)}{style.opening}"{label(box.lines)}"{style.closing}'

    def link(self, link: Link) -> str:
        arrow = "-.->" if link.dotted else "-->"
        text = f'|"{label(link.lines)}"|' if link.lines and shown(link.lines) else ""
        return f"{self.node_id(link.source)} {arrow}{text} {self.node_id(link.target)}"

    def classes(self) -> Iterator[str]:
        members: dict[tuple[str, str], list[str]] = {
            (style.name, style.css): [] for style in STYLES.values()
        }
        colors = {
            tint: (f"tint{i}", TINTS[i % len(TINTS)]) for i, tint in enumerate(tints(self.diagram))
        }
        members |= {color: [] for color in colors.values()}
        for key, box in self.diagram.boxes.items():
            style = STYLES[box.look]
            members[colors.get(box.tint) or (style.name, style.css)].append(self.node_id(key))
        used = [(name, css, ids) for (name, css), ids in members.items() if ids]
        yield from (f"classDef {name} {css}" for name, css, _ in used)
        yield from (f"class {','.join(ids)} {name}" for name, _, ids in used)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _all_frames(frames: Iterable[Frame]) -> Iterator[Frame]:
    """Yield frames, each followed by those inside it."""
    for frame in frames:
        yield frame
        yield from _all_frames(frame.frames)


def _check(diagram: Diagram) -> None:
    if diagram.direction not in _FRAME_DIRECTION:
        raise ValueError(f"direction {diagram.direction!r} is neither TD nor LR")
    for link in diagram.links:
        for end in (link.source, link.target):
            if end not in diagram.boxes:
                raise ValueError(f"link {link.source!r} -> {link.target!r}: no box {end!r}")
    homes: dict[str, str] = {}
    for frame in _all_frames(diagram.frames):
        for key in frame.boxes:
            if key not in diagram.boxes:
                raise ValueError(f"frame {frame.key!r}: no box {key!r}")
            if key in homes:
                raise ValueError(f"box {key!r} is in frames {homes[key]!r} and {frame.key!r}")
            homes[key] = frame.key
    deepest = max((_depth(frame) for frame in diagram.frames if not frame.empty), default=0)
    if deepest > MAX_DEPTH:
        raise ValueError(f"frames are nested {deepest} deep, more than {MAX_DEPTH}")


def _depth(frame: Frame) -> int:
    return 1 + max((_depth(inner) for inner in frame.frames if not inner.empty), default=0)
