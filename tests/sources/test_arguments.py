"""What a function is traced with: what was given, what it says itself, what is assumed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from graph2mermaid.errors import SignatureError
from graph2mermaid.graph import TensorSpec
from graph2mermaid.sources.concrete import Inputs, trace_of
from graph2mermaid.sources.signature import parse_inputs
from tests.sources.traced import arguments, traced

pytestmark = pytest.mark.tf


def layer(x, w, training=False):
    """A function that says nothing of its arguments."""
    y = tf.matmul(x, w)
    return tf.nn.dropout(y, 0.5) if training else y


ASSUMED = "(a matmul then becomes BatchMatMulV2); type"
DEFAULT = {"training": "Python value False"}


def test_nothing_known():
    """Without any shape the rank is unknown, and a note has the line to type."""
    found = traced(layer)
    assert arguments(found) == {"x": "float32[...]", "w": "float32[...]", **DEFAULT}
    assert found.notes == (
        (
            f"shapes of x and w assumed: unknown rank float32 {ASSUMED}"
            " --input 'x=float32[?,64]' --input 'w=float32[?,64]'"
        ),
    )


def test_some_given():
    """What is given counts, and the rest is assumed."""
    found = traced(layer, "w=f32[16,4]")
    assert arguments(found) == {"x": "float32[...]", "w": "float32[16,4]", **DEFAULT}
    assert found.notes == (
        f"shape of x assumed: unknown rank float32 {ASSUMED} --input 'x=float32[?,16]'",
    )


def test_all_given():
    """Where nothing is assumed, nothing is said; a default stays a Python value."""
    found = traced(layer, "x=f32[?,16]", "w=f32[16,4]")
    assert arguments(found) == {"x": "float32[?,16]", "w": "float32[16,4]", **DEFAULT}
    assert found.notes == ()


def test_a_default_can_be_made_a_tensor():
    """`--input` on a parameter with a default makes it an argument of the graph."""
    found = traced(lambda x, k=2.0: x * k, "x=f32[3]", "k=f32[]")
    assert arguments(found) == {"x": "float32[3]", "k": "float32[]"}


def annotated(
    x: tf.TensorSpec([None, 4], tf.float32),  # type: ignore[valid-type]
    y: "tf.TensorSpec([2], tf.int32)",  # type: ignore[valid-type]  # noqa: UP037
    z: Annotated[Any, tf.TensorSpec([], tf.bool)],
    n: int,
    k: int = 3,
):
    """Annotated with specs: itself, as text, among extras, and with a plain type."""
    return x, y, z, n * k


def test_annotations():
    """TensorSpec annotations give shapes; a plain type gives a scalar, and a note."""
    # `from __future__ import annotations` has made text of all of them.
    found = traced(annotated)
    assert arguments(found) == {
        "x": "float32[?,4]",
        "y": "int32[2]",
        "z": "bool[]",
        "n": "int32[]",
        "k": "Python value 3",
    }
    assert found.notes == ("n assumed from its annotation: int32[]; type --input 'n=int32[]'",)


class Pair(NamedTuple):
    """A structure whose fields are annotated."""

    left: tf.TensorSpec([2], tf.float32)  # type: ignore[valid-type]
    right: tf.TensorSpec([3], tf.float32)  # type: ignore[valid-type]


def test_annotation_of_a_named_tuple():
    """A named tuple whose fields are annotated with specs is an argument of that structure."""

    def f(pair: Pair):
        return pair.left, pair.right

    found = traced(f)
    assert arguments(found) == {"pair.left": "float32[2]", "pair.right": "float32[3]"}


def test_an_annotation_without_meaning():
    """Annotations that cannot be evaluated are left alone."""

    def f(x):
        return x

    f.__annotations__ = {"x": "no_such_name[1]"}
    assert arguments(traced(f)) == {"x": "float32[...]"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["y=f32[1]"],
            (
                "m.py:f has no parameter 'y'; its parameters are x, w and training:"
                " type --input 'x=float32[?,64]'"
            ),
        ),
        (
            ["x['a']=f32[1]", "x[0]=f32[1]"],
            (
                "--input x['a']: x has numbered parts as well; give either all parts of it by number"
                " or all by name"
            ),
        ),
        (
            ["x[1]=f32[1]"],
            "--input: x[0] is missing; type --input 'x[0]=float32[?,64]'",
        ),
    ],
    ids=["no such parameter", "mixed", "missing"],
)
def test_options_that_do_not_fit(options: list[str], message: str):
    """A wrong name or structure is refused with the line to type."""
    with pytest.raises(SignatureError) as caught:
        traced(layer, *options)
    assert str(caught.value) == message


def test_a_function_without_parameters():
    """An option for a function that takes nothing says so."""
    with pytest.raises(SignatureError, match=r"^m.py:f has no parameter 'x'; it takes none$"):
        traced(lambda: tf.constant(1.0), "x=f32[1]")


# Structures


def nested(batch, scale=2.0):
    """Takes a dict that holds a tuple."""
    return batch["image"] * scale, batch["pair"][0] + batch["pair"][1]


PARTS = ("batch['image']=f32[?,4]", "batch.pair[1]=i32[2]", "batch.pair[0]=i32[]")


def test_structures_are_built_from_paths():
    """Options with paths make dicts and tuples."""
    assert arguments(traced(nested, *PARTS)) == {
        "batch['image']": "float32[?,4]",
        "batch['pair'][0]": "int32[]",
        "batch['pair'][1]": "int32[2]",
        "scale": "Python value 2.0",
    }


class Batch(NamedTuple):
    """A structure with attributes."""

    image: Any
    label: Any


class Box(tf.experimental.ExtensionType):
    """A TensorFlow type of the user's own."""

    image: tf.Tensor
    label: tf.Tensor


@pytest.mark.parametrize("kind", [Batch, Box], ids=["NamedTuple", "ExtensionType"])
def test_structures_of_an_annotated_class(kind: type):
    """Where the annotation is a class, its instances are built."""

    def f(batch: Any):
        assert type(batch).__name__ == kind.__name__
        return batch.image + tf.cast(batch.label, tf.float32)

    f.__annotations__ = {"batch": kind}
    assert traced(f, "batch.image=f32[2]", "batch.label=i32[]").notes == ()
    with pytest.raises(SignatureError, match=r"^--input batch: .* has the fields image, label "):
        traced(f, "batch.image=f32[2]", "batch.lable=i32[]")


def test_a_dataclass_that_tensorflow_cannot_take_apart():
    """Its tensors would be constants of the graph: only values can be given for it."""
    import dataclasses

    @dataclasses.dataclass(eq=False)  # by identity, or TensorFlow does not take it at all
    class Data:
        image: Any

    def f(batch):
        return batch.image * 2.0

    f.__annotations__ = {"batch": Data}
    with pytest.raises(SignatureError) as caught:
        traced(f, "batch.image=f32[2]")
    assert str(caught.value) == (
        "--input batch: TensorFlow does not look into the dataclass Data (it has no"
        " __tf_flatten__); give a value of it with --inputs FILE:NAME"
    )
    assert traced(f, value=(Data(tf.ones([2])),)).notes == ()


def test_a_dataclass_that_says_how_to_be_taken_apart():
    """A dataclass with `__tf_flatten__` is built from options."""
    import dataclasses

    if tf.__version__.startswith("2.9."):
        pytest.skip("TensorFlow 2.9 does not look into dataclasses")

    @dataclasses.dataclass
    class Data:
        image: Any

        def __tf_flatten__(self):
            return (), (self.image,)

        @classmethod
        def __tf_unflatten__(cls, metadata, leaves):
            return cls(*leaves)

    def f(batch):
        return batch.image * 2.0

    f.__annotations__ = {"batch": Data}
    assert len(traced(f, "batch.image=f32[2]").concrete.inputs) == 1


# Parameters of every kind


def variadic(a, *rest, b=1.0, **more):
    """Takes everything."""
    return a + sum(rest) + b + sum(more.values())


def test_any_number_of_arguments():
    """`*args` are given by number, `**kwargs` by name."""
    found = traced(
        variadic, "a=f32[2]", "rest[0]=f32[2]", "rest[1]=f32[]", "z=f32[1]", "more.y=f32[]"
    )
    args, kwargs = found.concrete.structured_input_signature
    assert [str(spec.shape) for spec in args] == ["(2,)", "(2,)", "()"]
    assert {name: str(getattr(v, "shape", v)) for name, v in kwargs.items()} == {
        "b": "1.0",
        "y": "()",
        "z": "(1,)",
    }


def test_any_number_needs_a_number():
    """`*args` as a whole has no shape."""
    with pytest.raises(
        SignatureError,
        match=r"^m.py:f takes any number of rest; type --input 'rest\[0\]=float32\[2\]'$",
    ):
        traced(variadic, "rest=f32[2]")


def test_no_number_of_arguments():
    """`*args` and `**kwargs` are left empty where nothing is given for them."""
    found = traced(variadic, "a=f32[2]")
    assert found.concrete.structured_input_signature[1] == {"b": 1.0}
    assert len(found.concrete.inputs) == 1


def test_keyword_only_parameters():
    """A parameter that has to be given by name is."""

    def f(x, *, y, k=2.0):
        return x * y * k

    assert arguments(traced(f, "x=f32[2]", "y=f32[1]")) == {
        "x": "float32[2]",
        "y": "float32[1]",
        "k": "Python value 2.0",
    }


def test_a_default_before_a_given_one():
    """After a parameter that keeps its default, the others go by name."""

    def f(x, k=2.0, y=None):
        return x * k if y is None else x * y

    assert arguments(traced(f, "x=f32[2]", "y=f32[1]")) == {
        "x": "float32[2]",
        "k": "Python value 2.0",
        "y": "float32[1]",
    }


@pytest.mark.parametrize("wrapped", [tf.function, lambda f: f], ids=["tf.function", "function"])
def test_partials(wrapped: Callable[[Any], Any]):
    """What a partial binds is not asked for again, but may be overridden by name."""
    function = wrapped(lambda x, w, k: x * w * k)
    partial = functools.partial(function, tf.ones([2]), k=3.0)
    found = traced(partial, "w=f32[2]")
    assert found.notes == ()
    assert traced(partial).notes == (
        f"shape of w assumed: unknown rank float32 {ASSUMED} --input 'w=float32[?,2]'",
    )
    with pytest.raises(
        SignatureError, match=r"^m.py:f has no parameter 'x'; its parameters are w and k"
    ):
        traced(partial, "x=f32[2]")
    given = traced(partial, "w=f32[2]", "k=f32[]")
    assert len(given.concrete.inputs) == len(found.concrete.inputs) + 1


# Values


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((tf.ones([2, 3]), tf.ones([3, 4])), {"x": "float32[2,3]", "w": "float32[3,4]"}),
        ([tf.ones([2, 3]), tf.ones([3, 4])], {"x": "float32[2,3]", "w": "float32[3,4]"}),
        (
            {"w": tf.ones([3, 4]), "x": tf.TensorSpec([None, 3])},
            {"x": "float32[?,3]", "w": "float32[3,4]"},
        ),
        ((tf.ones([2, 3]), tf.ones([3, 4]), True), {"training": "Python value True"}),
        (tf.ones([2, 3]), {"x": "float32[2,3]", "w": "float32[...]"}),
    ],
    ids=["tuple", "list", "dict", "Python value", "single"],
)
def test_values(value: object, expected: dict[str, str]):
    """A tuple or list is the positional arguments, a dict the keyword arguments, the rest one."""
    found = arguments(traced(layer, value=value))
    assert {name: found[name] for name in expected} == expected


def test_a_dict_that_is_one_argument():
    """A dict whose keys are no parameters is the single argument, and a lone dict in a tuple."""
    batch = {"image": tf.ones([2]), "pair": (tf.ones([]), tf.ones([]))}
    for value in (batch, (batch,)):
        assert arguments(traced(nested, value=value))["batch['image']"] == "float32[2]"


def test_numpy_values():
    """A NumPy array is an example of a tensor."""
    import numpy as np

    found = arguments(traced(layer, value=(np.ones([2, 3], "f"), np.ones([3, 4], "f"))))
    assert found["x"] == "float32[2,3]"


def test_our_own_specs():
    """`graph2mermaid.TensorSpec` does for TensorFlow's, in structures too."""
    spec = TensorSpec("float32", (None,))
    found = traced(nested, args=({"image": spec, "pair": (spec, spec)},))
    assert arguments(found)["batch['pair'][1]"] == "float32[?]"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"args": (1, 2, 3, 4)},
            "m.py:f takes 3 positional arguments (x, w and training), but 4 are given",
        ),
        ({"args": (1,), "kwargs": {"x": 2}}, "m.py:f: x is given twice"),
        (
            {"kwargs": {"y": 2}},
            (
                "m.py:f has no parameter 'y'; its parameters are x, w and training:"
                " type --input 'x=float32[?,64]'"
            ),
        ),
    ],
    ids=["too many", "twice", "unknown"],
)
def test_values_that_do_not_fit(given: dict[str, Any], message: str):
    """Values that the function cannot take are refused before it is traced."""
    with pytest.raises(SignatureError) as caught:
        traced(layer, **given)
    assert str(caught.value) == message


def test_values_and_options_together():
    """Both may be given, for different parameters."""
    found = traced(layer, "w=f32[3,4]", value=(tf.ones([2, 3]),))
    assert arguments(found) == {"x": "float32[2,3]", "w": "float32[3,4]", **DEFAULT}
    with pytest.raises(SignatureError, match=r"^m.py:f: x is given by --inputs and by --input$"):
        traced(layer, "x=f32[3,4]", value=(tf.ones([2, 3]),))


def test_an_unknown_dtype_of_this_tensorflow():
    """A dtype that only other versions have is refused in one line."""
    if hasattr(tf.dtypes, "float8_e5m2") or not tf.__version__.startswith("2.9."):
        pytest.skip("this TensorFlow has every dtype that can be typed")
    with pytest.raises(
        SignatureError, match=r"^float8_e5m2\[2\]: TensorFlow 2.9.* has no dtype float8_e5m2$"
    ):
        traced(layer, "x=float8_e5m2[2]")


# input_signature


@tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
def signed(x, k=2.0):
    """A tf.function that declares its argument."""
    return x * k


def test_input_signature():
    """Without anything given, the declared signature is used."""
    found = traced(signed)
    assert (arguments(found)["x"], found.notes) == ("float32[?,2]", ())


def test_other_specs_than_the_input_signature():
    """A spec that the signature allows is traced as given, and the signature is named."""
    found = traced(signed, "x=f32[8,2]")
    assert arguments(found)["x"] == "float32[8,2]"
    assert found.notes == (
        "traced with x as given; the function's own input_signature is (x: float32[?,2])",
    )
    assert traced(signed, "x=f32[?,2]").notes == ()


@pytest.mark.parametrize(
    "given",
    [{"options": parse_inputs([("x", "f32[8,3]")])}, {"value": (tf.ones([8, 3]),)}],
    ids=["spec", "value"],
)
def test_what_the_input_signature_does_not_allow(given: dict[str, Any]):
    """What the function would refuse is refused."""
    with pytest.raises(SignatureError) as caught:
        trace_of(signed, Inputs(**given), name="m.py:f")
    assert str(caught.value) == (
        "m.py:f has the input_signature (x: float32[?,2]), which float32[8,3] does not fit"
    )


@pytest.mark.parametrize("value", [tf.ones([8, 2]), [[1.0, 2.0]]], ids=["tensor", "list"])
def test_values_for_an_input_signature(value: object):
    """A value is traced as a call with it would be: by the signature."""
    found = traced(signed, value=(value,))
    assert (arguments(found)["x"], found.notes) == ("float32[?,2]", ())


def test_structured_input_signature():
    """One part of a declared structure may be asked for otherwise; it has no other parts."""
    declared = {"a": tf.TensorSpec([None]), "b": (tf.RaggedTensorSpec([None, None]),)}

    @tf.function(input_signature=[declared])
    def f(batch):
        return batch["a"], batch["b"][0] * 2.0

    assert len(traced(f).concrete.inputs) == 3
    found = arguments(traced(f, "batch.b[0]=f32[5,?]"))
    assert found["batch['b'][0]"] == "RaggedTensor float32[5,?]"
    assert found["batch['a']"] == "float32[?]"
    with pytest.raises(SignatureError) as caught:
        traced(f, "batch.c=f32[1]")
    assert str(caught.value) == (
        "--input batch['c']: m.py:f takes batch['a'], batch['b'][0] there, and no batch['c']"
    )


def test_options_of_the_tf_function_are_kept():
    """A trace for other specs is made with the options of the tf.function."""

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.float32)],
        autograph=False,
        jit_compile=True,
        experimental_implements="some.name",
    )
    def f(x):
        return x * 2.0

    for options in ((), ("x=f32[4]",)):
        attr = traced(f, *options).concrete.function_def.attr
        assert attr["_XlaMustCompile"].b
        assert attr["_implements"].s == b"some.name"


# Existing traces


@pytest.fixture
def power():
    """A tf.function with three traces, each with its own Python number or shape."""

    @tf.function
    def power(x, n):
        for _ in range(n):
            x = x * x
        return x

    power(tf.ones([2]), 1)
    power(tf.ones([2]), 2)
    power(tf.ones([3]), 2)
    return power


def test_the_first_existing_trace(power):
    """Its signature is used, Python values included, and the others are named."""
    found = traced(power)
    assert arguments(found) == {"x": "float32[2]", "n": "Python value 1"}
    assert found.notes == (
        "x: float32[2], n: 1 as in its first existing trace",
        "other existing traces, not shown here: (x: float32[2], n: 2); (x: float32[3], n: 2)",
    )


def test_what_is_given_beside_an_existing_trace(power):
    """What is given counts, the rest is as in the first trace, and all traces are named."""
    found = traced(power, "x=f32[7]")
    assert arguments(found) == {"x": "float32[7]", "n": "Python value 1"}
    assert found.notes == (
        "n: 1 as in its first existing trace",
        (
            "other existing traces, not shown here: (x: float32[2], n: 1); (x: float32[2], n: 2);"
            " (x: float32[3], n: 2)"
        ),
    )


def test_many_existing_traces():
    """A note names a few traces and counts the rest."""
    f = tf.function(lambda x, n: x * float(n))
    for n in range(8):
        f(tf.ones([2]), n)
    assert traced(f).notes[1] == (
        "other existing traces, not shown here: (x: float32[2], n: 1); (x: float32[2], n: 2);"
        " (x: float32[2], n: 3); (x: float32[2], n: 4); (x: float32[2], n: 5); and 2 more"
    )


def test_composite_tensors_of_an_existing_trace():
    """Ragged and sparse tensors, variables and iterators are traced again as what they are."""

    @tf.function
    def f(ragged, sparse, variable, iterator):
        dense = tf.sparse.sparse_dense_matmul(sparse, tf.ones([4, 2]))
        return ragged * 2.0, dense, variable + 1.0, next(iterator)

    sparse = tf.sparse.SparseTensor([[0, 0]], [1.0], [3, 4])
    iterator = iter(tf.data.Dataset.range(4))
    f(tf.ragged.constant([[1.0], [2.0, 3.0]]), sparse, tf.Variable(1.0), iterator)
    found = arguments(traced(f))
    assert found["ragged"] == "RaggedTensor float32[2,?]"
    assert found["sparse"].startswith("SparseTensor float32[")  # 2.9 forgets its shape
    assert (found["variable"], found["iterator"]) == ("Variable float32[]", "Iterator")
    assert arguments(traced(f, "ragged=f32[?,?]"))["ragged"] == "RaggedTensor float32[?,?]"


def test_objects_of_an_existing_trace():
    """A Python object has no shape: nothing can be assumed for it."""

    class Settings:
        scale = 2.0

    f = tf.function(lambda settings, x: x * settings.scale)
    f(Settings(), tf.ones([2]))
    with pytest.raises(SignatureError) as caught:
        traced(f)
    assert str(caught.value) == (
        "m.py:f takes a Python object as settings, which no shape can stand for;"
        " give it with --inputs FILE:NAME"
    )
    found = traced(f, value=(Settings(), tf.ones([3])))
    assert found.notes == (
        "other existing traces, not shown here: (settings: an object, x: float32[2])",
    )


def test_names_of_inputs_do_not_depend_on_earlier_traces():
    """Traced after an earlier trace or not, placeholders have the same names."""

    def f(batch):
        return batch[0] + batch[1]

    batch = (tf.TensorSpec([2]), tf.TensorSpec([2]))
    function = tf.function(f)
    first = traced(function, args=(batch,)).concrete
    function.get_concrete_function(batch)
    again = traced(function).concrete
    assert [t.name for t in again.inputs] == [t.name for t in first.inputs]
