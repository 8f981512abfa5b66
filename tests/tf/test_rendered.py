"""Every diagram of real graphs, drawn by the real Mermaid and read back."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from graph2mermaid import Capture
from graph2mermaid.mermaid.budget import fits
from graph2mermaid.report.model import Figure
from tests.tf import gallery

pytestmark = pytest.mark.tf

MOST = 12
"""Parts of a large model that are drawn, spread evenly over all of them."""

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.md"))

SAMPLE = ("keywords", "calls_a_lambda", "keras_3_lstm", "fit_step", "tf_keras_lstm", "long_names")
"""What is drawn by old versions as well: odd names, frames, groups, dotted edges, long labels."""

MODES = [
    pytest.param(version, html, id=f"{version}-{'html' if html else 'svg'}")
    for version, html in (("12", False), ("11", True), ("11", False), ("10", True), ("10", False))
]


def spread(figures: Sequence[Figure]) -> list[Figure]:
    """Return the overview and a fixed sample of the parts."""
    step = max(1, (len(figures) - 1) // MOST)
    return [*figures[:1], *figures[1::step][:MOST]]


@pytest.mark.parametrize("level", ["simple", "ops"])
@pytest.mark.parametrize("name", gallery.MAKERS)
def test_every_diagram_of_a_small_graph(mermaid, name: str, level: str):
    """Nodes, edges, frames and every label are what the diagram means."""
    figures = list(gallery.MAKERS[name]().report(level=level).figures())
    for figure in figures if level == "simple" else spread(figures)[:3]:
        assert fits(figure.text)
        mermaid.assert_drawn(figure.text, figure.diagram)


@pytest.mark.slow
@pytest.mark.parametrize("name", gallery.MODELS)
def test_the_diagrams_of_a_large_model(mermaid, name: str):
    """The overview and a sample of the parts are drawn; all are within the caps."""
    figures = list(gallery.MODELS[name]().report().figures())
    assert all(fits(figure.text) for figure in figures)
    for figure in spread(figures):
        mermaid.assert_drawn(figure.text, figure.diagram)


@pytest.mark.parametrize(
    "options",
    [{"tensors": "nodes"}, {"direction": "LR"}, {"color": "device"}, {"host": "gitlab"}],
    ids=lambda options: "-".join(*options.items()),
)
@pytest.mark.parametrize("name", ["keras_3_lstm", "attention", "keywords", "tf_keras_lstm"])
def test_every_way_to_draw(mermaid, name: str, options: dict[str, str]):
    """What a user can choose about a diagram does not keep it from being drawn."""
    for figure in list(gallery.MAKERS[name]().report(**options).figures())[:3]:
        assert fits(figure.text)
        mermaid.assert_drawn(figure.text, figure.diagram)


@pytest.mark.parametrize(("version", "html_labels"), MODES)
@pytest.mark.parametrize("name", SAMPLE)
def test_older_versions(mermaid, name: str, version: str, html_labels: bool):
    """What hosts have that are not up to date shows the same."""
    for figure in list(gallery.MAKERS[name]().report().figures())[:2]:
        mermaid.assert_drawn(figure.text, figure.diagram, version, html_labels)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_diagram_of_the_examples(mermaid, path: Path):
    """What the documentation shows is drawn as it is committed."""
    blocks = re.findall(
        r"^```mermaid\n(.*?)^```$", path.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert blocks
    for text in blocks:
        assert fits(text)
        mermaid.assert_drawn(text)


@pytest.mark.parametrize(
    "make", [pytest.param(make, id=name) for name, make in gallery.MAKERS.items()]
)
@pytest.mark.parametrize("level", ["simple", "ops"])
def test_no_diagram_is_above_the_caps(make: Callable[[], Capture], level: str):
    """Hosts draw all of them, at each level."""
    assert all(fits(figure.text) for figure in make().report(level=level).figures())
