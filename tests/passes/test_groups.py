"""The tree of groups that a graph is read by."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph2mermaid.graph import Arrow, Edge, EdgeKind, Graph, Node, NodeKind, Stage, TensorSpec
from graph2mermaid.passes.groups import MAX_CHILDREN, Group, group_tree
from graph2mermaid.passes.inline import inline
from graph2mermaid.passes.results import with_results
from tests import graph_strategies
from tests.builders import graph

SPECS = (TensorSpec("float32", (2,)), TensorSpec("float32", (4, None)), TensorSpec("int32", ()))
TOKENS = ("block0", "block1", "block_2", "conv", "bn_1", "gradient_tape", "x", "moments")


def tree(found: Graph | str, *, fold: bool = True) -> Group:
    """Return the tree of a graph and all that it calls."""
    flat = inline(graph(found) if isinstance(found, str) else found)
    return group_tree(flat, with_results(flat.graph), fold=fold)


def every(group: Group) -> Iterator[Group]:
    """Yield a group and all inside it, copies included."""
    stack = [group]
    while stack:
        top = stack.pop()
        yield top
        stack += [*top.groups(), *top.copies]


def titles(group: Group) -> list[str]:
    """Return the titles of the direct groups."""
    return [each.title for each in group.groups()]


def named(group: Group, title: str) -> Group:
    """Return the group of a title, at any depth."""
    return next(each for each in every(group) if each.title == title)


@st.composite
def scoped_graphs(draw: st.DrawFn, most: int = 80) -> Graph:
    """Graphs whose names are scopes of few words, wired forward, with repeats by chance."""
    count = draw(st.integers(0, most))
    scopes = st.lists(st.sampled_from(TOKENS), max_size=3).map("/".join)
    kinds = st.sampled_from((NodeKind.OP, NodeKind.OP, NodeKind.CONST, NodeKind.VARIABLE))
    names: dict[str, Node] = {}
    for number in range(count):
        scope, op = draw(scopes), draw(st.sampled_from(("Add", "MatMul", "AddN")))
        name = f"{scope}/{op}_{number}" if scope else f"{op}_{number}"
        names[name] = Node(name, op, draw(kinds), (draw(st.sampled_from(SPECS)),))
    order = list(names)
    arrows = []
    if count > 1:
        pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1), st.integers(0, 2))
        for first, second, port in draw(st.lists(pairs, max_size=2 * count)):
            if first != second:
                start, end = sorted((first, second))
                edge = Edge(target_port=port) if port else Edge(EdgeKind.CONTROL, None, None)
                arrows.append(Arrow(order[start], order[end], edge))
    return Graph.build("f", Stage.TRACED, names.values(), arrows)


def repeat(block: str, count: int, *, between: str = "", scope: str = "block{i}") -> Graph:
    """Return a chain of equal blocks under numbered scopes, each fed by the one before it."""
    lines = ["x:Placeholder float32[2]"]
    last = "x"
    for i in range(count):
        name = scope.format(i=i)
        lines.append(block.format(b=name, last=last) + between)
        last = f"{name}/out"
    return graph("\n".join([*lines, f"{last} => y"]))


BLOCK = "\n".join(
    [
        "{last} -> {b}/a:Relu float32[2] -> {b}/b:Exp float32[2] -> {b}/c:Tanh float32[2]",
        "{b}/c -> {b}/in/d:Neg float32[2] -> {b}/in/e:Abs float32[2] -> {b}/in/f:Sin float32[2]",
        "{last} -> {b}/out:Add float32[2]; {b}/in/f -> {b}/out",
    ]
)


@pytest.mark.parametrize("fold", [True, False], ids=["fold", "no fold"])
@given(found=st.one_of(scoped_graphs(), graph_strategies.graphs()))
def test_every_node_is_in_exactly_one_place(found: Graph, fold: bool):
    """The leaves of the tree are the nodes of the graph, each once, whatever they are called."""
    flat = inline(found)
    made = group_tree(flat, fold=fold)
    assert Counter(made.leaves()) == Counter(flat.graph.dag)
    assert made.size == len(flat.graph)


@given(found=scoped_graphs(200))
@settings(max_examples=40)
def test_no_group_is_too_wide(found: Graph):
    """A page can show the children of any group."""
    made = tree(found)
    assert all(len(group.children) <= MAX_CHILDREN for group in every(made))
    keys = [group.key for group in every(made)]
    assert len(keys) == len(set(keys))


@given(found=scoped_graphs())
def test_the_same_graph_gives_the_same_tree(found: Graph):
    """Nothing depends on the order of a set."""
    assert tree(found) == tree(found)


@given(found=scoped_graphs())
def test_folding_keeps_what_is_in_a_group(found: Graph):
    """Folded or not, the same nodes are in the tree, and no copy has another number of them."""
    folded, plain = tree(found), tree(found, fold=False)
    assert sorted(folded.leaves()) == sorted(plain.leaves())
    for group in every(folded):
        own = len(list(group.shown()))
        assert all(copy.size == own for copy in group.copies)
        assert group.size == own * group.instances if group.copies else True


@given(found=scoped_graphs())
def test_copies_are_isomorphic(found: Graph):
    """What is drawn once is the same graph each time: ops, shapes, edges and ports."""
    for group in every(tree(found)):
        for copy in group.copies:
            first, second = (
                inside(found, list(nodes), shapes=not group.varied)
                for nodes in (group.shown(), copy.leaves())
            )
            assert nx.is_isomorphic(
                first,
                second,
                node_match=lambda a, b: a == b,
                edge_match=lambda a, b: (
                    sorted(e["ports"] for e in a.values()) == sorted(e["ports"] for e in b.values())
                ),
            )
            assert group.varied or group.copies[0].signature == copy.signature


def inside(found: Graph, names: list[str], *, shapes: bool) -> nx.MultiDiGraph[str]:
    """Return the part of a graph between some nodes, with what must be equal on it."""
    made: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for name in names:
        node = found[name]
        made.add_node(name, op=node.op, kind=node.kind, outputs=node.outputs if shapes else ())
    for source, target, edge in found.arrows():
        if source in made and target in made:
            ports = (edge.source_port or 0, edge.target_port or 0, edge.kind.value)
            made.add_edge(source, target, ports=ports)
    return made


def test_the_tree_does_not_depend_on_the_hash_seed():
    """Two processes make the same tree."""
    code = (
        "from tests.passes.test_groups import BLOCK, repeat, tree\n"
        "print(repr(tree(repeat(BLOCK, 30, scope='s{i}_a'))))"
    )
    root = Path(__file__).parents[2]
    made = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=root,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": f"{root / 'src'}:{root}"},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(made) == 1


def test_scopes_a_thousand_deep():
    """Depth is no reason to fail."""
    deep = "/".join(f"s{i}" for i in range(1000))
    parts = deep.split("/")
    lines = [f"{'/'.join([*parts[:i], f'op{i}'])}:Relu" for i in range(0, 1000, 7)]
    made = tree(graph("\n".join(lines)))
    assert made.size == len(lines)


def test_scopes_of_one_node_are_no_groups():
    """A box around a box says nothing."""
    made = tree("x:Placeholder -> a/b/r:Relu -> a/c/d/s:Exp -> a/c/d/t:Exp")
    assert titles(made) == ["a"]
    assert titles(made.groups()[0]) == ["c/d"]


def test_a_body_is_a_group():
    """The nodes of a called function stand in its own group, under the function's title."""
    made = tree(
        graph(
            "x:Placeholder -> c:PartitionedCall calls=f=g -> r:Relu => y",
            functions={"g": "a:Placeholder -> b:Relu -> c:Exp => out"},
        )
    )
    assert [each.body.function for each in made.groups() if each.body] == ["g"]


def test_names_of_layers_make_stages_and_blocks():
    """`conv2_block1_bn` is in `conv2`, and there in `conv2_block1`."""
    layers = [
        f"conv{stage}_block{block}_{part}"
        for stage in (2, 3)
        for block in (1, 2)
        for part in ("1_conv", "1_bn", "2_conv", "2_bn", "3_conv", "3_bn", "out")
    ]
    kinds = iter(range(1000))
    lines = ["x:Placeholder"]
    last = "x"
    for layer in layers:
        lines.append(f"{last} -> net/{layer}_1/a:K{next(kinds)} -> net/{layer}_1/b:K{next(kinds)}")
        last = f"net/{layer}_1/b"
    made = tree("\n".join(lines))
    net = made.groups()[0]
    assert titles(net) == ["conv2", "conv3"]
    assert titles(net.groups()[0]) == ["conv2_block1", "conv2_block2"]
    assert titles(net.groups()[0].groups()[0])[0] == "conv2_block1_1_conv"


def test_twelve_equal_layers_are_one():
    """A chain of equal blocks is one group that knows its copies."""
    made = tree(repeat(BLOCK, 12))
    assert titles(made) == ["block × 12"]
    block = made.groups()[0]
    assert block.instances == 12
    assert [copy.title for copy in block.copies] == [f"block{i}" for i in range(1, 12)]
    assert next(iter(block.shown())) == "block0/a"


def test_layers_at_the_top_level_of_a_model():
    """The loose sums between the layers' scopes belong to the block that they feed."""
    block = "\n".join(
        [
            "{last} -> m/{b}_attention/q:MatMul -> m/{b}_attention/s:Softmax -> m/{b}_attention/o:Mul",
            "{last} -> m/Add_{i}:AddV2; m/{b}_attention/o -> m/Add_{i}",
            "m/Add_{i} -> m/{b}_up/a:MatMul -> m/{b}_up/b:Relu -> m/{b}_up/c:Neg",
            "m/{b}_up/c -> m/{b}_down/a:MatMul -> m/{b}_down/out:Tanh",
        ]
    )
    lines = ["x:Placeholder"]
    last = "x"
    for i in range(12):
        lines.append(block.format(b=f"block{i}", i=i, last=last))
        last = f"m/block{i}_down/out"
    made = tree("\n".join([*lines, f"{last} => y"]))
    assert titles(made) == ["m/block × 12"]


def test_almost_equal_is_not_equal():
    """One other shape, or one other op, keeps a block apart."""
    text = BLOCK.replace("float32[2]", "float32[{s}]")
    lines = ["x:Placeholder float32[2]"]
    last = "x"
    for i, size in enumerate([2, 2, 2, 3, 3, 3, 3]):
        lines.append(text.format(b=f"block{i}", last=last, s=size))
        last = f"block{i}/out"
    made = tree("\n".join([*lines, f"{last} => y"]))
    # The fourth block takes what the third one makes: an input of another shape.
    assert titles(made) == ["block0-2 × 3", "block3", "block4-6 × 3"]


def test_equal_things_of_other_names_stay():
    """`query`, `key` and `value` are equal, and three different things."""
    blocks = [BLOCK.format(b=name, last="x") for name in ("query", "key", "value")]
    assert titles(tree("\n".join(["x:Placeholder float32[2]", *blocks]))) == [
        "query",
        "key",
        "value",
    ]


def test_small_repeats_are_not_folded():
    """Folding two boxes away costs a reader more than it saves."""
    small = "{last} -> {b}/a:Relu -> {b}/out:Exp"
    assert titles(tree(repeat(small, 3))) == ["block0", "block1", "block2"]


def updates(count: int, *, shape: str = "{i}") -> str:
    """Return an optimizer's ops: a rate that all read, and one chain for each gradient."""
    lines = ["x:Placeholder float32[2]", "sgd/rate:Const float32[] value=0.1"]
    for i in range(count):
        size = shape.format(i=i)
        lines += [
            f"v{i}:Placeholder holds=float32[{size}]",
            f"x -> net/l{i}/mm:MatMul float32[{size}] -> sgd/Mul_{i}:Mul float32[{size}]",
            f"sgd/rate -> sgd/Mul_{i} -> sgd/Sub_{i}:Sub float32[{size}]",
            f"sgd/Sub_{i} -> sgd/Neg_{i}:Neg float32[{size}]",
            f"v{i} -> sgd/Assign_{i}:AssignAddVariableOp; sgd/Neg_{i} -> sgd/Assign_{i}",
        ]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("shape", "varied"), [("7", False), ("{i}", True)], ids=["one shape", "many shapes"]
)
def test_updates_of_an_optimizer_are_one(shape: str, varied: bool):
    """Equal chains side by side are one once the hub between them is cut; other shapes are said."""
    update = named(tree(updates(50, shape=shape)), "sgd update × 50")
    assert update.instances == 50
    assert update.varied is varied
    assert [name.rstrip("0") for name in update.shown()] == [
        "sgd/Mul_",
        "sgd/Sub_",
        "sgd/Neg_",
        "sgd/Assign_",
    ]


def test_without_folding_all_updates_are_there():
    """`--no-fold` shows every one, on pages that are not too wide."""
    made = tree(updates(50), fold=False)
    assert not any(group.copies for group in every(made))
    assert named(made, "50 × sgd update").size == 200


def test_gradients_are_one_group_and_their_sums_are_in_it():
    """The tape's scope, and the AddN outside of it that adds up gradients, are `gradients`."""
    made = tree(
        """
        x:Placeholder -> net/a:Relu -> net/b:Exp -> loss/c:Sum -> loss/d:Neg => l
        ones:Const -> gradient_tape/net/e:Mul -> AddN:AddN -> gradient_tape/net/g:Mul
        loss/d -> gradient_tape/net/f:Mul -> AddN
        gradient_tape/net/g -> sgd/h:Mul -> sgd/i:AssignAddVariableOp
        x -> user:Relu => other
        """
    )
    assert titles(made) == ["net", "loss", "gradients", "optimizer: sgd"]
    gradients = named(made, "gradients")
    assert gradients.role == "gradients"
    assert {"AddN", "ones"} <= set(gradients.leaves())
    assert "user" in made.children


def test_a_row_without_names_is_cut_by_position():
    """The last resort says where each piece begins and ends."""
    lines = ["x:Placeholder"]
    last = "x"
    for i in range(60):
        lines.append(f"{last} -> Op{i}x:Kind{i}")
        last = f"Op{i}x"
    made = tree("\n".join(lines))
    assert titles(made)[0].startswith("x to Op")
    assert all(" to " in title for title in titles(made))


def test_a_repeated_sequence_without_scopes_is_one():
    """A loop that Python unrolled is the same few ops over and over."""
    lines = ["x:Placeholder float32[2]"]
    last = "x"
    for i in range(40):
        lines.append(
            f"{last} -> MatMul_{i}:MatMul float32[2] -> Add_{i}:AddV2 float32[2] "
            f"-> Relu_{i}:Relu float32[2]"
        )
        last = f"Relu_{i}"
    made = tree("\n".join([*lines, f"{last} => y"]))
    folds = [group for group in every(made) if group.copies]
    assert [fold.instances for fold in folds] in ([40], [39], [38])
