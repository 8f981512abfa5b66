"""What the writer writes, drawn by the real Mermaid and read back from the picture."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings

from graph2mermaid.mermaid.budget import MAX_EDGES, MAX_UNITS, fits, measure
from graph2mermaid.mermaid.diagram import Box, Diagram, Frame, Link, Look
from graph2mermaid.mermaid.escape import readable
from graph2mermaid.mermaid.write import write
from tests.mermaid_js.browser import VERSIONS
from tests.strategies import diagrams

MODES = [
    pytest.param(version, html, id=f"{version}-{'html' if html else 'svg'}")
    for version in VERSIONS
    for html in (True, False)
]

WORDS = """
end graph subgraph style class classDef click linkStyle default call href _self
constructor __proto__ toString hasOwnProperty __init__ _x_ __x _ __ ___ _a_b_ a_ x_/_y \ufe0f__x__ \U0001d54f_x_
*x* **x** a*b*c `x` ~~x~~ <lambda> <b>x</b> <br/> List<int> &amp; &#35; #35; #lt; #br# #
$$x$$ $x$ %% %%{ %%{init:{}}%% \\n \\\\ a\\*b ; : | || ( [ { } ] ) [a](b) ![a](b) [a][b]
http://x.org/a_b ftp://x www.x.org WWW.X.ORG x@y.z mailto:x@y.z @ @{x} fa:fa-car ﬂ°lt¶ß
--- --> -- - + = === --x o--o 1. 1) > >x #x |--|--| |:-:| :-- ^ v
é e\u0301 漢字かな שלום مرحبا 🙂 👨\u200d👩\u200d👧 🇦🇹 \u202eabc a\u200bb \x00 \x1b[0m \ud800 \uffff
"""
NASTY = (
    *WORDS.split(),
    "a & b",
    '"q"',
    "it's",
    "# x",
    "> x",
    "- x",
    "+ x",
    "1. x",
    "10) x",
    "- [ ] x",
    "- - -",
    "[a]: b",
    "_a b_",
    "style a:#b; c",
    "classDef a:#b; c",
    "direction TB",
    "x direction  LR y",
    "a\nb\tc\r\nd",
    " x ",
    "",
    " ",
    "n" * 1000,
    "scope/" * 200 + "leaf",
    "word " * 200,
    "漢" * 1000,
    "e" + "\u0301" * 1000,
    "while/body/_23",
    "__inference_f_12",
    "float32[?,4]",
)


def nasty_diagrams():
    """Put each label into a node, a frame and an edge, alone and as first and second line."""
    for start in range(0, len(NASTY), 8):
        batch = NASTY[start : start + 8]
        boxes = {f"alone {name}": Box((name,)) for name in batch}
        boxes |= {f"first {name}": Box((name, "x"), Look.CONTROL) for name in batch}
        boxes |= {f"second {name}": Box(("x", name), Look.CONST) for name in batch}
        yield Diagram(
            title=batch[0],
            description=batch[-1],
            boxes=boxes,
            links=tuple(
                link
                for name in batch
                for link in (
                    Link(f"alone {name}", f"first {name}", (name,)),
                    Link(f"first {name}", f"second {name}", ("x", name), dotted=True),
                )
            ),
            frames=tuple(Frame(name, (name,), (f"alone {name}",)) for name in batch),
        )


@pytest.mark.parametrize(("version", "html_labels"), MODES)
def test_nasty_labels(mermaid, version, html_labels):
    """Each of these reads as it was meant, in every position, on every version."""
    for diagram in nasty_diagrams():
        mermaid.assert_drawn(write(diagram), diagram, version, html_labels)


def every_look(direction):
    boxes = {look.value: Box((look.value, "second line"), look) for look in Look}
    keys = list(boxes)
    links = [Link(*pair, ("t", "float32[?]")) for pair in pairwise(keys)]
    links += [Link("op", "op"), Link("call", "call", ("again",), dotted=True), Link("op", "const")]
    inner = Frame("inner", ("inner",), ("const", "variable"))
    frames = (
        Frame("outer", ("outer", "second"), ("input", "op"), (inner, Frame("none", ("none",)))),
        Frame("alone", ("alone",), ("merge", "tensor")),
    )
    return Diagram("all looks", "one of each", boxes, tuple(links), frames, direction)


@pytest.mark.parametrize(("version", "html_labels"), MODES)
@pytest.mark.parametrize("direction", ["TD", "LR"])
def test_every_form_of_the_writer(mermaid, direction, version, html_labels):
    """Every shape, both arrows, loops on one box, nested frames and titles are drawn."""
    diagram = every_look(direction)
    rendered = mermaid.assert_drawn(write(diagram), diagram, version, html_labels)
    assert (rendered.title, rendered.description) == ("all looks", "one of each")


@pytest.mark.parametrize(("version", "html_labels"), MODES)
def test_smallest_diagram(mermaid, version, html_labels):
    """A diagram without boxes is an empty picture, not an error."""
    mermaid.assert_drawn(write(Diagram("", "", {})), Diagram("", "", {}), version, html_labels)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.slow
def test_largest_diagram(mermaid, version):
    """A diagram at both caps is drawn."""
    boxes = {str(number): Box((f"node {number}", "x" * 38, "y" * 5)) for number in range(420)}
    pairs = [(number, number + 1) for number in range(419)]
    pairs += [(number, number + 2) for number in range(MAX_EDGES - 419)]
    links = tuple(Link(str(source), str(target)) for source, target in pairs)
    text = write(Diagram("large", "at the caps", boxes, links))
    text += "%" * (MAX_UNITS - 1 - measure(text).units) + "\n"
    assert measure(text) == (MAX_UNITS, MAX_EDGES)
    assert fits(text)
    mermaid.assert_drawn(text, version=version)


@settings(max_examples=40)
@given(diagram=diagrams())
def test_any_diagram(mermaid, diagram):
    """Any names, labels, links and frames are drawn as they were meant by the newest version."""
    rendered = mermaid.assert_drawn(write(diagram), diagram)
    for shown in (rendered.title, rendered.description):
        assert not set(readable(shown)) & set("<>&#;%{}")


@settings(max_examples=10)
@given(diagram=diagrams())
def test_any_diagram_on_old_versions(mermaid, diagram):
    """The same on the version that reads labels as Markdown, and on the oldest of use."""
    for version in ("11", "10"):
        for html_labels in (True, False):
            mermaid.assert_drawn(write(diagram), diagram, version, html_labels)
