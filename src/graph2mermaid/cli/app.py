"""A command with subcommands that count only as the first word, and the program's exit statuses."""

from __future__ import annotations

import sys
import traceback
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from graph2mermaid.errors import Graph2MermaidError

GENERAL = "General"
"""The heading of what every command has, `--help` included."""
FAILED = 2
INTERRUPTED = 130
ARGUMENTS = "graph2mermaid.arguments"
"""Where a context's `meta` keeps the words that the program was called with."""


class GroupedOption(click.Option):
    """An option that `--help` shows under a heading."""

    def __init__(self, *args: Any, heading: str = "Options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heading = heading


class GroupedCommand(click.Command):
    """A command that shows its options under headings, and its examples as they are typed."""

    def __init__(self, *args: Any, examples: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by heading, in the order that the headings first come in."""
        headings: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and not isinstance(param, click.Argument):
                headings[getattr(param, "heading", GENERAL)].append(record)
        for heading, records in headings.items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, which must not be wrapped."""
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples.strip().splitlines():
                    formatter.write(f"{'':{formatter.current_indent}}{line}".rstrip() + "\n")
        super().format_epilog(ctx, formatter)


class App(GroupedCommand):
    """The default command. With a subcommand's name as the first word, that subcommand instead."""

    def __init__(self, *args: Any, commands: Sequence[click.Command] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands = {command.name or "": command for command in commands}

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse the words for the command that the first of them names, or for this one."""
        words = list(args)
        command = self.commands.get(args[0]) if args else None
        if command is None:
            ctx = super().make_context(info_name, args, parent, **extra)
        else:
            ctx = command.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        ctx.meta[ARGUMENTS] = words
        return ctx

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that the context was made for."""
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> None:
        """Run, and exit: 0 when it worked, 2 on an error, 130 on Ctrl-C.

        Raises:
            SystemExit: Always.
        """
        extra["standalone_mode"] = False
        words = sys.argv[1:] if args is None else args
        try:
            status = super().main(args, prog_name or "graph2mermaid", **extra)
        except (click.Abort, KeyboardInterrupt):
            status = _fail("interrupted", INTERRUPTED)
        except click.ClickException as error:
            status = _fail(_usage_message(error))
        except Graph2MermaidError as error:
            if "--debug" in words:
                traceback.print_exc()
            status = _fail(str(error))
        except Exception as error:  # the last line of defense
            if "--debug" in words:
                traceback.print_exc()
            status = _fail(
                f"{type(error).__name__}: {error}; this is a fault of graph2mermaid, "
                "please report it with the output of the same command and --debug"
            )
        sys.exit(status if isinstance(status, int) else 0)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the subcommands before the options."""
        rows = [(name, command.get_short_help_str(70)) for name, command in self.commands.items()]
        with formatter.section("Commands (as the first word; a file of that name is ./NAME)"):
            formatter.write_dl(rows)
        super().format_options(ctx, formatter)

    def command_items(self, incomplete: str) -> list[CompletionItem]:
        """Return the subcommands that a word which is being typed could become."""
        return [
            CompletionItem(name, help=command.get_short_help_str())
            for name, command in self.commands.items()
            if incomplete and name.startswith(incomplete)
        ]


def _fail(message: str, status: int = FAILED) -> int:
    words = " ".join(message.split("\n"))
    click.echo(f"Error: {words}", err=True)
    return status


def _usage_message(error: click.ClickException) -> str:
    """Return click's message on one line, with where to read on."""
    message = error.format_message().rstrip(".")
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return message
    return f"{message} (see {error.ctx.command_path} --help)"
