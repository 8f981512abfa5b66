"""Arguments and results under the names that a program knows them by."""

from __future__ import annotations

import pytest

from tests.tf.drawn import Drawn, drawn
from tests.tf.reading import rows

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tf


@pytest.fixture(scope="module")
def nested() -> Drawn:
    def head(batch, scale=2.0, *, mode="sum"):
        z = batch["zeta"] * scale
        a = batch["alpha"][0] - batch["alpha"][1]
        return {"out": z + a, "none": None, "py": 3, "pair": (z, [a])}

    spec = tf.TensorSpec([2])
    return drawn(tf.function(head), {"zeta": spec, "alpha": (spec, spec)})


class TestNested:
    """A dict of tensors in, a dict of results out."""

    def test_arguments_are_named_by_their_place(self, nested: Drawn):
        """Placeholders are numbered as the dict was written (2.21), inputs sorted by key."""
        assert {b.name: len(b.tensors) for b in nested.graph.inputs} == {
            "batch['alpha'][0]": 1,
            "batch['alpha'][1]": 1,
            "batch['zeta']": 1,
            "scale": 0,
            "mode": 0,
        }
        assert ("batch['zeta']", "", "* Mul") in nested.links
        assert [a.source for a in nested.graph.incoming("sub")] == [
            ref.node for b in nested.graph.inputs[:2] for ref in b.tensors
        ]
        assert nested.graph["sub"].variable == "a"

    def test_python_values_are_no_boxes(self, nested: Drawn):
        """They are in the table, with their values."""
        types = {b.name: b.type for b in nested.graph.inputs}
        assert types["scale"] == "Python value 2.0"
        assert types["mode"] == "Python value 'sum'"
        assert not any(box.startswith(("scale", "mode")) for box in nested.boxes)
        report = nested.capture.report().to_markdown()
        assert rows(report, "`scale`")[:2] == ["input", "`Python value 2.0`"]

    def test_results_are_named_by_their_keys(self, nested: Drawn):
        """None has no tensor; a Python number was made a constant."""
        named = {b.name: len(b.tensors) for b in nested.graph.outputs}
        assert named == {"none": 0, "out": 1, "pair[0]": 1, "pair[1][0]": 1, "py": 1}
        assert ("* Mul", "z", "pair[0]") in nested.links
        assert ("- Sub", "a", "pair[1][0]") in nested.links
        assert ("3", "", "py") in nested.links
        assert rows(nested.capture.report().to_markdown(), "`none`")[:2] == ["output", "`None`"]


@pytest.fixture(scope="module")
def composite() -> Drawn:
    def scale(rt, sp):
        return rt * 2.0, tf.sparse.sparse_dense_matmul(sp, tf.ones([4, 2]))

    ragged = tf.ragged.constant([[1.0, 2.0], [3.0]])
    sparse = tf.sparse.SparseTensor([[0, 0], [1, 2]], [1.0, 2.0], [3, 4])
    return drawn(tf.function(scale), ragged, sparse)


class TestComposite:
    """A ragged and a sparse tensor."""

    def test_one_argument_of_several_tensors(self, composite: Drawn):
        """Five placeholders are two arguments."""
        assert composite.types()["Placeholder"] == 5
        assert [(b.name, len(b.tensors)) for b in composite.graph.inputs] == [("rt", 2), ("sp", 3)]
        types = [b.type.partition(" ")[0] for b in composite.graph.inputs]
        assert types == ["RaggedTensor", "SparseTensor"]

    def test_one_box_for_each(self, composite: Drawn):
        """The arrows say which part of the argument an op reads."""
        boxes = composite.boxes
        arguments = [box for box in boxes if box.startswith(("rt", "sp"))]
        assert arguments[0] == "rt | RaggedTensor float32[2,?]"
        assert arguments[1].startswith("sp | SparseTensor float32[")  # 2.9 forgets the shape
        assert len(arguments) == 2
        words = {words.partition(" | ")[0] for start, words, _ in composite.links if start == "sp"}
        assert words == {"indices", "values", "dense_shape"}
        assert ("rt", "values | float32[?]", "* Mul") in composite.links

    def test_a_part_that_is_handed_through(self, composite: Drawn):
        """The ragged result takes its row splits from the argument as they are."""
        ragged = next(b for b in composite.boxes if b.startswith("output_0"))
        assert "RaggedTensor" in ragged
        assert any(start == "rt" and end == "output_0" for start, _, end in composite.links)
        assert [b.type for b in composite.graph.outputs][1] == "float32[?,2]"

    def test_every_tensor_shows_with_every_op(self):
        """`--level ops` has a box for each tensor, named by argument and part."""

        def total(sp):
            return tf.sparse.reduce_sum(sp)

        sparse = tf.sparse.SparseTensor([[0, 0]], [1.0], [3, 4])
        seen = drawn(tf.function(total), sparse, level="ops")
        named = {box.partition(" | ")[0] for box in seen.boxes}
        assert {"sp.indices", "sp.values", "sp.dense_shape"} <= named


def test_a_table_is_known_by_its_handle():
    """What is in a lookup table is outside the function: one captured handle, one default value."""
    keys = tf.lookup.KeyValueTensorInitializer(["cat", "dog"], [1, 2])
    table = tf.lookup.StaticHashTable(keys, -1)

    def tokens(s):
        words = tf.strings.split(tf.strings.lower(s), " ")
        return table.lookup(words.to_tensor("<pad>"))

    seen = drawn(tf.function(tokens), tf.TensorSpec([None], tf.string))
    specs = sorted(seen.graph[b.tensors[0].node].outputs[0].dtype for b in seen.graph.captures)
    assert specs == ["int32", "resource"]
    assert seen.types()["LookupTableFindV2"] == 1
    assert seen.types()["HashTableV2"] == 0
    assert any(box.startswith("'<pad>'") or "pad" in box for box in seen.boxes)
    ports = [words for start, words, _ in seen.links if start == "tf.strings.split"]
    assert any("StringSplitV2:1" in words for words in ports)


def test_python_code_in_the_graph_has_no_shapes():
    """Unknown rank is said as such; the calls are ordered, and one that nothing reads is there."""

    def mixed(x):
        a = tf.py_function(lambda t: t.numpy() + 1.0, [x], tf.float32)
        b = tf.numpy_function(abs, [x], tf.float32)
        tf.numpy_function(abs, [x], tf.float32, stateful=False)
        return a + b

    seen = drawn(tf.function(mixed), tf.TensorSpec([3]))
    assert {"EagerPyFunc", "PyFunc", "PyFuncStateless"} <= set(seen.types())
    assert ("EagerPyFunc", "a | float32[...]", "+ AddV2") in seen.links
    assert ("EagerPyFunc", "tf.numpy_function") in seen.dotted
    assert [b.type for b in seen.graph.outputs] == ["float32[...]"]
    assert any("PyFuncStateless" in box for box in seen.boxes)
