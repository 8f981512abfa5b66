"""What of a training step is put together although no scope holds it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graph2mermaid.graph import Call, EdgeKind, Graph
from graph2mermaid.passes.asides import without_asides
from graph2mermaid.passes.groups import Group, group_tree
from graph2mermaid.passes.inline import inline
from tests.builders import graph


def tree(text: str, **options: object) -> Group:
    """Return the groups of a graph written as text."""
    return group_tree(inline(graph(text)), **options)  # type: ignore[arg-type]


def titles(group: Group) -> list[str]:
    return [child.title for child in group.groups()]


STEP = """
    x:Placeholder -> net/a:MatMul -> net/b:Relu
    net/b -> compile_loss/mean_squared_error/c:Square -> compile_loss/mean_squared_error/d:Mean
    compile_loss/mean_squared_error/d -> gradient_tape/net/e:Mul -> gradient_tape/net/f:Mul
    gradient_tape/net/f -> sgd/g:Mul -> sgd/h:AssignSubVariableOp
"""

METRIC = """
    x -> Shape:Shape -> Cast:Cast -> Sum:Sum
    total:Placeholder holds=float32[] label=loss/total -> Add:AddV2
    Sum -> Add -> Assign:AssignVariableOp
    total -> Assign
    total -> Read:ReadVariableOp
    Assign ~> Read => loss
"""


def test_metrics_are_one_group():
    """What only counts beside the gradients, and writes variables of its own, has no scope."""
    made = tree(STEP + METRIC)
    assert titles(made) == [
        "net",
        "loss: mean squared error",
        "gradients",
        "optimizer: sgd",
        "metrics",
    ]
    (metrics,) = (group for group in made.groups() if group.title == "metrics")
    assert metrics.role == "metrics"
    assert set(metrics.leaves()) == {"Shape", "Cast", "Sum", "total", "Add", "Assign", "Read"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(METRIC.replace("x ->", "x:Placeholder ->"), id="no gradients"),
        pytest.param(
            STEP + "x -> p:Exp -> q:Neg -> r:Exp -> s:Neg -> t:Exp -> u:Neg", id="no variable"
        ),
        pytest.param(STEP + "v:Placeholder holds=float32[] -> w:AssignVariableOp", id="too little"),
    ],
)
def test_what_are_no_metrics(text: str):
    """Only in a training step, and only where a variable is written, are there metrics."""
    assert "metrics" not in titles(tree(text))


def adam(*shapes: str) -> str:
    """Return updates like Adam's: two slots for each weight, and a rate and a step that all read."""
    lines = [
        "rate:Placeholder holds=float32[] label=adam/rate",
        "step:Placeholder holds=int64[] label=adam/step",
        "step -> adam/Add:AddV2 int64[] -> adam/Assign:AssignVariableOp; step -> adam/Assign",
    ]
    for i, shape in enumerate(shapes):
        lines += [
            f"g{i}:Placeholder {shape}; w{i}:Placeholder holds={shape} label=net/w{i}",
            f"m{i}:Placeholder holds={shape} label=adam/m{i}",
            f"v{i}:Placeholder holds={shape} label=adam/v{i}",
            f"adam/c{i}:Const float32[] value=0.9; adam/d{i}:Const float32[] value=0.999",
            f"step -> adam/Cast_{i}:Cast float32[] -> adam/Pow_{i}:Pow float32[]",
            f"adam/c{i} -> adam/Pow_{i}; rate -> adam/alpha_{i}:Mul float32[]",
            f"adam/Pow_{i} -> adam/alpha_{i}",
            f"g{i} -> adam/dm_{i}:Sub {shape}; m{i} -> adam/dm_{i} -> adam/mm_{i}:AssignAddVariableOp",
            f"m{i} -> adam/mm_{i}; m{i} -> adam/rm_{i}:ReadVariableOp {shape}; adam/mm_{i} ~> adam/rm_{i}",
            f"g{i} -> adam/dv_{i}:Square {shape} -> adam/ev_{i}:Mul {shape}; adam/d{i} -> adam/ev_{i}",
            f"v{i} -> adam/vv_{i}:AssignAddVariableOp; adam/ev_{i} -> adam/vv_{i}",
            f"v{i} -> adam/rv_{i}:ReadVariableOp {shape}; adam/vv_{i} ~> adam/rv_{i}",
            f"adam/rm_{i} -> adam/t_{i}:Mul {shape}; adam/alpha_{i} -> adam/t_{i}",
            f"adam/t_{i} -> adam/q_{i}:RealDiv {shape}; adam/rv_{i} -> adam/q_{i}",
            f"w{i} -> adam/W_{i}:AssignSubVariableOp; adam/q_{i} -> adam/W_{i}",
            f"adam/Cast_{i} ~> adam/Assign",
        ]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("shapes", "varied"),
    [(["float32[3]", "float32[3]"], False), (["float32[3,1]", "float32[1]"], True)],
    ids=["one shape", "two shapes"],
)
def test_each_variable_has_one_update(shapes: list[str], varied: bool):
    """An update has its slots and constants with it, is named by the weight, and not cut apart."""
    made = tree(adam(*shapes))
    (optimizer,) = (group for group in made.groups() if group.title == "adam")
    (update,) = (group for group in optimizer.groups() if group.copies)
    assert update.title == "adam update × 2"
    assert update.varied is varied
    assert [copy.title for copy in update.copies] == ["net/w1"]
    inside = set(update.shown())
    assert {"adam/W_0", "adam/mm_0", "adam/vv_0", "adam/c0", "adam/d0"} <= inside
    assert not any(name.endswith("_1") for name in inside)
    assert not {"adam/Assign", "adam/Add", "rate", "step"} & set(update.leaves())


def test_a_scope_beside_the_op_that_it_is_named_after_is_no_group():
    """What TensorFlow makes of an op's arguments stands beside the op."""
    made = tree("x:Placeholder -> s/Add/Cast:Cast -> s/Add:AddV2; s/Add/c:Const -> s/Add => y")
    assert titles(tree("x:Placeholder -> s/A/p:Cast -> s/A/q:Exp -> s/B:AddV2 => y")) == ["s"]
    (scope,) = made.groups()
    assert set(scope.children) == {"s/Add/Cast", "s/Add/c", "s/Add"}


PAGE = """
    f:group kind=group -> g:group kind=group -> o:group kind=group
    e:group kind=group -> f; e -> g; e -> o; o ~> r:output kind=output
"""
ROLES = {"g": "gradients", "o": "optimizer"}


def test_edges_beside_the_way_of_the_data_are_counted():
    """On an overview the last forward part leads on to the gradients; the others are counted."""
    page, said = without_asides(graph(PAGE), ROLES)
    assert {(a.source, a.target) for a in page.arrows()} == {
        ("e", "f"), ("e", "g"), ("g", "o"), ("o", "r")
    }  # fmt: skip
    assert said == [
        "1 edge from the forward part to the gradients is not drawn.",
        "1 edge from the forward part to the optimizer is not drawn.",
    ]


def test_pages_of_the_gradients_keep_their_edges():
    """Inside the gradients and the optimizer these edges are what the page is about."""
    page, said = without_asides(graph(PAGE), ROLES, forward=False)
    assert page.edge_count == graph(PAGE).edge_count
    assert said == []


def test_stubs_without_edges_go():
    """On a page of the forward part nothing leads to the gradients, so their stub goes too."""
    text = "f:group kind=group -> g:stub kind=elided"
    page, said = without_asides(graph(text), {"g": "gradients"})
    assert list(page.dag) == ["f"]
    assert len(said) == 1


@pytest.mark.parametrize(("count", "drawn"), [(3, 3), (4, 0)])
def test_many_waits_for_a_result_are_counted(count: int, drawn: int):
    """That a result waits for all of a step says nothing; for a few ops it does."""
    text = ";".join(
        ["x:Exp => y", "r:output kind=output", *(f"p{i}:PrintV2 ~> r" for i in range(count))]
    )
    page, said = without_asides(graph(text), {})
    assert sum(a.edge.kind is EdgeKind.CONTROL for a in page.arrows()) == drawn
    assert said == ([] if drawn else ["4 control edges to the results are not drawn."])


def test_the_gradient_of_a_function_is_with_the_others():
    """TensorFlow calls it outside of the tape's scope, with zeros that nothing else reads."""
    body = "g:Placeholder -> m:Mul; z:Placeholder -> m -> n:Exp => r"
    call = "Call:PartitionedCall float32[] calls=f=back"
    text = f"{STEP}; compile_loss/mean_squared_error/d -> {call}; zeros_like:ZerosLike -> Call"
    step = graph(f"{text}; Call -> gradient_tape/net/i:Mul", functions={"back": body})
    name = "f (backward)"
    nodes = [replace(n, calls=(Call("f", name),)) if n.calls else n for n in step.nodes()]
    renamed = {name: replace(step.functions["back"], name=name)}
    built = Graph.build("f", step.stage, nodes, step.arrows(), functions=renamed)
    made = group_tree(inline(built))
    (gradients,) = (group for group in made.groups() if group.role == "gradients")
    assert {"zeros_like", "Call/m", "Call/n"} <= set(gradients.leaves())
