"""From a capture to the files and the standard output that were asked for."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from graph2mermaid import serde
from graph2mermaid.capture import Capture
from graph2mermaid.cli.files import OutputError, written
from tests.cli.conftest import Run, command, environment, names


def drawn(path: str | Path) -> str:
    return Path(path).read_text(encoding="utf-8")


def test_the_report_goes_to_standard_output(run: Run, small: Path):
    """Standard output is the report and nothing else; `--out -` says the same."""
    result = run("render", "small.g2m.json")
    (capture,) = serde.load(small)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == capture.report().to_markdown()
    assert run("render", "small.g2m.json", "--out", "-").stdout == result.stdout
    assert run("small.g2m.json").stdout == result.stdout


def test_out_is_a_file_with_the_same_bytes(run: Run, small: Path):
    """A file gets what standard output would have got."""
    result = run("render", "small.g2m.json", "--out", "graph.md")
    assert (result.exit_code, result.output) == (0, "")
    assert drawn("graph.md") == run("render", "small.g2m.json").stdout


def test_one_diagram(run: Run, two: Path):
    """`--format mmd` is the first diagram of the first target, without a fence."""
    text = run("render", "two.g2m.json", "--format", "mmd", "--quiet").stdout
    assert text.startswith("graph TD\n")
    assert text.endswith("\n")
    assert ("Relu" in text, "Tanh" in text) == (True, False)


def test_json_is_what_save_writes(run: Run, two: Path):
    """`--format json` and `--save` write the capture file."""
    result = run("render", "two.g2m.json", "--format", "json", "--save", "again.g2m.json")
    assert result.stdout == drawn("again.g2m.json") == drawn(two)


def test_a_file_for_each_page(run: Run, two: Path):
    """`--out-dir` makes the folder, and in it an index and a page for each target."""
    result = run("render", "two.g2m.json", "--out-dir", "deep/pages", "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    assert names("deep/pages") == [".graph2mermaid.json", "f.md", "g.md", "index.md"]
    assert "(f.md)" in drawn("deep/pages/index.md")


def test_a_file_for_each_diagram(run: Run, two: Path):
    """With `--format mmd` the folder has the diagrams."""
    assert run("render", "two.g2m.json", "--out-dir", "pages", "--format", "mmd").exit_code == 0
    assert names("pages") == [".graph2mermaid.json", "f.mmd", "g.mmd"]
    assert drawn("pages/g.mmd").startswith("graph TD\n")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--direction", "lr"], "graph LR\n"),
        (["--fence", "myst"], "```{mermaid}\n"),
        (["--tensors", "nodes"], "x"),
        (["--level", "ops"], "Relu"),
        (["--view", "traced"], "# `f`"),
        (["--view", "all"], "# `f`"),
        (["--color", "device", "--host", "gitlab"], "# `f`"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_reach_the_report(run: Run, small: Path, words: list[str], expected: str):
    """Each option changes what it says it does."""
    result = run("render", "small.g2m.json", *words)
    assert result.exit_code == 0, result.stderr
    assert expected in result.stdout


def test_hide(run: Run, small: Path):
    """An op type that is hidden is not in the diagram."""
    shown = run("render", "small.g2m.json", "--format", "mmd").stdout
    hidden = run("render", "small.g2m.json", "--format", "mmd", "--hide", "Relu").stdout
    assert ('["Relu' in shown, '["Relu' in hidden) == (True, False)


def test_notes_go_to_standard_error(run: Run, two: Path):
    """What a reader must know is said there, unless it is to be quiet."""
    assert run("render", "two.g2m.json", "--out", "a.md").stderr == "Note: m.py:g: guessed\n"
    assert run("render", "two.g2m.json", "--out", "a.md", "--quiet").stderr == ""


@pytest.mark.skipif(os.name != "posix", reason="terminals differ")
def test_progress_is_shown_on_a_terminal(small: Path):
    """Who sits at a terminal sees what is being done; --quiet says nothing."""
    for words, expected in (([], ["writing", "wrote graph.md"]), (["--quiet"], [])):
        master, terminal = os.openpty()
        done = subprocess.run(
            command("render", str(small), "--out", "graph.md", *words),
            env=environment(NO_COLOR="1"),
            stderr=terminal,
            check=True,
        )
        os.close(terminal)
        os.set_blocking(master, False)
        try:
            text = os.read(master, 10_000).decode()
        except OSError:  # there is nothing
            text = ""
        os.close(master)
        assert done.returncode == 0
        assert [re.sub(r"\x1b\[\d*m", "", line) for line in text.splitlines()] == expected


def test_an_existing_file_keeps_its_permissions(run: Run, small: Path):
    """The result takes the place of the old file, for the same people."""
    Path("graph.md").write_text("before", encoding="utf-8")
    Path("graph.md").chmod(0o640)
    run("render", "small.g2m.json", "--out", "graph.md")
    assert stat.S_IMODE(Path("graph.md").stat().st_mode) == 0o640
    assert "before" not in drawn("graph.md")


def test_a_link_is_followed(run: Run, small: Path):
    """A link stays a link; the file that it leads to is written."""
    Path("real").mkdir()
    Path("graph.md").symlink_to("real/graph.md")
    run("render", "small.g2m.json", "--out", "graph.md")
    assert Path("graph.md").is_symlink()
    assert "Relu" in drawn("real/graph.md")


def test_a_device_is_written_to(run: Run, small: Path):
    """What is no file is not replaced by one."""
    assert run("render", "small.g2m.json", "--out", os.devnull).exit_code == 0
    assert not Path(os.devnull).is_file()


def test_files_are_written_all_or_none(tmp_path: Path):
    """When one cannot be written, or the block is left early, all are as they were."""
    old = tmp_path / "old.md"
    old.write_text("old", encoding="utf-8")
    files = {old: "new", tmp_path / "no/new.md": "new"}
    with pytest.raises(OutputError, match=r"^cannot write no/new\.md: there"), written(files):
        pass
    with pytest.raises(KeyboardInterrupt), written({old: "new", tmp_path / "new.md": "new"}):
        raise KeyboardInterrupt
    assert names(tmp_path) == ["old.md"]
    assert drawn(old) == "old"


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The error names the file and the reason, and nothing is left behind."""
    old = tmp_path / "old.md"
    old.write_text("old", encoding="utf-8")

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError) as caught, written({old: "new"}):
        pass
    assert str(caught.value) == "cannot write old.md: No space left on device"
    assert names(tmp_path) == ["old.md"]
    assert drawn(old) == "old"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_standard_output(small: Path):
    """It is an error, and no file is written either."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command("render", str(small), "--save", "copy.g2m.json"),
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "Error: cannot write to standard output: No space left on device\n"
    assert not Path("copy.g2m.json").exists()


@pytest.mark.skipif(os.name != "posix", reason="pipes differ")
def test_a_reader_that_stops_early(small: Path):
    """A closed pipe is no error, as with `| head`."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command("render", str(small), "--save", "copy.g2m.json"),
        env=environment(),
        stdout=writing,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path("copy.g2m.json").exists()


def test_render_imports_no_tensorflow(small: Path):
    """A report from a capture works where TensorFlow does not."""
    text = (
        "import sys\nsys.modules['tensorflow'] = None\n"
        f"sys.argv[1:] = ['render', {str(small)!r}, '--out', 'a.md']\n"
        "from graph2mermaid.__main__ import main\nmain()"
    )
    subprocess.run([sys.executable, "-c", text], env=environment(), check=True)
    assert "Relu" in drawn("a.md")


def test_unknown_keys_survive(run: Run, small: Path):
    """What a later version wrote into a capture is still there after a round trip."""
    text = drawn(small).replace('"schema"', '"later": 1,\n"schema"')
    small.write_text(text, encoding="utf-8")
    for words in (["render", "small.g2m.json"], ["small.g2m.json"]):
        assert '"later": 1' in run(*words, "--format", "json").stdout


def test_a_capture_may_be_empty(run: Run):
    """A file without captures is an error that says so."""
    serde.save(list[Capture](), "none.g2m.json")
    result = run("render", "none.g2m.json")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: there is nothing to report")
