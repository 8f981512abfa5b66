"""The names of library functions, without TensorFlow's process-wide counters.

TensorFlow appends a number to the name of every function that it traces (`__inference_inner_20`,
`while_body_17`), and the number depends on all that was traced before in the same process. A
report must not change when nothing did, so the numbers go; two functions that are left with the
same name are numbered in the order in which they are reached.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_WRAPPED = re.compile(r"__inference_(?P<name>.+)_\d+")
_GRADIENT = re.compile(r"__(?P<pass>forward|backward)_(?P<name>.+)_\d+")
# What TensorFlow adds to a whole name when it derives one function from another.
_DERIVED = re.compile(
    r"(?P<name>.+)_(?:rewritten|const_\d|specialized_for_.+_at_.+)"
    r"|(?P<branch>(?!__inference_).+)_frozen_\d+"
)
_BRANCH_GRADIENT = re.compile(r"(?P<name>.+)_grad_\d+")
_PART = r"(?:cond|body|true|false|branch\d+)"
_BRANCH = re.compile(rf"(?P<name>(?:.+_)?{_PART})(?:_frozen)?_\d+")
# A SavedModel wraps the names of branches once more (`__inference_while_body_17_230`). There a
# user's own `my_body_2` looks the same, so only the scopes that TensorFlow names count.
_WRAPPED_BRANCH = re.compile(
    rf"(?P<name>(?:.+_)?(?:while|cond|case)(?:_\d+)?_{_PART})(?:_frozen)?_\d+"
)


def function_name(raw: str) -> str:
    """Return the name a user knows a library function by.

    `__inference_layer_2_55` is `layer_2`, `while_cond_true_43` is `while_cond_true`, and
    `__inference___backward_f_3_9` is `f (backward)`. Other names stay as they are.
    """
    return _plain(raw, _BRANCH) or raw


def unique_names(raw_names: Iterable[str]) -> dict[str, str]:
    """Return the plain name of each function, every one different.

    Args:
        raw_names: The names in the library, in the order in which they are reached.

    Returns:
        A mapping from raw to plain names in the same order. The second `inner` is `inner_2`,
        unless that is the name of another function.
    """
    plain = {raw: function_name(raw) for raw in raw_names}
    own_names = set(plain.values())
    given: dict[str, str] = {}
    used: set[str] = set()
    for raw, name in plain.items():
        given[raw] = name if name not in used else _numbered(name, own_names | used)
        used.add(given[raw])
    return given


def argument_name(raw: str) -> str:
    """Return the name of a function's argument without the function's counter.

    TensorFlow fills the arguments of a loop's condition up with placeholders that nothing reads,
    and calls them after the condition: `while_cond_16___redundant_placeholder0`.
    """
    return _REDUNDANT.sub("", raw)


_REDUNDANT = re.compile(r"_\d+(?=___redundant_placeholder)")


def _plain(raw: str, branch: re.Pattern[str]) -> str:
    """Take counters and markers off from the outside in, one layer at each call."""
    for pattern, ending in ((_DERIVED, ""), (_BRANCH_GRADIENT, " (gradient)")):
        if found := pattern.fullmatch(raw):
            source = found["name"] or found["branch"]
            # Without a counter below it, the ending is part of the user's own name.
            if (plain := _plain(source, branch)) != source:
                return plain + ending
    if found := _WRAPPED.fullmatch(raw):
        return _plain(found["name"], _WRAPPED_BRANCH)
    if found := _GRADIENT.fullmatch(raw):
        return f"{_plain(found['name'], branch)} ({found['pass']})"
    if found := branch.fullmatch(raw):
        return found["name"]
    return raw


def _numbered(name: str, taken: set[str]) -> str:
    stem, space, role = name.partition(" (")
    number = 2
    while (candidate := f"{stem}_{number}{space}{role}") in taken:
        number += 1
    return candidate
