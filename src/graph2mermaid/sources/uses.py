"""How a function takes its arguments apart, read from its source: `batch['image']`, `a, b = pair`."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from graph2mermaid.sources.signature import Path

_LOOKUPS = ("get", "pop")


def parts_used(function: Any, parameter: str, *, numbered: bool = False) -> list[Path]:
    """Return the parts of a parameter that a function reads, in the order it is written.

    Only what no tensor can have counts: a part that is named by a string, or what the whole is
    unpacked into. `x[0]` alone may be the first row of a tensor.

    Args:
        function: A Python function whose source can be read; of any other nothing is known.
        parameter: One of its parameters.
        numbered: Whether the whole is a tuple for certain, as `*rest` is.
    """
    tree = _source(function)
    if tree is None:
        return []
    found = dict.fromkeys(path for path in _paths(tree, parameter) if path)
    by_name = any(isinstance(step, str) for path in found for step in path)
    if not (by_name or numbered or _unpacked(tree, parameter)):
        return []
    # `batch['x']` and `batch['x']['y']`: the one is only the way to the other.
    return [
        path
        for path in found
        if not any(len(other) > len(path) and other[: len(path)] == path for other in found)
    ]


def _source(function: Any) -> ast.AST | None:
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    if not inspect.isroutine(function):
        function = type(function).__call__
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None


def _paths(tree: ast.AST, parameter: str) -> Iterator[Path]:
    for node in sorted(ast.walk(tree), key=_position):
        path = _path(node, parameter)
        if path is not None:
            yield path
        for count, value in _unpackings(node):
            whole = _path(value, parameter)
            if whole is not None:
                yield from ((*whole, number) for number in range(count))


def _position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "end_col_offset", 0)


def _unpacked(tree: ast.AST, parameter: str) -> bool:
    return any(
        _path(value, parameter) is not None
        for node in ast.walk(tree)
        for _, value in _unpackings(node)
    )


def _unpackings(node: ast.AST) -> Iterator[tuple[int, ast.expr]]:
    """Yield how many names a value is unpacked into, and the value."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple | ast.List) and not any(
                isinstance(part, ast.Starred) for part in target.elts
            ):
                yield len(target.elts), node.value


def _path(node: ast.AST, parameter: str) -> Path | None:
    """Return the way from a parameter to a part of it, `()` for the parameter itself."""
    if isinstance(node, ast.Name):
        return () if node.id == parameter else None
    if isinstance(node, ast.Subscript):
        return _step(node.value, node.slice, parameter)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _LOOKUPS
        and node.args
    ):
        return _step(node.func.value, node.args[0], parameter)
    return None


def _step(value: ast.AST, key: ast.AST, parameter: str) -> Path | None:
    if not isinstance(key, ast.Constant) or type(key.value) not in (str, int):
        return None
    before = _path(value, parameter)
    return None if before is None else (*before, key.value)  # type: ignore[arg-type]
