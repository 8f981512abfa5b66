"""The words that groups are called by, taken from the model's own names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from os.path import commonprefix

# `conv5`, `block_3`, `bn`; `block2a` is two tokens, and so is `layer7_1`.
_TOKEN = re.compile(r"[^\W\d_]+(?:_?\d+)?|\d+|[^\w]+")
_TRACE = re.compile(r"_\d+$")
_INDEX = re.compile(r"_?(?:\d+|[a-z])?$")
_LOSS = re.compile(
    r"loss|entropy|mean_(?:squared|absolute)|hinge|divergence|(?:^|_)(?:mse|mae)(?:$|_)"
)

MOST_TOKENS = 8
"""Names are taken apart no deeper than this."""


def prefixes(name: str) -> list[str]:
    """Return what a name begins with, token by token: `conv5_block3_1_bn` begins with `conv5`.

    A number belongs to the word before it; a digit after a digit, or a letter after a digit, is
    a token of its own.
    """
    found = [name[: match.end()] for match in _TOKEN.finditer(name)]
    return [*found[: MOST_TOKENS - 1], name]


def trace_suffix(names: Iterable[str]) -> str:
    """Return the `_1` that Keras hangs on every scope of a model that is called again.

    It is a suffix only when all the names have it.
    """
    endings = Counter((_TRACE.search(name) or [""])[0] for name in names)
    ending, count = endings.most_common(1)[0] if endings else ("", 0)
    return ending if count > 1 and len(endings) == 1 else ""


def fold_title(titles: Sequence[str], beside: Iterable[str] = ()) -> str | None:
    """Return what numbered titles have in common: `block` of `block_0`, `block_1`.

    Where others `beside` them are numbered as well, it says which ones: `block 3-5`. Titles that
    differ in more than a number or one letter at the end are different things, and have none.
    """
    common = commonprefix(list(titles))  # noqa: RUF071  # of names, not of paths
    while common and common[-1].isdigit():
        common = common[:-1]
    indexes = [title[len(common) :] for title in titles]
    if not all(_INDEX.fullmatch(index) for index in indexes):
        return None
    name = common.rstrip("_/")
    others = any(t.startswith(common) and _INDEX.fullmatch(t[len(common) :]) for t in beside)
    if not name or not others:
        return name or None
    first, last = sorted((indexes[0].lstrip("_"), indexes[-1].lstrip("_")), key=_in_order)
    return f"{common}{first or 0}-{last}"


def _in_order(index: str) -> tuple[int, str]:
    return (len(index), index)


def loss_title(name: str) -> str | None:
    """Return how a loss is called, or None when the name is not a loss's."""
    if not _LOSS.search(name.lower()):
        return None
    words = name.replace("_", " ").replace("sparse categorical", "").replace("categorical", "")
    return " ".join(words.split() if "loss" in words else ("loss:", *words.split()))


def is_op_name(name: str, op: str) -> bool:
    """Tell whether a name is the one TensorFlow gives: `strided_slice_4`, `MatMul`, `add_1`."""
    plain = _TRACE.sub("", name).replace("_", "").lower()
    kind = op.lower()
    return plain == kind or kind.startswith(plain) or plain.startswith(kind)
