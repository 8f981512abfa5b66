"""Choices and loops: what runs under a condition is drawn as such, with its bodies in place."""

from __future__ import annotations

import networkx as nx
import pytest

from graph2mermaid import NodeKind
from tests.tf.drawn import Drawn, drawn

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tf

NEXT = "next iteration"


@pytest.fixture(scope="module")
def branches() -> Drawn:
    def choose(x, y, flag):
        if flag:
            r = tf.matmul(x, y) + 1.0
        else:
            r = tf.identity(x) - y
        return tf.identity(r)

    square = tf.TensorSpec([4, 4])
    return drawn(tf.function(choose), square, square, tf.TensorSpec([], tf.bool))


class TestIf:
    """A data-dependent `if`."""

    def test_it_is_one_op_of_the_graph(self, branches: Drawn):
        """Condition first, then the captured tensors in order; both bodies hang on it."""
        assert branches.types() == {"Placeholder": 3, "StatelessIf": 1, "Identity": 3}
        node = branches.graph["cond"]
        assert node.kind is NodeKind.CONTROL_FLOW
        assert [a.source for a in branches.graph.incoming("cond")] == ["flag", "x", "y"]
        assert {call.role: call.function for call in node.calls} == {
            "then_branch": "cond_true",
            "else_branch": "cond_false",
        }
        assert branches.body("cond_true") == {"MatMul": 1, "Const": 1, "AddV2": 1, "Identity": 1}
        assert branches.body("cond_false") == {"Identity": 2, "Sub": 1}

    def test_each_branch_has_a_frame(self, branches: Drawn):
        """A reader sees two ways, not one list of ops that all run; `then` comes first."""
        assert branches.frames == {"then": ["tf.matmul", "1.0", "+ AddV2"], "else": ["- Sub"]}
        assert list(branches.frames) == ["then", "else"]

    def test_both_ways_start_at_a_diamond_and_join(self, branches: Drawn):
        """Arrows out of the diamond say which way they belong to; the merge has the result."""
        links = branches.links
        assert ("if", "then: x | float32[4,4]", "tf.matmul") in links
        assert ("if", "else: y | float32[4,4]", "- Sub") in links
        assert ("+ AddV2", "r | float32[4,4]", "r") in links
        assert ("- Sub", "r | float32[4,4]", "r") in links
        assert "flag | bool[]" in branches.boxes

    def test_titles_keep_the_line(self, branches: Drawn):
        """However long the file's name is, the line is in the title, and the title is not cut."""
        source = branches.graph["cond"].source
        assert source is not None
        assert all(
            title.endswith(f":{source.line}") and len(title) <= 40 for title in branches.titles
        )


def test_a_result_that_the_user_did_not_ask_for_is_not_drawn():
    """`return` in a branch makes a hidden flag; it is in the graph, and not in the simple picture."""

    def step(x):
        if tf.reduce_sum(x) > 0.0:
            return x + 1.0
        return x - 1.0

    seen = drawn(tf.function(step), tf.TensorSpec([2]))
    assert [str(spec) for spec in seen.graph["cond"].outputs] == ["bool[]", "float32[2]"]
    assert seen.body("cond_false")["Const"] == 4
    assert seen.frames == {"then": ["1.0", "+ AddV2"], "else": ["1.0", "- Sub"]}
    full = drawn(tf.function(step), tf.TensorSpec([2]), level="ops")
    assert sum("True" in box for box in full.boxes) == 4


@pytest.fixture(scope="module")
def nested() -> Drawn:
    def loop(x):
        i = tf.constant(0)
        while i < 3:
            if tf.reduce_sum(x) > 0.0:
                x = tf.matmul(x, x)
            else:
                x = x - 1.0
            i += 1
        return x

    return drawn(tf.function(loop), tf.TensorSpec([2, 2]))


class TestWhile:
    """A `while` with an `if` inside."""

    def test_the_graph_stays_acyclic(self, nested: Drawn):
        """The loop is one op with four loop variables; nothing about it is a cycle."""
        assert len(nested.graph) == 6
        node = nested.graph["while"]
        assert len(node.outputs) == 4
        assert nx.is_directed_acyclic_graph(nested.graph.dag)
        assert nested.graph.back_edges == ()

    def test_the_condition_is_told_from_a_branch_inside(self, nested: Drawn):
        """`while_cond` is the loop's, `while_cond_true` a branch of the `if` in its body."""
        assert {c.role: c.function for c in nested.graph["while"].calls} == {
            "body": "while_body",
            "cond": "while_cond",
        }
        inner = nested.graph.functions["while_body"]["while/cond"]
        assert {c.function for c in inner.calls} == {"while_cond_true", "while_cond_false"}
        assert nested.body("while_cond")["Less"] == 1

    def test_frames_nest_as_the_statements_do(self, nested: Drawn):
        """Condition and body stand side by side, the branches inside the body."""
        condition, body = nested.diagram.frames
        assert [frame.lines[0].partition(" · ")[0] for frame in body.frames] == ["then", "else"]
        assert nested.frames["condition of while"] == ["3", "< Less"]
        assert nested.frames["then"] == ["tf.matmul"]
        assert condition.frames == ()

    def test_the_way_back_is_dotted(self, nested: Drawn):
        """What goes round leads back to the diamond: the test and the new values."""
        assert set(nested.dotted) == {("< Less", "while"), ("x", "while"), ("+ AddV2", "while")}
        back = [words for _, words, end in nested.links if end == "while" and words]
        assert sorted(back) == ["goes on while true", "next iteration", "next iteration"]

    def test_loop_variables_keep_their_names(self, nested: Drawn):
        """A name goes with its tensor into the body, and into the branches in it."""
        links = nested.links
        assert ("while", "i | int32[]", "< Less") in links
        assert ("if", "then: x | float32[2,2] | × 2", "tf.matmul") in links
        assert ("if", "else: x | float32[2,2]", "- Sub") in links

    def test_the_hidden_counter_is_not_drawn(self, nested: Drawn):
        """TensorFlow counts iterations beside the user's own counter."""
        assert len(nested.frames["body of while"]) == 7
        assert sum(box.startswith("+ AddV2") for box in nested.boxes) == 1


@pytest.fixture(scope="module")
def rows() -> Drawn:
    def double_rows(x):
        n = tf.shape(x)[0]
        out = tf.TensorArray(tf.float32, size=n)
        for i in tf.range(n):
            out = out.write(i, x[i] * 2.0)
        return out.stack()

    return drawn(tf.function(double_rows), tf.TensorSpec([None, 3]))


class TestTensorArray:
    """`for i in tf.range(n)` that fills a TensorArray."""

    def test_a_tensor_array_is_a_list_of_tensors(self, rows: Drawn):
        """There is no op called TensorArray; variants join the ops that stand for it."""
        assert not any(op.startswith("TensorArray") for op in rows.types())
        arrows = rows.graph.incoming("while")
        (into,) = [a for a in arrows if a.edge.tensor and a.edge.tensor.dtype == "variant"]
        assert rows.graph[into.source].op == "TensorListReserve"
        stack = next(n.name for n in rows.graph.nodes() if n.op == "TensorListStack")
        assert rows.graph.incoming(stack)[0].source == "while"
        assert rows.body("while_body")["TensorListSetItem"] == 1

    def test_what_the_loop_writes_goes_round(self, rows: Drawn):
        """The list that is written is the loop's, not the empty one from before it."""
        links = rows.links
        assert ("TensorListReserve", "out | variant[]", "while") in links
        assert ("while", "out | variant[]", "TensorListSetItem") in links
        assert ("TensorListSetItem", "while") in rows.dotted
        assert not any(s == "TensorListReserve" and e == "TensorListSetItem" for s, _, e in links)

    def test_the_trip_count_that_nothing_reads(self, rows: Drawn):
        """It is part of the trace and of the counts, and no part of the simple picture."""
        (last,) = [n for n in rows.graph.nodes() if n.op == "Maximum"]
        assert not rows.graph.outgoing(last.name)
        assert {"FloorDiv", "FloorMod", "NotEqual"} <= set(rows.types())
        assert not any("Maximum" in box or "FloorMod" in box for box in rows.boxes)

    def test_what_the_loop_only_reads_goes_past_it(self, rows: Drawn):
        """The rows come straight from the argument."""
        assert ("x", "", "[] StridedSlice") in rows.links


def _sum_up(ds):
    s = tf.constant(0, tf.int64)
    for v in ds:
        s += v
    return s


def test_a_for_over_a_dataset_is_two_datasets():
    """Function-valued attributes of any op are followed, and drawn with arguments and results."""
    seen = drawn(tf.function(_sum_up), tf.data.Dataset.range(5))
    assert {"ScanDataset", "ReduceDataset"} <= set(seen.types())
    assert not any("While" in op for op in seen.types())
    roles = {n.op: [c.role for c in n.calls] for n in seen.graph.nodes() if n.calls}
    assert roles == {"ScanDataset": ["f"], "ReduceDataset": ["f"]}
    assert "+ AddV2" in seen.frames["f of ScanDataset"]
    assert "f of ReduceDataset" in seen.frames
    assert ("+ AddV2", "", "s") in seen.links
    assert "args_0 | int64[]" in seen.boxes


def test_a_for_over_an_iterator_is_a_loop():
    """The same statement over an iterator asks for the next element inside a `while`."""
    seen = drawn(tf.function(_sum_up), iter(tf.data.Dataset.range(5)))
    assert seen.types()["While"] == 1
    body = seen.body("while_body")
    assert body["IteratorGetNextAsOptional"] == body["OptionalHasValue"] == 1
    assert body["StatelessIf"] + body["If"] == 1
    assert "OptionalGetValue" in seen.frames["then"]
    assert seen.graph.inputs[0].name == "ds"


@pytest.fixture(scope="module")
def cases() -> Drawn:
    def pick(i, x):
        ways = [lambda: x + 1.0, lambda: tf.matmul(x, x), lambda: tf.nn.relu(x)]
        return tf.switch_case(i, ways, default=lambda: tf.zeros_like(x))

    return drawn(tf.function(pick), tf.TensorSpec([], tf.int32), tf.TensorSpec([2, 2]))


class TestCase:
    """`tf.switch_case`: all branches in one attribute."""

    def test_the_branches_are_in_order(self, cases: Drawn):
        """The default is the last one."""
        node = cases.graph["switch_case/indexed_case"]
        assert node.op == "StatelessCase"
        assert [call.role for call in node.calls] == [f"branches[{i}]" for i in range(4)]
        ops = [set(cases.body(call.function)) - {"Identity"} for call in node.calls]
        assert ops == [{"Const", "AddV2"}, {"MatMul"}, {"Relu"}, {"Const"}]

    def test_each_has_a_frame_with_its_number(self, cases: Drawn):
        """The last frame says that it is for all other indices."""
        assert cases.frames == {
            "branch 0": ["1.0", "+ AddV2"],
            "branch 1": ["tf.matmul"],
            "branch 2": ["tf.nn.relu"],
            "branch 3 or other": ["[[0.0, 0.0], [0.0, 0.0]]"],
        }

    def test_each_hangs_on_the_diamond(self, cases: Drawn):
        """A branch that takes no tensor is reached by a dotted arrow."""
        links = cases.links
        assert ("case", "branch 1: x | float32[2,2] | × 2", "tf.matmul") in links
        assert ("case", "branch 3", "[[0.0, 0.0], [0.0, 0.0]]") in links
        assert cases.dotted == [("case", "[[0.0, 0.0], [0.0, 0.0]]")]
        assert sum(end == "merge" for _, _, end in links) == 4


def _row(r):
    return tf.reduce_sum(r) * 2.0


class TestMapping:
    """Functions over the rows of a tensor: some are loops, one is not."""

    @pytest.mark.parametrize(
        ("function", "scope"),
        [
            (lambda x: tf.map_fn(_row, x), "map"),
            (lambda x: tf.scan(lambda acc, r: acc + r, x), "scan"),
        ],
        ids=["map_fn", "scan"],
    )
    def test_a_loop(self, function, scope):
        """map_fn and scan are a `while` with a body each."""
        seen = drawn(tf.function(function), tf.TensorSpec([3, 2]))
        assert seen.types()["StatelessWhile"] == 1
        assert seen.graph[f"{scope}/while"].kind is NodeKind.CONTROL_FLOW
        assert set(seen.graph.functions) == {f"{scope}_while_cond", f"{scope}_while_body"}
        assert {"condition of while", "body of while"} == set(seen.frames)

    def test_no_loop(self):
        """vectorized_map has no loop and no function, and one argument alone."""
        seen = drawn(tf.function(lambda x: tf.vectorized_map(_row, x)), tf.TensorSpec([3, 2]))
        assert not any("While" in op for op in seen.types())
        assert seen.graph.functions == {}
        assert seen.types()["PlaceholderWithDefault"] == 1
        assert [binding.name for binding in seen.graph.inputs] == ["x"]
        assert not seen.dotted


def test_a_loop_with_several_variables():
    """tf.while_loop: what changes goes through the diamond, what does not goes past it."""

    def power(x, w):
        i = tf.constant(0)
        _, y, _ = tf.while_loop(
            lambda i, y, w: tf.reduce_sum(y) < tf.reduce_sum(w),
            lambda i, y, w: (i + 1, y * w, w),
            [i, x, w],
        )
        return y

    seen = drawn(tf.function(power), tf.TensorSpec([2]), tf.TensorSpec([2]))
    assert ("w", "", "* Mul") in seen.links
    assert ("w", "", "while") not in seen.links
    assert ("* Mul", "while") in seen.dotted
    assert "tf.reduce_sum" in " ".join(seen.frames["condition of while"])


def test_a_condition_on_captured_values():
    """A loop's condition may read an argument and a variable of the function around it."""
    bound = tf.Variable(10.0, name="bound")

    def grow(x, step):
        while tf.reduce_sum(x) < bound + step:
            x = x * 2.0
        return x

    seen = drawn(tf.function(grow), tf.TensorSpec([2]), tf.TensorSpec([]))
    inside = seen.frames["condition of while"]
    assert "+ AddV2" in inside
    assert ("step", "", "+ AddV2") in seen.links
    assert ("bound", "", "+ AddV2") in seen.links


def test_a_variable_reaches_the_branch_that_changes_it():
    """A handle is drawn once: from the variable to the op in the branch that uses it."""
    total = tf.Variable(0.0, name="total")

    def count(x):
        if tf.reduce_sum(x) > 0.0:
            total.assign_add(1.0)
        return x * 2.0

    seen = drawn(tf.function(count), tf.TensorSpec([2]))
    assert ("total", "", "AssignAddVariableOp") in seen.links
    assert not any(start == "total" and end == "if" for start, _, end in seen.links)
    assert ("if", "merge") in seen.dotted


def test_a_value_passed_through_a_branch():
    """A branch that changes nothing leads from the diamond straight to the merge."""

    def clip(x):
        if tf.reduce_sum(x) > 1.0:
            x = x / 2.0
        return x

    seen = drawn(tf.function(clip), tf.TensorSpec([2]))
    assert ("if", "else: x | float32[2]", "x") in seen.links
    assert list(seen.frames) == ["then"]


class TestLoopValues:
    """What a loop's values are called, and how they go round."""

    def test_a_value_may_take_the_place_of_another(self):
        """`a` is what `b` was: there is a way back for both, one without an op on it."""

        def fibonacci(n):
            a = tf.constant(0)
            b = tf.constant(1)
            for _ in tf.range(n):
                a, b = b, a + b
            return a

        seen = drawn(tf.function(fibonacci), tf.TensorSpec([], tf.int32))
        back = [start for start, words, end in seen.links if (words, end) == (NEXT, "while")]
        assert sorted(back) == ["+ AddV2", "AddV2", "while"]
        assert {("while", "while"), ("+ AddV2", "while")} <= set(seen.dotted)

    def test_a_condition_may_be_a_value_of_the_loop(self):
        """`while go` tests nothing in a frame of its own; the diamond goes on by its own value."""

        def grow(x):
            go = tf.constant(True)
            while go:
                x = x * 2.0
                go = tf.reduce_sum(x) < 10.0
            return x

        seen = drawn(tf.function(grow), tf.TensorSpec([2]))
        assert ("while", "goes on while true: go", "while") in seen.links
        assert ("while", "while") in seen.dotted
        assert ("while", NEXT, "while") not in seen.links

    def test_the_name_from_outside_is_not_the_loops(self):
        """`y = x` and `best = x` make no op, so both enter as `x`, and neither is `x` inside."""

        def highest(x):
            y = x
            best = x
            i = tf.constant(0)
            while i < 3:
                y = y * 2.0
                best = tf.maximum(best, y)
                i += 1
            return best, y

        seen = drawn(tf.function(highest), tf.TensorSpec([2]))
        leaving = {(words, end) for start, words, end in seen.links if start == "while"}
        assert ("float32[2]", "* Mul") in leaving
        assert ("float32[2]", "tf.maximum") in leaving
        assert ("i | int32[]", "< Less") in leaving
        assert not any(words.startswith("x") for words, _ in leaving)
        assert ("* Mul", "y | float32[2]", "tf.maximum") in seen.links

    def test_tensors_as_nodes(self):
        """The loop's value is one node: the body and the result read it, and it reads neither."""

        def grow(x):
            while tf.reduce_sum(x) < 10.0:
                x = x * 2.0
            return x

        seen = drawn(tf.function(grow), tf.TensorSpec([2]), tensors="nodes")
        assert {("while", "", "x"), ("x", "", "* Mul"), ("x", "", "output_0")} <= set(seen.links)
        assert not any(start == "output_0" for start, _, _ in seen.links)
        assert seen.frames["condition of while"] == [
            "tf.reduce_sum",
            "while/Sum",
            "10.0",
            "< Less",
        ]


def test_a_hidden_type_leaves_the_variable_of_that_scope():
    """`MatMul/ReadVariableOp/resource` is below a scope called MatMul, and is not a MatMul."""
    weights = tf.Variable(tf.ones([2, 2]), name="w")
    product = tf.function(lambda x: tf.matmul(x, weights) + 1.0)
    seen = drawn(product, tf.TensorSpec([2, 2]), hide=("MatMul", "Mull"))
    assert ("w", "through MatMul", "+ AddV2") in seen.links
    assert ("x", "through MatMul", "+ AddV2") in seen.links
    assert "Nothing is hidden for Mull: there is no such op type" in seen.diagram.left_out[-1]
