"""The options that commands share, by the headings that `--help` shows them under."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click
from click.shell_completion import CompletionItem

from graph2mermaid import __version__
from graph2mermaid.cli.app import GENERAL, App, GroupedOption

if TYPE_CHECKING:
    from graph2mermaid.views import Options

_Command = TypeVar("_Command", bound=Callable[..., Any])

# The words that `views.Options` takes. Importing it here would import networkx for `--help`; a
# test compares the two.
LEVELS = ("simple", "ops")
TENSORS = ("edges", "nodes")
DIRECTIONS = ("TD", "LR")
COLORS = ("kind", "device")
FENCES = ("mermaid", "myst", "azure")
HOSTS = ("github", "gitlab")
LEAST_NODES = 4
FORMATS = ("md", "mmd", "json")
LATER_VIEWS = ("timing", "dataset")

Format = Literal["md", "mmd", "json"]


@dataclass(frozen=True)
class Shown:
    """What the result shows."""

    views: tuple[str, ...] | None
    """None when none was asked for."""
    options: Options


@dataclass(frozen=True)
class Steering:
    """What decides how much stands on a page, and what is drawn first."""

    depth: int | None = None
    max_nodes: int | None = None
    fold: bool = True
    ghosts: bool = False
    focus: str | None = None
    hops: int | None = None
    from_: str | None = None
    to: str | None = None

    def __post_init__(self) -> None:
        """Check that nothing is given alone that goes with something else."""
        if self.hops is not None and self.focus is None:
            raise click.UsageError("--hops goes with --focus NAME")
        if (self.from_ is None) != (self.to is None):
            given, missing = ("--from", "--to") if self.to is None else ("--to", "--from")
            raise click.UsageError(f"{given} goes with {missing} NAME")


@dataclass(frozen=True)
class Output:
    """Where the result goes, and in which form."""

    out: Path | None
    """None for standard output."""
    out_dir: Path | None
    form: Format
    save: Path | None


def complete_target(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the first word as a subcommand if one fits, and any as a file."""
    commands: list[CompletionItem] = []
    if isinstance(ctx.command, App) and not ctx.params.get(param.name or ""):
        commands = ctx.command.command_items(incomplete)
    return commands or [CompletionItem(incomplete, type="file")]


def _seconds(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:  # noqa: ARG001
    if value is not None and not 0 < value < math.inf:
        raise click.BadParameter("a number of seconds above 0 is needed")
    return value


def option(*names: str, heading: str, **settings: Any) -> Callable[[_Command], _Command]:
    """Add an option under a heading of `--help`."""
    return click.option(*names, cls=GroupedOption, heading=heading, **settings)


def _all_of(*decorators: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    def decorate(command: _Command) -> _Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def _version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:  # noqa: ARG001
    if wanted and not ctx.resilient_parsing:
        click.echo(f"graph2mermaid {__version__}")
        ctx.exit()


_RUN = "What to run"
_SHOW = "What to show"
_WRITE = "What to write"

run_options = _all_of(
    option(
        "--timeout",
        type=float,
        callback=_seconds,
        metavar="SECONDS",
        heading=_RUN,
        help="Stop when loading and tracing take longer.",
    ),
)

trace_options = _all_of(
    option(
        "--input",
        "inputs",
        multiple=True,
        metavar="NAME=SPEC",
        heading=_RUN,
        help="Type and shape of an argument, as in 'x=float32[8,64]', 'x=f32[?,64]' (? unknown), "
        "'n=int32[]' (scalar), 'x=float32' (unknown rank), \"batch['image']=f32[8,32]\". "
        "May be repeated.",
    ),
    option(
        "--inputs",
        "inputs_from",
        metavar="FILE:NAME",
        heading=_RUN,
        help="A value, or a function that returns one: a tuple or list holds the positional "
        "arguments, a dict the keyword arguments.",
    ),
    run_options,
    option(
        "--run/--no-run",
        "run",
        default=None,
        heading=_RUN,
        help="Run the function once, with the values of --inputs or made-up ones, to record what "
        "TensorFlow runs; or never run it. By default it runs only with --inputs values.",
    ),
    option(
        "--no-replay",
        "replay",
        flag_value=False,
        default=True,
        is_flag=True,
        heading=_RUN,
        help="Do not find out which optimizer did what; it takes as long as optimizing.",
    ),
    option(
        "--unsafe",
        is_flag=True,
        heading=_RUN,
        help="Allow model files to run code (Keras Lambda layers). Only for files you trust.",
    ),
)

show_options = _all_of(
    option(
        "--view",
        "views",
        multiple=True,
        metavar="V[,V]",
        heading=_SHOW,
        help="The views of the report: traced, grappler (what the optimizer made of it), runtime "
        "(what each device executes), xla (what XLA compiles it to), memory (what shares it, and "
        "the peak), all. By default traced and grappler.",
    ),
    option(
        "--level",
        type=click.Choice(LEVELS),
        default="simple",
        show_default=True,
        heading=_SHOW,
        help="simple leaves plumbing out, ops shows every op.",
    ),
    option(
        "--tensors",
        type=click.Choice(TENSORS),
        default="edges",
        show_default=True,
        heading=_SHOW,
        help="Draw tensors as words on edges, or as nodes.",
    ),
    option(
        "--direction",
        type=click.Choice(DIRECTIONS, case_sensitive=False),
        default="TD",
        show_default=True,
        heading=_SHOW,
        help="Draw top down or left to right.",
    ),
    option(
        "--hide",
        multiple=True,
        metavar="OP_TYPE_OR_SCOPE",
        heading=_SHOW,
        help="Leave ops of a type or a name scope out of the diagram. May be repeated.",
    ),
    option(
        "--color",
        type=click.Choice(COLORS),
        default="kind",
        show_default=True,
        heading=_SHOW,
        help="Color nodes by what they are, or by the device they run on.",
    ),
    option(
        "--depth",
        type=click.IntRange(min=0),
        metavar="N",
        heading=_SHOW,
        help="Open at most N levels of groups on the overview.",
    ),
    option(
        "--max-nodes",
        type=click.IntRange(min=LEAST_NODES),
        metavar="N",
        heading=_SHOW,
        help="Draw at most N nodes on a page, but never more than Mermaid takes.",
    ),
    option(
        "--no-fold",
        "fold",
        flag_value=False,
        default=True,
        is_flag=True,
        heading=_SHOW,
        help="Draw equal groups each by itself.",
    ),
    option(
        "--ghosts",
        is_flag=True,
        heading=_SHOW,
        help="Draw the ops that Grappler removed as well, in its view.",
    ),
    option(
        "--focus",
        metavar="NAME",
        heading=_SHOW,
        help="Draw an op or a name scope first, with what is around it. NAME may be an "
        "argument's, a Python variable's or a layer's.",
    ),
    option(
        "--hops",
        type=click.IntRange(min=0),
        metavar="N",
        heading=_SHOW,
        help="How many edges away from --focus to go; 1 by default.",
    ),
    option(
        "--from",
        "from_",
        metavar="NAME",
        heading=_SHOW,
        help="Draw all paths from an op or a scope first; goes with --to.",
    ),
    option("--to", metavar="NAME", heading=_SHOW, help="Where the paths end."),
)

write_options = _all_of(
    option(
        "--out",
        metavar="FILE|-",
        type=click.Path(path_type=Path),
        heading=_WRITE,
        help="Write to a file, whole or not at all; - is standard output, the default.",
    ),
    option(
        "--out-dir",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        heading=_WRITE,
        help="Write a file for each page, with links between them, or for each diagram with "
        "--format mmd.",
    ),
    option(
        "--format",
        "form",
        type=click.Choice(FORMATS),
        default="md",
        show_default=True,
        heading=_WRITE,
        help="Markdown, one Mermaid diagram, or the capture.",
    ),
    option(
        "--save",
        metavar="FILE.g2m.json",
        type=click.Path(path_type=Path, dir_okay=False),
        heading=_WRITE,
        help="Write the capture too, for `render` and as a target.",
    ),
    option(
        "--fence",
        type=click.Choice(FENCES),
        default="mermaid",
        show_default=True,
        heading=_WRITE,
        help="How diagrams stand in Markdown: ```mermaid, ```{mermaid} for MyST, ::: mermaid for "
        "Azure DevOps.",
    ),
    option(
        "--host",
        type=click.Choice(HOSTS),
        default="github",
        show_default=True,
        heading=_WRITE,
        help="Keep to the limits of the place that draws the diagrams.",
    ),
)

general_options = _all_of(
    option("--quiet", is_flag=True, heading=GENERAL, help="Say nothing but errors."),
    option(
        "--debug",
        is_flag=True,
        heading=GENERAL,
        help="Show tracebacks, and what TensorFlow says.",
    ),
    option(
        "--version",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_version,
        heading=GENERAL,
        help="Show the version and exit.",
    ),
)


def shown(
    views: tuple[str, ...],
    level: str,
    tensors: str,
    direction: str,
    hide: tuple[str, ...],
    color: str,
    fence: str,
    host: str,
    steering: Steering,
    *,
    out_dir: bool = False,
) -> Shown:
    """Check and gather what the result is to show.

    Raises:
        click.UsageError: There is no such view, or not yet.
        Graph2MermaidError: An option has a value that it cannot take.
    """
    from graph2mermaid.views import VIEWS, Options

    names = tuple(part.strip() for text in views for part in text.split(","))
    for name in names:
        if name not in VIEWS and name != "all":
            what = "does not exist yet" if name in LATER_VIEWS else "does not exist"
            raise click.UsageError(f"--view {name} {what}; there is {', '.join(VIEWS)}, all")
    options = Options(
        level=level,  # type: ignore[arg-type]  # checked by click, and again by Options
        tensors=tensors,  # type: ignore[arg-type]
        direction=direction,  # type: ignore[arg-type]
        hide=hide,
        color=color,  # type: ignore[arg-type]
        fence=fence,  # type: ignore[arg-type]
        host=host,  # type: ignore[arg-type]
        depth=steering.depth,
        max_nodes=steering.max_nodes,
        fold=steering.fold,
        ghosts=steering.ghosts,
        focus=steering.focus,
        hops=steering.hops,
        from_=steering.from_,
        to=steering.to,
        out_dir=out_dir,
    )
    return Shown(names or None, options)


def output(
    out: Path | None, out_dir: Path | None, form: Format, save: Path | None, sources: list[Path]
) -> Output:
    """Check and gather where the result goes.

    Args:
        out: `--out`.
        out_dir: `--out-dir`.
        form: `--format`.
        save: `--save`.
        sources: The files that the result is made from, which it must not replace.

    Raises:
        click.UsageError: The options exclude each other, or would replace a source.
    """
    if out is not None and out_dir is not None:
        raise click.UsageError("--out and --out-dir exclude each other")
    if out_dir is not None and form == "json":
        raise click.UsageError("--out-dir takes md or mmd; for the capture, --save FILE.g2m.json")
    if out is not None and str(out) == "-":
        out = None
    for name, path in (("--out", out), ("--save", save)):
        for source in sources:
            if path is not None and path.exists() and path.samefile(source):
                raise click.UsageError(f"{name} {path} would replace a target")
    if out is not None and save is not None and out.resolve() == save.resolve():
        raise click.UsageError(f"--out and --save name the same file, {out}")
    # Absolute, since user code may change the working directory while it is loaded.
    out, out_dir, save = (path and path.absolute() for path in (out, out_dir, save))
    return Output(out, out_dir, form, save)
