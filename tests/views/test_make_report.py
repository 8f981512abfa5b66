"""From captures and the names of views to one report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from graph2mermaid.capture import Capture
from graph2mermaid.errors import Graph2MermaidError
from graph2mermaid.report.model import Paragraph, Section
from graph2mermaid.views import VIEWS, Options, make_report
from tests.builders import capture, graph
from tests.report.reading import read

EMPTY = Capture("empty.py:e", "e", {})


def named(name: str, target: str = "") -> Capture:
    return capture(graph("x:Placeholder -> r:Relu", name=name), target=target or f"m.py:{name}")


def headings(*captures: Capture, views: tuple[str, ...] = ("traced",)) -> list[tuple[int, str]]:
    return read(make_report(captures, views).to_markdown()).headings


def test_one_capture_is_titled_by_its_function():
    """There is no list of contents for one."""
    assert headings(named("f"))[:2] == [(1, "f"), (2, "Inputs, captures and outputs")]


def test_several_captures_are_sections_of_one_report():
    """A linked list stands on top, with the size of each."""
    found = read(make_report([named("f"), named("g")]).to_markdown())
    assert [title for level, title in found.headings if level < 3] == [
        "Graphs of 2 functions",
        "f",
        "g",
    ]
    assert found.items == ["f: 2 ops and 1 edge", "g: 2 ops and 1 edge"]


def test_functions_of_one_name_are_called_by_their_targets():
    """Otherwise nobody could tell them apart."""
    found = headings(named("f", "a.py:f"), named("f", "b.py:f"), named("g"))
    assert [title for level, title in found if level == 2] == ["a.py:f", "b.py:f", "g"]


@pytest.mark.parametrize(
    ("views", "line"),
    [
        (["later"], f"there is no view 'later'; the views are: {', '.join(VIEWS)}"),
        (["traced", "Traced"], f"there is no view 'Traced'; the views are: {', '.join(VIEWS)}"),
        ([], f"no view was asked for; the views are: {', '.join(VIEWS)}"),
    ],
    ids=["later", "case", "none"],
)
def test_views_that_do_not_exist(views: list[str], line: str):
    """The message lists those that do."""
    with pytest.raises(Graph2MermaidError) as caught:
        make_report([named("f")], views)
    assert str(caught.value) == line


def test_all_views():
    """`all` stands for every view there is; a view asked for twice is shown once."""
    one = make_report([named("f")], list(VIEWS)).to_markdown()
    assert make_report([named("f")], ["all"]).to_markdown() == one
    traced = make_report([named("f")], ["traced"]).to_markdown()
    assert make_report([named("f")], ["traced", "traced"]).to_markdown() == traced


def test_notes_stand_in_the_first_view():
    """What a reader must know is said once, whichever views are shown."""

    def anything(found: Capture, options: Options) -> Section:
        return Section("Anything", (Paragraph("A view."), Paragraph("More.")))

    found = replace(named("f"), notes=("the shape was assumed",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graph2mermaid.views.VIEWS", {**VIEWS, "other": anything})
        for views in (["other"], ["traced", "other"], ["other", "traced"]):
            text = make_report([found], views).to_markdown()
            assert text.count("the shape was assumed") == 1


def test_several_views_are_sections_under_the_capture(monkeypatch: pytest.MonkeyPatch):
    """With more than one view, each has a heading of its own; one that fails is a note there."""

    def broken(found: Capture, options: Options) -> Section:
        raise Graph2MermaidError("no such luck")

    monkeypatch.setattr("graph2mermaid.views.VIEWS", {**VIEWS, "later": broken})
    found = read(make_report([named("f")], ["traced", "later"]).to_markdown())
    top = [title for level, title in found.headings if level < 3]
    assert top == ["f", "Traced graph", "Later graph"]
    assert found.quotes == ["Warning: no such luck"]


def test_no_captures():
    """There must be something to report."""
    with pytest.raises(Graph2MermaidError, match="no captures were given"):
        make_report([])


def test_a_view_that_cannot_be_made_is_a_note():
    """The other targets are shown; only when nothing could be made is it an error."""
    found = read(make_report([EMPTY, named("f")]).to_markdown())
    assert found.quotes == ["Warning: empty.py:e: the capture holds no traced graph"]
    assert len(found.fences) == 1
    with pytest.raises(Graph2MermaidError, match="holds no traced graph"):
        make_report([EMPTY])


def test_options_reach_the_report():
    """Fence and host are those that were asked for."""
    options = Options(fence="azure", host="gitlab")
    text = make_report([named("f")], ["traced"], options).to_markdown()
    assert "::: mermaid\n" in text
    assert "GitLab" in text


def test_a_capture_makes_its_own_report():
    """`Capture.report` and `Capture.to_mermaid` take the options as keywords."""
    found = named("f")
    assert found.report(fence="myst") == make_report([found], ["traced"], Options(fence="myst"))
    assert found.to_mermaid(direction="LR").startswith("graph LR\n")


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"level": "all"}, "level: 'all' is not one of simple, ops"),
        ({"tensors": "node"}, "tensors: 'node' is not one of edges, nodes"),
        ({"direction": "TB"}, "direction: 'TB' is not one of TD, LR"),
        ({"color": "heat"}, "color: 'heat' is not one of kind, device"),
        ({"host": "bitbucket"}, "host: 'bitbucket' is not one of github, gitlab"),
        ({"fence": None}, "fence: None is not one of mermaid, myst, azure"),
        (
            {"hide": "Identity"},
            "hide: 'Identity' is not a tuple of op types or scopes, as in hide=('Identity',)",
        ),
        (
            {"hide": ("",)},
            "hide: ('',) is not a tuple of op types or scopes, as in hide=('Identity',)",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_options_that_do_not_exist(fields: dict[str, Any], line: str):
    """The message says what a field can be."""
    with pytest.raises(Graph2MermaidError) as caught:
        Options(**fields)
    assert str(caught.value) == line


def test_hide_takes_a_list():
    """Any sequence of names is a tuple afterwards."""
    assert Options(hide=["Relu"]).hide == ("Relu",)  # type: ignore[arg-type]
