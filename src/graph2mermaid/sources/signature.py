"""What a user types after `--input`: `batch['image']=f32[?,64]` -> a name, a path and a spec."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from graph2mermaid.errors import SignatureError
from graph2mermaid.graph import TensorSpec

Path = tuple[str | int, ...]
"""The way into a structure: `batch['alpha'][0]` has the path `("alpha", 0)`."""

_SHORT: Mapping[str, str] = MappingProxyType(
    {
        "bf16": "bfloat16",
        "half": "float16",
        "double": "float64",
        "str": "string",
        **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
        **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
        **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
        **{f"c{bits}": f"complex{bits}" for bits in (64, 128)},
    }
)
_DTYPES = (
    *(f"float{bits}" for bits in (32, 64, 16)),
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (32, 64, 16, 8)),
    *("bool", "string", "bfloat16", "complex64", "complex128"),
    *("int4", "uint4", "float8_e4m3fn", "float8_e5m2"),
)
_SPEC = re.compile(r"(?P<dtype>\w+)(?:\[(?P<shape>.*)\])?", re.DOTALL)
_STEP = re.compile(
    r"""\.(?P<attribute>[^\W\d]\w*)
      | \[\s*(?:(?P<index>\d+)
             | (?P<quote>['"])(?P<quoted>.*?)(?P=quote)
             | (?P<bare>[^\]'"]+?)          # a shell has taken the quotes
             )\s*\]
    """,
    re.VERBOSE,
)
EXAMPLE = TensorSpec("float32", (None, 64))
"""What messages show for a tensor that nothing is known of."""

_STEP_GROUPS = ("attribute", "index", "quoted", "bare")


@dataclass(frozen=True, slots=True)
class Given:
    """One `--input`: the tensor that a parameter, or a place inside it, is traced with."""

    parameter: str
    path: Path
    spec: TensorSpec

    @property
    def name(self) -> str:
        """The name as Python writes it: `batch['image']`."""
        return path_text(self.parameter, self.path)


def split_input(text: str) -> tuple[str, str]:
    """Split `NAME=SPEC` as typed, and check both sides.

    Raises:
        SignatureError: Either side is not of the form described for `--input`.
    """
    name, equals, spec = text.rpartition("=")
    if not equals:
        raise SignatureError(f"--input {quoted(text)}: there is no '='; type {_with_equals(text)}")
    parse_input(name, spec)
    return name.strip(), spec.strip()


def parse_input(name: str, spec: str) -> Given:
    """Read both sides of an `--input`.

    Raises:
        SignatureError: The name is not a parameter with an optional path, or the spec has
            another form than `float32[8,?]`, `float32[]`, `float32` or `float32[...]`.
    """
    parsed = _parsed_name(name)
    if parsed is None:
        raise SignatureError(
            f"--input {quoted(f'{name}={spec}')}: {name!r} is not a parameter's name; type a name,"
            f" with a path where the parameter is a structure:"
            f" {input_option(path_text('batch', ('image',)), EXAMPLE)}"
        )
    return Given(*parsed, parse_spec(spec, name=path_text(*parsed)))


def parse_spec(text: str, *, name: str = "x") -> TensorSpec:
    """Read `float32[8,?]`: short and long dtypes, `?` or `None` for unknown dimensions.

    `float32` alone and `float32[...]` have an unknown rank, `float32[]` is a scalar.

    Args:
        text: What was typed.
        name: The parameter, for the message.

    Raises:
        SignatureError: It has another form; the message shows the line to type.
    """
    found = _SPEC.fullmatch(text.strip())
    if not found:
        raise _wrong_spec(name, text, f"{text!r} is not of the form DTYPE[DIMENSIONS]")
    dtype = _SHORT.get(found["dtype"].lower(), found["dtype"].lower())
    if dtype not in _DTYPES:
        raise _wrong_spec(name, text, f"there is no dtype {found['dtype']!r}")
    shape = (found["shape"] or "").strip()
    if found["shape"] is None or shape in ("...", "…"):
        return TensorSpec(dtype, None)
    parts = [part.strip() for part in shape.split(",")] if shape else []
    for part in parts:
        if part not in ("?", "None") and not (part.isascii() and part.isdigit()):
            words = f"the dimension {part!r} is neither a number nor '?'"
            raise _wrong_spec(name, text, words if part else "a dimension is empty")
    return TensorSpec(dtype, tuple(None if p in ("?", "None") else int(p) for p in parts))


def parse_inputs(inputs: Iterable[tuple[str, str]]) -> dict[str, list[Given]]:
    """Read all `--input` options of a target, by parameter, in the order they were typed.

    Raises:
        SignatureError: One of them has a wrong form, or two are for the same place.
    """
    by_parameter: dict[str, list[Given]] = {}
    for name, spec in inputs:
        given = parse_input(name, spec)
        others = by_parameter.setdefault(given.parameter, [])
        for other in others:
            shared = min(len(given.path), len(other.path))
            if given.path[:shared] == other.path[:shared]:
                longer, shorter = sorted((given.name, other.name), key=len, reverse=True)
                what = "is given twice" if longer == shorter else f"is part of {shorter}: give one"
                raise SignatureError(f"--input {quoted(longer)}: {longer} {what}")
        others.append(given)
    return by_parameter


def path_text(parameter: str, path: Path = ()) -> str:
    """Return `batch['alpha'][0]`, as Python writes it."""
    return parameter + "".join(f"[{step!r}]" for step in path)


def input_option(name: str, spec: TensorSpec | str) -> str:
    """Return the option to type, quoted for the shell: `--input 'x=float32[?,64]'`."""
    return f"--input {quoted(f'{name}={spec}')}"


def quoted(text: str) -> str:
    """Quote one word for the shell, readably: in double quotes where it holds single ones."""
    if "'" in text and not re.search(r'["$`\\!]', text):
        return f'"{text}"'
    return shlex.quote(text)


def _parsed_name(text: str) -> tuple[str, Path] | None:
    parameter = re.match(r"\s*([^\W\d]\w*)", text)
    if not parameter:
        return None
    path: list[str | int] = []
    position, end = parameter.end(), len(text.rstrip())
    while position < end:
        step = _STEP.match(text, position)
        if not step:
            return None
        key = next(step[group] for group in _STEP_GROUPS if step[group] is not None)
        path.append(int(key) if step["index"] else key)
        position = step.end()
    return parameter[1], tuple(path)


def _wrong_spec(name: str, text: str, what: str) -> SignatureError:
    return SignatureError(
        f"--input {quoted(f'{name}={text}')}: {what}; type {input_option(name, _meant(text))}"
    )


def _with_equals(text: str) -> str:
    """Return the option that was meant by `x:float32[8]`, `x`, or the spec alone."""
    found = re.match(r"\s*([^\W\d]\w*)[\s:]*(.*)", text, re.DOTALL)
    if not found or _SHORT.get(found[1], found[1]) in _DTYPES:
        return input_option("x", _meant(text))
    return input_option(found[1], _meant(found[2]))


def _meant(text: str) -> TensorSpec:
    """Guess what was meant, for the line to type: the nearest dtype, and any dimensions."""
    text = text.strip().removeprefix("tf.").replace("-1", "?")
    known = (*_DTYPES, *_SHORT)
    word = re.match(r"([A-Za-z]\w*)", text)
    typed = word[1].lower() if word else "float32"
    near = [dtype for dtype in known if dtype.startswith(typed)]
    near += sorted(difflib.get_close_matches(typed, known), key=known.index)
    dtype = _SHORT.get(near[0], near[0]) if near else "float32"
    rest = text[word.end() :] if word else text
    parts = re.findall(r"\d+|\?|None", rest)
    if not parts and rest.strip() not in ("[]", "()"):
        return TensorSpec(dtype, EXAMPLE.shape)
    return TensorSpec(dtype, tuple(int(part) if part.isdigit() else None for part in parts))
