"""Standard output carries the result alone: what user code prints goes to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

_STDOUT = 1
_STDERR = 2


@contextmanager
def stdout_is_stderr() -> Iterator[None]:
    """Send everything that is printed to standard error, C++ code and child processes included."""
    sys.stdout.flush()
    saved: int | None = None
    with suppress(OSError):  # one of them may be closed
        saved = os.dup(_STDOUT)
        os.dup2(_STDERR, _STDOUT)
    before, sys.stdout = sys.stdout, sys.stderr
    try:
        yield
    finally:
        # User code may have wrapped it, and a wrapper closes what it wraps when it goes away.
        _kept.append(sys.stdout)
        sys.stdout = before
        sys.stderr.flush()
        if saved is not None:
            os.dup2(saved, _STDOUT)
            os.close(saved)


_kept: list[TextIO] = []


def close_stdout() -> None:
    """Send what is printed from now on to standard error: the result is written."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    sys.stdout = sys.stderr
    with suppress(OSError):
        os.dup2(_STDERR, _STDOUT)


def write_stdout(data: bytes) -> None:
    """Write the result to standard output. A reader that stops early, as `head` does, is fine.

    Raises:
        OSError: It cannot be written.
    """
    stream = sys.stdout.buffer
    try:
        stream.write(data)
        stream.flush()
    except BrokenPipeError:
        # Python flushes once more when it exits; let that go nowhere.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
