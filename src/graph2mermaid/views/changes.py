"""What an optimization changed, in words and tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from graph2mermaid.graph import Graph, Node
from graph2mermaid.optimization import Way
from graph2mermaid.provenance import (
    GONE,
    Blocked,
    Blocker,
    Fate,
    How,
    NodeOrigin,
    OpFate,
    Optimization,
    Provenance,
    Suspect,
)
from graph2mermaid.provenance.flat import flatten
from graph2mermaid.report.model import Block, Code, Column, Items, Paragraph, Table, Text
from graph2mermaid.views import tables
from graph2mermaid.views.flat import counted

_OPTIMIZERS = {
    "pruning": "model pruner",
    "function": "function optimizer",
    "common_subgraph_elimination": "common subgraph elimination",
    "debug_stripper": "debug stripper",
    "constfold": "constant folding",
    "shape": "shape optimization",
    "auto_mixed_precision": "auto mixed precision",
    "auto_mixed_precision_onednn_bfloat16": "auto mixed precision (bfloat16)",
    "auto_mixed_precision_mkl": "auto mixed precision (bfloat16)",
    "arithmetic": "arithmetic optimization",
    "layout": "layout optimizer",
    "remap": "remapper",
    "loop": "loop optimization",
    "dependency": "dependency optimization",
    "memory": "memory optimization",
    "scoped_allocator": "scoped allocator",
    "pin_to_host": "pin to host",
}
"""Grappler's names for its passes, and how its documentation writes them."""

_HOW_WORDS = {
    How.KEPT: "kept as they were",
    How.CHANGED: "kept with another type or attributes",
    How.FOLDED: "constants that were folded",
    How.FUSED: "fused kernels",
    How.MERGED: "kept, and stand for equal ops as well",
    How.LOWERED: "part of a loop, branch or call put in place",
    How.ADDED: "added by an optimizer",
    How.UNEXPLAINED: "not explained",
}

_FATE_WORDS = {
    Fate.KEPT: "kept",
    Fate.CHANGED: "kept with another type or attributes",
    Fate.FOLDED: "folded into a constant",
    Fate.FUSED: "fused into a kernel",
    Fate.MERGED: "merged with an equal op",
    Fate.REPLACED: "replaced by an added op",
    Fate.INLINED: "a call, loop or branch (or its argument) put in place",
    Fate.DEAD: "removed: nothing needs it",
    Fate.UNTAKEN: "removed: in a branch that is never taken",
    Fate.REDUNDANT: "removed: it changes nothing",
    Fate.BYPASSED: "removed: its reader takes its input",
    Fate.SHAPE_ONLY: "removed: only its shape was needed",
    Fate.UNEXPLAINED: "not explained",
}

_BLOCKER_WORDS = {
    Blocker.OPTIMIZER_OFF: "the remapper is switched off",
    Blocker.USED_ELSEWHERE: "something else reads the result of",
    Blocker.DTYPE: "there is no fused kernel for its type",
    Blocker.RANK: "it multiplies batches of matrices (rank above 2)",
    Blocker.PLUS: "the bias is added with `+`; only oneDNN fuses that, while `tf.nn.bias_add` "
    "is fused without it as well",
    Blocker.ONEDNN: "only oneDNN has such a kernel, and it is off",
    Blocker.NO_BIAS: "there is no bias between; an activation alone is not fused",
    Blocker.UNKNOWN_SHAPE: "the shapes do not show that the addend is a bias",
    Blocker.DATA_FORMAT: "its channels come first, which CPU kernels do not take",
    Blocker.TRAINING: "the normalization uses the batch's own mean and variance",
}


def why_removed(fate: Fate) -> str:
    """Return why an op with one of the fates in `GONE` is not there any more."""
    return _FATE_WORDS[fate].removeprefix("removed: ")


def optimizer_name(name: str) -> str:
    """Return what TensorFlow's documentation calls an optimizer."""
    return _OPTIMIZERS.get(name, name)


def in_words(provenance: Provenance) -> str:
    """Return `3 fused into 1 kernel, 4 folded into 1 constant, 5 removed, 1 added`."""
    ops, nodes = provenance.op_counts, provenance.node_counts
    words = []
    for fate, how, thing in (
        (Fate.FUSED, How.FUSED, "kernel"),
        (Fate.FOLDED, How.FOLDED, "constant"),
    ):
        origins = (node.origins for node in provenance.nodes.values() if node.how is how)
        took = len({name for names in origins for name in names})
        if nodes.get(how):
            many = "" if nodes[how] == 1 else "s"
            words.append(
                f"{max(took, ops.get(fate, 0)):,} {how.value} into {nodes[how]:,} {thing}{many}"
            )
    removed = sum(ops.get(fate, 0) for fate in GONE)
    for number, said in (
        (ops.get(Fate.MERGED, 0), "merged with equal ones"),
        (nodes.get(How.CHANGED, 0), "changed"),
        (removed, "removed"),
        (nodes.get(How.ADDED, 0), "added"),
    ):
        if number:
            words.append(f"{number:,} {said}")
    return ", ".join(words)


def unexplained(provenance: Provenance) -> int:
    """Return how many traced ops went nobody knows where."""
    return provenance.op_counts.get(Fate.UNEXPLAINED, 0)


def op_types(ids: Sequence[str], provenance: Provenance) -> list[str]:
    """Return the types of some traced ops."""
    return [provenance.ops[name].op for name in ids]


def suspect_words(suspect: Suspect, provenance: Provenance) -> Text:
    """Say what was taken out between two ops that are still there."""
    types = ", ".join(op_types(suspect.ops, provenance))
    return (
        f"{types} was taken out between ",
        Code(suspect.producer),
        " and ",
        Code(suspect.consumer),
        ", though it changes its input: the optimized function may return something else.",
    )


def sections(
    optimization: Optimization, traced: Graph | None
) -> Iterator[tuple[str, tuple[Block, ...]]]:
    """Yield the titled tables of an optimization; those without rows are left out."""
    provenance = optimization.provenance
    nodes = {op.id: op.node for op in flatten(traced).ops.values()} if traced is not None else {}
    yield "Before and after", (_before(provenance), _after(provenance))
    found: tuple[tuple[str, Table | None], ...] = (
        ("What changed", _changed(provenance, nodes)),
        ("What was removed", _removed(provenance, nodes)),
    )
    for title, table in found:
        if table is not None:
            yield title, (table,)
    if optimization.passes:
        yield "By pass", tuple(_by_pass(optimization))
    why_not = [_blocked(chain, provenance, nodes) for chain in optimization.blocked]
    if why_not:
        kept, more = tables.cut(why_not, "chain")
        yield (
            "Why not fused",
            (Items(tuple(kept)), *((Paragraph(f"... and {more}."),) if more else ())),
        )
    if optimization.differences and optimization.way is Way.RUN:
        yield "Offline and run", (_differences(optimization),)


def _before(provenance: Provenance) -> Table:
    counts = provenance.op_counts
    rows: list[tuple[Text, ...]] = [
        (_FATE_WORDS[fate], f"{counts[fate]:,}") for fate in Fate if fate in counts
    ]
    rows.append(("all, bodies of functions included", f"{len(provenance.ops):,}"))
    return Table((Column("Traced ops"), Column("Count", number=True)), tuple(rows))


def _after(provenance: Provenance) -> Table:
    counts = provenance.node_counts
    rows: list[tuple[Text, ...]] = [
        (_HOW_WORDS[how], f"{counts[how]:,}") for how in How if how in counts
    ]
    rows.append(("all", f"{len(provenance.nodes):,}"))
    return Table((Column("Ops after Grappler"), Column("Count", number=True)), tuple(rows))


def _changed(provenance: Provenance, traced: dict[str, Node]) -> Table | None:
    """List the ops that are not what was traced; those that came about alike are one row."""
    groups: dict[tuple[int, str, str, str, tuple[str, ...]], list[NodeOrigin]] = {}
    for node in provenance.nodes.values():
        if node.how in _TOLD:
            groups.setdefault(_likeness(node, provenance), []).append(node)
    if not groups:
        return None
    kept, more = tables.cut([groups[key] for key in sorted(groups, key=lambda k: k[0])], "row")
    rows = tuple(
        (
            _named([node.name for node in alike]),
            f"{len(alike):,}",
            (Code(alike[0].op), f" {_detail(alike[0])}".rstrip()),
            alike[0].how.value,
            _made_of(alike, provenance),
            optimizer_name(alike[0].by) if alike[0].by else "?",
            _lines([name for node in alike for name in node.origins], traced),
        )
        for alike in kept
    )
    columns = (
        Column("Op"),
        Column("Ops", number=True),
        Column("Type"),
        Column("How"),
        Column("Made of"),
        Column("Pass"),
        Column("Line"),
    )
    return Table(columns, rows, tables.and_more(more))


_TOLD = (How.FUSED, How.CHANGED, How.ADDED, How.FOLDED, How.MERGED)


def _likeness(
    node: NodeOrigin, provenance: Provenance
) -> tuple[int, str, str, str, tuple[str, ...]]:
    """Return what ops that came about alike have in common, the kind of change first."""
    types = tuple(sorted(op_types(node.origins, provenance)))
    if node.how is How.MERGED and node.op == "Const":
        types = ()  # how many equal constants there were does not matter
    return (_TOLD.index(node.how), node.op, node.by or "", _detail(node), types)


def _named(names: Sequence[str]) -> Text:
    """Return the first name, and how many more there are."""
    return Code(names[0]) if len(names) == 1 else (Code(names[0]), f" and {len(names) - 1:,} more")


def _detail(node: NodeOrigin) -> str:
    folded = node.folded
    if folded is None:
        return f"added for {node.why}" if node.how is How.ADDED and node.why else ""
    shape = (
        "..."
        if folded.shape is None
        else ",".join("?" if n is None else str(n) for n in folded.shape)
    )
    value = f" = {folded.value}" if folded.value is not None else ""
    size = "" if folded.nbytes is None else f", {counted(folded.nbytes, 'byte')}"
    return f"{folded.dtype}[{shape}]{value}{size}"


def _made_of(alike: Sequence[NodeOrigin], provenance: Provenance) -> Text:
    """List the types that one of them was made of; of equal constants, all of them."""
    node = alike[0]
    merged = [name for one in alike for name in one.origins] if node.how is How.MERGED else ()
    counts = Counter(op_types(merged or node.origins, provenance))
    if node.how is How.CHANGED and node.was and len(node.origins) == 1:
        return Code(node.was)
    return tables.listed(
        [
            (Code(op), f" \N{MULTIPLICATION SIGN} {count:,}") if count > 1 else Code(op)
            for op, count in counts.items()
        ]
    )


def _lines(ids: Sequence[str], traced: dict[str, Node]) -> Text:
    lines = (traced[name].source for name in ids if name in traced)
    found = dict.fromkeys(str(line) for line in lines if line is not None)
    return tables.listed([Code(line) for line in found])


def _removed(provenance: Provenance, traced: dict[str, Node]) -> Table | None:
    found = [op for op in provenance.ops.values() if op.fate in GONE]
    if not found:
        return None
    groups: defaultdict[tuple[str, Fate, str, str], list[OpFate]] = defaultdict(list)
    for op in found:
        line = traced[op.id].source if op.id in traced else None
        groups[op.op, op.fate, op.by or "?", str(line) if line else ""].append(op)
    kept, more = tables.cut(list(groups.items()), "kind")
    rows = tuple(
        (
            Code(type_),
            f"{len(ops):,}",
            why_removed(fate),
            optimizer_name(by),
            Code(line) if line else "",
            _named([op.id for op in ops]),
        )
        for (type_, fate, by, line), ops in kept
    )
    columns = (
        Column("Type"),
        Column("Ops", number=True),
        Column("Why"),
        Column("Pass"),
        Column("Line"),
        Column("Op"),
    )
    return Table(columns, rows, tables.and_more(more))


def _by_pass(optimization: Optimization) -> Iterator[Block]:
    provenance = optimization.provenance
    done: defaultdict[str, list[str]] = defaultdict(list)
    order = dict.fromkeys(step.optimizer for step in optimization.passes)
    for name in order:
        done[name] = _deeds(name, provenance)
    rows: list[tuple[Text, ...]] = []
    for name in order:
        steps = [step for step in optimization.passes if step.optimizer == name]
        notes = [step.note for step in steps if step.note]
        said = "; ".join([*done[name], *notes])
        if said:
            sizes = " then ".join(
                f"-{s.removed:,} +{s.added:,}" for s in steps if s.added or s.removed
            )
            rows.append((optimizer_name(name), said, sizes))
    changed = [op for op in provenance.ops.values() if op.fate not in (Fate.KEPT, Fate.UNEXPLAINED)]
    known = sum(op.by is not None for op in changed)
    caption = (
        f"The optimizers were replayed one at a time from the traced graph. The replay explains "
        f"{known:,} of {len(changed):,} changed ops ({100 * provenance.credited:.1f}%)."
    )
    columns = (Column("Pass"), Column("What it did"), Column("Nodes in the replay"))
    if rows:
        yield Table(columns, tuple(rows), caption)
    else:
        yield Paragraph(caption)


def _deeds(optimizer: str, provenance: Provenance) -> list[str]:
    """Say what the changes are that one optimizer is credited with."""
    nodes = [node for node in provenance.nodes.values() if node.by == optimizer]
    ops = [op for op in provenance.ops.values() if op.by == optimizer]
    folded = [node for node in nodes if node.how is How.FOLDED]
    said = []
    if folded:
        took = len({name for node in folded for name in node.origins})
        said.append(f"{counted(took, 'op')} folded into {counted(len(folded), 'constant')}")
    kernels = Counter(
        f"{' + '.join(_told(node, provenance))} into {node.op}"
        for node in nodes
        if node.how is How.FUSED
    )
    retyped = Counter(
        f"{node.was} into {node.op}"
        for node in nodes
        if node.how is How.CHANGED and node.was and node.was != node.op
    )
    for words, count in [*kernels.items(), *retyped.items()]:
        said.append(f"{words} \N{MULTIPLICATION SIGN} {count:,}" if count > 1 else words)
    rewired = sum(node.how is How.CHANGED and node.was in (None, node.op) for node in nodes)
    merged = sum(op.fate is Fate.MERGED for op in ops)
    placed = sum(op.fate is Fate.INLINED for op in ops)
    removed = sum(op.fate in GONE for op in ops)
    added = sum(node.how is How.ADDED for node in nodes)
    for number, words in (
        (rewired, "rewired"),
        (merged, "merged with equal ones"),
        (added, "added"),
        (placed, "of calls, loops and branches put in place"),
        (removed, "removed"),
    ):
        if number:
            said.append(f"{number:,} {words}")
    return said


def _told(node: NodeOrigin, provenance: Provenance) -> list[str]:
    plumbing = {"Const", "Identity", "Placeholder", "ReadVariableOp"}
    types = op_types(node.origins, provenance)
    return [op for op in types if op not in plumbing] or types


def _blocked(chain: Blocked, provenance: Provenance, traced: dict[str, Node]) -> Text:
    types = " + ".join(op_types(chain.ops, provenance))
    line = next((traced[n].source for n in chain.ops if n in traced and traced[n].source), None)
    place = (" at ", Code(str(line))) if line else ()
    if chain.blocker is None:
        why: tuple[str | Code, ...] = ("it cannot be told why",)
    elif chain.blocker is Blocker.USED_ELSEWHERE:
        why = (f"{_BLOCKER_WORDS[chain.blocker]} ", Code(chain.at))
    else:
        pieces = _BLOCKER_WORDS[chain.blocker].split("`")
        why = tuple(Code(piece) if at % 2 else piece for at, piece in enumerate(pieces))
    return (f"{types} (", Code(chain.ops[0]), ")", *place, ": ", *why, ".")


def _differences(optimization: Optimization) -> Table:
    kept, more = tables.cut(optimization.differences, "op")
    rows = tuple((Code(d.name), _type(d.offline), _type(d.ran)) for d in kept)
    columns = (Column("Op"), Column("Offline"), Column("What ran"))
    return Table(columns, rows, tables.and_more(more))


def _type(op: str) -> Text:
    return Code(op) if op else "none"
