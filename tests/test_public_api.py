"""The public API: its names are listed, documented and stable, and importing it is cheap."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import enum
import importlib.util
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import graph2mermaid
from graph2mermaid.capture import Capture
from graph2mermaid.errors import Graph2MermaidError, MissingDependencyError, SignatureError
from tests.builders import capture as built
from tests.golden_files import Golden

NAMES = graph2mermaid.__all__
SOURCE = Path(graph2mermaid.__file__)
PROJECT = SOURCE.parents[2]


def test_names_are_sorted_and_few():
    """The list is in order, without repetition, and short enough to read."""
    assert list(NAMES) == sorted(set(NAMES))
    assert len(NAMES) <= 30


@pytest.mark.parametrize("name", [name for name in NAMES if name != "__version__"])
def test_every_name_is_there_and_documented(name: str):
    """Each name is found, in `dir()` too, and has a docstring of its own."""
    found = getattr(graph2mermaid, name)
    assert name in dir(graph2mermaid)
    assert found.__name__ == name
    doc = inspect.getdoc(found) or ""
    assert doc.split()
    assert not doc.startswith(f"{name}(")  # what dataclasses and named tuples make up


def test_the_list_is_complete():
    """What type checkers see, what is loaded on demand and what is listed are the same."""
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {
        alias.name
        for node in checked.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("graph2mermaid")
        for alias in node.names
    }
    defined = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    assert imported == set(graph2mermaid._HOMES)
    assert imported | defined | {"__version__"} == set(NAMES)


def test_an_unknown_name():
    """Any other name is missing, as from any module."""
    with pytest.raises(
        AttributeError, match=r"^module 'graph2mermaid' has no attribute 'no_such_name'$"
    ):
        graph2mermaid.no_such_name  # noqa: B018


def test_every_error_is_of_one_family():
    """One `except` catches whatever a user can put right."""
    errors = [name for name in NAMES if name.endswith("Error")]
    assert all(issubclass(getattr(graph2mermaid, name), Graph2MermaidError) for name in errors)


def test_the_version_is_that_of_the_project():
    """The package and the project file say the same version."""
    text = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r'^version = "(.*)"$', text, re.MULTILINE) == [graph2mermaid.__version__]


def test_names_and_signatures(golden: Golden):
    """The API is what the golden file says: a change of it is a decision."""
    golden("public_api.txt", "\n".join(_described()) + "\n")


def _described() -> Iterator[str]:
    for name in NAMES:
        found = getattr(graph2mermaid, name)
        if inspect.isfunction(found):
            yield f"def {name}{_signature(found)}"
        elif inspect.isclass(found):
            bases = [base.__name__ for base in found.__bases__ if base is not object]
            yield f"class {name}({', '.join(bases)})" if bases else f"class {name}"
            yield from (f"    {line}" for line in _members(found))
        else:
            yield name


def _members(cls: Any) -> Iterator[str]:
    if issubclass(cls, enum.Enum):
        yield from (f"{member.name} = {member.value!r}" for member in cls)
        return
    is_record = dataclasses.is_dataclass(cls)
    fields = {field.name for field in dataclasses.fields(cls)} if is_record else set()
    fields |= set(getattr(cls, "_fields", ()))
    for name, annotation in inspect.get_annotations(cls).items():
        if name in fields and not name.startswith("_"):
            yield f"{name}: {getattr(annotation, '__forward_arg__', annotation)}"
    for name, member in sorted(cls.__dict__.items()):
        if name.startswith("_") or name in fields:
            continue
        if isinstance(member, property):
            getter: Any = member.fget
            yield f"{name} -> {inspect.signature(getter).return_annotation}"
        elif isinstance(member, classmethod | staticmethod) or inspect.isfunction(member):
            yield f"def {name}{_signature(getattr(cls, name))}"


def _signature(function: Any) -> str:
    """Return a signature with annotations as written, not as strings."""
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))


def python(code: str) -> str:
    """Run code in a fresh interpreter and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(SOURCE.parents[1])},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_is_cheap():
    """Nothing heavy is imported until a name is used, and TensorFlow not even then."""
    heavy = ("tensorflow", "keras", "numpy", "networkx", "click", "markdown_it")
    loaded = f"import sys; print([name for name in {heavy} if name in sys.modules])"
    assert python(f"import graph2mermaid; dir(graph2mermaid); {loaded}") == "[]\n"
    assert python(f"from graph2mermaid import Capture, Graph; {loaded}") == "['networkx']\n"


# load


def test_load_reads_a_capture_file(tmp_path: Path):
    """One capture comes as it is, several as a tuple."""
    from graph2mermaid import serde

    first, second = (
        built("x:Placeholder float32[2] -> r:Relu"),
        built("c:Const float32[] value=1.0"),
    )
    first.save(tmp_path / "one.g2m.json")
    serde.save([first, second], tmp_path / "two.g2m.json")
    serde.save([], tmp_path / "none.g2m.json")
    assert graph2mermaid.load(tmp_path / "one.g2m.json") == first
    assert graph2mermaid.load(str(tmp_path / "two.g2m.json")) == (first, second)
    assert graph2mermaid.load(tmp_path / "none.g2m.json") == ()


def test_load_needs_no_tensorflow_for_a_capture_file(tmp_path: Path):
    """Reading and drawing a capture does not import TensorFlow."""
    file = tmp_path / "one.g2m.json"
    built("x:Placeholder float32[2] -> r:Relu").save(file)
    code = f"import sys, graph2mermaid as g; text = g.load({str(file)!r}).to_mermaid();"
    assert python(f"{code} print('Relu' in text, 'tensorflow' in sys.modules)") == "True False\n"


@pytest.mark.parametrize(
    "call", [lambda: graph2mermaid.load("m.py:f"), lambda: graph2mermaid.trace(len)]
)
def test_without_tensorflow(call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """What needs TensorFlow says how to get it."""
    (tmp_path / "m.py").write_text("def f(x): return x", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError) as caught:
        call()
    assert re.fullmatch(
        r"graph2mermaid\.(load|trace) needs TensorFlow, which is not installed:"
        r" pip install 'graph2mermaid\[cpu\]'",
        str(caught.value),
    )


@pytest.mark.tf
def test_load_traces_a_function_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A target of the command line does as well."""
    pytest.importorskip("tensorflow")
    (tmp_path / "g2m_api_model.py").write_text(
        "import tensorflow as tf\n\ndef f(x: tf.TensorSpec([2])):\n    return x * 2.0\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    capture = graph2mermaid.load("g2m_api_model.py:f")
    assert isinstance(capture, Capture)
    assert (capture.target, capture.name, capture.notes) == ("g2m_api_model.py:f", "f", ())
    assert [node.op for node in capture.traced.nodes()] == [
        "Placeholder",
        "Const",
        "Mul",
        "Identity",
    ]


# trace


@pytest.fixture
def tf():
    """TensorFlow, for tests marked so."""
    return pytest.importorskip("tensorflow")


@pytest.mark.tf
def test_trace_takes_specs_and_values(tf):
    """Specs of TensorFlow and our own, tensors, arrays and Python values may be mixed."""
    import numpy as np

    def f(a, b, c, d, *, k):
        return (a + b + c) * d * k

    spec = graph2mermaid.TensorSpec("float32", (None, 4))
    row: Any = np.ones([4], "f")
    capture = graph2mermaid.trace(f, tf.TensorSpec([4]), spec, row, 2.0, kwargs={"k": tf.ones([])})
    assert [binding.type for binding in capture.traced.inputs] == [
        "float32[4]",
        "float32[?,4]",
        "float32[4]",
        "Python value 2.0",
        "float32[]",
    ]


@pytest.mark.tf
def test_trace_says_what_it_assumed_in_words_of_python(tf):
    """Notes and errors speak of arguments, not of options of the command line."""

    def double(x):
        return x * 2.0

    capture = graph2mermaid.trace(double)
    assert capture.notes == (
        (
            "shape of x assumed: unknown rank float32 (a matmul then becomes BatchMatMulV2); pass a"
            " tf.TensorSpec or an example value for x"
        ),
    )
    layer = tf.keras.layers.Dense(2)
    with pytest.raises(
        SignatureError, match=r"pass a tf.TensorSpec or an example value for inputs$"
    ):
        graph2mermaid.trace(layer)
    with pytest.raises(
        graph2mermaid.TraceError, match=r"; pass a tf.TensorSpec or an example value"
    ):
        graph2mermaid.trace(lambda x: x["key"])


@pytest.mark.tf
def test_the_name_of_what_was_traced(tf):
    """A capture is called after the function, the module or model, or the object's class."""
    import functools

    module: Any = tf.Module

    class Plain:
        def __call__(self, x):
            return x

    class Net(module):
        def __call__(self, x):
            return x

        def forward(self, x):
            return x

        @tf.function
        def step(self, x):
            return x

    def f(x):
        return x

    net, spec = Net(name="net"), tf.TensorSpec([2])
    cases = {
        "f": [f, tf.function(f), functools.partial(f), functools.partial(tf.function(f))],
        "<lambda>": [lambda x: x],
        "Plain": [Plain()],
        "net": [net],
        "forward": [net.forward],
        "step": [net.step],
        "layer": [tf.keras.layers.Activation("relu", name="layer")],
    }
    for name, functions in cases.items():
        for function in functions:
            capture = graph2mermaid.trace(function, spec)
            assert (capture.name, capture.target) == (name, name)
    assert graph2mermaid.trace(tf.function(f).get_concrete_function(spec)).name == "f"


@pytest.mark.tf
@pytest.mark.usefixtures("tf")
def test_examples_in_docstrings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The examples of the package's own docstrings do what they show."""
    monkeypatch.chdir(tmp_path)
    flags = doctest.IGNORE_EXCEPTION_DETAIL
    assert doctest.testmod(graph2mermaid, optionflags=flags).attempted >= 8
    assert doctest.testmod(graph2mermaid, optionflags=flags).failed == 0
