"""From a flat graph to a diagram: what each box and each edge says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from graph2mermaid.graph import (
    STRUCTURAL_ARGUMENTS,
    Arrow,
    EdgeKind,
    Graph,
    Node,
    NodeKind,
    SourceLine,
)
from graph2mermaid.mermaid.diagram import Box, Diagram, Frame, Link, Look
from graph2mermaid.passes.devices import short_device
from graph2mermaid.passes.fold import is_iteration

_LOOKS: Mapping[NodeKind, Look] = {
    NodeKind.INPUT: Look.INPUT,
    NodeKind.OUTPUT: Look.OUTPUT,
    NodeKind.CONST: Look.CONST,
    NodeKind.VARIABLE: Look.VARIABLE,
    NodeKind.OP: Look.OP,
    NodeKind.CALL: Look.CALL,
    NodeKind.CONTROL_FLOW: Look.CONTROL,
    NodeKind.TENSOR: Look.TENSOR,
    NodeKind.GROUP: Look.GROUP,
    NodeKind.ELIDED: Look.ELIDED,
    NodeKind.GHOST: Look.GHOST,
}

# Kinds whose box names its own tensor, so that the edges out of it need not.
_NAMED = frozenset({NodeKind.INPUT, NodeKind.CONST, NodeKind.VARIABLE, NodeKind.TENSOR})

_SHORT_VALUE = 24


@dataclass(frozen=True, slots=True)
class FrameSpec:
    """A frame that a diagram may have: it is drawn when a node stands in it."""

    key: str
    lines: tuple[str, ...]
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """What a view says of a node beside what it is: how it came about, how long it took."""

    look: Look | None = None
    """How it is drawn; None leaves it as it is."""
    lines: tuple[str, ...] = ()
    """They follow the first line of the box."""


def build(
    graph: Graph,
    *,
    title: str,
    frames: Sequence[FrameSpec] = (),
    home: Mapping[str, str] | None = None,
    names: bool = False,
    by_device: bool = False,
    direction: str = "TD",
    left_out: Sequence[str] = (),
    marks: Mapping[str, Mark] | None = None,
) -> Diagram:
    """Return the diagram of a flat graph.

    Args:
        graph: What to draw, every node of it.
        title: For the diagram's accessible title.
        frames: Outer frames before inner ones.
        home: For each node inside a frame, the frame's key.
        names: Show each op's full name as well.
        by_device: Color what is placed on a device by it, and say which.
        direction: `TD` or `LR`.
        left_out: Sentences about what was left out before.
        marks: What a view says of some nodes.
    """
    boxes = {node.name: _box(node, names, by_device) for node in graph.nodes()}
    for name, mark in (marks or {}).items():
        if name in boxes:
            boxes[name] = _marked(boxes[name], mark)
    return Diagram(
        title=title,
        description=_description(graph, home or {}),
        boxes=boxes,
        links=tuple(_links(graph)),
        frames=_frames(frames, home or {}, boxes),
        direction=direction,
        left_out=tuple(left_out),
    )


def _box(node: Node, names: bool, by_device: bool) -> Box:
    lines = tuple(box_lines(node, names=names))
    device = short_device(node.device) if by_device else ""
    return Box((*lines[:2], device) if device else lines, look(node), device)


def _marked(box: Box, mark: Mark) -> Box:
    first, *rest = box.lines
    lines = (first, *mark.lines, *rest)[:3]
    return Box(lines, mark.look or box.look, box.tint)


def short_place(source: SourceLine) -> str:
    """Return `file.py:12` without the folders; tables have the whole path."""
    return f"{source.file.rpartition('/')[2]}:{source.line}"


def look(node: Node) -> Look:
    """Return how a node is drawn."""
    if node.kind is NodeKind.CONTROL_FLOW and node.op.endswith("Merge"):
        return Look.MERGE
    return _LOOKS[node.kind]


def box_lines(node: Node, *, names: bool = False) -> Iterable[str]:
    """Yield the lines of a node's box, at most three, each of about twenty characters."""
    lines = list(_words(node))
    if names and node.kind in (NodeKind.OP, NodeKind.CALL, NodeKind.CONST, NodeKind.GHOST):
        lines.append(node.name)
    return (lines or [node.name])[:3]


def _words(node: Node) -> Iterable[str]:
    match node.kind:
        case NodeKind.INPUT | NodeKind.OUTPUT:
            yield node.label or node.name
            yield from _spec(node)
        case NodeKind.TENSOR:
            yield node.label or ""
            yield from _spec(node)
        case NodeKind.VARIABLE:
            yield node.label or node.name
            yield str(node.holds) if node.holds else ", ".join(str(spec) for spec in node.outputs)
        case NodeKind.CONST:
            yield from _constant_words(node)
        case NodeKind.CONTROL_FLOW:
            yield from _control_words(node)
        case NodeKind.GROUP | NodeKind.ELIDED:
            yield node.label or node.name
            yield from (str(node.attrs[key]) for key in ("size", "types") if key in node.attrs)
        case NodeKind.CALL:
            yield f"calls {node.calls[0].function}" if node.calls else node.op
            if node.variable is None and node.source is not None:
                yield short_place(node.source)
        case NodeKind.OP:
            yield from _op_words(node)
        case NodeKind.GHOST:
            yield next(iter(_op_words(node)))
            yield f"removed: {node.attrs['removed']}"


def _spec(node: Node) -> Iterable[str]:
    if len(node.outputs) == 1:
        yield str(node.outputs[0])
    elif node.outputs:
        yield str(node.attrs.get("type") or f"{len(node.outputs)} tensors")


def _constant_words(node: Node) -> Iterable[str]:
    value = node.value
    if value is not None and len(value) <= _SHORT_VALUE:
        yield value
    elif node.outputs:
        text = value if value is not None and node.outputs[0].dtype == "string" else None
        yield "constant" if text is None else f"{text[: _SHORT_VALUE - 1]}…"
        yield str(node.outputs[0])


def _control_words(node: Node) -> Iterable[str]:
    if node.op.endswith("Merge"):
        yield node.variable or "merge"
        return
    statement = {"If": "if", "Case": "case", "While": "while"}.get(
        node.op.removeprefix("Stateless")
    )
    yield statement or node.op
    # What a loop was lowered to (Enter, Switch, Exit) is many ops of one line, said in a table.
    if statement and node.source is not None:
        yield short_place(node.source)


def _op_words(node: Node) -> Iterable[str]:
    if not node.api:
        yield node.op
    elif not node.api[0].isalpha():
        yield f"{node.api} {node.op}"
    elif _same_word(node.api.rpartition(".")[2], node.op):
        yield node.api
    else:
        yield node.op
        yield f"in {node.api}"
    details = [
        f"{_USER_WORDS.get(key, key)}={node.attrs[key]}"
        for key in node.attrs
        if _worth_a_line(key, node)
    ]
    if details:
        yield ", ".join(details[:2])


# What the public functions call these inputs.
_USER_WORDS: Mapping[str, str] = {
    "reduction_indices": "axis",
    "split_dim": "axis",
    "concat_dim": "axis",
    "dimension": "axis",
    "dim": "axis",
}
_SHOWN_ATTRS = frozenset({"strides", "padding", "transpose_a", "transpose_b", "adj_x", "adj_y"})


def _worth_a_line(key: str, node: Node) -> bool:
    """Words that a pass took from a constant are worth it (lower case names), few others are."""
    value = str(node.attrs[key])
    return key in STRUCTURAL_ARGUMENTS | _SHOWN_ATTRS and len(value) <= _SHORT_VALUE


def _same_word(function: str, op: str) -> bool:
    """Tell whether `multiply` and `Mul`, `matmul` and `MatMul`, `split` and `SplitV` are one."""
    plain_op = re.sub(r"V\d+$", "", op).lower()
    plain = function.replace("_", "").lower()
    if plain.startswith("assert") and plain_op != "assert":
        return False  # what is compared is one thing, the check another
    return plain_op in plain or plain in plain_op or plain[:3] == plain_op[:3]


def _links(graph: Graph) -> Iterable[Link]:
    """Yield one link for all parallel edges of the same words, in trace order."""
    seen: dict[tuple[str, str, tuple[str, ...], bool], int] = {}
    for arrow in graph.arrows():
        key = (arrow.source, arrow.target, tuple(_edge_words(graph, arrow)), _dotted(arrow))
        # A merged edge into a group stands for readers of the same tensor; its words count tensors.
        times = 1 if arrow.edge.target_port is None else arrow.edge.count
        seen[key] = seen.get(key, 0) + times
    for arrow in graph.back_edges:
        if not is_iteration(arrow.edge.label):  # closes a cycle of groups, and is an edge like any
            dotted = _dotted(arrow)
            seen.setdefault((*arrow[:2], tuple(_edge_words(graph, arrow)), dotted), 1)
            continue
        seen.setdefault((arrow.source, arrow.target, (arrow.edge.label or "",), True), 1)
    for (source, target, words, dotted), count in seen.items():
        repeated = () if count == 1 or dotted else (f"× {count}",)
        yield Link(source, target, (*words, *repeated)[:3], dotted)


def _dotted(arrow: Arrow) -> bool:
    return arrow.edge.kind is EdgeKind.CONTROL


def _edge_words(graph: Graph, arrow: Arrow) -> Iterable[str]:
    """Say what flows, unless the box that it comes from or goes to says so already."""
    edge = arrow.edge
    source, target = graph[arrow.source], graph[arrow.target]
    elided = NodeKind.ELIDED in (source.kind, target.kind)
    said = elided and edge.label in (source.label, target.label)  # by a stub at one end
    if edge.label is not None and not said:
        yield edge.label
    if edge.kind is EdgeKind.CONTROL:
        return
    if edge.source_port is None:  # several tensors in one
        if edge.tensor is not None:
            yield str(edge.tensor)
        elif edge.label is None:
            yield f"{edge.count} tensors"
        return
    if source.kind in _NAMED and edge.label is None:
        return
    if edge.label is None:
        yield from _tensor_words(source, target, edge.source_port)
    told = target.kind in (NodeKind.OUTPUT, NodeKind.TENSOR) and len(target.outputs) == 1
    if edge.tensor is not None and not told:
        yield str(edge.tensor)


def _tensor_words(source: Node, target: Node, port: int) -> Iterable[str]:
    """Name a tensor by its Python variable, and by TensorFlow's `op:port` past the first output."""
    named = source.kind not in (NodeKind.GROUP, NodeKind.ELIDED)
    name = source.tensor_name(port) if named else None
    told = target.kind in (NodeKind.OUTPUT, NodeKind.TENSOR) and target.label == name
    numbered = port and named and source.kind is not NodeKind.CONTROL_FLOW
    number = f"{source.name.rpartition('/')[2]}:{port}" if numbered else ""
    words = " = ".join(word for word in (name, number) if word)
    if words and not (told and not number):
        yield words


def _frames(
    specs: Sequence[FrameSpec], home: Mapping[str, str], boxes: Iterable[str]
) -> tuple[Frame, ...]:
    inside: dict[str, list[str]] = {}
    for name in boxes:
        if name in home:
            inside.setdefault(home[name], []).append(name)

    def made(parent: str | None) -> tuple[Frame, ...]:
        found = (
            Frame(spec.key, spec.lines, tuple(inside.get(spec.key, ())), made(spec.key))
            for spec in specs
            if spec.parent == parent
        )
        return tuple(frame for frame in found if not frame.empty)

    return made(None)


def _description(graph: Graph, home: Mapping[str, str]) -> str:
    """Count what is drawn; the arguments of a body that an op calls are not the function's."""
    ends = (NodeKind.INPUT, NodeKind.OUTPUT)
    kinds = Counter(
        Look.MERGE if look(node) is Look.MERGE else node.kind
        for node in graph.nodes()
        if not (node.kind in ends and node.name in home)
    )
    words: dict[NodeKind | Look, str] = {
        NodeKind.INPUT: "argument",
        NodeKind.VARIABLE: "variable",
        NodeKind.CONST: "constant",
        NodeKind.OP: "op",
        NodeKind.CALL: "call",
        NodeKind.CONTROL_FLOW: "control flow op",
        Look.MERGE: "merge",
        NodeKind.GROUP: "group",
        NodeKind.OUTPUT: "result",
        NodeKind.GHOST: "removed op",
    }
    parts = [
        f"{kinds[kind]} {word}{'' if kinds[kind] == 1 else 's'}"
        for kind, word in words.items()
        if kinds[kind]
    ]
    return f"Dataflow graph of {graph.name}: {', '.join(parts) or 'nothing'}"
