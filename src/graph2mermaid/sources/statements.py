"""The user's statements: which variable a line assigns to, and which op makes that value."""

from __future__ import annotations

import ast
import bisect
import functools
import linecache
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from graph2mermaid.graph import Arrow, Node, NodeKind


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
    """It hands a computed value to the caller."""
    calls: tuple[str, ...] = ()
    """The last word of every call in it, and the symbol of every operator."""
    outermost: str = ""
    """The one of these that is carried out last, so that its result is the value."""

    def as_a_lambda(self) -> Statement:
        """Return what a frame says of it that runs a lambda in it, not the statement itself."""
        return replace(self, targets=(), returns=True)


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
    at = bisect.bisect_right(starts, line) - 1
    node = statements[at][0]
    value = _value(node)
    computed = isinstance(value, _COMPUTED)
    targets = _targets(node) if computed else ()
    returns = computed and isinstance(node, ast.Return)
    if at and _share_a_line(statements[at - 1][0], node):
        targets, returns = (), False  # `a = f(x); b = g(x)`: a line does not tell which
    if _in_lambda(function, node):
        # `f = tf.function(lambda x: x + 1.0)`: f is the function, and the sum is what it returns.
        lambdas = [part.body for part in ast.walk(node) if isinstance(part, ast.Lambda)]
        targets, returns = (), all(isinstance(body, _COMPUTED) for body in lambdas)
    elif function == "<module>":
        # `part = whole.prune(...)`: the ops are in part, which is none of them.
        targets = ()
    calls = tuple(_called_words(value if targets and value is not None else node))
    if isinstance(node, ast.AugAssign):
        calls = (_SYMBOLS.get(type(node.op), "?"), *calls)
    return Statement(file, line, function, text, targets, returns, calls, _outermost(node))


_COMPUTED = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript)


def _value(node: ast.stmt) -> ast.expr | None:
    if isinstance(node, ast.AugAssign):
        return ast.BinOp(node.target, node.op, node.value)
    return node.value if isinstance(node, ast.Assign | ast.AnnAssign | ast.Return) else None


def _share_a_line(one: ast.stmt, other: ast.stmt) -> bool:
    named = isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    return one.lineno == other.lineno and not named


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
    """Return what a value is assigned to: one name, or one for each part of an unpacked value."""
    if isinstance(node, ast.Assign):
        target = node.targets[0]  # of `a = b = f(x)` the first
        if len(node.targets) > 1 and any(isinstance(t, ast.Tuple | ast.List) for t in node.targets):
            return ()
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        target = node.target
    else:
        return ()
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    if any(isinstance(part, ast.Starred | ast.Tuple | ast.List) for part in parts):
        return ()
    names = tuple(map(ast.unparse, parts))
    return () if any(", " in name for name in names) else names


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


def _called_words(node: ast.AST) -> Iterable[str]:
    for part in ast.walk(node):
        if word := _word(part):
            yield word


def _word(part: ast.AST) -> str:
    """Return the last word of a call, or the symbol of an operator."""
    if isinstance(part, ast.Call):
        return ast.unparse(part.func).rpartition(".")[2]
    return _SYMBOLS.get(type(part), "")


def _outermost(node: ast.stmt) -> str:
    value = _value(node)
    if isinstance(value, ast.BinOp | ast.UnaryOp):
        return _word(value.op)
    if isinstance(value, ast.Compare):
        return _word(value.ops[0]) if len(value.ops) == 1 else ""
    return _word(value) if value is not None else ""


def assigned_variables(
    ops: Sequence[tuple[Node, tuple[Statement, ...]]], arrows: Iterable[Arrow] = ()
) -> dict[str, str]:
    """Tell which Python variable holds the result of which op.

    Args:
        ops: The ops of one function in trace order, each with the statements that lead to it,
            innermost first.
        arrows: The edges among them.

    Returns:
        For op names, the variable, or several joined by `, ` when the op's outputs are unpacked.
        Python runs the outermost call of a statement last, so of the ops that one execution of
        a statement makes, the last one with an output is the value. What cannot be told (the
        argument of a call that itself makes no op here, one of several results) is left out.
    """
    readers: dict[str, list[str]] = {}
    for arrow in arrows:
        if arrow.edge.source_port is not None:
            readers.setdefault(arrow.source, []).append(arrow.target)
    found: dict[str, str] = {}
    run: list[_Made] = []
    current: Statement | None = None
    for node, statements in ops:
        statement = _assigning(statements)
        if statement != current:
            found.update(_values_of(run, current, readers))
            run, current = [], statement
        run.append(_Made(node, bool(statements) and statements[0] == statement))
    found.update(_values_of(run, current, readers))
    return found


class _Made(NamedTuple):
    """An op that a statement makes."""

    node: Node
    directly: bool
    """By a call that stands in the statement itself."""

    @property
    def word(self) -> str:
        return (self.node.api or self.node.op).rpartition(".")[2]

    def is_like(self, other: _Made) -> bool:
        ours, theirs = self.node, other.node
        return (ours.op, ours.api, self.directly) == (theirs.op, theirs.api, other.directly)


def _assigning(statements: Iterable[Statement]) -> Statement | None:
    """Return the innermost statement that keeps the value; `return` hands it to the caller."""
    for statement in statements:
        if statement.targets:
            return statement
        if not statement.returns:
            return None
    return None


def _values_of(
    run: Sequence[_Made], statement: Statement | None, readers: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    made = [m for m in run if m.node.outputs and m.node.op not in ("Placeholder", "NoOp")]
    if not made or statement is None:
        return {}
    last = made[-1]
    targets = _targets_by_output(statement.targets, last.node)
    if len(targets) != len(last.node.outputs):
        return {}
    values = [last]
    if last.directly and last.word in statement.calls:
        if last.word != statement.outermost:
            return {}  # an argument of the call whose result is kept
        values = _last_of_each_run(made, statement.calls.count(last.word))
    elif len(statement.calls) == 1 and all(_is_call(m, last) for m in made):
        values = made  # `x = step(x)` in a Python loop, where step is a tf.function
    names = [value.node.name for value in values]
    if _others_are_read(names, [m.node.name for m in made], readers):
        return {}
    return dict.fromkeys(names, ", ".join(targets))


# Ops whose function returns their outputs, all of them and in this order, as a list or a tuple.
_RETURNED_AS_A_LIST = frozenset({"Split", "SplitV", "Unpack", "TopK", "TopKV2"})


def _targets_by_output(targets: tuple[str, ...], node: Node) -> tuple[str, ...]:
    """Return what to call each output: `parts[0]` and so on after `parts = tf.split(x, 2)`."""
    if len(targets) != 1 or len(node.outputs) < 2 or node.op not in _RETURNED_AS_A_LIST:
        return targets
    return tuple(f"{targets[0]}[{index}]" for index in range(len(node.outputs)))


def _last_of_each_run(made: Sequence[_Made], in_one_run: int) -> list[_Made]:
    """Tell the runs of a statement in an unrolled loop apart: each makes the same ops in order.

    `in_one_run` is how many ops like the last one a run makes.
    """
    runs, rest = divmod(sum(m.is_like(made[-1]) for m in made), in_one_run)
    length, left = divmod(len(made), runs or 1)
    if rest or left or not all(m.is_like(made[at % length]) for at, m in enumerate(made)):
        return [made[-1]]
    return list(made[length - 1 :: length])


def _is_call(made: _Made, last: _Made) -> bool:
    return made.directly and made.node.kind is NodeKind.CALL and made.is_like(last)


def _others_are_read(
    values: Sequence[str], made: Sequence[str], readers: Mapping[str, Sequence[str]]
) -> bool:
    """Tell whether something else that a statement makes is read outside of it.

    Then its value is more than one tensor. What leads to the value is read again by gradients.
    """
    inside = set(made)
    leads = set(values)
    for name in reversed(made):
        if leads.intersection(readers.get(name, ())):
            leads.add(name)
    return any(not inside.issuperset(readers.get(name, ())) for name in inside - leads)
