"""Divide a level that is too wide: by names, by equal parts, by repetition, and last by position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from graph2mermaid.graph import NodeKind
from graph2mermaid.passes.level import Level, Unit
from graph2mermaid.passes.pack import packed
from graph2mermaid.passes.titles import prefixes

_CONTIGUOUS = 0.6
"""The least share of its own stretch that a group of one prefix fills."""
_MOST_OF = 0.9
"""A prefix that nearly all names have says nothing."""
_LONGEST_PERIOD = 40
_HUBS = (32, 8, 3)
"""A unit with more neighbors than this on one side may join what is otherwise apart."""


def by_prefix(units: Sequence[Unit]) -> list[tuple[str, list[int]]]:
    """Group units by what their names begin with, one level deep.

    Args:
        units: In trace order.

    Returns:
        The prefix and the positions of each group of two or more. A prefix whose units are
        scattered among others (`conv2d_1`, `conv2d_7`: what they are, not where) makes no group.
    """
    names = {at: prefixes(unit.name) for at, unit in enumerate(units) if unit.named}
    place = {at: number for number, at in enumerate(names)}
    found: list[tuple[str, list[int]]] = []
    waiting: list[tuple[int, list[int]]] = [(0, list(names))]
    while waiting:
        depth, members = waiting.pop()
        buckets: dict[str, list[int]] = {}
        for at in members:
            tokens = names[at]
            if depth < len(tokens):
                buckets.setdefault(tokens[depth], []).append(at)
        for prefix, bucket in buckets.items():
            stretch = place[bucket[-1]] - place[bucket[0]] + 1
            if len(bucket) < 2:
                continue
            if len(bucket) > _MOST_OF * len(names) or len(bucket) < _CONTIGUOUS * stretch:
                waiting.append((depth + 1, bucket))
            else:
                found.append((_longest_shared([names[at] for at in bucket], prefix), bucket))
    return sorted(found, key=lambda group: group[1][0])


def _longest_shared(names: Sequence[list[str]], prefix: str) -> str:
    """Return the longest beginning that all names share, whole tokens only."""
    for tokens in zip(*names):  # noqa: B905  # the shortest name ends it
        if len(set(tokens)) == 1 and len(tokens[0]) > len(prefix):
            prefix = tokens[0]
    return prefix


def rounded(level: Level, groups: Sequence[tuple[str, list[int]]]) -> list[tuple[str, list[int]]]:
    """Return the groups with what lies between their own units; drop those it would tear.

    A path that leaves a group and comes back (`Conv1`, `bn_Conv1`, `Conv1_relu`) would be a cycle
    of boxes. What is on it joins the group when it is little and in no other group.
    """
    taken = {at for _, members in groups for at in members}
    found: list[tuple[str, list[int]]] = []
    for prefix, members in groups:
        between = _between(level, members)
        if between & taken or len(between) > len(members):
            continue
        taken |= between
        found.append((prefix, sorted({*members, *between})))
    return found


def _between(level: Level, members: Sequence[int]) -> set[int]:
    """Return the units on paths from members to members, as far as they stand among them."""
    inside = set(members)
    last, first = max(members), min(members)
    ahead = _reached(inside, level.after, first, last)
    return _reached(inside, level.before, first, last) & ahead if ahead else ahead


def _reached(inside: set[int], step: Sequence[set[int]], first: int, last: int) -> set[int]:
    reached: set[int] = set()
    stack = list(inside)
    while stack:
        for at in step[stack.pop()]:
            if first < at < last and at not in inside and at not in reached:
                reached.add(at)
                stack.append(at)
    return reached


def worth_dividing(units: Sequence[Unit], groups: Iterable[tuple[str, list[int]]]) -> bool:
    """Tell whether groups of names say more than the units themselves: several, and not slivers."""
    sizes = [len(members) for _, members in groups if len(members) > 2]
    named = sum(unit.named for unit in units)
    return len(sizes) > 1 and sum(sizes) >= 0.8 * named


_PLACED = frozenset({NodeKind.OP, NodeKind.CONST, NodeKind.VARIABLE, NodeKind.CONTROL_FLOW})


def placed(level: Level, group_of: dict[int, int]) -> dict[int, int]:
    """Say which group each loose node belongs to, where its wiring leaves no doubt.

    A node belongs to the group that makes all its inputs, or else to the one that reads all its
    results; a variable to the first that reads it. Gradients that are added up (`AddN`) belong to
    where they come from, sums of sums included.
    """
    home = dict(group_of)
    loose = [
        at
        for at, unit in enumerate(level.units)
        if at not in group_of and not unit.named and level.kind(at) in _PLACED
    ]
    still = [at for at in loose if level.kind(at) not in (NodeKind.CONST, NodeKind.VARIABLE)]
    for at in still:
        known = home if level.wiring.nodes[level.units[at].leaf].op == "AddN" else group_of
        makers = {known[n] for n in level.before[at] if n in known}
        readers = {known[n] for n in level.after[at] if n in known}
        if len(makers) == 1:
            home[at] = makers.pop()
        elif len(readers) == 1:
            home[at] = readers.pop()
    for at in loose:
        if at in home:
            continue
        readers_at = sorted(level.after[at])
        if level.kind(at) is NodeKind.VARIABLE:
            first = next((home[n] for n in readers_at if n in home), None)
            if first is not None:
                home[at] = first
        elif readers_at and level.kind(at) is NodeKind.CONST:
            readers = {home.get(n, -1) for n in readers_at}
            if len(readers) == 1 and -1 not in readers:
                home[at] = readers.pop()
    return home


def connected_parts(level: Level, hubs: int) -> list[list[int]]:
    """Return the connected parts of a level once the units with too many neighbors are cut out."""
    before, after = level.before, level.after
    parent = list(range(len(level.units)))

    def top(at: int) -> int:
        while parent[at] != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    cut = [len(before[at]) > hubs or len(after[at]) > hubs for at in range(len(parent))]
    for link in level.links:
        if not cut[link.source] and not cut[link.target]:
            first, second = sorted((top(link.source), top(link.target)))
            parent[second] = first
    parts: dict[int, list[int]] = {}
    for at in range(len(parent)):
        if not cut[at]:
            parts.setdefault(top(at), []).append(at)
    return [part for part in parts.values() if len(part) > 1]


def equal_parts(level: Level, form: Callable[[Sequence[int]], int]) -> list[list[list[int]]]:
    """Return sets of connected parts of one form each, when they are most of the level."""
    for hubs in _HUBS:
        parts = connected_parts(level, hubs)
        if len(parts) < 3:
            continue
        sizes = Counter(len(part) for part in parts)
        classes: dict[int, list[list[int]]] = {}
        for part in parts:
            if sizes[len(part)] > 2:
                classes.setdefault(form(part), []).append(part)
        found = [parts for parts in classes.values() if len(parts) > 2]
        if 2 * sum(len(p) for parts in found for p in parts) >= len(level.units):
            return found
    return []


def repeated(labels: Sequence[int], least: int = 4) -> list[range]:
    """Return the stretches of a sequence that repeat one pattern: the longest, then the others.

    Args:
        labels: The sequence.
        least: The shortest stretch that counts.

    Returns:
        For each stretch, `range(start, end, period)`; whole periods only.
    """
    found: list[range] = []
    waiting = [(0, len(labels))]
    while waiting:
        start, end = waiting.pop()
        best = _longest(labels, start, end) if end - start >= least else None
        if best is not None and best.stop - best.start >= least:
            found.append(best)
            waiting += [(start, best.start), (best.stop, end)]
    return sorted(found, key=lambda stretch: stretch.start)


def _longest(labels: Sequence[int], start: int, end: int) -> range | None:
    best: range | None = None
    for period in range(1, min(_LONGEST_PERIOD, (end - start) // 2) + 1):
        run = 0
        for at in range(start, end - period + 1):
            if at < end - period and labels[at] == labels[at + period]:
                run += 1
                continue
            if run >= period:
                first = at - run
                stretch = range(first, first + (run + period) // period * period, period)
                if best is None or stretch.stop - stretch.start > best.stop - best.start:
                    best = stretch
            run = 0
    return best


def pieces(level: Level, most: int) -> list[range]:
    """Cut a level that is wider than `most` into consecutive pieces.

    A cut is good where a single unit feeds all that comes after; there are at most `most` pieces
    then, which may themselves be too wide. Where there is no such place, each piece is as much as
    one page shows, and there may be more than `most` of them.
    """
    count = len(level.units)
    open_at = [0] * (count + 2)
    for at in range(count):
        if level.kind(at) not in _SOURCES and level.after[at]:
            open_at[at + 1] += 1
            open_at[max(at, *level.after[at]) + 1] -= 1
    least = max(-(-count // most), _SHORTEST)
    cuts = [0]
    flowing = 0
    for at in range(1, count):
        flowing += open_at[at]
        if flowing <= 1 and at - cuts[-1] >= least and count - at >= least:
            cuts.append(at)
    if len(cuts) == 1:
        return packed(level, most)
    return [range(a, b) for a, b in zip(cuts, [*cuts[1:], count], strict=True)]


_SOURCES = frozenset({NodeKind.INPUT, NodeKind.CONST, NodeKind.VARIABLE})
_SHORTEST = 8
"""A piece of fewer units is no help."""
