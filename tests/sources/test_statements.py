"""Which Python variable holds the result of which op: the right name, or none."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import graph2mermaid
from graph2mermaid.sources.statements import Statement, statement_at


def statement(tmp_path: Path, text: str, line: int, function: str = "f") -> Statement | None:
    path = tmp_path / "model.py"
    path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return statement_at(str(path), line, function)


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("y = g(x)", ("y",)),
        ("y: Tensor = g(x)", ("y",)),
        ("y += x", ("y",)),
        ("self.total += x", ("self.total",)),
        ("self.h = g(x)", ("self.h",)),
        ("out['h'] = g(x)", ("out['h']",)),
        ("a, b = g(x)", ("a", "b")),
        ("[a, b] = g(x)", ("a", "b")),
        ("a = b = g(x)", ("a",)),
        ("y = x + 1", ("y",)),
        ("y = -x", ("y",)),
        ("y = x > 1", ("y",)),
        ("y = x[0]", ("y",)),
        ("y = x", ()),
        ("y = 1.0", ()),
        ("y = (a, b)", ()),
        ("a, b = g(x), h(x)", ()),
        ("y = [g(i) for i in x]", ()),
        ("y = g(x) if c else x", ()),
        ("y = a and g(b)", ()),
        ("a, *b = g(x)", ()),
        ("a, (b, c) = g(x)", ()),
        ("a = b, c = g(x)", ()),
        ("out[i, j] = g(x)", ()),
        ("y = lambda: g(x)", ()),
        ("g(x)", ()),
        ("(y := g(x))", ()),
        ("return g(x)", ()),
        ("y: Tensor", ()),
        ("a = g(x); b = h(x)", ()),
        ("if g(x): y = h(x)", ()),
    ],
)
def test_what_a_statement_keeps(tmp_path: Path, text: str, targets: tuple[str, ...]):
    """Names, attributes and items that take a computed value, and nothing in doubt."""
    found = statement(tmp_path, f"def f(x):\n    {text}", 2)
    assert found is not None
    assert found.targets == targets


@pytest.mark.parametrize(
    ("text", "returns"),
    [
        ("return g(x)", True),
        ("return x + 1", True),
        ("return g(x), h(x)", False),
        ("return {'y': g(x)}", False),
        ("return y", False),
        ("return", False),
    ],
)
def test_what_a_return_hands_on(tmp_path: Path, text: str, returns: bool):
    """One computed value is the caller's; a part of a structure has no name there."""
    found = statement(tmp_path, f"def f(x):\n    {text}", 2)
    assert found is not None
    assert found.returns is returns


def test_a_statement_of_several_lines(tmp_path: Path):
    """Any of its lines is the statement, with all of its text; a blank line is none."""
    text = """
        def f(x):
            y = g(
                x,
                h(x),
            )

            if y > (
                    0):
                return y
        """
    found = [statement(tmp_path, text, line) for line in range(2, 6)]
    assert {(s.line, s.targets) for s in found if s} == {(2, ("y",))}
    assert found[2] is not None
    assert "h(x)" in found[2].text
    header = statement(tmp_path, text, 8)
    assert header is not None
    assert (header.line, header.text.split()[-1]) == (7, "0):")


@pytest.mark.parametrize(
    ("text", "line"),
    [("def f(x:\n", 1), ("", 1), ("def f(x):\n    return g(x)\n", 9)],
    ids=["no Python", "an empty file", "past the end"],
)
def test_where_there_is_no_statement(tmp_path: Path, text: str, line: int):
    """A file that changed or cannot be read gives nothing, and no error."""
    assert statement(tmp_path, text, line) is None


def test_a_file_that_is_not_there():
    """Code without a file has no statements."""
    assert statement_at("<string>", 1) is None


# --- which op is the value -----------------------------------------------------------------------

tf_only = pytest.mark.tf

PROGRAM = """
import tensorflow as tf

def double(x):
    return x * 2.0

def named(x):
    inside = x + 1.0
    return inside

def pair(x):
    return tf.sin(x), tf.cos(x)

def table(x):
    return {"a": tf.sin(x), "b": tf.cos(x)}

dense = lambda x: tf.nn.relu(x)

class Counter:
    pass

def f(x):
%s
"""


def names(tmp_path: Path, body: str) -> dict[str, str]:
    """Trace a function of this body; return the names of variables by op name."""
    text = PROGRAM % textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    path = tmp_path / "program.py"
    path.write_text(text, encoding="utf-8")
    space: dict[str, object] = {"__name__": "program"}
    exec(compile(text, str(path), "exec"), space)
    tf = pytest.importorskip("tensorflow")
    graph = graph2mermaid.trace(tf.function(space["f"]), tf.TensorSpec([4])).traced
    everything = [graph, *graph.functions.values()]
    return {n.name: n.variable for g in everything for n in g.nodes() if n.variable}


@tf_only
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = tf.tanh(x)\nreturn y", {"Tanh": "y"}),
        ("y = tf.tanh(tf.exp(x))\nreturn y", {"Tanh": "y"}),
        ("y = tf.add(tf.add(x, x), x)\nreturn y", {"Add_1": "y"}),
        ("y = x + x + x\nreturn y", {"add_1": "y"}),
        ("y = tf.add(\n    tf.exp(x),\n    x,\n)\nreturn y", {"Add": "y"}),
        ("x += 1.0\nreturn x", {"add": "x"}),
        ("y: tf.Tensor = x * 2.0\nreturn y", {"mul": "y"}),
        ("a = b = tf.exp(x)\nreturn a + b", {"Exp": "a"}),
        ("c = Counter()\nc.h = tf.exp(x)\nreturn c.h", {"Exp": "c.h"}),
        ("d = {}\nd['h'] = tf.exp(x)\nreturn d['h']", {"Exp": "d['h']"}),
        ("a, b = tf.split(x, 2)\nreturn a + b", {"split": "a, b"}),
        (
            "parts = tf.split(x, 2)\nreturn parts[0] + parts[1]",
            {"split": "parts[0], parts[1]"},
        ),
        (
            "rows = tf.unstack(tf.exp(x))\nreturn rows[0]",
            {"unstack": "rows[0], rows[1], rows[2], rows[3]"},
        ),
        ("top = tf.math.top_k(x, 2)\nreturn top[0]", {"TopKV2": "top[0], top[1]"}),
        ("half = tf.split(x, 2)[0]\nreturn half", {}),
        ("y = double(x)\nreturn y", {"mul": "y"}),
        ("y = named(x)\nreturn y", {"add": "inside"}),
        ("y = dense(x)\nreturn y", {"Relu": "y"}),
        ("y = tf.exp(x)[0]\nreturn y", {"strided_slice": "y"}),
        ("for _ in range(2):\n    x = tf.tanh(x * 2.0)\nreturn x", {"Tanh": "x", "Tanh_1": "x"}),
        (
            "for _ in range(2):\n    x = x + x + 1.0\nreturn x",
            {"add_1": "x", "add_3": "x"},
        ),
        (
            "for i in range(2):\n    x = x + x\n    y = x * 2.0\nreturn y",
            {"add": "x", "add_1": "x", "mul": "y", "mul_1": "y"},
        ),
        ("y = tf.nn.softmax(tf.exp(x)); return y", {}),
    ],
    ids=[
        "plain",
        "nested calls",
        "the same call twice",
        "operators",
        "several lines",
        "augmented",
        "annotated",
        "chained",
        "attribute",
        "item",
        "unpacked",
        "a list of parts",
        "a list of rows",
        "a named tuple in order",
        "an item of a list",
        "a helper that returns",
        "a helper with a name of its own",
        "a lambda",
        "an item of a result",
        "unrolled",
        "unrolled with two alike",
        "unrolled over two lines",
        "two statements on a line",
    ],
)
def test_the_last_op_of_a_statement_is_its_value(tmp_path: Path, body: str, expected):
    """Python runs the outermost call last, each time that the statement runs."""
    assert names(tmp_path, body) == expected


GRADIENTS = """
w = x + 1.0
with tf.GradientTape() as tape:
    tape.watch([x, w])
    loss = tf.reduce_sum(tf.tanh(x) * w)
g = tape.gradient(loss, [x, w])
return g[0] + g[1]
"""


@tf_only
@pytest.mark.parametrize(
    "body",
    [
        "y = pair(x)\nreturn y[0] + y[1]",
        "a, b = pair(x)\nreturn a + b",
        "y = table(x)\nreturn y['a'] + y['b']",
        "y = pair(tf.exp(x))\nreturn y",
        "y = list([tf.exp(x)])\nreturn y[0]",
        "y = [tf.exp(x) for _ in range(2)]\nreturn y[0] + y[1]",
        "y = tf.exp(x) if x is not None else x\nreturn y",
        "m = tf.nn.moments(x, [0])\nreturn m[0] + m[1]",
        "m = tf.nn.moments(x, [0])\nreturn m[0]",
        "y = tf.unique(x)\nreturn y[0] + y.y",
        "if (y := tf.exp(x)) is not None:\n    return y",
        GRADIENTS,
        "return tf.map_fn(lambda r: tf.exp(r), x)",
    ],
    ids=[
        "a tuple as one",
        "a tuple by parts",
        "a dict",
        "the argument of a call",
        "in a list",
        "a comprehension",
        "a choice",
        "two results as one",
        "one result of two",
        "a named tuple",
        "a walrus",
        "gradients",
        "a lambda of its own body",
    ],
)
def test_in_doubt_there_is_no_name(tmp_path: Path, body: str):
    """A variable that is no single tensor names no op."""
    wrong = {"y", "a", "b", "m", "g", "tape"}
    assert not wrong & set(names(tmp_path, body).values())


@tf_only
def test_a_lambda_in_a_statement_is_not_the_statement(tmp_path: Path):
    """What a mapped lambda computes is not what the mapping returns."""
    found = names(tmp_path, "y = tf.map_fn(lambda r: r * 2.0, x)\nreturn y + 1.0")
    assert list(found.values()) == ["y"]
    assert "TensorListStack" in next(iter(found))
