"""Say what became of every traced op, and where every optimized op came from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graph2mermaid.collector import collector_paused
from graph2mermaid.graph import Graph, NodeKind
from graph2mermaid.optimization import PassChange
from graph2mermaid.provenance.credit import credit
from graph2mermaid.provenance.facts import Facts
from graph2mermaid.provenance.flat import Flat, FlatOp, flatten, is_choice, is_loop
from graph2mermaid.provenance.harmless import is_harmless
from graph2mermaid.provenance.match import (
    INTERFACE,
    Matches,
    match,
    named_optimizer,
    same_attributes,
    same_form,
)
from graph2mermaid.provenance.model import (
    GONE,
    Fate,
    Folded,
    How,
    NodeOrigin,
    OpFate,
    Provenance,
    Suspect,
)

_HANDS_ON = frozenset({"Identity", "IdentityN", "NoOp", "StopGradient", "PreventGradient"})
_ABSORBING = {How.FOLDED: Fate.FOLDED, How.FUSED: Fate.FUSED, How.CHANGED: Fate.FUSED}
_FATES = {
    How.KEPT: Fate.KEPT,
    How.CHANGED: Fate.CHANGED,
    How.FOLDED: Fate.FOLDED,
    How.FUSED: Fate.FUSED,
}


def explain(
    traced: Graph,
    optimized: Graph,
    passes: Sequence[PassChange] = (),
    *,
    flat: Flat | None = None,
) -> Provenance:
    """Compare a traced graph with what the optimizer made of it.

    Args:
        traced: With the bodies of its functions.
        optimized: The same function after optimization: calls inlined, loops and branches lowered.
        passes: What each optimizer did in a replay; the changes are credited to these.
        flat: The ops of the traced graph, where they are known already.
    """
    with collector_paused():
        flat = flatten(traced) if flat is None else flat
        found = _Explainer(Facts(flat), flatten(optimized)).run()
        return credit(found, flat, passes) if passes else found


class _Explainer:
    def __init__(self, facts: Facts, optimized: Flat) -> None:
        self._facts = facts
        self._traced = facts.flat
        self._optimized = optimized
        self._found: Matches = match(facts, optimized)
        self._how: dict[str, How] = {}
        self._why: dict[str, str] = {}
        self._fate: dict[str, Fate] = {}
        self._into: dict[str, list[str]] = {}
        self._absorbed: dict[str, dict[str, Fate]] = {}
        """For each traced op, the optimized ops that took it in together with its readers."""
        self._complete: set[str] = set()
        """The traced ops all of whose readers were taken in."""

    def run(self) -> Provenance:
        for op in self._optimized.ops.values():
            self._how[op.id] = self._how_of(op)
        for name in self._found.rewired:
            if self._how[name] is How.KEPT:
                self._how[name] = How.CHANGED
        survivors = [t for n, t in self._found.traced.items() if self._keeps_alive(n, t)]
        self._needed = self._facts.needed(survivors)
        self._untaken = self._untaken_ops()
        self._lowered_to: dict[str, list[str]] = {}
        for optimized, source in self._found.lowered.items():
            self._lowered_to.setdefault(source, []).append(optimized)
        self._valued = self._facts.needed(survivors, values=True)
        self._arguments = {
            ref.node
            for bodies in self._traced.bodies.values()
            for body in bodies.values()
            for ref in body.arguments
        }
        for name in reversed(self._facts.order):
            self._absorb(name)
        self._equal = self._images_by_number()
        for name in reversed(self._facts.order):
            fate, into = self._fate_of(self._traced.ops[name])
            self._fate[name] = fate
            self._into[name] = list(dict.fromkeys(into))
        return self._provenance()

    def _keeps_alive(self, optimized: str, traced: str) -> bool:
        """What was kept was needed, whether or not the traced graph shows by what."""
        return self._how[optimized] is not How.FOLDED and traced not in self._traced.arguments

    # -- optimized ops --------------------------------------------------------------------

    def _how_of(self, op: FlatOp) -> How:
        traced = self._found.traced.get(op.id)
        optimizer = named_optimizer(op.id)
        if traced is not None and (not optimizer or named_optimizer(traced)):
            return self._how_matched(op, self._traced.ops[traced])
        stands_for = self._found.stands_for.get(op.id, [])
        if optimizer:
            self._why[op.id] = optimizer
        if op.node.kind is NodeKind.CONST and stands_for:
            return How.FOLDED
        if op.id in self._found.lowered:
            return How.LOWERED
        if optimizer or stands_for:
            return How.ADDED
        return How.UNEXPLAINED

    def _how_matched(self, new: FlatOp, old: FlatOp) -> How:
        if new.node.op in INTERFACE and old.node.op in INTERFACE:
            return How.KEPT
        if new.node.op in ("_Retval", "Identity") and old.node.op == "Identity":
            return How.KEPT
        if new.node.op == old.node.op:
            constant = new.node.kind is NodeKind.CONST
            same = same_form(new, old) and (same_attributes(new, old) or constant)
            if constant and new.node.value != old.node.value:
                return How.CHANGED
            return How.KEPT if same else How.CHANGED
        if new.node.kind is NodeKind.CONST:
            return How.FOLDED
        if "fused_ops" in new.node.attrs or new.node.op.startswith(("_Fused", "_Mkl")):
            return How.FUSED
        return How.CHANGED

    # -- traced ops -----------------------------------------------------------------------

    def _absorb(self, name: str) -> None:
        """Find the kernels and constants that took in an op: those that took in all its readers."""
        if name in self._found.image or name in self._found.replaced:
            return
        into: dict[str, Fate] = {}
        complete = True
        for reader in self._facts.readers[name]:
            if reader not in self._needed or reader in self._untaken:
                continue
            image = self._found.image.get(reader)
            if image is not None:
                fate = _ABSORBING.get(self._how[image])
                if fate is None or image in self._found.rewired:
                    complete = False
                elif fate is Fate.FUSED and self._traced.ops[name].node.kind is NodeKind.CONST:
                    into[image] = Fate.FOLDED  # it is in the kernel's code or attributes
                else:
                    into[image] = fate
            elif reader in self._found.replaced:
                into |= {new: self._replaced_by(new) for new in self._found.replaced[reader]}
            else:
                into |= self._absorbed.get(reader, {})
                complete = complete and reader in self._complete
        self._absorbed[name] = into
        if complete and into:
            self._complete.add(name)

    def _fate_of(self, op: FlatOp) -> tuple[Fate, Iterable[str]]:
        found, name = self._found, op.id
        if name in found.image:
            image = found.image[name]
            others = found.replaced.get(name, [])
            return _FATES.get(self._how[image], Fate.REPLACED), [image, *others]
        if name in self._untaken:
            return Fate.UNTAKEN, ()
        if name in self._traced.bodies or name in self._arguments:
            return Fate.INLINED, self._lowered_to.get(name, ())
        if name not in self._needed:
            return Fate.DEAD, ()
        if name in found.replaced:
            into = found.replaced[name]
            fates = {self._replaced_by(new) for new in into}
            return (fates.pop() if len(fates) == 1 else Fate.REPLACED), into
        if op.node.op in _HANDS_ON or self._facts.changes_nothing(op):
            return Fate.REDUNDANT, ()
        if name in found.merged:
            return Fate.MERGED, found.merged[name]
        if name in found.bypassed:
            return self._bypassed(name), ()
        if name not in self._valued:
            return Fate.SHAPE_ONLY, ()
        return self._taken_in(name)

    def _replaced_by(self, optimized: str) -> Fate:
        return Fate.FOLDED if self._how[optimized] is How.FOLDED else Fate.REPLACED

    def _bypassed(self, name: str) -> Fate:
        harmless = is_harmless(self._facts, self._optimized, self._found.bypassed[name])
        return Fate.REDUNDANT if harmless else Fate.BYPASSED

    def _taken_in(self, name: str) -> tuple[Fate, Iterable[str]]:
        into = self._absorbed.get(name, {})
        equal = self._equal.get(self._facts.number[name], [])
        if equal and (name not in self._complete or set(into.values()) == {Fate.REPLACED}):
            return Fate.MERGED, equal
        if into:
            fates = set(into.values())
            order = (Fate.FUSED, Fate.REPLACED, Fate.FOLDED)
            return next(fate for fate in order if fate in fates), into
        readers = [n for n in self._facts.readers[name] if self._fate[n] is not Fate.DEAD]
        if readers and all(map(self._left_nothing, readers)):
            return Fate.REDUNDANT, ()
        merged = [n for n in readers if self._fate[n] is Fate.MERGED]
        if merged and all(n in merged or self._left_nothing(n) for n in readers):
            return Fate.MERGED, [into for n in merged for into in self._into[n]]
        return Fate.UNEXPLAINED, ()

    def _left_nothing(self, reader: str) -> bool:
        """Tell whether an op went without a trace, and with it the need for its operands."""
        if self._fate[reader] is Fate.INLINED:
            return reader in self._traced.bodies and not self._into[reader]
        return self._fate[reader] in GONE

    def _images_by_number(self) -> dict[int, list[str]]:
        """Return for each number the optimized op that has the value of the ops with it."""
        found: dict[int, list[str]] = {}
        for traced, optimized in self._found.image.items():
            if optimized not in self._found.rewired:
                found.setdefault(self._facts.number[traced], [optimized])
        for traced, replacements in self._found.replaced.items():
            found.setdefault(self._facts.number[traced], replacements)
        return found

    def _untaken_ops(self) -> set[str]:
        """Return the ops of branches and loops that are left out, as their predicate is known."""
        alive: set[str] = set()
        for image in self._found.image:
            op = self._traced.ops[image]
            while op.caller and op.id not in alive:
                alive |= {op.id, f"{op.caller}#{op.role}"}
                op = self._traced.ops[op.caller]
        kept = {source for source in self._found.lowered.values() if source}
        gone: set[tuple[str, str]] = set()
        for caller, bodies in self._traced.bodies.items():
            if caller in kept or caller in self._found.image:
                continue
            used = [role for role in bodies if f"{caller}#{role}" in alive]
            if (is_choice(bodies) and used) or is_loop(bodies):
                gone |= {(caller, role) for role in bodies if role not in used}
        untaken: set[str] = set()
        for op in self._traced.ops.values():
            if (op.caller, op.role) in gone or op.caller in untaken:
                untaken.add(op.id)
        return untaken

    # -- the result -----------------------------------------------------------------------

    def _provenance(self) -> Provenance:
        origins: dict[str, list[str]] = {name: [] for name in self._optimized.ops}
        for name in self._traced.ops:
            for optimized in self._into[name]:
                origins[optimized].append(name)
        position = {name: i for i, name in enumerate(self._optimized.ops)}
        return Provenance(
            {op.id: self._origin(op, tuple(origins[op.id])) for op in self._optimized.ops.values()},
            {
                op.id: OpFate(
                    op.id,
                    op.node.op,
                    self._fate[op.id],
                    tuple(sorted(self._into[op.id], key=position.__getitem__)),
                )
                for op in self._traced.ops.values()
            },
            tuple(self._suspects()),
        )

    def _origin(self, op: FlatOp, origins: tuple[str, ...]) -> NodeOrigin:
        how = self._how[op.id]
        traced = self._found.traced.get(op.id)
        merged = any(self._fate[name] is Fate.MERGED for name in origins)
        was = None
        if how in (How.CHANGED, How.FUSED) and traced is not None:
            was = self._traced.ops[traced].node.op
        return NodeOrigin(
            op.id,
            op.node.op,
            How.MERGED if how is How.KEPT and merged else how,
            origins,
            was,
            self._folded(op, traced) if how is How.FOLDED else None,
            self._why.get(op.id),
        )

    def _folded(self, op: FlatOp, traced: str | None) -> Folded:
        spec = op.node.outputs[0]
        candidates = [traced] if traced is not None else self._found.stands_for.get(op.id, [])
        constant = (name for name in candidates if self._facts.constant[name])
        equals = None if op.id in self._found.mixed else next(constant, None)
        return Folded(spec.dtype, spec.shape, spec.nbytes, op.node.value, equals)

    def _suspects(self) -> Iterable[Suspect]:
        seen: dict[Suspect, None] = {}
        for name, bypass in self._found.bypassed.items():
            if self._fate[name] is Fate.BYPASSED:
                ops = tuple(n for n in bypass.ops if self._fate[n] is Fate.BYPASSED)
                seen[Suspect(ops, bypass.producer.node, bypass.consumer)] = None
        return seen
