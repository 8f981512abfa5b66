"""The examples and their committed output, which the documentation shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
OUTPUTS = sorted([*(ROOT / "examples").glob("*.md"), *(ROOT / "examples").glob("*/index.md")])
LARGE = frozenset({"resnet50_training", "transformer"})

DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^    graph2mermaid (.+)$", re.MULTILINE)
TRACED_WITH = "2.21."
"""The TensorFlow whose graphs are committed; others name and arrange ops differently."""
SAME_EVERYWHERE = {"CUDA_VISIBLE_DEVICES": "-1", "TF_ENABLE_ONEDNN_OPTS": "0"}
"""Settings with which the optimized graph does not depend on the machine, as in make_examples."""


@pytest.mark.tf
@pytest.mark.parametrize(
    "example",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LARGE else [])
        for path in EXAMPLES
    ],
)
def test_output_is_what_the_example_writes(example: Path, tmp_path: Path):
    """The command in an example's docstring writes, byte for byte, what is committed beside it."""
    tensorflow = pytest.importorskip("tensorflow")
    if not tensorflow.__version__.startswith(TRACED_WITH):
        pytest.skip(f"the committed output is of TensorFlow {TRACED_WITH}x")
    command = COMMAND.search(example.read_text(encoding="utf-8"))
    assert command, "the docstring holds the command, indented by four spaces"
    *words, option, out = shlex.split(command[1])
    assert (option, out) in (
        ("--out", f"examples/{example.stem}.md"),
        ("--out-dir", f"examples/{example.stem}"),
    )

    written = tmp_path / Path(out).name
    done = subprocess.run(
        [sys.executable, "-m", "graph2mermaid", *words, option, str(written)],
        cwd=ROOT,
        env={**os.environ, **SAME_EVERYWHERE},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert pages(written) == pages(ROOT / out), "run scripts/make_examples and look at what changed"


def test_every_example_has_its_output():
    """No output is left over from an example that is gone, and none is missing."""
    outputs = [path.parent.name if path.name == "index.md" else path.stem for path in OUTPUTS]
    assert sorted(outputs) == [path.stem for path in EXAMPLES]


@pytest.mark.parametrize(
    "folder",
    [path.parent for path in OUTPUTS if path.name == "index.md"],
    ids=lambda folder: folder.name,
)
def test_every_page_is_reached(folder: Path):
    """Links between the pages of a folder lead to pages, and every page is reached from the first."""
    links = {
        page.name: {
            link.partition("#")[0]
            for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
        }
        for page in folder.glob("*.md")
    }
    reached = {"index.md"}
    queue = ["index.md"]
    while queue:
        new = {link for link in links[queue.pop()] if link} - reached
        reached |= new
        queue += sorted(new & links.keys())
    assert reached == set(links)


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_pictures_on_other_pages_are_real(page: str):
    """Every diagram that the README and the guide show stands in a committed report."""
    reports = [path.read_text(encoding="utf-8") for path in OUTPUTS]
    made = {diagram for report in reports for diagram in DIAGRAM.findall(report)}
    shown = DIAGRAM.findall((ROOT / page).read_text(encoding="utf-8"))
    assert len(shown) == 2
    assert set(shown) <= made


def pages(written: Path) -> dict[str, str]:
    """Return the comparable text of a report, or of each page of a folder, by file name."""
    found = sorted(written.glob("*.md")) if written.is_dir() else [written]
    return {path.name: comparable(path.read_text(encoding="utf-8")) for path in found}


def comparable(report: str) -> str:
    """Take out the versions and devices, which differ between machines that draw the same."""
    return re.sub(r"Made with .*$", "Made with (...)", report, flags=re.MULTILINE)
