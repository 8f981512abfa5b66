"""`graph2mermaid list`: what in a file or folder can be traced, with signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from graph2mermaid.cli.app import ARGUMENTS, GroupedCommand
from graph2mermaid.cli.chatter import silence_tensorflow
from graph2mermaid.cli.console import Console
from graph2mermaid.cli.deadline import is_supervised, supervise, user_code_is_done
from graph2mermaid.cli.files import encode
from graph2mermaid.cli.needed import require_tensorflow
from graph2mermaid.cli.options import complete_target, general_options, run_options
from graph2mermaid.cli.streams import stdout_is_stderr, write_stdout

if TYPE_CHECKING:
    from graph2mermaid.sources.listing import Candidate
    from graph2mermaid.sources.target import TargetName

_EXAMPLES = """
graph2mermaid list model.py
graph2mermaid list package.module
graph2mermaid list exported_model/
"""


@click.command("list", cls=GroupedCommand, examples=_EXAMPLES)
@click.argument("file_or_module", shell_complete=complete_target)
@run_options
@general_options
@click.pass_context
def list_command(
    ctx: click.Context, file_or_module: str, timeout: float | None, quiet: bool, debug: bool
) -> None:
    """List what in a Python file, a module or a SavedModel can be traced, with signatures."""
    from graph2mermaid.sources.target import parse, target_text

    name = parse(file_or_module)
    if name.attribute:
        raise click.UsageError(f"list takes a file, a folder or a module alone: {name.container}")
    if timeout is not None and not is_supervised():
        ctx.exit(supervise(ctx.meta[ARGUMENTS], timeout))
    console = Console(quiet=quiet)
    if not debug:
        silence_tensorflow()
    console.step(f"loading {name.container}")
    with stdout_is_stderr():
        found = _candidates(name)
    user_code_is_done()
    if not found:
        console.notes(name.text, ["nothing in it can be traced"])
    rows = [(target_text(name, c.path), c.kind, c.signature) for c in found]
    write_stdout(encode("".join(f"{line}\n" for line in _aligned(rows))))


def _candidates(name: TargetName) -> Sequence[Candidate]:
    from graph2mermaid.sources import listing
    from graph2mermaid.sources.target import load, saved_model_folder

    folder = saved_model_folder(name)
    if folder is None:
        return listing.candidates(load(name))
    require_tensorflow("reading a SavedModel")
    from graph2mermaid.sources.saved_model import candidates

    return candidates(folder)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with their columns below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
