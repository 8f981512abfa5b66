"""What was recorded of one target: its graphs by stage, and where they were made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.graph import Graph, Stage
from graph2mermaid.hlo import Compilation
from graph2mermaid.memory import MemoryPlan
from graph2mermaid.provenance import Optimization

if TYPE_CHECKING:
    from os import PathLike

    from graph2mermaid.report.model import Report


GRAPPLER_NOTE = "Grappler view:"
XLA_NOTE = "XLA view:"
MEMORY_NOTE = "Memory view:"
"""How the notes of a capture begin that say why a view is missing, or what it was made for."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The versions and devices a capture was made with. Holds no time and no user name."""

    tensorflow: str = ""
    keras: str = ""
    python: str = ""
    devices: tuple[str, ...] = ()
    """Physical devices by type: `1 x CPU`."""
    extra: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Capture:
    """One target as TensorFlow saw it. Everything after tracing works from this alone."""

    target: str
    """As the user typed it: `model.py:multiply_add`."""
    name: str
    """The function's own name: `multiply_add`."""
    graphs: Mapping[Stage, Graph]
    environment: Environment = Environment()
    notes: tuple[str, ...] = ()
    """What a reader must know: assumed shapes, other existing traces, views that failed."""
    extra: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    optimization: Optimization | None = None
    """How the graph of the stage `grappler` came about, where there is one."""
    memory: MemoryPlan | None = None
    """Where XLA keeps the values of the compiled function, where it was compiled."""
    compilation: Compilation | None = None
    """How the graph of the stage `xla` came about, where there is one."""

    @property
    def traced(self) -> Graph:
        """The graph as it was traced.

        Raises:
            Graph2MermaidError: The capture holds no traced graph.
        """
        if Stage.TRACED not in self.graphs:
            raise Graph2MermaidError(f"{self.target}: the capture holds no traced graph")
        return self.graphs[Stage.TRACED]

    def report(self, views: Sequence[str] | None = None, **options: Any) -> Report:
        """Make the report of the named views; `options` are the fields of `views.Options`.

        Without names it shows the traced graph, and what Grappler made of it where that is known.
        """
        # The only way from the recording half to the reading half, so it is taken when called.
        from graph2mermaid.views import Options, make_report

        return make_report([self], views, Options(**options))

    def to_mermaid(self, view: str = "traced", **options: Any) -> str:
        """Return the first diagram of a view as Mermaid text, without a fence."""
        return self.report([view], **options).first_diagram()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the capture file; see [`load`][graph2mermaid.load] for reading it.

        Raises:
            OSError: The file cannot be written; an existing one is then left as it was.
        """
        from graph2mermaid.serde import save

        save([self], path)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Show the capture in a notebook; JupyterLab draws the first of these that it knows."""
        report = self.report()
        bundle = {"text/markdown": report.to_markdown(), "text/plain": repr(self)}
        if next(report.figures(), None) is not None:
            bundle["text/vnd.mermaid"] = report.first_diagram()
        return bundle

    def __repr__(self) -> str:
        """Return a short form: the target and the size of each graph."""
        sizes = ", ".join(f"{stage.value} {len(graph)} ops" for stage, graph in self.graphs.items())
        return f"<Capture {self.target}: {sizes}>"


def notes_on(capture: Capture, view: str) -> list[str]:
    """Return the notes of a capture that begin with the words for a view."""
    return [note for note in capture.notes if note.startswith(view)]
