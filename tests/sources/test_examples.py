"""The lines that messages offer: each of them works when it is typed."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from graph2mermaid.errors import TraceError
from tests.sources.traced import arguments, traced

pytestmark = pytest.mark.tf


def of_a_dict(steps, k):
    return steps["image"] * steps["aux"]["z"] + steps.get("bias") + k


def of_a_pair(pair):
    a, b = pair
    return a + b


def of_items(items):
    return items[0] + items[1]["b"]


def of_keywords(**features):
    return features["a"] + features["b"]


def of_rest(*rest):
    return rest[0] + rest[1]


def embedding(ids):
    return tf.nn.embedding_lookup(tf.ones([10, 4]), ids)


def gather(x, i):
    return tf.gather(x, i)


def one_hot(i):
    return tf.one_hot(i, 10)


def choose(mask, x):
    return tf.where(tf.logical_not(mask), x, 0.0)


def lengths(s):
    return tf.strings.length(s)


def first(x, n):
    return x[:n]


def double(x):
    return tf.linalg.matmul(x, tf.ones([4, 4], tf.float64))


def unstacked(x):
    a, b = tf.unstack(x, axis=-1)
    return a + b


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (
            of_a_dict,
            {
                "steps['image']": "float32[?,64]",
                "steps['aux']['z']": "float32[?,64]",
                "steps['bias']": "float32[?,64]",
                "k": "float32[?,64]",
            },
        ),
        (of_a_pair, {"pair[0]": "float32[?,64]", "pair[1]": "float32[?,64]"}),
        (of_items, {"items[0]": "float32[?,64]", "items[1]['b']": "float32[?,64]"}),
        (of_keywords, {"a": "float32[?,64]", "b": "float32[?,64]"}),
        (of_rest, {"rest[0]": "float32[?,64]", "rest[1]": "float32[?,64]"}),
        (embedding, {"ids": "int32[?,64]"}),
        (gather, {"x": "float32[?,64]", "i": "int32[?,64]"}),
        (one_hot, {"i": "int32[?,64]"}),
        (choose, {"mask": "bool[?,64]", "x": "float32[?,64]"}),
        (lengths, {"s": "string[?,64]"}),
        (first, {"x": "float32[?,64]", "n": "int32[]"}),
        (double, {"x": "float64[?,4]"}),
        (unstacked, {"x": "float32[?,2]"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_line_after_a_failure(function: Callable[..., Any], expected: dict[str, str]):
    """It has the structure, the types and the shapes that the function takes."""
    with pytest.raises(TraceError) as caught:
        traced(function)
    found = re.search(r"; type (.*), or give values with --inputs FILE:NAME$", str(caught.value))
    assert found
    options = [word for word in shlex.split(found[1]) if word != "--input"]
    assert dict(option.split("=") for option in options) == expected
    assert traced(function, *options).notes == ()


@pytest.mark.parametrize(
    "function",
    [
        lambda state: state.a + state.b,
        lambda d: tf.add_n(list(d.values())),
        lambda n: tf.zeros([int(n)]),
    ],
    ids=["attributes", "methods", "a number"],
)
def test_no_line_is_better_than_a_wrong_one(function: Callable[..., Any]):
    """Where no shape helps, example values are asked for."""
    with pytest.raises(TraceError) as caught:
        traced(function)
    assert str(caught.value).endswith("); give values with --inputs FILE:NAME")


def test_what_was_given_is_kept():
    """Only what was not given is asked for."""
    with pytest.raises(TraceError, match=r"; type --input 'i=int32\[\?,64\]', or give values"):
        traced(gather, "x=f32[3,4]")


def test_a_trial_is_silent(capsys: pytest.CaptureFixture[str]):
    """What the function prints is printed for the trace that was asked for, and not again."""

    def talks(i):
        sys.stdout.write("once\n")
        return tf.one_hot(i, 10)

    with pytest.raises(TraceError):
        traced(talks)
    assert capsys.readouterr().out == "once\n"


def test_a_note_has_a_shape_that_fits_the_graph():
    """The graph itself tells which shapes it takes, variables included."""
    weights = tf.Variable(tf.ones([16, 4]))
    (note,) = traced(lambda x: tf.matmul(x, weights)).notes
    assert note.endswith("; type --input 'x=float32[?,16]'")


def test_a_note_for_a_graph_that_takes_no_matrix():
    """Where the usual shape does not fit, another one that does is shown."""

    def volumes(x):
        return tf.nn.conv2d(x, tf.ones([3, 3, 3, 8]), 1, "SAME")

    (note,) = traced(volumes).notes
    line = note.rpartition("type --input ")[2]
    (option,) = shlex.split(line)
    assert arguments(traced(volumes, option))["x"] == option.removeprefix("x=")
