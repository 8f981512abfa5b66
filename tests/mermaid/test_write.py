"""The writer: the whole text of small diagrams, and what holds for any."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings

from graph2mermaid.mermaid.diagram import Box, Diagram, Frame, Link, Look
from graph2mermaid.mermaid.write import write
from tests.strategies import diagrams

A_LOOP = Diagram(
    title="a loop with a branch",
    description="x goes round until it is large",
    boxes={
        "x": Box(("x", "float32[?]"), Look.INPUT),
        "while/relu": Box(("tf.nn.relu",)),
        "while/if/greater": Box(("tf.greater",), Look.CONTROL),
        "while/if/merge": Box(("x",), Look.MERGE),
        "y": Box(("y",), Look.OUTPUT),
    },
    links=(
        Link("x", "while/relu"),
        Link("while/relu", "while/if/greater", ("h",)),
        Link("while/if/greater", "while/if/merge", ("then: h", "float32[?]")),
        Link("while/if/merge", "while/relu", ("next iteration",), dotted=True),
        Link("while/relu", "y", dotted=True),
    ),
    frames=(
        Frame(
            "while",
            ("while · model.py:7",),
            ("while/relu",),
            (
                Frame("none", ("empty",)),
                Frame("if", ("if · model.py:8",), ("while/if/greater", "while/if/merge")),
            ),
        ),
    ),
)

A_LOOP_TEXT = """\
graph TD
  accTitle: a loop with a branch
  accDescr: x goes round until it is large
  n0(["x<br/>float32[?]"])
  subgraph s0["while · model.py:7"]
    direction TB
    n1["tf.nn.relu"]
    subgraph s1["if · model.py:8"]
      direction TB
      n2{"tf.greater"}
      n3("x")
    end
  end
  n4(["y"])
  n0 --> n1
  n1 -->|"h"| n2
  n2 -->|"then: h<br/>float32[?]"| n3
  n3 -.->|"next iteration"| n1
  n1 -.-> n4
  classDef input fill:#dbeafe,stroke:#1d4ed8,color:#0b1f4d
  classDef output fill:#dbeafe,stroke:#1d4ed8,color:#0b1f4d
  classDef op fill:#f3f4f6,stroke:#6b7280,color:#111827
  classDef control fill:#fae8ff,stroke:#a21caf,color:#4a044e
  classDef merge fill:#fae8ff,stroke:#a21caf,color:#4a044e
  class n0 input
  class n4 output
  class n1 op
  class n2 control
  class n3 merge
  style s0 fill:none,stroke:#888888
  style s1 fill:none,stroke:#888888
  linkStyle 3,4 stroke:#888888
"""


def test_whole_text():
    """Frames hold their boxes, edges follow, and only what occurs is styled."""
    assert write(A_LOOP) == A_LOOP_TEXT


def test_smallest_text():
    """Without titles, boxes and links only the header is left."""
    assert write(Diagram("", "", {})) == "graph TD\n"


def test_left_to_right():
    """A diagram from left to right has frames from left to right."""
    shown = Diagram(
        "", "", {"a": Box(("a",))}, frames=(Frame("f", ("f",), ("a",)),), direction="LR"
    )
    assert write(shown).splitlines()[:3] == ["graph LR", '  subgraph s0["f"]', "    direction LR"]


def test_a_frame_has_a_title_of_one_line():
    """The lines of a frame's title are joined, since a box would cover the second."""
    shown = Diagram("", "", {"a": Box(("a",))}, frames=(Frame("f", ("f", "", "g:7"), ("a",)),))
    assert '  subgraph s0["f · g:7"]\n' in write(shown)


def test_a_link_without_visible_text_has_none():
    """An edge whose label shows nothing is written without a label."""
    shown = Diagram("", "", {"a": Box(("a",))}, (Link("a", "a", ("", "\u200b")),))
    assert "  n0 --> n0\n" in write(shown)


@pytest.mark.parametrize(
    ("looks", "line"),
    [
        (Look.INPUT, 'n0(["b"])'),
        (Look.OUTPUT, 'n0(["b"])'),
        (Look.CONST, 'n0{{"b"}}'),
        (Look.VARIABLE, 'n0[("b")]'),
        (Look.OP, 'n0["b"]'),
        (Look.CALL, 'n0[["b"]]'),
        (Look.GROUP, 'n0[["b"]]'),
        (Look.CONTROL, 'n0{"b"}'),
        (Look.MERGE, 'n0("b")'),
        (Look.TENSOR, 'n0("b")'),
        (Look.ELIDED, 'n0["b"]'),
    ],
)
def test_shapes(looks, line):
    """Each look has its shape."""
    assert write(Diagram("", "", {"b": Box(("b",), looks)})).splitlines()[1] == f"  {line}"


BOXES = {"a": Box(("a",)), "b": Box(("b",))}


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        pytest.param(
            Diagram("", "", BOXES, (Link("a", "c"),)), "link 'a' -> 'c': no box 'c'", id="link"
        ),
        pytest.param(
            Diagram("", "", BOXES, frames=(Frame("f", ("f",), ("c",)),)),
            "frame 'f': no box 'c'",
            id="box of a frame",
        ),
        pytest.param(
            Diagram("", "", BOXES, frames=(Frame("f", (), ("a",)), Frame("g", (), ("b", "a")))),
            "box 'a' is in frames 'f' and 'g'",
            id="two frames",
        ),
        pytest.param(
            Diagram(
                "",
                "",
                BOXES,
                frames=(Frame("f", (), (), (Frame("g", (), (), (Frame("h", (), ("a",)),)),)),),
            ),
            "frames are nested 3 deep, more than 2",
            id="depth",
        ),
        pytest.param(
            Diagram("", "", BOXES, direction="TB"),
            "direction 'TB' is neither TD nor LR",
            id="direction",
        ),
    ],
)
def test_contradictions_are_refused(shown, message):
    """A diagram that cannot be drawn as it says is the builder's fault, and the error names it."""
    with pytest.raises(ValueError, match=re.escape(message)):
        write(shown)


def test_empty_frames_do_not_count():
    """Frames without boxes are not written, at any depth."""
    inner = Frame("g", (), (), (Frame("h", (), (), (Frame("i", ()),)),))
    shown = Diagram("", "", BOXES, frames=(Frame("f", ("f",), ("a",), (inner,)),))
    assert write(shown).count("subgraph") == 1


LINE = re.compile(
    r"""(?x)
    graph\ (TD|LR) | \s+accTitle:\ .+ | \s+accDescr:\ .+ | \s+direction\ (TB|LR) | \s+end
    | \s+n\d+(\["[^"]+"\] | \("[^"]+"\) | \(\["[^"]+"\]\) | \[\["[^"]+"\]\] | \[\("[^"]+"\)\]
      | \{"[^"]+"\} | \{\{"[^"]+"\}\})
    | \s+subgraph\ s\d+\["[^"]+"\]
    | \s+n\d+\ (-->|-\.->)(\|"[^"]+"\|)?\ n\d+
    | \s+classDef\ [a-z]+\ fill:\#[0-9a-f]{6},stroke:\#[0-9a-f]{6},color:\#[0-9a-f]{6}(,[a-z0-9:\ -]+)*
    | \s+class\ n\d+(,n\d+)*\ [a-z]+
    | \s+style\ s\d+\ fill:none,stroke:\#888888
    | \s+linkStyle\ \d+(,\d+)*\ stroke:\#888888
    """
)


@settings(max_examples=30)
@given(diagrams())
def test_only_the_safe_subset_is_written(shown):
    """Whatever the names and labels, each line has one of the forms that every version reads."""
    text = write(shown)
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        assert LINE.fullmatch(line), line


@settings(max_examples=30)
@given(diagrams())
def test_ids_are_unique_and_in_order(shown):
    """Each box and each frame is declared once, under the ids that the writer promises."""
    text = write(shown)
    nodes = re.findall(r"^\s+(n\d+)[\[({]", text, re.MULTILINE)
    frames = re.findall(r"^\s+subgraph (s\d+)", text, re.MULTILINE)
    assert sorted(nodes) == sorted(f"n{number}" for number in range(len(shown.boxes)))
    assert sorted(frames) == [f"s{number}" for number in range(len(frames))]


@settings(max_examples=30)
@given(diagrams())
def test_edges_follow_all_declarations(shown):
    """No edge stands before a declaration, which could move a box into another frame."""
    kinds = re.findall(r"^\s+(?:(n\d+[\[({]|subgraph)|(n\d+ -))", write(shown), re.MULTILINE)
    declared = [bool(declaration) for declaration, _ in kinds]
    assert declared == sorted(declared, reverse=True)


@settings(max_examples=30)
@given(diagrams())
def test_same_diagram_same_text(shown):
    """Writing twice gives the same text."""
    assert write(shown) == write(shown)
