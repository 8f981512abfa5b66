"""What is said when TensorFlow cannot trace a function."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from graph2mermaid.errors import TraceError
from graph2mermaid.sources.failures import reason
from graph2mermaid.sources.target import parse, resolve
from graph2mermaid.sources.tracing import Request, capture
from tests.sources.traced import traced

pytestmark = pytest.mark.tf

MODEL = """\
import tensorflow as tf


@tf.function
def layer(x, w, training=False):
    y = tf.matmul(x, w)
    return tf.nn.dropout(y, 0.5) if training else y


@tf.function
def broken(x):
    return tf.Variable(x) + 1.0


@tf.function
def twice(x):
    return tf.Variable(1.0) + x


def head(batch):
    return batch["zeta"] * 2.0


def inner(x):
    if tf.reduce_sum(x) > 0.0:
        x = x.no_such_attribute
    return x


def outer(x):
    return inner(x)


@tf.function(autograph=False)
def unconverted(x):
    return tf.reshape(x, [2, 2])


def dump(x):
    with tf.init_scope():
        weights = tf.ones([30, 7])
    raise ValueError(f"bad weights:\\n{weights}\\nand {weights!r}")


def leaves(x):
    raise SystemExit(3)


class OwnError(Exception):
    def __init__(self, what, where):
        super().__init__(f"{what} in {where}")


def own_error(x):
    raise OwnError("fault", "model")


def strange_result(x):
    return object()


@tf.function
def loads(ds):
    return ds.reduce(0, lambda a, b: a + b)
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model in the working directory."""
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def captured(name: str, *inputs: tuple[str, str]) -> None:
    capture(resolve(parse(f"model.py:{name}")), Request(inputs))


def line(text: str) -> str:
    """Return the place of a line of the model, as messages name it."""
    lines = MODEL.splitlines()
    return f"model.py:{next(i for i, found in enumerate(lines, 1) if text in found)}"


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        (
            "layer",
            [("x", "i32[8,16]"), ("w", "f32[16,4]")],
            (
                f"layer: TypeError at {line('tf.matmul(x, w)')}: Input 'b' of 'MatMul' Op has type float32 that does not"
                " match type int32 of argument 'a' (traced with x: int32[8,16], w: float32[16,4])"
            ),
        ),
        (
            "layer",
            [("x", "i32[8,16]")],
            (
                f"layer: TypeError at {line('tf.matmul(x, w)')}: Input 'y' of 'BatchMatMulV2' Op has type float32 that"
                " does not match type int32 of argument 'x' (traced with x: int32[8,16],"
                " w: float32[...]); type --input 'w=int32[?,64]', or give values with"
                " --inputs FILE:NAME"
            ),
        ),
        (
            "broken",
            [("x", "f32[3]")],
            (
                "broken: UnliftableError at model.py:10: Unable to lift tensor <tf.Tensor 'x:0'"
                " shape=(3,) dtype=float32> because it depends transitively on placeholder"
                " <tf.Operation 'x' type=Placeholder> (traced with x: float32[3]); the initial value of"
                " a variable may not depend on the arguments"
            ),
        ),
        (
            "twice",
            [("x", "f32[3]")],
            (
                f"twice: ValueError at {line('tf.Variable(1.0) + x')}: tf.function only supports singleton tf.Variables"
                " created on the first call. Make sure the tf.Variable is only created once or created"
                " outside tf.function. See https://www.tensorflow.org/guide/function#creating_tfvariables"
                " for more information (traced with x: float32[3])"
            ),
        ),
        (
            "head",
            [],
            (
                f"head: TypeError at {line('batch[')}: Only integers, slices (`:`), ellipsis (`...`),"
                " tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are valid indices, got 'zeta'"
                " (traced with batch: float32[...]); type --input \"batch['zeta']=float32[?,64]\", or"
                " give values with --inputs FILE:NAME"
            ),
        ),
        (
            "leaves",
            [("x", "f32[2]")],
            f"leaves: SystemExit at {line('def leaves')}: it called sys.exit(3) (traced with x: float32[2])",
        ),
        (
            "own_error",
            [("x", "f32[2]")],
            f"own_error: OwnError at {line('raise OwnError')}: fault in model (traced with x: float32[2])",
        ),
        (
            "dump",
            [("x", "f32[2]")],
            (
                f"dump: ValueError at {line('raise ValueError')}: bad weights: [...] and"
                " <tf.Tensor: shape=(30, 7), dtype=float32> (traced with x: float32[2])"
            ),
        ),
        (
            "strange_result",
            [("x", "f32[2]")],
            (
                f"strange_result: TypeError at {line('def strange_result')}: To be compatible with tf.function, Python"
                " functions must return zero or more Tensors or ExtensionTypes or None values; in"
                " compilation of <function strange_result>, found return value of type object, which is"
                " not a Tensor or ExtensionType (traced with x: float32[2])"
            ),
        ),
        (
            "loads",
            [],
            (
                f"loads: AttributeError at {line('ds.reduce')}: 'Tensor' object has no attribute 'reduce'"
                " (traced with ds: float32[...]); give values with --inputs FILE:NAME"
            ),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)
def test_failures(model: None, name: str, inputs: list[tuple[str, str]], message: str):
    """A failing trace is one line: TensorFlow's reason, the user's line, and the specs used."""
    with pytest.raises(TraceError) as caught:
        captured(name, *inputs)
    assert (
        str(caught.value).replace("'SymbolicTensor'", "'Tensor'")
        == f"cannot trace model.py:{message}"
    )


@pytest.mark.parametrize(
    ("name", "text"), [("outer", "no_such_attribute"), ("unconverted", "tf.reshape")]
)
def test_the_innermost_line_of_the_users(model: None, name: str, text: str):
    """With AutoGraph and without, the line named is where it went wrong, not where it began."""
    with pytest.raises(TraceError, match=rf"^cannot trace model.py:{name}: \w+ at {line(text)}: "):
        captured(name, ("x", "f32[3]"))


def test_an_interrupt_is_none_of_the_functions_failures():
    """Ctrl-C while a function is traced stays what it is."""

    def f(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        traced(f, "x=f32[2]")


def test_a_failing_trace_puts_everything_back():
    """The switches of the program are as before, whatever happens."""
    tf.config.run_functions_eagerly(True)
    try:
        with pytest.raises(TraceError):
            traced(lambda x: x.no_such_attribute, "x=f32[2]")
        assert tf.config.functions_run_eagerly()
    finally:
        tf.config.run_functions_eagerly(False)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("", "no message"),
        ("two\n  lines.", "two lines"),
        (
            (
                "Exception encountered when calling Dense.call().\n\n\x1b[1mno such axis\x1b[0m\n\n"
                "Arguments received by Dense.call():\n  • inputs=tf.Tensor(shape=(2,), dtype=float32)"
            ),
            "no such axis",
        ),
        (
            (
                'Exception encountered when calling layer "d" (type Dense).\n\nno such axis\n\n'
                'Call arguments received by layer "d" (type Dense):\n  • inputs=tf.Tensor(...)'
            ),
            "no such axis",
        ),
        (
            (
                "Binding inputs to tf.function failed due to `missing a required argument: 'w'`."
                " Received args: (<tf.Tensor: shape=(2,), numpy=array([1., 1.], dtype=float32)>,)"
            ),
            "missing a required argument: 'w'",
        ),
        (
            (
                "inputs ((<tf.Tensor: shape=(2, 2), dtype=float32, numpy=\narray([[1., 1.],\n"
                "       [1., 1.]], dtype=float32)>,)), too many"
            ),
            "inputs ((<tf.Tensor: shape=(2, 2), dtype=float32>,)), too many",
        ),
        (
            "got tf.Tensor(\n[[1. 1.]\n [1. 1.]], shape=(2, 2), dtype=float32), not that",
            "got a tensor of shape (2, 2) and type float32, not that",
        ),
        ("in <function f at 0x7f00deadbeef>", "in <function f>"),
        ("x" * 500, "x" * 399 + "…"),
    ],
    ids=["empty", "lines", "Keras 3", "Keras 2", "binding", "repr", "str", "address", "long"],
)
def test_reasons(text: str, short: str):
    """An error's text is cut down to what a reader needs."""
    assert reason(ValueError(text)) == short
