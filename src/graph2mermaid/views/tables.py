"""The tables of a graph: what goes in and out, which ops there are, where they come from."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from graph2mermaid.graph import Binding, EdgeKind, Graph, Node, NodeKind, SourceLine, TensorRef
from graph2mermaid.mermaid.diagram import Diagram, Frame
from graph2mermaid.mermaid.escape import shown
from graph2mermaid.report.model import Code, Column, Link, Ref, Table, Text, parts

MOST_ROWS = 20
"""Longer tables are cut to this many rows, and say how many more there are."""
_MOST_NAMES = 100
"""The same for full names, which stand nowhere else."""
_MOST_WORDS = 6
"""How many names stand in one cell."""

_Row = TypeVar("_Row")


def summary(graph: Graph) -> Table:
    """Count what the graph is made of, the bodies of functions apart."""
    bodies = list(graph.functions.values())
    edges = Counter[EdgeKind]()
    for arrow in (*graph.arrows(), *graph.back_edges):
        edges[arrow.edge.kind] += arrow.edge.count
    variables = list(_variables(graph))
    counted = [node for node in variables if _holds_numbers(node)]
    rows: list[tuple[Text, Text]] = [("Ops", f"{len(graph):,}")]
    if bodies:
        rows.append(("Ops in function bodies", f"{sum(map(len, bodies)):,}"))
    rows.append(("Data edges", f"{edges[EdgeKind.DATA]:,}"))
    rows.append(("Control edges", f"{edges[EdgeKind.CONTROL]:,}"))
    rows.append(("Variables", f"{len(counted):,}"))
    if len(counted) < len(variables):
        rows.append(("Other resources", f"{len(variables) - len(counted):,}"))
    rows.append(("Parameters (elements of the variables)", parameters(counted)))
    rows.append(("Functions", f"{len(bodies):,}"))
    return Table((Column("What"), Column("Count", number=True)), tuple(rows))


def parameters(variables: Sequence[Node]) -> str:
    """Return the number of elements of all variables, and how far it can be trusted."""
    sizes = [node.holds.size if node.holds else None for node in variables]
    total = sum(size for size in sizes if size is not None)
    unknown = sizes.count(None)
    if not unknown:
        return readable_count(total)
    which = "1 variable" if unknown == 1 else f"{unknown:,} variables"
    return f"at least {readable_count(total)}: the shape of {which} is unknown"


def readable_count(number: int) -> str:
    """Return a number with thousands separators; from 10,000 on with a rounded one before it."""
    for name, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= max(size, 10_000):
            return f"{number / size:.1f} {name} ({number:,})"
    return f"{number:,}"


def interface(graph: Graph) -> Table | None:
    """List what goes in and out, under the names the user knows."""
    groups = (("input", graph.inputs), ("capture", graph.captures), ("output", graph.outputs))
    rows: list[tuple[Text, ...]] = []
    left_out: list[str] = []
    for role, bindings in groups:
        kept, more = cut(bindings, role)
        left_out += [more] if more else []
        rows += [_interface_row(graph, role, binding) for binding in kept]
    if not rows:
        return None
    columns = (
        Column("Name"),
        Column("Role"),
        Column("Type"),
        Column("Bytes", number=True),
        Column("Op"),
    )
    return Table(columns, tuple(rows), and_more(*left_out))


def op_types(graph: Graph) -> Table | None:
    """Count the ops of each type, most frequent first."""
    top = Counter(node.op for node in graph.nodes())
    inside = Counter(node.op for body in graph.functions.values() for node in body.nodes())
    both = top + inside
    if not both:
        return None
    total = both.total()
    ranked = sorted(both.items(), key=lambda item: (-item[1], item[0]))
    kept, more = cut(ranked, "op type")
    rows: list[tuple[Text, ...]] = []
    for op, count in kept:
        counts = (f"{top[op]:,}", f"{inside[op]:,}") if inside else (f"{count:,}",)
        rows.append((Code(op), *counts, _share(count, total)))
    titles = ("Ops", "In bodies", "Share") if inside else ("Ops", "Share")
    columns = (Column("Op type"), *(Column(title, number=True) for title in titles))
    return Table(columns, tuple(rows), and_more(more))


def source_lines(graph: Graph) -> Table | None:
    """Count the ops that each line of the user made, those in bodies included."""
    by_line: defaultdict[SourceLine, Counter[str]] = defaultdict(Counter)
    elsewhere = 0
    for part in (graph, *graph.functions.values()):
        for node in part.nodes():
            if node.source is None:
                elsewhere += 1
            else:
                by_line[SourceLine(node.source.file, node.source.line)][node.op] += 1
    if not by_line:
        return None
    ranked = sorted(
        by_line.items(), key=lambda item: (-item[1].total(), item[0].file, item[0].line)
    )
    kept, more = cut(ranked, "line")
    rows = tuple((Code(str(line)), f"{ops.total():,}", _op_words(ops)) for line, ops in kept)
    columns = (Column("Line"), Column("Ops", number=True), Column("Op types"))
    return Table(columns, rows, _joined(and_more(more), _without_line(elsewhere)))


def function_bodies(graph: Graph) -> Table | None:
    """List the functions that ops call, and where from."""
    if not graph.functions:
        return None
    callers: defaultdict[str, list[Text]] = defaultdict(list)
    for key, owner in (("", graph), *graph.functions.items()):
        for node in owner.nodes():
            for call in node.calls:
                by = Code(f"{node.name} ({call.role})")
                callers[call.function].append((by, " in ", Code(key)) if key else by)
    kept, more = cut(list(graph.functions.items()), "function")
    rows: list[tuple[Text, ...]] = []
    for key, body in kept:
        numbers = (len(body), len(body.inputs) + len(body.captures), len(body.outputs))
        rows.append((Code(key), listed(callers[key]), *(f"{number:,}" for number in numbers)))
    columns = (
        Column("Function"),
        Column("Called by"),
        *(Column(title, number=True) for title in ("Ops", "Inputs", "Outputs")),
    )
    return Table(columns, tuple(rows), and_more(more))


def full_names(diagrams: Iterable[Diagram]) -> Table | None:
    """List the labels of diagrams that had to be cut, with their full words."""
    rows = {}
    for lines in dict.fromkeys(lines for diagram in diagrams for lines in _labels(diagram)):
        words = [" ".join(line.split()) for line in lines if line.strip()]
        if list(shown(lines)) != words:
            rows[" / ".join(words)] = " / ".join(shown(lines))
    if not rows:
        return None
    kept, more = cut(list(rows.items()), "name", _MOST_NAMES)
    columns = (Column("In the diagram"), Column("Full name"))
    cells = tuple((Code(cut), Code(full)) for full, cut in kept)
    return Table(columns, cells, and_more(more))


def _variables(graph: Graph) -> Iterator[Node]:
    """Yield one node for each variable, table or iterator that the function does not own.

    The parts of a distributed variable are one capture with several handles.
    """
    bound: set[str] = set()
    for binding in graph.captures:
        nodes = [graph[ref.node] for ref in binding.tensors if ref.node in graph]
        bound.update(node.name for node in nodes)
        yield from [node for node in nodes if node.kind is NodeKind.VARIABLE][:1]
    for node in graph.nodes():
        if node.kind is NodeKind.VARIABLE and node.name not in bound:
            yield node


def _holds_numbers(node: Node) -> bool:
    """Tell variables from tables and iterators, which have no shape of their own."""
    return node.holds is not None or "Var" in node.op


def _interface_row(graph: Graph, role: str, binding: Binding) -> tuple[Text, ...]:
    sizes = [_nbytes(graph, ref) for ref in binding.tensors]
    known = [size for size in sizes if size is not None]
    nbytes = f"{sum(known):,}" if known and len(known) == len(sizes) else "?" if sizes else ""
    ops = [Code(ref.node if ref.port == 0 else str(ref)) for ref in binding.tensors]
    type_ = Code(binding.type) if binding.type else ""
    return (Code(binding.name), role, type_, nbytes, listed(ops))


def _nbytes(graph: Graph, ref: TensorRef) -> int | None:
    if ref.node not in graph:
        return None
    holds = graph[ref.node].holds
    tensor = holds if holds is not None else graph.tensor(ref)
    return tensor.nbytes if tensor else None


def _op_words(ops: Counter[str]) -> Text:
    ranked = sorted(ops.items(), key=lambda item: (-item[1], item[0]))
    return listed(
        [
            (Code(op), f" \N{MULTIPLICATION SIGN} {count:,}") if count > 1 else Code(op)
            for op, count in ranked
        ]
    )


def listed(words: Sequence[Text]) -> Text:
    """Return words with commas between, the first few of them."""
    found: list[str | Code | Link | Ref] = []
    for word in words[:_MOST_WORDS]:
        found += [", ", *parts(word)] if found else parts(word)
    if len(words) > _MOST_WORDS:
        found.append(f" and {len(words) - _MOST_WORDS:,} more")
    return tuple(found)


def _share(count: int, total: int) -> str:
    return f"{100 * count / total:.1f}%"


def cut(rows: Sequence[_Row], noun: str, most: int = MOST_ROWS) -> tuple[Sequence[_Row], str]:
    """Return the first rows, and words for the rest: `12 more op types`."""
    rest = len(rows) - most
    if rest <= 0:
        return rows, ""
    return rows[:most], f"{rest:,} more {noun}{'s' if rest > 1 else ''}"


def and_more(*left_out: str) -> str:
    """Return the caption that says what a table leaves out."""
    words = [words for words in left_out if words]
    return f"... and {', '.join(words)}." if words else ""


def _without_line(count: int) -> str:
    if not count:
        return ""
    ops = "1 op has" if count == 1 else f"{count:,} ops have"
    return f"{ops} no line in your code: arguments, results and what TensorFlow adds by itself."


def _joined(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


def _labels(diagram: Diagram) -> Iterator[tuple[str, ...]]:
    yield from (box.lines for box in diagram.boxes.values())
    for frame in diagram.frames:
        yield from _frame_labels(frame)
    yield from (link.lines for link in diagram.links)


def _frame_labels(frame: Frame) -> Iterator[tuple[str, ...]]:
    yield frame.lines
    for inner in frame.frames:
        yield from _frame_labels(inner)
