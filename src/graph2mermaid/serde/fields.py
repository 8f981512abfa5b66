"""Taking a JSON object apart, so that whatever is wrong with it is said together with its place."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import Final, TypeVar

_T = TypeVar("_T")
_E = TypeVar("_E", bound=Enum)

REQUIRED: Final = "\0required"
"""A default that no field can have."""

_DEEPEST = 50
"""How deep unknown values may be nested."""
_MOST = 2**63
"""TensorFlow's own limit for dimensions and elements; larger numbers are damage."""


class Damage(Exception):  # noqa: N818 - a finding on its way up, not an error that anyone sees
    """Something in a capture file that cannot be, and where: `captures[0].graphs.traced`."""

    def __init__(self, what: str, where: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where

    def inside(self, place: str) -> Damage:
        """Return the same finding, seen from one level further out."""
        dot = "." if self.where and not self.where.startswith("[") else ""
        return Damage(self.what, f"{place}{dot}{self.where}")

    def __str__(self) -> str:
        """Return place and finding."""
        return f"{self.where}: {self.what}" if self.where else self.what


class Fields:
    """The fields of one object, taken out one by one; those that are left are unknown."""

    __slots__ = ("_left",)

    def __init__(self, value: object) -> None:
        if not isinstance(value, dict):
            raise _not_a("an object", value)
        self._left: dict[str, object] = value

    def text(self, key: str, default: str = REQUIRED) -> str:
        """Take out a text that must be there, or else has a default."""
        if key not in self._left:
            if default is REQUIRED:
                raise Damage(f"{key!r} is missing")
            return default
        return text(self._left.pop(key), key)

    def text_or_none(self, key: str) -> str | None:
        """Take out a text that may be missing."""
        return text(self._left.pop(key), key) if key in self._left else None

    def number(self, key: str, default: int) -> int:
        """Take out a whole number that may be missing."""
        return number(self._left.pop(key), key) if key in self._left else default

    def number_or_null(self, key: str, default: int | None) -> int | None:
        """Take out a whole number or null that may be missing."""
        value = self._left.pop(key, default)
        return None if value is None else number(value, key)

    def choice(self, key: str, kind: type[_E], default: _E) -> _E:
        """Take out a word that stands for a member of an enumeration."""
        return choice(self._left.pop(key), kind, key) if key in self._left else default

    def maybe(self, key: str, read: Callable[[object], _T]) -> _T | None:
        """Take out a value that may be missing, and read it."""
        return inside(key, read, self._left.pop(key)) if key in self._left else None

    def each(
        self, key: str, read: Callable[[object], _T], *, required: bool = False
    ) -> tuple[_T, ...]:
        """Take out a list, and read each of its items."""
        if key not in self._left and required:
            raise Damage(f"{key!r} is missing")
        items = self._left.pop(key, [])
        if not isinstance(items, list):
            raise _not_a("a list", items, key)
        found = []
        for item in items:
            try:
                found.append(read(item))
            except Damage as damage:  # noqa: PERF203 - the place is worth it
                raise damage.inside(f"{key}[{len(found)}]") from None
        return tuple(found)

    def entries(self, key: str) -> dict[str, object]:
        """Take out an object that may be missing."""
        value = self._left.pop(key, {})
        if not isinstance(value, dict):
            raise _not_a("an object", value, key)
        return value

    def has(self, key: str) -> bool:
        """Tell whether a field is there and was not taken out."""
        return key in self._left

    def rest(self) -> dict[str, object]:
        """Return what was not taken out: the keys that this version does not know."""
        for key, value in self._left.items():
            _check_unknown(value, key, _DEEPEST)
        return self._left


def inside(place: str, read: Callable[[object], _T], value: object) -> _T:
    """Read a value, and say where it stands when it is damaged."""
    try:
        return read(value)
    except Damage as damage:
        raise damage.inside(place) from None


def text(value: object, where: str = "") -> str:
    """Check that a value is a text."""
    if not isinstance(value, str):
        raise _not_a("a text", value, where)
    return value


def number(value: object, where: str = "") -> int:
    """Check that a value is a whole number that is not negative, of a size that can be real."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise _not_a("a whole number", value, where)
    if not 0 <= value < _MOST:
        raise Damage("the number is out of range", where)
    return value


def choice(value: object, kind: type[_E], where: str = "") -> _E:
    """Check that a value is one of an enumeration's words."""
    try:
        return kind(value)
    except ValueError:
        words = ", ".join(str(member.value) for member in kind)
        raise Damage(f"{shown(value)} is not one of {words}", where) from None


def shown(value: object) -> str:
    """Return a value as a message can quote it: short, and on one line."""
    if isinstance(value, str | int | float) or value is None:
        words = repr(value)
        return words if len(words) <= 40 else f"{words[:39]}..."
    return "an object" if isinstance(value, dict) else "a list"


def _not_a(wanted: str, value: object, where: str = "") -> Damage:
    return Damage(f"{wanted} is needed, not {shown(value)}", where)


def _check_unknown(value: object, where: str, levels: int) -> None:
    """Check that a value can be written again as it was read."""
    if not levels:
        raise Damage("nested too deeply", where)
    if isinstance(value, float) and not math.isfinite(value):
        raise Damage("the number is out of range", where)
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _check_unknown(item, where, levels - 1)
