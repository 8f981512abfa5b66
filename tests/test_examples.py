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

COMMAND = re.compile(r"^    graph2mermaid (.+)$", re.MULTILINE)
TRACED_WITH = "2.21."
"""The TensorFlow whose graphs are committed; others name and arrange ops differently."""


@pytest.mark.tf
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_output_is_what_the_example_writes(example: Path, tmp_path: Path):
    """The command in an example's docstring writes, byte for byte, what is committed beside it."""
    tensorflow = pytest.importorskip("tensorflow")
    if not tensorflow.__version__.startswith(TRACED_WITH):
        pytest.skip(f"the committed output is of TensorFlow {TRACED_WITH}x")
    command = COMMAND.search(example.read_text(encoding="utf-8"))
    assert command, "the docstring holds the command, indented by four spaces"
    *words, out = shlex.split(command[1])
    assert out == f"examples/{example.stem}.md"

    written = tmp_path / "out.md"
    done = subprocess.run(
        [sys.executable, "-m", "graph2mermaid", *words, str(written)],
        cwd=ROOT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert done.returncode == 0, done.stderr
    committed = (ROOT / out).read_text(encoding="utf-8")
    assert comparable(written.read_text(encoding="utf-8")) == comparable(committed), (
        "run scripts/make_examples and look at what changed"
    )


def test_every_example_has_its_output():
    """No output is left over from an example that is gone, and none is missing."""
    outputs = sorted((ROOT / "examples").glob("*.md"))
    assert [path.stem for path in outputs] == [path.stem for path in EXAMPLES]


def test_the_readme_shows_the_first_example():
    """The README's picture is the diagram of the committed report."""
    shown, made = (
        re.findall(
            r"^```mermaid\n(.*?)^```$", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        )
        for path in (ROOT / "README.md", ROOT / "examples" / "multiply_add.md")
    )
    assert shown == made


def comparable(report: str) -> str:
    """Take out the versions and devices, which differ between machines that draw the same."""
    return re.sub(r"Made with .*$", "Made with (...)", report, flags=re.MULTILINE)
