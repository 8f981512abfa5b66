"""Graphs and captures written as text, so that tests read like the graph they are about.

A text is statements on lines of their own (or separated by `;`). A statement is a chain of nodes
and arrows, separated by spaces:

    x:Placeholder float32[?,4] -> m:MatMul -> r:Relu => result
    w:Const float32[4,4] value=1.0 -> m

Nodes
    `name:Op`          declares a node; later mentions are the `name` alone. Slashes make scopes.
    `float32[2,?]`     after it: the spec of its next output. `[]` is a scalar, `[...]` unknown rank.
    `key=value`        after it: `api`, `var`, `label`, `value`, `device`, `kind`, `src` (file:line or
                       file:line:function), `members` and `origin` (separated by commas), `calls`
                       (`then_branch=on_true,else_branch=on_false`), `holds` (the spec of a
                       variable's value) and `attr.NAME` (`attr.axis=-1`).
    The kind follows from the op: Placeholder is an input (with `holds` or a resource output: a
    variable), Const a constant, If/Case/While control flow, PartitionedCall a call, anything else
    an op.

Arrows
    `->`               a tensor: from output 0 to the next free input
    `-1>`              from output 1 to the next free input
    `-1:2>`            from output 1 to input 2
    `-(axis)>`         the consumer calls this input `axis`; `-1:2(axis)>` is all of them
    `~>`               a control edge
    `=> result`        the chain ends here: output 0 is the function's result of that name;
                       `=1> result` for output 1

Every Placeholder of the kind input becomes a binding in `inputs`, every variable one in `captures`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graph2mermaid.capture import Capture, Environment
from graph2mermaid.graph import (
    Arrow,
    Binding,
    Call,
    Edge,
    EdgeKind,
    Graph,
    Node,
    NodeKind,
    Scalar,
    SourceLine,
    Stage,
    TensorRef,
    TensorSpec,
)

MULTIPLY_ADD = """
    x:Placeholder float32[?,4]
    y:Placeholder float32[?,4]
    b:Placeholder float32[4]
    x -> Mul:Mul float32[?,4] api=tf.multiply var=product src=model.py:6:multiply_add
    y -> Mul -> add:AddV2 float32[?,4] api=tf.add var=result src=model.py:7:multiply_add
    b -> add -> Identity:Identity float32[?,4] => result
"""
"""The function that every newcomer sees first: `result = tf.add(tf.multiply(x, y), b)`."""

_CONTROL_FLOW = {"If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile"}
_CALLS = {"PartitionedCall", "StatefulPartitionedCall", "TPUPartitionedCall"}
_ARROW = re.compile(r"-(\d+)?(?::(\d+))?(?:\((\w+)\))?>|(~>)")
_RESULT = re.compile(r"=(\d*)>")
_SPEC = re.compile(r"(\w+)\[(.*)\]")


def spec(text: str) -> TensorSpec:
    """Read `float32[8,?]`, `int32[]`, `float32[...]`."""
    found = _SPEC.fullmatch(text)
    if not found:
        raise ValueError(f"not a tensor spec: {text!r}")
    dtype, dims = found.groups()
    if dims == "...":
        return TensorSpec(dtype, None)
    return TensorSpec(dtype, tuple(None if n == "?" else int(n) for n in dims.split(",") if n))


def graph(
    text: str = "",
    *,
    name: str = "f",
    scope: str = "",
    stage: Stage = Stage.TRACED,
    functions: Mapping[str, str | Graph] | None = None,
    source: str = "",
    **rest: Any,
) -> Graph:
    """Build a graph from text.

    Args:
        text: What it is made of, in the syntax of this module.
        name: The function's name.
        scope: A prefix for the name of every node.
        stage: Where in the pipeline it was taken.
        functions: The bodies, as text or as graphs, by the name that `calls=` uses.
        source: Where the function stands, `file:line`.
        rest: Further fields of `Graph`, which win over what follows from the text.
    """
    draft = _Draft(f"{scope}/" if scope else "")
    for statement in re.split(r"[\n;]", text):
        if statement.strip():
            draft.read(statement.split())
    nodes = [node.finish() for node in draft.nodes.values()]
    by_kind = {
        kind: tuple(_binding(node) for node in nodes if node.kind is kind)
        for kind in (NodeKind.INPUT, NodeKind.VARIABLE)
    }
    bodies = {
        key: graph(body, name=key, stage=stage) if isinstance(body, str) else body
        for key, body in (functions or {}).items()
    }
    fields: dict[str, Any] = {
        "inputs": by_kind[NodeKind.INPUT],
        "captures": by_kind[NodeKind.VARIABLE],
        "outputs": tuple(draft.outputs),
        "functions": bodies,
        "source": source_line(source),
        **rest,
    }
    return Graph.build(name, stage, nodes, draft.arrows(), **fields)


def capture(traced: str | Graph, *, target: str = "model.py:f", **rest: Any) -> Capture:
    """Build a capture of one traced graph, made by TensorFlow 2.21.0 on one CPU."""
    built = graph(traced) if isinstance(traced, str) else traced
    fields: dict[str, Any] = {
        "name": built.name,
        "graphs": {Stage.TRACED: built},
        "environment": Environment("2.21.0", "3.15.0", "3.11.2", ("1 x CPU",)),
        **rest,
    }
    return Capture(target, **fields)


def source_line(text: str) -> SourceLine | None:
    """Read `file:line` or `file:line:function`; the empty string is None."""
    if not text:
        return None
    file, line, *function = text.split(":")
    return SourceLine(file, int(line), *function)


def _binding(node: Node) -> Binding:
    type_ = str(node.outputs[0]) if node.outputs else ""
    if node.holds:
        type_ = f"Variable {node.holds}"
    return Binding(node.label or node.name, (TensorRef(node.name),), type_)


@dataclass
class _DraftNode:
    name: str
    op: str
    outputs: list[TensorSpec] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)
    attrs: dict[str, Scalar] = field(default_factory=dict)

    def add(self, token: str) -> None:
        key, equals, value = token.partition("=")
        if not equals:
            self.outputs.append(spec(token))
        elif key.startswith("attr."):
            self.attrs[key[5:]] = _scalar(value)
        else:
            self.words[key] = value
            if key == "holds":
                self.outputs.append(TensorSpec("resource", ()))

    def finish(self) -> Node:
        words: dict[str, Any] = dict(self.words)
        calls = [pair.partition("=") for pair in words.pop("calls", "").split(",") if pair]
        fields: dict[str, Any] = {
            "kind": NodeKind(words.pop("kind", self._kind())),
            "calls": tuple(Call(role, function) for role, _, function in calls),
            "source": source_line(words.pop("src", "")),
            "variable": words.pop("var", None),
            "holds": spec(words.pop("holds")) if "holds" in words else None,
        }
        for key in ("members", "origin"):
            fields[key] = tuple(filter(None, words.pop(key, "").split(",")))
        return Node(
            self.name, self.op, outputs=tuple(self.outputs), attrs=self.attrs, **fields, **words
        )

    def _kind(self) -> NodeKind:
        if self.op == "Placeholder":
            resource = bool(self.outputs) and self.outputs[0].dtype == "resource"
            return NodeKind.VARIABLE if resource else NodeKind.INPUT
        if self.op == "Const":
            return NodeKind.CONST
        if self.op in _CONTROL_FLOW:
            return NodeKind.CONTROL_FLOW
        return NodeKind.CALL if self.op in _CALLS else NodeKind.OP


def _scalar(text: str) -> Scalar:
    words: dict[str, Scalar] = {"True": True, "False": False, "None": None}
    if text in words:
        return words[text]
    if re.fullmatch(r"[-+]?\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"[-+]?\d*\.\d+(e[-+]?\d+)?", text) else text


@dataclass
class _DraftArrow:
    source: str
    target: str
    control: bool
    source_port: int
    target_port: int | None
    argument: str | None


@dataclass
class _Draft:
    prefix: str
    nodes: dict[str, _DraftNode] = field(default_factory=dict)
    links: list[_DraftArrow] = field(default_factory=list)
    outputs: list[Binding] = field(default_factory=list)

    def read(self, tokens: list[str]) -> None:
        current: str | None = None
        arrow: re.Match[str] | None = None
        result: re.Match[str] | None = None
        for token in tokens:
            if result and current:
                self.outputs.append(self._result(token, current, int(result[1] or 0)))
                result = None
            elif current is None or arrow:
                current, arrow = self._mention(token, current, arrow), None
            else:
                result, arrow = _RESULT.fullmatch(token), _ARROW.fullmatch(token)
                if not result and not arrow:
                    self.nodes[current].add(token)
        if arrow or result:
            raise ValueError(f"an arrow leads nowhere: {' '.join(tokens)}")

    def _mention(self, token: str, before: str | None, arrow: re.Match[str] | None) -> str:
        short, colon, op = token.partition(":")
        name = self.prefix + short
        if colon:
            if name in self.nodes:
                raise ValueError(f"{name!r} is declared twice")
            self.nodes[name] = _DraftNode(name, op)
        elif name not in self.nodes:
            raise ValueError(f"{name!r} is not declared; write {short}:OpType")
        if before is not None and arrow:
            out, into, argument, control = arrow.groups()
            self.links.append(
                _DraftArrow(
                    before,
                    name,
                    bool(control),
                    int(out or 0),
                    None if into is None else int(into),
                    argument,
                )
            )
        return name

    def _result(self, name: str, node: str, port: int) -> Binding:
        outputs = self.nodes[node].outputs
        type_ = str(outputs[port]) if port < len(outputs) else ""
        return Binding(name, (TensorRef(node, port),), type_)

    def arrows(self) -> list[Arrow]:
        used: Counter[str] = Counter()
        made = []
        for link in self.links:
            if link.control:
                edge = Edge(EdgeKind.CONTROL, None, None)
            else:
                port = used[link.target] if link.target_port is None else link.target_port
                used[link.target] = max(used[link.target], port + 1)
                outputs = self.nodes[link.source].outputs
                tensor = outputs[link.source_port] if link.source_port < len(outputs) else None
                edge = Edge(EdgeKind.DATA, link.source_port, port, tensor, link.argument)
            made.append(Arrow(link.source, link.target, edge))
        return made
