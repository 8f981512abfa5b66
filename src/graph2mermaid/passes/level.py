"""One level of the tree while it is being made: units side by side, and the edges among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from graph2mermaid.graph import NodeKind
from graph2mermaid.passes.inline import Body
from graph2mermaid.passes.wiring import Wiring, digest


@dataclass(eq=False)
class Part:
    """A finished group."""

    key: str
    title: str
    units: tuple[Unit, ...]
    body: Body | None = None
    copies: tuple[Part, ...] = ()
    varied: bool = False
    leaves: list[int] = field(default_factory=list)
    """Every node in it, in an order that is the same for all parts of the same form."""
    entering: list[tuple[int, int]] = field(default_factory=list)
    """(place among the leaves, edge) of the edges from elsewhere."""
    leaving: list[tuple[int, int]] = field(default_factory=list)
    form: int = -1
    """Equal for parts that are made and wired in the same way."""
    signature: str = ""
    gradient: bool = False
    """It holds all gradients."""


class Unit(NamedTuple):
    """A part or a single node, under the name that it has on its level."""

    name: str
    part: Part | None
    leaf: int
    """The first node of it in trace order."""
    named: bool = True
    """Whether a person gave the name: a scope's; not TensorFlow's own `Mul_3`."""

    @property
    def size(self) -> int:
        """The number of nodes in it."""
        return len(self.part.leaves) if self.part else 1


class Link(NamedTuple):
    """An edge between two units: their positions, and those of its ends inside them."""

    source: int
    source_leaf: int
    target: int
    target_leaf: int
    edge: int


class Level:
    """Units side by side."""

    def __init__(self, wiring: Wiring, units: Sequence[Unit]) -> None:
        self.wiring = wiring
        self.given = units
        self.units: list[Unit] = sorted(units, key=lambda unit: unit.leaf)
        self.links: list[Link] = []
        self.entering: list[tuple[int, int, int]] = []
        """(unit, place inside it, edge) of the edges from elsewhere."""
        self.leaving: list[tuple[int, int, int]] = []
        # Only the edges at the border of each unit count, however much there is inside.
        starts: dict[int, tuple[int, int]] = {}
        for at, (_, part, leaf, _) in enumerate(self.units):
            for place, edge in part.leaving if part else wiring.out[leaf]:
                starts[edge] = (at, place)
        for at, (_, part, leaf, _) in enumerate(self.units):
            for place, edge in part.entering if part else wiring.into[leaf]:
                start = starts.pop(edge, None)
                if start is None:
                    self.entering.append((at, place, edge))
                else:
                    self.links.append(Link(start[0], start[1], at, place, edge))
        self.leaving += [(at, place, edge) for edge, (at, place) in starts.items()]
        self._neighbors: tuple[list[set[int]], list[set[int]]] | None = None

    @property
    def before(self) -> list[set[int]]:
        """For each unit, those that it reads or waits for."""
        return self._both()[0]

    @property
    def after(self) -> list[set[int]]:
        """For each unit, those that read it or wait for it."""
        return self._both()[1]

    def _both(self) -> tuple[list[set[int]], list[set[int]]]:
        if self._neighbors is None:
            before: list[set[int]] = [set() for _ in self.units]
            after: list[set[int]] = [set() for _ in self.units]
            for link in self.links:
                before[link.target].add(link.source)
                after[link.source].add(link.target)
            self._neighbors = before, after
        return self._neighbors

    def kind(self, at: int) -> NodeKind | None:
        """Return the kind of a single node, or None for a part."""
        unit = self.units[at]
        return None if unit.part else self.wiring.nodes[unit.leaf].kind

    def part(
        self,
        key: str,
        title: str,
        *,
        body: Body | None = None,
        copies: Sequence[Part] = (),
        shown: Sequence[Unit] | None = None,
        varied: bool = False,
    ) -> Part:
        """Return the group of all units; of a fold, only the units `shown` are its children."""
        order, form, signature = self._form()
        leaves: list[int] = []
        first = [0] * len(order)
        for at in order:
            unit = self.units[at]
            first[at] = len(leaves)
            if unit.part is None:
                leaves.append(unit.leaf)
            else:
                leaves += unit.part.leaves
        return Part(
            key,
            title,
            tuple(self.units if shown is None else shown),
            body,
            tuple(copies),
            varied,
            leaves,
            [(first[at] + place, edge) for at, place, edge in self.entering],
            [(first[at] + place, edge) for at, place, edge in self.leaving],
            form,
            signature,
        )

    def loose_form(self) -> int:
        """Return the form of the level, the shapes of its single nodes aside."""
        colors = self._colors(self._loose_labels(), specs=False)
        return self.wiring.number(("loose", self._description(colors, specs=False)[1]))

    def _loose_labels(self) -> list[int]:
        return [u.part.form if u.part else self.wiring.loose[u.leaf] for u in self.units]

    def _form(self) -> tuple[list[int], int, str]:
        """Return the units in canonical order, the number of the level's form, and its hash.

        The form describes every unit and every edge by positions in the canonical order, so two
        levels of the same form are mapped onto each other exactly by that order.
        """
        labels = [u.part.form if u.part else self.wiring.strict[u.leaf] for u in self.units]
        colors = self._colors(labels, specs=True)
        order, form = self._description(colors, specs=True)
        insides = tuple([labels[at] for at in order])
        number = self.wiring.number((insides, form))
        signature = self.wiring.signatures.get(number)
        if signature is None:
            words = tuple(
                unit.part.signature if unit.part else self.wiring.digest(unit.leaf)
                for unit in (self.units[at] for at in order)
            )
            inner, border, exports = form
            plain = tuple((unit, place, port, start) for unit, place, port, _, start in border)
            signature = digest((words, inner, plain, exports))
            self.wiring.signatures[number] = signature
        return order, number, signature

    def _colors(self, labels: list[int], *, specs: bool) -> list[int]:
        """Tell the units apart: by what they are, then by what is around them (two rounds)."""
        wiring = self.wiring
        number, port_in, port_out = wiring.number, wiring.target_port, wiring.source_port
        colors = labels
        if len(set(colors)) == len(colors):
            return colors
        around: list[list[tuple[int, ...]]] = [[] for _ in labels]
        for at, place, edge in self.entering:
            around[at].append((place, port_in[edge], wiring.spec(edge) if specs else 0))
        colors = [number((c, *sorted(a))) if a else c for c, a in zip(colors, around, strict=True)]
        for _ in range(2):
            if len(set(colors)) == len(colors):
                break
            around = [[] for _ in labels]
            for link in self.links:
                ends = (
                    link.source_leaf,
                    port_out[link.edge],
                    link.target_leaf,
                    port_in[link.edge],
                )
                around[link.target].append((0, colors[link.source], *ends))
                around[link.source].append((1, colors[link.target], *ends))
            colors = [
                number((c, *sorted(a))) if a else c for c, a in zip(colors, around, strict=True)
            ]
        return colors

    def _description(self, colors: list[int], *, specs: bool) -> tuple[list[int], _Form]:
        wiring = self.wiring
        port_in, port_out = wiring.target_port, wiring.source_port
        order = sorted(range(len(colors)), key=colors.__getitem__)
        rank = [0] * len(order)
        for place, at in enumerate(order):
            rank[at] = place
        inner = [
            (rank[s], sp, port_out[e], rank[t], tp, port_in[e]) for s, sp, t, tp, e in self.links
        ]
        inner.sort()
        spec, source = wiring.spec, wiring.source
        entering = [
            (rank[at], place, port_in[e], spec(e) if specs else 0, source[e], port_out[e])
            for at, place, e in self.entering
        ]
        entering.sort()
        outside: dict[tuple[int, int], int] = {}
        number = outside.setdefault
        border = [
            (unit, place, port, type_, number((s, sp), len(outside)) if port >= 0 else -1)
            for unit, place, port, type_, s, sp in entering
        ]
        exports = sorted({(rank[at], place, port_out[e]) for at, place, e in self.leaving})
        return order, (tuple(inner), tuple(border), tuple(exports))


_Form = tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]
