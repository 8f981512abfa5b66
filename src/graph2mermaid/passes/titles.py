"""The words that groups are called by, taken from the model's own names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

# `conv5`, `block_3`, `bn`; `block2a` is two tokens, and so is `layer7_1`.
_TOKEN = re.compile(r"[^\W\d_]+(?:_?\d+)?|\d+|[^\w]+")
_TRACE = re.compile(r"_\d+$")
_INDEX = re.compile(r"\d+$|(?<=\d)[a-z]$|(?<=_)[a-z]$")
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

    It is a suffix only when nearly all the names have it.
    """
    endings = Counter((_TRACE.search(name) or [""])[0] for name in names)
    ending, count = endings.most_common(1)[0] if endings else ("", 0)
    return ending if count > 1 and count >= 0.9 * endings.total() else ""


def fold_title(titles: Sequence[str], beside: Mapping[str, int] | None = None) -> str | None:
    """Return what numbered titles have in common: `block` of `block_0`, `block_1`.

    Titles that differ in more than a number or one letter at the end are different things, and
    have none.

    Args:
        titles: Of the things that become one.
        beside: How many things of each [stem][graph2mermaid.passes.titles.stem] stand on their
            level. Where there are more than these, the title says which: `block_3-5`.
    """
    stems = {stem(title) for title in titles}
    if len(stems) > 1:
        return None
    common = stems.pop()
    if not common or (beside or {}).get(common, 0) <= len(titles):
        return common or None
    indexes = [title.removeprefix(common) for title in titles]
    first, last = sorted((indexes[0], indexes[-1]), key=lambda index: (len(index), index))
    between = "_" if last.startswith("_") else ""
    return f"{common}{between}{first.lstrip('_') or 0}-{last.lstrip('_')}"


def stem(title: str) -> str:
    """Return a title without its number or letter: `block` of `block_3`, `block4` of `block4b`.

    Keras calls the first of several layers `dense` and the next `dense_1`.
    """
    return _INDEX.sub("", title).rstrip("_/")


def span_title(titles: Sequence[str]) -> str:
    """Name consecutive things by the first and the last: `conv1 to pool1`."""
    if len(titles) == 1:
        return titles[0]
    first, last = (title.partition(" × ")[0] for title in (titles[0], titles[-1]))
    return f"{first.partition(' to ')[0]} to {last.rpartition(' to ')[2]}"


def loss_title(name: str) -> str | None:
    """Return how a loss is called, or None when the name is not a loss's."""
    if not _LOSS.search(name.lower()):
        return None
    words = (
        name.removeprefix("compile_loss/")
        .replace("_", " ")
        .replace("sparse categorical", "")
        .replace("categorical", "")
    )
    return " ".join(words.split() if "loss" in words else ("loss:", *words.split()))


def is_op_name(name: str, op: str) -> bool:
    """Tell whether a name is the one TensorFlow gives: `strided_slice_4`, `MatMul`, `add_1`."""
    plain = (_TRACE.sub("", name).replace("_", "") if "_" in name else name).lower()
    kind = op.lower()
    return plain == kind or kind.startswith(plain) or plain.startswith(kind)
