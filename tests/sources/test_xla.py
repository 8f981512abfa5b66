"""What XLA compiles, held against the HLO text that TensorFlow prints of the same function."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import graph2mermaid
from graph2mermaid.capture import Capture
from graph2mermaid.graph import Graph, NodeKind, Stage
from graph2mermaid.hlo import Module
from graph2mermaid.serde import dumps, loads
from graph2mermaid.sources.hlo_graph import graph_of_module
from graph2mermaid.sources.hlo_proto import module_of
from graph2mermaid.sources.hlo_text import parse_hlo
from graph2mermaid.sources.tf_function import graph_of
from graph2mermaid.sources.xla import compile_hlo, compiler_ir

pytestmark = pytest.mark.tf
tf = pytest.importorskip("tensorflow")


def dense(x, w, b):
    return tf.nn.relu(tf.matmul(x, w) + b)


def convolution(x, k):
    return tf.nn.conv2d(x, k, strides=2, padding="VALID")


def looped(x):
    for _ in tf.range(3):
        x = tf.tanh(x) * 2.0
    return x


def chosen(x):
    if tf.reduce_sum(x) > 0.0:
        y = tf.nn.softmax(tf.matmul(x, x), 0)
    else:
        y = tf.linalg.matmul(tf.nn.relu(x), x)
    return y


def normalized(x):
    mean = tf.reduce_mean(x, -1, keepdims=True)
    return (x - mean) / tf.sqrt(tf.reduce_mean(tf.square(x - mean), -1, keepdims=True) + 1e-6)


def gradient(x, w):
    with tf.GradientTape() as tape:
        tape.watch(w)
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    return loss, tape.gradient(loss, w)


SHAPES: dict[Any, list[list[int]]] = {
    dense: [[8, 16], [16, 4], [4]],
    convolution: [[2, 9, 9, 3], [3, 3, 3, 5]],
    looped: [[8, 4]],
    chosen: [[16, 16]],
    normalized: [[8, 32]],
    gradient: [[8, 16], [16, 4]],
}

EACH = pytest.mark.parametrize("function", SHAPES, ids=lambda function: function.__name__)


def text_of(function: Any, stage: str = "optimized_hlo") -> str:
    """Return what TensorFlow itself prints: another compilation, by the public function."""
    values = [tf.ones(shape) for shape in SHAPES[function]]
    compiled = tf.function(function, jit_compile=True)
    return str(compiled.experimental_get_compiler_ir(*values)(stage=stage))


def compiled(function: Any) -> tuple[Any, Graph, Any]:
    specs = [tf.TensorSpec(shape) for shape in SHAPES[function]]
    concrete = tf.function(function).get_concrete_function(*specs)
    traced = graph_of(concrete, name=function.__name__)
    return compile_hlo(concrete, traced, count_before=True), traced, concrete


def valueless(module: Module) -> Module:
    """Return a module without the values of constants: TensorFlow 2.21 leaves them out of protos."""
    return replace(
        module,
        computations={
            key: replace(
                part, instructions=tuple(replace(one, value=None) for one in part.instructions)
            )
            for key, part in module.computations.items()
        },
    )


def without_values(module: Module) -> dict[str, dict[str, Any]]:
    return {key: dict(part.by_name) for key, part in valueless(module).computations.items()}


def capture_of(function: Any) -> Capture:
    specs = [tf.TensorSpec(shape) for shape in SHAPES[function]]
    # Marked as the one that prints the text is: TensorFlow traces loops otherwise for XLA.
    return graph2mermaid.compile_xla(tf.function(function, jit_compile=True), *specs)


@EACH
def test_counts_are_those_of_the_text(function: Any):
    """As many instructions and fusions as lines of the text say so, before and after."""
    text = text_of(function)
    capture = capture_of(function)
    graph = capture.graphs[Stage.XLA]
    parts = (graph, *graph.functions.values())
    assert capture.compilation is not None

    assert capture.compilation.instructions == len(re.findall(r"^\s+(?:ROOT )?%\S+ = ", text, re.M))
    fusions = sum(node.op == "fusion" for part in parts for node in part.nodes())
    assert fusions == len(re.findall(r"[\]})] fusion\(", text))
    before = text_of(function, "hlo")
    assert capture.compilation.before == len(re.findall(r"^\s+(?:ROOT )?%\S+ = ", before, re.M))


@EACH
def test_text_and_proto_are_the_same_module(function: Any):
    """What is read from the text equals what is read from the proto, in the same order."""
    result, traced, concrete = compiled(function)
    values = [tf.ones(shape) for shape in SHAPES[function]]
    printed = compiler_ir(concrete, traced, values, "optimized_hlo").decode()
    proto, text = module_of(result.hlo.hlo_module), parse_hlo(printed, origin="text")

    assert (proto.name, proto.entry) == (text.name, text.entry)
    assert without_values(proto) == without_values(text)
    assert list(proto.top.by_name) == list(text.top.by_name)
    graphs = [graph_of_module(valueless(module), name="f") for module in (proto, text)]
    assert graphs[0] == graphs[1]


@EACH
def test_compilations_survive_a_file_and_are_drawn(function: Any):
    """The capture is read back as it was, and its report has a diagram and the kernels."""
    capture = capture_of(function)

    (back,) = loads(dumps([capture]), origin="file")

    assert back.graphs[Stage.XLA] == capture.graphs[Stage.XLA]
    assert back.compilation == capture.compilation
    report = back.report(["xla"]).to_markdown()
    assert "```mermaid" in report
    assert "## Kernels" in report


def test_a_product_and_a_convolution_cost_their_closed_forms():
    """The FLOPs on the nodes are those of the textbook, whatever XLA fuses around them."""
    found = {
        node.op: node.attrs["flops"]
        for function in (dense, convolution)
        for node in capture_of(function).graphs[Stage.XLA].nodes()
        if node.op in ("dot", "convolution")
    }

    assert found == {"dot": 2 * 8 * 16 * 4, "convolution": 2 * (2 * 4 * 4 * 5) * (3 * 3 * 3)}


def test_instructions_come_from_ops_and_lines():
    """A fusion names the ops of all that is in it, and the line of its result."""
    graph = capture_of(dense).graphs[Stage.XLA]
    (fusion,) = [node for node in graph.nodes() if node.op == "fusion"]

    assert set(fusion.origin) == {"add", "Relu"}
    assert fusion.source is not None
    assert fusion.source.file.endswith("test_xla.py")
    assert [node.label for node in graph.nodes() if node.kind is NodeKind.INPUT] == ["x", "w", "b"]


def test_variables_keep_their_names_and_their_values():
    """Captured variables are named, what they become is a result, and nothing is run."""
    weight = tf.Variable(tf.ones([4]), name="weight")

    @tf.function
    def step(x):
        weight.assign_sub(0.1 * x)
        return tf.reduce_sum(weight)

    graph = graph2mermaid.compile_xla(step, tf.TensorSpec([4])).graphs[Stage.XLA]

    assert [binding.name for binding in graph.inputs] == ["x"]
    assert [binding.name for binding in graph.captures] == ["weight"]
    assert [binding.name for binding in graph.outputs][-1] == "new weight"
    assert weight.numpy().tolist() == [1.0] * 4


def test_a_loop_is_a_loop():
    """A loop has its bodies, whose instructions come from the ops of the traced body."""
    graph = capture_of(looped).graphs[Stage.XLA]
    parts = [graph, *graph.functions.values()]
    (loop,) = [node for part in parts for node in part.nodes() if node.op == "while"]

    assert {call.role for call in loop.calls} == {"cond", "body"}
    names = {name for part in parts for node in part.nodes() for name in node.origin}
    assert {"while/Tanh", "while/mul"} <= names


def test_unknown_dimensions_are_made_up_and_said():
    """A function traced for any batch is compiled for two, marked `jit_compile` or not."""
    for jit in (None, True):
        function = tf.function(lambda x, scale=2.0: x * scale, jit_compile=jit)
        capture = graph2mermaid.compile_xla(function, tf.TensorSpec([None, 4]))

        assert capture.graphs[Stage.XLA].inputs[0].type == "float32[2,4]"
        assert any("unknown dimensions were taken as 2" in note for note in capture.notes)
        assert any("float32[2,4]" in note for note in capture.notes)


def test_what_must_be_known_is_taken_from_values():
    """A value that is a shape is compiled in, and no parameter any more."""
    result = graph2mermaid.compile_xla(
        lambda x, n: tf.reshape(x, [n, -1]), tf.ones([4, 4]), tf.constant(2)
    )

    assert [binding.name for binding in result.graphs[Stage.XLA].inputs] == ["x"]


def test_what_is_folded_leaves_a_constant():
    """Of a function without arguments nothing is left but a number, and its ops have vanished."""
    capture = graph2mermaid.compile_xla(lambda: tf.reduce_sum(tf.ones([8, 8]) * 3.0))
    report = capture.report(["xla"]).to_markdown()

    assert {node.op for node in capture.graphs[Stage.XLA].nodes()} == {"constant", "copy"}
    assert "| `Sum` | 1 |" in report.partition("## Ops that vanished")[2]


def test_ops_of_called_functions_are_found():
    """An op inside a called function is found, though XLA drops the call's name."""

    @tf.function(jit_compile=True)
    def fast(x):
        return tf.nn.relu(tf.matmul(x, x)) + 1.0

    capture = graph2mermaid.compile_xla(lambda x: fast(x) * 2.0, tf.TensorSpec([4, 4]))
    graph = capture.graphs[Stage.XLA]

    (dot,) = [node for node in graph.nodes() if node.op == "dot"]
    assert dot.origin == ("MatMul",)
    assert dot.source is not None
    (fusion,) = [node for node in graph.nodes() if node.op == "fusion"]
    assert {"Relu", "add", "mul"} <= set(fusion.origin)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.boolean_mask(x, x > 0.0),
        lambda x: tf.unique(tf.cast(x, tf.int32))[0],
    ],
    ids=["boolean_mask", "unique"],
)
def test_results_of_unknown_size_compile(function: Any):
    """What depends on data has a bound in HLO, which the type of the result shows."""
    graph = graph2mermaid.compile_xla(function, tf.TensorSpec([4])).graphs[Stage.XLA]

    assert any("<=4" in str(node.attrs["layout"]) for node in graph.nodes())


def test_names_are_the_same_in_every_trace():
    """No name holds the number that TensorFlow gives a function in its process."""
    first, second = (capture_of(looped).graphs[Stage.XLA] for _ in range(2))

    assert first == second


def shouting(x):
    tf.print(x)
    return x + 1.0


def calling_python(x):
    return tf.numpy_function(lambda value: value, [x], tf.float32)


def of_strings(s):
    return tf.strings.length(s)


def shaping(x, n):
    return tf.range(n[0]), x


@pytest.mark.parametrize(
    ("function", "specs", "words"),
    [
        (shouting, [([2], "float32")], "cannot compile StringFormat at .*test_xla.py:"),
        (calling_python, [([2], "float32")], "cannot compile (Eager)?PyFunc at .*test_xla.py:"),
        (of_strings, [([2], "string")], "s is a string"),
        (looped, [(None, "float32")], "rank of x is unknown: give --input 'x=float32"),
    ],
    ids=["print", "py_function", "string", "unknown rank"],
)
def test_what_cannot_be_compiled_is_a_note(function: Any, specs: Any, words: str):
    """The note names the op and its line, or the argument; the other views are there."""
    types = [tf.TensorSpec(shape, getattr(tf, dtype)) for shape, dtype in specs]

    capture = graph2mermaid.compile_xla(function, *types)

    assert Stage.XLA not in capture.graphs
    assert any(re.search(f"XLA view: .*{words}", note) for note in capture.notes), capture.notes
    assert "```mermaid" in capture.report(["traced", "xla"]).to_markdown()


@pytest.mark.parametrize("form", ["text", "HloProto", "HloModuleProto", "HloSnapshot"])
def test_dumps_are_targets(form: str, tmp_path: Path):
    """A file of any form that XLA writes is read, and tells the same."""
    result, _, _ = compiled(dense)
    hlo = result.hlo
    if form == "text":
        path = tmp_path / "module_0001.f.cpu_after_optimizations.txt"
        path.write_text(text_of(dense), encoding="utf-8")
    else:
        path = tmp_path / ("module.hlo.pb" if form != "HloModuleProto" else "module.pb")
        snapshot = type(hlo).DESCRIPTOR.file.message_types_by_name["HloSnapshot"]._concrete_class
        messages = {
            "HloProto": hlo,
            "HloModuleProto": hlo.hlo_module,
            "HloSnapshot": snapshot(hlo=hlo),
        }
        path.write_bytes(messages[form].SerializeToString())

    capture = graph2mermaid.load(path)

    assert isinstance(capture, Capture)
    assert [n.op for n in capture.graphs[Stage.XLA].nodes()].count("dot") == 1
    assert capture.compilation is not None
    assert capture.compilation.instructions == 12
    assert "broadcast" in capture.report().to_markdown()
