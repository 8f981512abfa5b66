"""The numbers in the names of lowered loops and branches.

TensorFlow numbers what it makes when it puts a body in place (`while/body/_1/while/cond/_44`).
Grappler, asked to do the same, now and then skips a number, and all later ones are shifted.
"""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from graph2mermaid.optimization import OpChange, OpForm, PassChange

_NUMBER = re.compile(r"(?<=/_)\d+(?=[/:]|$)")


def renumbering(names: Collection[str], wanted: Collection[str]) -> Callable[[str], str] | None:
    """Return what turns the numbers in one set of names into those of another.

    Args:
        names: As they are.
        wanted: As they are to be; not all need to have a partner.

    Returns:
        A function of a name or an input's text; None when there is nothing to do.
    """
    known = set(wanted)
    extra = _by_stem(name for name in names if name not in known)
    missing = _by_stem(name for name in wanted if name not in names)
    pairs = [(name, name) for name in names if name in known]
    for stem, found in extra.items():
        if len(found) == len(missing.get(stem, ())):
            pairs += zip(found, missing[stem], strict=True)
    shifts: dict[int, int] = {}
    for old, new in pairs:
        for before, after in zip(_numbers(old), _numbers(new), strict=True):
            # Where two say otherwise, one stands for another op: of equal ones another was kept.
            shifts[before] = min(after - before, shifts.get(before, after - before))
    if not any(shifts.values()):
        return None
    numbers = sorted(shifts)

    def shifted(match: re.Match[str]) -> str:
        number = int(match[0])
        index = bisect.bisect(numbers, number) - 1
        return str(number + (shifts[numbers[index]] if index >= 0 else 0))

    return lambda text: _NUMBER.sub(shifted, text)


def renamed_pass(change: PassChange, rename: Callable[[str], str]) -> PassChange:
    """Return what a pass did, under other names."""
    return replace(
        change,
        changes=tuple(
            OpChange(rename(c.name), _renamed(c.before, rename), _renamed(c.after, rename))
            for c in change.changes
        ),
    )


def renamed_forms(
    forms: Mapping[str, OpForm], rename: Callable[[str], str]
) -> Mapping[str, OpForm]:
    """Return ops under other names."""
    return {
        rename(name): replace(form, inputs=tuple(map(rename, form.inputs)))
        for name, form in forms.items()
    }


def _renamed(form: OpForm | None, rename: Callable[[str], str]) -> OpForm | None:
    return form and replace(form, inputs=tuple(map(rename, form.inputs)))


def _by_stem(names: Iterable[str]) -> dict[str, list[str]]:
    found = defaultdict(list)
    for name in names:
        if _NUMBER.search(name):
            found[_NUMBER.sub("", name)].append(name)
    return {stem: sorted(group, key=_numbers) for stem, group in found.items()}


def _numbers(name: str) -> list[int]:
    return [int(number) for number in _NUMBER.findall(name)]
