"""A file that cannot be read gives one line that says what is wrong, and where."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph2mermaid.errors import CaptureError
from graph2mermaid.serde import dumps, load, loads
from tests.builders import capture, graph

SMALL = dumps([capture(graph("x:Placeholder float32[2] -> r:Relu => y", functions={"g": "a:Add"}))])


def broken(change: Callable[[Any], object]) -> str:
    """Return a capture file after something was done to its traced graph."""
    file = json.loads(SMALL)
    change(file["captures"][0]["graphs"]["traced"])
    return json.dumps(file)


def message(text: str) -> str:
    """Return the line that reading a text gives."""
    with pytest.raises(CaptureError) as caught:
        loads(text, origin="a.g2m.json")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "not a capture file: not JSON at line 1, column 1: Expecting value"),
        ('{\n"schema": }', "not a capture file: not JSON at line 2, column 11: Expecting value"),
        ("[1]", "not a capture file: it has no schema"),
        ('{"nodes": []}', "not a capture file: it has no schema"),
        (
            '{"schema": 2}',
            (
                "made by a newer version: it has schema 2, and this version of graph2mermaid "
                "reads up to 1; upgrade graph2mermaid"
            ),
        ),
        ('{"schema": "1"}', "schema: a whole number is needed, not '1'"),
        ('{"schema": true}', "schema: a whole number is needed, not True"),
        ('{"schema": -1}', "schema: the number is out of range"),
        ('{"schema": 1}', "'captures' is missing"),
        ('{"schema": 1, "captures": {}}', "captures: a list is needed, not an object"),
        ('{"schema": 1, "captures": [7]}', "captures[0]: an object is needed, not 7"),
        ('{"schema": 1, "captures": [{}]}', "captures[0]: 'target' is missing"),
        (
            '{"schema": 1, "captures": [{"target": "a", "name": "b", "graphs": {"final": {}}}]}',
            "captures[0].graphs: 'final' is not one of traced, grappler, runtime, xla, dataset",
        ),
        (
            '{"schema": 1, "captures": [{"target": "a", "name": "b", "graphs": [1]}]}',
            "captures[0].graphs: an object is needed, not a list",
        ),
        ('{"schema": 1, "captures": NaN}', "damaged: NaN is not JSON"),
        ('{"schema": 1, "captures": [], "x": 1e999}', "x: the number is out of range"),
        (f'{{"schema": 1{"0" * 5000}}}', "damaged: a number is out of range"),
    ],
)
def test_files_that_are_no_capture_files(text: str, line: str):
    """The message names the file and the place, and says what was expected there."""
    assert message(text) == f"a.g2m.json: {line}"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda g: g.pop("nodes"), ": 'nodes' is missing"),
        (lambda g: g.pop("name"), ": 'name' is missing"),
        (lambda g: g.update(nodes=5), ".nodes: a list is needed, not 5"),
        (lambda g: g["nodes"].append(None), ".nodes[2]: an object is needed, not None"),
        (lambda g: g["nodes"].append(g["nodes"][0]), ".nodes: two nodes have the same name"),
        (lambda g: g["nodes"][1].pop("op"), ".nodes[1]: 'op' is missing"),
        (lambda g: g["nodes"][1].update(op=[]), ".nodes[1].op: a text is needed, not a list"),
        (
            lambda g: g["nodes"][0].update(kind="box"),
            (
                ".nodes[0].kind: 'box' is not one of input, output, const, variable, op, call, "
                "control_flow, tensor, group, elided, ghost"
            ),
        ),
        (
            lambda g: g["nodes"][0].update(outputs=["float32[2]", 5]),
            ".nodes[0].outputs[1]: a text is needed, not 5",
        ),
        (
            lambda g: g["nodes"][0].update(outputs=["float32"]),
            ".nodes[0].outputs[0]: 'float32' is not of the form float32[8,?]",
        ),
        (
            lambda g: g["nodes"][0].update(outputs=["float32[-1]"]),
            ".nodes[0].outputs[0]: 'float32[-1]' is not of the form float32[8,?]",
        ),
        (
            lambda g: g["nodes"][0].update(holds="float32[9999999999,9999999999]"),
            ".nodes[0].holds: 'float32[9999999999,9999999999]' has too many elements",
        ),
        (
            lambda g: g["nodes"][0].update(attrs={"T": [1]}),
            ".nodes[0].attrs.T: a text, number, truth value or null is needed, not a list",
        ),
        (
            lambda g: g["nodes"][0].update(attrs={"T": {"float": "1"}}),
            ".nodes[0].attrs.T: a text, number, truth value or null is needed, not an object",
        ),
        (
            lambda g: g["nodes"][0].update(source=["m.py"]),
            ".nodes[0].source: a line is [file, line, function], not a list",
        ),
        (
            lambda g: g["nodes"][0].update(source=["m.py", "7"]),
            ".nodes[0].source: a whole number is needed, not '7'",
        ),
        (
            lambda g: g["nodes"][0].update(calls=["f"]),
            ".nodes[0].calls[0]: a call is [role, function], not 'f'",
        ),
        (
            lambda g: g["edges"].append({"source": "x", "target": "no"}),
            ".edges[1]: there is no node 'no'",
        ),
        (
            lambda g: g["edges"][0].update(source_port=-1),
            ".edges[0].source_port: the number is out of range",
        ),
        (
            lambda g: g["edges"][0].update(count=None),
            ".edges[0].count: a whole number is needed, not None",
        ),
        (
            lambda g: g.update(back_edges=[{"source": "q", "target": "r"}]),
            ".back_edges[0]: there is no node 'q'",
        ),
        (
            lambda g: g["inputs"][0].update(tensors=["x"]),
            ".inputs[0].tensors[0]: 'x' is not of the form name:port",
        ),
        (
            lambda g: g["outputs"][0].update(tensors=["z:0"]),
            ".outputs[0].tensors: there is no node 'z'",
        ),
        (
            lambda g: g["functions"][0].update(functions=[{}]),
            ".functions[0].functions: a body has no functions of its own",
        ),
        (
            lambda g: g["functions"][0].update(key=3),
            ".functions[0].key: a text is needed, not 3",
        ),
        (
            lambda g: g.update(functions=["g"]),
            ".functions[0]: an object is needed, not 'g'",
        ),
        (
            lambda g: g.update(later=json.loads("[" * 60 + "]" * 60)),
            ".later: nested too deeply",
        ),
        (
            lambda g: g["nodes"][1].update(op=7, name="x" * 100),
            ".nodes[1].op: a text is needed, not 7",
        ),
        (
            lambda g: g["edges"][0].update(source="x" * 100),
            f".edges[0]: there is no node '{'x' * 38}...",
        ),
    ],
)
def test_graphs_that_are_damaged(change: Callable[[Any], object], line: str):
    """The place is written as a path into the file."""
    assert message(broken(change)) == f"a.g2m.json: captures[0].graphs.traced{line}"


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"schema": 1, "captures": ' + "[" * 100_000 + "]" * 100_000 + "}"],
    ids=["unclosed", "closed"],
)
def test_hostile_depth(text: str):
    """A file that is nested beyond reason is refused, without a traceback."""
    assert message(text) == "a.g2m.json: damaged: nested too deeply, or too large"


def test_a_missing_file(tmp_path: Path):
    """The message is the system's own, with the name of the file."""
    file = tmp_path / "no.g2m.json"
    with pytest.raises(CaptureError) as caught:
        load(file)
    assert str(caught.value) == f"{file}: No such file or directory"


def test_a_file_of_other_bytes(tmp_path: Path):
    """A binary file is no capture file."""
    file = tmp_path / "graph.pb"
    file.write_bytes(b"\x0a\xff\xfe")
    with pytest.raises(CaptureError, match="not a capture file: it is not UTF-8 text"):
        load(file)


def test_a_byte_order_mark_is_no_damage(tmp_path: Path):
    """Some editors put one before the text."""
    file = tmp_path / "bom.g2m.json"
    file.write_text("\ufeff" + SMALL, encoding="utf-8")
    assert load(file)[0].name == "f"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(st.data())
@settings(max_examples=200)
def test_any_value_in_any_place_is_read_or_refused(data: st.DataObject):
    """Whatever stands in place of a part, reading gives captures that can be written, or a CaptureError."""
    file = json.loads(SMALL)
    place, key = file, "captures"
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
        place = place[key]
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
    place[key] = data.draw(json_values)
    with contextlib.suppress(CaptureError):
        dumps(loads(json.dumps(file), origin="a.g2m.json"))
