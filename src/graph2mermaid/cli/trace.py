"""The default command: trace targets, and report what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from graph2mermaid.cli.app import ARGUMENTS, App
from graph2mermaid.cli.candidates import list_command
from graph2mermaid.cli.chatter import silence_tensorflow, take_autograph_warnings
from graph2mermaid.cli.console import Console
from graph2mermaid.cli.deadline import is_supervised, supervise, user_code_is_done
from graph2mermaid.cli.needed import require_tensorflow
from graph2mermaid.cli.options import (
    Format,
    Steering,
    complete_target,
    general_options,
    output,
    show_options,
    shown,
    trace_options,
    write_options,
)
from graph2mermaid.cli.render import render_command
from graph2mermaid.cli.results import write_results
from graph2mermaid.cli.streams import stdout_is_stderr
from graph2mermaid.errors import Graph2MermaidError

if TYPE_CHECKING:
    from graph2mermaid.capture import Capture
    from graph2mermaid.sources.target import TargetName
    from graph2mermaid.sources.tracing import Request

_EXAMPLES = """
graph2mermaid model.py:multiply_add --out graph.md
graph2mermaid model.py:net.forward --input 'x=float32[?,64]' --tensors nodes
graph2mermaid model.py:train_step --inputs data.py:batch --level ops
graph2mermaid model.keras exported_model/ frozen.pb --out-dir graphs
graph2mermaid pkg.models:classifier --save classifier.g2m.json --quiet > classifier.md
graph2mermaid render classifier.g2m.json --format mmd --direction LR
graph2mermaid list model.py
"""

_EPILOG = """\b
Completion: put this into ~/.bashrc (zsh_source into ~/.zshrc, and fish_source likewise)
  eval "$(_GRAPH2MERMAID_COMPLETE=bash_source graph2mermaid)"

Exit status: 0 when the report was made, 2 on an error, 130 on Ctrl-C."""


@click.command(
    "graph2mermaid",
    cls=App,
    commands=[list_command, render_command],
    examples=_EXAMPLES,
    epilog=_EPILOG,
)
@click.argument(
    "targets", nargs=-1, required=True, metavar="TARGET...", shell_complete=complete_target
)
@trace_options
@show_options
@write_options
@general_options
@click.pass_context
def app(
    ctx: click.Context,
    targets: tuple[str, ...],
    inputs: tuple[str, ...],
    inputs_from: str | None,
    timeout: float | None,
    run: bool | None,
    replay: bool,
    unsafe: bool,
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
    debug: bool,
) -> None:
    """Show what TensorFlow runs, as Mermaid diagrams in a Markdown report.

    TARGET is FILE.py:NAME or MODULE:NAME (a tf.function, a function, a method, a tf.Module, a Keras
    model, model.train_step), a .keras or .h5 file, a SavedModel folder (FOLDER:SIGNATURE for one
    of its signatures), a GraphDef (.pb, .pbtxt), HLO as --xla_dump_to writes it (.hlo.pb, .txt) or
    a capture (.g2m.json). Several targets make one report.

    Loading a target runs the Python code of its file, as importing it does. Tracing runs the
    function's Python once.
    """
    from graph2mermaid.sources.signature import split_input
    from graph2mermaid.sources.stages import later_stages
    from graph2mermaid.sources.target import parse
    from graph2mermaid.sources.tracing import Request

    if len(targets) > 1 and (inputs or inputs_from):
        typed = "--input" if inputs else "--inputs"
        raise click.UsageError(f"{typed} goes with a single target, and there are {len(targets)}")
    steering = Steering(depth, max_nodes, fold, ghosts, focus, hops, from_, to)
    separate = out_dir is not None
    what = shown(
        views, level, tensors, direction, hide, color, fence, host, steering, out_dir=separate
    )
    names = [parse(_not_a_command(text)) for text in dict.fromkeys(targets)]
    files = [name.path for name in names if name.path is not None]
    where = output(out, out_dir, form, save, files)
    typed_inputs = tuple(split_input(text) for text in inputs)
    further = later_stages(what.views, run=run, replay=replay)
    request = Request(typed_inputs, inputs_from, unsafe, further)
    if timeout is not None and not is_supervised():
        ctx.exit(supervise(ctx.meta[ARGUMENTS], timeout))
    console = Console(quiet=quiet)
    if not debug:
        silence_tensorflow()
    found = [_record(name, request, console) for name in names]
    captures = found[0] if len(found) == 1 else [one for some in found for one in some]
    user_code_is_done()
    refused = ""
    try:
        write_results(captures, what, where, console)
    except Graph2MermaidError as error:
        refused = str(error)
        raise
    finally:
        for capture in captures:
            said = (n for n in capture.notes if f"{capture.target}: {n}" != refused)
            console.notes(capture.target, said)


def _record(name: TargetName, request: Request, console: Console) -> Sequence[Capture]:
    from graph2mermaid import serde
    from graph2mermaid.sources.target import TargetKind, needs_tensorflow, resolve
    from graph2mermaid.sources.tracing import capture

    console.step(f"loading {name.container}")
    with stdout_is_stderr():
        if needs_tensorflow(name):
            require_tensorflow("tracing")
        resolved = resolve(name)
        if resolved.kind is TargetKind.CAPTURE:
            return serde.load(resolved.obj)
        console.step(f"tracing {resolved.name}")
        return [_with_warnings(one) for one in capture(resolved, request)]


def _with_warnings(capture: Capture) -> Capture:
    return replace(capture, notes=(*capture.notes, *take_autograph_warnings()))


def _not_a_command(text: str) -> str:
    if text in app.commands and not Path(text).exists():
        raise click.UsageError(f"{text} is a command only as the first word")
    return text
