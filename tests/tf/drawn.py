"""A function traced and drawn, read as its readers do: by the words in the picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import graph2mermaid
from graph2mermaid import Capture, Graph
from graph2mermaid.mermaid.diagram import Diagram, Frame


@dataclass(frozen=True)
class Drawn:
    """A capture, and its first diagram."""

    capture: Capture
    diagram: Diagram

    @property
    def graph(self) -> Graph:
        """The traced graph."""
        return self.capture.traced

    @property
    def boxes(self) -> list[str]:
        """The words of every box, lines joined by ` | `."""
        return [" | ".join(box.lines) for box in self.diagram.boxes.values()]

    @property
    def links(self) -> list[tuple[str, str, str]]:
        """Every arrow as the first line of its start, its own words, the first line of its end."""
        boxes = self.diagram.boxes
        return [
            (boxes[link.source].lines[0], " | ".join(link.lines), boxes[link.target].lines[0])
            for link in self.diagram.links
        ]

    @property
    def dotted(self) -> list[tuple[str, str]]:
        """The ends of every dotted arrow."""
        boxes = self.diagram.boxes
        return [
            (boxes[link.source].lines[0], boxes[link.target].lines[0])
            for link in self.diagram.links
            if link.dotted
        ]

    @property
    def frames(self) -> dict[str, list[str]]:
        """For the first words of each frame's title, the first lines of the boxes just in it."""
        return {
            frame.lines[0].partition(" · ")[0]: [
                self.diagram.boxes[name].lines[0] for name in frame.boxes
            ]
            for frame in _all(self.diagram.frames)
        }

    @property
    def titles(self) -> list[str]:
        """The titles of all frames, outer ones first."""
        return [frame.lines[0] for frame in _all(self.diagram.frames)]

    def types(self) -> Counter[str]:
        """Count the traced ops, bodies left out."""
        return Counter(node.op for node in self.graph.nodes())

    def body(self, name: str) -> Counter[str]:
        """Count the ops of a function body, arguments left out."""
        nodes = self.graph.functions[name].nodes()
        return Counter(node.op for node in nodes if node.op != "Placeholder")


def _all(frames: tuple[Frame, ...]) -> Iterator[Frame]:
    for frame in frames:
        yield frame
        yield from _all(frame.frames)


TEXTS: dict[str, None] = {}
"""Every Mermaid text of this module's tests so far; conftest.py has the browser draw them."""


def drawn(function: Callable[..., Any], *args: Any, **options: Any) -> Drawn:
    """Trace a function and draw it."""
    capture = graph2mermaid.trace(function, *args)
    figures = list(capture.report(**options).figures())
    TEXTS.update(dict.fromkeys(figure.text for figure in figures))
    return Drawn(capture, figures[0].diagram)
