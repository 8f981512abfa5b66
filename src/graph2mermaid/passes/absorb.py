"""Take the plumbing out of a graph: what TensorFlow needs, but nobody wrote.

Reads of a variable become part of the variable, constants that are a shape or an axis become
words in their consumer, Identity and NoOp become edges. Every op that goes is named in the
`members` of the node that stands for it, or in `Absorbed.gone`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from graph2mermaid.graph import (
    STRUCTURAL_ARGUMENTS,
    Arrow,
    Binding,
    Edge,
    EdgeKind,
    Graph,
    Node,
    NodeKind,
    TensorRef,
)

_CONTROL = Edge(EdgeKind.CONTROL, None, None)

_BRIDGES = frozenset({"Identity", "IdentityN"})
_READS = frozenset({"ReadVariableOp"})
_PURE = _READS | {"ResourceGather", "ResourceGatherNd", "VariableShape", "VarIsInitializedOp"}
"""Ops that take a variable and leave it as it is."""
_MOST_JOINED = 10_000
"""More edges than this in the place of one NoOp would be most of the graph."""


@dataclass(frozen=True)
class Absorbed:
    """A graph without plumbing, and how much of it there was."""

    graph: Graph
    gone: Mapping[str, str]
    """For each op that was taken out, the node that it is now part of (or the empty string)."""


def absorb(graph: Graph) -> Absorbed:
    """Return the graph as its author thinks of it."""
    return _Absorber(graph).run()


@dataclass
class _Absorber:
    graph: Graph
    moved: dict[tuple[str, int], TensorRef] = field(default_factory=dict)
    """Where a tensor of an op that is gone comes from now."""
    labels: dict[tuple[str, int], str] = field(default_factory=dict)
    """Words on the edge into a bridge that is gone; they go on to the edges out of it."""
    waits: dict[str, list[str]] = field(default_factory=dict)
    """For an op that is gone, the nodes that a control edge out of it starts at now."""
    extra: dict[str, list[str]] = field(default_factory=dict)
    """Control edges a node inherits from an op that is gone."""
    words: dict[str, dict[str, str]] = field(default_factory=dict)
    dropped: set[tuple[str, str, int | None]] = field(default_factory=set)
    gone: dict[str, str] = field(default_factory=dict)
    closing: dict[str, list[Arrow]] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    ordered: set[str] = field(default_factory=set)
    """Reads of a variable that something else changes afterwards."""
    written: frozenset[str] = frozenset()
    """The variables that something here may change."""
    whole: dict[str, Node] = field(default_factory=dict)
    """Arguments made of several tensors, by the node that stands for all of them."""

    def run(self) -> Absorbed:
        for arrow in self.graph.back_edges:
            self.closing.setdefault(arrow.source, []).append(arrow)
        for binding in self.graph.inputs:
            self._composite(binding)
        self.ordered = _reads_before_writes(self.graph)
        self.written = _written(self.graph)
        for name in self.graph.sorted_names():
            node = self.graph[name]
            if node.op in _READS:
                self._read(node)
            elif node.op in _BRIDGES and node.kind is NodeKind.OP:
                self._bridge(node)
            elif node.op == "NoOp":
                self._join(node)
            elif node.kind is NodeKind.CONST and node.value is not None:
                self._constant(node)
        self._leftovers()
        return Absorbed(self._rebuild(), self.gone)

    # -- what goes ------------------------------------------------------------------------

    def _composite(self, binding: Binding) -> None:
        """A ragged or sparse tensor is one argument, whatever number of tensors is behind it."""
        refs = [ref for ref in binding.tensors if ref.node in self.graph]
        parts = [self.graph[ref.node] for ref in refs]
        if len(parts) < 2 or any(part.kind is not NodeKind.INPUT for part in parts):
            return
        first = parts[0].name
        for port, (ref, part) in enumerate(zip(refs, parts, strict=True)):
            self.moved[ref] = TensorRef(first, port)
            self.labels[ref] = (part.label or "").removeprefix(f"{binding.name}.")
            if port:
                self.gone[part.name] = first
                self.waits[part.name] = [first]
        outputs = tuple(spec for part in parts for spec in part.outputs)
        attrs = {"type": binding.type, **parts[0].attrs}
        self.whole[first] = replace(
            parts[0], label=binding.name, outputs=outputs, attrs=attrs, variable=None
        )

    def _read(self, node: Node) -> None:
        """A read between no writes is the variable itself; one that has to be in order is an op.

        So is no read whose value nothing uses. What it waits for, its followers wait for.
        """
        data, control = self._incoming(node.name)
        if len(data) != 1:
            return
        used = any(a.edge.kind is EdgeKind.DATA for a in self.graph.outgoing(node.name))
        returned = any(ref.node == node.name for b in self.graph.outputs for ref in b.tensors)
        if not used and not returned and node.name not in self.closing:
            self.waits[node.name] = control
            self.gone[node.name] = data[0].node
            return
        fixed = data[0].node not in self.written
        if not fixed and (control or node.name in self.ordered):
            return
        holder = self.graph[data[0].node]
        handle = bool(holder.outputs) and holder.outputs[0].dtype == "resource"
        if holder.kind is NodeKind.VARIABLE or (holder.kind is NodeKind.INPUT and handle):
            self.moved[TensorRef(node.name)] = data[0]
            self.waits[node.name] = [holder.name, *control]
            self.gone[node.name] = holder.name

    def _bridge(self, node: Node) -> None:
        data, control = self._incoming(node.name)
        followers = self._followers(node.name)
        closing = self.closing.get(node.name, [])
        if not data or len(control) * (len(followers) + len(closing)) > _MOST_JOINED:
            return
        arriving = [a for a in self.graph.incoming(node.name) if a.edge.kind is EdgeKind.DATA]
        for port, (ref, arrow) in enumerate(zip(data, arriving, strict=True)):
            self.moved[TensorRef(node.name, port)] = ref
            label = arrow.edge.label or self._label(arrow)
            if label:
                self.labels[TensorRef(node.name, port)] = label
        self.waits[node.name] = list(dict.fromkeys([*(ref.node for ref in data), *control]))
        for follower in followers:
            self.extra.setdefault(follower, []).extend(control)
        for arrow in closing:
            self.closing[arrow.source] = [
                *self.closing[arrow.source],
                *(
                    Arrow(c, arrow.target, replace(_CONTROL, label=arrow.edge.label))
                    for c in control
                ),
            ]
        source = self.graph[data[0].node]
        made_here = source.kind in (NodeKind.OP, NodeKind.CONTROL_FLOW)
        if node.variable and len(source.outputs) == 1 and made_here:
            self.variables.setdefault(source.name, node.variable)
        self.gone[node.name] = data[0].node

    def _join(self, node: Node) -> None:
        """What follows a NoOp waits for all that it gathers, unless that were far too many edges."""
        _, control = self._incoming(node.name)
        if len(control) * len(self._followers(node.name)) > _MOST_JOINED:
            return
        self.waits[node.name] = control
        self.gone[node.name] = ""

    def _constant(self, node: Node) -> None:
        """A shape, an axis: words in the consumer. What else reads the constant keeps it."""
        spec = node.outputs[0] if node.outputs else None
        if spec is None or not spec.dtype.startswith(("int", "uint")) or node.value is None:
            return
        outgoing = self.graph.outgoing(node.name)
        structural = [a for a in outgoing if a.edge.argument in STRUCTURAL_ARGUMENTS]
        for arrow in structural:
            words = self.words.setdefault(arrow.target, {})
            words[str(arrow.edge.argument)] = node.value.replace(" ", "")
            self.dropped.add((node.name, arrow.target, arrow.edge.target_port))
        if structural and len(structural) == len(outgoing) and node.name not in self.closing:
            self.gone[node.name] = structural[0].target
            self.waits[node.name] = []

    def _leftovers(self) -> None:
        """Take out what nothing reads: constants, and what AutoGraph computes beside a loop.

        A constant loses its readers when it counted a loop or became words. The trip count of
        `for i in tf.range(n)` is computed on the loop's own line and often leads nowhere.
        """
        lines = {n.source for n in self.graph.nodes() if n.op.endswith("While")} - {None}
        spare = {
            node.name
            for node in self.graph.nodes()
            if node.name not in self.gone
            and (
                node.kind is NodeKind.CONST
                or (node.kind is NodeKind.OP and node.source in lines and bool(node.outputs))
            )
        }
        readers = self._readers(spare)
        for name in reversed(self.graph.sorted_names()) if spare else ():
            if name in spare and readers[name] <= self.gone.keys():
                self.gone[name] = ""

    def _readers(self, wanted: set[str]) -> dict[str, set[str]]:
        """Return for some nodes those that read or wait for them once the bridges are gone."""
        readers: dict[str, set[str]] = {name: set() for name in wanted}
        for name in self.graph.names():
            if name in self.gone:
                continue
            for start in self._waits(name):
                if start in wanted:
                    readers[start].add(name)
            for arrow in self.graph.incoming(name):
                start = arrow[0]
                if start in self.gone or start in self.whole:
                    start = self._source(arrow).node
                if start in wanted and not self._is_dropped(arrow):
                    readers[start].add(name)
        for arrow in self._back_edges():
            if arrow.source in wanted:
                readers[arrow.source].add(arrow.target)
        return readers

    # -- what stays -----------------------------------------------------------------------

    def _incoming(self, name: str) -> tuple[list[TensorRef], list[str]]:
        """Return where a node's tensors come from, by port, and what it waits for."""
        arrows = self.graph.incoming(name)
        data = [self._source(a) for a in arrows if a.edge.kind is not EdgeKind.CONTROL]
        return data, self._waits(name)

    def _waits(self, name: str) -> list[str]:
        """Return what a node waits for."""
        arrows = self.graph.incoming(name)
        # Control edges come last, and most nodes have none.
        if name not in self.extra and not (arrows and arrows[-1].edge.kind is EdgeKind.CONTROL):
            return []
        control: list[str] = []
        for arrow in arrows:
            if arrow.edge.kind is EdgeKind.CONTROL:
                control += self._waits_for(arrow.source)
        control += self.extra.get(name, [])
        return list(dict.fromkeys(control))

    def _source(self, arrow: Arrow) -> TensorRef:
        port = arrow.edge.source_port or 0
        return self.moved.get((arrow.source, port)) or TensorRef(arrow.source, port)

    def _stays(self, arrow: Arrow) -> bool:
        """Tell whether the tensor on an edge still comes from where it came from."""
        return arrow.source not in self.gone and arrow.source not in self.whole

    def _is_kept(self, arrow: Arrow) -> bool:
        """Tell whether an edge carries a tensor that still comes from where it came from."""
        source, _, edge = arrow
        return edge.kind is EdgeKind.DATA and source not in self.gone and source not in self.whole

    def _label(self, arrow: Arrow) -> str | None:
        return self.labels.get((arrow.source, arrow.edge.source_port or 0))

    def _is_dropped(self, arrow: Arrow) -> bool:
        """Tell whether an edge became words in its consumer."""
        return arrow.target in self.words and (
            (arrow.source, arrow.target, arrow.edge.target_port) in self.dropped
        )

    def _followers(self, name: str) -> list[str]:
        return list(dict.fromkeys(arrow.target for arrow in self.graph.outgoing(name)))

    def _waits_for(self, name: str) -> list[str]:
        """Follow a control edge's start; constants and arguments are always there already."""
        if name not in self.gone:
            return [name]
        found: list[str] = []
        for before in self.waits.get(name, []):
            found += self._waits_for(before)
        waited = (NodeKind.CONST, NodeKind.INPUT, NodeKind.VARIABLE)
        return [n for n in found if self.graph[n].kind not in waited]

    def _rebuild(self) -> Graph:
        members: dict[str, list[str]] = {}
        for name in self.graph.names():
            into = self.gone.get(name)
            while into and into in self.gone:
                into = self.gone[into]
            if into:
                members.setdefault(into, []).append(name)
        nodes = [
            self._with_words(self.whole.get(node.name, node), members.get(node.name, []))
            for node in self.graph.nodes()
            if node.name not in self.gone
        ]
        arrows = [a for node in nodes for a in self._arrows_into(node.name)]
        built = Graph.build(
            self.graph.name,
            self.graph.stage,
            nodes,
            arrows,
            inputs=self._moved(self.graph.inputs),
            captures=self.graph.captures,
            outputs=self._moved(self.graph.outputs),
            source=self.graph.source,
        )
        return replace(built, back_edges=(*built.back_edges, *self._back_edges()))

    def _moved(self, bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
        return tuple(
            replace(b, tensors=tuple(self.moved.get(ref, ref) for ref in b.tensors))
            for b in bindings
        )

    def _with_words(self, node: Node, members: list[str]) -> Node:
        words = self.words.get(node.name)
        variable = node.variable or self.variables.get(node.name)
        if not words and not members and variable == node.variable:
            return node
        return replace(
            node,
            attrs={**words, **node.attrs} if words else node.attrs,
            members=(*node.members, *members),
            variable=variable,
        )

    def _arrows_into(self, name: str) -> Sequence[Arrow]:
        incoming = self.graph.incoming(name)
        if name not in self.words and name not in self.extra and all(map(self._is_kept, incoming)):
            return incoming
        arrows: list[Arrow] = []
        sources: set[str] = set()
        for arrow in incoming:
            if arrow.edge.kind is EdgeKind.CONTROL or self._is_dropped(arrow):
                continue
            moved = arrow if self._stays(arrow) else self._moved_arrow(arrow)
            sources.add(moved.source)
            arrows.append(moved)
        control = self._waits(name)
        if not control:
            return arrows
        if self.graph[name].kind is NodeKind.OUTPUT:
            # A result waits for all that makes it anyway; only other waits say something.
            sources |= self.graph.ancestors(self._made_from(name))
        words = {a.source: a.edge.label for a in self.graph.incoming(name) if a.edge.label}
        arrows += [
            Arrow(c, name, replace(_CONTROL, label=words[c]) if c in words else _CONTROL)
            for c in control
            if c not in sources and c != name
        ]
        return arrows

    def _moved_arrow(self, arrow: Arrow) -> Arrow:
        """Let an edge start where its tensor comes from now."""
        edge = arrow.edge
        ref = self._source(arrow)
        label = edge.label or self._label(arrow)
        if label != edge.label or ref.port != edge.source_port:
            edge = replace(edge, source_port=ref.port, label=label)
        return Arrow(ref.node, arrow.target, edge)

    def _made_from(self, name: str) -> list[str]:
        incoming = self.graph.incoming(name)
        return [self._source(a).node for a in incoming if a.edge.kind is EdgeKind.DATA]

    def _back_edges(self) -> list[Arrow]:
        found: dict[tuple[str, str, int | None, str | None], Arrow] = {}
        waits: list[Arrow] = []
        for arrow in (arrow for arrows in self.closing.values() for arrow in arrows):
            if arrow.edge.kind is EdgeKind.CONTROL:
                starts = self._waits_for(arrow.source)
                waits += [Arrow(start, arrow.target, arrow.edge) for start in starts]
            else:
                ref = self._source(arrow)
                edge = replace(arrow.edge, source_port=ref.port)
                key = (ref.node, arrow.target, edge.target_port, edge.label or "")
                found[key] = Arrow(ref.node, arrow.target, edge)
        before: dict[str, set[str]] = {}
        for arrow in found.values():
            if waits:
                ends = before.setdefault(arrow.target, set())
                ends |= {arrow.source} | self.graph.ancestors([arrow.source])
        for arrow in waits:
            if arrow.source not in before.get(arrow.target, set()):
                found.setdefault((arrow.source, arrow.target, None, None), arrow)
        # From one output of a node to another of its inputs is a way; to the same one is none.
        return [
            a
            for a in found.values()
            if a.source != a.target or a.edge.source_port != a.edge.target_port
        ]


def _written(graph: Graph) -> frozenset[str]:
    """Return the variables that an op may write: all whose handle goes to more than reads."""
    holders = {
        node.name for node in graph.nodes() if node.kind in (NodeKind.VARIABLE, NodeKind.INPUT)
    }
    out_of = [arrow for arrow in graph.back_edges if arrow.source in holders]
    for name in holders:
        out_of += graph.outgoing(name)
    return frozenset(
        arrow.source
        for arrow in out_of
        if arrow.edge.kind is EdgeKind.DATA and graph[arrow.target].op not in _PURE
    )


def _reads_before_writes(graph: Graph) -> set[str]:
    """Return the reads whose place before a write of the same variable nothing else shows.

    In a training step the new value is computed from the old one, so the write comes after the
    read anyway. Where it does not, the value that was read is not the variable's at the end.
    """
    waiting: dict[str, list[str]] = {}
    for node in graph.nodes():
        if node.op in _READS:
            after = [a for a in graph.outgoing(node.name) if a.edge.kind is EdgeKind.CONTROL]
            handles = {a.source for a in graph.incoming(node.name)} if after else set()
            # Seen from the variable: the NoOp at the end of a step waits for all there is.
            users = {a.target for handle in handles for a in graph.outgoing(handle)}
            writes = [a.target for a in after if a.target in users]
            writes = [name for name in writes if graph[name].op not in _READS]
            if writes:
                waiting[node.name] = writes
    bits = {name: 1 << at for at, name in enumerate(waiting)}
    reached: dict[str, int] = {}  # for each node, the reads that a path leads from, as bits
    for name in graph.sorted_names() if waiting else ():
        found = 0
        for source, _, edge in graph.incoming(name):
            before = reached.get(source, 0)
            if source in bits and edge.kind is EdgeKind.DATA:
                before |= bits[source]
            # Most nodes reach what one before them does: they share its number.
            if before is not found:
                both = found | before
                found = before if both == before else both
        if found:
            reached[name] = found
    return {
        read
        for read, writes in waiting.items()
        if any(not reached.get(write, 0) & bits[read] for write in writes)
    }
