"""What TensorFlow made of real functions, checked by running them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from graph2mermaid.graph import Graph
from graph2mermaid.optimization import Optimized
from graph2mermaid.provenance import (
    Blocked,
    Blocker,
    Fate,
    How,
    Provenance,
    blocked_fusions,
    explain,
)
from tests.test_provenance import assert_adds_up
from tests.tf.reading import with_onednn

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tf


def spec(*shape: int | None, dtype: Any = None) -> Any:
    return tf.TensorSpec(shape, dtype or tf.float32)


@dataclass(frozen=True)
class Explained:
    """One function, traced and optimized."""

    concrete: Any
    traced: Graph
    optimized: Optimized
    provenance: Provenance

    def blocked(self) -> tuple[Blocked, ...]:
        return blocked_fusions(
            self.traced,
            self.provenance,
            onednn=with_onednn(),
            optimizers=self.optimized.optimizers,
        )

    def how(self, how: How) -> list[str]:
        return [node.name for node in self.provenance.nodes.values() if node.how is how]

    def fate(self, fate: Fate) -> list[str]:
        return [op.id for op in self.provenance.ops.values() if op.fate is fate]


def explained(function: Callable[..., Any], *specs: Any, replay: bool = False) -> Explained:
    from graph2mermaid.sources.grappler import optimize
    from graph2mermaid.sources.tf_function import graph_of

    concrete = tf.function(function).get_concrete_function(*specs)
    traced = graph_of(concrete, name="f")
    optimized = optimize(concrete, traced, with_replay=replay).optimized
    found = explain(traced, optimized.graph, optimized.passes)
    assert_adds_up(found)
    assert found.explained == 1
    return Explained(concrete, traced, optimized, found)


def traced_value(concrete: Any, op: str, values: dict[str, Any]) -> Any:
    """Run the traced graph as it is, no optimizer on, up to one op."""
    v1 = tf.compat.v1
    config = v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(concrete.graph.as_graph_def(), name="")
    with v1.Session(graph=graph, config=config) as session:
        return session.run(f"{op}:0", {f"{name}:0": value for name, value in values.items()})


def dense(x, w, b):
    return tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))


MATRICES = (spec(8, 16), spec(16, 32), spec(32))


class TestDense:
    """A product, a bias and an activation."""

    def test_one_kernel(self):
        """The kernel absorbs all three, and the optimizer that made it is named."""
        found = explained(dense, *MATRICES, replay=True)
        (kernel,) = found.how(How.FUSED)
        assert found.provenance.nodes[kernel].origins == ("MatMul", "BiasAdd", "Relu")
        assert {found.provenance.ops[op].by for op in found.fate(Fate.FUSED)} == {"remap"}
        assert found.provenance.credited == 1
        assert found.blocked() == ()

    def test_it_computes_what_the_chain_did(self):
        """What the runtime returns is what the traced ops compute one by one."""
        found = explained(dense, *MATRICES)
        values = {
            name: tf.random.stateless_normal(shape.shape, (1, seed)).numpy()
            for seed, (name, shape) in enumerate(zip("xwb", MATRICES, strict=True))
        }
        result = found.concrete(*(tf.constant(v) for v in values.values())).numpy()
        (kernel,) = found.how(How.FUSED)
        last = found.provenance.nodes[kernel].origins[-1]
        assert result == pytest.approx(
            traced_value(found.concrete, last, values), rel=1e-4, abs=1e-4
        )


class TestFolding:
    """Constants that the optimizer computes."""

    def test_the_value_is_what_the_traced_ops_compute(self):
        """Every folded constant that equals a traced op has that op's value."""

        def f(x):
            small = tf.sqrt(tf.constant([4.0, 9.0])) * 3.0
            return x * small + tf.cast(tf.shape(x)[0], tf.float32)

        found = explained(f, spec(2))
        folded = [node.folded for node in found.provenance.nodes.values() if node.folded]
        known = [constant for constant in folded if constant.equals and constant.value]
        assert known
        for constant in known:
            assert constant.equals is not None
            assert constant.value is not None
            computed = traced_value(found.concrete, constant.equals, {"x": [1.0, 1.0]})
            assert ast.literal_eval(constant.value) == pytest.approx(computed.tolist())

    def test_a_large_constant_is_known_by_its_size(self):
        """Bytes that were not in the traced graph are told."""

        def f(x):
            return x * tf.sqrt(tf.fill([100, 1000], 2.0))

        found = explained(f, spec(100, 1000))
        (constant,) = (n.folded for n in found.provenance.nodes.values() if n.folded)
        assert (constant.dtype, constant.shape) == ("float32", (100, 1000))
        assert (constant.nbytes, constant.value) == (400_000, None)

    def test_a_name_that_a_new_constant_took(self):
        """A factor of a gradient is put together from several: it is no traced op's value."""

        def f(x, w, y):
            with tf.GradientTape() as tape:
                tape.watch(w)
                loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
            return tape.gradient(loss, w)

        found = explained(f, spec(8, 4), spec(4, 3), spec(8, 3))
        for node in found.provenance.nodes.values():
            if node.folded and node.folded.equals and node.folded.value:
                computed = traced_value(found.concrete, node.folded.equals, {})
                assert ast.literal_eval(node.folded.value) == pytest.approx(computed.tolist())
        assert any(n.folded and n.folded.equals is None for n in found.provenance.nodes.values())


class TestControlFlow:
    """Loops, branches and calls are put in place."""

    def test_a_loop_with_a_branch(self):
        """Every op of the bodies is found again under its lowered name."""

        def f(x):
            for _ in tf.range(3):
                x = tf.tanh(x) if tf.reduce_sum(x) > 0 else x - 1.0
            return x

        found = explained(f, spec(2))
        kept = {found.provenance.ops[op].op for op in found.fate(Fate.KEPT)}
        assert {"Tanh", "Sub", "Sum", "Greater"} <= kept
        assert found.how(How.LOWERED)

    def test_a_function_called_twice(self):
        """The constant of the second call is merged into that of the first."""

        @tf.function
        def inner(a):
            return tf.nn.relu(tf.matmul(a, a) + 1.0)

        found = explained(lambda x: inner(x) + inner(2.0 * x), spec(2, 2))
        merged = found.fate(Fate.MERGED)
        assert len(merged) == 1
        assert merged[0].endswith("#f/add/y")

    def test_a_predicate_that_is_known(self):
        """The branch that is never taken is told."""

        def f(x):
            return tf.cond(tf.constant(2) > 1, lambda: tf.tanh(x), lambda: tf.exp(x))

        found = explained(f, spec(2))
        untaken = {found.provenance.ops[op].op for op in found.fate(Fate.UNTAKEN)}
        assert "Exp" in untaken
        assert "Tanh" not in untaken


def test_a_sigmoid_before_an_argmax_is_flagged():
    """TensorFlow takes it out, and large inputs then no longer tie."""
    found = explained(lambda x: tf.argmax(tf.sigmoid(x), axis=-1), spec(1, 2))
    (suspect,) = found.provenance.suspects
    assert [found.traced[op].op for op in suspect.ops] == ["Sigmoid"]
    large = [[30.0, 40.0]]
    values = {found.traced.inputs[0].tensors[0].node: large}
    eager = traced_value(found.concrete, "ArgMax", values)
    assert eager.tolist() == [0]
    assert found.concrete(tf.constant(large)).numpy().tolist() == [1]


def test_ops_that_undo_each_other_are_not_flagged():
    """A transpose and back, and a sum of nothing, change no answer."""

    def f(x):
        return tf.nn.relu(tf.transpose(tf.transpose(x)) + 0.0)

    assert explained(f, spec(2, 3)).provenance.suspects == ()


def convolution(x, w, b):
    return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), b))


def channels_first(x, w, b):
    y = tf.nn.conv2d(x, w, 1, "SAME", data_format="NCHW")
    return tf.nn.relu(tf.nn.bias_add(y, b, data_format="NC.."))


def depthwise(x, w, b):
    y = tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME")
    return tf.nn.relu(tf.nn.bias_add(y, b))


def plus(x, w, b):
    return tf.nn.relu(tf.matmul(x, w) + b)


def product_used_twice(x, w, b):
    product = tf.matmul(x, w)
    return tf.nn.relu(tf.nn.bias_add(product, b)), tf.reduce_max(product)


def sum_used_twice(x, w, b):
    biased = tf.nn.bias_add(tf.matmul(x, w), b)
    return tf.nn.relu(biased), tf.reduce_max(biased)


def no_bias(x, w):
    return tf.nn.relu(tf.matmul(x, w))


def normalized(x, w, s, *, training):
    y = tf.nn.conv2d(x, w, 1, "SAME")
    mean = {} if training else {"mean": s, "variance": s}
    return tf.nn.relu(tf.compat.v1.nn.fused_batch_norm(y, s, s, is_training=training, **mean)[0])


def trained(x, w, s):
    return normalized(x, w, s, training=True)


def inferred(x, w, s):
    return normalized(x, w, s, training=False)


def doubles(specs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(spec(*s.shape, dtype=tf.float64) for s in specs)


IMAGES = (spec(2, 8, 8, 3), spec(3, 3, 3, 4), spec(4))
BATCHES = (spec(2, 8, 16), spec(2, 16, 32), spec(32))

EITHER: dict[str, Any] = {
    "the product is used elsewhere": (
        Blocker.USED_ELSEWHERE,
        (product_used_twice, MATRICES),
        (dense, MATRICES),
    ),
    "the sum is used elsewhere": (
        Blocker.USED_ELSEWHERE,
        (sum_used_twice, MATRICES),
        (dense, MATRICES),
    ),
    "the type": (Blocker.DTYPE, (dense, doubles(MATRICES)), (dense, MATRICES)),
    "the rank": (Blocker.RANK, (dense, BATCHES), (dense, MATRICES)),
    "no bias": (Blocker.NO_BIAS, (no_bias, MATRICES[:2]), (dense, MATRICES)),
    "training": (Blocker.TRAINING, (trained, IMAGES), (inferred, IMAGES)),
}
ONEDNN: dict[str, Any] = {
    "an unknown bias": (
        Blocker.UNKNOWN_SHAPE,
        (plus, (*MATRICES[:2], spec(None))),
        (plus, MATRICES),
    ),
}
NO_ONEDNN: dict[str, Any] = {
    "plus": (Blocker.PLUS, (plus, MATRICES), (dense, MATRICES)),
    "channels first": (
        Blocker.DATA_FORMAT,
        (channels_first, (spec(2, 3, 8, 8), *IMAGES[1:])),
        (convolution, IMAGES),
    ),
    "depthwise": (
        Blocker.ONEDNN,
        (depthwise, (IMAGES[0], spec(3, 3, 3, 1), spec(3))),
        (convolution, IMAGES),
    ),
}


class TestBlocked:
    """Why a chain was not fused: with only this changed, it is."""

    @pytest.mark.parametrize(
        ("blocker", "without", "with_it", "onednn"),
        [
            pytest.param(*case, onednn, id=name)
            for onednn, cases in ((None, EITHER), (True, ONEDNN), (False, NO_ONEDNN))
            for name, case in cases.items()
        ],
    )
    def test_blocker(self, blocker, without, with_it, onednn):
        """The blocker that is named is the one: changing it alone gives one kernel."""
        if onednn is not None and onednn is not with_onednn():
            pytest.skip(f"about oneDNN {'on' if onednn else 'off'}")
        function, specs = without
        assert [chain.blocker for chain in explained(function, *specs).blocked()] == [blocker]
        function, specs = with_it
        found = explained(function, *specs)
        assert found.blocked() == ()
        assert found.how(How.FUSED)

    def test_the_optimizer_is_off(self):
        """Switched off by the program; switched on again it fuses."""
        before = tf.config.optimizer.get_experimental_options()
        tf.config.optimizer.set_experimental_options({**before, "remapping": False})
        try:
            found = explained(dense, *MATRICES)
        finally:
            tf.config.optimizer.set_experimental_options({"remapping": True, **before})
        assert [chain.blocker for chain in found.blocked()] == [Blocker.OPTIMIZER_OFF]
        assert explained(dense, *MATRICES).blocked() == ()
