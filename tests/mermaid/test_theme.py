"""Looks: complete, readable on any page, and explained in words."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from graph2mermaid.mermaid.diagram import Box, Diagram, Frame, Link, Look
from graph2mermaid.mermaid.theme import STYLES, legend

LIGHT, DARK = "#ffffff", "#0d1117"


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def colors(look):
    return dict(re.findall(r"(fill|stroke|color):(#[0-9a-f]{6})", STYLES[look].css))


def test_every_look_has_a_style():
    """No box is drawn without brackets, colors and a word."""
    assert set(STYLES) == set(Look)


@pytest.mark.parametrize("look", Look)
def test_colors_are_readable_on_any_page(look):
    """Text stands out from its box, and the box or its outline from light and dark pages."""
    color = colors(look)
    assert set(color) == {"fill", "stroke", "color"}
    assert contrast(color["color"], color["fill"]) >= 7
    assert contrast(color["stroke"], color["fill"]) >= 3
    assert contrast(color["stroke"], LIGHT) >= 3
    assert contrast(color["fill"], DARK) >= 3


def test_looks_are_told_apart_without_color():
    """Where two looks share brackets, the legend or the outline tells them apart."""
    for one, other in combinations(STYLES.values(), 2):
        if one.opening == other.opening and one.shape != other.shape:
            assert ("dasharray" in one.css) != ("dasharray" in other.css)


def diagram(*looks, links=(), frames=()):
    boxes = {f"b{number}": Box(("b",), look) for number, look in enumerate(looks)}
    return Diagram("t", "d", boxes, links, frames)


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        pytest.param(diagram(), "", id="nothing"),
        pytest.param(diagram(Look.OP, Look.OP), "Box: op.", id="ops"),
        pytest.param(diagram(Look.OUTPUT), "Rounded ends: result.", id="one of a shape"),
        pytest.param(
            diagram(Look.OUTPUT, Look.VARIABLE, Look.INPUT),
            "Rounded ends: argument or result. Cylinder: variable.",
            id="both of a shape",
        ),
        pytest.param(
            diagram(Look.OP, links=(Link("b0", "b0", dotted=True),)),
            "Box: op. Gray dotted arrow: order only (control edge) or a loop's next iteration.",
            id="dotted arrow",
        ),
        pytest.param(
            diagram(Look.OP, frames=(Frame("f", ("f",), (), (Frame("g", ("g",), ("b0",)),)),)),
            "Box: op. Frame: a body or scope, named in its title.",
            id="frame",
        ),
        pytest.param(diagram(Look.OP, frames=(Frame("f", ("f",)),)), "Box: op.", id="empty frame"),
    ],
)
def test_legend_explains_what_occurs(shown, words):
    """The legend names the shapes and arrows of this diagram and no others."""
    assert legend(shown) == words
