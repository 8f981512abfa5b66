"""Time the Grappler view beside the Grappler calls that it makes.

    python benchmarks/grappler_view.py [--rounds N] [MODEL ...]

The view may cost at most 1.2 times those calls and a second more. It is everything after tracing:
recording the optimized graph, the replay, the comparison of both graphs, and the text of the report.
The calls are those to the runtime's own Grappler, which records the graph, and those to the child
process that replays it. Each model is measured with the replay and without it; the first call of
all, which loads libraries, is not counted.

Medians count; the time of the processor (of both processes together) is printed beside that of the
clock, since others may use the machine. Fails when a model takes longer.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from graph2mermaid.capture import Capture
from graph2mermaid.sources import grappler_worker, instantiate, tracing
from graph2mermaid.sources.arguments import ask_in_python
from graph2mermaid.sources.concrete import Inputs
from graph2mermaid.sources.keras_steps import step_function
from graph2mermaid.sources.stages import later_stages

FACTOR, SECONDS = 1.2, 1.0


class Moment(NamedTuple):
    """Seconds by the clock and by the processor."""

    clock: float
    processor: float

    def __sub__(self, other: Moment) -> Moment:
        """Return the time between two moments."""
        return Moment(self.clock - other.clock, self.processor - other.processor)

    def plus(self, other: Moment) -> Moment:
        """Return the sum of two times."""
        return Moment(self.clock + other.clock, self.processor + other.processor)


NOTHING = Moment(0.0, 0.0)


def now(child: int | None) -> Moment:
    """Return the time, that of the child process included."""
    spent = time.process_time()
    if child is not None:
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        spent += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return Moment(time.perf_counter(), spent)


class Stopwatch:
    """Adds up the time of everything that it wraps."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.spent: dict[str, Moment] = {}

    @contextmanager
    def measure(self, what: str) -> Iterator[None]:
        """Add what happens inside to an entry."""
        start = now(_child())
        yield
        self.spent[what] = self.spent.get(what, NOTHING).plus(now(_child()) - start)

    def wrap(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that is measured."""

        def measured(*args: Any, **kwargs: Any) -> Any:
            with self.measure(what):
                return function(*args, **kwargs)

        return measured


def _child() -> int | None:
    """Return the process that calls Grappler, once it runs."""
    from graph2mermaid.sources import grappler_config

    child = grappler_worker.worker(grappler_config.devices())._child
    return child._process.pid if child is not None else None


@contextmanager
def measured(watch: Stopwatch) -> Iterator[None]:
    """Measure the calls of Grappler, and everything after tracing."""
    places = (
        (grappler_worker.Worker, "_call", "Grappler: replay and shapes"),
        (instantiate, "_call", "Grappler: recording"),
        (tracing, "with_later_stages", "after tracing"),
    )
    kept = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    for owner, name, what in places:
        setattr(owner, name, watch.wrap(what, getattr(owner, name)))
    try:
        yield
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)


def run(function: Callable[..., Any], *, replay: bool) -> dict[str, Moment]:
    """Make the view of a function once."""
    watch = Stopwatch()
    with measured(watch):
        found = tracing.trace_callable(
            function,
            Inputs((), {}),
            target="model",
            name="model",
            ask=ask_in_python,
            further=later_stages(("grappler",), run=False, replay=replay),
        )
    with watch.measure("draw and write"):
        write(found)
    return watch.spent


def write(found: Capture) -> None:
    """Write the report."""
    for page in found.report(views=["grappler"]).pages():
        page.report.to_markdown()


# -- models -----------------------------------------------------------------------------------


def resnet50() -> Callable[..., Any]:
    """Return a ResNet-50 without its weights."""
    import keras

    model: Callable[..., Any] = keras.applications.ResNet50(weights=None)
    return model


def resnet50_step() -> Callable[..., Any]:
    """Return its training step."""
    import keras

    return _step(resnet50(), keras.optimizers.SGD(0.1, momentum=0.9))


def transformer() -> Callable[..., Any]:
    """Return an encoder of twelve layers."""
    import keras

    inputs = keras.Input([32], dtype="int32", name="tokens")
    x = keras.layers.Embedding(1000, 64, name="embedding")(inputs)
    for number in range(12):
        attended = keras.layers.MultiHeadAttention(4, 16, name=f"attention_{number}")(x, x)
        x = keras.layers.LayerNormalization(name=f"norm1_{number}")(x + attended)
        wide = keras.layers.Dense(256, "gelu", name=f"expand_{number}")(x)
        narrow = keras.layers.Dense(64, name=f"project_{number}")(wide)
        x = keras.layers.LayerNormalization(name=f"norm2_{number}")(x + narrow)
    x = keras.layers.GlobalAveragePooling1D(name="pool")(x)
    head = keras.layers.Dense(10, "softmax", name="head")(x)
    model: Callable[..., Any] = keras.Model(inputs, head, name="encoder")
    return model


def transformer_step() -> Callable[..., Any]:
    """Return its training step."""
    import keras

    return _step(transformer(), keras.optimizers.Adam())


def _step(model: Any, optimizer: Any) -> Callable[..., Any]:
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy")
    return step_function(model, "train_step", "model.train_step")


MODELS: dict[str, Callable[[], Callable[..., Any]]] = {
    "resnet50": resnet50,
    "resnet50_step": resnet50_step,
    "transformer": transformer,
    "transformer_step": transformer_step,
}


# -- results ----------------------------------------------------------------------------------


def median(rounds: list[dict[str, Moment]]) -> dict[str, Moment]:
    """Return the medians of the rounds."""
    return {
        what: Moment(*(statistics.median(times[what][i] for times in rounds) for i in (0, 1)))
        for what in rounds[0]
    }


def report(title: str, times: dict[str, Moment]) -> bool:
    """Print where the time goes; tell whether it is within the budget by the processor."""
    calls = NOTHING
    for what, spent in times.items():
        if what.startswith("Grappler"):
            calls = calls.plus(spent)
    total = times["after tracing"].plus(times["draw and write"])
    own = times["after tracing"] - calls
    allowed = [FACTOR * seconds + SECONDS for seconds in calls]
    print(f"{title:<44}{'clock':>11}{'processor':>12}")
    rows = {k: v for k, v in times.items() if k.startswith("Grappler")}
    rows |= {"copy, compare, make graphs": own, "draw and write": times["draw and write"]}
    rows |= {"the view": total, "allowed": Moment(*allowed)}
    for what, spent in rows.items():
        print(f"  {what:<40}{spent.clock:>9.2f} s{spent.processor:>10.2f} s")
    return total.processor <= allowed[1]


def main() -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description="Time the Grappler view beside its calls.")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    unknown = sorted(set(given.models) - set(MODELS))
    if unknown:
        parser.error(f"there is no model {unknown[0]!r}; the models are: {', '.join(MODELS)}")
    import tensorflow as tf

    run(tf.function(tf.nn.relu, input_signature=[tf.TensorSpec([2])]), replay=True)
    good = True
    for name in given.models or MODELS:
        function = MODELS[name]()
        for replay in (True, False):
            rounds = [run(function, replay=replay) for _ in range(given.rounds)]
            title = f"{name}{'' if replay else ', without the replay'}"
            good = report(title, median(rounds)) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
