"""How each kind of box looks, and the line that says so in words.

Every color is a fill, a stroke and a text color together: a host in dark mode changes what is not
given. No meaning hangs on color alone; each look has a shape, or shares one and says so itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from graph2mermaid.mermaid.diagram import Diagram, Look

FRAME_STYLE = "fill:none,stroke:#888888"
DOTTED_STYLE = "stroke:#888888"
"""Mermaid 12.3 draws some of its dotted edges solid; gray tells them apart all the same."""


@dataclass(frozen=True, slots=True)
class Style:
    """The brackets of a box, its `classDef`, and its words in the legend."""

    name: str
    opening: str
    closing: str
    css: str
    shape: str
    meaning: str


def _css(fill: str, stroke: str, color: str, *more: str) -> str:
    return ",".join((f"fill:{fill}", f"stroke:{stroke}", f"color:{color}", *more))


_BLUE = _css("#dbeafe", "#1d4ed8", "#0b1f4d")
_GREEN = _css("#ecfdf5", "#047857", "#022c22")
_AMBER = _css("#fef3c7", "#b45309", "#4a2a04")
_GRAY = _css("#f3f4f6", "#6b7280", "#111827")
_INDIGO = _css("#eef2ff", "#4338ca", "#1e1b4b")
_FUCHSIA = _css("#fae8ff", "#a21caf", "#4a044e")
_SLATE = _css("#f8fafc", "#64748b", "#0f172a")
_VIOLET = _css("#ede9fe", "#6d28d9", "#2e1065", "stroke-width:2px")
_LIME = _css("#dcfce7", "#15803d", "#052e16", "stroke-dasharray:4 3")
_ORANGE = _css("#ffedd5", "#c2410c", "#431407")
_CYAN = _css("#cffafe", "#0e7490", "#083344")
_GHOST = _css("#ffffff", "#6b7280", "#4b5563", "stroke-dasharray:2 4")
_DASHED = _css("#ffffff", "#6b7280", "#374151", "stroke-width:2px", "stroke-dasharray:6 4")

TINTS: tuple[str, ...] = (
    _css("#e0f2fe", "#0369a1", "#082f49"),
    _css("#ffedd5", "#c2410c", "#431407"),
    _css("#dcfce7", "#15803d", "#052e16"),
    _css("#fce7f3", "#be185d", "#500724"),
    _css("#ede9fe", "#6d28d9", "#2e1065"),
    _css("#fef9c3", "#a16207", "#422006"),
)
"""The colors of tints, in the order in which they occur; with more tints they start again."""


def tints(diagram: Diagram) -> list[str]:
    """Return the tints of a diagram in the order in which they occur."""
    return list(dict.fromkeys(box.tint for box in diagram.boxes.values() if box.tint))


# A class cannot be named "call" (or "end", "click", "style"): Mermaid takes these for statements.
STYLES: Mapping[Look, Style] = MappingProxyType(
    {
        Look.INPUT: Style("input", "([", "])", _BLUE, "Rounded ends", "argument"),
        Look.OUTPUT: Style("output", "([", "])", _BLUE, "Rounded ends", "result"),
        Look.CONST: Style("const", "{{", "}}", _GREEN, "Hexagon", "constant"),
        Look.VARIABLE: Style("variable", "[(", ")]", _AMBER, "Cylinder", "variable"),
        Look.OP: Style("op", "[", "]", _GRAY, "Box", "op"),
        Look.CALL: Style("called", "[[", "]]", _INDIGO, "Double sides", "function call"),
        Look.GROUP: Style("group", "[[", "]]", _INDIGO, "Double sides", "group of ops"),
        Look.CONTROL: Style("control", "{", "}", _FUCHSIA, "Diamond", "choice or loop condition"),
        Look.TENSOR: Style("tensor", "(", ")", _SLATE, "Rounded corners", "named tensor"),
        Look.MERGE: Style("merge", "(", ")", _FUCHSIA, "Rounded corners", "where branches join"),
        Look.ELIDED: Style("elided", "[", "]", _DASHED, "Dashed box", "part drawn elsewhere"),
        Look.FUSED: Style("fused", "[[", "]]", _VIOLET, "Double sides", "fused kernel"),
        Look.FOLDED: Style("folded", "{{", "}}", _LIME, "Dashed hexagon", "folded constant"),
        Look.CHANGED: Style("changed", "[", "]", _ORANGE, "Box", "op that was changed"),
        Look.ADDED: Style("added", "[", "]", _CYAN, "Box", "op that an optimizer added"),
        Look.GHOST: Style(
            "ghost", "(", ")", _GHOST, "Dashed rounded corners", "op that was removed"
        ),
    }
)


def legend(diagram: Diagram) -> str:
    """Return one line of Markdown that explains the shapes and arrows of this diagram, no others.

    A diagram without boxes has an empty legend.
    """
    used = {box.look for box in diagram.boxes.values()}
    meanings: dict[str, list[str]] = {}
    for look, style in STYLES.items():
        if look in used:
            meanings.setdefault(style.shape, []).append(style.meaning)
    sentences = [f"{shape}: {' or '.join(words)}." for shape, words in meanings.items()]
    if tints(diagram):
        sentences.append("Color and last line: the device.")
    if any(not frame.empty for frame in diagram.frames):
        sentences.append("Frame: a body or scope, named in its title.")
    if Look.GHOST in used:
        sentences.append('Arrow "as traced": as it was before; nothing flows there now.')
    if any(link.dotted for link in diagram.links):
        sentences.append("Gray dotted arrow: order only (control edge) or a loop's next iteration.")
    return " ".join(sentences)
