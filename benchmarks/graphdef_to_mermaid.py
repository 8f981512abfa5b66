"""Time the way from a GraphDef file to Mermaid text, stage by stage.

The default file is the ResNet-50 training step, 8,477 nodes; make it first:

    python benchmarks/make_resnet50_training_graphdef.py
    python benchmarks/graphdef_to_mermaid.py [--rounds N] [FILE.pb]

Each line is the best of N rounds. Importing TensorFlow, which every command pays once, is not
counted; `+ shapes` is, as the file holds none.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from graph2mermaid.capture import Capture
from graph2mermaid.graph import Stage
from graph2mermaid.sources.graph_file import read_graph_def
from graph2mermaid.sources.graphdef import graph_from_graph_def
from graph2mermaid.sources.shapes import infer_shapes

DEFAULT = Path(".cache/resnet50_training_step.pb")
T = TypeVar("T")


class Clock:
    """Runs stages, and remembers the best time of each."""

    def __init__(self) -> None:
        """Start with no stages."""
        self.best: dict[str, float] = {}

    def run(self, stage: str, work: Callable[[], T]) -> T:
        """Run one stage."""
        start = time.perf_counter()
        result = work()
        took = time.perf_counter() - start
        self.best[stage] = min(took, self.best.get(stage, took))
        return result


def one_round(path: Path, clock: Clock) -> str:
    """Go all the way once and say how large everything was."""
    proto = clock.run("read the file", lambda: read_graph_def(path))
    graph = clock.run("make the graph", lambda: graph_from_graph_def(proto, name=path.stem))
    capture = Capture(str(path), path.stem, {Stage.TRACED: graph})
    diagram = clock.run("first diagram", capture.to_mermaid)
    shapes, _ = clock.run("+ shapes", lambda: infer_shapes(proto))
    shaped = graph_from_graph_def(proto, name=path.stem, shapes=shapes)
    capture = Capture(str(path), path.stem, {Stage.TRACED: shaped})
    report = clock.run("+ whole report", lambda: capture.report().to_markdown())
    return (
        f"{len(graph):,} nodes, {graph.edge_count:,} edges; first diagram {len(diagram):,} "
        f"characters, report {len(report):,} characters"
    )


def main() -> None:
    """Read the command line, run the rounds, print the table."""
    parser = argparse.ArgumentParser(description="Time a GraphDef file to Mermaid text.")
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if not given.file.is_file():
        parser.error(f"{given.file} is not there; see the first lines of this program")
    clock = Clock()
    size = ""
    for _ in range(given.rounds):
        size = one_round(given.file, clock)
    print(f"{given.file}: {size}")
    for stage, seconds in clock.best.items():
        print(f"  {stage:<16}{seconds * 1000:>8,.0f} ms")
    way = [seconds for stage, seconds in clock.best.items() if not stage.startswith("+")]
    print(f"  {'file to Mermaid':<16}{sum(way) * 1000:>8,.0f} ms")


if __name__ == "__main__":
    main()
