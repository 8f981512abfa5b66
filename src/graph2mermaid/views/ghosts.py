"""The ops that an optimization has removed, as ghosts to be drawn."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from graph2mermaid.graph import Graph, Node, NodeKind, TensorRef
from graph2mermaid.passes.ghosts import Ghost, Ghosts
from graph2mermaid.provenance import GONE, Fate, OpFate, Provenance
from graph2mermaid.provenance.flat import Flat, FlatOp, flatten
from graph2mermaid.views.changes import why_removed
from graph2mermaid.views.flat import flatten as drawn_flat
from graph2mermaid.views.options import Options

_PLUMBING = frozenset({"Identity", "IdentityN", "NoOp", "ReadVariableOp", "Placeholder"})
_ROLE = re.compile(r"#[^/]+/")


def ghosts_of(traced: Graph, provenance: Provenance, *, simple: bool = True) -> Ghosts:
    """Return the removed ops.

    Args:
        traced: The graph that was optimized, with its functions.
        provenance: What became of its ops.
        simple: Leave out what the traced view does not draw either, and constants.
    """
    results = [binding.name for binding in traced.outputs for _ in binding.tensors]
    undrawn = drawn_flat(traced, Options()).gone if simple else None
    finder = _Finder(flatten(traced), results, provenance, undrawn)
    drawn = tuple(finder.ghosts())
    return Ghosts(drawn, finder.count - len(drawn))


class _Finder:
    def __init__(
        self,
        flat: Flat,
        results: Sequence[str],
        provenance: Provenance,
        undrawn: Collection[str] | None,
    ) -> None:
        self._flat = flat
        self._result_names = results
        self._fates = provenance.ops
        self._removed = [
            op
            for op in flat.ops.values()
            if op.id in self._fates and self._fates[op.id].fate in GONE
        ]
        self._drawn = {
            op.id
            for op in self._removed
            if undrawn is None or not (op.id in undrawn or _is_plumbing(op.node))
        }
        self._sides = dict(self._kept_beside())
        self._names: dict[str, str] = {}
        taken = set(provenance.nodes)
        for op in self._removed:
            if op.id in self._drawn:
                name = self._name(op)
                while name in taken:
                    name += "'"
                taken.add(name)
                self._names[op.id] = name

    @property
    def count(self) -> int:
        """How many ops were removed."""
        return len(self._removed)

    def ghosts(self) -> Iterator[Ghost]:
        readers, results = self._readers(), self._results()
        for op in self._removed:
            if op.id in self._drawn:
                _, beside = self._side(op)
                makers = (self._names.get(m, m) for m in self._makers(op))
                yield Ghost(
                    _ghost_node(op.node, self._names[op.id], self._fates[op.id].fate),
                    tuple(dict.fromkeys(makers)),
                    tuple(dict.fromkeys(readers.get(op.id, ()))),
                    tuple(dict.fromkeys(results.get(op.id, ()))),
                    beside,
                )

    # -- neighbors ------------------------------------------------------------------------

    def _makers(self, op: FlatOp) -> Iterator[str]:
        """Yield the ghosts and the ops of the optimized graph that an op's inputs come from."""
        for ref in op.inputs:
            yield from self._behind(ref)

    def _behind(self, ref: TensorRef) -> Iterator[str]:
        """Look through removed ops that are not drawn."""
        seen: set[str] = set()
        stack = [ref]
        while stack:
            name = self._flat.real(stack.pop()).node
            if name in self._drawn:
                yield name
            elif name in seen or name not in self._fates:
                continue
            elif self._fates[name].fate in GONE:
                seen.add(name)
                stack += self._flat.ops[name].inputs
            elif self._fates[name].into:
                yield _image(self._fates[name], last=True)

    def _readers(self) -> dict[str, list[str]]:
        """Return for each ghost the optimized ops that its readers became."""
        found: dict[str, list[str]] = {}
        for op in self._flat.ops.values():
            fate = self._fates.get(op.id)
            if fate is None or not fate.into:
                continue
            for maker in self._makers(op):
                if maker in self._drawn:
                    found.setdefault(maker, []).append(_image(fate, last=False))
        return found

    def _results(self) -> dict[str, list[str]]:
        """Return for each ghost the names of the function's results that it was."""
        found: dict[str, list[str]] = {}
        for binding, ref in zip(self._result_names, self._flat.results, strict=True):
            for maker in self._behind(ref):
                if maker in self._drawn:
                    found.setdefault(maker, []).append(binding)
        return found

    # -- places ---------------------------------------------------------------------------

    def _kept_beside(self) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
        """Yield for each body what its ops' names begin with now, and one that is there."""
        seen: set[tuple[str, str]] = set()
        for op in self._flat.ops.values():
            place = (op.caller, op.role)
            if not op.caller or place in seen or op.id not in self._fates:
                continue
            for image in self._fates[op.id].into:
                if image.endswith(f"/{op.node.name}"):
                    seen.add(place)
                    yield place, (image.removesuffix(op.node.name), image)
                    break

    def _side(self, op: FlatOp) -> tuple[str, str]:
        """Return the same for the innermost body around an op of which something is left."""
        while op.caller:
            found = self._sides.get((op.caller, op.role))
            if found is not None:
                return found
            op = self._flat.ops[op.caller]
        return "", ""

    def _name(self, op: FlatOp) -> str:
        """Return what the op would be called in the optimized graph, which tells its group."""
        if (op.caller, op.role) in self._sides:
            return f"{self._sides[op.caller, op.role][0]}{op.node.name}"
        return _ROLE.sub("/", op.id)


def _is_plumbing(node: Node) -> bool:
    return node.op in _PLUMBING or node.kind in (NodeKind.CONST, NodeKind.INPUT)


def _image(fate: OpFate, *, last: bool) -> str:
    """Return the op that has the result of several, or the one that takes the inputs."""
    return fate.into[-1 if last else 0]


def _ghost_node(node: Node, name: str, fate: Fate) -> Node:
    return Node(
        name,
        node.op,
        NodeKind.GHOST,
        outputs=node.outputs,
        api=node.api,
        attrs={"removed": why_removed(fate)},
        source=node.source,
    )
