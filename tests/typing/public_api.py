"""The public API as a typed program uses it. Checked by mypy with the rest of the tests."""

from __future__ import annotations

from pathlib import Path

from typing_extensions import assert_type

import graph2mermaid
from graph2mermaid import (
    Arrow,
    Binding,
    Call,
    Capture,
    Edge,
    EdgeKind,
    Environment,
    Graph,
    Node,
    NodeKind,
    Report,
    SourceLine,
    Stage,
    TensorRef,
    TensorSpec,
)


def double(x: float) -> float:
    """Something to trace."""
    return x * 2.0


def trace_takes_any_callable() -> None:
    """Example values and specs may be of any type; the result is a capture."""
    spec = TensorSpec("float32", (None, 4))
    assert_type(graph2mermaid.trace(double, spec), Capture)
    assert_type(graph2mermaid.trace(lambda: 1.0), Capture)
    assert_type(graph2mermaid.trace(double, kwargs={"x": 2.0}), Capture)
    graph2mermaid.trace(3)  # type: ignore[arg-type]  # not callable
    graph2mermaid.trace(double, x=2.0)  # type: ignore[call-arg]  # names go into kwargs


def load_may_give_several() -> None:
    """A file may hold one capture or several, and the caller has to look."""
    loaded = graph2mermaid.load(Path("model.keras"))
    assert_type(loaded, Capture | tuple[Capture, ...])
    loaded.save("x.g2m.json")  # type: ignore[union-attr]
    captures = loaded if isinstance(loaded, tuple) else (loaded,)
    assert_type(captures, tuple[Capture, ...])
    graph2mermaid.load(3)  # type: ignore[arg-type]


def what_a_capture_holds(capture: Capture) -> None:
    """No part of a capture is untyped."""
    assert_type(capture.traced, Graph)
    assert_type(capture.graphs[Stage.TRACED], Graph)
    assert_type(capture.environment, Environment)
    assert_type(capture.environment.devices, tuple[str, ...])
    assert_type(capture.notes, tuple[str, ...])
    assert_type(capture.to_mermaid(), str)
    assert_type(capture.report(["traced"], level="ops"), Report)
    assert_type(capture.report().to_markdown(), str)
    capture.name = "other"  # type: ignore[misc]  # frozen


def what_a_graph_holds(graph: Graph) -> None:
    """Nodes and edges come as what they are, and so do their parts."""
    for node in graph.nodes():
        assert_type(node, Node)
        assert_type(node.kind, NodeKind)
        assert_type(node.outputs, tuple[TensorSpec, ...])
        assert_type(node.source, SourceLine | None)
        assert_type(node.calls, tuple[Call, ...])
    for source, _target, edge in graph.arrows():
        assert_type(source, str)
        assert_type(edge, Edge)
        assert_type(edge.kind, EdgeKind)
    assert_type(graph.incoming("m"), tuple[Arrow, ...])
    assert_type(graph.inputs, tuple[Binding, ...])
    assert_type(graph.inputs[0].tensors, tuple[TensorRef, ...])
    assert_type(graph.tensor(TensorRef("m")), TensorSpec | None)
    assert_type(list(graph.dag.successors("m")), list[str])


def every_error_is_of_one_family() -> str:
    """One clause catches whatever a user can put right."""
    try:
        graph2mermaid.load("x")
    except graph2mermaid.Graph2MermaidError as error:
        return str(error)
    return graph2mermaid.__version__
