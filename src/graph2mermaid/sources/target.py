"""From what the user typed, `model.py:net.forward`, to the object it names."""

from __future__ import annotations

import difflib
import enum
import inspect
import re
import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph2mermaid.errors import TargetError
from graph2mermaid.sources import listing
from graph2mermaid.sources.dotted import (
    NoSuchStepError,
    NotAPathError,
    Step,
    follow,
    parse_path,
    path_text,
)
from graph2mermaid.sources.keras_steps import STEPS, step_function
from graph2mermaid.sources.loading import Loaded, explained, load_file, load_module
from graph2mermaid.sources.objects import (
    called_function,
    is_dataset,
    is_keras_model,
    is_tf_function,
    is_traceable,
    noun,
)

_KERAS_FILES = {".keras", ".h5", ".hdf5"}
_GRAPH_FILES = {".pb", ".pbtxt"}
_HLO_FILES = (".hlo", ".hlo.pb", ".hlo.txt")
_SAVED_MODEL_FILES = {"saved_model.pb", "saved_model.pbtxt"}
_PYTHON_FILES = {".py", ".pyw"}
_FILES = _KERAS_FILES | _GRAPH_FILES | _PYTHON_FILES | {".json", ".ipynb", ".hlo"}
_MOST_OFFERED = 8
_KNOWN = (
    "a .py, .keras, .h5, .pb, .pbtxt or .g2m.json file, a SavedModel folder, or HLO as "
    "--xla_dump_to writes it"
)

_RATHER = {
    "fit": "train_step",
    "train_function": "train_step",
    "make_train_function": "train_step",
    "train_on_batch": "train_step",
    "evaluate": "test_step",
    "test_function": "test_step",
    "test_on_batch": "test_step",
    "predict": "predict_step",
    "predict_function": "predict_step",
    "predict_on_batch": "predict_step",
}
"""Methods of a Keras model that loop over data in Python, and the step that each of them runs."""


class TargetKind(enum.Enum):
    """What a target turned out to be, which decides who reads it."""

    CALLABLE = "callable"
    """`obj` is a tf.function, or anything that one can be made of."""
    KERAS_MODEL = "Keras model"
    """`obj` is a model object of Keras 3, tf_keras or the Keras 2 inside TensorFlow."""
    KERAS_FILE = "Keras model file"
    """`obj` is the path of a .keras or .h5 file."""
    SAVED_MODEL = "SavedModel"
    """`obj` is the path of the folder; `signature` may name one of its signatures."""
    GRAPH_DEF = "GraphDef file"
    """`obj` is the path of a .pb or .pbtxt file."""
    HLO = "HLO file"
    """`obj` is the path of an HLO proto, or of printed HLO."""
    CAPTURE = "capture file"
    """`obj` is the path of a capture file, which needs no TensorFlow."""


@dataclass(frozen=True)
class TargetName:
    """A target as it was typed, taken apart."""

    text: str
    path: Path | None = None
    """The file or folder, when the left side is one."""
    module: str | None = None
    """The module's dotted name, when it is not."""
    attribute: str = ""
    """What stands after the colon."""

    @property
    def container(self) -> str:
        """The left side as it was typed."""
        return self.text.removesuffix(f":{self.attribute}") if self.attribute else self.text


@dataclass(frozen=True)
class Resolved:
    """The object that a target names."""

    text: str
    """The target as it was typed."""
    name: str
    """What it is called in a report."""
    kind: TargetKind
    obj: Any
    signature: str = ""
    """The signature's name, for a SavedModel."""
    loaded: Loaded | None = None
    """The module that the object is from, for a target in Python code."""
    notes: tuple[str, ...] = ()

    def running(self) -> AbstractContextManager[None]:
        """Let the object's code run inside this: with its imports and without our `sys.argv`."""
        if self.loaded is None:
            return nullcontext()
        return self.loaded.home.entered(self.loaded.shown)


def parse(text: str) -> TargetName:
    """Take a target apart: an existing path as a whole, else split at the last colon.

    Raises:
        TargetError: There is nothing of that name, or it is not in the form of a target.
    """
    if text and _exists(Path(text)):
        return TargetName(text, path=Path(text))
    left, colon, right = text.rpartition(":")
    if not colon or _is_drive(left, right):
        if _is_module_name(text):
            return TargetName(text, module=text)
        raise _no_such_file(text)
    if not right or not left:
        missing = "after" if left else "before"
        raise TargetError(f"{text}: nothing stands {missing} the colon; a target is FILE.py:NAME")
    if _exists(Path(left)):
        return TargetName(text, path=Path(left), attribute=right)
    if _is_module_name(left):
        return TargetName(text, module=left, attribute=right)
    raise _no_such_file(left)


def target_text(name: TargetName, attribute: str) -> str:
    """Return what to type for something else in the same file, quoted for a shell if need be."""
    return shlex.quote(f"{name.container}:{attribute}")


def saved_model_folder(name: TargetName) -> Path | None:
    """Return the folder of a target that is a SavedModel, or None."""
    if name.path is None or _kind_of_path(name.path) is not TargetKind.SAVED_MODEL:
        return None
    return name.path.parent if name.path.is_file() else name.path


def needs_tensorflow(name: TargetName) -> bool:
    """Tell whether a target cannot be read without TensorFlow; captures and HLO can."""
    kind = None if name.path is None else _kind_of_path(name.path)
    return kind not in (TargetKind.CAPTURE, TargetKind.HLO)


def resolve(name: TargetName) -> Resolved:
    """Find the object that a target names, loading the user's code where it is in some.

    Raises:
        TargetError: It does not exist, cannot be loaded, or is not something to trace.
        MissingDependencyError: The user's code needs TensorFlow, which is not installed.
    """
    kind = None if name.path is None else _kind_of_path(name.path)
    if kind is not None:
        return _resolve_file(name, kind)
    loaded = load(name)
    if not name.attribute:
        raise TargetError(f"{name.text}: name what to trace; {_offer(name, loaded)}")
    return _resolve_object(name, loaded)


def load(name: TargetName) -> Loaded:
    """Load the Python file or module of a target.

    Raises:
        TargetError: It cannot be loaded, or is no Python code.
        MissingDependencyError: It needs TensorFlow, which is not installed.
    """
    if name.module is not None:
        return load_module(name.module)
    path = name.path or Path()
    kind = _kind_of_path(path)
    if kind is not None:
        raise TargetError(
            f"{name.container} is no Python code but a {kind.value}, a target as it is: "
            f"graph2mermaid {shlex.quote(name.container)}"
        )
    if path.is_dir() and (path / "__init__.py").is_file():
        path /= "__init__.py"
    if path.is_dir():
        raise TargetError(
            f"{name.container} is a folder, but neither a SavedModel (no saved_model.pb in it) "
            "nor a Python package (no __init__.py)"
        )
    if path.suffix == ".ipynb":
        raise TargetError(
            f"{name.container} is a notebook; make a Python file of it first: "
            f"jupyter nbconvert --to script {shlex.quote(name.container)}"
        )
    if path.suffix.lower() not in _PYTHON_FILES:
        raise TargetError(f"{name.container} cannot be read: a target is {_KNOWN}")
    return load_file(path, name.container)


def look_up(name: TargetName, loaded: Loaded) -> Any:
    """Return the object that stands after the colon: `net.forward`, `layers[0]`.

    Raises:
        TargetError: It is no name, or there is nothing of that name.
    """
    return _follow(name, loaded, _parse_attribute(name))


def _resolve_file(name: TargetName, kind: TargetKind) -> Resolved:
    path = name.path or Path()
    if kind is TargetKind.SAVED_MODEL:
        folder = path.parent if path.is_file() else path
        called = name.attribute or folder.absolute().name
        return Resolved(name.text, called, kind, folder, signature=name.attribute)
    if name.attribute:
        raise TargetError(
            f"{name.text}: a {path.suffix} file takes no name after the colon; "
            f"type {name.container} alone"
        )
    stem = path.name.removesuffix(".g2m.json") if kind is TargetKind.CAPTURE else path.stem
    if kind is TargetKind.HLO:
        stem = path.name.removesuffix(path.suffix).removesuffix(".hlo")
    return Resolved(name.text, stem, kind, path)


def _resolve_object(name: TargetName, loaded: Loaded) -> Resolved:
    steps = _parse_attribute(name)
    last = "" if steps[-1].is_item else str(steps[-1].key)
    owner = _follow(name, loaded, steps[:-1])
    if is_keras_model(owner) and (last in STEPS or last in _RATHER):
        return _resolve_keras_step(name, loaded, owner, last)
    if isinstance(owner, type):
        _refuse_unbound(name, loaded, owner, last)
    if last == "__call__" and (is_tf_function(owner) or hasattr(owner, "__code__")):
        obj = owner  # a function's own __call__ leads to TensorFlow's code, not to the user's
    else:
        obj = _follow(name, loaded, steps)
    if not is_traceable(obj):
        raise TargetError(_why_not(obj, name, loaded))
    kind = TargetKind.KERAS_MODEL if is_keras_model(obj) else TargetKind.CALLABLE
    if kind is TargetKind.CALLABLE:
        obj = called_function(obj)  # has the input_signature
    return Resolved(name.text, path_text(steps), kind, obj, loaded=loaded)


def _resolve_keras_step(name: TargetName, loaded: Loaded, model: Any, method: str) -> Resolved:
    if method in _RATHER:
        better = target_text(name, f"{name.attribute.removesuffix(method)}{_RATHER[method]}")
        raise TargetError(f"{name.text} is a loop in Python, not a graph; type {better}")
    step = step_function(model, method, name.text)
    called = path_text(_parse_attribute(name))
    return Resolved(name.text, called, TargetKind.CALLABLE, step, loaded=loaded)


def _parse_attribute(name: TargetName) -> tuple[Step, ...]:
    try:
        return parse_path(name.attribute)
    except NotAPathError:
        raise TargetError(
            f"{name.text}: {name.attribute!r} is not a name; what stands after the colon is a "
            "name in the file, such as f, net.forward or layers[0]"
        ) from None


def _follow(name: TargetName, loaded: Loaded, steps: Sequence[Step]) -> Any:
    with loaded.home.entered(loaded.shown), explained(loaded.shown):
        try:
            return follow(loaded.module, steps)
        except NoSuchStepError as error:
            owner = f"{name.container}:{path_text(error.before)}".removesuffix(":")
            missing = path_text([error.step])
            raise TargetError(f"{owner} has no {missing}; {_offer(name, loaded)}") from None


def _why_not(obj: object, name: TargetName, loaded: Loaded) -> str:
    what = f"{name.text} is {noun(obj)}"
    if isinstance(obj, type):
        found = [n for n, value in vars(loaded.module).items() if type(value) is obj]
        if found:
            return f"{what}; name an instance of it: {target_text(name, found[0])}"
        return f"{what}; make an instance in the file, x = {obj.__name__}(...), and name x"
    if is_dataset(obj):
        return f"{what}; the dataset view does not exist yet"
    return f"{what}, which cannot be traced; {_offer(name, loaded)}"


def _refuse_unbound(name: TargetName, loaded: Loaded, cls: type, method: str) -> None:
    """Refuse a method through its class: there is no instance to call it on."""
    found = next((vars(base)[method] for base in cls.__mro__ if method in vars(base)), None)
    if not is_tf_function(found) and not inspect.isfunction(found):
        return
    instances = [n for n, value in vars(loaded.module).items() if isinstance(value, cls)]
    if instances:
        better = f"type {target_text(name, f'{instances[0]}.{method}')}"
    else:
        better = f"make one in the file, x = {cls.__name__}(...), and name x.{method}"
    raise TargetError(f"{name.text} is a method of a class and needs an instance; {better}")


def _offer(name: TargetName, loaded: Loaded) -> str:
    """Say what could be typed instead: methods of the object first, then the nearest names."""
    found = [candidate.path for candidate in listing.candidates(loaded)]
    if not found:
        return f"nothing in {name.container} can be traced"
    inside = [path for path in found if path.startswith(f"{name.attribute}.")]
    near = difflib.get_close_matches(name.attribute, found, n=1)
    if near:
        others = len(found) - 1
        rest = f" ({others} more: {_list(name)})" if others else ""
        return f"did you mean {target_text(name, near[0])}?{rest}"
    shown = list(dict.fromkeys((*inside, *found)))[:_MOST_OFFERED]
    typed = ", ".join(target_text(name, path) for path in shown)
    others = len(found) - len(shown)
    rest = f" and {others} more (see: {_list(name)})" if others else ""
    return f"there is {typed}{rest}"


def _list(name: TargetName) -> str:
    return f"graph2mermaid list {shlex.quote(name.container)}"


def _kind_of_path(path: Path) -> TargetKind | None:
    """Return the kind of a file that is not Python code, or None."""
    if path.is_dir():
        saved = any((path / file).is_file() for file in _SAVED_MODEL_FILES)
        return TargetKind.SAVED_MODEL if saved else None
    if path.name in _SAVED_MODEL_FILES:
        return TargetKind.SAVED_MODEL
    suffix = path.suffix.lower()
    if path.name.lower().endswith(_HLO_FILES) or (suffix == ".txt" and _is_printed_hlo(path)):
        return TargetKind.HLO
    if suffix in _KERAS_FILES:
        return TargetKind.KERAS_FILE
    if suffix in _GRAPH_FILES:
        return TargetKind.GRAPH_DEF
    return TargetKind.CAPTURE if suffix == ".json" else None


def _is_printed_hlo(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4096).lstrip().startswith(b"HloModule")
    except OSError:
        return False


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, or with a null character: not a path
        return False


def _is_drive(left: str, right: str) -> bool:
    return len(left) == 1 and left.isalpha() and right.startswith(("\\", "/"))


def _is_module_name(text: str) -> bool:
    looks_like_file = Path(text).suffix.lower() in _FILES
    return not looks_like_file and re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", text) is not None


def _no_such_file(text: str) -> TargetError:
    path = Path(text)
    try:
        beside = {p.stem: p for p in sorted(path.parent.iterdir()) if p.suffix == path.suffix}
    except OSError:
        return TargetError(f"there is no file, folder or module called {text!r}")
    near = difflib.get_close_matches(path.stem, beside, n=1)
    meant = f"; did you mean {beside[near[0]]}?" if near else ""
    return TargetError(f"there is no file, folder or module called {text!r}{meant}")
