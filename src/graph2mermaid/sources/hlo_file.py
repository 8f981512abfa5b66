"""Files that hold HLO: what `--xla_dump_to` writes, on whichever machine and device."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from graph2mermaid.capture import Capture
from graph2mermaid.errors import TargetError
from graph2mermaid.sources.buffers import memory_plan
from graph2mermaid.sources.hlo_capture import with_hlo, with_module
from graph2mermaid.sources.hlo_text import is_hlo_text, parse_hlo
from graph2mermaid.sources.xla import hlo_messages

_OPCODE = re.compile(r"[a-z][a-z0-9-]*")


def capture_of_hlo_file(path: Path, target: str, name: str) -> Capture:
    """Return the capture of a file: its content says whether it is a proto or text.

    Args:
        path: An `HloProto`, `HloModuleProto` or `HloSnapshot`, or HLO as it is printed.
        target: As the user typed it.
        name: What it is called in a report.

    Raises:
        TargetError: The file cannot be read, or holds no HLO.
    """
    data = _read(path)
    found = Capture(target, name, {})
    text = data.decode("utf-8", errors="replace")
    if is_hlo_text(text[:4096]):
        return with_module(found, parse_hlo(text, origin=str(path)))
    for hlo in _protos(data):
        plan = memory_plan(hlo)
        return replace(with_hlo(found, hlo.hlo_module), memory=plan)
    raise TargetError(
        f"{path} is damaged or no HLO: it is no HloProto, HloModuleProto or HloSnapshot, and no text "
        "that begins with HloModule"
    )


def is_hlo_proto(path: Path) -> bool:
    """Tell whether a file holds HLO as a proto."""
    try:
        return next(_protos(_read(path)), None) is not None
    except TargetError:
        return False


def _read(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TargetError(f"{path}: {error.strerror or error}") from error
    if not data.strip():
        raise TargetError(f"{path} is empty")
    return data


def _protos(data: bytes) -> Iterator[Any]:
    """Yield the `HloProto` that some bytes are; bytes of one message often parse as another."""
    messages = hlo_messages()
    hlo = _parsed(messages.HloProto(), data)
    if hlo is not None and _is_module(hlo.hlo_module):
        yield hlo
        return
    module = _parsed(messages.HloModuleProto(), data)
    if module is not None and _is_module(module):
        yield messages.HloProto(hlo_module=module)
        return
    snapshot = _parsed(messages.HloSnapshot(), data)
    if snapshot is not None and _is_module(snapshot.hlo.hlo_module):
        yield snapshot.hlo


def _parsed(proto: Any, data: bytes) -> Any:
    from google.protobuf.message import DecodeError

    try:
        with warnings.catch_warnings():  # old protobuf warns of bytes that it leaves over
            warnings.simplefilter("ignore")
            proto.ParseFromString(data)
    except DecodeError:
        return None
    return proto


def _is_module(module: Any) -> bool:
    opcodes = {one.opcode for part in module.computations for one in part.instructions}
    return bool(opcodes) and all(map(_OPCODE.fullmatch, opcodes))
