"""What goes to standard error beside errors: progress on a terminal, and notes."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click


class Console:
    """Says what is going on, unless it is to be quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def step(self, words: str) -> None:
        """Say what is being done, when somebody sits at a terminal and waits."""
        if not self._quiet and sys.stderr.isatty():
            click.secho(words, dim=True, err=True)

    def notes(self, about: str, notes: Iterable[str]) -> None:
        """Say what a reader of the result must know."""
        if not self._quiet:
            for note in notes:
                click.echo(f"Note: {about}: {' '.join(note.split())}", err=True)
