"""The kernels of a compiled function: what each computes, and what it costs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from graph2mermaid.graph import Graph, Node, SourceLine
from graph2mermaid.report.model import Code, Column, Table, Text
from graph2mermaid.views import tables

_PLUMBING = frozenset({"parameter", "constant", "bitcast", "broadcast", "copy", "tuple", "reshape"})
"""Opcodes that a kernel is not named for, as long as there are others in it."""
_MOST_OPCODES = 5


@dataclass(frozen=True)
class Kernel:
    """What one launch computes."""

    node: Node
    inside: tuple[Node, ...]
    """The instructions that are fused into it; itself when it is no fusion."""
    loop: str = ""
    """The computation that it is in; the empty string for the entry."""

    @property
    def flops(self) -> int | None:
        """Operations on numbers, where they are known."""
        value = self.node.attrs.get("flops")
        return value if isinstance(value, int) else None

    @property
    def nbytes(self) -> int:
        """Bytes read and written."""
        value = self.node.attrs.get("bytes")
        return value if isinstance(value, int) else 0

    @property
    def computes(self) -> str:
        """What it computes, in opcodes in order: `add, maximum`."""
        if self.node.op == "custom-call":
            return str(self.node.attrs.get("custom_call_target", "custom-call"))
        found = [node.op for node in self.inside if node.op not in _PLUMBING]
        found = found or [node.op for node in self.inside if node.op not in ("parameter",)]
        words = [f"{op} × {n:,}" if n > 1 else op for op, n in Counter(found).items()]
        more = len(words) - _MOST_OPCODES
        return ", ".join(words[:_MOST_OPCODES]) + (f" +{more}" if more > 0 else "")

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the TensorFlow ops that it comes from."""
        found = (str(node.attrs.get("op_type", "")) for node in (*self.inside, self.node))
        return tuple(dict.fromkeys(word for word in found if word))

    @property
    def lines(self) -> tuple[SourceLine, ...]:
        """The lines of the user that it comes from."""
        found = (node.source for node in (*self.inside, self.node))
        lines = (SourceLine(line.file, line.line) for line in found if line is not None)
        return tuple(dict.fromkeys(lines))


def kernels(graph: Graph) -> list[Kernel]:
    """Return every kernel of a graph, those in the bodies of loops and branches included."""
    parts: list[tuple[str, Graph]] = [("", graph), *graph.functions.items()]
    return [
        Kernel(node, _inside(graph, node), key)
        for key, part in parts
        for node in part.nodes()
        if "bytes" in node.attrs
    ]


def _inside(graph: Graph, node: Node) -> tuple[Node, ...]:
    bodies = [graph.functions[c.function] for c in node.calls if c.function in graph.functions]
    return tuple(inner for body in bodies for inner in body.nodes()) or (node,)


@dataclass(frozen=True)
class Launches:
    """How many kernels one step launches."""

    once: int = 0
    repeated: int = 0
    """In the bodies of loops, each time one of which XLA does not say how often it runs is run."""
    choices: bool = False
    """Whether there are branches; the largest of each is counted."""

    @property
    def words(self) -> str:
        """Say it in a cell of a table."""
        most = "at most " if self.choices else ""
        more = f", and {self.repeated:,} for each iteration of a loop" if self.repeated else ""
        return f"{most}{self.once:,}{more}"


def launches(graph: Graph) -> Launches:
    """Count what is launched from the entry on, loops of known length as often as they run."""
    return _launches(graph, graph, 20)


def _launches(top: Graph, part: Graph, depth: int) -> Launches:
    once = sum("bytes" in node.attrs for node in part.nodes())
    repeated, choices = 0, False
    for node in part.nodes():
        if "bytes" in node.attrs or not node.calls or not depth:
            continue
        called = {
            call.role: _launches(top, top.functions[call.function], depth - 1)
            for call in node.calls
            if call.function in top.functions
        }
        choices |= any(inner.choices for inner in called.values())
        repeated += sum(inner.repeated for inner in called.values())
        trips = node.attrs.get("trip_count")
        if node.op == "while" and isinstance(trips, int):
            once += sum(i.once * (trips + (role == "cond")) for role, i in called.items())
        elif node.op == "while":
            repeated += sum(inner.once for inner in called.values())
        elif node.op == "conditional":
            once += max((inner.once for inner in called.values()), default=0)
            choices = True
        else:
            once += sum(inner.once for inner in called.values())
    return Launches(once, repeated, choices)


_NUMBER = re.compile(r"\.\d+$")


def kernel_table(found: Sequence[Kernel]) -> Table | None:
    """List the kernels, the ones that compute most first; equal ones are one row."""
    rows: dict[tuple[object, ...], list[Kernel]] = {}
    for kernel in found:
        layout = kernel.node.attrs.get("layout")
        stem = _NUMBER.sub("", kernel.node.name)
        key = (
            stem,
            layout,
            kernel.computes,
            kernel.flops,
            kernel.nbytes,
            kernel.types,
            kernel.loop,
        )
        rows.setdefault(key, []).append(kernel)
    if not rows:
        return None
    ranked = sorted(rows.values(), key=_weight, reverse=True)
    kept, more = tables.cut(ranked, "kind of kernel")
    more = more.replace("kind of kernels", "kinds of kernels")
    columns = (
        Column("Kernel"),
        Column("Computes"),
        Column("Result"),
        Column("TensorFlow ops"),
        Column("Lines"),
        Column("FLOPs", number=True),
        Column("Bytes", number=True),
        Column("FLOPs per byte", number=True),
    )
    return Table(columns, tuple(_row(same) for same in kept), tables.and_more(more))


def _weight(same: Sequence[Kernel]) -> tuple[int, int]:
    one = same[0]
    return (one.flops or 0) * len(same), one.nbytes * len(same)


def _row(same: Sequence[Kernel]) -> tuple[Text, ...]:
    kernel = same[0]
    name: Text = Code(kernel.node.name)
    if len(same) > 1:
        name = (Code(kernel.node.name), f" × {len(same):,}")
    kind = str(kernel.node.attrs.get("kind", "")).removeprefix("k").lower()
    words = f"{kernel.computes} ({kind} fusion)" if kind else kernel.computes
    origin = kernel.node.origin
    names: list[Text] = [Code(op) for op in origin]
    if len(same) > 1 or not names:
        names = [Code(word) for word in kernel.types]
    lines: Mapping[SourceLine, None] = dict.fromkeys(line for k in same for line in k.lines)
    flops = "?" if kernel.flops is None else f"{kernel.flops:,}"
    density = "" if not kernel.flops or not kernel.nbytes else f"{kernel.flops / kernel.nbytes:.2f}"
    return (
        name,
        words,
        tables.listed([Code(str(spec)) for spec in kernel.node.outputs]),
        tables.listed(names),
        tables.listed([Code(str(line)) for line in lines]),
        flops,
        f"{kernel.nbytes:,}",
        density,
    )


def fusion_kinds(found: Sequence[Kernel]) -> str:
    """Return `23 loop fusions, 1 input fusion`: how many there are of each kind."""
    kinds = Counter(
        str(kernel.node.attrs.get("kind", "")).removeprefix("k").lower() or "other"
        for kernel in found
        if kernel.node.op == "fusion"
    )
    words = (f"{n:,} {kind} fusion{'s' * (n > 1)}" for kind, n in sorted(kinds.items()))
    return ", ".join(words)


def instructions(graph: Graph) -> Iterator[Node]:
    """Yield the instructions of a graph and of all that it calls."""
    yield from graph.nodes()
    for body in graph.functions.values():
        yield from body.nodes()
