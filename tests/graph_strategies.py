"""Hypothesis strategies for graphs and captures: everything the classes can hold."""

from __future__ import annotations

from dataclasses import replace

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


FLOAT = TensorSpec("float32", (2, 3))
_HANDLE = TensorSpec("resource", ())
_SCOPES = ("net", "block_0", "block_1", "block_2", "head", "gradient_tape", "Adam")
_UNARY = ("Relu", "Exp", "Neg", "Tanh")


class _Body:
    """A function while it is being made: its ops, and the tensors that a next one can read.

    The op names are unique in all functions of one drawing, so that a test can count them there.
    """

    def __init__(self, draw: st.DrawFn, functions: dict[str, Graph], serial: list[int]) -> None:
        self.draw = draw
        self.functions = functions
        self.serial = serial
        self.nodes: list[Node] = []
        self.arrows: list[Arrow] = []
        self.tensors: list[TensorRef] = []
        self.variables: list[str] = []
        self.inputs: list[Binding] = []

    def name(self, word: str, scope: str | None = None) -> str:
        self.serial[0] += 1
        if scope is None:
            scope = "/".join(self.draw(st.lists(st.sampled_from(_SCOPES), max_size=3)))
        return f"{scope}/{word}_{self.serial[0]}" if scope else f"{word}_{self.serial[0]}"

    def add(self, node: Node, *reads: TensorRef) -> str:
        self.nodes.append(node)
        for port, ref in enumerate(reads):
            self.arrows.append(
                Arrow(ref.node, node.name, Edge(EdgeKind.DATA, ref.port, port, FLOAT))
            )
        self.tensors += [TensorRef(node.name, port) for port in range(len(node.outputs))]
        return node.name

    def op(self, word: str, *reads: TensorRef, outputs: int = 1, scope: str | None = None) -> str:
        return self.add(Node(self.name(word, scope), word, outputs=(FLOAT,) * outputs), *reads)

    def argument(self) -> TensorRef:
        name = self.name("arg", "")
        node = Node(name, "Placeholder", NodeKind.INPUT, (FLOAT,), label=name)
        self.inputs.append(Binding(name, (TensorRef(name),), str(FLOAT)))
        return TensorRef(self.add(node))

    def tensor(self) -> TensorRef:
        return self.draw(st.sampled_from(self.tensors[-12:]))

    # -- steps ------------------------------------------------------------------------------

    def plain(self) -> None:
        word = self.draw(st.sampled_from((*_UNARY, "AddV2", "Concat", "Split", "Unstack")))
        reads = {"AddV2": 2, "Concat": 4}.get(word, 1)
        outputs = {"Split": 3, "Unstack": self.draw(st.sampled_from((2, 5, 60)))}.get(word, 1)
        first = self.tensor()
        same = self.draw(st.booleans())  # parallel edges
        self.op(word, *(first if same else self.tensor() for _ in range(reads)), outputs=outputs)

    def plumbing(self) -> None:
        word = self.draw(st.sampled_from(("Identity", "NoOp", "Const", "axis", "read", "assign")))
        if word == "Identity":
            self.op("Identity", self.tensor())
        elif word == "NoOp":
            self.nodes.append(Node(self.name("NoOp"), "NoOp"))
            self.order()
        elif word in ("Const", "axis"):
            spec = TensorSpec("int32", ())
            const = Node(self.name("Const"), "Const", NodeKind.CONST, (spec,), value="0")
            self.nodes.append(const)
            reader = self.op("Mean", self.tensor())
            argument = "axis" if word == "axis" else "input"
            self.arrows.append(Arrow(const.name, reader, Edge(EdgeKind.DATA, 0, 1, spec, argument)))
        elif self.variables:
            variable = self.draw(st.sampled_from(self.variables))
            word, outputs = ("ReadVariableOp", (FLOAT,)) if word == "read" else ("AssignOp", ())
            user = Node(self.name(word), word, outputs=outputs)
            values = () if outputs else (self.tensor(),)
            self.add(user)
            self.arrows.append(Arrow(variable, user.name, Edge(EdgeKind.DATA, 0, 0, _HANDLE)))
            for ref in values:
                edge = Edge(EdgeKind.DATA, ref.port, 1, FLOAT)
                self.arrows.append(Arrow(ref.node, user.name, edge))

    def order(self) -> None:
        """Have a node wait for an earlier one."""
        if len(self.nodes) > 1:
            first, second = sorted(
                self.draw(
                    st.lists(
                        st.integers(max(0, len(self.nodes) - 20), len(self.nodes) - 1),
                        min_size=2,
                        max_size=2,
                        unique=True,
                    )
                )
            )
            target = self.nodes[second]
            if target.kind not in (NodeKind.INPUT, NodeKind.VARIABLE, NodeKind.CONST):
                edge = Edge(EdgeKind.CONTROL, None, None)
                self.arrows.append(Arrow(self.nodes[first].name, target.name, edge))

    def repeat(self) -> None:
        """A row or a set of equal blocks, which fold."""
        last = self.tensor()
        stem = self.draw(st.sampled_from(("layer", "net/cell", "Adam/update")))
        chained = self.draw(st.booleans())
        words = self.draw(st.lists(st.sampled_from(_UNARY), min_size=2, max_size=8))
        for number in range(self.draw(st.integers(2, 8))):
            scope = f"{stem}_{number}"
            made = last
            for word in words:
                made = TensorRef(self.op(word, made, scope=scope))
            ends = (last, made) if chained else (made,)
            made = TensorRef(self.op("AddN", *ends, scope=scope))
            last = made if chained else last

    def lowered(self) -> None:
        """A loop as the runtime executes it."""
        scope = self.name("while")
        enter = TensorRef(self.op("Enter", self.tensor(), scope=scope))
        merge = TensorRef(self.op("Merge", enter, outputs=2, scope=scope))
        less = TensorRef(self.op("Less", merge, scope=scope))
        test = TensorRef(self.op("LoopCond", less, scope=scope))
        switch = self.op("Switch", merge, test, outputs=2, scope=scope)
        inside = TensorRef(self.op("Identity", TensorRef(switch, 1), scope=f"{scope}/body"))
        for word in self.draw(st.lists(st.sampled_from(_UNARY), max_size=3)):
            inside = TensorRef(self.op(word, inside, scope=f"{scope}/body"))
        following = self.op("NextIteration", inside, scope=scope)
        self.arrows.append(Arrow(following, merge.node, Edge(EdgeKind.DATA, 0, 1, FLOAT)))
        self.op("Exit", TensorRef(switch, 0), scope=scope)

    def function(self, steps: int, depth: int, takes: int, gives: int) -> str:
        """Make a function that takes and gives so many tensors, and return its name."""
        body = _Body(self.draw, self.functions, self.serial)
        for _ in range(takes):
            body.argument()
        body.op("Square", body.tensors[0])  # a body that only calls is no more than its call
        body.run(self.draw(st.integers(0, steps)), depth)
        results = [TensorRef(body.op("Abs", body.tensor())) for _ in range(gives)]
        self.serial[0] += 1
        name = f"fn{self.serial[0]}"
        self.functions[name] = body.finish(name, results)
        return name

    def call(self, depth: int) -> None:
        kind = self.draw(st.sampled_from(("PartitionedCall", "If", "While")))
        takes = self.draw(st.integers(1, 2))
        gives = self.draw(st.integers(1, 3)) if kind != "While" else takes
        reads = [self.tensor() for _ in range(takes)]
        if kind == "PartitionedCall":
            calls = [Call("f", self.function(4, depth - 1, takes, gives))]
        elif kind == "If":
            roles = ("then_branch", "else_branch")
            calls = [Call(role, self.function(3, depth - 1, takes, gives)) for role in roles]
            reads = [self.tensor(), *reads]
        else:
            calls = [
                Call("cond", self.function(1, depth - 1, takes, 1)),
                Call("body", self.function(4, depth - 1, takes, takes)),
            ]
        control = NodeKind.CALL if kind == "PartitionedCall" else NodeKind.CONTROL_FLOW
        name = self.name(kind)
        if kind == "While" and self.draw(st.booleans()):
            reads.append(self.counted(calls))
            gives += 1
        self.add(Node(name, kind, control, (FLOAT,) * gives, calls=tuple(calls)), *reads)

    def counted(self, calls: list[Call]) -> TensorRef:
        """Give the functions of a loop one more variable, which only counts, and its start."""
        for call in calls:
            graph = self.functions[call.function]
            more = _Body(self.draw, self.functions, self.serial)
            more.nodes, more.arrows = list(graph.nodes()), list(graph.arrows())
            more.inputs = list(graph.inputs)
            more.argument()
            refs = [binding.tensors[0] for binding in graph.outputs]
            if call.role == "body":
                refs.append(TensorRef(more.op("AddOne", more.tensors[-1], scope="")))
            back = graph.back_edges
            self.functions[call.function] = replace(
                more.finish(call.function, refs), back_edges=back
            )
        return self.tensor()

    def run(self, steps: int, depth: int) -> None:
        kinds = ["plain", "plain", "plain", "plumbing", "order", "repeat", "lowered"]
        for kind in self.draw(
            st.lists(
                st.sampled_from(kinds + ["call"] * (depth > 0)), min_size=steps, max_size=steps
            )
        ):
            if kind == "call":
                self.call(depth)
            else:
                getattr(self, kind)()

    def finish(self, name: str, results: list[TensorRef], **rest: object) -> Graph:
        outputs = tuple(Binding(f"result_{at}", (ref,)) for at, ref in enumerate(results))
        given = {"inputs": tuple(self.inputs), "outputs": outputs, **rest}
        return Graph.build(name, Stage.TRACED, self.nodes, self.arrows, **given)


@st.composite
def models(draw: st.DrawFn, *, most: int = 25, depth: int = 0) -> Graph:
    """Graphs as TensorFlow makes them: scopes, blocks that repeat, plumbing, loops, functions.

    Args:
        draw: Hypothesis's own.
        most: How many steps there are; a step makes one op or a part of several.
        depth: How deep functions call each other.
    """
    functions: dict[str, Graph] = {}
    body = _Body(draw, functions, [0])
    for _ in range(draw(st.integers(1, 3))):
        body.argument()
    captures = []
    for number in range(draw(st.integers(0, 3))):
        name = body.name("var", "")
        held = TensorSpec("float32", (10, 100 * number))
        body.nodes.append(
            Node(name, "Placeholder", NodeKind.VARIABLE, (_HANDLE,), label=name, holds=held)
        )
        body.variables.append(name)
        captures.append(Binding(name, (TensorRef(name),), f"Variable {held}"))
    body.op("Square", body.tensors[0])
    body.run(draw(st.integers(0, most)), depth)
    results = [body.tensor() for _ in range(draw(st.integers(0, 2)))]
    return body.finish("f", results, captures=tuple(captures), functions=functions)
