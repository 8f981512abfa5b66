"""The Grappler view: the optimized graph, drawn as a change of the traced one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from graph2mermaid.capture import GRAPPLER_NOTE, Capture, notes_on
from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.graph import Stage
from graph2mermaid.mermaid.build import Mark
from graph2mermaid.mermaid.diagram import Look
from graph2mermaid.optimization import Way
from graph2mermaid.passes.ghosts import Ghosts
from graph2mermaid.provenance import How, NodeOrigin, Optimization, Provenance
from graph2mermaid.report.model import Block, Note, Paragraph, Section, Text
from graph2mermaid.views import changes, tables
from graph2mermaid.views.drawing import Overlay, draw
from graph2mermaid.views.flat import counted
from graph2mermaid.views.ghosts import ghosts_of
from graph2mermaid.views.options import Options
from graph2mermaid.views.pictures import key_of, overview, shown, tables_and_parts

_ROOM = 20
"""Labels are wrapped near this many characters; see the reading numbers in the documentation."""

_CORES = frozenset({"MatMul", "Conv2D", "Conv3D", "DepthwiseConv2dNative"})
_AFTER_CORE = frozenset(
    {"BiasAdd", "Add", "AddV2", "FusedBatchNormV3"}
    | {"Relu", "Relu6", "Elu", "LeakyRelu", "Tanh", "Sigmoid"}
)

_PLUMBING = frozenset({"Const", "Identity", "Placeholder", "ReadVariableOp", "NoOp", "_Arg"})
"""Ops that come with those a kernel is named for."""


def grappler(capture: Capture, options: Options) -> Section:
    """Return the section about what Grappler made of the traced graph.

    Args:
        capture: What was recorded of the target.
        options: How to draw.

    Raises:
        Graph2MermaidError: The capture holds no optimized graph; the message says how to get one.
    """
    if capture.optimization is None or Stage.GRAPPLER not in capture.graphs:
        raise Graph2MermaidError(_missing(capture))
    optimization, graph = capture.optimization, capture.graphs[Stage.GRAPPLER]
    traced = capture.graphs.get(Stage.TRACED)
    provenance = optimization.provenance
    ghosts = (
        ghosts_of(traced, provenance, simple=options.level == "simple")
        if options.ghosts and traced is not None
        else Ghosts()
    )
    firsts = first_of_equal(provenance)
    overlay = Overlay(marks_of(provenance), group_words(provenance), traced, firsts, ghosts)
    pictures = shown(draw(graph, options, overlay), options.out_dir) if len(graph) else []
    blocks: tuple[Block, ...] = (
        Paragraph(_what(optimization)),
        *_notes(optimization),
        *overview(graph, pictures, options.out_dir),
        *(Section(title, found) for title, found in changes.sections(optimization, traced)),
        *tables_and_parts(
            [("Ops by type after Grappler", tables.op_types(graph))], pictures, options.out_dir
        ),
    )
    return Section("Grappler graph", blocks, _summary(optimization), key=key_of(pictures[:1]))


def _missing(capture: Capture) -> str:
    failed = notes_on(capture, GRAPPLER_NOTE)
    if failed:
        return f"{capture.target}: {failed[0]}"
    return f"{capture.target}: the capture holds no optimized graph; record it with --view grappler"


def _summary(optimization: Optimization) -> str:
    provenance = optimization.provenance
    before, after = len(provenance.ops), len(provenance.nodes)
    return f"{counted(before, 'op')} became {after:,}"


def _what(optimization: Optimization) -> Text:
    """Say in a line how many ops became how many, and how that is known."""
    words = changes.in_words(optimization.provenance)
    came = f", {words}" if words else ""
    how = (
        "Recorded by TensorFlow while the function ran."
        if optimization.way is Way.RUN
        else "Found without running the function."
    )
    return f"What Grappler made of it: {_summary(optimization)}{came}. {how}"


def _notes(optimization: Optimization) -> Iterator[Note]:
    provenance = optimization.provenance
    unexplained = provenance.node_counts.get(How.UNEXPLAINED, 0) + changes.unexplained(provenance)
    if unexplained:
        yield Note(
            f"{counted(unexplained, 'op')} could not be mapped between the two graphs; "
            f"{100 * provenance.explained:.1f}% are."
        )
    for suspect in provenance.suspects:
        yield Note(changes.suspect_words(suspect, provenance), "warning")
    if optimization.options:
        pairs = ", ".join(f"{key}={value}" for key, value in optimization.options.items())
        yield Note(f"The program sets optimizer options: {pairs}.")
    if optimization.differences:
        ops = counted(len(optimization.differences), "op")
        yield Note(f"What ran differs from the offline result in {ops}; a table below lists them.")
    for note in optimization.notes:
        yield Note(note)


# -- what boxes say ---------------------------------------------------------------------------


def marks_of(provenance: Provenance) -> Mapping[str, Mark]:
    """Return what to say of each op of the optimized graph that is not simply kept."""
    marks = ((node.name, _mark(node, provenance)) for node in provenance.nodes.values())
    return {name: mark for name, mark in marks if mark is not None}


def _mark(node: NodeOrigin, provenance: Provenance) -> Mark | None:
    match node.how:
        case How.FUSED:
            return Mark(Look.FUSED, fused_lines(changes.op_types(node.origins, provenance)))
        case How.FOLDED:
            return Mark(Look.FOLDED, (f"folded: {counted(len(node.origins), 'op')}",))
        case How.CHANGED:
            was = f"was {node.was}" if node.was and node.was != node.op else "changed"
            return Mark(Look.CHANGED, (was,))
        case How.MERGED:
            return Mark(None, (f"for {len(node.origins):,} equal ops",))
        case How.ADDED:
            return Mark(Look.ADDED, (f"added: {node.why}"[:40] if node.why else "added",))
        case How.UNEXPLAINED:
            return Mark(None, ("origin unknown",))
    return None


def fused_lines(types: Sequence[str]) -> tuple[str, ...]:
    """Return `fused: MatMul,` and `BiasAdd, Relu`: what a kernel took in, on two short lines."""
    told = sorted([op for op in types if op not in _PLUMBING] or types, key=_place_in_kernel)
    first, second = f"fused: {told[0]}" if told else "fused", ""
    for at, op in enumerate(told[1:], 1):
        if not second and len(f"{first}, {op}") <= _ROOM:
            first = f"{first}, {op}"
        elif len(f"{second}, {op}") <= _ROOM + 2 or not second:
            second = f"{second}, {op}" if second else op
        else:
            second = f"{second} +{len(told) - at}"
            break
    return (f"{first},", second) if second else (first,)


def _place_in_kernel(op: str) -> int:
    """Sort key: the product or convolution, its bias and activation, and what else came along."""
    return 0 if op in _CORES else 1 if op in _AFTER_CORE else 2


def first_of_equal(provenance: Provenance) -> Mapping[str, str]:
    """Return, for each op that stands for equal ones as well, the first that was traced.

    Which of them the optimizer kept is chance: for one of the model it may be one of a gradient.
    """
    return {
        node.name: node.origins[0]
        for node in provenance.nodes.values()
        if node.how is How.MERGED and node.origins and "#" not in node.origins[0]
    }


_MOST_WORDS = 36
"""A line of a box is cut at 40 characters."""
_SAID = (How.FUSED, How.FOLDED, How.CHANGED, How.ADDED, How.MERGED)


def group_words(provenance: Provenance) -> Callable[[Iterable[str]], str]:
    """Return the function that says `6 fused, 14 folded` of the ops in a group.

    That equal constants are one is the case nearly everywhere, and says nothing.
    """
    nodes = provenance.nodes

    def words(names: Iterable[str]) -> str:
        found = Counter(
            nodes[name].how
            for name in names
            if name in nodes and (nodes[name].how, nodes[name].op) != (How.MERGED, "Const")
        )
        said = [f"{found[how]:,} {how.value}" for how in _SAID if found[how]]
        while len(", ".join(said)) > _MOST_WORDS:
            said[-2:] = ["…"]
        return ", ".join(said)

    return words
