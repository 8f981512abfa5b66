"""The XLA view: what the compiler made of a function, kernel by kernel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from graph2mermaid.capture import XLA_NOTE, Capture, notes_on
from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.graph import Graph, Node, NodeKind, Stage
from graph2mermaid.hlo import Compilation, Origins, Place
from graph2mermaid.mermaid.build import Mark, short_place
from graph2mermaid.report.model import (
    Block,
    Code,
    Column,
    Note,
    Paragraph,
    Section,
    Table,
    Text,
)
from graph2mermaid.views import tables
from graph2mermaid.views.drawing import Overlay, draw
from graph2mermaid.views.flat import counted
from graph2mermaid.views.kernels import (
    Kernel,
    fusion_kinds,
    instructions,
    kernel_table,
    kernels,
    launches,
)
from graph2mermaid.views.options import Options
from graph2mermaid.views.pictures import key_of, overview, shown, tables_and_parts

_PLUMBING = frozenset({"Const", "Identity", "IdentityN", "NoOp", "Placeholder", "ReadVariableOp"})
"""Ops that are no work in TensorFlow either, so that nobody asks where they went."""


_FRAMES = " A frame that bears a kernel's name is a fusion: what is in it runs as one kernel."


def xla(capture: Capture, options: Options) -> Section:
    """Return the section about the HLO that XLA compiled.

    Args:
        capture: What was recorded of the target.
        options: How to draw.

    Raises:
        Graph2MermaidError: The capture holds no HLO; the message says why, or how to get it.
    """
    if Stage.XLA not in capture.graphs:
        raise Graph2MermaidError(_missing(capture))
    graph, traced = capture.graphs[Stage.XLA], capture.graphs.get(Stage.TRACED)
    compilation = capture.compilation or Compilation(len(list(instructions(graph))))
    found = kernels(graph)
    overlay = Overlay(marks_of(graph, layouts=options.level == "ops"), group_words(found))
    pictures = shown(draw(graph, options, overlay), options.out_dir) if len(graph) else []
    blocks: tuple[Block, ...] = (
        Paragraph(_what(compilation, traced, found)),
        *_notes(compilation, traced),
        *overview(graph, pictures, options.out_dir),
        Section("Before and after", (_counts(graph, compilation, traced, found),)),
        *_tables(graph, traced, found),
        *tables_and_parts(
            [("Instructions by opcode", tables.op_types(graph))], pictures, options.out_dir
        ),
    )
    return Section("XLA graph", blocks, _summary(compilation, found), key=key_of(pictures[:1]))


def _missing(capture: Capture) -> str:
    failed = notes_on(capture, XLA_NOTE)
    if failed:
        return f"{capture.target}: {failed[0]}"
    return f"{capture.target}: the capture holds no HLO; record it with --view xla"


def _summary(compilation: Compilation, found: Sequence[Kernel]) -> str:
    made = counted(compilation.instructions, "instruction")
    return f"{made} in {counted(len(found), 'kernel')}"


def _what(compilation: Compilation, traced: Graph | None, found: Sequence[Kernel]) -> Text:
    """Say in a line how many ops became how many kernels."""
    kinds = fusion_kinds(found)
    fused = f" ({kinds})" if kinds else ""
    made = _summary(compilation, found)
    if traced is None:
        return f"What XLA compiled: {made}{fused}.{_FRAMES * bool(kinds)}"
    ops = counted(_ops(traced), "op")
    return (
        f"What XLA compiled, without running it: {ops} became {made}{fused}.{_FRAMES * bool(kinds)}"
    )


def _notes(compilation: Compilation, traced: Graph | None) -> Iterator[Note]:
    if compilation.mappable and compilation.mapped < compilation.mappable:
        what = "an op of the traced graph" if traced is not None else "a TensorFlow op"
        yield Note(
            f"{compilation.mapped:,} of {compilation.mappable:,} instructions "
            f"({100 * compilation.coverage:.1f}%) are mapped to {what} by name; the others are the "
            "compiler's own (copies, views, reducers). Parameters are not counted."
        )


def _ops(traced: Graph) -> int:
    return len(traced) + sum(map(len, traced.functions.values()))


def _counts(
    graph: Graph, compilation: Compilation, traced: Graph | None, found: Sequence[Kernel]
) -> Table:
    """Count what there is before and after, and what a step costs."""
    fused = sum(len(k.inside) for k in found if k.node.op == "fusion")
    flops = [k.flops for k in found]
    known = sum(n for n in flops if n is not None)
    rows: list[tuple[Text, Text]] = []
    if traced is not None:
        rows.append(("TensorFlow ops, bodies included", f"{_ops(traced):,}"))
    if compilation.before is not None:
        rows.append(("HLO instructions before optimization", f"{compilation.before:,}"))
    rows += [
        ("HLO instructions after it", f"{compilation.instructions:,}"),
        ("of these inside fusions", f"{fused:,}"),
        ("Fusions", f"{sum(k.node.op == 'fusion' for k in found):,}"),
        ("Kernels launched per step", launches(graph).words),
        ("FLOPs of all kernels, each once", tables.readable_count(known)),
        ("Bytes read and written, each once", tables.readable_count(sum(k.nbytes for k in found))),
    ]
    unknown = flops.count(None)
    caption = f"The FLOPs of {counted(unknown, 'library kernel')} are not known." if unknown else ""
    return Table((Column("What"), Column("Count", number=True)), tuple(rows), caption)


def _tables(graph: Graph, traced: Graph | None, found: Sequence[Kernel]) -> Iterator[Section]:
    made = kernel_table(found)
    if made is not None:
        yield Section("Kernels", (made,))
    if traced is None:
        return
    origins = Origins(traced)
    into = _into(origins, found)
    where = _where_table(origins, into)
    if where is not None:
        yield Section("Kernels by TensorFlow op", (where,))
    gone = _gone_table(graph, origins)
    if gone is not None:
        yield Section("Ops that vanished", (gone,))


# -- where TensorFlow's ops went ---------------------------------------------------------------


def _into(origins: Origins, found: Sequence[Kernel]) -> Mapping[Place, list[str]]:
    """Return the kernels that each TensorFlow op is part of."""
    into: defaultdict[Place, dict[str, None]] = defaultdict(dict)
    for kernel in found:
        for node in (*kernel.inside, kernel.node):
            for place in origins.places(str(node.attrs.get("op_name", ""))):
                into[place][kernel.node.name] = None
    return {place: list(names) for place, names in into.items()}


def _where_table(origins: Origins, into: Mapping[Place, Sequence[str]]) -> Table | None:
    rows: list[tuple[Text, ...]] = []
    for place in origins.all():
        node = origins.node(place)
        if place in into and node.op not in _PLUMBING:
            source = Code(str(node.source)) if node.source is not None else ""
            names: list[Text] = [Code(name) for name in into[place]]
            rows.append((Code(node.name), Code(node.op), source, tables.listed(names)))
    if not rows:
        return None
    kept, more = tables.cut(rows, "op")
    columns = (Column("Op"), Column("Type"), Column("Line"), Column("Kernels"))
    return Table(columns, tuple(kept), tables.and_more(more))


def _gone_table(graph: Graph, origins: Origins) -> Table | None:
    """List the ops that no instruction names, by type."""
    names = {str(node.attrs.get("op_name", "")) for node in instructions(graph)}
    named = {place for name in names for place in origins.places(name)}
    gone: defaultdict[str, list[Node]] = defaultdict(list)
    for place in origins.all():
        node = origins.node(place)
        kept = node.kind not in (NodeKind.OP, NodeKind.CONTROL_FLOW) or node.op in _PLUMBING
        if place not in named and not kept:
            gone[node.op].append(node)
    if not gone:
        return None
    ranked = sorted(gone.items(), key=lambda item: (-len(item[1]), item[0]))
    kept_rows, more = tables.cut(ranked, "op type")
    rows = tuple(
        (Code(op), f"{len(nodes):,}", tables.listed([Code(node.name) for node in nodes]))
        for op, nodes in kept_rows
    )
    columns = (Column("Type"), Column("Ops", number=True), Column("Names"))
    why = (
        "No instruction names them: worked out at compile time, part of another op, or not needed."
    )
    return Table(columns, rows, " ".join(filter(None, (why, tables.and_more(more)))))


# -- what boxes say ---------------------------------------------------------------------------


class _ByInstruction(Mapping[str, Mark]):
    """What to say of instructions, by their names in a drawing: `scope/dot.1`."""

    def __init__(self, marks: Mapping[str, Mark]) -> None:
        self._marks = marks

    def __getitem__(self, name: str) -> Mark:
        return self._marks[name.rpartition("/")[2]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._marks)

    def __len__(self) -> int:
        return len(self._marks)


def marks_of(graph: Graph, *, layouts: bool = False) -> Mapping[str, Mark]:
    """Return what to say of each instruction beside its opcode.

    Args:
        graph: Of the stage `xla`.
        layouts: Say how its result lies in memory as well.
    """
    marks: dict[str, Mark] = {}
    for node in instructions(graph):
        if node.kind not in (NodeKind.INPUT, NodeKind.VARIABLE):
            lines = tuple(_lines(node, _details(graph, node), layouts))
            if lines:
                marks[node.name] = Mark(None, lines)
    return _ByInstruction(marks)


def _details(graph: Graph, node: Node) -> str:
    """Return the detail of a node; a fusion of one instruction is drawn as that instruction."""
    bodies = [graph.functions[c.function] for c in node.calls if c.function in graph.functions]
    inside = [one for body in bodies for one in body.nodes() if one.op != "parameter"]
    own = _detail(inside[0]) if node.op == "fusion" and len(inside) == 1 else ""
    return ", ".join(filter(None, (own, _detail(node))))


def _lines(node: Node, detail: str, layouts: bool) -> Iterator[str]:
    if detail:
        yield detail
    if layouts:
        yield str(node.attrs.get("layout", ""))
    words = str(node.attrs.get("op_type", ""))
    if words and node.kind is not NodeKind.CONST:
        yield f"{words} · {short_place(node.source)}" if node.source is not None else words


def _detail(node: Node) -> str:
    """Say what an opcode leaves open: which reduction, which comparison, which library kernel."""
    attrs = node.attrs
    match node.op:
        case "custom-call":
            return str(attrs.get("custom_call_target", ""))
        case "compare":
            return str(attrs.get("direction", ""))
        case "reduce" | "reduce-window" | "scatter" | "all-reduce" | "map":
            return str(attrs.get("to_apply", ""))
        case "fusion":
            kind = str(attrs.get("kind", "")).removeprefix("k").lower()
            return f"{kind} fusion" if kind else ""
    return ""


def group_words(found: Sequence[Kernel]) -> Callable[[Iterable[str]], str]:
    """Return the function that says `12 kernels` of the instructions in a group."""
    names = {kernel.node.name for kernel in found}

    def words(group: Iterable[str]) -> str:
        # A member of a fusion is named `scope/fusion/member` in a drawing.
        inside = {part for name in group for part in name.split("/")[-2:] if part in names}
        return counted(len(inside), "kernel") if inside else ""

    return words
