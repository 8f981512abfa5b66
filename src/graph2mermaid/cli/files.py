"""Output files, written whole or not at all."""

from __future__ import annotations

import os
import secrets
import signal
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from graph2mermaid.errors import Graph2MermaidError


class OutputError(Graph2MermaidError):
    """A result cannot be written."""


def shown(path: Path) -> str:
    """Return a path for a message: relative to the working directory when below it."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def encode(text: str) -> bytes:
    """Return text as UTF-8; what has no form in it (a damaged file name) is written as an escape."""
    return text.encode("utf-8", errors="backslashreplace")


@contextmanager
def ended_as_by_an_error() -> Iterator[None]:
    """Let a signal that ends the process do so as an error would, so that drafts are taken away.

    A handler of the user's code stays as it is.
    """
    before: dict[int, Any] = {}
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            with suppress(ValueError):  # only the main thread may
                before[number] = signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise SystemExit(128 + number)


@contextmanager
def written(files: Mapping[Path, str]) -> Iterator[None]:
    """Write files beside where they belong, and put them there when the block ends well.

    An existing file keeps its permissions; a link is followed. On any error, Ctrl-C included,
    all files are as they were.

    Raises:
        OutputError: One of them cannot be written.
    """
    drafts: dict[Path, Path] = {}
    try:
        for path, text in files.items():
            with _explained(path):
                target = _checked(path)
                if target.exists() and not target.is_file():
                    target.write_bytes(encode(text))  # a device or a pipe: nothing to replace
                    continue
                drafts[target] = _draft_path(target)
                _write_draft(target, drafts[target], encode(text))
        yield
        for target in list(drafts):
            with _explained(target):
                os.replace(drafts[target], target)  # noqa: PTH105  # as a pair with the draft
            del drafts[target]
    finally:
        for draft in drafts.values():
            with suppress(OSError):
                draft.unlink(missing_ok=True)


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Make a folder, and take it away again if the block fails.

    Raises:
        OutputError: It cannot be made.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot make the folder {shown(folder)}: {error.strerror or error}"
        ) from error
    try:
        yield
    except BaseException:
        for path in missing:
            with suppress(OSError):
                path.rmdir()
        raise


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"cannot write {shown(path)}: {error.strerror or error}") from error


def _checked(path: Path) -> Path:
    target = path.resolve()
    if target.is_dir():
        raise OutputError(f"cannot write {shown(path)}: it is a folder")
    if not target.parent.is_dir():
        raise OutputError(f"cannot write {shown(path)}: there is no folder {shown(path.parent)}")
    if target.exists() and not os.access(target, os.W_OK):
        raise OutputError(f"cannot write {shown(path)}: it is write-protected")
    return target


def _draft_path(target: Path) -> Path:
    return target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")


def _write_draft(target: Path, draft: Path, data: bytes) -> None:
    with draft.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if target.exists():
        draft.chmod(stat.S_IMODE(target.stat().st_mode))
