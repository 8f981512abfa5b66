"""The memory view: what a function needs in memory, who lives when, and what shares a place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from graph2mermaid.capture import MEMORY_NOTE, XLA_NOTE, Capture, notes_on
from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.graph import Graph, Node, Stage
from graph2mermaid.liveness import Estimate, Tensor, estimate
from graph2mermaid.memory import Allocation, AllocationKind, MemoryPlan, Order
from graph2mermaid.mermaid.diagram import Diagram
from graph2mermaid.mermaid.write import write
from graph2mermaid.report.model import (
    Block,
    Code,
    Column,
    Figure,
    Note,
    Paragraph,
    Section,
    Table,
    Text,
)
from graph2mermaid.views import tables
from graph2mermaid.views.flat import counted
from graph2mermaid.views.memory_pictures import (
    HELD,
    KINDS,
    Names,
    legend_of,
    of_estimate,
    of_plan,
    size,
)
from graph2mermaid.views.options import Options

_WORDS: Mapping[AllocationKind, str] = {
    AllocationKind.PARAMETER: "Arguments and variables",
    AllocationKind.CONSTANT: "Constants",
    AllocationKind.OUTPUT: "Results",
    AllocationKind.TEMPORARY: "Temporaries",
}
_COUNTED = (Column("What"), Column("Allocations", number=True), Column("Bytes", number=True))


def memory(capture: Capture, options: Options) -> Section:
    """Return the section about the memory that the function needs.

    With XLA's plan it is exact; else it is an estimate from the shapes in the graph, and says so.

    Args:
        capture: What was recorded of the target.
        options: How to draw.

    Raises:
        Graph2MermaidError: The capture holds no graph, or one without ops.
    """
    if capture.memory is not None:
        return _planned(capture, capture.memory, options)
    for stage in (Stage.GRAPPLER, Stage.TRACED):
        graph = capture.graphs.get(stage)
        if graph is not None and len(graph):
            return _estimated(capture, graph, options)
    raise Graph2MermaidError(f"{capture.target}: {_missing(capture)}")


def _missing(capture: Capture) -> str:
    if Stage.XLA in capture.graphs:
        return "there is no memory plan in it; a dump of the HloProto (.hlo.pb) has one"
    return "there is no op that could need memory"


# -- with a plan --------------------------------------------------------------------------------


def _planned(capture: Capture, plan: MemoryPlan, options: Options) -> Section:
    names = Names(capture.graphs.get(Stage.TRACED), plan)
    diagram = of_plan(plan, names, capture.name, options)
    found = (
        ("Alive at the peak", _alive(plan, names)),
        ("Allocations", _allocations(plan, names)),
    )
    blocks: tuple[Block, ...] = (
        Paragraph(_what(plan)),
        *_plan_notes(capture, plan),
        Figure(diagram, write(diagram), legend_of(diagram, estimate=False)),
        _totals(plan),
        *(Section(title, (table,)) for title, table in found if table is not None),
        *_full_names(diagram),
    )
    return Section("Memory", blocks, f"{size(plan.nbytes)} with XLA")


def _what(plan: MemoryPlan) -> Text:
    """Say in a line how much memory it is, and how much sharing saves."""
    shared = [b for b in plan.allocations if b.kind is not AllocationKind.THREAD_LOCAL]
    where = f"{size(plan.nbytes)} in {counted(len(shared), 'allocation')}"
    if not plan.saved:
        return f"Where XLA keeps the values of the compiled function: {where}."
    share = 100 * plan.saved / plan.without_reuse
    return (
        f"Where XLA keeps the values of the compiled function: {where}. With a place for each "
        f"value it would be {size(plan.without_reuse)}; sharing saves {size(plan.saved)} "
        f"({share:.0f}%)."
    )


def _plan_notes(capture: Capture, plan: MemoryPlan) -> Iterator[Note]:
    yield from _said(capture)
    if plan.order is Order.TRACE:
        yield Note(
            "This TensorFlow does not record XLA's schedule: the order is put together from the "
            "trace of XLA's allocator, so a step may be a few off."
        )
    if plan.overlaps:
        first = plan.overlaps[0]
        words = counted(len(plan.overlaps), "pair of values shares", "pairs of values share")
        yield Note(
            (
                f"{words} memory while both seem alive, as ",
                Code(first.first.name),
                " and ",
                Code(first.second.name),
                f" in allocation {first.allocation}: XLA's own knowledge of these is not recorded.",
            ),
            "warning",
        )


def _said(capture: Capture) -> list[Note]:
    """Return what was found out when it was compiled, in the form in which a report knows it."""
    for start in (MEMORY_NOTE, XLA_NOTE):  # one compilation is for both
        found = notes_on(capture, start)
        if found:
            return [Note(f"{capture.target}: {note}") for note in found]
    return []


def _totals(plan: MemoryPlan) -> Table:
    rows: list[tuple[Text, ...]] = []
    for kind, words in _WORDS.items():
        count = sum(block.kind is kind for block in plan.allocations)
        if count:
            rows.append((words, f"{count:,}", f"{plan.by_kind[kind]:,}"))
    count = sum(block.kind is not AllocationKind.THREAD_LOCAL for block in plan.allocations)
    rows.append(("All of it", f"{count:,}", f"{plan.nbytes:,}"))
    at = f"In use at the peak, step {plan.peak + 1:,} of {len(plan.schedule):,}"
    rows.append((at, "", f"{plan.peak_nbytes:,}"))
    rows.append(
        (f"If each of {len(plan.values):,} values had its own", "", f"{plan.without_reuse:,}")
    )
    rows.append(("Saved by sharing", "", f"{plan.saved:,}"))
    return Table(_COUNTED, tuple(rows), _threads(plan))


def _threads(plan: MemoryPlan) -> str:
    own = [b for b in plan.allocations if b.kind is AllocationKind.THREAD_LOCAL]
    if not own:
        return ""
    nbytes = f"{sum(block.nbytes for block in own):,} bytes"
    which = counted(len(own), "value")
    return f"Not counted: {which} inside fusions and reductions, {nbytes} for each thread."


def _alive(plan: MemoryPlan, names: Names) -> Table | None:
    kinds = {block.index: block.kind for block in plan.allocations}
    home = {value.id: block.index for block in plan.allocations for value in block.values}
    alive = [v for v in plan.alive(plan.peak) if kinds[home[v.id]] not in HELD]
    if not alive:
        return None
    kept, more = tables.cut(alive, "value")
    rows = tuple(
        (
            Code(value.name),
            Code(value.type) if value.type else "addresses",
            f"{value.nbytes:,}",
            f"{home[value.id]}",
            *_origin(names.op(value), names.node(value)),
            f"{value.start + 1:,}",
            _until(value.end, len(plan.schedule)),
        )
        for value in kept
    )
    held = sum(plan.by_kind[kind] for kind in HELD)
    peak = plan.schedule[plan.peak] if plan.schedule else ""
    caption = (
        f"{tables.and_more(more)} At step {plan.peak + 1:,}, ".lstrip(),
        Code(peak),
        f".{_held(held)}",
    )
    titles = ("Type", "Bytes", "In", "TensorFlow op", "Line", "From step", "Until")
    columns = (Column("Value"), *(Column(t, number=t in _NUMBERS) for t in titles))
    return Table(columns, rows, caption)


_NUMBERS = frozenset({"Bytes", "In", "From step", "Until", "Values", "Their bytes", "Saved"})


def _held(nbytes: int) -> str:
    if not nbytes:
        return ""
    return f" Arguments, variables and constants ({nbytes:,} bytes) are there all the time."


def _until(end: int, steps: int) -> str:
    return "the end" if end >= steps else f"{end + 1:,}"


def _origin(op: str, node: Node | None) -> tuple[Text, Text]:
    line = Code(str(node.source)) if node is not None and node.source is not None else ""
    return (Code(op) if op else ""), line


def _allocations(plan: MemoryPlan, names: Names) -> Table:
    blocks = [b for b in plan.allocations if b.kind is not AllocationKind.THREAD_LOCAL]
    blocks.sort(key=lambda block: (-block.nbytes, block.index))
    kept, more = tables.cut(blocks, "allocation")
    rows = tuple(_allocation_row(block, plan, names) for block in kept)
    titles = ("For", "Bytes", "Values", "Their bytes", "Saved", "Name, or largest value")
    columns = (
        Column("Allocation", number=True),
        *(Column(title, number=title in _NUMBERS) for title in titles),
    )
    return Table(columns, rows, tables.and_more(more))


def _allocation_row(block: Allocation, plan: MemoryPlan, names: Names) -> tuple[Text, ...]:
    places = plan.places(block)
    together = sum(value.nbytes for value in places)
    largest = max(places, key=lambda value: value.nbytes, default=None)
    name = block.label or (names.title(largest) if largest is not None else "")
    return (
        f"{block.index}",
        KINDS[block.kind].lower(),
        f"{block.nbytes:,}",
        f"{len(places):,}",
        f"{together:,}",
        f"{max(0, together - block.nbytes):,}",
        Code(name) if name else "",
    )


# -- without one --------------------------------------------------------------------------------


def _estimated(capture: Capture, graph: Graph, options: Options) -> Section:
    found = estimate(graph)
    diagram = of_estimate(found, graph, capture.name, options)
    alive = _alive_tensors(found, graph)
    unknown = _unknown(found)
    blocks: tuple[Block, ...] = (
        Paragraph(_about(found, graph)),
        *_why_estimate(capture, found),
        *(
            (Figure(diagram, write(diagram), legend_of(diagram, estimate=True)),)
            if diagram.boxes
            else ()
        ),
        _estimated_totals(found),
        *((Section("Alive at the peak", (alive,)),) if alive else ()),
        *((Section("Unknown sizes", (unknown,)),) if unknown else ()),
        *_full_names(diagram),
    )
    least = "at least " if found.unknown else ""
    return Section("Memory", blocks, f"estimate: {least}{size(found.peak_nbytes)}")


def _about(found: Estimate, graph: Graph) -> Text:
    what = "the graph that Grappler made" if graph.stage is Stage.GRAPPLER else "the traced graph"
    least = "at least " if found.unknown or found.unknown_inside else ""
    return (
        f"An estimate, from the shapes in {what}: {least}{size(found.peak_nbytes)} at the peak, "
        "if its ops run one at a time as they become ready and each result goes when its last "
        f"reader has run. All tensors together are {least}{size(found.without_reuse)}."
    )


def _why_estimate(capture: Capture, found: Estimate) -> Iterator[Note]:
    said = _said(capture)
    yield from said
    if not said:
        yield Note("XLA's plan is exact; --view memory records it where XLA compiles the function.")
    count = len(found.unknown) + found.unknown_inside
    if count:
        every = len(found.tensors) + found.unknown_inside
        yield Note(
            f"The size of {count:,} of {every:,} tensors is unknown, and not counted; give shapes "
            "with --input NAME=SPEC.",
            "warning",
        )


def _estimated_totals(found: Estimate) -> Table:
    rows: list[tuple[Text, ...]] = []
    for kind, words in _WORDS.items():
        count = sum(tensor.kind is kind for tensor in found.tensors)
        if count:
            unknown = sum(tensor.kind is kind for tensor in found.unknown)
            rows.append((words, f"{count:,}", f"{unknown:,}", f"{found.by_kind[kind]:,}"))
    if found.inside or found.unknown_inside:
        inside = f"{sum(found.inside.values()):,}"
        rows.append(("Inside called functions, at most", "", f"{found.unknown_inside:,}", inside))
    rows.append(("At the peak", "", "", f"{found.peak_nbytes:,}"))
    rows.append(("All together", "", "", f"{found.without_reuse:,}"))
    titles = ("Tensors", "Of unknown size", "Bytes")
    return Table((Column("What"), *(Column(title, number=True) for title in titles)), tuple(rows))


def _alive_tensors(found: Estimate, graph: Graph) -> Table | None:
    alive = [tensor for tensor in found.alive(found.peak) if tensor.nbytes]
    if not alive:
        return None
    kept, more = tables.cut(alive, "tensor")
    rows = tuple(_tensor_row(tensor, found, graph) for tensor in kept)
    columns = (
        Column("Tensor"),
        Column("Type"),
        Column("Bytes", number=True),
        Column("Line"),
        Column("Last read by"),
    )
    held = sum(found.by_kind.get(kind, 0) for kind in HELD)
    caption = (
        f"{tables.and_more(more)} While ".lstrip(),
        Code(found.order[found.peak]),
        f" runs.{_held(held)}",
    )
    return Table(columns, rows, caption)


def _tensor_row(tensor: Tensor, found: Estimate, graph: Graph) -> tuple[Text, ...]:
    ref = tensor.ref
    source = graph[ref.node].source
    reader: Text = Code(tensor.last_reader) if tensor.last_reader else "no op"
    if tensor.end >= len(found.order):
        reader = "the caller"
    return (
        Code(ref.node if ref.port == 0 else str(ref)),
        Code(str(tensor.spec)),
        f"{tensor.nbytes:,}",
        Code(str(source)) if source is not None else "",
        reader,
    )


def _unknown(found: Estimate) -> Table | None:
    if not found.unknown:
        return None
    kept, more = tables.cut(found.unknown, "tensor")
    rows = tuple((Code(str(tensor.ref)), Code(str(tensor.spec))) for tensor in kept)
    return Table((Column("Tensor"), Column("Type")), rows, tables.and_more(more))


def _full_names(diagram: Diagram) -> Sequence[Section]:
    names = tables.full_names([diagram])
    return (Section("Full names", (names,)),) if names is not None else ()
