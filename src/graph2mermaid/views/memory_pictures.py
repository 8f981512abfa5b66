"""The pictures of the memory view: blocks of memory with what takes turns in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from graph2mermaid.graph import Graph, Node, NodeKind
from graph2mermaid.hlo import Origins
from graph2mermaid.liveness import Estimate, Tensor
from graph2mermaid.memory import Allocation, AllocationKind, MemoryPlan, Value
from graph2mermaid.mermaid.budget import READABLE_NODES
from graph2mermaid.mermaid.diagram import Box, Diagram, Frame, Link, Look
from graph2mermaid.mermaid.theme import legend
from graph2mermaid.views.flat import counted
from graph2mermaid.views.options import Options

HELD = (AllocationKind.PARAMETER, AllocationKind.CONSTANT)
"""What is in memory all the time."""

_MOST_IN_FIRST = 10
"""The largest block of memory shows so many of its values, the largest of them."""
_MOST_IN_OTHER = 5
_MOST_SINGLE = 4
"""Of blocks with one value each, this many are drawn of each kind."""
_MOST_ALIVE = 10
_LEAST_SHARE = 0.01
"""Constants that take less of the whole are not drawn: XLA makes one of every number."""

_SINGLE = {
    AllocationKind.PARAMETER: "Arguments, variables",
    AllocationKind.CONSTANT: "Constants",
    AllocationKind.OUTPUT: "Results",
    AllocationKind.TEMPORARY: "Temporaries",
}

_PLURAL = {
    AllocationKind.PARAMETER: "arguments and variables",
    AllocationKind.CONSTANT: "constants",
    AllocationKind.OUTPUT: "results",
    AllocationKind.TEMPORARY: "temporaries",
}

KINDS = {
    AllocationKind.PARAMETER: "Argument",
    AllocationKind.CONSTANT: "Constant",
    AllocationKind.OUTPUT: "Result",
    AllocationKind.TEMPORARY: "Temporary",
}
"""What a block of memory is for, in a word."""


def size(nbytes: int) -> str:
    """Return `16.2 MB`, `2.0 kB`, `64 bytes`: steps of 1,000."""
    for unit, step in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if nbytes >= step:
            return f"{nbytes / step:,.1f} {unit}"
    return counted(nbytes, "byte")


class Names:
    """What the user knows values by."""

    def __init__(self, traced: Graph | None, plan: MemoryPlan | None = None) -> None:
        self._origins = None if traced is None else Origins(traced)
        self._variables = set() if traced is None else set(_variables(traced))
        blocks = () if plan is None else plan.allocations
        values = [v for block in blocks if block.kind not in HELD for v in block.values]
        # Of the values that come from one op the last is its result.
        self._results = {v.op: v.id for v in sorted(values, key=lambda v: v.start)}

    def op(self, value: Value) -> str:
        """Return the TensorFlow op that a value comes from; the empty string for none."""
        first = value.op.partition(";")[0]
        return "" if first.startswith("XLA_") else first

    def node(self, value: Value) -> Node | None:
        """Return that op as it was traced."""
        if self._origins is None:
            return None
        places = self._origins.places(value.op)
        return self._origins.node(places[0]) if places else None

    def title(self, value: Value) -> str:
        """Return a short name: of the Python variable, the op, or else the instruction."""
        node = self.node(value) if self._results.get(value.op) == value.id else None
        if node is not None and node.variable and "," not in node.variable:
            return f"{node.variable} = {node.api or node.op}"
        op = self.op(value)
        return _short(op) if op else value.name

    def is_variable(self, label: str) -> bool:
        """Tell whether an argument of XLA's is a variable of the program."""
        return label in self._variables


def _variables(traced: Graph) -> Iterator[str]:
    """Yield the names of what a function has captured and can change."""
    for binding in traced.captures:
        for ref in binding.tensors:
            if ref.node in traced and traced[ref.node].kind is NodeKind.VARIABLE:
                yield traced[ref.node].label or binding.name


@dataclass
class _Draft:
    """A diagram while it grows."""

    boxes: dict[str, Box] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def largest_left(self) -> None:
        """Turn the order of the frames around: Mermaid draws frames without links from the right."""
        self.frames.reverse()
        keys = [key for frame in self.frames for key in frame.boxes]
        self.boxes = {key: self.boxes[key] for key in keys}

    def frame(self, key: str, title: str, boxes: Mapping[str, Box]) -> None:
        self.boxes |= boxes
        self.frames.append(Frame(key, (title,), tuple(boxes)))


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
    parts, small = _parts(plan)
    if small:
        together = size(sum(block.nbytes for block in small))
        which = counted(len(small), "small constant")
        draft.left_out.append(f"Not drawn: {which}, {together} together.")
    for at, part in enumerate(parts):
        left = room - len(draft.boxes)
        if left < 1:
            rest = [block for one in parts[at:] for block in one.blocks]
            which = counted(len(rest), "smaller allocation")
            total = size(sum(block.nbytes for block in rest))
            draft.left_out.append(f"Not drawn: {which}, {total} together.")
            break
        if part.shared:
            most = _MOST_IN_OTHER if any(one.shared for one in parts[:at]) else _MOST_IN_FIRST
            _draw_shared(draft, part.blocks[0], plan, names, min(left, most))
        else:
            _draw_single(draft, part, plan, names, min(left, _MOST_SINGLE))
    draft.largest_left()
    tables = sum(not any(v.type for v in block.values) for block in _blocks(plan))
    if tables:
        which = counted(tables, "table of addresses", "tables of addresses")
        draft.left_out.append(f"Not drawn: {which}.")
    described = f"{size(plan.nbytes)} in {counted(len(_blocks(plan)), 'allocation')}"
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


def _parts(plan: MemoryPlan) -> tuple[list[_Part], list[Allocation]]:
    """Return what could be drawn, and the constants that are too small for it.

    Shared blocks are parts of their own, the others one for each kind; the largest come first.
    """
    parts = []
    single: dict[AllocationKind, list[Allocation]] = {}
    for block in _blocks(plan):
        places = _arrays(plan, block)
        if len(places) > 1:
            parts.append(_Part(block.kind, (block,), shared=True))
        elif places:
            single.setdefault(block.kind, []).append(block)
    constants = single.get(AllocationKind.CONSTANT, [])
    small = []
    if sum(block.nbytes for block in constants) < _LEAST_SHARE * plan.nbytes:
        small = single.pop(AllocationKind.CONSTANT, [])
    for kind, blocks in single.items():
        blocks.sort(key=lambda block: (-block.nbytes, block.index))
        parts.append(_Part(kind, tuple(blocks), shared=False))
    return sorted(parts, key=lambda part: (-part.nbytes, part.blocks[0].index)), small


def _arrays(plan: MemoryPlan, block: Allocation) -> list[Value]:
    """Return what a block holds, but for tables of addresses."""
    return [value for value in plan.places(block) if value.type]


def _draw_shared(
    draft: _Draft, block: Allocation, plan: MemoryPlan, names: Names, most: int
) -> None:
    values = _arrays(plan, block)
    shown = sorted(values, key=lambda value: (-value.nbytes, value.start, value.id))[:most]
    shown.sort(key=lambda value: (value.start, value.end, value.id))
    among = f"{len(values):,} values"
    if len(shown) < len(values):
        among = f"{len(shown):,} of {len(values):,}"
        rest = sum(v.nbytes for v in values) - sum(v.nbytes for v in shown)
        which = counted(len(values) - len(shown), "smaller value")
        draft.left_out.append(
            f"Not drawn of allocation {block.index}: {which}, {size(rest)} together."
        )
    what = _short(block.label) if block.label else f"{KINDS[block.kind]} {block.index}"
    head = f"{what}: {size(block.nbytes)}, {among}"
    boxes = {f"value {v.id}": _value_box(v, plan, names, block.label) for v in shown}
    draft.frame(f"allocation {block.index}", head, boxes)
    before = plan.before(shown)
    for value in shown:
        for earlier in before[value.id]:
            words = ("in place",) if earlier.end == value.start else ()
            draft.links.append(Link(f"value {earlier.id}", f"value {value.id}", words))


def _value_box(value: Value, plan: MemoryPlan, names: Names, label: str = "") -> Box:
    peak = " · peak" if value.start <= plan.peak <= value.end else ""
    to = "end" if value.end >= len(plan.schedule) else f"{value.end + 1:,}"
    when = f"{size(value.nbytes)} · {value.start + 1:,}-{to}{peak}"
    title = label if label and value.opcode == "parameter" else names.title(value)
    return Box((title, value.type, when))


def _draw_single(draft: _Draft, part: _Part, plan: MemoryPlan, names: Names, most: int) -> None:
    boxes = {}
    for block in part.blocks[:most]:
        value = _arrays(plan, block)[0]
        if part.kind in HELD:
            lines = (block.label or value.name, value.type, size(block.nbytes))
            look = Look.VARIABLE if names.is_variable(block.label) else Look.INPUT
            look = Look.CONST if part.kind is AllocationKind.CONSTANT else look
            boxes[f"value {value.id}"] = Box(lines, look)
        else:
            boxes[f"value {value.id}"] = _value_box(value, plan, names)
    head = f"{_SINGLE[part.kind]}: {size(part.nbytes)}"
    if len(boxes) < len(part.blocks):
        rest = part.blocks[len(boxes) :]
        head += f", {len(boxes):,} of {len(part.blocks):,}"
        which = f"{len(rest):,} smaller {_PLURAL[part.kind]}"
        together = size(sum(b.nbytes for b in rest))
        draft.left_out.append(f"Not drawn: {which}, {together} together.")
    draft.frame(f"single {part.kind.value}", head, boxes)


# -- an estimate ------------------------------------------------------------------------------


def of_estimate(found: Estimate, graph: Graph, title: str, options: Options) -> Diagram:
    """Return the picture of the moment at which most is in memory, and who waits for what.

    It is always drawn from left to right: a tensor and its reader are a line.
    """
    room = min(options.max_nodes or READABLE_NODES, READABLE_NODES)
    draft = _Draft()
    alive = [tensor for tensor in found.alive(found.peak) if tensor.nbytes]
    shown = alive[: max(1, min(_MOST_ALIVE, (room - 1) // 2))]
    if shown:
        nbytes = sum(tensor.nbytes for tensor in alive)
        among = counted(len(alive), "tensor")
        if len(shown) < len(alive):
            rest = alive[len(shown) :]
            which = counted(len(rest), "smaller tensor")
            total = size(sum(tensor.nbytes for tensor in rest))
            draft.left_out.append(f"Not drawn: {which}, {total} together.")
            among = f"{len(shown)} of {among}"
        head = f"At the peak: {size(nbytes)}, {among}"
        boxes = {f"tensor {t.ref}": Box(_tensor_lines(t, graph)) for t in shown}
        draft.frame("alive", head, boxes)
        for tensor in shown:
            _lead_to_reader(draft, tensor, found, graph)
    return Diagram(
        f"Memory of {title}, an estimate",
        f"What is in memory at the peak, {size(found.peak_nbytes)}",
        draft.boxes,
        tuple(draft.links),
        tuple(draft.frames),
        "LR",
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
        when = f"op {tensor.end + 1:,} of {len(found.order):,}"
        peak = " · peak" if tensor.end == found.peak else ""
        draft.boxes.setdefault(key, Box((_short(node.name), node.op, f"{when}{peak}")))
        draft.links.append(Link(f"tensor {tensor.ref}", key))


def _tensor_lines(tensor: Tensor, graph: Graph) -> tuple[str, ...]:
    node = graph[tensor.ref.node]
    name = node.tensor_name(tensor.ref.port) if node.kind is NodeKind.OP else None
    first = (
        f"{name} = {node.api or node.op}" if name else _short(str(tensor.ref).removesuffix(":0"))
    )
    return (first, str(tensor.spec), f"{size(tensor.nbytes)} · op {tensor.start + 1:,}")


def _short(name: str) -> str:
    return "/".join(name.split("/")[-2:])


def legend_of(diagram: Diagram, *, estimate: bool) -> str:
    """Return the line that explains a picture of memory."""
    looks = legend(
        replace(
            diagram,
            frames=(),
            boxes={key: box for key, box in diagram.boxes.items() if box.look is not Look.OP},
            links=(),
        )
    )
    if estimate:
        words = "Frame: what is in memory at the peak. Arrow: the op that reads it last."
    else:
        words = (
            "Frame: a block of memory. Box: a value, its size, and the steps from which and until "
            "which it is needed; peak: when most memory is in use. Arrow: the memory goes on to a "
            "later value; in place: to the one that is made from it."
        )
    return f"{words} {looks}".strip()
