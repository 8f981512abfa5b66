"""The graph that TensorFlow runs of a traced function, and which optimizer did what to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graph2mermaid.collector import collector_paused
from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.graph import Graph, Stage
from graph2mermaid.optimization import Optimized, Way
from graph2mermaid.sources import grappler_config
from graph2mermaid.sources.attr_values import Shape
from graph2mermaid.sources.clusters import has_clusters, with_numbered_clusters
from graph2mermaid.sources.graph_changes import Snapshot, changes
from graph2mermaid.sources.grappler_worker import GrapplerError, Worker, worker
from graph2mermaid.sources.instantiate import NotRecordedError, Recorded, record
from graph2mermaid.sources.lowered_names import renamed_forms, renamed_pass, renumbering
from graph2mermaid.sources.op_defs import RESULT_OPS
from graph2mermaid.sources.optimized_graph import to_graph, traced_names, with_argument_names
from graph2mermaid.sources.replay import NO_REPLAY, Offline, Replay, replay
from graph2mermaid.sources.runtime import executed, undisturbed


class NotOptimizedError(Graph2MermaidError):
    """There is no optimized graph of a function; the message is the reason, without the name."""


@dataclass(frozen=True)
class Stages:
    """The graphs of a function after tracing."""

    optimized: Optimized
    runtime: Graph | None
    """What each device executes; None when the function cannot be executed here."""


def optimize(
    concrete: Any,
    traced: Graph,
    *,
    arguments: Sequence[Any] | None = None,
    with_replay: bool = True,
) -> Stages:
    """Return what the runtime makes of a traced function.

    Without arguments the function does not run, and nothing that it would change is changed. With
    them it runs once, and its variables are put back.

    Args:
        concrete: The ConcreteFunction. It may have run before.
        traced: Its graph.
        arguments: A tensor for each of its inputs but the captured ones.
        with_replay: Whether to find out which optimizer did what, which takes about as long again.

    Raises:
        NotOptimizedError: XLA compiles the function as a whole; or neither the runtime nor
            Grappler can deal with an op of it; or it was to run and failed.
    """
    return _Optimizing(concrete, traced).stages(arguments, with_replay=with_replay)


class _Optimizing:
    """One function, and what is known of it so far."""

    def __init__(self, concrete: Any, traced: Graph) -> None:
        self._concrete = concrete
        self._traced = traced
        self._names = traced_names(concrete, traced)
        self._config = grappler_config.process_config()
        self._notes: list[str] = []

    def stages(self, arguments: Sequence[Any] | None, *, with_replay: bool) -> Stages:
        worker(grappler_config.devices()).start()  # loads while the runtime does its part
        found = self._recorded(None)
        ran = self._recorded(arguments) if arguments is not None else None
        with collector_paused():
            return self._made_of(found, ran, with_replay=with_replay)

    def _made_of(self, found: Recorded, ran: Recorded | None, *, with_replay: bool) -> Stages:
        before = with_argument_names(found.before, self._names)
        offline = self._final(found) or self._made_by_grappler(before, found)
        final = (self._final(ran) if ran is not None else None) or offline
        passes = self._replay(before, final) if with_replay and before.node else NO_REPLAY
        shapes = self._shapes(final) if final.node else {}
        return Stages(
            Optimized(
                to_graph(final, self._traced, stage=Stage.GRAPPLER, shapes=shapes),
                Way.OFFLINE if ran is None else Way.RUN,
                options=grappler_config.changed_options(self._config),
                optimizers=grappler_config.optimizers_on(self._config),
                passes=passes.passes,
                replayed=passes.ended,
                differences=changes(Snapshot(offline), Snapshot(final)) if ran is not None else (),
                notes=(*self._notes, *passes.notes),
            ),
            self._runtime(ran or found, shapes),
        )

    def _recorded(self, arguments: Sequence[Any] | None) -> Recorded:
        try:
            if arguments is None:
                return record(self._concrete)
            with undisturbed(self._concrete):
                return record(self._concrete, arguments)
        except NotRecordedError as error:
            raise NotOptimizedError(str(error)) from error

    def _final(self, recorded: Recorded) -> Any:
        if recorded.optimized is None:
            return None
        return self._named(recorded.optimized)

    def _named(self, graph_def: Any) -> Any:
        return with_numbered_clusters(with_argument_names(graph_def, self._names))

    def _made_by_grappler(self, before: Any, recorded: Recorded) -> Any:
        """Return what Grappler makes of a function that the runtime cannot prepare."""
        self._notes.append(
            "The function cannot run here, so its optimized graph was made by Grappler alone: "
            f"{recorded.failure or 'the runtime recorded none'}."
        )
        grappler = self._offline(before, {})
        try:
            grappler.apply(grappler_config.lowering(self._config))
            if grappler_config.works(self._config):
                grappler.apply(self._config)
        except GrapplerError as error:
            raise NotOptimizedError(f"Grappler has no result: {error}") from error
        return grappler.graph()

    def _replay(self, before: Any, final: Any) -> Replay:
        if not grappler_config.works(self._config):
            return NO_REPLAY
        if has_clusters(final):
            self._notes.append(
                "XLA compiles clusters of ops together (auto-clustering, switched on in "
                "TF_XLA_FLAGS), after Grappler: a replay of its optimizers does not lead there."
            )
            return NO_REPLAY
        devices = {node.name: node.device for node in final.node}
        found = replay(self._offline(before, devices), self._config)
        rename = renumbering(found.ended, [n.name for n in final.node if n.op not in RESULT_OPS])
        if rename is None:
            return found
        passes = tuple(renamed_pass(change, rename) for change in found.passes)
        return Replay(passes, renamed_forms(found.ended, rename), found.notes)

    def _shapes(self, final: Any) -> Mapping[str, tuple[Shape, ...]]:
        if has_clusters(final):  # the functions of clusters are in no library
            return {}
        try:
            return self._offline(final, {}).shapes()
        except GrapplerError as error:
            self._notes.append(f"Shapes are missing from the optimized graph: {error}.")
            return {}

    def _runtime(self, recorded: Recorded, shapes: Mapping[str, tuple[Shape, ...]]) -> Graph | None:
        if not recorded.partitions:
            return None
        named = [self._named(part) for part in recorded.partitions]
        return executed(named, self._traced, shapes)

    def _offline(self, graph: Any, devices: Mapping[str, str]) -> Offline:
        return Offline(self._worker, graph, self._concrete, devices)

    @property
    def _worker(self) -> Worker:
        return worker(grappler_config.devices())
