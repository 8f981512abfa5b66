"""Names with a path, `net.layers[0].forward`: taken apart and followed from a module on."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path: an attribute, or an item with a literal key."""

    key: str | int
    is_item: bool = False

    def __str__(self) -> str:
        """Return the step as Python writes it after a name."""
        return f"[{self.key!r}]" if self.is_item else f".{self.key}"


class NotAPathError(ValueError):
    """The text is something else than a name with attributes and literal items."""


class NoSuchStepError(LookupError):
    """An object on the way has no such attribute or item."""

    def __init__(self, before: Sequence[Step], step: Step) -> None:
        super().__init__(f"no {path_text([step])} in {path_text(before)}")
        self.before = tuple(before)
        self.step = step


def parse_path(text: str) -> tuple[Step, ...]:
    """Take `net.layers[0].forward` apart.

    Raises:
        NotAPathError: It is another kind of expression, or none.
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise NotAPathError(text) from error
    steps: list[Step] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            steps.append(Step(node.attr))
        elif isinstance(node, ast.Subscript):
            steps.append(Step(_literal(node.slice), is_item=True))
        else:
            raise NotAPathError(text)
        node = node.value
    return (Step(node.id), *reversed(steps))


def path_text(steps: Sequence[Step]) -> str:
    """Return a path as Python writes it."""
    return "".join(map(str, steps)).removeprefix(".")


def follow(root: object, steps: Sequence[Step]) -> object:
    """Return what a path leads to.

    Raises:
        NoSuchStepError: One of the steps leads nowhere. What a property raises is passed on.
    """
    found = root
    for index, step in enumerate(steps):
        found = _take(found, step, steps[:index])
    return found


def _take(obj: Any, step: Step, before: Sequence[Step]) -> object:
    try:
        return obj[step.key] if step.is_item else getattr(obj, str(step.key))
    except (AttributeError, LookupError, TypeError) as error:
        fails_inside = isinstance(inspect.getattr_static(obj, str(step.key), None), property)
        if fails_inside and not step.is_item:
            raise
        raise NoSuchStepError(before, step) from error


def _literal(node: ast.expr) -> str | int:
    try:
        key = ast.literal_eval(node)
    except ValueError:
        key = None
    if not isinstance(key, (str, int)):
        raise NotAPathError(ast.unparse(node))
    return key
