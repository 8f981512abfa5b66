"""Keras model files, `.keras` and `.h5`, of Keras 3 and Keras 2."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from graph2mermaid.errors import MissingDependencyError, TargetError
from graph2mermaid.sources.failures import reason

_HDF5 = b"\x89HDF\r\n\x1a\n"
_CODE_CLASSES = frozenset({"Lambda", "__lambda__"})
_UNKNOWN_CLASS = re.compile(
    r"(?:Could not locate (?:class|function) |Unknown [\w ]+?: ?|object of type |layer=)"
    r"['`]?(?P<name>[\w>]+)"
)
_FIRST_WITH_ZIP = (2, 12)


@dataclass(frozen=True)
class _Header:
    """What a model file says about itself."""

    config: Any
    keras: str
    """The version of Keras that wrote it, or the empty string."""
    is_zip: bool


def load_keras_model(path: Path, *, unsafe: bool = False) -> tuple[Any, tuple[str, ...]]:
    """Load a model file, with the Keras that wrote it where both Keras 2 and 3 are installed.

    The configuration is looked through before anything is loaded: a Lambda layer holds compiled
    Python code, and not every version of Keras refuses to run it.

    Args:
        path: A `.keras`, `.h5` or `.hdf5` file.
        unsafe: Allow Lambda layers.

    Returns:
        The model, and sentences on what a reader must know about it.

    Raises:
        TargetError: The file holds no model, or one that cannot be loaded here.
        MissingDependencyError: Keras is not installed.
    """
    header = _read_header(path)
    if not unsafe and (layer := next(_code_in(header.config), None)):
        raise TargetError(
            f"{path} has a Lambda layer ({layer}), which would run code from the file; "
            "if you trust the file, add --unsafe"
        )
    keras = _keras_for(path, header)
    options = {"compile": False}  # losses and optimizers are not needed, and are often custom
    if "safe_mode" in inspect.signature(keras.models.load_model).parameters:
        options["safe_mode"] = not unsafe
    try:
        model = keras.models.load_model(str(path), **options)
    except Exception as error:
        raise TargetError(_why_not(path, header, keras, error)) from error
    if header.keras and _version(header.keras)[0] != _version(keras.__version__)[0]:
        note = (
            f"{path} was saved by Keras {header.keras} and loaded by Keras {keras.__version__}, "
            "which may build another graph."
        )
        return model, (note,)
    return model, ()


def _read_header(path: Path) -> _Header:
    try:
        with path.open("rb") as file:
            start = file.read(len(_HDF5))
        if start.startswith(b"PK"):
            return _read_zip_header(path)
        if start == _HDF5:
            return _read_hdf5_header(path)
    except OSError as error:
        if error.strerror:
            raise TargetError(f"{path} cannot be read: {error.strerror}") from error
        raise TargetError(f"{path} is damaged: {reason(error)}") from error
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise TargetError(f"{path} is damaged or not a Keras model: {reason(error)}") from error
    if not start:
        raise TargetError(f"{path} is empty")
    raise TargetError(f"{path} is damaged or not a Keras model: neither a zip nor an HDF5 file")


def _read_zip_header(path: Path) -> _Header:
    with zipfile.ZipFile(path) as archive:
        config = json.loads(archive.read("config.json"))
        metadata = json.loads(archive.read("metadata.json"))
    return _Header(config, str(metadata.get("keras_version", "")), is_zip=True)


def _read_hdf5_header(path: Path) -> _Header:
    with _import("h5py").File(path, "r") as file:
        config, version = file.attrs.get("model_config"), file.attrs.get("keras_version", "")
    if config is None:
        raise TargetError(
            f"{path} holds weights without a model; save the model as a whole with model.save(...)"
        )
    return _Header(json.loads(config), _text(version), is_zip=False)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _code_in(config: Any) -> Iterator[str]:
    """Yield the names of those parts of a configuration that hold Python code."""
    if isinstance(config, dict):
        if config.get("class_name") in _CODE_CLASSES:
            inner = config.get("config")
            yield str(inner.get("name", "lambda") if isinstance(inner, dict) else "lambda")
        for value in config.values():
            yield from _code_in(value)
    elif isinstance(config, list):
        for value in config:
            yield from _code_in(value)


def _keras_for(path: Path, header: _Header) -> ModuleType:
    """Return the Keras to load a file with: tf_keras for one of Keras 2, where it is installed."""
    keras = _import("keras")
    here, saved = _version(keras.__version__), _version(header.keras)
    if saved < (3,) <= here and importlib.util.find_spec("tf_keras"):
        return _import("tf_keras")
    if here < (3,) <= saved:
        raise TargetError(
            f"{path} was saved by Keras {header.keras}, which Keras {keras.__version__} cannot "
            "load; use TensorFlow 2.16 or newer"
        )
    if header.is_zip and here < _FIRST_WITH_ZIP:
        raise TargetError(
            f"{path}: Keras {keras.__version__} cannot load .keras files; save the model as .h5 "
            "or as a SavedModel, or use TensorFlow 2.12 or newer"
        )
    is_named_zip = path.suffix == ".keras"
    if here >= (3,) and header.is_zip != is_named_zip:
        right = path.with_suffix(".keras" if header.is_zip else ".h5").name
        raise TargetError(f"{path} has the content of another kind of file; rename it to {right}")
    return keras


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            "model files need TensorFlow and Keras: pip install 'graph2mermaid[tensorflow]'"
        ) from error


def _version(text: str) -> tuple[int, ...]:
    """Return the first two numbers; without any, those of the oldest files."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2]) or (2, 0)


def _why_not(path: Path, header: _Header, keras: ModuleType, error: Exception) -> str:
    if found := _UNKNOWN_CLASS.search(str(error)):
        return (
            f"{path} needs the class or function {found['name']}, which is not part of Keras; load "
            "the model in the Python file that defines it, and name the model: FILE.py:model"
        )
    advice = ""
    if _version(header.keras) < (3,) <= _version(keras.__version__):
        advice = f"; it was saved by Keras {header.keras or 2}: pip install tf_keras"
    elif _version(header.keras) > _version(keras.__version__):
        advice = f"; it was saved by the newer Keras {header.keras}"
    return f"{path} cannot be loaded by Keras {keras.__version__}: {reason(error)}{advice}"
