"""From captures to the files and the standard output that were asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from graph2mermaid.cli.console import Console
from graph2mermaid.cli.earlier import NAME as LIST
from graph2mermaid.cli.earlier import Earlier, remove
from graph2mermaid.cli.files import (
    OutputError,
    encode,
    ended_as_by_an_error,
    made_folder,
    written,
)
from graph2mermaid.cli.files import shown as shown_path
from graph2mermaid.cli.options import Output, Shown
from graph2mermaid.cli.streams import write_stdout

if TYPE_CHECKING:
    from graph2mermaid.capture import Capture
    from graph2mermaid.report.model import Report


def write_results(
    captures: Sequence[Capture], shown: Shown, output: Output, console: Console
) -> None:
    """Make the report and write everything, or nothing if something cannot be made or written.

    Raises:
        Graph2MermaidError: None of the views could be made.
        OutputError: Something cannot be written.
    """
    from graph2mermaid import serde
    from graph2mermaid.views import make_report

    console.step("writing")
    files: dict[Path, str] = {}
    text = ""
    stale: list[Path] = []
    if output.form == "json":
        text = serde.dumps(captures)
    else:
        captures_shown = [_with_note_on_colors(one, shown) for one in captures]
        for one, noted in zip(captures, captures_shown, strict=True):
            console.notes(one.target, noted.notes[len(one.notes) :])
        report = make_report(captures_shown, shown.views, shown.options)
        console.notes("--hide", _nothing_hidden(report))
        if output.out_dir is not None:
            parts = dict(_parts(report, output.form))
            earlier = Earlier(output.out_dir)
            targets = [one.target for one in captures]
            stale = earlier.stale(targets, parts)
            files |= {output.out_dir / name: words for name, words in parts.items()}
            written_there = {name: encode(words) for name, words in parts.items()}
            files[output.out_dir / LIST] = earlier.text_with(targets, written_there)
        elif output.form == "mmd":
            text = _ending_in_newline(report.first_diagram())
        else:
            text = report.to_markdown()
    if output.save is not None:
        files[output.save] = serde.dumps(captures)
    if output.out is not None:
        files[output.out] = text
    with ExitStack() as stack:
        stack.enter_context(ended_as_by_an_error())
        if output.out_dir is not None:
            stack.enter_context(made_folder(output.out_dir))
        stack.enter_context(written(files))
        if output.out is None and output.out_dir is None:
            try:
                write_stdout(encode(text))
            except OSError as error:
                raise OutputError(
                    f"cannot write to standard output: {error.strerror or error}"
                ) from error
    remove(stale)
    for path in files:
        console.step(f"wrote {shown_path(path)}")


def _with_note_on_colors(capture: Capture, shown: Shown) -> Capture:
    """Say which of the graphs that are shown have no devices to color by."""
    if shown.options.color != "device":
        return capture
    notes = [
        f"no device is recorded in the {stage.value} graph, so --color device tells nothing apart"
        for stage, graph in capture.graphs.items()
        if (shown.views is None or {stage.value, "all"}.intersection(shown.views))
        and not any(node.device for g in (graph, *graph.functions.values()) for node in g.nodes())
    ]
    return replace(capture, notes=(*capture.notes, *notes))


def _nothing_hidden(report: Report) -> Iterable[str]:
    """Return what the report says of words after `--hide` that fit nothing."""
    lines = (line for figure in report.figures() for line in figure.diagram.left_out)
    return dict.fromkeys(line for line in lines if line.startswith(_NOTHING_HIDDEN))


_NOTHING_HIDDEN = "Nothing is hidden for "


def _parts(report: Report, form: str) -> list[tuple[str, str]]:
    """Return a file name and its text for each page, or for each diagram."""
    if form == "md":
        return [(f"{page.name}.md", page.report.to_markdown()) for page in report.pages()]
    parts = []
    for page in report.pages():
        for number, figure in enumerate(page.report.figures(), 1):
            name = page.name if number == 1 else f"{page.name}-{number}"
            parts.append((f"{name}.mmd", _ending_in_newline(figure.text)))
    return parts


def _ending_in_newline(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"
