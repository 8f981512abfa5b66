"""The runtime view: what each device executes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from graph2mermaid.capture import GRAPPLER_NOTE, Capture, notes_on
from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.graph import Graph, Stage
from graph2mermaid.mermaid.build import Mark
from graph2mermaid.mermaid.diagram import Look
from graph2mermaid.passes.devices import short_device
from graph2mermaid.report.model import Block, Code, Column, Paragraph, Section, Table, Text
from graph2mermaid.views import tables
from graph2mermaid.views.drawing import Overlay, draw
from graph2mermaid.views.flat import counted
from graph2mermaid.views.optimized import first_of_equal
from graph2mermaid.views.options import Options
from graph2mermaid.views.pictures import key_of, overview, shown, tables_and_parts


def runtime(capture: Capture, options: Options) -> Section:
    """Return the section about the graphs that the devices execute.

    Args:
        capture: What was recorded of the target.
        options: How to draw.

    Raises:
        Graph2MermaidError: The capture holds no runtime graph; the message says how to get one.
    """
    if Stage.RUNTIME not in capture.graphs:
        raise Graph2MermaidError(_missing(capture))
    graph, before = capture.graphs[Stage.RUNTIME], capture.graphs.get(Stage.GRAPPLER)
    marks = _marks(graph, before) if before is not None else {}
    optimization = capture.optimization
    firsts = first_of_equal(optimization.provenance) if optimization is not None else {}
    overlay = Overlay(marks, traced=capture.graphs.get(Stage.TRACED), firsts=firsts)
    pictures = shown(draw(graph, options, overlay), options.out_dir) if len(graph) else []
    found = (
        ("Ops by device", _by_device(graph)),
        ("Renamed or added after Grappler", _renamed(graph, before)),
        ("Ops by type at run time", tables.op_types(graph)),
    )
    blocks: tuple[Block, ...] = (
        Paragraph(_what(graph)),
        *overview(graph, pictures, options.out_dir),
        *tables_and_parts(found, pictures, options.out_dir),
    )
    return Section("Runtime graph", blocks, _size(graph), key=key_of(pictures[:1]))


def _missing(capture: Capture) -> str:
    failed = notes_on(capture, GRAPPLER_NOTE)
    if failed and capture.optimization is None:
        return f"{capture.target}: {failed[0]}"
    if capture.optimization is not None and not capture.optimization.provenance.ops:
        return f"{capture.target}: there is no op to execute"
    if capture.optimization is not None:
        return f"{capture.target}: it cannot be executed here, so no device has a graph of it"
    return f"{capture.target}: the capture holds no runtime graph; record it with --view runtime"


def _size(graph: Graph) -> str:
    devices = {node.device for node in graph.nodes() if node.device}
    return f"{counted(len(graph), 'op')} on {counted(len(devices), 'device')}"


def _what(graph: Graph) -> Text:
    """Say in a line how much is executed where, and what goes from one device to another."""
    sent = sum(_crosses(graph, a.source, a.target) for a in graph.arrows())
    crossing = f" {counted(sent, 'edge')} go from one device to another." if sent > 1 else ""
    crossing = " 1 edge goes from one device to another." if sent == 1 else crossing
    return f"What the devices execute: {_size(graph)}.{crossing}"


def _crosses(graph: Graph, source: str, target: str) -> bool:
    one, other = graph[source].device, graph[target].device
    return bool(one and other) and one != other


def _marks(graph: Graph, before: Graph) -> Mapping[str, Mark]:
    """Say what came after Grappler: oneDNN's own rewrites, and what placing the ops added."""
    marks = {}
    for node in graph.nodes():
        if node.name not in before:
            marks[node.name] = Mark(Look.ADDED, ("added at run time",))
        elif before[node.name].op != node.op:
            marks[node.name] = Mark(Look.CHANGED, (f"was {before[node.name].op}",))
    return marks


def _by_device(graph: Graph) -> Table:
    counts = Counter(node.device for node in graph.nodes())
    rows = tuple(
        (Code(short_device(device)) if device else "none", f"{count:,}")
        for device, count in counts.items()
    )
    return Table((Column("Device"), Column("Ops", number=True)), rows)


def _renamed(graph: Graph, before: Graph | None) -> Table | None:
    if before is None:
        return None
    rows: list[tuple[Text, ...]] = []
    for node in graph.nodes():
        was = before[node.name].op if node.name in before else ""
        if was != node.op:
            rows.append((Code(node.name), Code(was) if was else "", Code(node.op)))
    if not rows:
        return None
    kept, more = tables.cut(rows, "op")
    columns = (Column("Op"), Column("After Grappler"), Column("Executed"))
    return Table(columns, tuple(kept), tables.and_more(more))
