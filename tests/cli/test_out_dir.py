"""`--out-dir` a second time: what is stale goes, what is the user's stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from graph2mermaid import serde
from tests.builders import capture
from tests.cli.conftest import Run, command, environment, names

LIST = ".graph2mermaid.json"


def save(*targets: str) -> None:
    """Save a capture file of some functions, each of one op."""
    captures = [
        capture("x:Placeholder -> r:Relu => y", name=target, target=f"m.py:{target}")
        for target in targets
    ]
    serde.save(captures, Path("some.g2m.json"))


def write(run: Run, *targets: str, form: str = "md") -> None:
    save(*targets)
    result = run("render", "some.g2m.json", "--out-dir", "pages", "--format", form, "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_pages_that_a_run_does_not_write_again_go(run: Run):
    """The index is written anew, so the pages that only the old one led to are taken away."""
    write(run, "f", "g", "h")
    write(run, "f", "k")
    assert names("pages") == [LIST, "f.md", "index.md", "k.md"]


def test_the_same_targets_with_other_pages(run: Run):
    """What an earlier run of the same targets wrote is stale even if nothing is replaced."""
    write(run, "f")
    listed = Path("pages", LIST)
    text = json.loads(listed.read_text(encoding="utf-8"))
    text["runs"][0]["files"]["f-part.md"] = text["runs"][0]["files"].pop("f.md")
    listed.write_text(json.dumps(text), encoding="utf-8")
    Path("pages/f.md").rename("pages/f-part.md")
    write(run, "f")
    assert names("pages") == [LIST, "f.md"]


def test_other_targets_stay(run: Run):
    """A folder may collect the pages of several runs."""
    write(run, "f")
    write(run, "g")
    write(run, "f")
    assert names("pages") == [LIST, "f.md", "g.md"]


def test_pages_and_diagrams_stand_side_by_side(run: Run):
    """A run in another format takes nothing away."""
    write(run, "f", "g")
    write(run, "f", "g", form="mmd")
    assert names("pages") == [LIST, "f.md", "f.mmd", "g.md", "g.mmd", "index.md"]


def test_files_of_the_users_stay(run: Run):
    """A file that was changed since, or that this program never wrote, is not touched."""
    write(run, "f", "g", "h")
    Path("pages/g.md").write_text("my own words", encoding="utf-8")
    Path("pages/notes.md").write_text("mine", encoding="utf-8")
    write(run, "f", "k")
    assert names("pages") == [LIST, "f.md", "g.md", "index.md", "k.md", "notes.md"]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"runs": 3}', '{"runs": [{"targets": [], "files": {"../outside.md": "0"}}]}'],
)
def test_a_list_that_is_no_good(run: Run, text: str):
    """A damaged list says nothing, and no list leads out of the folder."""
    Path("pages").mkdir()
    Path("pages", LIST).write_text(text, encoding="utf-8")
    Path("outside.md").write_text("mine", encoding="utf-8")
    write(run, "f")
    assert names("pages") == [LIST, "f.md"]
    assert Path("outside.md").exists()


def test_the_list_is_the_same_every_time(run: Run):
    """Writing the same again changes no byte."""
    write(run, "f", "g")
    before = Path("pages", LIST).read_bytes()
    write(run, "f", "g")
    assert Path("pages", LIST).read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="signals differ")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "SIGHUP"])
def test_a_signal_while_files_are_written(number: signal.Signals):
    """A program that is ended in the middle leaves no draft and no new folder."""
    save("f", "g")
    os.mkfifo("slow")
    hook = (
        "import os; from pathlib import Path; from graph2mermaid.cli import files\n"
        "def waits(fd):\n    print('writing', flush=True)\n    open('slow').read()\n"
        "files.os.fsync = waits\n"
        "from graph2mermaid.__main__ import main; main()\n"
    )
    _, _, _, *words = command("render", "some.g2m.json", "--out-dir", "new/pages")
    with subprocess.Popen(
        [command()[0], "-c", hook, *words],
        env=environment(),
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        process.send_signal(number)
        assert process.wait() == 128 + number
    assert names() == ["slow", "some.g2m.json"]
