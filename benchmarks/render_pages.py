"""Time how long the newest Mermaid draws each diagram of a report, in a headless browser.

The report is that of a GraphDef (`.pb`) or a capture (`.g2m.json`); without one, of the ResNet-50
training step, which is made first:

    python benchmarks/make_resnet50_training_graphdef.py
    python benchmarks/render_pages.py [--rounds N] [--level ops] [FILE ...]

Each diagram counts with the best of N rounds, in a page that has drawn another before, since the
first drawing of all loads Mermaid's layout engine. Needs node and Chromium, as the tests do. Fails when a
diagram takes longer than the two seconds that a reader waits.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from graph2mermaid.capture import Capture  # noqa: E402
from graph2mermaid.graph import Stage  # noqa: E402
from graph2mermaid.views import Options, make_report  # noqa: E402
from tests.mermaid_js.browser import Browser, start  # noqa: E402

DEFAULT = Path(".cache/resnet50_training_step.pb")
MOST_MS = 2_000
SLOWEST = 5


class Timed(NamedTuple):
    """A diagram of a page, and how long it took."""

    ms: int
    page: str
    units: int
    text: str


def captures(path: Path) -> Iterable[Capture]:
    """Read a file."""
    if path.suffix == ".pb":
        from graph2mermaid.sources.graph_file import read_graph_def
        from graph2mermaid.sources.graphdef import graph_from_graph_def

        graph = graph_from_graph_def(read_graph_def(path), name=path.stem)
        return [Capture(str(path), path.stem, {Stage.TRACED: graph})]
    from graph2mermaid import serde

    return serde.load(str(path))


def timed(browser: Browser, path: Path, options: Options, rounds: int) -> Iterator[Timed]:
    """Draw every diagram of a report.

    Raises:
        RuntimeError: Mermaid does not draw one of them.
    """
    warm_up = "graph TD\n  n0 --> n1\n"
    for page in make_report(list(captures(path)), options=options).pages():
        for figure in page.report.figures():
            best = sys.maxsize
            for _ in range(rounds):
                browser.render([warm_up])
                [drawn] = browser.render([figure.text])
                if not drawn.ok:
                    raise RuntimeError(f"{page.name}: {drawn.error}")
                best = min(best, drawn.ms)
            yield Timed(best, page.name, len(figure.text), figure.text)


def main() -> int:
    """Print the slowest diagrams of each file, and how many there are."""
    parser = argparse.ArgumentParser(description="Time Mermaid on every diagram of a report.")
    parser.add_argument("files", nargs="*", type=Path, default=[DEFAULT])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--level", choices=("simple", "ops"), default="simple")
    given = parser.parse_args()
    options = Options(level=given.level, out_dir=True)
    browser = start()
    late = False
    try:
        for path in given.files:
            found = sorted(timed(browser, path, options, given.rounds), reverse=True)
            if not found:
                print(f"{path}: no diagrams")
                continue
            median = found[len(found) // 2].ms
            print(f"{path}: {len(found)} diagrams, median {median} ms; the slowest:")
            for one in found[:SLOWEST]:
                arrows = one.text.count("-->") + one.text.count("-.->")
                print(
                    f"  {one.ms:>6,} ms  {one.units:>7,} characters, {arrows:>4} edges  {one.page}"
                )
            late = late or found[0].ms > MOST_MS
    finally:
        browser.close()
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
