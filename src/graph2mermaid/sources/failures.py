"""Why TensorFlow could not trace a function: its own words, on one line, with the user's line."""

from __future__ import annotations

import inspect
import os
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graph2mermaid.errors import TraceError
from graph2mermaid.graph import SourceLine
from graph2mermaid.sources.callsite import is_user_file, shown_path

_LONGEST = 400
_PACKAGE = str(Path(__file__).parent.parent) + os.sep

# What TensorFlow and Keras add around the reason.
_BEFORE = re.compile(
    r"Exception encountered when calling .*?\n\n"
    r"|Binding inputs to tf\.function failed due to `(?P<reason>.*?)`\. Received args: .*",
    re.DOTALL,
)
_AFTER = re.compile(
    r"\n\s*\n\s*(?:Call a|A)rguments received by .*"
    r"|\.? Received args: .*"
    r"|,? via at least one path, e\.g\.: .*",
    re.DOTALL,
)
_TERMINAL_COLORS = re.compile(r"\x1b\[[\d;]*m")
_EAGER_TENSOR = re.compile(r"(<tf\.\w+[^<>]*?), numpy=.*?>", re.DOTALL)
_PRINTED_TENSOR = re.compile(r"tf\.Tensor\(.*?,? shape=(\([\d, ]*\)), dtype=(\w+)\)", re.DOTALL)
_ARRAY = re.compile(r"array\(.*?\)(?=[,>)\s]|$)", re.DOTALL)
_NUMBERS = re.compile(r"\[[\s\[]*-?(?:[\d.]|nan|inf)[-+\d.einfa,\s\[\]]{60,}\]")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def trace_error(
    error: BaseException, name: str, function: Any, *, shown: str = "", advice: str = ""
) -> TraceError:
    """Turn what tracing raised into one line.

    Args:
        error: What was raised.
        name: The function as the user knows it.
        function: The Python function, whose definition is the place to name if no line of the
            user's is in the traceback.
        shown: The arguments that it was traced with, in words.
        advice: What to do about it, if that is known.
    """
    place = _user_line(error) or definition(function)
    at = f" at {place}" if place else ""
    tried = f" (traced with {shown})" if shown else ""
    then = f"; {advice}" if advice else ""
    return TraceError(f"cannot trace {name}: {_kind(error)}{at}: {reason(error)}{tried}{then}")


def reason(error: BaseException) -> str:
    """Return an error's own words on one line, without values of tensors, cut where they go on."""
    text = full_reason(error)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def full_reason(error: BaseException) -> str:
    """Return all of an error's own words on one line, without values of tensors."""
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    metadata = getattr(error, "ag_error_metadata", None)
    text = metadata.cause_message.partition(": ")[2] if metadata else str(error)
    text = _TERMINAL_COLORS.sub("", text)
    text = _BEFORE.sub(lambda found: found["reason"] or "", text)
    text = _AFTER.sub("", text)
    text = _EAGER_TENSOR.sub(r"\1>", text)
    text = _PRINTED_TENSOR.sub(r"a tensor of shape \1 and type \2", text)
    text = _ARRAY.sub("array(...)", text)
    text = _NUMBERS.sub("[...]", text)
    text = " ".join(_ADDRESS.sub("", text).split()).rstrip(".")
    return text or "no message"


def definition(function: Any) -> SourceLine | None:
    """Return where a function, or a callable object's `__call__`, is defined by the user."""
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    if not hasattr(function, "__code__") and not hasattr(function, "__func__"):
        function = type(function).__call__
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or not is_user_file(code.co_filename):
        return None
    return SourceLine(shown_path(code.co_filename), code.co_firstlineno, code.co_name)


def _kind(error: BaseException) -> str:
    """Return the error's type; AutoGraph makes a StagingError of one that it cannot raise anew."""
    metadata = getattr(error, "ag_error_metadata", None)
    if metadata and (found := re.match(r"[A-Za-z_][\w.]*(?=: |$)", metadata.cause_message)):
        return found[0]
    return type(error).__name__


def _user_line(error: BaseException) -> SourceLine | None:
    """Return the innermost line of the user's own code that led to the error."""
    frames = list(_frames(error))
    # Whoever called this package is not part of the function.
    start = max((i + 1 for i, frame in enumerate(frames) if _is_own(frame[0])), default=0)
    for file, line, name in reversed(frames[start:]):
        if is_user_file(file):
            return SourceLine(shown_path(file), line, name)
    return None


def _frames(error: BaseException) -> Iterator[tuple[str, int, str]]:
    """Yield the frames that led to an error, outermost first, AutoGraph's code mapped back.

    AutoGraph's `ag_error_metadata` is private; checked on 2.9.3 and 2.21.0.
    """
    metadata = getattr(error, "ag_error_metadata", None)
    if metadata and metadata.translated_stack:
        for frame in reversed(metadata.translated_stack):
            yield frame.filename, frame.lineno, frame.function_name or "<lambda>"
        return
    for frame, line in traceback.walk_tb(error.__traceback__):
        yield frame.f_code.co_filename, line, frame.f_code.co_name


def _is_own(file: str) -> bool:
    return file.startswith(_PACKAGE)
