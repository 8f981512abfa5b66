"""Ways to run the command line: in this process, and as a program of its own."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import graph2mermaid
from graph2mermaid import serde
from graph2mermaid.cli.trace import app
from tests.builders import capture

SOURCES = str(Path(graph2mermaid.__file__).parent.parent)

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run() -> Run:
    """Run a command in this process."""

    def call(*words: str) -> Result:
        return _runner().invoke(app, list(words))

    return call


def _runner() -> CliRunner:
    """Return a runner that keeps the two streams apart, as click before 8.2 has to be told."""
    old = "mix_stderr" in inspect.signature(CliRunner).parameters
    return CliRunner(**({"mix_stderr": False} if old else {}))  # type: ignore[arg-type]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A capture file of one function."""
    path = tmp_path / "small.g2m.json"
    serde.save([capture("x:Placeholder float32[?,4] -> r:Relu => y", name="f")], path)
    return path


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A capture file of two functions, the second one with a note."""
    path = tmp_path / "two.g2m.json"
    first = capture("x:Placeholder -> r:Relu => y", name="f", target="m.py:f")
    second = capture("x:Placeholder -> t:Tanh => y", name="g", target="m.py:g", notes=("guessed",))
    serde.save([first, second], path)
    return path


def names(folder: str | Path = ".") -> list[str]:
    """Return the names of what is in a folder, without Python's own cache."""
    return sorted(p.name for p in Path(folder).iterdir() if p.name != "__pycache__")


def command(*words: str) -> list[str]:
    """Return the command line that runs the program."""
    return [sys.executable, "-m", "graph2mermaid", *words]


def environment(**more: str) -> Mapping[str, str]:
    """Return an environment in which the program is found."""
    own = {"PYTHONPATH": SOURCES, "CUDA_VISIBLE_DEVICES": "-1", **more}
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "TF_"))}
    return {**kept, **own}


def program(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the program by itself and return what it wrote."""
    return subprocess.run(
        command(*words), env=environment(), capture_output=True, encoding="utf-8", check=False
    )
