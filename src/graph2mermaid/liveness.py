"""How much memory a graph may need, estimated from the shapes of its tensors.

No plan exists for a graph that is executed op by op: tensors come when an op makes them and go
when the last op has read them. What is counted here is that, for one order of the ops: the order
in which they become ready. An executor with several threads may keep more at a time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from graph2mermaid.graph import EdgeKind, Graph, Node, NodeKind, TensorRef, TensorSpec
from graph2mermaid.memory import AllocationKind

_HAND_ON = frozenset(
    {
        "Bitcast",
        "CheckNumerics",
        "EnsureShape",
        "Enter",
        "Exit",
        "ExpandDims",
        "Identity",
        "IdentityN",
        "LoopCond",
        "Merge",
        "NextIteration",
        "PlaceholderWithDefault",
        "PreventGradient",
        "ReadVariableOp",
        "RefEnter",
        "RefExit",
        "RefIdentity",
        "RefMerge",
        "RefNextIteration",
        "Reshape",
        "Squeeze",
        "StopGradient",
        "Switch",
        "_Retval",
    }
)
"""Ops whose result is in the memory of what they read."""

_BY_PORT = frozenset({"IdentityN"})
"""Those of them that hand on each input as the output of its number."""

_HANDLES = frozenset({"resource"})
"""Types whose tensors are a few bytes that lead to something else."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor that has memory of its own."""

    ref: TensorRef
    op: str
    spec: TensorSpec
    kind: AllocationKind
    start: int
    """The position of the op that makes it."""
    end: int
    """The position of the last op that reads it; the number of ops for results."""
    last_reader: str = ""
    """The op that reads it last; the empty string where nothing does, or the caller."""

    @property
    def nbytes(self) -> int:
        """The bytes, 0 where they are not known."""
        return self.spec.nbytes or 0

    @property
    def known(self) -> bool:
        """Whether its size is known."""
        return self.spec.nbytes is not None


@dataclass(frozen=True)
class Estimate:
    """What a graph may need in memory when it is executed op by op."""

    order: tuple[str, ...]
    """The ops in the order that was taken."""
    tensors: tuple[Tensor, ...]
    """Those that have memory of their own, in the order in which they are made."""
    inside: Mapping[int, int]
    """For ops that call functions, by position: the most that these keep beside their results."""
    unknown_inside: int = 0
    """How many tensors in called functions have an unknown size."""

    @cached_property
    def unknown(self) -> tuple[Tensor, ...]:
        """The tensors that could not be counted."""
        return tuple(tensor for tensor in self.tensors if not tensor.known)

    @cached_property
    def by_kind(self) -> Mapping[AllocationKind, int]:
        """The bytes of all tensors of each kind, as if none went before the end."""
        found = Counter[AllocationKind]()
        for tensor in self.tensors:
            found[tensor.kind] += tensor.nbytes
        return found

    @property
    def without_reuse(self) -> int:
        """The bytes of all tensors together."""
        return self.by_kind_total + sum(self.inside.values())

    @property
    def by_kind_total(self) -> int:
        """The bytes of the tensors of this graph together."""
        return sum(self.by_kind.values())

    @property
    def saved(self) -> int:
        """The bytes that need not be there at once."""
        return self.without_reuse - self.peak_nbytes

    @property
    def peak(self) -> int:
        """The position of the op at which most is in use."""
        return self._peak[0]

    @property
    def peak_nbytes(self) -> int:
        """The bytes in use there, arguments, variables and constants included."""
        return self._peak[1]

    def alive(self, position: int) -> tuple[Tensor, ...]:
        """Return the tensors in use at a position, the largest first.

        Arguments, variables and constants are there all the time and not among them.
        """
        found = (t for t in self.tensors if t.kind not in _HELD and t.start <= position <= t.end)
        return tuple(sorted(found, key=lambda t: (-t.nbytes, t.start, t.ref)))

    @cached_property
    def _peak(self) -> tuple[int, int]:
        changes = Counter[int]()
        for tensor in self.tensors:
            if tensor.kind not in _HELD:
                changes[tensor.start] += tensor.nbytes
                changes[tensor.end + 1] -= tensor.nbytes
        now = sum(nbytes for kind, nbytes in self.by_kind.items() if kind in _HELD)
        best = (0, now)
        for position in range(len(self.order)):
            now += changes[position]
            total = now + self.inside.get(position, 0)
            if total > best[1]:
                best = (position, total)
        return best


_HELD = (AllocationKind.PARAMETER, AllocationKind.CONSTANT)


def estimate(graph: Graph) -> Estimate:
    """Estimate the memory of a graph from the shapes of its tensors.

    What hands on its input (`Identity`, `Reshape`, the reading of a variable) takes no memory. Ops
    that could write into their input are taken to have a result of their own.

    Args:
        graph: Of the stage `traced`, `grappler` or `runtime`.
    """
    return _Estimating(graph.functions, {}).of(graph)


class _Estimating:
    """The estimates of a graph and of the functions that its ops call."""

    def __init__(self, functions: Mapping[str, Graph], done: dict[str, Estimate | None]) -> None:
        self._functions = functions
        self._done = done

    def of(self, graph: Graph) -> Estimate:
        order = graph.sorted_names()
        place = {name: at for at, name in enumerate(order)}
        owner = _owners(graph, order)
        last: defaultdict[TensorRef, int] = defaultdict(lambda: -1)
        for arrow in graph.arrows():
            if arrow.edge.kind is EdgeKind.DATA and arrow.edge.source_port is not None:
                ref = TensorRef(arrow.source, arrow.edge.source_port)
                ref = owner.get(ref, ref)
                last[ref] = max(last[ref], place[arrow.target])
        results = [owner.get(ref, ref) for binding in graph.outputs for ref in binding.tensors]
        tensors = []
        for name in order:
            for tensor in _made(graph[name], place[name], owner):
                kind = tensor.kind
                end = max(place[name], last[tensor.ref])
                reader = order[last[tensor.ref]] if last[tensor.ref] >= 0 else ""
                if tensor.ref in results:
                    end, reader = len(order), ""
                    kind = AllocationKind.OUTPUT if kind is AllocationKind.TEMPORARY else kind
                made = (tensor.ref, tensor.op, tensor.spec, kind, tensor.start, end, reader)
                tensors.append(Tensor(*made))
        inside, unknown = {}, 0
        for name in order:
            most, missing = self._called(graph[name])
            unknown += missing
            if most:
                inside[place[name]] = most
        return Estimate(order, tuple(tensors), inside, unknown)

    def _called(self, node: Node) -> tuple[int, int]:
        """Return the most that a node's functions keep, one at a time, and what is unknown."""
        found = [self._body(call.function) for call in node.calls]
        known = [body for body in found if body is not None]
        most = max((_temporary_peak(body) for body in known), default=0)
        return most, sum(len(body.unknown) + body.unknown_inside for body in known)

    def _body(self, function: str) -> Estimate | None:
        if function not in self._functions:
            return None
        if function not in self._done:
            self._done[function] = None  # ends the walk of a function that calls itself
            self._done[function] = self.of(self._functions[function])
        return self._done[function]


def _temporary_peak(body: Estimate) -> int:
    held = sum(body.by_kind.get(kind, 0) for kind in (*_HELD, AllocationKind.OUTPUT))
    return max(0, body.peak_nbytes - held)


def _owners(graph: Graph, order: tuple[str, ...]) -> dict[TensorRef, TensorRef]:
    """Return for each tensor that has no memory of its own the one whose memory it is in."""
    found: dict[TensorRef, TensorRef] = {}
    for name in order:
        node = graph[name]
        if node.op not in _HAND_ON:
            continue
        for arrow in graph.incoming(name):
            edge = arrow.edge
            if edge.kind is not EdgeKind.DATA or edge.source_port is None:
                continue
            by_port = node.op in _BY_PORT
            if not by_port and edge.target_port != 0:
                continue
            source = TensorRef(arrow.source, edge.source_port)
            source = found.get(source, source)
            ports = (edge.target_port or 0,) if by_port else range(max(1, len(node.outputs)))
            found.update({TensorRef(name, port): source for port in ports})
    return found


def _made(node: Node, position: int, owner: Mapping[TensorRef, TensorRef]) -> Iterator[Tensor]:
    kind = {
        NodeKind.INPUT: AllocationKind.PARAMETER,
        NodeKind.VARIABLE: AllocationKind.PARAMETER,
        NodeKind.CONST: AllocationKind.CONSTANT,
    }.get(node.kind, AllocationKind.TEMPORARY)
    for port, spec in enumerate((node.holds,) if node.holds is not None else node.outputs):
        ref = TensorRef(node.name, port)
        if ref not in owner and spec.dtype not in _HANDLES:
            yield Tensor(ref, node.op, spec, kind, position, position)
