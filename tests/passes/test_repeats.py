"""Which titles are repeats of one thing, and which groups are equal."""

from __future__ import annotations

import pytest

from graph2mermaid.passes.level import Level, Unit
from graph2mermaid.passes.titles import (
    fold_title,
    is_op_name,
    loss_title,
    prefixes,
    span_title,
    trace_suffix,
)
from graph2mermaid.passes.wiring import Wiring
from tests.builders import graph


@pytest.mark.parametrize(
    ("titles", "beside", "title"),
    [
        (["block0", "block1", "block2"], {"block": 3}, "block"),
        (["block_4", "block_5"], {"block": 16}, "block_4-5"),
        (["dense", "dense_1", "dense_2"], {"dense": 3}, "dense"),
        (["dense", "dense_1"], {"dense": 3}, "dense_0-1"),
        (["conv2_block10", "conv2_block9"], {"conv2_block": 5}, "conv2_block9-10"),
        (["block6b", "block6c", "block6d"], {"block6": 4}, "block6b-d"),
        (["layer", "layer"], {}, "layer"),
        (["query", "key"], {}, None),
        (["1", "2"], {}, None),
    ],
)
def test_fold_titles(titles: list[str], beside: dict[str, int], title: str | None):
    """Numbered things have a title together, which says which ones where there are others."""
    assert fold_title(titles, beside) == title


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("conv5_block3_1_bn", ["conv5", "conv5_block3", "conv5_block3_1", "conv5_block3_1_bn"]),
        ("block2a", ["block2", "block2a"]),
        ("block_3", ["block_3", "block_3"]),
    ],
)
def test_prefixes(name: str, found: list[str]):
    """Names are taken apart at underscores and where a letter follows a digit."""
    assert list(dict.fromkeys(prefixes(name))) == list(dict.fromkeys(found))


@pytest.mark.parametrize(
    ("names", "suffix"),
    [
        (["conv_1", "bn_1"], "_1"),
        (["dense", "dense_1", "dense_2"], ""),
        (["conv_1"], ""),
        ([], ""),
    ],
)
def test_trace_suffix(names: list[str], suffix: str):
    """What nearly all names end with is none of theirs."""
    assert trace_suffix(names) == suffix


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("sparse_categorical_crossentropy", "loss: crossentropy"),
        ("mean_squared_error", "loss: mean squared error"),
        ("my_loss", "my loss"),
        ("compile_loss/mean_squared_error", "loss: mean squared error"),
        ("resnet50", None),
    ],
)
def test_loss_titles(name: str, title: str | None):
    """A loss is called a loss."""
    assert loss_title(name) == title


def test_span_titles():
    """A piece of pieces is named by its ends alone."""
    assert span_title(["a to b", "c", "d to e × 2"]) == "a to e"
    assert span_title(["a"]) == "a"


@pytest.mark.parametrize(
    ("name", "op", "default"),
    [("strided_slice_4", "StridedSlice", True), ("add_1", "AddV2", True), ("norm", "Mul", False)],
)
def test_names_that_tensorflow_gives(name: str, op: str, default: bool):
    """A default name says nothing of the model."""
    assert is_op_name(name, op) is default


BASE = "x:Placeholder float32[2] -> a:Relu float32[2] -> b:Exp float32[2]; x -> b"


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        (BASE, True),
        (BASE.replace("a:", "other:").replace("b:", "name:").replace("-> b", "-> name"), True),
        (BASE + " src=model.py:3", True),
        (BASE.replace("Exp", "Log"), False),
        (BASE.replace("Exp float32[2]", "Exp float32[3]"), False),
        (BASE.replace("Exp float32[2]", "Exp float32[2] attr.axis=1"), False),
        (BASE.replace("; x -> b", ""), False),
        (BASE.replace("; x -> b", "; a -> b"), False),
        (BASE.replace("; x -> b", "; x -0:7> b"), False),
        (BASE.replace("; x -> b", "; x ~> b"), False),
    ],
    ids=["same", "names", "place", "op", "shape", "attr", "edge", "source", "port", "control"],
)
def test_signatures(other: str, equal: bool):
    """A signature is of ops, shapes, attributes and wiring; not of names and source lines."""
    assert (signature(BASE) == signature(other)) is equal


def test_a_signature_does_not_depend_on_the_order_of_the_nodes():
    """Two groups of one graph that are written down in another order are equal."""
    text = "x:Placeholder float32[2]; "
    text += "x -> p/a:Relu float32[2] -> p/b:Exp float32[2]; x -> p/b; p/b -> p/c:Abs float32[2]; "
    text += "q/b:Exp float32[2] -> q/c:Abs float32[2]; x -> q/a:Relu float32[2] -> q/b; x -> q/b"
    wiring = Wiring(graph(text))
    first, second = (
        Level(
            wiring,
            [Unit(n.name, None, i) for i, n in enumerate(wiring.nodes) if n.name.startswith(scope)],
        ).part(scope, scope)
        for scope in ("p/", "q/")
    )
    assert (first.form, first.signature) == (second.form, second.signature)
    assert [wiring.nodes[leaf].op for leaf in first.leaves] == [
        wiring.nodes[leaf].op for leaf in second.leaves
    ]


def signature(text: str) -> str:
    """Return the signature of a whole graph."""
    wiring = Wiring(graph(text))
    units = [Unit(node.name, None, at) for at, node in enumerate(wiring.nodes)]
    return Level(wiring, units).part("key", "title").signature
