"""What the report claims to be equal, computed by TensorFlow without its optimizers."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import graph2mermaid
from graph2mermaid import Capture
from graph2mermaid.provenance import How
from tests.tf import gallery

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tf


@pytest.fixture
def concrete(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Have the gallery optimize its functions, and keep the ConcreteFunctions."""
    from graph2mermaid.sources import stages, tracing

    kept: list[Any] = []
    real = stages.with_later_stages

    def keeping(capture, traced, further):
        kept.append(traced.concrete)
        return real(capture, traced, further)

    monkeypatch.setattr(tracing, "with_later_stages", keeping)
    monkeypatch.setattr(graph2mermaid, "trace", graph2mermaid.optimize)
    return kept


class Unoptimized:
    """The traced graph, as it is."""

    def __init__(self, concrete: Any) -> None:
        v1 = tf.compat.v1
        config = v1.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(concrete.graph.as_graph_def(), name="")
        self._session = v1.Session(graph=graph, config=config)
        self._fed = {
            f"{op.name}:0": self._anything(op.outputs[0])
            for op in graph.get_operations()
            if op.type == "Placeholder" and self._can_be_fed(op.outputs[0])
        }

    @staticmethod
    def _can_be_fed(tensor: Any) -> bool:
        return bool(tensor.shape.is_fully_defined() and tensor.dtype.is_numpy_compatible)

    @staticmethod
    def _anything(tensor: Any) -> Any:
        import numpy as np

        return np.zeros(tensor.shape, tensor.dtype.as_numpy_dtype)

    def value(self, op: str) -> Any:
        return self._session.run(f"{op}:0", self._fed)


def folded_values(capture: Capture) -> Iterator[tuple[str, Any]]:
    """Yield the traced ops outside bodies that small constants claim to equal, and the values."""
    assert capture.optimization is not None
    for node in capture.optimization.provenance.nodes.values():
        folded = node.folded
        if folded is None or folded.equals is None or folded.value is None or "#" in folded.equals:
            continue
        try:
            yield folded.equals, ast.literal_eval(folded.value)
        except (ValueError, SyntaxError):  # cut off, or no number
            continue


@pytest.mark.parametrize("name", sorted(gallery.MAKERS))
def test_folded_constants_of_the_gallery(name: str, concrete: list[Any]):
    """Each folded constant has the value that the traced ops compute one by one."""
    capture: Capture = inspect.unwrap(gallery.MAKERS[name])()
    if capture.optimization is None:
        pytest.skip(capture.notes[-1])
    unoptimized = None
    for op, value in folded_values(capture):
        unoptimized = unoptimized or Unoptimized(concrete[-1])
        computed = unoptimized.value(op).tolist()
        assert value == pytest.approx(computed, rel=1e-5), op


def known_shapes(x):
    flat = tf.reshape(x, tf.stack([tf.shape(x)[0], -1]))
    return flat * tf.cast(tf.size(x), tf.float32) + tf.sqrt(tf.constant([4.0, 9.0, 16.0, 25.0]))


def random_with_a_seed(x):
    return x + tf.random.stateless_uniform([4], [1, 2])


def table_of_positions(x):
    at = tf.cast(tf.range(4), tf.float32)
    return x * tf.sin(at / tf.pow(10.0, at / 4.0)) + tf.linspace(0.0, 1.0, 4)


@pytest.mark.parametrize("function", [known_shapes, random_with_a_seed, table_of_positions])
def test_folded_constants(function: Callable[..., Any], concrete: list[Any]):
    """There are constants to compare, and they are what the traced ops compute."""
    capture = graph2mermaid.optimize(function, tf.TensorSpec([2, 4]))
    found = list(folded_values(capture))
    assert found
    for op, value in found:
        assert value == pytest.approx(Unoptimized(concrete[-1]).value(op).tolist(), rel=1e-5), op


def dense(x, w, b):
    return tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))


def with_plus(x, w, b):
    return tf.nn.relu(x @ w + b)


def swish(x, w, b):
    return tf.nn.swish(tf.nn.bias_add(tf.matmul(x, w), b))


def gelu(x, w, b):
    return tf.nn.gelu(tf.nn.bias_add(tf.matmul(x, w), b), approximate=True)


def convolution(x, w, b):
    return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), b))


def normalized(x, w, b):
    y = tf.nn.conv2d(x, w, 1, "SAME")
    spread = tf.abs(b) + 1.0
    return tf.compat.v1.nn.fused_batch_norm(y, b, b, b, spread, is_training=False)[0]


def added(x, w, b):
    return tf.matmul(x, w) + tf.matmul(x, w) + b + b + b


MATRICES = ((8, 16), (16, 32), (32,))
IMAGES = ((2, 8, 8, 3), (3, 3, 3, 4), (4,))


@pytest.fixture
def no_optimizers() -> Iterator[Callable[..., None]]:
    """Switch the optimizers of the process off and on."""

    def switch(*, off: bool) -> None:
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": off})

    yield switch
    switch(off=False)


@pytest.mark.parametrize(
    ("function", "shapes", "fuses"),
    [
        (dense, MATRICES, True),
        (with_plus, MATRICES, None),
        (swish, MATRICES, True),
        (gelu, MATRICES, True),
        (convolution, IMAGES, True),
        (normalized, IMAGES, None),
        (added, MATRICES, None),
    ],
    ids=["dense", "plus", "swish", "gelu", "convolution", "normalized", "sums"],
)
def test_kernels_compute_what_the_chain_did(function, shapes, fuses, no_optimizers):
    """The function returns the same with its kernels as op by op, on random numbers."""
    values = [tf.random.stateless_normal(shape, (1, seed)) for seed, shape in enumerate(shapes)]
    capture = graph2mermaid.optimize(function, *values, run=True)
    assert capture.optimization is not None
    kernels = capture.optimization.provenance.node_counts.get(How.FUSED, 0)
    assert fuses is None or kernels >= 1
    no_optimizers(off=True)
    plain = tf.function(function)(*values).numpy()
    no_optimizers(off=False)
    assert tf.function(function)(*values).numpy() == pytest.approx(plain, rel=1e-3, abs=1e-3)
