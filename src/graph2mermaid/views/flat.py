"""The flat graph that a drawing is made of, and the parts of it that options select."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.graph import Graph, Stage
from graph2mermaid.passes.absorb import absorb
from graph2mermaid.passes.arrange import beside_readers, in_traced_order
from graph2mermaid.passes.devices import by_device
from graph2mermaid.passes.ghosts import Ghosts, Haunted, with_ghosts
from graph2mermaid.passes.hide import hide
from graph2mermaid.passes.hlo import dataflow
from graph2mermaid.passes.inline import Body, Inlined, inline
from graph2mermaid.passes.lowered import raised
from graph2mermaid.passes.results import with_results
from graph2mermaid.passes.select import around, between, find, keep
from graph2mermaid.views.options import Options

_NO_GHOSTS = Ghosts()
_NO_FIRSTS: Mapping[str, str] = MappingProxyType({})
_AFTER_TRACING = (Stage.GRAPPLER, Stage.RUNTIME)


@dataclass(frozen=True)
class Flat:
    """A graph with the bodies of its functions in place, and without what is not drawn."""

    name: str
    inlined: Inlined
    graph: Graph
    gone: Mapping[str, str]
    """For each op of plumbing that was taken out, the node that it is now part of."""
    left_out: tuple[str, ...]
    """Sentences about what was taken out."""
    scopes: Mapping[str, str] = field(default_factory=dict)
    """The scopes of the nodes whose names do not tell where they belong."""


class Selected(NamedTuple):
    """A part of a flat graph that was asked for."""

    key: str
    title: str
    flat: Flat


def flatten(
    graph: Graph,
    options: Options,
    *,
    whole: bool = True,
    traced: Graph | None = None,
    ghosts: Ghosts = _NO_GHOSTS,
    firsts: Mapping[str, str] = _NO_FIRSTS,
) -> Flat:
    """Return the flat graph at the level that was asked for.

    Without `whole` the graph is a part of what is drawn, and what is not in it may be elsewhere.
    `traced` is what an optimized graph was made of, and `ghosts` are the ops it has no more.
    `firsts` says, of ops that stand for several equal ones, which was the first.
    """
    simple = options.level == "simple"
    left_out: list[str] = []
    if graph.stage is Stage.XLA:
        inlined = _of_hlo(graph, simple, left_out)
    elif graph.stage in _AFTER_TRACING:
        inlined = _lowered(graph, simple, traced, firsts)
    else:
        inlined = inline(graph, simple=simple)
    full = flat = with_results(inlined.graph)
    gone: Mapping[str, str] = {}
    lowered = len(graph) - sum(node.name in graph for node in inlined.graph.nodes())
    if lowered and graph.stage in _AFTER_TRACING:
        left_out.append(
            f"{counted(lowered, 'op')} of lowered control flow (Switch, Merge, Enter, Exit, "
            f"NextIteration) {is_or_are(lowered)} drawn as diamonds and merges."
        )
    if simple and graph.stage is not Stage.XLA:
        absorbed = absorb(flat)
        flat, gone = absorbed.graph, absorbed.gone
        count = len(gone) + inlined.counters
        if count:
            counters = ", loop counters" if inlined.counters else ""
            left_out.append(
                f"{counted(count, 'op')} of plumbing (variable reads, shape and axis constants, "
                f"Identity, NoOp{counters}) {is_or_are(count)} drawn without a box."
            )
    if ghosts.drawn or ghosts.plumbing:
        haunted = with_ghosts(flat, replace(inlined, graph=full), gone, ghosts.drawn)
        flat, inlined = haunted.graph, replace(inlined, home=haunted.home)
        left_out += _said_of_ghosts(haunted, ghosts.plumbing)
    scopes: Mapping[str, str] = {}
    if graph.stage in _AFTER_TRACING or (simple and graph.stage is Stage.XLA):
        arranged = beside_readers(flat, inlined.home, firsts, copy=simple)
        flat, scopes = arranged.graph, arranged.scopes
        inlined = replace(inlined, home=arranged.home)
        if arranged.shared:
            yes = "stands" if arranged.shared == 1 else "stand"
            left_out.append(
                f"{counted(arranged.shared, 'constant')} that several parts read {yes} in each."
            )
    if options.hide:
        elsewhere = graph.functions.values() if inlined.not_drawn else ()
        found = hide(flat, options.hide, (full, *elsewhere))
        flat = found.graph
        said = found.unknown if whole else ()
        if found.count or not said:
            ops = counted(found.count, "op")
            left_out.append(f"{ops} {is_or_are(found.count)} hidden on request.")
        left_out += said
    return Flat(graph.name, inlined, flat, gone, tuple(left_out), scopes)


def _said_of_ghosts(haunted: Haunted, plumbing: int) -> Iterator[str]:
    if plumbing:
        yield f"{counted(plumbing, 'removed op')} of plumbing {is_or_are(plumbing)} not drawn."
    if haunted.not_placed:
        ops = counted(haunted.not_placed, "removed op")
        yield f"{ops} {has_or_have(haunted.not_placed)} no place beside what is left."
    if haunted.edges_dropped:
        edges = counted(haunted.edges_dropped, "edge")
        yield (
            f"{edges} of removed ops {is_or_are(haunted.edges_dropped)} not drawn, "
            "as the reader comes earlier now."
        )


def _of_hlo(graph: Graph, simple: bool, left_out: list[str]) -> Inlined:
    """Put what fusions, loops and branches run in frames, and take XLA's tuples apart."""
    flow = dataflow(graph, simple=simple)
    if flow.tuples:
        words = counted(flow.tuples, "instruction")
        left_out.append(
            f"{words} (tuple, get-tuple-element) {is_or_are(flow.tuples)} drawn as edges."
        )
    if flow.plumbing:
        words = counted(flow.plumbing, "instruction")
        left_out.append(
            f"{words} that move nothing or spread a number (bitcast, broadcast) "
            f"{is_or_are(flow.plumbing)} drawn as edges."
        )
    inlined = inline(flow.graph, simple=simple)
    kinds = {
        node.name: str(node.attrs.get("kind", "")).removeprefix("k").lower()
        for part in (graph, *graph.functions.values())
        for node in part.nodes()
        if node.op == "fusion"
    }

    def titled(body: Body) -> Body:
        """Call a fusion by its own name and kind; a loop's or branch's body is what it is."""
        name = body.call.rpartition("/")[2]
        if name not in kinds:
            return body
        return replace(body, title=f"{name} · {kinds[name]}" if kinds[name] else name)

    return replace(inlined, bodies={key: titled(body) for key, body in inlined.bodies.items()})


def _lowered(
    graph: Graph, simple: bool, traced: Graph | None, firsts: Mapping[str, str]
) -> Inlined:
    """Draw loops and branches as what they were, each device's ops in a frame of their own.

    The runtime has put the bodies of calls in place. Those that it left are not drawn here.
    """
    if traced is not None:
        graph = in_traced_order(graph, traced, firsts)
    inlined = raised(graph, traced=traced) if simple else Inlined(graph, {}, {}, ())
    calls = (call.function for node in inlined.graph.nodes() for call in node.calls)
    called = tuple(dict.fromkeys(name for name in calls if name in graph.functions))
    inlined = replace(inlined, not_drawn=called)
    return by_device(inlined) if graph.stage is Stage.RUNTIME else inlined


def selections(flat: Flat, options: Options) -> Iterator[Selected]:
    """Yield the neighborhood and the paths that the options ask for.

    Raises:
        Graph2MermaidError: There is no such name, or no path.
    """
    if options.focus is not None:
        hops = 1 if options.hops is None else options.hops
        start = find(flat.graph, options.focus, flat.gone)
        far = f"at most {counted(hops, 'hop')} from" if hops else "in"
        words = f"what is {far} {options.focus}"
        title = f"around {options.focus}" if hops else options.focus
        yield Selected("focus:", title, _kept(flat, around(flat.graph, start, hops), words))
    if options.from_ is not None and options.to is not None:
        ends = [find(flat.graph, name, flat.gone) for name in (options.from_, options.to)]
        names = between(flat.graph, ends[0], ends[1])
        if not names:
            back = between(flat.graph, ends[1], ends[0])
            hint = f"; there is one from {options.to!r} to {options.from_!r}" if back else ""
            raise Graph2MermaidError(
                f"there is no path from {options.from_!r} to {options.to!r}{hint}"
            )
        title = f"{options.from_} to {options.to}"
        yield Selected("paths:", title, _kept(flat, names, f"all paths from {title}"))


def _kept(flat: Flat, names: set[str], words: str) -> Flat:
    part = keep(flat.graph, names)
    said = f"This is {words}: {len(part.graph):,} of {counted(len(flat.graph), 'node')}."
    if part.edges_cut:
        cut = part.edges_cut
        said = f"{said[:-1]}; {counted(cut, 'edge')} to or from others {is_or_are(cut)} cut."
    return replace(flat, graph=part.graph, left_out=(said, *flat.left_out))


def counted(number: int, one: str, many: str = "") -> str:
    """Return `1 op`, `2,000 ops`, `2 function bodies`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def is_or_are(number: int) -> str:
    """Return the verb that goes with a number of things."""
    return "is" if number == 1 else "are"


def has_or_have(number: int) -> str:
    """Return the other verb that goes with a number of things."""
    return "has" if number == 1 else "have"
