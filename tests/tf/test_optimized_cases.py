"""What a report says of real functions after optimization: every fact that can be checked by hand.

The functions are such as people ask about: where did my op go, why was my layer not fused, what
is this node that I never wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import networkx as nx
import pytest

import graph2mermaid
from graph2mermaid import Capture, Graph, Stage
from graph2mermaid.optimization import Way
from graph2mermaid.provenance import Fate, How, Optimization
from tests.tf import gallery
from tests.tf.reading import op_types, with_onednn

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tf

OLD = tf.__version__.startswith("2.9.")


@dataclass(frozen=True)
class Found:
    """A function after optimization, and its report."""

    capture: Capture
    text: str

    @property
    def optimization(self) -> Optimization:
        assert self.capture.optimization is not None
        return self.capture.optimization

    @property
    def after(self) -> Graph:
        return self.capture.graphs[Stage.GRAPPLER]

    @property
    def executed(self) -> Graph:
        return self.capture.graphs[Stage.RUNTIME]

    @property
    def types(self) -> Counter[str]:
        return op_types(self.after)

    def fates(self, op: str) -> Counter[str]:
        """Count what became of the traced ops of a type."""
        ops = self.optimization.provenance.ops.values()
        return Counter(found.fate.value for found in ops if found.op == op)

    def how(self, how: How) -> dict[str, str]:
        """Return the ops that came about in a way, and their types."""
        nodes = self.optimization.provenance.nodes.values()
        return {node.name: node.op for node in nodes if node.how is how}

    def row(self, first: str) -> str:
        """Return the row of a table that begins with this cell."""
        return next(line for line in self.text.splitlines() if line.startswith(f"| {first} |"))


def optimized(function: Callable[..., Any], *args: Any, run: bool = True) -> Found:
    capture = graph2mermaid.optimize(function, *args, run=run)
    assert capture.optimization is not None, capture.notes
    provenance = capture.optimization.provenance
    assert sum(provenance.node_counts.values()) == len(provenance.nodes)
    assert sum(provenance.op_counts.values()) == len(provenance.ops)
    assert provenance.explained == 1
    assert capture.optimization.differences == ()
    assert capture.optimization.way is (Way.RUN if run else Way.OFFLINE)
    return Found(capture, capture.report(["grappler", "runtime"]).to_markdown())


def ones(*shape: int) -> Any:
    return tf.ones(shape)


class TestControlFlow:
    """What was lowered is drawn as what the user wrote."""

    def test_a_branch(self):
        """The If is gone, its ops stand in two frames, and a merge joins them."""

        def choose(flag, x, y):
            if flag:
                return tf.matmul(x, y) + 1.0
            return x - y

        found = optimized(choose, tf.constant(True), ones(4, 4), ones(4, 4))
        assert (found.types["Switch"], found.types["Merge"]) == (3, 1)
        assert not {"If", "StatelessIf"} & set(found.types)
        assert nx.is_directed_acyclic_graph(found.after.dag)
        assert found.after.back_edges == ()
        assert 'subgraph s0["else · ' in found.text
        assert 'subgraph s1["then · ' in found.text
        assert '("merge")' in found.text

    def test_an_early_return(self):
        """The flag that AutoGraph adds is needed by nothing, and neither are its constants."""

        def step(x):
            if tf.reduce_sum(x) > 0.0:
                return x + 1.0
            return x - 1.0

        found = optimized(step, ones(2))
        assert found.types["Merge"] == 1
        assert found.fates("Const")["dead"] == 4
        assert "nothing needs it" in found.text

    def test_a_loop_with_a_branch(self):
        """Every cycle goes through a NextIteration, and the drawing shows a while around an if."""

        def loop(x):
            i = tf.constant(0)
            while i < 3:
                x = tf.matmul(x, x) if tf.reduce_sum(x) > 0.0 else x - 1.0
                i += 1
            return x

        found = optimized(loop, ones(2, 2))
        counts = {"Enter": 3, "NextIteration": 3, "LoopCond": 1, "Exit": 1, "Merge": 4, "Switch": 5}
        assert {op: found.types[op] for op in counts} == counts
        assert not {"While", "StatelessWhile"} & set(found.types)
        assert {found.after[a.source].op for a in found.after.back_edges} == {"NextIteration"}
        assert "body of while · " in found.text
        assert "condition of while · " in found.text
        assert "next iteration" in found.text

    def test_a_loop_over_a_range(self):
        """The arithmetic that counts the iterations is dead; a Pack of one became ExpandDims."""

        def double_rows(x):
            rows = tf.TensorArray(tf.float32, size=3)
            for i in tf.range(3):
                rows = rows.write(i, x[i] * 2.0)
            return rows.stack()

        found = optimized(double_rows, ones(3, 2))
        gone = ("Sub", "FloorDiv", "FloorMod", "NotEqual", "Cast", "Maximum")
        assert {op: found.fates(op) for op in gone} == {op: {"dead": 1} for op in gone}
        assert found.types["TensorListSetItem"] == 1
        changed = found.how(How.CHANGED)
        assert {op for op in changed.values() if op == "ExpandDims"}
        assert "was Pack" in found.text

    def test_many_branches(self):
        """A switch over an index has a frame for each branch."""

        def pick(index, x):
            branches = [lambda: x + 1.0, lambda: tf.matmul(x, x), lambda: tf.nn.relu(x)]
            return tf.switch_case(index, branches, default=lambda: tf.zeros_like(x))

        found = optimized(pick, tf.constant(1), ones(2, 2))
        assert (found.types["_SwitchN"], found.types["Merge"]) == (2, 1)
        assert "branch 0 · " in found.text
        assert "branch 3 or other · " in found.text

    def test_a_map_is_a_loop_and_a_vectorized_map_is_none(self):
        """What runs shows the difference."""

        def row(r):
            return tf.reduce_sum(r) * 2.0

        mapped = optimized(lambda x: tf.map_fn(row, x), ones(3, 2))
        vectorized = optimized(lambda x: tf.vectorized_map(row, x), ones(3, 2))
        assert mapped.types["LoopCond"] == 1
        assert "LoopCond" not in vectorized.types
        assert vectorized.fates("PlaceholderWithDefault") == {"dead": 1}

    def test_a_dataset_keeps_its_functions(self):
        """Functions that other ops call are not put in place, and drawn on their own."""

        @tf.function
        def total(numbers):
            result = tf.constant(0, tf.int64)
            for number in numbers:
                result += number
            return result

        found = optimized(total, tf.data.Dataset.range(3))
        assert {"ScanDataset", "ReduceDataset"} <= set(found.types)
        assert "LoopCond" not in found.types
        assert "reduce_reduce_body" in found.text

    def test_a_predicate_that_is_known(self):
        """One branch is left, and the other is told from what nothing needs."""

        def known(x):
            return tf.cond(tf.constant(2) > 1, lambda: tf.matmul(x, x), lambda: x - 1.0)

        found = optimized(known, ones(2, 2))
        assert not {"Switch", "Merge", "If", "StatelessIf", "Sub"} & set(found.types)
        assert found.fates("Sub") == {"untaken": 1}
        assert "in a branch that is never taken" in found.text


class TestCalls:
    """Functions that call functions."""

    def test_one_function_called_twice(self):
        """Both calls are put in place; the second reads the constant of the first."""

        @tf.function
        def inner(a, b):
            return tf.nn.relu(tf.matmul(a, b) + 1.0)

        found = optimized(lambda x: inner(x, x) + inner(x, 2.0 * x), ones(2, 2))
        assert not {op for op in found.types if "PartitionedCall" in op}
        assert {"PartitionedCall/MatMul", "PartitionedCall_1/MatMul"} <= set(found.after.dag)
        readers = {arrow.target for arrow in found.after.outgoing("PartitionedCall/add/y")}
        assert readers == {"PartitionedCall/add", "PartitionedCall_1/add"}
        assert "`Const` × 2" in found.row("`PartitionedCall/add/y`")

    def test_a_signature(self, tmp_path):
        """A loaded signature shows its real ops; a NoOp has the name of the call."""
        module = tf.Module()
        module.w = tf.Variable(tf.ones([4, 3]), name="w")

        @tf.function(input_signature=[tf.TensorSpec([None, 4], name="features")])
        def serve(x):
            return {"scores": tf.nn.softmax(tf.matmul(x, module.w))}

        module.serve = serve
        tf.saved_model.save(module, str(tmp_path), signatures={"serving_default": serve})
        loaded = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
        found = optimized(loaded, run=False)
        assert {"MatMul", "Softmax"} <= set(found.types)
        assert found.after["StatefulPartitionedCall"].op == "NoOp"
        assert found.row("`StatefulPartitionedCall`").count("`NoOp`") == 1
        assert found.optimization.provenance.credited == 1

    def test_a_call_that_xla_compiles(self):
        """The call stays as it is, and its body is drawn below."""

        @tf.function(jit_compile=True)
        def fast(x):
            return tf.nn.relu(tf.matmul(x, x)) + 1.0

        found = optimized(lambda x: fast(x) * 2.0, ones(4, 4))
        assert found.types["PartitionedCall"] + found.types["StatefulPartitionedCall"] == 1
        assert "calls fast" in found.text

    def test_a_function_that_xla_compiles(self):
        """There is no graph of ops to show; the reason is one note."""

        @tf.function(jit_compile=True)
        def fast(x):
            return tf.nn.relu(x) + 1.0

        capture = graph2mermaid.optimize(fast, ones(4), run=True)
        assert capture.optimization is None
        (note,) = capture.notes
        assert note.startswith("Grappler view: XLA compiles it as a whole")


class TestSideEffects:
    """Ops that are there for what they do."""

    def test_nothing_with_an_effect_is_lost(self):
        """A print, an assertion and an assignment stay, and the share of credit is whole."""
        counter = tf.Variable(1.0, name="counter")

        def step(x):
            before = counter.read_value()
            counter.assign_add(x)
            tf.print("counted", output_stream="file:///dev/null")
            tf.debugging.assert_greater(x, 0.0)
            return before, counter * 1.0

        found = optimized(step, tf.constant(2.0))
        assert {"PrintV2", "Assert", "AssignAddVariableOp"} <= set(found.types)
        assert found.optimization.provenance.credited >= 0.9
        assert counter.numpy() == 1.0

    def test_python_inside(self):
        """A Python function without effects whose result nobody reads does not run."""
        import numpy as np

        def mixed(x):
            a = tf.py_function(lambda t: t.numpy() + 1.0, [x], tf.float32)
            b = tf.numpy_function(np.sin, [x], tf.float32)
            if not OLD:
                tf.numpy_function(np.cos, [x], tf.float32, stateful=False)
            return a + b

        found = optimized(mixed, ones(3))
        assert {"EagerPyFunc", "PyFunc"} <= set(found.types)
        assert "PyFuncStateless" not in found.types
        if not OLD:
            assert found.fates("PyFuncStateless") == {"dead": 1}

    def test_a_training_step(self):
        """Assignments stay; the factor of the gradient is one constant, never traced as such."""
        w, b = tf.Variable(tf.ones([4, 3])), tf.Variable(tf.zeros([3]))

        def train_step(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
            gw, gb = tape.gradient(loss, [w, b])
            w.assign_sub(0.1 * gw)
            b.assign_sub(0.1 * gb)
            return loss

        found = optimized(train_step, ones(8, 4), tf.zeros([8, 3]))
        assert found.types["AssignSubVariableOp"] == 2
        (constant,) = found.how(How.FOLDED)
        assert found.after[constant].op == "Const"
        assert found.capture.traced[constant].op == "Mul"
        assert "float32\\[8,3\\], 96 bytes" in found.row(f"`{constant}`")
        kernels = list(found.how(How.FUSED).values())
        assert kernels == (["_FusedMatMul"] if with_onednn() else [])
        assert tf.reduce_sum(w).numpy() == 12


class TestRemoved:
    """Ops that are gone."""

    def test_what_nothing_needs(self):
        """Unused results go, random ones too, and an argument that nothing reads."""

        def wasteful(x, unused):
            tf.exp(x)
            tf.random.normal([2])
            return x + 1.0

        found = optimized(wasteful, ones(2, 2), ones(3))
        assert len(found.after) == 3
        assert found.fates("RandomStandardNormal") == {"dead": 1}
        assert found.fates("Placeholder") == {"kept": 1, "dead": 1}
        assert "`unused`" in found.text

    def test_a_custom_gradient(self):
        """IdentityN is there for the gradient, and changes nothing."""

        @tf.custom_gradient
        def clipped(x):
            return tf.tanh(x), lambda dy: dy

        found = optimized(lambda x: clipped(x) * 2.0, ones(3))
        assert "IdentityN" not in found.types
        assert found.fates("IdentityN") == {"redundant": 1}

    def test_a_sigmoid_that_changes_the_answer(self):
        """Taking it out is allowed only if nobody minds ties: that is a warning."""
        found = optimized(lambda x: tf.argmax(tf.sigmoid(x), axis=1), ones(1, 2))
        assert "Sigmoid" not in found.types
        assert found.fates("Sigmoid") == {"bypassed": 1}
        assert "> **Warning:** Sigmoid was taken out between `x` and `ArgMax`" in found.text

    def test_a_pair_that_cancels(self):
        """Two transposes go with their constants, and no warning is given."""
        found = optimized(lambda x: tf.nn.relu(tf.transpose(tf.transpose(x))), ones(2, 3))
        assert len(found.after) == 2
        assert found.fates("Transpose") == {"redundant": 2}
        assert "**Warning:**" not in found.text

    def test_strings_and_tables(self):
        """What only checked ragged rows goes; the table's handle is a capture."""
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["cat", "dog"], [1, 2]), -1
        )

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def tokens(s):
            words = tf.strings.split(tf.strings.lower(s), " ")
            return table.lookup(words.to_tensor("<pad>"))

        found = optimized(tokens, tf.constant(["dog cat", "x"]))
        assert found.types["LookupTableFindV2"] == 1
        assert found.fates("Cumsum") == {"dead": 1}
        assert "LookupTableFindV2/table_handle" in found.text

    def test_composite_arguments(self):
        """Row splits that are handed through go from the argument straight to the result."""

        def scale(rt, sp):
            return rt * 2.0, tf.sparse.sparse_dense_matmul(sp, tf.ones([4, 2]))

        rt = tf.ragged.constant([[1.0, 2.0], [3.0]])
        sp = tf.sparse.SparseTensor([[0, 0], [1, 2]], [1.0, 2.0], [3, 4])
        found = optimized(scale, rt, sp)
        assert found.types["Placeholder"] == 5
        assert found.fates("Identity") == {"redundant": 3}
        assert "row_splits" in found.text


class TestSmall:
    """Functions of almost nothing."""

    def test_no_ops(self):
        """There is nothing to draw, to replay or to execute, and the report says so."""
        capture = graph2mermaid.optimize(tf.function(lambda: None), run=True)
        text = capture.report(["grappler", "runtime"]).to_markdown()
        assert "0 ops became 0" in text
        assert "there is nothing to draw" in text
        assert "there is no op to execute" in text
        assert capture.optimization is not None
        assert capture.optimization.notes == ()

    def test_too_few_ops_to_be_optimized(self):
        """An argument that is returned keeps its Identity."""
        found = optimized(lambda x: x, ones(2))
        assert found.types == {"Placeholder": 1, "Identity": 1}

    def test_one_argument_returned_twice(self):
        """One op, two results."""
        found = optimized(lambda x: (x, x), ones(2))
        assert found.types == {"Placeholder": 1}
        assert len(found.after.outputs) == 2

    def test_a_constant(self):
        """The op that has the name of a product is a constant, and its value is told."""
        found = optimized(lambda: tf.constant(2.0) * 3.0)
        assert found.types == {"Const": 1}
        assert "= 6.0, 4 bytes" in found.row("`mul`")


class TestFolding:
    """Constants that were computed."""

    def test_shapes(self):
        """With a known size the shape arithmetic is one constant; with an unknown one it stays."""

        def flatten(x):
            return tf.reshape(x, tf.stack([tf.shape(x)[0], -1])) * 2.0

        static = optimized(flatten, tf.TensorSpec([2, 3, 4]))
        assert "= \\[2, -1\\], 8 bytes" in static.row("`stack`")
        assert not {"Shape", "StridedSlice", "Pack"} & set(static.types)
        dynamic = optimized(flatten, tf.TensorSpec([None, 3, 4]))
        assert {"Shape", "StridedSlice", "Pack"} <= set(dynamic.types)
        assert dynamic.fates("Const")["merged"] == 1

    def test_a_constant_that_grew(self):
        """A few bytes become megabytes: the size is told, and the value is not printed."""
        found = optimized(lambda x: x[0, 0] + tf.ones([3000, 1000]) * 3.0, ones(2, 2))
        assert "float32\\[3000,1000\\], 12,000,000 bytes" in found.row("`mul`")
        assert len(found.text) < 20_000

    def test_equal_constants_of_an_unrolled_loop(self):
        """240 constants become 2, and the pictures stay small."""

        def deep(x):
            for _ in range(120):
                x = tf.tanh(x * 0.5 + 0.1)
            return x

        found = optimized(deep, ones(4))
        assert (found.types["Const"], found.types["Tanh"]) == (2, 120)
        assert found.fates("Const") == {"kept": 2, "merged": 238}
        assert "| 2 | `Const` | merged | `Const` × 240 |" in found.text
        assert all(len(f.text) < 45_000 for f in found.capture.report(["grappler"]).figures())


def dense(x, w, b):
    product = tf.matmul(x, w)
    return product, tf.nn.bias_add(product, b)


MATRICES = ((8, 16), (16, 32), (32,))


class TestFusing:
    """One kernel of several ops, or not."""

    def run(self, function: Callable[..., Any], *shapes: tuple[int, ...], dtype=None) -> Found:
        arguments = [tf.ones(shape, dtype or tf.float32) for shape in shapes or MATRICES]
        return optimized(function, *arguments)

    def test_a_dense_layer(self):
        """The kernel has the last op's name, says what it took in, and oneDNN renames it."""
        found = self.run(lambda x, w, b: tf.nn.relu(dense(x, w, b)[1]))
        (name,) = found.how(How.FUSED)
        assert name == "Relu"
        assert "`MatMul`, `BiasAdd`, `Relu`" in found.row("`Relu`")
        assert not {"MatMul", "BiasAdd"} & set(found.after.dag)
        kernel = "_MklNativeFusedMatMul" if with_onednn() else "_FusedMatMul"
        assert found.executed["Relu"].op == kernel
        assert "remapper | MatMul + BiasAdd + Relu into \\_FusedMatMul" in found.text

    def test_a_bias_that_is_added_with_plus(self):
        """Only oneDNN fuses it; without it the report says so."""
        found = self.run(lambda x, w, b: tf.nn.relu(tf.matmul(x, w) + b))
        if with_onednn():
            assert list(found.how(How.FUSED).values()) == ["_FusedMatMul"]
        else:
            assert {"MatMul", "AddV2", "Relu"} <= set(found.types)
            assert "only oneDNN fuses that" in found.text

    def test_a_product_that_is_used_twice(self):
        """Nothing is fused, and the report names what is read elsewhere."""

        def function(x, w, b):
            product, y = dense(x, w, b)
            return tf.nn.relu(y), product

        found = self.run(function)
        assert {"MatMul", "BiasAdd", "Relu"} <= set(found.types)
        assert "something else reads the result of `MatMul`" in found.text

    def test_a_sum_that_is_used_twice(self):
        """The product and the bias are fused, the activation is not."""

        def function(x, w, b):
            y = dense(x, w, b)[1]
            return tf.nn.relu(y), y

        found = self.run(function)
        assert found.how(How.FUSED) == {"BiasAdd": "_FusedMatMul"}
        assert found.types["Relu"] == 1
        assert "something else reads the result of `BiasAdd`" in found.text

    def test_an_activation_without_a_kernel(self):
        """The product and the bias are fused."""
        found = self.run(lambda x, w, b: tf.nn.softplus(dense(x, w, b)[1]))
        assert found.how(How.FUSED) == {"BiasAdd": "_FusedMatMul"}
        assert found.types["Softplus"] == 1

    def test_swish(self):
        """oneDNN has a kernel for it, which took in three ops."""
        if OLD:
            pytest.skip("TensorFlow 2.9 has no kernel for it")
        found = self.run(lambda x, w, b: tf.nn.swish(dense(x, w, b)[1]))
        fused = set(found.how(How.FUSED).values())
        assert fused == ({"_FusedMatMul", "_MklSwish"} if with_onednn() else {"_FusedMatMul"})
        if with_onednn():
            assert found.fates("Sigmoid") == {"fused": 1}

    @pytest.mark.parametrize(
        ("shapes", "dtype", "types", "why"),
        [
            (MATRICES, "float64", {"MatMul"}, "no fused kernel for its type"),
            (((2, 8, 16), (16, 32), (32,)), None, {"BatchMatMulV2"}, "rank above 2"),
        ],
        ids=["float64", "batches"],
    )
    def test_what_has_no_kernel(self, shapes, dtype, types, why):
        """The ops stay, and the report says why."""
        function = lambda x, w, b: tf.nn.relu(tf.matmul(x, w) + b)  # noqa: E731
        found = self.run(function, *shapes, dtype=dtype)
        assert types | {"AddV2", "Relu"} <= set(found.types)
        assert why in found.text

    def test_no_bias(self):
        """An activation alone is not fused."""
        found = self.run(lambda x, w: tf.nn.relu(tf.matmul(x, w)), *MATRICES[:2])
        assert {"MatMul", "Relu"} <= set(found.types)
        assert "an activation alone is not fused" in found.text

    def test_a_keras_model(self):
        """Each layer is a kernel, called as the model's traced scopes."""
        keras = gallery.keras_3() if not OLD else gallery.keras_of_tensorflow()
        layers = [
            keras.Input((4,), name="features"),
            keras.layers.Dense(3, activation="relu", name="hidden"),
            keras.layers.Dense(2, name="logits"),
        ]
        found = optimized(keras.Sequential(layers, name="mlp"), ones(5, 4))
        assert sorted(name.rpartition("/")[2] for name in found.how(How.FUSED)) == [
            "BiasAdd",
            "Relu",
        ]

    def test_a_normalization_that_keras_took_apart(self):
        """Nothing is fused; the averages are assigned in training only."""
        keras = gallery.keras_3()
        layer = keras.layers.BatchNormalization()
        layer.build((None, 4, 4, 3))
        train = optimized(lambda x: layer(x, training=True), ones(2, 4, 4, 3))
        infer = optimized(lambda x: layer(x, training=False), ones(2, 4, 4, 3))
        assert train.types["AssignVariableOp"] == 2
        assert {"Rsqrt", "SquaredDifference"} <= set(train.types)
        assert {"Rsqrt", "Mul", "Sub", "AddV2"} <= set(infer.types)
        assert infer.types["AssignVariableOp"] == 0

    def test_channels_first(self):
        """No layout is changed on a CPU; only oneDNN can run it, and a failed run is told."""

        def conv(x, k):
            return tf.nn.conv2d(x, k, 1, "SAME", data_format="NCHW")

        runs = with_onednn()
        capture = graph2mermaid.optimize(conv, ones(1, 3, 8, 8), ones(3, 3, 3, 4), run=True)
        assert op_types(capture.graphs[Stage.GRAPPLER]) == {"Placeholder": 2, "Conv2D": 1}
        assert capture.optimization is not None
        assert capture.optimization.way is (Way.RUN if runs else Way.OFFLINE)
        if runs:
            assert op_types(capture.graphs[Stage.RUNTIME])["_MklNativeConv2D"] == 1
        else:
            text = capture.report(["grappler"]).to_markdown()
            assert "only supports the NHWC tensor format on the CPU" in text


class TestAdded:
    """Ops that nobody wrote."""

    def test_a_chain_of_sums(self):
        """Three additions are one AddN."""
        found = optimized(lambda a, b, c, d: a + b + c + d, *[ones(2, 2)] * 4)
        (name,) = found.how(How.ADDED)
        assert found.after[name].op == "AddN"
        assert found.fates("AddV2") == {"replaced": 3}
        assert "added: ArithmeticOptimizer" in found.text

    def test_a_sum_of_one_thing(self):
        """x + x + x is x times a constant, which waits for x; its value is in the picture."""
        found = optimized(lambda x: x + x + x, ones(2, 2))
        assert sorted(found.how(How.ADDED).values()) == ["Const", "Mul"]
        assert "3.0<br/>added: ArithmeticOptimizer" in found.text

    def test_a_sum_of_equal_ops(self):
        """The op is computed once."""
        found = optimized(lambda x: tf.exp(x) + tf.exp(x), ones(2, 2))
        assert found.types["Exp"] == 1
        assert found.fates("Exp") == {"kept": 1, "merged": 1}
        assert sorted(found.how(How.ADDED).values()) == ["Const", "Mul"]

    def test_a_square(self):
        """A product of a tensor with itself has one input now, and its readers keep theirs."""

        def repeat_use(x):
            y = x * x
            z = tf.matmul(y, y)
            return tf.concat([z, z, z], axis=0)

        found = optimized(repeat_use, ones(2, 2))
        assert list(found.how(How.ADDED).values()) == ["Square"]
        (square,) = found.how(How.ADDED)
        assert len(found.after.incoming(square)) == 1
        assert len(found.after.outgoing(square)) == 2


class TestOptions:
    """Optimizers that the program switched on or off."""

    @pytest.fixture(autouse=True)
    def _own_options(self):
        before = tf.config.optimizer.get_experimental_options()
        yield
        usual = {
            "remapping": True,
            "disable_meta_optimizer": False,
            "min_graph_nodes": 0,
            "auto_mixed_precision_onednn_bfloat16": False,
        }
        changed = tf.config.optimizer.get_experimental_options()
        reset = {key: value for key, value in usual.items() if key in changed}
        tf.config.optimizer.set_experimental_options({**reset, **before})

    @staticmethod
    def layer(x, w, b):
        y = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))
        return y + tf.reduce_sum(tf.ones([3]) * 2.0)

    def test_no_remapper(self):
        """Folding goes on, fusing does not, and the report gives the reason."""
        tf.config.optimizer.set_experimental_options({"remapping": False})
        found = optimized(self.layer, ones(4, 4), ones(4, 4), ones(4))
        assert {"MatMul", "BiasAdd", "Relu"} <= set(found.types)
        assert "= 6.0" in found.text
        assert "The program sets optimizer options: remapping=OFF" in found.text
        assert "the remapper is switched off" in found.text

    @pytest.mark.parametrize(
        "options", [{"disable_meta_optimizer": True}, {"min_graph_nodes": 100}]
    )
    def test_no_optimizer_at_all(self, options):
        """The graph is as traced, and the report gives the option."""
        tf.config.optimizer.set_experimental_options(options)
        found = optimized(self.layer, ones(4, 4), ones(4, 4), ones(4))
        before = op_types(found.capture.traced)
        assert found.types == before
        assert f"The program sets optimizer options: {next(iter(options))}=" in found.text

    def test_mixed_precision(self):
        """Casts that oneDNN's pass adds have awkward names, and are added ops."""
        if OLD or not with_onednn():
            pytest.skip("about oneDNN in later versions")
        options = {"auto_mixed_precision_onednn_bfloat16": True}
        tf.config.optimizer.set_experimental_options(options)
        found = optimized(
            lambda x, w, b: tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b)) + 1.0,
            *(ones(64, 64), ones(64, 64), ones(64)),
        )
        if "Cast" not in found.types:
            pytest.skip("this processor has no fast bfloat16")
        assert list(found.how(How.ADDED).values()) == ["Cast"] * 4
        assert "`x-0-CastToBf16-0-AutoMixedPrecision`" in found.text


class TestRecording:
    """Whether the function ran before, or how calls are run, does not matter."""

    def test_a_function_that_ran(self):
        """What was instantiated before is recorded as well."""

        @tf.function
        def used(x):
            return tf.nn.relu(x) * 2.0 + 1.0

        used(ones(2))
        found = optimized(used, ones(2))
        assert found.types == {"Placeholder": 1, "Const": 2, "Relu": 1, "Mul": 1, "AddV2": 1}

    def test_functions_that_run_eagerly(self):
        """The switch is left as it was, and the graph is there."""
        tf.config.run_functions_eagerly(True)
        try:
            found = optimized(tf.function(lambda x: (x + 1.0) * 2.0), ones(2))
            assert tf.config.functions_run_eagerly()
        finally:
            tf.config.run_functions_eagerly(False)
        assert {"AddV2", "Mul"} <= set(found.types)

    def test_two_traces_of_one_function(self):
        """No counter of the process is in a report."""

        @tf.function
        def inner(a):
            return tf.nn.relu(a @ a)

        def loop(x):
            for _ in tf.range(3):
                x = inner(x)
            return tf.reduce_sum(x)

        first, second = (optimized(loop, ones(2, 2)) for _ in range(2))
        assert first.text == second.text
        assert "__inference" not in first.text
        assert Fate.UNEXPLAINED not in first.optimization.provenance.op_counts
