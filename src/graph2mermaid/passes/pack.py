"""Cut a row into consecutive pieces of which each is as much as one page shows."""

from __future__ import annotations

from collections import Counter

from graph2mermaid.passes.level import Level

MOST_EDGES = 36
"""As many edges as a piece may have, its neighbors' included; a page has room for a few more."""
_MOST_NEIGHBORS = 6
"""A page shows more neighbors than this as one."""
_SHORTEST = 8
"""A piece of fewer units is no help, whatever number of edges they have."""


def packed(level: Level, most: int) -> list[range]:
    """Return the pieces: each has at most `most` units, and no more edges than a page can show.

    Pieces are filled one after the other. Only the last two are made equally long where the last
    one would be short.
    """
    count = len(level.units)
    packer = _Packer(level, most)
    for at in range(count):
        packer.add(at)
    starts = packer.starts
    if len(starts) > 1 and count - starts[-1] < min(_SHORTEST, most):
        starts[-1] = (starts[-2] + count) // 2
    return [range(a, b) for a, b in zip(starts, [*starts[1:], count], strict=True)]


class _Packer:
    """Fills one piece after the other, and counts the edges that its page will have.

    From a unit of the piece to the same piece elsewhere there is one edge. Where pieces after this
    one begin is not known yet; they are taken to be of full length.
    """

    def __init__(self, level: Level, most: int) -> None:
        self.starts = [0]
        self._level = level
        self._most = most
        self._entered = {at for at, _, _ in level.entering}
        self._left = {at for at, _, _ in level.leaving}
        self._piece_of: list[int] = []
        self._ahead: list[Counter[int]] = []
        """For each unit of the piece, how many it leads to in each of the pieces to come."""
        self._edges = 0

    def add(self, at: int) -> None:
        """Put the next unit into the piece, or start a new one with it."""
        before, start = self._level.before[at], self.starts[-1]
        inside = [n - start for n in before if start <= n < at]
        sources = {self._piece_of[n] for n in before if n < start}
        ahead = Counter(n // self._most for n in self._level.after[at] if n > at)
        own = self._drawn(len(sources), at in self._entered)
        own += self._drawn(len(ahead), at in self._left)
        # An edge to a unit of the piece takes the place of one that left it, if it was the only one.
        bucket = at // self._most
        kept = sum(self._ahead[place][bucket] > 1 for place in inside)
        length = at - start
        wide = self._edges + own + kept > MOST_EDGES and length >= _SHORTEST
        if length == self._most or wide:
            self.starts.append(at)
            self._ahead = []
            own += self._drawn(len({self._piece_of[n] for n in before if n < at}), False)
            own -= self._drawn(len(sources), False)
            self._edges = own
        else:
            for place in inside:
                self._ahead[place][bucket] -= 1
            self._edges += own + kept
        self._piece_of.append(len(self.starts) - 1)
        self._ahead.append(ahead)

    @staticmethod
    def _drawn(pieces: int, elsewhere: bool) -> int:
        return min(pieces + elsewhere, _MOST_NEIGHBORS + 1)
