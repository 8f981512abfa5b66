"""The capture file: captures as JSON that is exact, stable and reviewable line by line.

    {"captures": [...], "schema": 1}

Each object has the fields of the class of its name, defaults left out and keys sorted; a node, an
edge and a binding stand on a line each. Short forms: a tensor is `float32[8,?]`, an output of an op
`name:port`, a source line `[file, line, function]`, a call `[role, function]`. An edge without
`tensor` carries what its source says of that output. Keys that this version does not know are kept
where the class has `extra`, and at the top of the file. Reading runs no code and checks everything.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from graph2mermaid.capture import Capture
from graph2mermaid.errors import CaptureError
from graph2mermaid.serde.read import SCHEMA, Captures, loads
from graph2mermaid.serde.write import dumps

__all__ = ["SCHEMA", "Captures", "dumps", "load", "loads", "save"]


def save(captures: Iterable[Capture], path: str | os.PathLike[str]) -> None:
    """Write a capture file, whole or not at all.

    Raises:
        CaptureError: Something in a capture has no form in JSON.
        OSError: The file cannot be written; an existing one is then left as it was.
    """
    text = dumps(captures)
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        target.write_text(text, encoding="utf-8", newline="\n")  # a device or a pipe
        return
    draft = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        with draft.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            draft.chmod(target.stat().st_mode & 0o777)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def load(path: str | os.PathLike[str]) -> Captures:
    """Read a capture file.

    Raises:
        CaptureError: It cannot be read, is no capture file, is damaged, or is of a newer schema.
    """
    origin = os.fspath(path)
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CaptureError(f"{origin}: not a capture file: it is not UTF-8 text") from error
    except OSError as error:
        raise CaptureError(f"{origin}: {error.strerror or error}") from error
    return loads(text, origin=origin)
