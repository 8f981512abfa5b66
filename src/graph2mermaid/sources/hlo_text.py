"""HLO as it is printed, to plain data.

What `--xla_dump_to` writes as text, and what `experimental_get_compiler_ir` returns:

    HloModule name, is_scheduled=true, ...

    %computation (x: f32[2]) -> f32[2] {
      %x = f32[2]{0} parameter(0)
      ROOT %twice = f32[2]{0} add(%x, %x), metadata={op_name="mul"}
    }

    ENTRY %main ... { ... }

TensorFlow has no parser of it that can be called from Python. This one takes what is printed by
the versions from 2.9 to 2.21, with or without `%` and operand types, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from graph2mermaid.errors import TargetError
from graph2mermaid.hlo import Computation, Instruction, Module, Shape
from graph2mermaid.sources.hlo_proto import KEPT_ATTRS, TRIP_COUNT
from graph2mermaid.sources.hlo_values import MOST_VALUES, value_words

_HEADER = re.compile(r"HloModule\s+([^\s,]+)(.*)")
_NAME = r"%?[\w.$:@<>/-]+"
_COMPUTATION = re.compile(rf"(ENTRY\s+)?({_NAME})\s*(?:\(.*\)\s*->\s*.*)?\{{\s*$")
_INSTRUCTION = re.compile(rf"(ROOT\s+)?({_NAME})\s*=\s*(.*)$", re.DOTALL)
_OPCODE = re.compile(r"\s*([a-z][\w-]*)\(")
_ARRAY = re.compile(r"([a-z]\w*)\[([^\]]*)\](?:\{([^}]*)\})?")
_COMMENT = re.compile(r"/\*.*?\*/")
_METADATA = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_OPENING, _CLOSING = "([{", ")]}"


def is_hlo_text(text: str) -> bool:
    """Tell whether a text begins as printed HLO does."""
    return _HEADER.match(text.lstrip()) is not None


def parse_hlo(text: str, *, origin: str) -> Module:
    """Return the module that is printed in a text.

    Args:
        text: All of it.
        origin: Where it is from, for messages.

    Raises:
        TargetError: It is no HLO, or a part of it cannot be read; the message names the line.
    """
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if line.strip()), 0)
    header = _HEADER.match(lines[start].strip()) if lines else None
    if header is None:
        raise TargetError(f"{origin} is no HLO text: it does not begin with HloModule")
    found: dict[str, Computation] = {}
    entry = ""
    reader = _Lines(origin, lines, start + 1)
    for is_entry, computation in reader.computations():
        found[computation.name] = computation
        entry = computation.name if is_entry else entry
    if not entry:
        raise TargetError(f"{origin} is cut off: there is no ENTRY computation in it")
    module = Module(header[1], entry, found, scheduled="is_scheduled=true" in header[2])
    for one in module.instructions():
        for _, key in one.called:
            if key not in found:
                raise TargetError(f"{origin} is cut off: {one.name} calls {key}, which is missing")
    return module


@dataclass
class _Lines:
    origin: str
    lines: Sequence[str]
    at: int

    def computations(self) -> Iterator[tuple[bool, Computation]]:
        """Yield each computation, and whether it is the entry."""
        while self.at < len(self.lines):
            line = self.lines[self.at].strip()
            self.at += 1
            if not line or line.startswith(("//", "FileNames", "FunctionNames")):
                continue
            opened = _COMPUTATION.match(_COMMENT.sub("", line))
            if opened:
                yield bool(opened[1]), self._computation(_plain(opened[2]))
            elif line.endswith("{"):
                raise self._error("no computation begins like this")

    def _computation(self, name: str) -> Computation:
        made: dict[str, Instruction] = {}
        root = ""
        for line in self._body():
            is_root, one = self._instruction(line, made)
            if one.name in made:
                raise self._error(f"there are two instructions called {one.name}")
            made[one.name] = one
            root = one.name if is_root else root
        if not made:
            raise self._error(f"the computation {name} is empty")
        return Computation(name, tuple(made.values()), root or next(reversed(made)))

    def _body(self) -> Iterator[str]:
        """Yield the instructions, each with the lines that a long one is printed on."""
        waiting = ""
        while self.at < len(self.lines):
            line = self.lines[self.at].rstrip()
            self.at += 1
            if not waiting and line.strip().startswith("}"):
                return
            waiting = f"{waiting}\n{line}" if waiting else line.strip()
            if waiting and _depth(waiting) <= 0:
                yield waiting
                waiting = ""
        raise self._error("the text is cut off inside a computation")

    def _instruction(self, line: str, known: Mapping[str, Instruction]) -> tuple[bool, Instruction]:
        line = _COMMENT.sub("", line)
        parts = _INSTRUCTION.match(line)
        if parts is None:
            raise self._error(f"this is no instruction: {line[:60]}")
        name, rest = _plain(parts[2]), parts[3]
        shape, end = self._shape(rest, 0)
        opcode = _OPCODE.match(rest, end)
        if opcode is None:
            raise self._error(f"{name} has no opcode")
        close = _closing(rest, opcode.end() - 1)
        inside, behind = rest[opcode.end() : close], rest[close + 1 :]
        attrs = dict(_pairs(behind))
        metadata = dict(_METADATA.findall(attrs.get("metadata", "")))
        operands = () if opcode[1] in ("parameter", "constant") else tuple(_operands(inside))
        for operand in operands:
            if operand not in known:
                raise self._error(f"{name} reads {operand}, which does not stand before it")
        trips = TRIP_COUNT.search(attrs.get("backend_config", ""))
        return bool(parts[1]), Instruction(
            name,
            opcode[1],
            shape,
            operands,
            tuple(_called(attrs)),
            dict(_kept(opcode[1], attrs)),
            _unquoted(metadata.get("op_name", "")),
            _unquoted(metadata.get("op_type", "")),
            int(inside) if opcode[1] == "parameter" and inside.strip().isdigit() else None,
            _value(shape, inside) if opcode[1] == "constant" else None,
            int(trips[1]) if trips and opcode[1] == "while" else None,
        )

    def _shape(self, text: str, at: int) -> tuple[Shape, int]:
        while at < len(text) and text[at] in " ,":
            at += 1
        if text.startswith("(", at):
            elements: list[Shape] = []
            at += 1
            while not text.startswith(")", at):
                element, at = self._shape(text, at)
                elements.append(element)
                while text.startswith((" ", ","), at):
                    at += 1
                if at >= len(text):
                    raise self._error("a tuple's shape is cut off")
            return Shape(elements=tuple(elements)), at + 1
        found = _ARRAY.match(text, at)
        if found is None:
            raise self._error(f"this is no shape: {text[at : at + 40]}")
        dims = [word.strip() for word in found[2].split(",") if word.strip()]
        dynamic = tuple(n for n, word in enumerate(dims) if word.startswith("<="))
        layout = (found[3] or "").partition(":")[0]
        try:
            sizes = tuple(int(word.removeprefix("<=")) for word in dims)
            minor = tuple(int(word) for word in layout.split(",") if word)
        except ValueError:
            raise self._error(f"this is no shape: {found[0]}") from None
        return Shape(found[1], sizes, minor, dynamic), found.end()

    def _error(self, words: str) -> TargetError:
        return TargetError(f"{self.origin}:{self.at}: this HLO cannot be read: {words}")


def _plain(name: str) -> str:
    return name.removeprefix("%")


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _scan(text: str) -> Iterator[tuple[int, str]]:
    """Yield positions and characters outside quotes."""
    quoted = escaped = False
    for at, char in enumerate(text):
        if escaped:
            escaped = False
        elif quoted and char == "\\":
            escaped = True
        elif char == '"':
            quoted = not quoted
        elif not quoted:
            yield at, char


def _depth(text: str) -> int:
    return sum((char in _OPENING) - (char in _CLOSING) for _, char in _scan(text))


def _closing(text: str, start: int) -> int:
    """Return where the bracket at a position is closed."""
    depth = 0
    for at, char in _scan(text[start:]):
        depth += (char in _OPENING) - (char in _CLOSING)
        if not depth:
            return start + at
    return len(text)


def _split(text: str) -> Iterator[str]:
    """Split at the commas outside brackets and quotes."""
    depth, start = 0, 0
    for at, char in _scan(text):
        depth += (char in _OPENING) - (char in _CLOSING)
        if char == "," and not depth:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        yield text[start:].strip()


def _operands(text: str) -> Iterator[str]:
    """Yield the operands' names; older versions print their shapes before them."""
    for word in _split(text):
        yield _plain(word.split()[-1])


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the attributes behind the operands."""
    for part in _split(text.lstrip(" ,")):
        key, equals, value = part.partition("=")
        if equals:
            yield key.strip(), value.strip()


def _called(attrs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key in _ROLES:
        if key not in attrs:
            continue
        names = [_plain(word) for word in _split(attrs[key].strip("{}"))]
        listed = key == "branch_computations"
        role = "to_apply" if key == "comparator" else key
        yield from ((f"{role}[{at}]" if listed else role, name) for at, name in enumerate(names))


_ROLES = (
    "calls",
    "to_apply",
    "comparator",
    "body",
    "condition",
    "select",
    "scatter",
    "true_computation",
    "false_computation",
    "branch_computations",
    "called_computations",
)
"""The attributes that name computations, in the order of a proto."""


def _kept(opcode: str, attrs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key in KEPT_ATTRS:
        if key in attrs:
            value = attrs[key]
            # A bitcast of some versions prints dimensions that are no part of what it does.
            if key == "dimensions" and opcode in ("iota", "bitcast"):
                continue
            yield key, value.strip('"') if key == "custom_call_target" else value


def _value(shape: Shape, inside: str) -> str | None:
    if shape.elements is not None or not 0 < shape.size <= MOST_VALUES or "..." in inside:
        return None
    words = re.findall(r"[^\s{},]+", inside)
    return value_words(shape, words)
