"""The user's statements: which variable a line assigns to, and which op makes that value."""

from __future__ import annotations

import ast
import bisect
import functools
import linecache
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graph2mermaid.graph import Node


@dataclass(frozen=True, slots=True)
class Statement:
    """One simple statement of a user's file."""

    file: str
    line: int
    """Of its first line."""
    function: str
    text: str
    targets: tuple[str, ...] = ()
    """What it assigns a computed value to: `('product',)`, `('a', 'b')` for an unpacking."""
    returns: bool = False
    calls: tuple[str, ...] = ()
    """The last word of every call in it, and the symbol of every operator."""


def statement_at(file: str, line: int, function: str = "") -> Statement | None:
    """Return the innermost simple statement that covers a line, or None where there is no source."""
    starts, statements = _statements(file)
    at = bisect.bisect_right(starts, line) - 1
    if at < 0:
        return None
    node, text = statements[at]
    if line > (node.end_lineno or node.lineno):
        return None
    return _describe(file, function, node.lineno, text)


@functools.lru_cache(maxsize=4096)
def _describe(file: str, function: str, line: int, text: str) -> Statement:
    starts, statements = _statements(file)
    node = statements[bisect.bisect_right(starts, line) - 1][0]
    # `f = tf.function(lambda x: x + 1.0)`: f is the function, and the sum is what it returns.
    # `part = whole.prune(...)` at module level: the ops are in part, which is none of them.
    expression = _in_lambda(function, node)
    targets = () if expression or function == "<module>" else _targets(node)
    return Statement(
        file,
        line,
        function,
        text,
        targets,
        expression or isinstance(node, ast.Return),
        tuple(_called_words(node)),
    )


def _in_lambda(function: str, node: ast.stmt) -> bool:
    """Tell whether a frame is a lambda's; one that AutoGraph has converted has no name."""
    return function == "<lambda>" or (
        not function and any(isinstance(part, ast.Lambda) for part in ast.walk(node))
    )


@functools.lru_cache(maxsize=256)
def _statements(file: str) -> tuple[list[int], list[tuple[ast.stmt, str]]]:
    """Return every simple statement of a file in the order of its lines, with its text."""
    linecache.checkcache(file)
    text = "".join(linecache.getlines(file))
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return [], []
    lines = text.splitlines()
    found: list[tuple[ast.stmt, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            # Of a compound statement only the header belongs to it: `if tf.reduce_sum(x) > 0:`.
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno
            end = max(end or node.lineno, node.lineno)
            found.append((node, "\n".join(lines[node.lineno - 1 : end])))
    found.sort(key=lambda pair: (pair[0].lineno, pair[0].col_offset))
    return [node.lineno for node, _ in found], found


def _targets(node: ast.stmt) -> tuple[str, ...]:
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        target, value = node.target, node.value
    elif isinstance(node, ast.AugAssign):
        return (ast.unparse(node.target),)
    else:
        return ()
    if not isinstance(value, ast.Call | ast.BinOp | ast.UnaryOp | ast.Compare | ast.Subscript):
        return ()
    if isinstance(target, ast.Tuple | ast.List):
        if any(isinstance(part, ast.Starred | ast.Tuple | ast.List) for part in target.elts):
            return ()
        return tuple(ast.unparse(part) for part in target.elts)
    return (ast.unparse(target),)


_SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.Invert: "~",
    ast.USub: "-",
    ast.Subscript: "[]",
}


def _called_words(node: ast.stmt) -> Iterable[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            yield ast.unparse(part.func).rpartition(".")[2]
        elif type(part) in _SYMBOLS:
            yield _SYMBOLS[type(part)]


def assigned_variables(
    ops: Sequence[tuple[Node, tuple[Statement, ...]]],
) -> dict[str, str]:
    """Tell which Python variable holds the result of which op.

    Args:
        ops: The ops of one function in trace order, each with the statements that lead to it,
            innermost first.

    Returns:
        For op names, the variable, or several joined by `, ` when the op's outputs are unpacked.
        Python runs the outermost call of a statement last, so of the ops that one execution of
        a statement makes, the last one with an output is the value. What cannot be told (a call
        of unknown length in an unrolled loop) is left out.
    """
    found: dict[str, str] = {}
    run: list[Node] = []
    current: Statement | None = None
    for node, statements in [*ops, (None, ())]:
        statement = _assigning(statements)
        if statement != current or node is None:
            if current is not None:
                found.update(_values_of(run, current))
            run, current = [], statement
        if node is not None:
            run.append(node)
    return found


def _assigning(statements: Iterable[Statement]) -> Statement | None:
    """Return the innermost statement that keeps the value; `return` hands it to the caller."""
    for statement in statements:
        if statement.targets:
            return statement
        if not statement.returns:
            return None
    return None


def _values_of(run: Sequence[Node], statement: Statement) -> dict[str, str]:
    made = [node for node in run if node.outputs and node.op != "Placeholder"]
    if not made:
        return {}
    last = made[-1]
    name = ", ".join(statement.targets)
    if len(statement.targets) > 1 and len(statement.targets) != len(last.outputs):
        return {}
    word = (last.api or last.op).rpartition(".")[2]
    in_one_run = statement.calls.count(word)
    alike = [node for node in made if (node.op, node.api) == (last.op, last.api)]
    if in_one_run and len(alike) % in_one_run == 0:
        return {node.name: name for node in alike[in_one_run - 1 :: in_one_run]}
    return {last.name: name}
