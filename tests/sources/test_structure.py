"""The leaves of arguments and results, under the names that a program would use."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, namedtuple
from typing import Any, NamedTuple

import pytest

from graph2mermaid.sources.structure import argument_leaves, leaves

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tf


class Pair(NamedTuple):
    """A NamedTuple."""

    left: Any
    right: Any


Old = namedtuple("Old", ["b", "a"])  # noqa: PYI024 - this is the form that is tested


@dataclasses.dataclass
class Batch:
    """A dataclass that TensorFlow takes apart."""

    zeta: Any
    alpha: Any

    def __tf_flatten__(self):
        return (), (self.zeta, self.alpha)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(*components)


@dataclasses.dataclass
class Plain:
    """A dataclass that TensorFlow does not know."""

    value: Any


def scalar() -> Any:
    return tf.TensorSpec([])


@pytest.mark.parametrize(
    ("make", "paths"),
    [
        (scalar, ["x"]),
        (lambda: None, ["x"]),
        (lambda: 2.0, ["x"]),
        (lambda: [scalar(), scalar()], ["x[0]", "x[1]"]),
        (lambda: (scalar(), [scalar()]), ["x[0]", "x[1][0]"]),
        (lambda: {"b": scalar(), "a": scalar()}, ["x['a']", "x['b']"]),
        (lambda: OrderedDict(b=scalar(), a=scalar()), ["x['a']", "x['b']"]),
        (lambda: {2: scalar(), 1: scalar()}, ["x[1]", "x[2]"]),
        (lambda: {"a": {"b": [scalar()]}}, ["x['a']['b'][0]"]),
        (lambda: Pair(scalar(), {"k": scalar()}), ["x.left", "x.right['k']"]),
        (lambda: Old(scalar(), scalar()), ["x.b", "x.a"]),
        (lambda: Plain(scalar()), ["x"]),
        (list, []),
        (dict, []),
    ],
    ids=[
        "a tensor",
        "None",
        "a number",
        "a list",
        "a tuple with a list",
        "a dict",
        "an ordered dict",
        "a dict with numbers",
        "nested dicts",
        "a NamedTuple",
        "a namedtuple",
        "an unknown dataclass",
        "an empty list",
        "an empty dict",
    ],
)
def test_paths_are_written_as_python(make, paths: list[str]):
    """The order is TensorFlow's own: mappings sorted by key, fields as they were declared."""
    value = make()
    assert [leaf.path for leaf in leaves(value, "x")] == paths
    assert len(paths) == len(tf.nest.flatten(value))


def test_a_dataclass_of_tensors():
    """Its fields are named; TensorFlow 2.9 takes no dataclass apart."""
    value = Batch(scalar(), scalar())
    assert [leaf.path for leaf in leaves(value, "x")] == ["x.zeta", "x.alpha"]


def test_an_attrs_class():
    """TensorFlow takes these apart by their fields."""
    attr = pytest.importorskip("attr")
    record = attr.make_class("Record", ["zeta", "alpha"])
    value = record(scalar(), [scalar()])
    assert [leaf.path for leaf in leaves(value, "x")] == ["x.zeta", "x.alpha[0]"]
    assert len(tf.nest.flatten(value)) == 2


def test_results_have_numbers_where_they_have_no_names():
    """A tuple's parts are `output_0`...; a dict's are its keys."""
    assert [leaf.path for leaf in leaves((scalar(), [scalar()]))] == ["output_0", "output_1[0]"]
    assert [leaf.path for leaf in leaves({"scores": scalar()})] == ["scores"]
    assert [leaf.path for leaf in leaves(Pair(scalar(), None))] == ["left", "right"]


@pytest.mark.parametrize(
    ("make", "tensors", "words"),
    [
        (lambda: tf.TensorSpec([2, None]), 1, "float32[2,?]"),
        (lambda: tf.TensorSpec(None, tf.int64), 1, "int64[...]"),
        (lambda: tf.constant([True]), 1, "bool[1]"),
        (lambda: tf.RaggedTensorSpec([2, None]), 2, "RaggedTensor float32[2,?]"),
        (lambda: tf.SparseTensorSpec([3, 4]), 3, "SparseTensor float32[3,4]"),
        (lambda: tf.Variable(1.0), 1, "Variable float32[]"),
        (lambda: None, 0, "None"),
        (lambda: "sum", 0, "Python value 'sum'"),
        (lambda: [1] * 0, 0, ""),
        (lambda: "x" * 100, 0, "Python value '" + "x" * 58 + "…"),
    ],
    ids=[
        "spec",
        "unknown rank",
        "tensor",
        "ragged",
        "sparse",
        "variable",
        "None",
        "text",
        "nothing",
        "long text",
    ],
)
def test_a_leaf_says_what_it_is(make, tensors: int, words: str):
    """A type and a shape, or a Python value short enough for a cell."""
    found = list(leaves(make(), "x"))
    assert [(leaf.tensors, leaf.type) for leaf in found] == ([(tensors, words)] if words else [])


def test_arguments_have_their_parameters_names():
    """Positional ones in order, the rest numbered, keywords sorted."""
    signature = ((scalar(), {"k": scalar()}, scalar()), {"z": None, "a": scalar()})
    found = [leaf.path for leaf in argument_leaves(signature, ["x", "batch"])]
    assert found == ["x", "batch['k']", "args[0]", "a", "z"]
    found = [leaf.path for leaf in argument_leaves(signature, ["x"], "rest")]
    assert found == ["x", "rest[0]['k']", "rest[1]", "a", "z"]
