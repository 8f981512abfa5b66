"""How long `graph2mermaid --help` takes, beside an interpreter that does nothing.

    python benchmarks/help_startup.py [RUNS]

The best of the runs counts: it is the one that the rest of the machine disturbed least. What is
printed last is the part that graph2mermaid is responsible for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"


def main() -> None:
    """Measure both commands in turn and print their best times."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    best = {"python -c pass": float("inf"), "graph2mermaid --help": float("inf")}
    commands = {
        "python -c pass": ["-c", "pass"],
        "graph2mermaid --help": ["-m", "graph2mermaid", "--help"],
    }
    for _ in range(runs):
        for name, arguments in commands.items():
            best[name] = min(best[name], seconds([sys.executable, *arguments]))
    for name, best_seconds in best.items():
        print(f"{name:<21} {best_seconds * 1000:6.1f} ms  (best of {runs})")
    bare, started = best.values()
    print(f"{'difference':<21} {(started - bare) * 1000:6.1f} ms")


def seconds(command: Sequence[str]) -> float:
    """Return how long a command runs."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    start = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
