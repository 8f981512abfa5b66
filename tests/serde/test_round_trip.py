"""What is written can be read again, and reads the same."""

from __future__ import annotations

import json
import os
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph2mermaid.capture import Capture, Environment
from graph2mermaid.errors import CaptureError
from graph2mermaid.graph import (
    Arrow,
    Binding,
    Call,
    Edge,
    EdgeKind,
    Graph,
    Node,
    NodeKind,
    SourceLine,
    Stage,
    TensorRef,
    TensorSpec,
)
from graph2mermaid.hlo import Compilation
from graph2mermaid.optimization import Way
from graph2mermaid.provenance import (
    Blocked,
    Blocker,
    Difference,
    Fate,
    Folded,
    How,
    NodeOrigin,
    OpFate,
    Optimization,
    PassResult,
    Provenance,
    Suspect,
)
from graph2mermaid.serde import Captures, dumps, load, loads, save
from tests.builders import MULTIPLY_ADD, capture, graph
from tests.graph_strategies import captures, unknown_keys
from tests.plans import plan

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@given(st.lists(captures, max_size=2).map(tuple))
@settings(max_examples=60)
def test_what_is_read_is_what_was_written(written: tuple[Capture, ...]):
    """Every field of every class survives, whatever it holds."""
    assert loads(dumps(written), origin="test") == written


@given(captures)
@settings(max_examples=25)
def test_reading_and_writing_again_changes_no_byte(written: Capture):
    """The text is a normal form."""
    text = dumps([written])
    assert dumps(loads(text, origin="test")) == text


@given(captures, unknown_keys)
@settings(max_examples=25)
def test_unknown_keys_at_the_top_survive(written: Capture, unknown: dict[str, object]):
    """A newer version's keys beside `captures` are written again."""
    file = json.loads(dumps([written])) | unknown
    again = json.loads(dumps(loads(json.dumps(file), origin="test")))
    assert again == file


@given(captures)
@settings(max_examples=25)
def test_the_text_is_plain_json_of_any_reader(written: Capture):
    """No extension of JSON is used, and the text has a UTF-8 form."""
    text = dumps([written])

    def fail(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    json.loads(text.encode("utf-8"), parse_constant=fail)
    assert text.endswith("}\n")


def test_the_small_form():
    """A capture of one op is as short as this, a line for each node and edge."""
    small = graph("x:Placeholder float32[?,4] -> r:Relu api=tf.nn.relu src=m.py:3:f", name="f")
    assert dumps([Capture("m.py:f", "f", {Stage.TRACED: small})]) == (
        """\
{
 "captures": [
  {
   "graphs": {
    "traced": {
     "edges": [
      {"source":"x","target":"r"}
     ],
     "inputs": [
      {"name":"x","tensors":["x:0"],"type":"float32[?,4]"}
     ],
     "name": "f",
     "nodes": [
      {"kind":"input","name":"x","op":"Placeholder","outputs":["float32[?,4]"]},
      {"api":"tf.nn.relu","name":"r","op":"Relu","source":["m.py",3,"f"]}
     ]
    }
   },
   "name": "f",
   "target": "m.py:f"
  }
 ],
 "schema": 1
}
"""
    )


SPEC = TensorSpec("float32", (2,))
FULL_NODE = Node(
    name="n",
    op="Op",
    kind=NodeKind.VARIABLE,
    outputs=(SPEC,),
    api="tf.op",
    variable="v",
    label="l",
    value="1",
    holds=SPEC,
    attrs={"T": "float32"},
    device="/device:CPU:0",
    source=SourceLine("m.py", 3, "f"),
    calls=(Call("f", "g"),),
    members=("a",),
    origin=("b",),
    extra={"later": 1},
)
FULL_EDGE = Edge(EdgeKind.CONTROL, 1, 2, SPEC, "axis", "then", 3, {"later": 1})
FULL_GRAPH = Graph.build(
    "f",
    Stage.XLA,
    [FULL_NODE, Node("NextIteration", "NextIteration"), Node("Merge", "Merge")],
    [Arrow("NextIteration", "Merge", FULL_EDGE), Arrow("n", "Merge", FULL_EDGE)],
    inputs=(Binding("x", (TensorRef("n", 1),), "float32[2]"),),
    captures=(Binding("y", (TensorRef("n"),), "int32[]"),),
    outputs=(Binding("z", (TensorRef("Merge"),), "bool[]"),),
    functions={"key": graph("a:Add", name="g")},
    source=SourceLine("m.py", 2),
    attrs={"shared": 0.5},
    extra={"later": 1},
)
FULL_CAPTURE = Capture(
    "m.py:f",
    "f",
    {Stage.TRACED: FULL_GRAPH},
    Environment("2.21.0", "3.15.0", "3.11.2", ("1 x CPU",), {"later": 1}),
    ("a note",),
    {"later": 1},
    Optimization(
        Way.RUN,
        Provenance(
            {"n": NodeOrigin("n", "Const", How.FOLDED, ("n",), folded=Folded("int32", (), 4, "1"))},
            {"n": OpFate("n", "Add", Fate.FOLDED, ("n",), "constfold")},
            (Suspect(("s",), "n", "n"),),
        ),
        (Blocked(("n",), Blocker.DTYPE, "n"), Blocked(("n",), None)),
        (PassResult("constfold", 1, 0, 2, 1, 3, "a note"),),
        {"constfold": True},
        {"constant_folding": False},
        (Difference("n", "Add", "Const"),),
        ("another note",),
    ),
    compilation=Compilation(9, 5, 4, before=12, assumed=("x=float32[2]",)),
    memory=plan("0 output 8\n n int32[2] 0- @0 op=n", "n", same=(("n",),)),
)


@pytest.mark.parametrize(
    "example",
    [
        FULL_NODE,
        FULL_EDGE,
        FULL_GRAPH,
        FULL_GRAPH.inputs[0],
        FULL_CAPTURE,
        FULL_CAPTURE.environment,
    ],
    ids=lambda example: type(example).__name__,
)
def test_every_field_has_a_place_in_the_file(example: DataclassInstance):
    """A field that is new in a class fails here until it is set, and below until it is written."""
    assert [f.name for f in fields(example) if not getattr(example, f.name)] == []
    assert loads(dumps([FULL_CAPTURE]), origin="test") == (FULL_CAPTURE,)


def test_no_captures_are_an_empty_list():
    """A file of nothing is a file."""
    assert loads(dumps([]), origin="test") == ()


def test_functions_keep_the_order_in_which_they_are_reached():
    """Reports list bodies in that order, so sorted keys must not touch it."""
    bodies = dict.fromkeys(("z", "a", "m"), "a:Placeholder -> b:Relu")
    written = capture(graph("x:Placeholder -> c:PartitionedCall calls=f=z", functions=bodies))
    (read,) = loads(dumps([written]), origin="test")
    assert list(read.traced.functions) == ["z", "a", "m"]


def test_the_order_of_attributes_does_not_show():
    """The same attributes give the same bytes, whichever came first."""
    first, second = (
        capture(Graph.build("f", Stage.TRACED, [Node("a", "A", attrs=attrs)], []))
        for attrs in ({"x": 1, "y": 2}, {"y": 2, "x": 1})
    )
    assert dumps([first]) == dumps([second])


def test_loops_stay_where_they_were_opened():
    """Back edges are written apart, and come back in their order beside an acyclic graph."""
    looped = graph(
        "e:Enter -> m:Merge -> n:NextIteration -> m; e2:Enter -> m2:Merge -> n2:NextIteration -> m2"
    )
    (read,) = loads(dumps([capture(looped)]), origin="test")
    assert read.traced.back_edges == looped.back_edges
    assert [arrow.source for arrow in looped.back_edges] == ["n", "n2"]


def test_a_loop_among_the_plain_edges_is_opened():
    """A file written by others may not know of back edges."""
    text = dumps([capture(graph("e:Enter -> m:Merge -> n:NextIteration"))])
    closing = '{"source":"n","target":"m","target_port":1}'
    looped = text.replace('{"source":"m"', closing + ',{"source":"m"')
    (read,) = loads(looped, origin="test")
    assert [arrow[:2] for arrow in read.traced.back_edges] == [("n", "m")]


def test_unknown_keys_never_hide_a_field():
    """`extra` that uses the name of a field is not written in its place."""
    node = Node("a", "A", extra={"op": "B", "kind": 3, "later": True})
    (read,) = loads(dumps([capture(Graph.build("f", Stage.TRACED, [node], []))]), origin="test")
    assert read.traced["a"] == replace(node, extra={"later": True})


def test_half_a_surrogate_pair_survives():
    """A name that has no UTF-8 form is written as an escape."""
    written = capture(Graph.build("f", Stage.TRACED, [Node("bad \udc80", "A")], []))
    text = dumps([written])
    assert text.encode("utf-8")
    assert loads(text, origin="test") == (written,)


def test_what_json_cannot_hold_is_refused():
    """A value in `extra` that has no JSON form is an error that says so."""
    with pytest.raises(CaptureError, match="cannot be written as JSON"):
        dumps([capture("x:Placeholder", extra={"when": object()})])


def test_save_and_load(tmp_path: Path):
    """A file holds all captures it was given."""
    file = tmp_path / "both.g2m.json"
    both = (capture(MULTIPLY_ADD), capture("x:Placeholder -> r:Relu", target="other.py:g"))
    save(both, file)
    assert load(file) == both
    assert load(str(file)) == both


def test_save_leaves_nothing_else_behind(tmp_path: Path):
    """The draft that makes the writing atomic is gone afterwards."""
    save([capture(MULTIPLY_ADD)], tmp_path / "a.g2m.json")
    assert [path.name for path in tmp_path.iterdir()] == ["a.g2m.json"]


def test_a_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """When the disk is full, the file of before is still there, and no half of a new one."""
    file = tmp_path / "a.g2m.json"
    file.write_text("old", encoding="utf-8")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save([capture(MULTIPLY_ADD)], file)
    assert file.read_text(encoding="utf-8") == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_saving_keeps_the_permissions_of_the_file(tmp_path: Path):
    """A file that only its owner reads stays so."""
    file = tmp_path / "a.g2m.json"
    file.touch(mode=0o600)
    save([capture(MULTIPLY_ADD)], file)
    assert file.stat().st_mode & 0o777 == 0o600


def test_saving_through_a_link_keeps_the_link(tmp_path: Path):
    """The file that a symbolic link names is replaced, not the link."""
    real, link = tmp_path / "real.g2m.json", tmp_path / "link.g2m.json"
    link.symlink_to(real)
    save([capture(MULTIPLY_ADD)], link)
    assert link.is_symlink()
    assert load(real) == (capture(MULTIPLY_ADD),)


def test_saving_to_a_device_writes_to_it():
    """Something that is no file is not replaced by one."""
    save([capture(MULTIPLY_ADD)], os.devnull)
    assert not Path(os.devnull).is_file()


def test_the_extra_keys_of_a_file_are_where_they_were_read(tmp_path: Path):
    """A caller can see them."""
    found = loads('{"schema": 1, "captures": [], "made_by": {"x": [1]}}', origin="test")
    assert found.extra == {"made_by": {"x": [1]}}
    assert Captures().extra == {}
