"""Fresh traces, captures of targets, and what a failing trace says."""

from __future__ import annotations

import functools
import os
import random
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from graph2mermaid.errors import SignatureError
from graph2mermaid.sources.environment import environment
from tests.sources.traced import arguments, traced

pytestmark = pytest.mark.tf

PACKAGE_ROOT = Path(__file__).parents[2] / "src"


def op_types(found) -> Counter[str]:
    return Counter(op.type for op in found.concrete.graph.get_operations())


def constants(found) -> list[float]:
    ops = found.concrete.graph.get_operations()
    return [float(tf.make_ndarray(op.get_attr("value"))) for op in ops if op.type == "Const"]


# What was asked for is traced afresh


def test_a_relaxed_trace_is_not_reused():
    """An earlier, more general trace does not stand in for the shape that was asked for."""
    double = tf.function(lambda x: x * 2.0)
    double.get_concrete_function(tf.TensorSpec([None]))
    found = traced(double, "x=f32[2]")
    assert arguments(found) == {"x": "float32[2]"}
    assert found.notes == ("other existing traces, not shown here: (x: float32[?])",)


def test_reduced_retracing_does_not_relax():
    """A function that generalizes its traces is traced with exactly what was asked for."""
    f = tf.function(lambda x: x * 2.0, reduce_retracing=True)
    for n in (1, 2, 3):
        f(tf.ones([n]))
    assert arguments(traced(f, "x=f32[7]")) == {"x": "float32[7]"}


class Scaler(tf.Module):
    """Reads an attribute at trace time, and makes a variable on its first call."""

    def __init__(self, k: float):
        super().__init__()
        self.k = k
        self.offset: Any = None

    @tf.function
    def forward(self, x):
        return x * self.k

    @tf.function
    def __call__(self, x):
        if self.offset is None:
            self.offset = tf.Variable(tf.random.normal([3]), name="offset")
        return x + self.offset

    def plain(self, x):
        return x - self.k


STALE = (
    "calls with these arguments still use an older trace, whose graph is another one: what the"
    " function reads has changed since"
)


def test_a_stale_trace_is_not_reused():
    """After an attribute has changed, the graph has its new value, and a note tells of the old."""
    a = Scaler(2.0)
    a.forward(tf.ones([2]))
    assert (constants(traced(a.forward, "x=f32[2]")), traced(a.forward).notes) == (
        [2.0],
        ("x: float32[2] as in its first existing trace",),
    )
    a.k = 10.0
    found = traced(a.forward, "x=f32[2]")
    assert (constants(found), found.notes) == ([10.0], (STALE,))


def test_every_object_has_its_own_trace():
    """Methods of two objects of a class are traced with what each of them holds."""
    a, b = Scaler(2.0), Scaler(3.0)
    assert constants(traced(a.forward, "x=f32[2]")) == [2.0]
    assert constants(traced(b.forward, "x=f32[2]")) == [3.0]


def test_a_method_of_a_lost_object():
    """A tf.function holds its object weakly; what to do is said."""
    with pytest.raises(SignatureError) as caught:
        traced(Scaler(2.0).forward, "x=f32[2]")
    assert str(caught.value) == "the object of the method m.py:f is gone; keep it in a variable"


def test_variables_made_on_the_first_call():
    """The variable is made, and is a capture of the graph; its initial value is no part of it."""
    a = Scaler(2.0)
    found = traced(a.__call__, "x=f32[3]")
    assert op_types(found)["ReadVariableOp"] == 1
    assert not {"RandomStandardNormal", "VarHandleOp"} & set(op_types(found))
    assert a.offset is not None


@pytest.mark.parametrize("through", ["object", "method"])
def test_variables_that_exist_already(through: str):
    """A variable that an earlier call made is captured as it is, and keeps its value."""
    a = Scaler(2.0)
    a(tf.zeros([3]))
    variable, value = a.offset, a.offset.numpy().tolist()
    found = traced(a if through == "object" else a.__call__, "x=f32[2,3]")
    assert found.concrete.captured_inputs[0] is variable.handle
    assert a.offset is variable
    assert variable.numpy().tolist() == value


def test_the_users_function_is_left_alone():
    """Tracing adds no trace to the user's tf.function, nor makes the one it declares."""
    f = tf.function(lambda x: x * 2.0)
    f(tf.ones([2]))
    declared = tf.function(lambda x: x * 2.0, input_signature=[tf.TensorSpec([None])])
    for function in (f, declared):
        before = function.experimental_get_tracing_count()
        traced(function)
        traced(function, "x=f32[5]")
        assert function.experimental_get_tracing_count() == before


def test_assignments_do_not_run():
    """A function that changes a variable is traced, and the variable keeps its value."""
    variable = tf.Variable(1.0)

    @tf.function
    def step(x):
        variable.assign_add(x)
        return variable * 2.0

    assert "AssignAddVariableOp" in op_types(traced(step, "x=f32[]"))
    assert variable.numpy() == 1.0


def test_random_numbers_go_on_as_before():
    """What a trace draws (initial values of variables) is not taken from the program's numbers."""
    import numpy as np

    def draw() -> list[float]:
        drawn = [random.random(), float(np.random.rand())]
        return [*drawn, float(tf.random.normal([])), float(tf.random.normal([]))]

    def seed() -> None:
        random.seed(7)
        np.random.seed(7)
        tf.random.set_seed(7)

    class Noisy(tf.Module):
        v: Any = None

        @tf.function
        def __call__(self, x):
            if self.v is None:
                start = random.random() + np.random.rand()
                self.v = tf.Variable(tf.random.normal([3]) + start)
            return x + self.v

    seed()
    expected = draw()
    seed()
    traced(noisy := Noisy(), "x=f32[3]")
    assert draw() == expected
    assert noisy.v is not None


# Anything that can be called


def plain(x):
    return x * 2.0


class Callable_:
    def __call__(self, x):
        return x - 1.0

    @classmethod
    def of_class(cls, x):
        return x + 2.0

    @staticmethod
    def static(x):
        return x + 3.0


@pytest.mark.parametrize(
    ("function", "ops"),
    [
        (plain, ["Placeholder", "Const", "Mul", "Identity"]),
        (lambda x: -x, ["Placeholder", "Neg", "Identity"]),
        (Scaler(2.0).plain, ["Placeholder", "Const", "Sub", "Identity"]),
        (Callable_(), ["Placeholder", "Const", "Sub", "Identity"]),
        (Callable_.of_class, ["Placeholder", "Const", "AddV2", "Identity"]),
        (Callable_.static, ["Placeholder", "Const", "AddV2", "Identity"]),
        (
            functools.partial(tf.function(lambda x, k: x * k), k=2.0),
            ["Placeholder", "Const", "Mul", "Identity"],
        ),
        (
            functools.partial(functools.partial(lambda k, x: x * k, 2.0)),
            ["Placeholder", "Const", "Mul", "Identity"],
        ),
        (tf.nn.relu, ["Placeholder", "Relu", "Identity"]),
    ],
    ids=[
        "function",
        "lambda",
        "method",
        "object",
        "class method",
        "static method",
        "partial of a tf.function",
        "partial of a partial",
        "TensorFlow function",
    ],
)
def test_callables(function: Callable[..., object], ops: list[str]):
    """Whatever can be called is traced as itself, without a call around it."""
    name = "features" if function is tf.nn.relu else "x"
    found = traced(function, f"{name}=f32[2]")
    assert [op.type for op in found.concrete.graph.get_operations()] == ops


def test_a_concrete_function_is_shown_as_it_is():
    """It is a trace already: nothing can be given for it."""
    concrete = tf.function(plain).get_concrete_function(tf.TensorSpec([2]))
    assert traced(concrete).concrete is concrete
    with pytest.raises(SignatureError) as caught:
        traced(concrete, "x=f32[3]")
    assert str(caught.value) == (
        "m.py:f is traced already, so it cannot be traced for other inputs; give none"
    )


def test_functions_of_a_loaded_saved_model(tmp_path: Path):
    """They are shown as they were saved: the first trace, the others named."""

    class Saved(tf.Module):
        @tf.function
        def scale(self, x, k=2.0):
            return x * k

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def never(self, x):
            return x

    module = Saved()
    module.scale(tf.ones([2]))
    module.scale(tf.ones([2]), 3.0)
    tf.saved_model.save(module, str(tmp_path / "saved"))
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    found = traced(loaded.scale)
    assert found.concrete is loaded.scale.concrete_functions[0]
    assert found.notes == ("other existing traces, not shown here: (x: float32[2], k: 3.0)",)
    assert traced(loaded.never).notes == ()
    signature = loaded.signatures["serving_default"]
    assert traced(signature).concrete is signature


def test_something_without_parameters_to_see():
    """A callable that does not say what it takes is refused."""

    class Opaque:
        __signature__ = "none"

        def __call__(self, *args):
            return args

    with pytest.raises(SignatureError) as caught:
        traced(Opaque())
    assert str(caught.value) == (
        "m.py:f does not say what its parameters are; name a Python function that calls it"
    )


def test_python_code_inside():
    """`py_function` and `numpy_function` stay opaque ops; their Python does not run."""
    import numpy as np

    ran = []

    @tf.function
    def mixed(x):
        a = tf.py_function(lambda t: ran.append(t.numpy()), [x], tf.float32)
        return a + tf.numpy_function(np.sin, [x], tf.float32)

    ops = op_types(traced(mixed, "x=f32[3]"))
    assert (ops["EagerPyFunc"], ops["PyFunc"], ran) == (1, 1, [])


def test_datasets():
    """A dataset is an argument when it is given as a value, or captured."""

    @tf.function
    def total(ds):
        s = tf.constant(0, tf.int64)
        for v in ds:
            s += v
        return s

    found = traced(total, value=(tf.data.Dataset.range(5),))
    assert {"ScanDataset", "ReduceDataset"} <= set(op_types(found))
    pipeline = tf.data.Dataset.range(10).map(lambda v: v + 1)

    @tf.function
    def consume():
        it = iter(pipeline)
        return next(it) + next(it)

    assert op_types(traced(consume))["IteratorGetNext"] == 2


# Switches of the program


def test_functions_run_eagerly():
    """The switch is off for the trace, so that calls inside are calls; a note says so."""
    inner = tf.function(lambda x: x + 1.0)
    outer = tf.function(lambda x: inner(x) * 2.0)
    tf.config.run_functions_eagerly(True)
    try:
        found = traced(outer, "x=f32[2]")
        assert tf.config.functions_run_eagerly()
    finally:
        tf.config.run_functions_eagerly(False)
    assert op_types(found)["PartitionedCall"] == 1
    assert found.notes == (
        (
            "tf.config.run_functions_eagerly(True) is set: calls run op by op, without this graph; it"
            " was traced with the switch off"
        ),
    )


def run_python(code: str) -> str:
    """Run code that changes how TensorFlow works, in a process of its own."""
    env = {
        **os.environ,
        "PYTHONPATH": str(PACKAGE_ROOT),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "-1",
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_eager_execution_disabled():
    """Files written for TensorFlow 1 switch eager execution off; their functions are traced."""
    printed = run_python(
        """
        import tensorflow as tf
        from graph2mermaid import trace
        tf.compat.v1.disable_eager_execution()
        capture = trace(tf.function(lambda x: x * 2.0), tf.TensorSpec([2]))
        print([node.op for node in capture.traced.nodes()], capture.notes)
        """
    )
    assert printed == "['Placeholder', 'Const', 'Mul', 'Identity'] ()"


def test_a_distribution_strategy():
    """The devices are configured by the program after the environment was asked for."""
    printed = run_python(
        """
        import tensorflow as tf
        from graph2mermaid import trace
        from graph2mermaid.sources.environment import environment
        environment()
        devices = tf.config.list_physical_devices("CPU")
        configuration = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(devices[0], configuration)
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        with strategy.scope():
            w = tf.Variable(1.0)

        @tf.function
        def step(x):
            per_replica = strategy.run(lambda t: tf.reduce_sum(t * w), args=(x,))
            return strategy.reduce("SUM", per_replica, axis=None)

        graph = trace(step, tf.TensorSpec([2])).traced
        print([node.device[-5:] for node in graph.nodes() if node.op == "Sum"])
        """
    )
    assert printed == "['CPU:0', 'CPU:1']"


def test_environment():
    """Versions and physical devices are told, each kind with its number."""
    found = environment()
    assert found.tensorflow == tf.__version__
    assert found.python == ".".join(map(str, sys.version_info[:3]))
    assert found.keras[0] in "23"
    assert any(device.endswith(" x CPU") for device in found.devices)
