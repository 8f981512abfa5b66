"""GraphDef to Graph: hand-written protos for the edge cases, TensorFlow itself as the oracle."""

from __future__ import annotations

import pytest

from graph2mermaid.errors import TargetError
from graph2mermaid.graph import Call, EdgeKind, NodeKind, TensorRef
from graph2mermaid.sources.graphdef import graph_from_graph_def
from graph2mermaid.sources.names import argument_name, unique_names
from graph2mermaid.sources.node_defs import Library
from graph2mermaid.sources.shapes import infer_shapes

pytestmark = pytest.mark.tf

FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'


def graph_def(text):
    """Read a GraphDef in text form."""
    from google.protobuf import text_format
    from tensorflow.core.framework import graph_pb2

    return text_format.Parse(text, graph_pb2.GraphDef())


def graph(text):
    """Make the graph of a GraphDef in text form."""
    return graph_from_graph_def(graph_def(text), name="g")


def node(name, op, *inputs, attrs=""):
    """Write a NodeDef."""
    written = " ".join(f'input: "{text}"' for text in inputs)
    return f'node {{ name: "{name}" op: "{op}" {written} {attrs} }}'


def attr(key, value):
    """Write an attribute."""
    return f'attr {{ key: "{key}" value {{ {value} }} }}'


def dtype(name, key="dtype"):
    """Write an attribute that is a type."""
    return attr(key, f"type: DT_{name}")


def placeholder(name, kind="FLOAT", shape=""):
    """Write a Placeholder."""
    return node(name, "Placeholder", attrs=dtype(kind) + shape)


def const(name, tensor, kind="INT32"):
    """Write a Const."""
    return node(
        name, "Const", attrs=dtype(kind) + attr("value", f"tensor {{ dtype: DT_{kind} {tensor} }}")
    )


def edges(made):
    """List the edges of a graph as (source, port, target, port); None for control edges."""
    arrows = [*made.arrows(), *made.back_edges]
    return sorted(
        ((a.source, a.edge.source_port, a.target, a.edge.target_port) for a in arrows), key=str
    )


# --- edges -------------------------------------------------------------------------------------


def test_ports_parallel_edges_and_control_edges():
    """`split:1` is output 1, one tensor may feed several inputs, `^x` is an order."""
    made = graph(
        placeholder("x")
        + const("axis", "int_val: 0 tensor_shape {}")
        + node("split", "Split", "axis", "x", attrs=attr("num_split", "i: 2") + FLOAT)
        + node("add", "AddV2", "split:1", "split:1", attrs=FLOAT)
        + node("sub", "Sub", "split", "add", "^x", attrs=FLOAT)
    )
    assert edges(made) == sorted(
        [
            ("axis", 0, "split", 0),
            ("x", 0, "split", 1),
            ("split", 1, "add", 0),
            ("split", 1, "add", 1),
            ("split", 0, "sub", 0),
            ("add", 0, "sub", 1),
            ("x", None, "sub", None),
        ],
        key=str,
    )
    assert [a.edge.kind for a in made.incoming("sub")] == [EdgeKind.DATA] * 2 + [EdgeKind.CONTROL]


def test_an_edge_from_a_constant_is_called_as_the_consumer_calls_it():
    """List arguments have their name at each of their inputs; other edges have none."""
    made = graph(
        placeholder("x")
        + const("c", "int_val: 0 tensor_shape {}")
        + node("cat", "ConcatV2", "x", "x", "c", attrs=attr("N", "i: 2") + FLOAT)
        + node("pack", "Pack", "c", "c", attrs=attr("N", "i: 2") + dtype("INT32", "T"))
    )
    assert [a.edge.argument for a in made.incoming("cat")] == [None, None, "axis"]
    assert [a.edge.argument for a in made.incoming("pack")] == ["values", "values"]


def test_loops_of_version_1_keep_their_back_edges_apart():
    """A lowered loop is no obstacle: NextIteration -> Merge is a back edge, the rest is a DAG."""
    made = graph(
        placeholder("x")
        + node("enter", "Enter", "x", attrs=FLOAT + attr("frame_name", 's: "loop"'))
        + node("merge", "Merge", "enter", "next", attrs=FLOAT + attr("N", "i: 2"))
        + node("next", "NextIteration", "merge", attrs=FLOAT)
    )
    assert [(a.source, a.target, a.edge.target_port) for a in made.back_edges] == [
        ("next", "merge", 1)
    ]
    assert made["enter"].attrs == {"frame_name": "loop"}
    assert {n.kind for n in made.nodes() if n.name != "x"} == {NodeKind.CONTROL_FLOW}


# --- types and shapes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "types"),
    [
        (node("n", "Relu", "x", attrs=FLOAT), ["float32"]),
        (node("n", "Split", "x", "x", attrs=attr("num_split", "i: 3") + FLOAT), ["float32"] * 3),
        (
            node("n", "IdentityN", attrs=attr("T", "list { type: [DT_FLOAT, DT_INT32] }")),
            ["float32", "int32"],
        ),
        (node("n", "ArgMax", "x", "x", attrs=FLOAT), ["int64"]),
        (node("n", "Shape", "x", attrs=FLOAT), ["int32"]),
        (node("n", "VariableV2", attrs=dtype("FLOAT")), ["float32"]),
        (node("n", "Relu", "x", attrs=dtype("FLOAT_REF", "T")), ["float32"]),
        (node("n", "HashTableV2"), ["resource"]),
        (node("n", "NoOp"), []),
        (node("n", "Relu", "x"), ["unknown"]),
        (node("n", "Split", "x", "x", attrs=FLOAT), []),
        (node("n", "NoSuchOp", "x", attrs=FLOAT), []),
    ],
    ids=[
        "type attribute",
        "number attribute",
        "type list",
        "default type",
        "other default type",
        "reference op",
        "reference type",
        "fixed type",
        "no output",
        "type missing",
        "number missing",
        "unregistered op",
    ],
)
def test_output_types_follow_the_op_definition(text, types):
    """Types and number of outputs are worked out from the registry and the op's attributes."""
    assert [out.dtype for out in graph(placeholder("x") + text)["n"].outputs] == types


SHAPE = "shape { dim { size: -1 } dim { size: 4 } }"
SHAPES = f"list {{ {SHAPE} shape {{ unknown_rank: true }} }}"


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (placeholder("n", shape=attr("shape", SHAPE)), [(None, 4)]),
        (placeholder("n", shape=attr("shape", "shape { unknown_rank: true }")), [None]),
        (placeholder("n"), [None]),
        (const("n", "int_val: 7 tensor_shape { dim { size: 2 } }"), [(2,)]),
        (
            node("n", "Relu", attrs=FLOAT + attr("_output_shapes", f"list {{ {SHAPE} }}")),
            [(None, 4)],
        ),
        (node("n", "Relu", attrs=FLOAT + attr("_output_shapes", "list { i: 3 }")), [None]),
        (
            node(
                "n",
                "StatelessWhile",
                attrs=attr("T", "list { type: [DT_FLOAT, DT_INT32] }")
                + attr("output_shapes", SHAPES),
            ),
            [(None, 4), None],
        ),
        (
            node("n", "RangeDataset", attrs=attr("output_shapes", f"list {{ {SHAPE} }}")),
            [None],
        ),
        (node("n", "VarHandleOp", attrs=dtype("FLOAT") + attr("shape", SHAPE)), [None]),
    ],
    ids=[
        "placeholder",
        "unknown rank",
        "no shape",
        "constant",
        "_output_shapes",
        "damaged _output_shapes",
        "loop variables",
        "elements of a dataset",
        "variable behind a handle",
    ],
)
def test_shapes_are_what_the_file_says_of_outputs(text, shapes):
    """Each attribute that tells shapes is read for the tensors that it is about."""
    assert [out.shape for out in graph(text)["n"].outputs] == shapes


def test_a_variable_says_what_it_holds():
    """The handle is a resource; type and shape of the value stand beside it."""
    made = graph(
        node(
            "v",
            "VarHandleOp",
            attrs=dtype("FLOAT") + attr("shape", SHAPE) + attr("shared_name", 's: "dense/kernel"'),
        )
        + node("old", "VariableV2", attrs=dtype("HALF") + attr("shape", SHAPE))
    )
    assert (str(made["v"].holds), made["v"].label) == ("float32[?,4]", "dense/kernel")
    assert str(made["old"].holds) == "float16[?,4]"


# --- constants and attributes ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tensor", "kind", "value"),
    [
        ("float_val: 0.1 tensor_shape {}", "FLOAT", "0.1"),
        ("int_val: [0, 2] tensor_shape { dim { size: 2 } }", "INT32", "[0, 2]"),
        ("int_val: 7 tensor_shape { dim { size: 2 } dim { size: 1 } }", "INT32", "[[7], [7]]"),
        ("bool_val: true tensor_shape {}", "BOOL", "True"),
        ('string_val: "caf\\303\\251 \\"<b>" tensor_shape {}', "STRING", "'café \"<b>'"),
        ("float_val: nan tensor_shape {}", "FLOAT", "nan"),
        ("half_val: 15360 tensor_shape {}", "HALF", "1.0"),
        ("tensor_shape { dim { size: 0 } }", "FLOAT", "[]"),
        ("tensor_shape { dim { size: 1000000 } dim { size: 0 } }", "FLOAT", "[]"),
        ("int_val: 1 tensor_shape { dim { size: 9 } }", "INT32", None),
        ("float_val: 1 tensor_shape { dim { size: 1099511627776 } }", "FLOAT", None),
        ('tensor_content: "\\001" tensor_shape { dim { size: 2 } }', "INT32", None),
        ("tensor_shape { unknown_rank: true }", "FLOAT", None),
        ("tensor_shape {}", "VARIANT", None),
    ],
    ids=[
        "scalar",
        "vector",
        "repeated value",
        "bool",
        "text",
        "not a number",
        "half",
        "empty",
        "empty but large",
        "nine elements",
        "a terabyte when expanded",
        "damaged",
        "no shape",
        "variant",
    ],
)
def test_only_small_constants_show_their_value(tensor, kind, value):
    """At most eight elements are written out; whatever is larger is never expanded."""
    assert graph(const("n", tensor, kind))["n"].value == value


def test_attributes_are_short_scalars():
    """What fits on a line is kept; types, defaults, tensors, binary text and counters are not."""
    made = graph(
        node(
            "conv",
            "Conv2D",
            attrs=FLOAT
            + attr("strides", "list { i: [1, 2, 2, 1] }")
            + attr("padding", 's: "SAME"')
            + attr("data_format", 's: "NHWC"')
            + attr("explicit_paddings", "list { }")
            + attr("use_cudnn_on_gpu", "b: false"),
        )
        + node("odd", "NoSuchOp", attrs=attr("f", "f: inf") + attr("bytes", 's: "\\000\\001"')
            + attr("long", f's: "{"x" * 1000}"') + attr("many", f"list {{ i: {[0] * 100} }}")
            + attr("shapes", SHAPES) + attr("words", 'list { s: ["BiasAdd", "Relu"] }')
            + attr("of", 's: "__forward_f_12"') + attr("_class", 'list { s: "loc:@x" }')
            + attr("_XlaMustCompile", "b: true") + attr("none", ""))
    )  # fmt: skip
    assert made["conv"].attrs == {
        "padding": "SAME",
        "strides": "[1,2,2,1]",
        "use_cudnn_on_gpu": False,
    }
    odd = dict(made["odd"].attrs)
    assert len(str(odd.pop("long"))) == 200
    assert str(odd.pop("many")).endswith("0,...]")
    assert odd == {
        "_XlaMustCompile": True,
        "f": "inf",
        "of": "f (forward)",
        "shapes": "[[?,4],[...]]",
        "words": "[BiasAdd,Relu]",
    }


# --- kinds, inputs, outputs --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (placeholder("n"), NodeKind.INPUT),
        (placeholder("n", "RESOURCE"), NodeKind.VARIABLE),
        (node("n", "PlaceholderWithDefault", attrs=dtype("FLOAT")), NodeKind.INPUT),
        (node("n", "_Arg", attrs=FLOAT), NodeKind.INPUT),
        (node("n", "_Arg", attrs=dtype("RESOURCE", "T")), NodeKind.VARIABLE),
        (const("n", "tensor_shape {}"), NodeKind.CONST),
        (node("n", "VarHandleOp", attrs=dtype("FLOAT")), NodeKind.VARIABLE),
        (node("n", "Variable", attrs=dtype("FLOAT")), NodeKind.VARIABLE),
        (node("n", "HashTable"), NodeKind.VARIABLE),
        (node("n", "MutableHashTableV2"), NodeKind.VARIABLE),
        (node("n", "IteratorV2"), NodeKind.VARIABLE),
        (node("n", "FIFOQueueV2"), NodeKind.VARIABLE),
        (node("n", "TPUPartitionedCall"), NodeKind.CALL),
        (node("n", "StatefulPartitionedCall"), NodeKind.CALL),
        (node("n", "StatelessCase"), NodeKind.CONTROL_FLOW),
        (node("n", "While"), NodeKind.CONTROL_FLOW),
        (node("n", "RefSwitch"), NodeKind.CONTROL_FLOW),
        (node("n", "_SwitchN"), NodeKind.CONTROL_FLOW),
        (node("n", "Relu"), NodeKind.OP),
        (node("n", "AnonymousIteratorV3"), NodeKind.VARIABLE),
        (node("n", "NoOp"), NodeKind.OP),
        (node("n", "NoSuchOp"), NodeKind.OP),
    ],
)
def test_the_kind_follows_from_the_op(text, kind):
    """Inputs, constants, state, calls and control flow are told apart from plain ops."""
    if "AnonymousIteratorV3" in text:
        from tensorflow.python.framework import op_def_registry

        if op_def_registry.get("AnonymousIteratorV3") is None:
            pytest.skip("not in this TensorFlow")
    assert graph(text)["n"].kind is kind


def names(bindings):
    """List bindings as text: name, tensors, type."""
    return [f"{b.name} = {', '.join(map(str, b.tensors))} {b.type}".strip() for b in bindings]


def test_inputs_are_placeholders_and_outputs_are_what_nothing_reads():
    """Resources are captures; unused constants, inputs and ops without results are no outputs."""
    user_name = attr("_user_specified_name", 's: "image"')
    made = graph(
        placeholder("x", shape=attr("shape", SHAPE) + user_name)
        + placeholder("v", "RESOURCE")
        + placeholder("unused")
        + const("c", "tensor_shape {}")
        + node("top", "TopKV2", "x", "c", attrs=FLOAT)
        + node("relu", "Relu", "x", attrs=FLOAT)
        + node("last", "NoOp", "^relu")
        + node("custom", "NoSuchOp", "x", attrs=attr("_output_shapes", f"list {{ {SHAPE} }}"))
    )
    assert names(made.inputs) == ["image = x:0 float32[?,4]", "unused = unused:0 float32[...]"]
    assert names(made.captures) == ["v = v:0 resource[...]"]
    assert names(made.outputs) == [
        "top:0 = top:0 float32[...]",
        "top:1 = top:1 int32[...]",
        "custom = custom:0 unknown[?,4]",
    ]


def test_what_others_wait_for_is_an_output_only_when_nothing_else_is():
    """An op with a result that only orders others is a step on the way."""
    text = placeholder("x") + node("relu", "Relu", "x", attrs=FLOAT) + node("done", "NoOp", "^relu")
    assert [b.name for b in graph(text).outputs] == ["relu"]
    more = text + node("abs", "Abs", "x", attrs=FLOAT)
    assert [b.name for b in graph(more).outputs] == ["abs"]


def test_a_traced_function_ends_in_identities():
    """TensorFlow ends what it traces in `Identity`, `Identity_1`...; other ends are dead ops."""
    made = graph(
        placeholder("x")
        + node("sgd/Identity", "Identity", "x", attrs=FLOAT)
        + node("Identity", "Identity", "x", attrs=FLOAT)
        + node("Identity_1", "Identity", "x", attrs=FLOAT)
        + node("dead", "Relu", "x", attrs=FLOAT)
    )
    assert [b.name for b in made.outputs] == ["Identity", "Identity_1"]


def test_function_graphs_number_their_inputs_and_outputs():
    """In a graph that ran, `_Arg` and `_Retval` say their position."""
    index = [attr("index", f"i: {i}") for i in range(2)]
    made = graph(
        node("second", "_Arg", attrs=FLOAT + index[1])
        + node("first", "_Arg", attrs=FLOAT)
        + node("r1", "_Retval", "first", attrs=FLOAT + index[1])
        + node("r0", "_Retval", "second", attrs=FLOAT + index[0])
    )
    assert [b.name for b in made.inputs] == ["first", "second"]
    assert names(made.outputs) == ["r0 = second:0 float32[...]", "r1 = first:0 float32[...]"]


# --- functions ---------------------------------------------------------------------------------


def function(name, *calls):
    """Write a library function that calls others and returns its argument."""
    ops = "".join(
        f'node_def {{ name: "call{i}" op: "PartitionedCall" input: "x" '
        f"{attr('Tin', 'list { type: DT_FLOAT }')} {attr('Tout', 'list { type: DT_FLOAT }')} "
        f'{attr("f", f"""func {{ name: "{callee}" }}""")} }}'
        for i, callee in enumerate(calls)
    )
    return (
        f'function {{ signature {{ name: "{name}" input_arg {{ name: "x" type: DT_FLOAT }} '
        f'output_arg {{ name: "y" type: DT_FLOAT }} }} {ops} ret {{ key: "y" value: "x" }} }}'
    )


def library(*functions):
    """Write a function library."""
    return f"library {{ {' '.join(functions)} }}"


def func(name):
    """Write the value of an attribute that holds a function."""
    return f'func {{ name: "{name}" }}'


def test_functions_hang_on_any_attribute_of_any_op():
    """Every function-valued attribute is a call; a list of functions numbers its roles."""
    made = graph(
        library(*(function(f"__inference_f{i}_{i}0") for i in range(6)))
        + node("case", "StatelessCase", attrs=attr(
            "branches", f'list {{ {func("__inference_f0_00")} {func("__inference_f1_10")} }}'))
        + node("if", "If", attrs=attr("else_branch", func("__inference_f3_30"))
            + attr("then_branch", func("__inference_f2_20")))
        + node("map", "MapDataset", attrs=attr("f", func("__inference_f4_40")))
        + node("odd", "NoSuchOp", attrs=attr("g", func("__inference_f5_50")))
    )  # fmt: skip
    assert {n.name: n.calls for n in made.nodes()} == {
        "case": (Call("branches[0]", "f0"), Call("branches[1]", "f1")),
        "if": (Call("then_branch", "f2"), Call("else_branch", "f3")),
        "map": (Call("f", "f4"),),
        "odd": (Call("g", "f5"),),
    }
    assert list(made.functions) == ["f0", "f1", "f2", "f3", "f4", "f5"]


def test_a_function_as_op_type_is_a_call():
    """Before PartitionedCall the op type was the function itself."""
    made = graph(
        library(function("__inference_old_7"))
        + placeholder("x")
        + node("call", "__inference_old_7", "x")
    )
    call = made["call"]
    assert (call.op, call.kind, call.calls) == ("old", NodeKind.CALL, (Call("f", "old"),))
    assert [str(out) for out in call.outputs] == ["float32[...]"]


def test_the_counter_in_an_argument_of_a_loop_condition_goes():
    """TensorFlow names unused arguments of a condition after the condition, counter included."""
    argument = "while_cond_16___redundant_placeholder0"
    text = function("while_cond_16").replace('name: "x"', f'name: "{argument}"')
    made = graph(
        library(text.replace('value: "x"', f'value: "{argument}"'))
        + node("while", "While", attrs=attr("cond", func("while_cond_16")))
    )
    body = made.functions["while_cond"]
    assert [n.name for n in body.nodes()] == ["while_cond___redundant_placeholder0"]
    assert body.inputs[0].tensors == body.outputs[0].tensors


def test_only_what_is_reachable_is_kept():
    """The library also holds functions that nothing calls; those of bodies count as called."""
    made = graph(
        library(
            function("__inference_dead_1"),
            function("__inference_inner_2"),
            function("__inference_outer_3", "__inference_inner_2", "__inference_outer_3"),
        )
        + node("call", "PartitionedCall", attrs=attr("f", func("__inference_outer_3")))
    )
    assert list(made.functions) == ["outer", "inner"]
    assert made.functions["outer"]["call1"].calls == (Call("f", "outer"),)
    assert all(not body.functions for body in made.functions.values())


def test_a_function_that_the_file_lacks_is_named():
    """A reference that leads nowhere is an attribute, not a call."""
    made = graph(node("call", "PartitionedCall", attrs=attr("f", func("__inference_gone_3"))))
    assert made["call"].calls == ()
    assert made["call"].attrs == {"f": "gone"}
    assert made.functions == {}


def test_a_body_has_a_binding_for_each_position():
    """Arguments and results are told by position; a result may be an argument itself."""
    made = graph(
        """library { function {
            signature { name: "f"
              input_arg { name: "a" type: DT_FLOAT } input_arg { name: "split" type: DT_RESOURCE }
              output_arg { name: "half" type: DT_FLOAT } output_arg { name: "same" type: DT_FLOAT }
              control_output: "done" }
            node_def { name: "axis" op: "Const" attr { key: "value" value { tensor {
                dtype: DT_INT32 tensor_shape {} int_val: 0 } } }
                attr { key: "dtype" value { type: DT_INT32 } } }
            node_def { name: "split" op: "Split" input: "axis:output:0" input: "a"
                attr { key: "T" value { type: DT_FLOAT } }
                attr { key: "num_split" value { i: 2 } } }
            node_def { name: "gone" op: "NoOp" input: "^split" }
            ret { key: "half" value: "split:output:1" } ret { key: "same" value: "a" }
            control_ret { key: "done" value: "gone" }
            arg_attr { key: 0 value { attr { key: "_output_shapes" value { list {
                shape { dim { size: 6 } } } } } } }
            attr { key: "_noinline" value { b: true } }
        } }"""
        + node("call", "PartitionedCall", attrs=attr("f", func("f")))
    )
    body = made.functions["f"]
    assert names(body.inputs) == ["a = a:0 float32[6]", "split = split (argument):0 resource[...]"]
    assert names(body.outputs) == ["half = split:1 float32[...]", "same = a:0 float32[6]"]
    assert [n.kind for n in body.nodes() if n.op == "_Arg"] == [NodeKind.INPUT] * 2
    assert edges(body) == sorted(
        [("axis", 0, "split", 0), ("a", 0, "split", 1), ("split", None, "gone", None)], key=str
    )
    assert body.attrs == {"_noinline": True, "control_outputs": "gone"}


# --- damage ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (placeholder("x") * 2, "g: damaged graph: two nodes are called 'x'"),
        (node("n", "Relu", "y"), "g: damaged graph: edge y -> n: no node 'y'"),
        (node("n", "Relu", "y:z"), "g: damaged graph: edge y:z -> n: no node 'y:z'"),
        (node("n", "Relu", ""), "g: damaged graph: edge  -> n: no node ''"),
        (
            library(function("f").replace('value: "x"', 'value: "q:z:0"'))
            + node("call", "f", attrs=""),
            "g: damaged graph: result 'y': no node 'q'",
        ),
    ],
    ids=["twice", "no source", "no port", "empty input", "no result"],
)
def test_damage_is_one_clear_line(text, said):
    """A graph that does not hang together is refused, with the place that does not."""
    with pytest.raises(TargetError) as caught:
        graph(text)
    assert str(caught.value) == said


def test_an_output_that_the_op_lacks_is_drawn_without_a_type():
    """What an op gives out in this TensorFlow may be less than what the file reads from it."""
    made = graph(placeholder("x") + node("n", "Relu", "x:3", attrs=FLOAT))
    (arrow,) = made.arrows()
    assert (arrow.edge.source_port, arrow.edge.tensor) == (3, None)


# --- TensorFlow as the oracle ------------------------------------------------------------------


def _control_flow():
    import tensorflow as tf

    @tf.function
    def inner(a):
        return tf.nn.relu(a @ a)

    @tf.function
    def outer(x, n):
        for _ in tf.range(n):
            x = inner(x)
            if tf.reduce_sum(x) > 1.0:
                x = x * 2.0
        first, rest = tf.split(x, [1, -1])
        picked = tf.switch_case(n, [lambda: first, lambda: first + 1.0])
        values, where = tf.unique(tf.reshape(x, [-1]))
        with tf.control_dependencies([tf.debugging.assert_greater(n, 0)]):
            return tf.concat([first, rest, picked], 0), values, where

    return outer.get_concrete_function(tf.TensorSpec([4, 4]), tf.TensorSpec([], tf.int32))


def _dataset():
    import tensorflow as tf

    @tf.function
    def over(x):
        data = tf.data.Dataset.range(5).filter(lambda v: v > 1).map(lambda v: v * 2).batch(2)
        for batch in data:
            x += tf.cast(tf.reduce_sum(batch), tf.float32)
        return x

    return over.get_concrete_function(tf.TensorSpec([]))


def _training():
    import tensorflow as tf

    weights = tf.Variable(tf.ones([3, 2]), name="w")

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.softmax(x @ weights) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        tf.print(loss)
        return loss

    return step.get_concrete_function(tf.TensorSpec([None, 3]))


def _from_functions():
    return [make().graph.as_graph_def() for make in (_control_flow, _dataset, _training)]


def version_1_loop():
    """Make the GraphDef of a loop and a condition as TensorFlow 1 wrote them."""
    import tensorflow as tf

    v1 = tf.compat.v1
    built = tf.Graph()
    was_on = v1.control_flow_v2_enabled()
    v1.disable_control_flow_v2()
    try:
        with built.as_default():
            x = v1.placeholder(tf.float32, [2], name="x")
            _, y = v1.while_loop(
                lambda i, y: i < 3, lambda i, y: (i + 1, y * 2.0), [0, x], name="loop"
            )
            z = v1.cond(tf.reduce_sum(y) > 1.0, lambda: y + 1.0, lambda: y - 1.0, name="branch")
            tf.identity(z, name="out")
    finally:
        if was_on:
            v1.enable_control_flow_v2()
    return built.as_graph_def()


def facts_of(made):
    """Say of each op what the oracle can say as well."""
    found = {n.name: [n.outputs, {}, set()] for n in made.nodes()}
    for arrow in [*made.arrows(), *made.back_edges]:
        if arrow.edge.kind is EdgeKind.CONTROL:
            found[arrow.target][2].add(arrow.source)
        else:
            place = found[arrow.target][1]
            assert arrow.edge.target_port not in place
            place[arrow.edge.target_port] = TensorRef(arrow.source, arrow.edge.source_port)
    return found


def facts_of_tensorflow(built):
    """Say of each op of a `tf.Graph` what TensorFlow knows."""
    from graph2mermaid.graph import TensorSpec

    def spec(tensor):
        known = tensor.shape.rank is not None
        shape = tuple(tensor.shape.as_list()) if known else None
        return TensorSpec(tensor.dtype.base_dtype.name, shape)

    return {
        op.name: [
            tuple(spec(tensor) for tensor in op.outputs),
            {i: TensorRef(t.op.name, t.value_index) for i, t in enumerate(op.inputs)},
            {source.name for source in op.control_inputs},
        ]
        for op in built.get_operations()
    }


def test_tensorflow_reads_the_same_graph():
    """Outputs, edges with both ports, and control edges equal those TensorFlow itself imports."""
    import tensorflow as tf

    for proto in [*_from_functions(), version_1_loop()]:
        shapes, problem = infer_shapes(proto)
        assert problem is None
        made = graph_from_graph_def(proto, name="g", shapes=shapes)
        with tf.Graph().as_default() as built:
            tf.graph_util.import_graph_def(proto, name="")
        assert facts_of(made) == facts_of_tensorflow(built)


def test_tensorflow_reads_the_same_bodies():
    """So do the bodies of all functions that are reached, their arguments and results."""
    import tensorflow as tf
    from tensorflow.python.framework.function_def_to_graph import function_def_to_graph

    compared = 0
    for proto in _from_functions():
        shapes, _ = infer_shapes(proto)
        made = graph_from_graph_def(proto, name="g", shapes=shapes)
        definitions = {f.signature.name: f for f in proto.library.function}
        for raw, name in unique_names(Library(definitions).reachable(proto.node)).items():
            body = made.functions[name]
            with tf.Graph().as_default():
                tf.graph_util.import_graph_def(proto, name="")
                built = function_def_to_graph(definitions[raw])
            expected = {argument_name(op): fact for op, fact in facts_of_tensorflow(built).items()}
            assert facts_of(body) == expected
            results = [TensorRef(argument_name(t.op.name), t.value_index) for t in built.outputs]
            assert [b.tensors[0] for b in body.outputs] == results
            arguments = [argument_name(t.op.name) for t in built.inputs]
            assert [b.tensors[0].node for b in body.inputs] == arguments
            compared += 1
    assert compared >= 9


def test_the_version_1_loop_is_a_dag_with_two_back_edges():
    """The loop's counters and values go round once each; what is left is acyclic."""
    made = graph_from_graph_def(version_1_loop(), name="g")
    assert len(made) == 37
    assert {(a.source, a.target) for a in made.back_edges} == {
        ("loop/NextIteration", "loop/Merge"),
        ("loop/NextIteration_1", "loop/Merge_1"),
    }
    assert [b.name for b in made.inputs] == ["x"]
    assert [b.name for b in made.outputs] == ["loop/Exit", "out"]


def test_two_traces_of_one_function_make_equal_graphs():
    """Counters of TensorFlow's own leave no trace, in names and attributes alike."""
    made = [
        graph_from_graph_def(make().graph.as_graph_def(), name="g")
        for make in (_control_flow, _control_flow)
    ]
    assert made[0] == made[1]
    text = repr([list(g.nodes()) for g in made[0].functions.values()])
    assert "__inference" not in text
