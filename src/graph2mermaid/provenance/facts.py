"""What the traced graph says of its own ops: which are needed, which are constant, which are equal."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from graph2mermaid.graph import Node, NodeKind, Scalar, TensorRef
from graph2mermaid.provenance.flat import Body, Flat, FlatOp, is_choice, is_loop

SHAPE_OPS = frozenset({"Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike"})
"""Ops that need only the shape of their input."""
COMMUTATIVE = frozenset(
    [
        "Add",
        "AddV2",
        "AddN",
        "Mul",
        "MulNoNan",
        "Maximum",
        "Minimum",
        "Equal",
        "NotEqual",
        "LogicalAnd",
        "LogicalOr",
        "BitwiseAnd",
        "BitwiseOr",
        "BitwiseXor",
        "SquaredDifference",
    ]
)
_READS = frozenset(
    [
        "ReadVariableOp",
        "ResourceGather",
        "ResourceGatherNd",
        "VariableShape",
        "VarIsInitializedOp",
        "LookupTableFindV2",
        "LookupTableSizeV2",
        "LookupTableExportV2",
    ]
)
_RANDOM = ("Random", "Truncated", "Multinomial", "ParameterizedTruncated", "StatefulUniform")
_SHAPES_ANEW = frozenset({"Reshape", "Squeeze", "ExpandDims", "BroadcastTo", "Cast"})
_CALLS_OUT = frozenset({"EagerPyFunc", "PyFunc", "PrintV2", "Print", "Assert", "Timestamp"})
_NO_MATTER = frozenset(
    {"output_shapes", "seed", "seed2", "shared_name", "container", "grad_a", "grad_b"}
    | {"frame_name", "use_default_device", "metadata"}
)
_LONGEST_VALUE = 200  # longer texts of values are cut where they are recorded


class Facts:
    """What can be said of a traced graph without the optimized one."""

    def __init__(self, flat: Flat) -> None:
        self.flat = flat
        self.effects = [op.id for op in flat.ops.values() if _has_effect(op)]
        self.readers: dict[str, list[str]] = {name: [] for name in flat.ops}
        """Which ops read an op's results, as far as the tensors go through no loop or choice."""
        for op in flat.ops.values():
            for ref in op.inputs:
                read = flat.real(ref).node
                if read in self.readers:
                    self.readers[read].append(op.id)
        self.order = _in_order(flat)
        """The ids with every op after those whose results it reads."""
        self.constant: dict[str, bool] = {}
        """Whether an op's results follow from constants, and from the shapes of tensors."""
        self.number: dict[str, int] = {}
        """A number that two ops share only if they compute the same."""
        known: dict[Hashable, int] = {}
        for name in self.order:
            op = flat.ops[name]
            self.constant[name] = self._is_constant(op)
            source = flat.source(op.inputs[0]).node if self.changes_nothing(op) else None
            if source in self.number:
                self.number[name] = self.number[source]
                continue
            label = self._label(op)
            self.number[name] = known.setdefault(name if label is None else label, len(known))

    # -- what is needed -------------------------------------------------------------------

    def needed(self, roots: Iterable[str], *, values: bool = False) -> set[str]:
        """Return the ops that results, side effects or the given ops depend on by tensors.

        Args:
            roots: Ops that are needed whatever reads them.
            values: Leave out those of which only the shape of the result is needed.
        """
        found: set[str] = set()
        seen: set[TensorRef] = set()
        todo = [*self.flat.results]
        for name in (*self.effects, *roots):
            todo += [TensorRef(name), *self._context(name)]
        while todo:
            ref = todo.pop()
            if ref in seen:
                continue
            seen.add(ref)
            if ref in self.flat.aliases:
                todo.append(self.flat.aliases[ref])
                continue
            op = self.flat.ops.get(ref.node)
            if op is None:
                continue
            found.add(op.id)
            if not (values and op.node.op in SHAPE_OPS):
                todo += self._needs(op, ref.port)
        return found

    def _needs(self, op: FlatOp, port: int) -> Iterator[TensorRef]:
        bodies = self.flat.bodies.get(op.id)
        loop = self.flat.arguments.get(op.id)
        if loop is not None:
            yield TensorRef(*loop)
        elif not bodies:
            yield from op.inputs
        elif is_choice(bodies):
            yield from op.inputs[:1]
            yield from _results(bodies.values(), port)
        elif is_loop(bodies):
            yield from op.inputs[port : port + 1]
            yield from _results([bodies["body"]], port)
            yield from bodies["cond"].results
        else:
            yield from op.inputs
            for body in bodies.values():
                yield from body.results

    def _context(self, name: str) -> Iterator[TensorRef]:
        """Yield what decides whether the body runs that an op stands in."""
        op = self.flat.ops[name]
        while op.caller:
            op = self.flat.ops[op.caller]
            bodies = self.flat.bodies[op.id]
            if is_choice(bodies):
                yield from op.inputs[:1]
            elif is_loop(bodies):
                yield from bodies["cond"].results

    # -- what is constant, what is equal --------------------------------------------------

    def _is_constant(self, op: FlatOp) -> bool:
        if op.node.kind is NodeKind.CONST:
            return True
        if op.node.op in SHAPE_OPS:
            return True
        if not op.inputs or op.id in self.flat.bodies or _differs(op):
            return False
        return all(self.constant.get(self.flat.source(ref).node, False) for ref in op.inputs)

    def changes_nothing(self, op: FlatOp) -> bool:
        """Tell whether an op gives out what it gets, as type and shape prove."""
        if op.node.op not in _SHAPES_ANEW or not op.inputs or len(op.node.outputs) != 1:
            return False
        ref = self.flat.source(op.inputs[0])
        source = self.flat.ops.get(ref.node)
        made = op.node.outputs[0]
        if source is None or made.size is None or ref.port >= len(source.node.outputs):
            return False
        return source.node.outputs[ref.port] == made

    def _label(self, op: FlatOp) -> Hashable | None:
        """Return what an op computes, or None when no other op can be known to compute it."""
        node = op.node
        if node.kind is NodeKind.CONST:
            known = node.value is not None and len(node.value) < _LONGEST_VALUE
            return ("Const", node.outputs, node.value) if known else None
        stands_alone = not op.inputs or op.id in self.flat.bodies or op.id in self.flat.arguments
        if stands_alone or node.op in _READS or _differs(op):
            return None
        inputs = []
        for ref in op.inputs:
            source = self.flat.source(ref)
            if source.node not in self.number:
                return None
            inputs.append((self.number[source.node], source.port))
        if node.op in COMMUTATIVE:
            inputs.sort()
        types = tuple(spec.dtype for spec in node.outputs)
        return (
            node.op,
            types,
            tuple(sorted(said(node).items())) if node.attrs else (),
            tuple(inputs),
        )


def said(node: Node) -> dict[str, Scalar]:
    """Return the attributes that say what an op computes, not how it was found or is run."""
    return {
        key: value
        for key, value in node.attrs.items()
        if not key.startswith("_") and key not in _NO_MATTER and value != "[]"
    }


def _results(bodies: Iterable[Body], port: int) -> Iterator[TensorRef]:
    for body in bodies:
        yield from body.results[port : port + 1]


def _has_effect(op: FlatOp) -> bool:
    """Tell whether an op does something beside computing its results."""
    node = op.node
    if node.op in _CALLS_OUT:
        return True
    if op.node.kind in (NodeKind.INPUT, NodeKind.VARIABLE, NodeKind.CONST) or node.calls:
        return False
    if not node.outputs:
        return bool(op.inputs)
    return node.op.startswith("Assign") or "Iterator" in node.op or "Queue" in node.op


def _differs(op: FlatOp) -> bool:
    """Tell whether an op may give something else each time it runs."""
    return op.node.op.startswith(_RANDOM) or _has_effect(op)


def _in_order(flat: Flat) -> list[str]:
    order: list[str] = []
    done: set[str] = set()
    for root in flat.ops:
        stack = [(root, False)]
        while stack:
            name, ready = stack.pop()
            if ready:
                order.append(name)
            elif name not in done:
                done.add(name)
                stack.append((name, True))
                sources = (flat.source(ref).node for ref in flat.ops[name].inputs)
                stack += [(n, False) for n in sources if n not in done and n in flat.ops]
    return order
