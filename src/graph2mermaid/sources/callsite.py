"""From an op's traceback to the user's line and the public function that was called there."""

from __future__ import annotations

import functools
import linecache
import os
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from graph2mermaid.graph import SourceLine
from graph2mermaid.sources.statements import Statement, statement_at

_LIBRARIES = (
    "tensorflow",
    "keras",
    "tf_keras",
    "keras_core",
    "tensorflow_estimator",
    "optree",  # Keras maps over structures with it
)

# Operators by the op type they make. TensorFlow overloads them on Tensor in math_ops and
# array_ops (2.9) and in tensor_math_operator_overrides (2.21).
OPERATORS: Mapping[str, str] = MappingProxyType(
    {
        "Add": "+",
        "AddV2": "+",
        "Sub": "-",
        "Mul": "*",
        "RealDiv": "/",
        "FloorDiv": "//",
        "FloorMod": "%",
        "Pow": "**",
        "MatMul": "@",
        "BatchMatMulV2": "@",
        "BatchMatMulV3": "@",
        "Greater": ">",
        "GreaterEqual": ">=",
        "Less": "<",
        "LessEqual": "<=",
        "Equal": "==",
        "NotEqual": "!=",
        "LogicalAnd": "&",
        "LogicalOr": "|",
        "LogicalXor": "^",
        "LogicalNot": "~",
        "Neg": "-",
        "StridedSlice": "[]",
    }
)


# Exported, but no names of an op: internals, and helpers that call the user's own functions.
_NOT_OP_NAMES = (
    "__internal__",
    "autograph",
    "compat.",
    "control_dependencies",
    "custom_gradient",
    "distribute",
    "function",
    "import_graph_def",
    "init_scope",
    "name_scope",
    "nest.",
    "raw_ops.",
    "saved_model.",
    "recompute_grad",
    "test.",
    "wrap_function",
)


@dataclass(frozen=True, slots=True)
class CallSite:
    """Where an op comes from."""

    source: SourceLine | None = None
    api: str | None = None
    """`tf.multiply`, or an operator as written: `*`."""
    statements: tuple[Statement, ...] = ()
    """The user's statements that lead to the op within the function being traced, innermost
    first."""


@dataclass(frozen=True, slots=True)
class _Frame:
    file: str
    line: int
    function: str


def call_site(traceback: Sequence[Any] | None, op_type: str) -> CallSite:
    """Read an op's traceback (`op.traceback`, outermost frame first; None for imported graphs).

    The innermost frame outside TensorFlow, Keras and this package is the user's line. The frames
    after it lead into TensorFlow; the first of them that TensorFlow exports is what was called.
    """
    if not traceback:
        return CallSite()
    frames = [_Frame(f.filename, f.lineno, f.name) for f in traceback]
    if any(frame.file.endswith("auto_control_deps.py") for frame in frames):
        return CallSite()  # a result's Identity or a body's last NoOp, on 2.9.3 and 2.21.0
    start = _first_frame_of_trace(frames)
    user = next(
        (i for i in range(len(frames) - 1, start - 1, -1) if is_user_file(frames[i].file)), None
    )
    if user is None:
        return CallSite(api=_public_name(frames[start:], op_type, None))
    inner = frames[user + 1 :]
    if any(frame.function == "get_concrete_function" for frame in inner):
        return CallSite()  # made by tracing itself: arguments, results, the final NoOp
    body_start = max(
        (i + 1 for i, f in enumerate(frames) if f.function == "func_graph_from_py_func"), default=0
    )
    outside = _statements_of(frames[start:body_start])
    # A lambda that TensorFlow traces as a body stands in the statement that passes it.
    statements = tuple(
        found.as_a_lambda() if found in outside else found
        for found in _statements_of(frames[max(start, body_start) :])
    )
    line = frames[user]
    written = statement_at(line.file, line.line, line.function)
    # Where TensorFlow traces a body of its own below the user's line (a loop's counter), the
    # line does not hold the call: no operator in it is the op's.
    text = (written.text if written else None) if user >= body_start else ""
    return CallSite(
        SourceLine(shown_path(line.file), line.line, line.function),
        _public_name(frames[max(user + 1, body_start) :], op_type, text),
        statements,
    )


def _statements_of(frames: Sequence[_Frame]) -> list[Statement]:
    """Return the user's statements among some frames, innermost first."""
    own = (frame for frame in reversed(frames) if is_user_file(frame.file))
    found = (statement_at(frame.file, frame.line, frame.function) for frame in own)
    return [statement for statement in found if statement is not None]


def _first_frame_of_trace(frames: Sequence[_Frame]) -> int:
    """Skip the frames of whoever asked for the trace: everything up to this package's own."""
    return max((i + 1 for i, frame in enumerate(frames) if _is_own_file(frame.file)), default=0)


@functools.cache
def _is_own_file(file: str) -> bool:
    return file.startswith(str(Path(__file__).parent.parent) + os.sep)


@functools.cache
def _site_folders() -> tuple[str, ...]:
    paths = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    paths |= {p for p in sys.path if p.rstrip("/\\").endswith(("site-packages", "dist-packages"))}
    return tuple(sorted((p.rstrip("/\\") + os.sep for p in paths if p), key=len, reverse=True))


@functools.cache
def is_user_file(file: str) -> bool:
    """Tell whether a file is outside TensorFlow, Keras, the standard library and this package."""
    if _is_own_file(file) or "__autograph_generated_file" in file:
        return False
    if file.startswith("<"):  # a notebook's cell has lines, `<string>` and the like have none
        return bool(linecache.getlines(file))
    for folder in _site_folders():
        if file.startswith(folder):
            return Path(file[len(folder) :]).parts[0] not in _LIBRARIES
    stdlib = sysconfig.get_path("stdlib") + os.sep
    return not file.startswith(stdlib)


@functools.cache
def shown_path(file: str) -> str:
    """Return the path for a report: relative to the working directory or to site-packages."""
    for folder in _site_folders():
        if file.startswith(folder):
            return Path(file[len(folder) :]).as_posix()
    if file.startswith("<") or "ipykernel_" in file:
        # Both hold a number of the process.
        return "notebook cell"
    try:
        return Path(os.path.relpath(file)).as_posix()
    except ValueError:  # another drive
        return Path(file).name


def _public_name(frames: Sequence[_Frame], op_type: str, written: str | None) -> str | None:
    for frame in frames:
        if frame.function in ("binary_op_wrapper", "r_binary_op_wrapper"):
            operator = OPERATORS.get(op_type)
            return operator if operator and (written is None or operator in written) else None
        names = _exported_names(frame.file, frame.function)
        if names:
            return _as_written(names, op_type, written)
    return None


def _as_written(names: tuple[str, ...], op_type: str, written: str | None) -> str | None:
    """Choose among a function's public names the one that the user wrote."""
    operator = OPERATORS.get(op_type)
    if names[0].startswith("__operators__"):  # exported only for Keras' sake
        return operator if operator and (written is None or operator[0] in written) else None
    if written is not None:
        found = [n for n in names if n in written]
        if found:
            return f"tf.{max(found, key=len)}"
        found = [n for n in names if n.rpartition(".")[2] in written]
        if not found and operator and operator[0] in written:
            return operator
        names = tuple(found) or names
    return f"tf.{min(names, key=lambda n: (n.count('.'), len(n)))}"


@functools.cache
def _exported_names(file: str, function: str) -> tuple[str, ...]:
    """Return the names that TensorFlow exports a function under (`tf_export` keeps them on it).

    Private attribute `_tf_api_names`, checked on 2.9.3 and 2.21.0; decorated functions carry it
    on the function that they wrap.
    """
    if file.startswith("<") or is_user_file(file):
        return ()
    found: Any = getattr(_module_of(file), function, None)
    while found is not None:
        for attribute in ("_tf_api_names", "_tf_api_names_v1"):
            names = getattr(found, attribute, None) or ()
            public = tuple(n for n in names if not n.startswith(_NOT_OP_NAMES))
            if public:
                first = "" if attribute == "_tf_api_names" else "compat.v1."
                return tuple(f"{first}{name}" for name in public)
        found = getattr(found, "__wrapped__", None)
    return ()


@functools.cache
def _module_of(file: str) -> object | None:
    for folder in _site_folders():
        if file.startswith(folder) and file.endswith(".py"):
            return sys.modules.get(file[len(folder) : -3].replace(os.sep, "."))
    return None
