"""What earlier runs wrote into an `--out-dir`, so that a later one can take away what is stale.

A folder of pages holds a list of what this program wrote there, and of which targets. What a later
run of the same targets does not write again goes, and so does what belongs to a page that it
replaces. A file that is not on the list, or was changed since, is the user's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

NAME = ".graph2mermaid.json"
"""The list's own file, in the folder."""


@dataclass(frozen=True)
class _Run:
    """The files of one run that are still there, each with the hash of what was written."""

    targets: tuple[str, ...]
    files: Mapping[str, str]


class Earlier:
    """The runs that wrote into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs = list(_read(folder / NAME))

    def stale(self, targets: Sequence[str], files: Collection[str]) -> list[Path]:
        """Return what a run makes stale: files of this program that nobody has changed.

        Args:
            targets: What the run is about.
            files: The names of what it writes. Only files with the same endings become stale:
                pages and single diagrams may stand side by side.
        """
        endings = {Path(name).suffix for name in files}
        return [
            self._folder / name
            for run in self._runs
            if run.targets == tuple(targets) or not run.files.keys().isdisjoint(files)
            for name, digest in run.files.items()
            if name not in files
            and Path(name).suffix in endings
            and _is_as_written(self._folder / name, digest)
        ]

    def text_with(self, targets: Sequence[str], files: Mapping[str, bytes]) -> str:
        """Return the list as it is after a run that writes these files."""
        gone = {path.name for path in self.stale(targets, files)}
        gone |= files.keys()
        kept = [
            _Run(run.targets, {n: digest for n, digest in run.files.items() if n not in gone})
            for run in self._runs
        ]
        kept.append(_Run(tuple(targets), {name: _digest(data) for name, data in files.items()}))
        runs = [
            {"files": dict(sorted(run.files.items())), "targets": list(run.targets)}
            for run in kept
            if run.files
        ]
        return json.dumps({"runs": runs}, indent=1) + "\n"


def remove(paths: Iterable[Path]) -> None:
    """Take files away; one that cannot be taken away stays."""
    for path in paths:
        with suppress(OSError):
            path.unlink()


def _read(path: Path) -> Iterable[_Run]:
    """Yield the runs on a list; one that is missing or damaged says nothing."""
    try:
        runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
        found = [_Run(tuple(map(str, run["targets"])), dict(run["files"])) for run in runs]
    except (OSError, ValueError, KeyError, TypeError):
        return
    for run in found:
        # Nothing outside the folder is ever touched, whatever the list says.
        files = {name: digest for name, digest in run.files.items() if Path(name).name == name}
        yield _Run(run.targets, files)


def _is_as_written(path: Path, digest: str) -> bool:
    try:
        return not path.is_symlink() and _digest(path.read_bytes()) == digest
    except OSError:
        return False


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
