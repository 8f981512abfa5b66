"""Where an op comes from: the user's line, and the public function that was called there."""

from __future__ import annotations

import linecache
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import graph2mermaid
from graph2mermaid import Graph
from graph2mermaid.sources.callsite import call_site, is_user_file, shown_path

HEAD = """
import functools
import tensorflow as tf
import tensorflow.math
from tensorflow import add, matmul as product
from tensorflow.math import tanh

def helper(x):
    return tf.sin(x)

def loud(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    return wrapper

@loud
def decorated(x):
    return tf.cos(x)

class Scale:
    def __call__(self, x):
        return tf.multiply(x, 3.0)

"""


def traced(tmp_path: Path, body: str, name: str = "program.py") -> Graph:
    """Trace a function `f(x, y)` of this body, in a file below the working directory."""
    tf = pytest.importorskip("tensorflow")
    text = HEAD + "def f(x, y):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    path = tmp_path / name
    path.write_text(text + "\n", encoding="utf-8")
    space: dict[str, Any] = {"__name__": "program"}
    exec(compile(text, str(path), "exec"), space)
    square = tf.TensorSpec([2, 2])
    return graph2mermaid.trace(tf.function(space["f"]), square, square).traced


def line_of(text: str) -> int:
    """Return the line of a text in the file's head."""
    return HEAD.splitlines().index(text) + 1


BODY = len(HEAD.splitlines()) + 2  # the first line of f's body

tf_only = pytest.mark.tf


@tf_only
@pytest.mark.parametrize(
    ("expression", "op", "api"),
    [
        ("tf.multiply(x, y)", "Mul", "tf.multiply"),
        ("tf.math.multiply(x, y)", "Mul", "tf.math.multiply"),
        ("tensorflow.math.multiply(x, y)", "Mul", "tf.math.multiply"),
        ("add(x, y)", "AddV2", "tf.add"),
        ("product(x, y)", "MatMul", "tf.matmul"),
        ("tanh(x)", "Tanh", "tf.tanh"),
        ("tf.matmul(x, y)", "MatMul", "tf.matmul"),
        ("tf.linalg.matmul(x, y)", "MatMul", "tf.linalg.matmul"),
        ("tf.nn.relu(x)", "Relu", "tf.nn.relu"),
        ("tf.concat([x, y], 0)", "ConcatV2", "tf.concat"),
        ("tf.reduce_mean(x)", "Mean", "tf.reduce_mean"),
        ("tf.raw_ops.Exp(x=x)", "Exp", None),
        ("x + y", "AddV2", "+"),
        ("x - y", "Sub", "-"),
        ("x * y", "Mul", "*"),
        ("x / y", "RealDiv", "/"),
        ("x // y", "FloorDiv", "//"),
        ("x % y", "FloorMod", "%"),
        ("x ** y", "Pow", "**"),
        ("x @ y", "MatMul", "@"),
        ("2.0 - x", "Sub", "-"),
        ("-x", "Neg", "-"),
        ("x > y", "Greater", ">"),
        ("x <= y", "LessEqual", "<="),
        ("x == y", "Equal", "=="),
        ("x != y", "NotEqual", "!="),
        ("x[0]", "StridedSlice", "[]"),
        ("(x > y) & (x < y)", "LogicalAnd", "&"),
        ("~(x > y)", "LogicalNot", "~"),
    ],
)
def test_the_name_is_the_one_that_was_written(tmp_path: Path, expression: str, op: str, api):
    """Aliases of one function are told apart by the line; operators are themselves."""
    graph = traced(tmp_path, f"return {expression}")
    (node,) = [node for node in graph.nodes() if node.op == op]
    assert (node.api or None) == api
    assert node.source is not None
    assert (node.source.line, node.source.function) == (BODY, "f")


@tf_only
@pytest.mark.parametrize(
    ("body", "op", "line", "function"),
    [
        ("return helper(x)", "Sin", line_of("    return tf.sin(x)"), "helper"),
        ("return decorated(x)", "Cos", line_of("    return tf.cos(x)"), "decorated"),
        ("return Scale()(x)", "Mul", line_of("        return tf.multiply(x, 3.0)"), "__call__"),
        ("return helper(tf.exp(x))", "Exp", BODY, "f"),
        ("def inner(t):\n    return tf.exp(t)\nreturn inner(x)", "Exp", BODY + 1, "inner"),
        ("inner = lambda t: tf.exp(t)\nreturn inner(x)", "Exp", BODY, None),
        ("if tf.reduce_sum(x) > 0.0:\n    x = tf.exp(x)\nreturn x", "Exp", BODY + 1, None),
        ("while tf.reduce_sum(x) > 0.0:\n    x = tf.exp(x)\nreturn x", "Greater", BODY, None),
        ("return tf.add(\n    tf.exp(x),\n    y)", "Exp", None, "f"),
    ],
    ids=[
        "a helper",
        "a decorated helper",
        "an object that is called",
        "the argument of a helper",
        "a nested function",
        "a lambda",
        "a branch",
        "a condition",
        "several lines",
    ],
)
def test_the_line_is_the_innermost_of_the_users(tmp_path: Path, body, op, line, function):
    """AutoGraph's own code is mapped back to the file that was written."""
    graph = traced(tmp_path, body)
    everything = [graph, *graph.functions.values()]
    node = next(node for g in everything for node in g.nodes() if node.op == op)
    assert node.source is not None
    assert node.source.file.endswith("program.py")
    expected = range(BODY, BODY + 3) if line is None else [line]
    assert node.source.line in expected
    if function is not None:
        assert node.source.function == function


@tf_only
def test_a_loop_says_which_ops_the_user_wrote(tmp_path: Path):
    """What TensorFlow adds to count a loop is not called by the operator in the user's line."""
    graph = traced(tmp_path, "for i in tf.range(3):\n    x = x + y\nreturn x")
    body = next(g for name, g in graph.functions.items() if name.endswith("body"))
    assert [n.variable for n in body.nodes() if n.api == "+"] == ["x"]


@tf_only
def test_what_tracing_makes_has_no_line(tmp_path: Path):
    """Arguments, results and the last NoOp are nobody's line, in bodies as well."""
    graph = traced(tmp_path, "if tf.reduce_sum(x) > 0.0:\n    tf.print(x)\nreturn tf.exp(x)")
    for part in [graph, *graph.functions.values()]:
        made = [n for n in part.nodes() if n.op in ("Placeholder", "NoOp")]
        assert made
        assert [n for n in made if n.source is not None and n.op == "NoOp"] == []
    made = [n for n in graph.nodes() if n.op == "Placeholder"]
    assert [n.source for n in made] == [None] * len(made)
    (result,) = graph.outputs
    assert graph[result.tensors[0].node].source is None


@tf_only
def test_a_third_partys_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A package that is neither TensorFlow nor Keras is shown by its path in site-packages."""
    tf = pytest.importorskip("tensorflow")
    package = tmp_path / "site-packages" / "nets"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "blocks.py").write_text(
        "import tensorflow as tf\n\ndef block(x):\n    return tf.exp(x)\n"
    )
    monkeypatch.syspath_prepend(str(package.parent))
    from graph2mermaid.sources import callsite

    for cached in (callsite._site_folders, is_user_file, shown_path):
        cached.cache_clear()
    try:
        import importlib

        blocks = importlib.import_module("nets.blocks")
        graph = graph2mermaid.trace(tf.function(blocks.block), tf.TensorSpec([2])).traced
        (node,) = [n for n in graph.nodes() if n.op == "Exp"]
        assert str(node.source) == "nets/blocks.py:4"
    finally:
        sys.modules.pop("nets", None)
        sys.modules.pop("nets.blocks", None)
        for cached in (callsite._site_folders, is_user_file, shown_path):
            cached.cache_clear()


@tf_only
def test_an_unconverted_function_reads_the_same(tmp_path: Path):
    """With autograph=False the traceback is Python's own."""
    tf = pytest.importorskip("tensorflow")
    text = HEAD + "def f(x):\n    y = tf.math.multiply(x, x)\n    return helper(y)\n"
    path = tmp_path / "program.py"
    path.write_text(text, encoding="utf-8")
    space: dict[str, Any] = {"__name__": "program"}
    exec(compile(text, str(path), "exec"), space)
    plain = tf.function(space["f"], autograph=False)
    graph = graph2mermaid.trace(plain, tf.TensorSpec([2])).traced
    assert (graph["Mul"].api, graph["Mul"].variable) == ("tf.math.multiply", "y")
    assert graph["Sin"].source is not None
    assert graph["Sin"].source.function == "helper"


class Frame(NamedTuple):
    """A frame of a traceback as TensorFlow gives it."""

    filename: str
    lineno: int
    name: str


def test_no_traceback():
    """Ops of an imported graph come from nowhere."""
    assert call_site(None, "Mul") == call_site([], "Mul")
    assert call_site(None, "Mul").source is None


def test_a_traceback_without_a_user():
    """Frames of the standard library and of generated code are nobody's line."""
    import threading

    frames = [Frame(threading.__file__, 1, "run"), Frame("<string>", 1, "<module>")]
    found = call_site(frames, "Mul")
    assert (found.source, found.api, found.statements) == (None, None, ())


def test_a_path_below_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Shown paths are relative, with forward slashes."""
    monkeypatch.chdir(tmp_path)
    shown_path.cache_clear()
    assert shown_path(str(tmp_path / "models" / "net.py")) == "models/net.py"
    shown_path.cache_clear()


@tf_only
def test_a_notebooks_cell_is_the_users_code():
    """A cell's code has lines but no file; the report does not hold the process's numbers."""
    import tensorflow as tf

    text = "def f(x):\n    y = tf.nn.relu(x)\n    return y * 2.0\n"
    name = "<ipython-input-3-0123456789ab>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    cell = {"tf": tf}
    exec(compile(text, name, "exec"), cell)
    nodes = graph2mermaid.trace(cell["f"], tf.TensorSpec([2])).traced
    found = {node.op: (node.api, node.variable, str(node.source)) for node in nodes.nodes()}
    assert found["Relu"] == ("tf.nn.relu", "y", "notebook cell:2")
    assert found["Mul"] == ("*", None, "notebook cell:3")
