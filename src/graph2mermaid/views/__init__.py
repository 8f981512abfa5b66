"""The views: each makes one section of a report from a capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from graph2mermaid.capture import Capture
from graph2mermaid.collector import collector_paused
from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.graph import Stage
from graph2mermaid.report.model import Code, Note, Report, Section
from graph2mermaid.views.memory import memory
from graph2mermaid.views.optimized import grappler
from graph2mermaid.views.options import Options
from graph2mermaid.views.runtime import runtime
from graph2mermaid.views.structure import notes, traced
from graph2mermaid.views.xla import xla

__all__ = ["VIEWS", "Options", "View", "make_report"]

View = Callable[[Capture, Options], Section]

VIEWS: Mapping[str, View] = MappingProxyType(
    {"traced": traced, "grappler": grappler, "runtime": runtime, "xla": xla, "memory": memory}
)
"""The views by the name that users type."""


def make_report(
    captures: Sequence[Capture],
    views: Iterable[str] | None = None,
    options: Options | None = None,
) -> Report:
    """Make one report of some captures, with a section for each.

    Args:
        captures: In the order of their sections.
        views: Names from `VIEWS`, or `all`; None for the traced graph, and what Grappler made of
            it where a capture holds that.
        options: How to draw and write.

    Raises:
        Graph2MermaidError: There is no view of such a name, or none of the views could be made of
            any capture. A view that one capture cannot show becomes a note in its section.
    """
    if not captures:
        raise Graph2MermaidError("there is nothing to report: no captures were given")
    options = options or Options()
    chosen = None if views is None else _choose(views)
    failures: list[Graph2MermaidError] = []
    with collector_paused():
        sections = [
            _section(capture, title, chosen or _usual(capture), options, failures)
            for capture, title in zip(captures, _titles(captures), strict=True)
        ]
    if len(failures) == sum(len(chosen or _usual(capture)) for capture in captures):
        raise failures[0]
    title = sections[0].title if len(sections) == 1 else f"Graphs of {len(sections)} functions"
    return Report(title, tuple(sections), options.fence, options.host)


def _usual(capture: Capture) -> dict[str, View]:
    """Return the views to show when none is asked for."""
    if Stage.TRACED not in capture.graphs and Stage.XLA in capture.graphs:
        return {"xla": VIEWS["xla"]}
    found = {"traced": VIEWS["traced"]}
    if capture.optimization is not None:
        found["grappler"] = VIEWS["grappler"]
    return found


def _choose(names: Iterable[str]) -> dict[str, View]:
    wanted = [names] if isinstance(names, str) else list(dict.fromkeys(names))
    if "all" in wanted:
        return dict(VIEWS)
    if not wanted:
        raise Graph2MermaidError(f"no view was asked for; the views are: {', '.join(VIEWS)}")
    for name in wanted:
        if name not in VIEWS:
            raise Graph2MermaidError(
                f"there is no view {name!r}; the views are: {', '.join(VIEWS)}"
            )
    return {name: VIEWS[name] for name in wanted}


def _titles(captures: Sequence[Capture]) -> list[str]:
    """Call each capture by its function's name, or by its target where that is not unique."""
    names = Counter(capture.name for capture in captures)
    return [capture.name if names[capture.name] == 1 else capture.target for capture in captures]


def _section(
    capture: Capture,
    title: str,
    views: Mapping[str, View],
    options: Options,
    failures: list[Graph2MermaidError],
) -> Section:
    """Make a capture's section: of its only view, or with a section for each of its views."""
    made = [_show(capture, name, view, options, failures) for name, view in views.items()]
    if "traced" not in views:
        made[0] = _with_notes(made[0], capture)
    if len(made) == 1:
        return replace(made[0], title=Code(title), name=title)
    return Section(Code(title), tuple(made), made[0].summary, title)


def _with_notes(section: Section, capture: Capture) -> Section:
    """Put a capture's notes where those of the traced graph would be, below the first line."""
    warned = {block.text for block in section.blocks if isinstance(block, Note)}
    new = tuple(note for note in capture.notes if f"{capture.target}: {note}" not in warned)
    first, rest = section.blocks[:1], section.blocks[1:]
    return replace(section, blocks=(*first, *notes(replace(capture, notes=new)), *rest))


def _show(
    capture: Capture, name: str, view: View, options: Options, failures: list[Graph2MermaidError]
) -> Section:
    """Make one view, or the note that stands in its place."""
    try:
        return view(capture, options)
    except Graph2MermaidError as error:
        failures.append(error)
        return Section(f"{name.capitalize()} graph", (Note(str(error), "warning"),))
