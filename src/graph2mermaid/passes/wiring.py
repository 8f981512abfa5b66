"""A graph in numbers: what the division into groups looks up a thousand times."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from hashlib import blake2b

from graph2mermaid.graph import EdgeKind, Graph, Node, NodeKind, Scalar

# How an op was seeded, and what it is only called; two layers with other seeds are equal.
_NO_MATTER = frozenset({"seed", "seed2", "shared_name", "container"})
# Words of the shape of a tensor, which follow from the shape of a variable.
_SHAPE_WORDS = frozenset(
    {
        "shape",
        "multiples",
        "paddings",
        "begin",
        "end",
        "size",
        "output_shape",
        "element_shape",
        "input_sizes",
        "squeeze_dims",
    }
)


class Wiring:
    """The nodes of a graph by number, in trace order, and its edges by number."""

    def __init__(self, graph: Graph, inlined_calls: frozenset[str] = frozenset()) -> None:
        self.nodes: list[Node] = list(graph.nodes())
        self.index: dict[str, int] = {node.name: i for i, node in enumerate(self.nodes)}
        self.source: list[int] = []
        self.target: list[int] = []
        self.source_port: list[int] = []
        """A control edge has the port -1 at both ends."""
        self.target_port: list[int] = []
        self.into: list[list[tuple[int, int]]] = [[] for _ in self.nodes]
        """(0, edge) of the edges into each node: in the form in which a part has them."""
        self.out: list[list[tuple[int, int]]] = [[] for _ in self.nodes]
        self.signatures: dict[int, str] = {}
        """The hash of each form that was worked out."""
        self._known: dict[Hashable, int] = {}
        self._digests: dict[int, str] = {}
        self._calls = inlined_calls
        self.strict: list[int] = self._numbers(_label)
        """What each node is: equal numbers for nodes that differ only in name and place."""
        self._loose: list[int] | None = None
        specs = {id(node.outputs): node.outputs for node in self.nodes}
        numbers = {key: tuple(map(self.number, outputs)) for key, outputs in specs.items()}
        self._specs = [numbers[id(node.outputs)] for node in self.nodes]
        for source, target, edge in graph.arrows():
            number = len(self.source)
            start, end = self.index[source], self.index[target]
            control = edge.kind is EdgeKind.CONTROL
            self.source.append(start)
            self.target.append(end)
            self.source_port.append(-1 if control else edge.source_port or 0)
            self.target_port.append(-1 if control else edge.target_port or 0)
            ends = (0, number)
            self.out[start].append(ends)
            self.into[end].append(ends)

    @property
    def loose(self) -> list[int]:
        """What each node is, shapes aside."""
        if self._loose is None:
            self._loose = self._numbers(_loose_label)
        return self._loose

    def _numbers(self, label: Callable[[Node, frozenset[str]], Hashable]) -> list[int]:
        """Return the number of each node's label.

        The thousands of ops of a large graph share a few hundred attribute sets and types, and to
        see that they are the same objects takes a tenth of the time of comparing them.
        """
        known: dict[tuple[object, ...], int] = {}
        numbers: list[int] = []
        for node in self.nodes:
            key = (
                node.op,
                id(node.kind),
                node.device,
                node.value,
                node.api,
                id(node.outputs),
                id(node.attrs),
                id(node.holds),
                node.calls and node.name,
            )
            number = known.get(key)
            if number is None:
                number = known[key] = self.number(label(node, self._calls))
            numbers.append(number)
        return numbers

    def number(self, thing: Hashable) -> int:
        """Return the number of a thing: equal things have the same one."""
        return self._known.setdefault(thing, len(self._known))

    def spec(self, edge: int) -> int:
        """Return the number of the tensor type that an edge carries; -1 when it is not known."""
        specs, port = self._specs[self.source[edge]], self.source_port[edge]
        return specs[port] if 0 <= port < len(specs) else -1

    def digest(self, leaf: int) -> str:
        """Return a hash of what a node is, the same in every process."""
        label = self.strict[leaf]
        if label not in self._digests:
            self._digests[label] = digest(_label(self.nodes[leaf], self._calls))
        return self._digests[label]


def digest(thing: object) -> str:
    """Return a short hash of something made of tuples, numbers and text."""
    return blake2b(repr(thing).encode("utf-8", "backslashreplace"), digest_size=12).hexdigest()


def _label(node: Node, inlined_calls: frozenset[str]) -> tuple[Hashable, ...]:
    return (
        node.op,
        node.kind.value,
        node.outputs,
        node.api,
        node.value,
        node.holds,
        _attrs(node.attrs) if node.attrs else (),
        node.device,
        _calls(node, inlined_calls) if node.calls else (),
    )


def _loose_label(node: Node, inlined_calls: frozenset[str]) -> tuple[Hashable, ...]:
    integer = bool(node.outputs) and node.outputs[0].dtype.startswith(("int", "uint"))
    return (
        "loose",
        node.op,
        node.kind.value,
        tuple(spec.dtype for spec in node.outputs),
        node.value if not (node.kind is NodeKind.CONST and integer) else None,
        node.holds.dtype if node.holds else None,
        tuple(pair for pair in _attrs(node.attrs) if pair[0] not in _SHAPE_WORDS),
        _calls(node, inlined_calls),
    )


def _attrs(attrs: Mapping[str, Scalar]) -> tuple[tuple[str, Scalar], ...]:
    return tuple((key, attrs[key]) for key in sorted(attrs) if key not in _NO_MATTER)


def _calls(node: Node, inlined_calls: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Name the functions a node calls, unless their bodies stand in the graph anyway."""
    drawn = node.name in inlined_calls
    return tuple((call.role, "" if drawn else call.function) for call in node.calls)
