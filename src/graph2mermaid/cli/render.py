"""`graph2mermaid render`: a report from a capture, without TensorFlow."""

from __future__ import annotations

from pathlib import Path

import click

from graph2mermaid.cli.app import GroupedCommand
from graph2mermaid.cli.console import Console
from graph2mermaid.cli.options import (
    Format,
    Steering,
    complete_target,
    general_options,
    output,
    show_options,
    shown,
    write_options,
)
from graph2mermaid.cli.results import write_results

_EXAMPLES = """
graph2mermaid render model.g2m.json --out graph.md
graph2mermaid render model.g2m.json --format mmd --level ops
"""


@click.command("render", cls=GroupedCommand, examples=_EXAMPLES)
@click.argument("capture", shell_complete=complete_target)
@show_options
@write_options
@general_options
def render_command(
    capture: str,
    views: tuple[str, ...],
    level: str,
    tensors: str,
    direction: str,
    hide: tuple[str, ...],
    color: str,
    depth: int | None,
    max_nodes: int | None,
    fold: bool,
    ghosts: bool,
    focus: str | None,
    hops: int | None,
    from_: str | None,
    to: str | None,
    out: Path | None,
    out_dir: Path | None,
    form: Format,
    save: Path | None,
    fence: str,
    host: str,
    quiet: bool,
    debug: bool,  # noqa: ARG001  # read where errors are shown
) -> None:
    """Make the report of a capture (.g2m.json), without TensorFlow."""
    from graph2mermaid import serde

    steering = Steering(depth, max_nodes, fold, ghosts, focus, hops, from_, to)
    separate = out_dir is not None
    what = shown(
        views, level, tensors, direction, hide, color, fence, host, steering, out_dir=separate
    )
    captures = serde.load(capture)
    where = output(out, out_dir, form, save, [Path(capture)])
    console = Console(quiet=quiet)
    for one in captures:
        console.notes(one.target, one.notes)
    write_results(captures, what, where, console)
