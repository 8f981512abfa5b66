"""What the program says of itself, and what it costs to ask."""

from __future__ import annotations

import shlex
from typing import Literal, get_args, get_origin, get_type_hints

import click
import pytest

from graph2mermaid import __version__
from graph2mermaid.cli import options
from graph2mermaid.cli.app import GroupedCommand
from graph2mermaid.cli.trace import app
from graph2mermaid.views import VIEWS, Options
from graph2mermaid.views.options import LEAST_NODES
from tests.cli.conftest import Run, environment, program


def test_help_shows_options_commands_and_examples(run: Run):
    """One page has everything: the default command's options, the commands, examples."""
    text = run("--help").stdout
    for heading in ("What to run:", "What to show:", "What to write:", "General:", "Examples:"):
        assert f"\n{heading}\n" in text
    for name in ("list", "render"):
        assert f"\n  {name} " in text
    for param in app.params:
        if isinstance(param, click.Option):
            assert param.opts[0] in text
    assert "graph2mermaid model.py:multiply_add --out graph.md" in text
    assert "_GRAPH2MERMAID_COMPLETE=bash_source" in text


@pytest.mark.parametrize("command", ["list", "render"])
def test_each_command_has_help(run: Run, command: str):
    """A command's own help has its own options and examples."""
    result = run(command, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: graph2mermaid {command} ")
    assert f"  graph2mermaid {command} " in result.stdout


def test_the_examples_in_help_parse():
    """Every example is a command line that this version understands."""
    for command in (app, *app.commands.values()):
        assert isinstance(command, GroupedCommand)
        for line in command.examples.strip().splitlines():
            words = shlex.split(line.partition(" > ")[0])
            app.make_context("graph2mermaid", words[1:], resilient_parsing=True)


def test_every_option_has_help():
    """No option is left unexplained."""
    for command in (app, *app.commands.values()):
        for param in command.params:
            assert not isinstance(param, click.Option) or param.help


def test_version(run: Run):
    """`--version` needs nothing else."""
    assert run("--version").stdout == f"graph2mermaid {__version__}\n"


def test_help_is_light():
    """Asking for help imports neither TensorFlow nor networkx nor the Markdown parser."""
    import subprocess
    import sys

    text = (
        "import sys\nsys.argv[1:] = ['--help']\n"
        "from graph2mermaid.__main__ import main\n"
        "try:\n    main()\n"
        "finally:\n    print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    heavy = {"tensorflow", "keras", "numpy", "networkx", "markdown_it"}
    assert heavy.isdisjoint(done.stderr.split())


def test_choices_are_the_ones_of_the_library():
    """The words that options take are those that `Options` takes."""
    hints = get_type_hints(Options)
    assert {
        name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal
    } == {
        "level": options.LEVELS,
        "tensors": options.TENSORS,
        "direction": options.DIRECTIONS,
        "color": options.COLORS,
        "fence": options.FENCES,
        "host": options.HOSTS,
    }
    assert options.LEAST_NODES == LEAST_NODES


def test_views_that_are_promised_do_not_exist_yet():
    """A view that has come into being is no longer called a later one."""
    assert set(options.LATER_VIEWS).isdisjoint(VIEWS)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["re"], ["plain,render"]),
        (["l"], ["plain,list"]),
        (["mo"], ["file,mo"]),
        ([""], ["file,"]),
        (["--lev"], ["plain,--level"]),
        (["--level", "o"], ["plain,ops"]),
        (["model.py:f", "re"], ["file,re"]),
        (["render", "mo"], ["file,mo"]),
        (["render", "--for"], ["plain,--format"]),
        (["list", "mo"], ["file,mo"]),
    ],
    ids=" ".join,
)
def test_shell_completion(
    monkeypatch: pytest.MonkeyPatch, run: Run, words: list[str], expected: list[str]
):
    """A first word completes to a command, any target to a file, options to options and values."""
    monkeypatch.setenv("_GRAPH2MERMAID_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(("graph2mermaid", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert run().stdout.splitlines() == expected


def test_it_runs_as_a_module():
    """`python -m graph2mermaid` is the same program, whatever lies in the working directory."""
    from pathlib import Path

    Path("random.py").write_text("raise RuntimeError('not this one')", encoding="utf-8")
    Path("click.py").write_text("raise RuntimeError('not this one')", encoding="utf-8")
    done = program("--version")
    assert (done.returncode, done.stderr) == (0, "")
