"""The pictures of the memory view: blocks of memory with what takes turns in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from graph2mermaid.graph import Graph, Node, NodeKind
from graph2mermaid.liveness import Estimate, Tensor
from graph2mermaid.memory import Allocation, AllocationKind, MemoryPlan, Value
from graph2mermaid.mermaid.budget import READABLE_NODES
from graph2mermaid.mermaid.diagram import Box, Diagram, Frame, Link, Look
from graph2mermaid.mermaid.theme import legend
from graph2mermaid.views.options import Options
from graph2mermaid.views.pictures import counted_as

HELD = (AllocationKind.PARAMETER, AllocationKind.CONSTANT)
"""What is in memory all the time."""

_MOST_IN_ONE = 12
"""A block of memory with more values than this shows the largest of them."""
_MOST_SINGLE = 4
"""Of blocks with one value each, this many are drawn of each kind."""
_MOST_ALIVE = 12

_SINGLE = {
    AllocationKind.PARAMETER: "Arguments and variables",
    AllocationKind.CONSTANT: "Constants",
    AllocationKind.OUTPUT: "Results",
    AllocationKind.TEMPORARY: "Temporaries",
}


def size(nbytes: int) -> str:
    """Return `16.2 MB`, `2.0 kB`, `64 bytes`: steps of 1,000."""
    for unit, step in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if nbytes >= step:
            return f"{nbytes / step:,.1f} {unit}"
    return counted_as(nbytes, "byte")


class Names:
    """What the user knows values by."""

    def __init__(self, traced: Graph | None) -> None:
        self._graphs = () if traced is None else (traced, *traced.functions.values())
        self._variables = (
            set() if traced is None else {binding.name for binding in traced.captures}
        )

    def op(self, value: Value) -> str:
        """Return the TensorFlow op that a value comes from; the empty string for none."""
        first = value.op.partition(";")[0]
        return "" if first.startswith("XLA_") else first

    def node(self, value: Value) -> Node | None:
        """Return that op as it was traced.

        Inside a called function its name has those of the calls before it.
        """
        name = self.op(value)
        while name:
            for graph in self._graphs:
                if name in graph:
                    return graph[name]
            name = name.partition("/")[2]
        return None

    def title(self, value: Value) -> str:
        """Return a short name: of the Python variable, the op, or else the instruction."""
        node = self.node(value)
        if node is not None and node.variable and "," not in node.variable:
            return f"{node.variable} = {node.api or node.op}"
        op = self.op(value)
        return "/".join(op.split("/")[-2:]) if op else value.name

    def is_variable(self, label: str) -> bool:
        """Tell whether an argument of XLA's is a variable of the program."""
        return label in self._variables


@dataclass
class _Draft:
    """A diagram while it grows."""

    boxes: dict[str, Box] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def frame(self, key: str, lines: Sequence[str], boxes: Mapping[str, Box]) -> None:
        self.boxes |= boxes
        self.frames.append(Frame(key, tuple(lines), tuple(boxes)))


@dataclass(frozen=True)
class _Part:
    """A frame that a picture may have."""

    kind: AllocationKind
    blocks: tuple[Allocation, ...]
    shared: bool

    @property
    def nbytes(self) -> int:
        return sum(block.nbytes for block in self.blocks)


def of_plan(plan: MemoryPlan, names: Names, title: str, options: Options) -> Diagram:
    """Return the picture of a plan: the largest blocks first, and who has which after whom."""
    room = min(options.max_nodes or READABLE_NODES, READABLE_NODES)
    draft = _Draft()
    parts = _parts(plan)
    for at, part in enumerate(parts):
        left = room - len(draft.boxes)
        if left < 1:
            rest = [block for one in parts[at:] for block in one.blocks]
            words = counted_as(len(rest), "smaller allocation is", "smaller allocations are")
            total = size(sum(block.nbytes for block in rest))
            draft.left_out.append(f"{words} not drawn, {total} together.")
            break
        if part.shared:
            _draw_shared(draft, part.blocks[0], plan, names, min(left, _MOST_IN_ONE))
        else:
            _draw_single(draft, part, plan, names, min(left, _MOST_SINGLE))
    tables = sum(not any(v.type for v in block.values) for block in _blocks(plan))
    if tables:
        which = counted_as(tables, "table of addresses is", "tables of addresses are")
        draft.left_out.append(f"{which} not drawn.")
    described = f"{size(plan.nbytes)} in {counted_as(len(_blocks(plan)), 'allocation')}"
    return Diagram(
        f"Memory of {title}",
        described,
        draft.boxes,
        tuple(draft.links),
        tuple(draft.frames),
        options.direction,
        tuple(draft.left_out),
    )


def _blocks(plan: MemoryPlan) -> list[Allocation]:
    return [b for b in plan.allocations if b.kind is not AllocationKind.THREAD_LOCAL]


def _parts(plan: MemoryPlan) -> list[_Part]:
    """Return what could be drawn, the largest first: shared blocks, and the others by kind."""
    parts = []
    single: dict[AllocationKind, list[Allocation]] = {}
    for block in _blocks(plan):
        places = _arrays(plan, block)
        if len(places) > 1:
            parts.append(_Part(block.kind, (block,), shared=True))
        elif places:
            single.setdefault(block.kind, []).append(block)
    for kind, blocks in single.items():
        blocks.sort(key=lambda block: (-block.nbytes, block.index))
        parts.append(_Part(kind, tuple(blocks), shared=False))
    return sorted(parts, key=lambda part: (-part.nbytes, part.blocks[0].index))


def _arrays(plan: MemoryPlan, block: Allocation) -> list[Value]:
    """Return what a block holds, but for tables of addresses."""
    return [value for value in plan.places(block) if value.type]


def _draw_shared(
    draft: _Draft, block: Allocation, plan: MemoryPlan, names: Names, most: int
) -> None:
    values = _arrays(plan, block)
    shown = sorted(values, key=lambda value: (-value.nbytes, value.start, value.id))[:most]
    shown.sort(key=lambda value: (value.start, value.end, value.id))
    among = f"{len(values):,} values in turn"
    if len(shown) < len(values):
        among = f"the {len(shown):,} largest of {len(values):,} values"
        rest = sum(v.nbytes for v in values) - sum(v.nbytes for v in shown)
        which = counted_as(len(values) - len(shown), "value is", "values are")
        draft.left_out.append(
            f"{which} of allocation {block.index} not drawn, {size(rest)} together."
        )
    head = f"Allocation {block.index}: {block.kind.value}, {size(block.nbytes)}"
    boxes = {f"value {v.id}": _value_box(v, plan, names) for v in shown}
    draft.frame(f"allocation {block.index}", (head, among), boxes)
    before = plan.before(shown)
    for value in shown:
        for earlier in before[value.id]:
            words = ("in place",) if earlier.end == value.start else ()
            draft.links.append(Link(f"value {earlier.id}", f"value {value.id}", words))


def _value_box(value: Value, plan: MemoryPlan, names: Names) -> Box:
    peak = ", at the peak" if value.start <= plan.peak <= value.end else ""
    last = len(plan.schedule) - 1
    to = "end" if value.end > last else f"{value.end + 1:,}"
    steps = f"steps {value.start + 1:,} to {to}{peak}"
    return Box((names.title(value), f"{value.type} · {size(value.nbytes)}", steps))


def _draw_single(draft: _Draft, part: _Part, plan: MemoryPlan, names: Names, most: int) -> None:
    boxes = {}
    for block in part.blocks[:most]:
        value = _arrays(plan, block)[0]
        if part.kind in HELD:
            lines = (
                block.label or (names.title(value) if names.op(value) else value.name),
                f"{value.type} · {size(block.nbytes)}",
            )
            look = Look.VARIABLE if names.is_variable(block.label) else Look.INPUT
            look = Look.CONST if part.kind is AllocationKind.CONSTANT else look
            boxes[f"value {value.id}"] = Box(lines, look)
        else:
            boxes[f"value {value.id}"] = _value_box(value, plan, names)
    head = f"{_SINGLE[part.kind]}: {size(part.nbytes)}"
    among = counted_as(len(part.blocks), "allocation")
    if len(boxes) < len(part.blocks):
        among = f"the {len(boxes):,} largest of {among}"
    draft.frame(f"single {part.kind.value}", (head, among), boxes)


# -- an estimate ------------------------------------------------------------------------------


def of_estimate(
    found: Estimate, graph: Graph, names: Names, title: str, options: Options
) -> Diagram:
    """Return the picture of the moment at which most is in memory, and who waits for what."""
    room = min(options.max_nodes or READABLE_NODES, READABLE_NODES)
    draft = _Draft()
    alive = [tensor for tensor in found.alive(found.peak) if tensor.nbytes]
    shown = alive[: max(1, min(_MOST_ALIVE, (room - 1) // 2))]
    peak = found.order[found.peak] if found.order else ""
    if shown:
        nbytes = sum(tensor.nbytes for tensor in alive)
        among = counted_as(len(alive), "tensor")
        if len(shown) < len(alive):
            rest = alive[len(shown) :]
            words = counted_as(len(rest), "smaller tensor is", "smaller tensors are")
            total = size(sum(tensor.nbytes for tensor in rest))
            draft.left_out.append(f"{words} not drawn, {total} together.")
            among = f"the {len(shown)} largest of {among}"
        head = f"Estimate, while {_short(peak)} runs: {size(nbytes)}"
        boxes = {f"tensor {t.ref}": Box(_tensor_lines(t, graph)) for t in shown}
        draft.frame("alive", (head, among), boxes)
        for tensor in shown:
            _lead_to_reader(draft, tensor, found, graph)
    return Diagram(
        f"Memory of {title}, an estimate",
        f"What is in memory at the peak, {size(found.peak_nbytes)}",
        draft.boxes,
        tuple(draft.links),
        tuple(draft.frames),
        options.direction,
        (*draft.left_out, *_held_words(found)),
    )


def _held_words(found: Estimate) -> Iterator[str]:
    held = sum(found.by_kind.get(kind, 0) for kind in HELD)
    if held:
        yield f"Arguments, variables and constants are there all the time, {size(held)} together."


def _lead_to_reader(draft: _Draft, tensor: Tensor, found: Estimate, graph: Graph) -> None:
    """Lead a tensor to the op that it waits for."""
    if tensor.end >= len(found.order):
        draft.boxes.setdefault("caller", Box(("the caller",), Look.OUTPUT))
        draft.links.append(Link(f"tensor {tensor.ref}", "caller"))
    elif tensor.last_reader:
        key = f"reader {tensor.last_reader}"
        node = graph[tensor.last_reader]
        what = "running" if tensor.end == found.peak else f"op {tensor.end + 1:,}"
        of = f"{what} of {len(found.order):,}" if what != "running" else what
        draft.boxes.setdefault(key, Box((_short(node.name), node.op, of)))
        draft.links.append(Link(f"tensor {tensor.ref}", key))


def _tensor_lines(tensor: Tensor, graph: Graph) -> tuple[str, ...]:
    node = graph[tensor.ref.node]
    name = node.tensor_name(tensor.ref.port) if node.kind is NodeKind.OP else None
    first = f"{name} = {node.api or node.op}" if name else _short(str(tensor.ref).removesuffix(":0"))
    return (first, f"{tensor.spec} · {size(tensor.nbytes)}", f"made by op {tensor.start + 1:,}")


def _short(name: str) -> str:
    return "/".join(name.split("/")[-2:])


def legend_of(diagram: Diagram, *, estimate: bool) -> str:
    """Return the line that explains a picture of memory."""
    looks = legend(replace(diagram, frames=(), boxes={
        key: box for key, box in diagram.boxes.items() if box.look is not Look.OP
    }, links=()))
    if estimate:
        words = "Frame: what is in memory at the peak. Arrow: the op that reads it last."
    else:
        words = (
            "Frame: a block of memory. Box: a value, and the steps in which it is alive. "
            "Arrow: takes over memory from; `in place` while the other is being read."
        )
    return f"{words} {looks}".strip()
