"""From captures to the files and the standard output that were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from graph2mermaid.cli.console import Console
from graph2mermaid.cli.files import OutputError, encode, made_folder, written
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
    if output.form == "json":
        text = serde.dumps(captures)
    else:
        report = make_report(captures, shown.views, shown.options)
        if output.out_dir is not None:
            files |= {output.out_dir / name: words for name, words in _parts(report, output.form)}
        elif output.form == "mmd":
            text = _ending_in_newline(report.first_diagram())
        else:
            text = report.to_markdown()
    if output.save is not None:
        files[output.save] = serde.dumps(captures)
    if output.out is not None:
        files[output.out] = text
    with ExitStack() as stack:
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
    for path in files:
        console.step(f"wrote {shown_path(path)}")


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
