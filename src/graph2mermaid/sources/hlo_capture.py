"""Captures of HLO: of a function that was compiled here, or of a dump that was made elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graph2mermaid.capture import Capture
from graph2mermaid.graph import Stage
from graph2mermaid.hlo import Module, compilation_of
from graph2mermaid.sources.hlo_graph import graph_of_module
from graph2mermaid.sources.hlo_proto import module_of


def with_hlo(
    capture: Capture, proto: Any, *, before: int | None = None, assumed: tuple[str, ...] = ()
) -> Capture:
    """Return the capture with the graph of a compiled module.

    Args:
        capture: Of the traced graph.
        proto: The optimized `HloModuleProto`.
        before: The number of instructions before they were optimized.
        assumed: The shapes that were made up to compile it.
    """
    return with_module(capture, module_of(proto), before=before, assumed=assumed)


def with_module(
    capture: Capture, module: Module, *, before: int | None = None, assumed: tuple[str, ...] = ()
) -> Capture:
    """Return the capture with the graph of a module; see `with_hlo`."""
    traced = capture.graphs.get(Stage.TRACED)
    graph = graph_of_module(module, name=capture.name, traced=traced)
    return replace(
        capture,
        graphs={**capture.graphs, Stage.XLA: graph},
        compilation=compilation_of(module, traced, before=before, assumed=assumed),
    )
