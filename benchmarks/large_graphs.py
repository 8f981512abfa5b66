"""Time large GraphDef files to all of their pages, beside Model Explorer where it is installed.

    python benchmarks/make_resnet50_training_graphdef.py
    python benchmarks/large_graphs.py [--peer PYTHON] [--rounds N] [--million] [FILE.pb]

Three things are measured, each in child processes of their own:

- FILE.pb (the ResNet-50 training step) to the text of all pages, without and with shapes. With
  `--peer`, the interpreter of an environment with `ai-edge-model-explorer` in it, Model Explorer
  converts the same file in turn with it; that is all its adapter does, it draws nothing.
- How time grows from 10,000 to 100,000 nodes, on a flat graph and on one with scopes, and how much
  memory the larger ones take.
- With `--million`, a graph of a million nodes to one report.

Importing TensorFlow, or the adapter, is not counted in times, but is in memory. Medians count; the
time of the processor is printed beside that of the clock, since others may use the machine.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
DEFAULT = Path(".cache/resnet50_training_step.pb")
SIZES = (10_000, 100_000)
MILLION = 1_000_000

Times = dict[str, tuple[float, float]]
"""For each stage the seconds by the clock and by the processor."""


class Clock:
    """Measures one stage after the other."""

    def __init__(self) -> None:
        """Start with no stages."""
        self.times: Times = {}
        self._last = time.perf_counter(), time.process_time()

    def stop(self, stage: str) -> None:
        """End a stage; the next one begins."""
        now = time.perf_counter(), time.process_time()
        self.times[stage] = now[0] - self._last[0], now[1] - self._last[1]
        self._last = now


def ours(path: Path, *, shapes: bool = False, pages: bool = True) -> Times:
    """Go from the file to the text of all pages, or of one report."""
    from graph2mermaid.capture import Capture
    from graph2mermaid.graph import Stage
    from graph2mermaid.sources.graph_file import read_graph_def
    from graph2mermaid.sources.graphdef import graph_from_graph_def
    from graph2mermaid.sources.shapes import infer_shapes

    clock = Clock()
    proto = read_graph_def(path)
    clock.stop("read the file")
    known = infer_shapes(proto)[0] if shapes else {}
    if shapes:
        clock.stop("infer shapes")
    graph = graph_from_graph_def(proto, name=path.stem, shapes=known)
    clock.stop("make the graph")
    capture = Capture(str(path), path.stem, {Stage.TRACED: graph})
    report = capture.report(out_dir=pages)
    clock.stop("draw")
    texts = [p.report.to_markdown() for p in report.pages()] if pages else [report.to_markdown()]
    clock.stop("write")
    print(f"{len(texts):,} pages, {sum(map(len, texts)):,} characters", file=sys.stderr)
    return clock.times


def peer(path: Path) -> Times:
    """Convert the file with Model Explorer's adapter, as its `convert` does first."""
    import ai_edge_model_explorer_adapter as adapter

    clock = Clock()
    adapter.ConvertGraphDefDirectlyToJson(adapter.VisualizeConfig(), str(path))
    clock.stop("convert")
    return clock.times


RUNNERS: dict[str, Callable[[Path], Times]] = {
    "all pages": ours,
    "all pages, with shapes": lambda path: ours(path, shapes=True),
    "one report": lambda path: ours(path, pages=False),
    "Model Explorer": peer,
}


def serve(runner: str, path: Path) -> None:
    """Run once for each line of the standard input, and print what it took."""
    if runner != "Model Explorer":
        import tensorflow as tf  # noqa: F401  # its import is not what is measured
    for _ in sys.stdin:
        times = RUNNERS[runner](path)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"times": times, "memory": memory}), flush=True)


class Child:
    """A process that runs one thing again and again."""

    def __init__(self, runner: str, path: Path, python: str = sys.executable) -> None:
        """Start it."""
        self.rounds: list[Times] = []
        self.memory = 0
        self._process = subprocess.Popen(
            [python, str(HERE), "--child", runner, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self) -> None:
        """Let it run once."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a child process failed: {self._process.args!r}")
        found = json.loads(line)
        self.rounds.append(found["times"])
        self.memory = max(self.memory, found["memory"])

    def close(self) -> None:
        """End it."""
        self._process.communicate()

    def median(self, stage: str | None = None) -> tuple[float, float]:
        """Return the median of the rounds: of a stage, or of all of them together."""
        sums = [
            [
                sum(t[which] for name, t in times.items() if stage in (None, name))
                for which in (0, 1)
            ]
            for times in self.rounds
        ]
        return statistics.median(s[0] for s in sums), statistics.median(s[1] for s in sums)


def compare(path: Path, rounds: int, python: str | None) -> None:
    """Run ours and the peer in turn on one file, and print the medians."""
    children = {name: Child(name, path) for name in ("all pages", "all pages, with shapes")}
    if python:
        children["Model Explorer"] = Child("Model Explorer", path, python)
    else:
        print("Model Explorer is not measured: give its interpreter with --peer")
    for child in children.values():
        child.run()  # the first round fills caches
        child.rounds.clear()
    for _ in range(rounds):
        for child in children.values():
            child.run()
    print(f"{path.name}, medians of {rounds} rounds{'clock':>22}{'processor':>12}")
    for name, child in children.items():
        child.close()
        print(line(name, child.median(), child.memory))
        stages = list(child.rounds[0])
        for stage in stages if len(stages) > 1 else ():
            print(line(f"  {stage}", child.median(stage)))


def line(name: str, seconds: tuple[float, float], memory: int = 0) -> str:
    """Return one line of a table."""
    size = f"{memory / 2**20:>10,.0f} MiB" if memory else ""
    return f"  {name:<40}{seconds[0]:>9.3f} s{seconds[1]:>10.3f} s{size}"


def grow(folder: Path, rounds: int) -> None:
    """Print how much longer ten times the nodes take."""
    for title, make in NETWORKS.items():
        medians: list[tuple[float, float]] = []
        for size in SIZES:
            path = folder / f"{title}_{size}.pb"
            write_graph_def(path, make(size))
            child = Child("all pages", path)
            for _ in range(rounds if size == SIZES[0] else 1):
                child.run()
            child.close()
            medians.append(child.median())
            print(line(f"{title}, {size:,} nodes", medians[-1], child.memory))
        small, large = medians
        print(f"  {'':<40}x{large[0] / small[0]:>8.1f}  x{large[1] / small[1]:>9.1f}")


def million(folder: Path) -> None:
    """Print how long a million nodes take to one report, which has the nearest parts."""
    for title, make in NETWORKS.items():
        path = folder / f"{title}_{MILLION}.pb"
        write_graph_def(path, make(MILLION))
        child = Child("one report", path)
        child.run()
        child.close()
        print(line(f"{title}, {MILLION:,} nodes", child.median(), child.memory))


def flat(count: int) -> Iterator[tuple[str, str, list[str]]]:
    """Yield name, op type and inputs of ops without scopes, wired at random to recent ones."""
    chance = random.Random(0)
    names: list[str] = []
    for number in range(count):
        op = ("Relu", "Tanh", "AddV2", "Mul", "Sub")[number % 5] if number else "Placeholder"
        inputs = 0 if not number else 1 if op in ("Relu", "Tanh") else 2
        name = f"{op}_{number}"
        yield name, op, [names[-1 - chance.randrange(min(number, 40))] for _ in range(inputs)]
        names.append(name)


def scoped(count: int) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the same of stages of residual blocks of four layers under numbered scopes."""
    last = "images"
    yield last, "Placeholder", []
    for block in range((count - 1) // 20):
        start = last
        for number in range(20):
            layer = ("conv", "bn", "act", "out")[number // 5]
            op = "AddV2" if number == 19 else ("Relu", "Tanh", "Sigmoid")[number % 3]
            name = f"net/stage{block // 10}_block{block % 10}_{layer}_1/op{number}"
            yield name, op, [last, start] if op == "AddV2" else [last]
            last = name


NETWORKS: dict[str, Callable[[int], Iterator[tuple[str, str, list[str]]]]] = {
    "flat": flat,
    "scoped": scoped,
}


def write_graph_def(path: Path, ops: Iterator[tuple[str, str, list[str]]]) -> None:
    """Write ops as a GraphDef of floats of unknown shape."""
    from tensorflow.core.framework import graph_pb2, types_pb2

    graph: Any = graph_pb2.GraphDef()
    for name, op, inputs in ops:
        node = graph.node.add(name=name, op=op, input=inputs)
        node.attr["dtype" if op == "Placeholder" else "T"].type = types_pb2.DT_FLOAT
    path.write_bytes(graph.SerializeToString())


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description="Time large GraphDefs to all of their pages.")
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter with Model Explorer")
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--child", choices=RUNNERS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        serve(given.child, given.file)
        return
    if given.file.is_file():
        compare(given.file, given.rounds, given.peer)
    else:
        print(f"{given.file} is not there; benchmarks/make_resnet50_training_graphdef.py makes it")
    with tempfile.TemporaryDirectory() as folder:
        grow(Path(folder), given.rounds)
        if given.million:
            million(Path(folder))


if __name__ == "__main__":
    main()
