"""The built wheel works where nothing but its dependencies is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from graph2mermaid.capture import Capture
from graph2mermaid.graph import Stage
from tests.builders import MULTIPLY_ADD, graph

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Installed:
    """A wheel, and an otherwise empty virtual environment that it was installed into."""

    wheel: Path
    venv: Path

    def run(self, *words: str, cwd: Path) -> str:
        """Return what the installed command prints."""
        return output([str(self.venv / "bin" / "graph2mermaid"), *words], cwd)

    def python(self, program: str) -> str:
        """Return what a program prints."""
        return output([str(self.venv / "bin" / "python"), "-c", program], self.venv).strip()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Build the wheel and install it with its dependencies alone."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    output([*pip, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)], folder)
    (wheel,) = folder.glob("*.whl")
    venv = folder / "venv"
    output([sys.executable, "-m", "venv", "--without-pip", str(venv)], folder)
    python = str(venv / "bin" / "python")
    output([*pip, "--python", python, "install", str(wheel)], folder)
    return Installed(wheel, venv)


@pytest.fixture
def with_tensorflow(installed: Installed) -> Iterator[Installed]:
    """Let the environment see the TensorFlow that these tests run with, after its own packages."""
    pytest.importorskip("tensorflow")
    site = installed.python("import sysconfig; print(sysconfig.get_paths()['purelib'])")
    link = Path(site) / "tensorflow-of-the-tests.pth"
    link.write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
    yield installed
    link.unlink()


def test_holds_the_package_and_nothing_else(installed: Installed):
    """The wheel brings the package, its type marker and its license, and no tests."""
    with zipfile.ZipFile(installed.wheel) as archive:
        names = archive.namelist()
    assert "graph2mermaid/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"graph2mermaid"}


@pytest.mark.parametrize(
    ("option", "expected"),
    [("--help", "Usage: graph2mermaid"), ("--version", "graph2mermaid 0.1.0")],
)
def test_answers(installed: Installed, tmp_path: Path, option: str, expected: str):
    """The command starts without TensorFlow and says what it is."""
    assert expected in installed.run(option, cwd=tmp_path)


def test_renders_a_capture(installed: Installed, tmp_path: Path):
    """A report from a capture needs only what the wheel depends on."""
    capture = Capture("model.py:f", "f", {Stage.TRACED: graph(MULTIPLY_ADD)})
    capture.save(tmp_path / "f.g2m.json")

    installed.run("render", "f.g2m.json", "--out", "f.md", cwd=tmp_path)

    assert "tf.multiply" in (tmp_path / "f.md").read_text(encoding="utf-8")
    assert (
        installed.python("import importlib.util as u; print(u.find_spec('tensorflow'))") == "None"
    )


@pytest.mark.tf
def test_runs_the_first_example_of_the_readme(with_tensorflow: Installed, tmp_path: Path):
    """With TensorFlow beside it, the installed command makes the README's first report."""
    command = "graph2mermaid examples/multiply_add.py:multiply_add --out graph.md"
    assert command in (ROOT / "README.md").read_text(encoding="utf-8")
    (tmp_path / "examples").mkdir()
    example = (ROOT / "examples" / "multiply_add.py").read_text(encoding="utf-8")
    (tmp_path / "examples" / "multiply_add.py").write_text(example, encoding="utf-8")

    with_tensorflow.run(*command.split()[1:], cwd=tmp_path)

    report = (tmp_path / "graph.md").read_text(encoding="utf-8")
    assert "```mermaid" in report
    assert "tf.multiply" in report


def output(command: Sequence[str], cwd: Path) -> str:
    """Return what a command prints; fail with what it complains about."""
    # An environment is empty only if the paths of the one that runs the tests do not leak into it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
