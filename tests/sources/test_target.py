"""From the text of a target to the object it names, and the line that says why there is none."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph2mermaid.errors import TargetError
from graph2mermaid.sources import listing
from graph2mermaid.sources.target import TargetKind, TargetName, load, look_up, parse, resolve


@pytest.fixture(autouse=True)
def _put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work in the test's folder, and forget afterwards what was loaded from it."""
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if not name.startswith(("tensorflow", "keras", "tf_keras", "google", "numpy")):
            del sys.modules[name]


PLAIN = """
import functools
import json
from os.path import join

def scale(x, k=2.0): return x * k
half = functools.partial(scale, k=0.5)
double = lambda x: x + x

class Net:
    def __init__(self): self.layers = [scale, {"b": double}]
    def forward(self, x): return x
    @staticmethod
    def helper(x): return x
    @property
    def broken(self): raise ValueError("not ready")
    def __call__(self, x): return x

class Other:
    def forward(self, x): return x

class Plain: ...
plain = Plain()
net = Net()
number = 3
nothing = None
async def fetch(x): return x
def _private(x): return x
"""


def write(name: str, text: str) -> None:
    Path(name).write_text(textwrap.dedent(text), encoding="utf-8")


def error(text: str) -> str:
    """Return the line that a target ends with."""
    with pytest.raises(TargetError) as caught:
        resolve(parse(text))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "existing", "expected"),
    [
        ("model.py:f", "model.py", ("model.py", None, "f")),
        ("model.py", "model.py", ("model.py", None, "")),
        ("model.py:net.forward", "model.py", ("model.py", None, "net.forward")),
        ("a:b.py", "a:b.py", ("a:b.py", None, "")),
        ("a:b.py:f", "a:b.py", ("a:b.py", None, "f")),
        ("my model-v2.py:f", "my model-v2.py", ("my model-v2.py", None, "f")),
        ("folder:serve", "folder/", ("folder", None, "serve")),
        ("folder/", "folder/", ("folder", None, "")),
        ("pkg.mod:f", "", (None, "pkg.mod", "f")),
        ("pkg.mod", "", (None, "pkg.mod", "")),
        ("model:f", "model.py", (None, "model", "f")),
        ("m.keras", "m.keras", ("m.keras", None, "")),
    ],
)
def test_a_target_is_split_at_its_last_colon(
    text: str, existing: str, expected: tuple[str | None, str | None, str]
):
    """A whole path goes first; then the left side is a file, a folder, and last a module."""
    if existing.endswith("/"):
        Path(existing).mkdir()
    elif existing:
        Path(existing).touch()
    path, module, attribute = expected
    assert parse(text) == TargetName(text, Path(path) if path else None, module, attribute)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "trian.py",
            "there is no file, folder or module called 'trian.py'; did you mean train.py?",
        ),
        (
            "trian.py:f",
            "there is no file, folder or module called 'trian.py'; did you mean train.py?",
        ),
        ("no/such/place.py:f", "there is no file, folder or module called 'no/such/place.py'"),
        ("C:\\models\\m.py", "there is no file, folder or module called 'C:\\\\models\\\\m.py'"),
        ("C:\\models\\m.py:f", "there is no file, folder or module called 'C:\\\\models\\\\m.py'"),
        ("m.keras", "there is no file, folder or module called 'm.keras'"),
        ("model.py:", "model.py:: nothing stands after the colon; a target is FILE.py:NAME"),
        (":f", ":f: nothing stands before the colon; a target is FILE.py:NAME"),
        ("", "there is no file, folder or module called ''"),
        ("a\0b", "there is no file, folder or module called 'a\\x00b'"),
        ("no_such_module:f", "there is no file, folder or module called 'no_such_module'"),
        ("no_such_module", "there is no file, folder or module called 'no_such_module'"),
    ],
)
def test_what_does_not_exist(text: str, message: str):
    """The line names what was looked for, and a file beside it with nearly that name."""
    Path("train.py").touch()
    assert error(text) == message


@pytest.mark.parametrize(
    ("attribute", "name"),
    [
        ("scale", "scale"),
        ("half", "half"),
        ("double", "double"),
        ("net", "net"),
        ("net.forward", "net.forward"),
        ("net.__call__", "net.__call__"),
        ("net.layers[0]", "net.layers[0]"),
        ("net.layers[-1]['b']", "net.layers[-1]['b']"),
        ("Net.helper", "Net.helper"),
        ("net.helper", "net.helper"),
        ("_private", "_private"),
        ("join", "join"),
    ],
)
def test_callables_of_every_kind(attribute: str, name: str):
    """Functions, lambdas, partials, objects and methods are found under the name as written."""
    write("model.py", PLAIN)
    found = resolve(parse(f"model.py:{attribute}"))
    assert (found.kind, found.name) == (TargetKind.CALLABLE, name)
    assert callable(found.obj)
    assert found.text == f"model.py:{attribute}"


@pytest.mark.parametrize("name", ["scale.__call__", "double.__call__"])
def test_the_call_of_a_function_is_the_function(name: str):
    """`f.__call__` is the user's function, not a wrapper around it."""
    write("model.py", PLAIN)
    assert resolve(parse(f"model.py:{name}")).obj.__code__.co_filename.endswith("model.py")


ALL = "there is model.py:scale, model.py:half, model.py:double, model.py:net"


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("scael", ("model.py has no scael; did you mean model.py:scale? "
         "(3 more: graph2mermaid list model.py)")),
        ("q", f"model.py has no q; {ALL}"),
        ("net.q", ("model.py:net has no q; did you mean model.py:net? "
         "(3 more: graph2mermaid list model.py)")),
        ("net.layers[7]", f"model.py:net.layers has no [7]; {ALL}"),
        ("number.real", f"model.py:number.real is a number (3), which cannot be traced; {ALL}"),
        ("number", f"model.py:number is a number (3), which cannot be traced; {ALL}"),
        ("nothing", f"model.py:nothing is None, which cannot be traced; {ALL}"),
        ("json", f"model.py:json is a module, which cannot be traced; {ALL}"),
        ("plain", f"model.py:plain is a Plain, which cannot be traced; {ALL}"),
        ("fetch", "model.py:fetch is a coroutine function (async def), which cannot be traced; "
         + ALL),
        ("Net", "model.py:Net is a class; name an instance of it: model.py:net"),
        ("Other", ("model.py:Other is a class; make an instance in the file, x = Other(...), "
         "and name x")),
        ("Net.forward", ("model.py:Net.forward is a method of a class and needs an instance; "
         "type model.py:net.forward")),
        ("Other.forward", ("model.py:Other.forward is a method of a class and needs an instance; "
         "make one in the file, x = Other(...), and name x.forward")),
        ("net.broken", "cannot load model.py: ValueError at model.py:16: not ready"),
        ("Net().forward", ("model.py:Net().forward: 'Net().forward' is not a name; what stands "
         "after the colon is a name in the file, such as f, net.forward or layers[0]")),
        ("scale (x", ("model.py:scale (x: 'scale (x' is not a name; what stands after the colon is "
         "a name in the file, such as f, net.forward or layers[0]")),
        ("", "model.py: name what to trace; " + ALL),
    ],
)  # fmt: skip
def test_what_cannot_be_traced(attribute: str, message: str):
    """The line says what the object is, and what in the file can be traced."""
    write("model.py", PLAIN)
    assert error(f"model.py:{attribute}".removesuffix(":")) == message


def test_many_candidates_are_not_all_named():
    """A long list ends with the command that shows all of it."""
    write("model.py", "".join(f"def f{i}(x): return x\n" for i in range(20)))
    text = error("model.py")
    assert text.startswith("model.py: name what to trace; there is model.py:f0, model.py:f1, ")
    assert text.endswith("model.py:f7 and 12 more (see: graph2mermaid list model.py)")


def test_a_file_without_candidates():
    """A file that holds nothing to trace says so."""
    write("model.py", "x = 1")
    assert error("model.py") == "model.py: name what to trace; nothing in model.py can be traced"


@pytest.mark.parametrize(
    ("path", "kind", "name"),
    [
        ("m.keras", TargetKind.KERAS_FILE, "m"),
        ("m.h5", TargetKind.KERAS_FILE, "m"),
        ("frozen.graph.pb", TargetKind.GRAPH_DEF, "frozen.graph"),
        ("g.pbtxt", TargetKind.GRAPH_DEF, "g"),
        ("x.g2m.json", TargetKind.CAPTURE, "x"),
        ("export/saved_model.pb", TargetKind.SAVED_MODEL, "export"),
    ],
)
def test_files_that_are_not_python(path: str, kind: TargetKind, name: str):
    """A file's kind is told by its name; the file itself is read later."""
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).touch()
    found = resolve(parse(path))
    assert (found.kind, found.name) == (kind, name)
    assert found.loaded is None


def test_a_signature_of_a_saved_model():
    """A folder with a saved_model.pb takes a signature's name after the colon."""
    Path("export").mkdir()
    Path("export/saved_model.pb").touch()
    found = resolve(parse("export:serve"))
    assert (found.kind, found.obj, found.signature, found.name) == (
        TargetKind.SAVED_MODEL,
        Path("export"),
        "serve",
        "serve",
    )


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("m.keras", "m.keras:f", ("m.keras:f: a .keras file takes no name after the colon; "
         "type m.keras alone")),
        ("notes.txt", "notes.txt:f", ("notes.txt cannot be read: a target is a .py, .keras, .h5, "
         ".pb, .pbtxt or .g2m.json file, a SavedModel folder, or HLO as --xla_dump_to writes it")),
        ("n.ipynb", "n.ipynb:f", ("n.ipynb is a notebook; make a Python file of it first: "
         "jupyter nbconvert --to script n.ipynb")),
        ("folder/data.txt", "folder", ("folder is a folder, but neither a SavedModel (no "
         "saved_model.pb in it) nor a Python package (no __init__.py)")),
    ],
)  # fmt: skip
def test_files_that_are_no_target(path: str, text: str, message: str):
    """The line says what a target is, and what to do with the file."""
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).touch()
    assert error(text) == message


def test_a_package_folder_is_a_target_like_its_init_file():
    """`net:f` finds f in `net/__init__.py`."""
    Path("net").mkdir()
    write("net/__init__.py", "def f(x): return x")
    assert resolve(parse("net:f")).obj.__module__ == "net"


def test_look_up_gives_any_object():
    """Example inputs are found the same way as targets, whatever they are."""
    write("data.py", "batch = {'image': [1, 2]}")
    name = parse("data.py:batch['image']")
    assert look_up(name, load(name)) == [1, 2]


def test_the_list_of_what_can_be_traced():
    """Only what was made in the file and has a public name is listed, in its order."""
    write("model.py", PLAIN)
    found = listing.candidates(load(parse("model.py")))
    assert [(c.path, c.kind, c.signature) for c in found] == [
        ("scale", "function", "(x, k=2.0)"),
        ("half", "partial", "(x, k=0.5)"),
        ("double", "function", "(x)"),
        ("net", "Net", "(x)"),
    ]


@pytest.mark.tf
class TestTensorFlow:
    """Objects of TensorFlow and Keras."""

    FILE = """
    import functools
    import tensorflow as tf
    from tensorflow import Module, keras

    @tf.function(input_signature=[tf.TensorSpec([None, 4]), {"n": tf.TensorSpec([], tf.int32)}])
    def ready(x, options):
        return x

    @tf.function
    def free(x: tf.TensorSpec([2, None], tf.int32), k=2):
        return x

    part = functools.partial(free, k=3)
    concrete = tf.function(lambda x: x).get_concrete_function(tf.TensorSpec([2]))

    class Net(tf.Module):
        @tf.function
        def forward(self, x):
            return x

        def plain(self, x):
            return x

    class Callable(Net):
        @tf.function(input_signature=[tf.TensorSpec([3])])
        def __call__(self, x):
            return x

        @tf.function
        def forward(self, x, y):
            return x

    net = Net()
    call = Callable()
    data = tf.data.Dataset.range(3)
    variable = tf.Variable(1.0)
    tensor = tf.ones([2])
    built = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    unbuilt = keras.Sequential([keras.layers.Dense(3)])
    layer = keras.layers.Dense(2)
    """

    @pytest.fixture(autouse=True)
    def _file(self) -> None:
        pytest.importorskip("tensorflow")
        write("model.py", self.FILE)

    @pytest.mark.parametrize(
        ("attribute", "kind"),
        [
            ("ready", TargetKind.CALLABLE),
            ("ready.__call__", TargetKind.CALLABLE),
            ("part", TargetKind.CALLABLE),
            ("concrete", TargetKind.CALLABLE),
            ("net.forward", TargetKind.CALLABLE),
            ("net.plain", TargetKind.CALLABLE),
            ("call", TargetKind.CALLABLE),
            ("built", TargetKind.KERAS_MODEL),
            ("unbuilt", TargetKind.KERAS_MODEL),
            ("built.call", TargetKind.CALLABLE),
            ("built.layers[0]", TargetKind.CALLABLE),
            ("layer", TargetKind.CALLABLE),
            ("built.predict_step", TargetKind.CALLABLE),
        ],
    )
    def test_kinds(self, attribute: str, kind: TargetKind):
        """Everything that TensorFlow can trace is found, and Keras models are told apart."""
        assert resolve(parse(f"model.py:{attribute}")).kind is kind

    @pytest.mark.parametrize("attribute", ["ready.__call__", "call", "call.__call__"])
    def test_a_call_that_is_a_tf_function_keeps_its_signature(self, attribute: str):
        """The tf.function itself is handed on, so that its input_signature is not lost."""
        assert resolve(parse(f"model.py:{attribute}")).obj.input_signature is not None

    @pytest.mark.parametrize(
        ("attribute", "start"),
        [
            ("net", ("is a tf.Module (Net) without __call__, which cannot be traced; "
             "there is model.py:net.forward, model.py:net.plain, model.py:ready")),
            ("data", "is a tf.data.Dataset; the dataset view does not exist yet"),
            ("variable", "is a tf.Variable, which cannot be traced; "),
            ("tensor", "is a tensor, which cannot be traced; "),
            ("Net.forward", ("is a method of a class and needs an instance; "
             "type model.py:net.forward")),
            ("built.fit", "is a loop in Python, not a graph; type model.py:built.train_step"),
            ("built.predict", "is a loop in Python, not a graph; type model.py:built.predict_step"),
            ("built.train_step", "the model is not compiled; call its compile() in the file"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_traced(self, attribute: str, start: str):
        """The line says what the object is, and which name to type instead."""
        text = error(f"model.py:{attribute}").removeprefix(f"model.py:{attribute}")
        assert text.lstrip(": ").startswith(start)

    def test_the_list_has_shapes(self):
        """Signatures show what the function itself says of its arguments."""
        found = listing.candidates(load(parse("model.py")))
        assert {
            c.path: (c.kind, c.signature) for c in found if c.path not in ("layer", "built")
        } == {
            "ready": ("tf.function", "(x: float32[?,4], options: {'n': int32[]})"),
            "free": ("tf.function", "(x: int32[2,?], k=2)"),
            "part": ("partial", "(x: int32[2,?], k=3)"),
            "concrete": ("concrete function", "(x: float32[2])"),
            "net.forward": ("tf.function", "(x)"),
            "net.plain": ("method", "(x)"),
            "call": ("tf.Module", "(x: float32[3])"),
            "call.forward": ("tf.function", "(x, y)"),
            "call.plain": ("method", "(x)"),
            "unbuilt": ("Keras model", "(not built: give --input)"),
        }
        (model,) = (c for c in found if c.path == "built")
        assert model.kind == "Keras model"
        assert model.signature.endswith(": float32[?,4])")
