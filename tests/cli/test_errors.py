"""Every mistake is one line that says what to type, exit status 2, and no file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run, program

MODEL = """
def f(x): return x
def g(x): return x
number = 3
"""

SEE = "(see graph2mermaid --help)"
VIEWS = "traced, grappler, runtime, xla, memory, all"


@pytest.fixture(autouse=True)
def _files(small: Path) -> None:
    Path("model.py").write_text(MODEL, encoding="utf-8")
    Path("broken.py").write_text("import os\n\n1 / 0\n", encoding="utf-8")
    Path("exits.py").write_text("import sys\nsys.exit(3)\n", encoding="utf-8")
    Path("notes.txt").touch()
    Path("folder").mkdir()
    Path("damaged.g2m.json").write_text("{", encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], f"Missing argument 'TARGET...' {SEE}"),
        (["--nope"], "No such option"),
        (["model.py:f", "--level", "low"], "Invalid value for '--level': 'low' is not one of "),
        (["model.py:f", "--timeout", "0"], ("Invalid value for '--timeout': a number of seconds "
         f"above 0 is needed {SEE}")),
        (["model.py:f", "--view", "traced,timing"],
         f"--view timing does not exist yet; there is {VIEWS} {SEE}"),
        (["model.py:f", "--view", "trace"],
         f"--view trace does not exist; there is {VIEWS} {SEE}"),
        (["model.py:f", "--input", "x"],
         "--input x: there is no '='; type --input 'x=float32[?,64]'"),
        (["model.py:f", "model.py:g", "--input", "x=f32[]"],
         f"--input goes with a single target, and there are 2 {SEE}"),
        (["model.py:f", "model.py:g", "--inputs", "model.py:number"],
         f"--inputs goes with a single target, and there are 2 {SEE}"),
        (["model.py:f", "--out", "a.md", "--out-dir", "d"],
         f"--out and --out-dir exclude each other {SEE}"),
        (["model.py:f", "--out-dir", "d", "--format", "json"],
         f"--out-dir takes md or mmd; for the capture, --save FILE.g2m.json {SEE}"),
        (["model.py:f", "--out", "model.py"], f"--out model.py would replace a target {SEE}"),
        (["small.g2m.json", "--save", "./small.g2m.json"],
         f"--save small.g2m.json would replace a target {SEE}"),
        (["model.py:f", "--out", "a.md", "--save", "./a.md"],
         f"--out and --save name the same file, a.md {SEE}"),
        (["model.py:f", "render", "small.g2m.json"],
         f"render is a command only as the first word {SEE}"),
        (["no.py:f"], "there is no file, folder or module called 'no.py'"),
        (["render", "no.g2m.json"], "no.g2m.json: No such file or directory"),
        (["render", "small.g2m.json", "--out", "no/a.md"],
         "cannot write no/a.md: there is no folder no"),
        (["render", "small.g2m.json", "--save", "folder"],
         "Invalid value for '--save': File 'folder' is a directory"),
        (["render", "small.g2m.json", "--out", "folder"], "cannot write folder: it is a folder"),
        (["render", "small.g2m.json", "--out-dir", "notes.txt"],
         "Invalid value for '--out-dir': Directory 'notes.txt' is a file"),
        (["render", "small.g2m.json", "--hide", ""], "hide: "),
        (["list", "model.py:f"],
         "list takes a file, a folder or a module alone: model.py (see graph2mermaid list --help)"),
        (["list", "folder"], ("folder is a folder, but neither a SavedModel (no saved_model.pb in "
         "it) nor a Python package (no __init__.py)")),
        (["list", "small.g2m.json"], ("small.g2m.json is no Python code but a capture file, a target"
         " as it is: graph2mermaid small.g2m.json")),
        (["list", "notes.txt"], "notes.txt cannot be read: a target is a .py, "),
        (["list", "broken.py"],
         "cannot load broken.py: ZeroDivisionError at broken.py:3: division by zero"),
        (["list", "exits.py"], "cannot load exits.py: it called sys.exit(3) at exits.py:2; put "),
        (["list"], "Missing argument 'FILE_OR_MODULE' (see graph2mermaid list --help)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_mistakes(run: Run, words: list[str], line: str):
    """Standard error has the line alone, standard output nothing, and nothing is written."""
    before = sorted(Path().rglob("*"))
    result = run(*words)
    assert result.exit_code == 2
    assert result.stdout == ""
    error, end = result.stderr[:-1], result.stderr[-1]
    assert error.startswith(f"Error: {line}")
    assert (end, "\n" in error) == ("\n", False)
    assert [p for p in sorted(Path().rglob("*")) if "__pycache__" not in p.parts] == before


@pytest.mark.tf
@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["model.py"], "model.py: name what to trace; there is model.py:f, model.py:g"),
        (["model.py:number"], ("model.py:number is a number (3), which cannot be traced; there is "
         "model.py:f, model.py:g")),
        (["model.py:ff"], ("model.py has no ff; did you mean model.py:f? "
         "(1 more: graph2mermaid list model.py)")),
        (["broken.py:f"], ("cannot load broken.py: ZeroDivisionError at broken.py:3: "
         "division by zero")),
        (["notes.txt"], "notes.txt cannot be read: a target is a .py, "),
        (["damaged.g2m.json"], "damaged.g2m.json: "),
        (["model.py:f", "damaged.g2m.json"], "damaged.g2m.json: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_targets_that_cannot_be_traced(run: Run, words: list[str], line: str):
    """The line says what the target is; with several, one that fails is the end of all."""
    result = run(*words, "--out", "graph.md")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"Error: {line}" in result.stderr
    assert result.stderr.splitlines()[-1].startswith(f"Error: {line}")
    assert not Path("graph.md").exists()


def test_missing_tensorflow(run: Run, monkeypatch: pytest.MonkeyPatch):
    """Without TensorFlow the line names the extra, before any of the user's code has run."""
    import sys

    monkeypatch.setitem(sys.modules, "tensorflow", None)
    Path("model.py").write_text("raise RuntimeError('it ran')", encoding="utf-8")
    result = run("model.py:f")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "Error: tracing needs TensorFlow, which is not installed: "
        "pip install 'graph2mermaid[cpu]'\n"
    )


def test_a_traceback_only_with_debug(run: Run):
    """`--debug` shows where an error comes from, before the same line."""
    assert "Traceback" not in run("list", "broken.py").stderr
    shown = run("list", "broken.py", "--debug").stderr
    assert "Traceback" in shown
    assert 'broken.py", line 3' in shown
    assert shown.splitlines()[-1].startswith("Error: cannot load broken.py")


def test_a_fault_of_our_own(run: Run, monkeypatch: pytest.MonkeyPatch):
    """What nobody thought of is one line too, and asks for a report."""
    from graph2mermaid import serde

    monkeypatch.setattr(serde, "load", lambda path: dict[str, str]()["key"])
    result = run("render", "small.g2m.json")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: KeyError: 'key'; this is a fault of graph2mermaid, please report it with the "
        "output of the same command and --debug\n"
    )
    assert "Traceback" in run("render", "small.g2m.json", "--debug").stderr


def test_ctrl_c(run: Run, monkeypatch: pytest.MonkeyPatch):
    """An interruption ends with status 130 and no file."""
    from graph2mermaid import serde

    def interrupted(captures: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(serde, "dumps", interrupted)
    result = run("render", "small.g2m.json", "--out", "a.md", "--save", "b.g2m.json")
    assert result.exit_code == 130
    assert result.stderr.strip() == "Error: interrupted"
    assert not Path("a.md").exists()


def test_a_subcommand_counts_as_the_first_word_alone(run: Run):
    """A file that is called like a command is `./render`."""
    Path("render").write_text("not a target", encoding="utf-8")
    assert "Missing argument 'CAPTURE'" in run("render").stderr
    assert "Missing argument" not in run("./render").stderr


def test_the_program_itself():
    """The program itself, too, ends with status 2 and one line."""
    done = program("absent.py:f")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: there is no file, folder or module called 'absent.py'\n"
