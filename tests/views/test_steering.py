"""The options that steer how much stands on a page, and what is drawn first."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.mermaid.budget import MAX_EDGES, fits
from graph2mermaid.mermaid.write import write
from graph2mermaid.report.model import Report
from graph2mermaid.views import make_report
from graph2mermaid.views.drawing import Picture, draw
from graph2mermaid.views.options import Options
from tests.builders import capture, graph
from tests.report.reading import read


def layers(count: int, ops: int = 6) -> str:
    """Return layers one after the other, each a scope of different ops."""
    lines = ["x:Placeholder float32[4] label=images"]
    before = "x"
    for layer in range(count):
        for op in range(ops):
            name = f"layer{layer}/step{op}"
            lines.append(f"{before} -> {name}:Op{layer}x{op} float32[4]")
            before = name
    return "\n".join([*lines, f"{before} => y"])


def pictures(text: str, **options: Any) -> list[Picture]:
    """Return all pictures of a graph."""
    return list(draw(graph(text), Options(**options)))


def own(picture: Picture) -> int:
    """Count the nodes of a page without the stubs at its border."""
    return sum(not name.startswith("stub:") for name in picture.diagram.boxes)


def report(text: str, **options: Any) -> Report:
    """Return the report of a text."""
    return make_report([capture(text)], options=Options(**options))


def test_depth_limits_the_overview_alone():
    """At depth 0 every group of the overview is closed; its parts are drawn as ever."""
    closed = pictures(layers(4), depth=0)
    assert [title for title, _ in closed[0].parts] == [f"layer{number}" for number in range(4)]
    assert not pictures(layers(4))[0].parts
    assert "layer1/step3" in closed[2].diagram.boxes


def test_more_nodes_are_drawn_when_asked_for():
    """`max_nodes` opens what would be closed for a reader's sake."""
    assert pictures(layers(20))[0].parts
    (whole,) = pictures(layers(20), max_nodes=500)
    assert own(whole) == 122


@settings(max_examples=15, deadline=None)
@given(st.integers(4, 40), st.integers(1, 12), st.integers(1, 30))
def test_no_page_has_more_nodes_than_asked_for(most: int, count: int, ops: int):
    """However few are wanted, every page keeps to it, and every op is on a page."""
    drawn = pictures(layers(count, ops), max_nodes=most)
    assert max(map(own, drawn)) <= most
    boxes = {name for picture in drawn for name in picture.diagram.boxes}
    assert sum(name.startswith("layer") for name in boxes) == count * ops


def test_the_caps_win():
    """No number of nodes makes a diagram that Mermaid refuses."""
    drawn = pictures(layers(100, 10), max_nodes=100_000)
    assert len(drawn) > 1
    assert all(fits(write(picture.diagram)) for picture in drawn)
    assert len(drawn[0].diagram.links) <= MAX_EDGES


def test_without_folds_equal_parts_are_drawn_each():
    """`fold=False` draws every one of the equal layers by itself."""
    lines = ["x:Placeholder float32[4]"]
    before = "x"
    for layer in range(12):
        for op in ("MatMul", "Relu", "Add", "Mul", "Tanh", "Neg"):
            lines.append(f"{before} -> block{layer}/{op}:{op} float32[4]")
            before = f"block{layer}/{op}"
    text = "\n".join(lines)
    folded, plain = pictures(text), pictures(text, fold=False)
    assert folded[0].parts == (("block0-10 × 11", "|block0"),)  # the last one feeds no other
    assert not any("×" in picture.title for picture in plain)
    boxes = {name for picture in plain for name in picture.diagram.boxes}
    assert sum(name.startswith("block") for name in boxes) == 72


@pytest.mark.parametrize(
    ("options", "boxes", "title", "said"),
    [
        (
            {"focus": "layer2/step3"},
            ["layer2/step2", "layer2/step3", "layer2/step4"],
            "around layer2/step3",
            (
                "This is what is at most 1 hop from layer2/step3: 3 of 122 nodes; "
                "2 edges to or from others are cut."
            ),
        ),
        (
            {"focus": "images", "hops": 0},
            ["x"],
            "images",
            "This is what is in images: 1 of 122 nodes; 1 edge to or from others is cut.",
        ),
        (
            {"from_": "layer2/step5", "to": "layer3/step0"},
            ["layer2/step5", "layer3/step0"],
            "layer2/step5 to layer3/step0",
            (
                "This is all paths from layer2/step5 to layer3/step0: 2 of 122 nodes; "
                "2 edges to or from others are cut."
            ),
        ),
    ],
    ids=["focus", "focus alone", "paths"],
)
def test_what_is_selected_comes_first(
    options: dict[str, Any], boxes: list[str], title: str, said: str
):
    """It is a picture of its own before the overview, and says what it leaves out."""
    first, second, *_ = pictures(layers(20), **options)
    assert list(first.diagram.boxes) == boxes
    assert (first.title, first.diagram.left_out[0]) == (title, said)
    overview = pictures(layers(20))[0]
    assert second == overview
    assert (overview.title, overview.key) in first.parts


def test_a_large_selection_has_pages_too():
    """A selection that is too large for a page is grouped like everything else."""
    drawn = pictures(layers(40), from_="images", to="layer30")
    assert fits(write(drawn[0].diagram))
    keys = [picture.key for picture in drawn]
    assert len(set(keys)) == len(keys)
    assert {key for picture in drawn for _, key in picture.parts} <= set(keys)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"focus": "layre2"}, r"there is no op.* 'layre2' in f; close to it: layer2"),
        (
            {"from_": "layer3", "to": "layer2"},
            r"no path from 'layer3' to 'layer2'; there is one from 'layer2' to 'layer3'$",
        ),
        ({"from_": "images", "to": "nothing"}, "'nothing'"),
    ],
    ids=["unknown", "no path", "unknown end"],
)
def test_what_cannot_be_selected_is_one_line(options: dict[str, Any], message: str):
    """The error names what was asked for and what there is."""
    with pytest.raises(Graph2MermaidError, match=message):
        report(layers(4), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hops": 2}, "^hops: it counts from focus"),
        ({"from_": "a"}, "^from: .* to is not given"),
        ({"to": "a"}, "^to: .* from is not given"),
        ({"max_nodes": 1}, "^max_nodes: 1 is not a whole number from 4 on"),
        ({"depth": -1}, "^depth: -1 "),
        ({"hops": True, "focus": "a"}, "^hops: True "),
        ({"focus": ""}, "^focus: '' is not the name"),
        ({"fold": "no"}, "^fold: 'no' is neither"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str):
    """Values that mean nothing are refused when they are given."""
    with pytest.raises(Graph2MermaidError, match=message):
        Options(**options)


def test_many_parts_are_listed():
    """More than five parts have a table of contents that leads to every one of them."""
    found = read(report(layers(12)).to_markdown())
    titles = [title for level, title in found.headings if level == 3]
    assert len(titles) > 5
    assert found.items == titles
    few = read(report(layers(4), depth=0).to_markdown())
    assert not few.items


def test_each_picture_is_a_page_when_files_are_asked_for():
    """There are as many pages as pictures, and every link between them leads to one."""
    text = layers(60, 30)
    drawn = pictures(text)
    assert len(drawn) > 41
    pages = report(text, out_dir=True).pages()
    assert pages[0].name == "index"
    assert len(pages) == len(drawn)
    files = {f"{page.name}.md" for page in pages}
    assert len({file.casefold() for file in files}) == len(pages)
    reached = set()
    for page in pages:
        found = read(page.report.to_markdown())
        assert len(found.fences) == 1
        targets = {target for _, target in found.links if not target.startswith("#")}
        assert targets <= files
        reached |= targets
        if page.name != "index":
            assert any(re.match("A part of ", words) for words in found.paragraphs)
    assert reached == files
    contents = read(pages[0].report.to_markdown())
    assert len(contents.items) == len(pages) - 1


def test_a_cycle_of_groups_is_made_of_plain_edges():
    """Data that flows between two groups both ways is no loop, so none of it is dotted."""
    text = "x:Placeholder -> a/p:Exp -> b/q:Exp -> a/r:Neg -> b/s:Neg => y"
    overview = next(iter(pictures(text, depth=0))).diagram
    links = {(link.source, link.target): link.dotted for link in overview.links}
    assert links["group:|a", "group:|b"] is links["group:|b", "group:|a"] is False


def test_edges_from_stubs_do_not_repeat_them():
    """A dashed box says where a tensor comes from, and the edge what it is: of a variable, its value."""
    text = (
        f"v:Placeholder holds=float32[4] label=w; {layers(3)}; v -> layer1/step1; v -> layer2/step1"
    )
    page = next(one for one in pictures(text, depth=0, max_nodes=8) if one.title == "layer1")
    words = {link.source: link.lines for link in page.diagram.links if "stub" in link.source}
    assert words == {"stub:|layer0": ("float32[4]",), "stub:v": ("float32[4]",)}
