"""Hypothesis strategies for graphs and captures: everything the classes can hold."""

from __future__ import annotations

from hypothesis import strategies as st

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

AWKWARD = (
    "end",
    "<lambda>",
    "a|b",
    "`tick`",
    "``` fence",
    "__init__",
    "*star*",
    "[link](url)",
    "# heading",
    "1. item",
    "- item",
    "x:0",
    "^control",
    "a/b/c",
    "line\nbreak",
    '"quoted"',
    "back\\slash",
    "&amp;",
    "日本語",
    "$x$",
    "...",
)
"""Names that mean something to Markdown, Mermaid, JSON or TensorFlow."""

words = st.sampled_from(AWKWARD) | st.text(max_size=12)
"""Any text, empty included."""

names = words.filter(bool)

dimensions = st.none() | st.integers(0, 2**15)

tensor_specs = st.builds(
    TensorSpec,
    st.sampled_from(("float32", "int64", "bool", "string", "resource", "float8_e5m2")) | words,
    st.none() | st.lists(dimensions, max_size=4).map(tuple),
)

scalars: st.SearchStrategy[Scalar] = (
    words | st.integers() | st.floats(allow_nan=False) | st.booleans() | st.none()
)

unknown_keys = st.dictionaries(
    words.map(lambda word: f"new {word}"),
    st.recursive(
        st.none() | st.booleans() | st.integers() | words,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
        max_leaves=5,
    ),
    max_size=2,
)
"""What a later version may write beside the known fields."""

source_lines = st.builds(SourceLine, words, st.integers(0, 10**6), words)

nodes = st.builds(
    Node,
    name=names,
    op=words,
    kind=st.sampled_from(NodeKind),
    outputs=st.lists(tensor_specs, max_size=3).map(tuple),
    api=st.none() | words,
    variable=st.none() | words,
    label=st.none() | words,
    value=st.none() | words,
    holds=st.none() | tensor_specs,
    attrs=st.dictionaries(words, scalars, max_size=2),
    device=words,
    source=st.none() | source_lines,
    calls=st.lists(st.builds(Call, words, words), max_size=2).map(tuple),
    members=st.lists(words, max_size=2).map(tuple),
    origin=st.lists(words, max_size=2).map(tuple),
    extra=unknown_keys,
)

ports = st.none() | st.integers(0, 5)

edges = st.builds(
    Edge,
    kind=st.sampled_from(EdgeKind),
    source_port=ports,
    target_port=ports,
    tensor=st.none() | tensor_specs,
    argument=st.none() | words,
    label=st.none() | words,
    count=st.integers(0, 1000),
    extra=unknown_keys,
)


@st.composite
def graphs(draw: st.DrawFn, *, most_nodes: int = 6, bodies: bool = True) -> Graph:
    """Graphs with edges in any direction, parallel ones and loops included."""
    found = draw(st.lists(nodes, max_size=most_nodes, unique_by=lambda node: node.name))
    arrows: list[Arrow] = []
    bindings: st.SearchStrategy[tuple[Binding, ...]] = st.just(())
    if found:
        ends = st.sampled_from([node.name for node in found])
        arrows = draw(st.lists(st.builds(Arrow, ends, ends, edges), max_size=2 * most_nodes))
        refs = st.lists(st.builds(TensorRef, ends, st.integers(0, 5)), max_size=3).map(tuple)
        bindings = st.lists(st.builds(Binding, words, refs, words), max_size=2).map(tuple)
    functions = st.dictionaries(words, graphs(most_nodes=3, bodies=False), max_size=2)
    return Graph.build(
        draw(words),
        draw(st.sampled_from(Stage)),
        found,
        arrows,
        inputs=draw(bindings),
        captures=draw(bindings),
        outputs=draw(bindings),
        functions=draw(functions) if bodies else {},
        source=draw(st.none() | source_lines),
        attrs=draw(st.dictionaries(words, scalars, max_size=2)),
        extra=draw(unknown_keys),
    )


captures = st.builds(
    Capture,
    target=words,
    name=words,
    graphs=st.dictionaries(st.sampled_from(Stage), graphs(), max_size=2),
    environment=st.builds(
        Environment, words, words, words, st.lists(words, max_size=2).map(tuple), unknown_keys
    ),
    notes=st.lists(words, max_size=2).map(tuple),
    extra=unknown_keys,
)
