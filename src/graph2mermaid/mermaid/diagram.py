"""The render model: what a diagram shows, before it is text.

Between the graph, which is about TensorFlow, and the Mermaid text, which is about syntax. A
diagram's labels are plain words; nothing in it is escaped.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class Look(str, enum.Enum):
    """How a box is drawn: each has a shape, a colour and a word in the legend."""

    INPUT = "input"
    OUTPUT = "output"
    CONST = "const"
    VARIABLE = "variable"
    OP = "op"
    CALL = "call"
    CONTROL = "control"
    MERGE = "merge"
    TENSOR = "tensor"
    GROUP = "group"
    ELIDED = "elided"
    FUSED = "fused"
    FOLDED = "folded"
    CHANGED = "changed"
    ADDED = "added"
    GHOST = "ghost"


@dataclass(frozen=True, slots=True)
class Box:
    """A node of the diagram. One to three short lines; longer ones are cut when written."""

    lines: tuple[str, ...]
    look: Look = Look.OP
    tint: str = ""
    """What the color stands for instead of the look: a device, in words. The shape stays."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A subgraph: a titled frame around boxes and further frames."""

    key: str
    lines: tuple[str, ...]
    boxes: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is no box in it at any depth."""
        return not self.boxes and all(frame.empty for frame in self.frames)


@dataclass(frozen=True, slots=True)
class Link:
    """An edge between two boxes. Dotted means order or a loop's way back, nothing else."""

    source: str
    target: str
    lines: tuple[str, ...] = ()
    dotted: bool = False


@dataclass(frozen=True, slots=True)
class Diagram:
    """One picture. Boxes are keyed by any text (op names); ids are given when written.

    A box that no frame names stands outside all frames. Boxes, frames and links are written in
    the order they have here.
    """

    title: str
    description: str
    boxes: Mapping[str, Box]
    links: tuple[Link, ...] = ()
    frames: tuple[Frame, ...] = ()
    direction: str = "TD"
    left_out: tuple[str, ...] = field(default=())
    """Sentences that say what the picture does not show, for the line under it."""
