"""TensorFlow's own messages, kept off the terminal; nothing of it is imported here."""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import BinaryIO

_STDERR = 2
_CHATTER = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog\(\)"
    rb"|[IWE]\d{4} [\d:.]+ +\d+ [\w./-]+:\d+\]"  # absl
    rb"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWE] "  # TensorFlow's own logging
    rb"|To enable the following instructions:"
)


def silence_tensorflow() -> None:
    """Keep TensorFlow from talking while it is imported and used. Errors it raises are not lost.

    The user's own `TF_CPP_MIN_LOG_LEVEL` goes first.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    for name in ("tensorflow", "absl"):
        logging.getLogger(name).addFilter(_only_errors)
    if "tensorflow" not in sys.modules:
        sys.meta_path.insert(0, _QuietImport())


def take_autograph_warnings() -> list[str]:
    """Return what AutoGraph could not transform since this was last called, in its own words."""
    taken = list(dict.fromkeys(_autograph_warnings))
    _autograph_warnings.clear()
    return taken


_autograph_warnings: list[str] = []


def _only_errors(record: logging.LogRecord) -> bool:
    if record.levelno >= logging.ERROR:
        return True
    text = record.getMessage()
    if text.startswith("AutoGraph could not transform"):
        first = " ".join(text.partition("\nTo silence this warning")[0].split())
        _autograph_warnings.append(re.sub(r" at 0x[0-9a-fA-F]+", "", first))
    return False


class _QuietImport(MetaPathFinder):
    """Imports TensorFlow, whoever asks for it first, with its start-up lines taken out.

    Libraries in it write to standard error before any setting can reach them.
    """

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return TensorFlow's spec with a loader that is quiet."""
        if fullname != "tensorflow":
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def quietly(module: ModuleType) -> None:
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            with _without_chatter():
                execute(module)

        spec.loader.exec_module = quietly  # type: ignore[method-assign]
        return spec


@contextmanager
def _without_chatter() -> Iterator[None]:
    """Hold standard error back, and let through what is not chatter.

    A file holds it and not a pipe, which could fill up while nobody reads.
    """
    sys.stderr.flush()
    with tempfile.TemporaryFile() as held:
        saved = os.dup(_STDERR)
        os.dup2(held.fileno(), _STDERR)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(saved, _STDERR)
            os.close(saved)
            _let_through(held)


def _let_through(held: BinaryIO) -> None:
    held.seek(0)
    for line in held:
        if not _CHATTER.match(line):
            os.write(_STDERR, line)
