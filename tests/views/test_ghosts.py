"""Removed ops as ghosts in the Grappler view."""

from __future__ import annotations

from graph2mermaid.capture import Capture
from graph2mermaid.graph import NodeKind, Stage
from graph2mermaid.mermaid.diagram import Diagram, Look
from graph2mermaid.passes.ghosts import AS_TRACED
from graph2mermaid.report.model import Figure
from graph2mermaid.views import Options, make_report
from graph2mermaid.views.flat import Flat, flatten
from graph2mermaid.views.ghosts import ghosts_of
from tests.views.optimized_captures import dense, optimized


def drawn(capture: Capture, **options) -> Diagram:
    return figures(capture, ghosts=True, **options)[0].diagram


def figures(capture: Capture, **options) -> list[Figure]:
    return list(make_report([capture], ["grappler"], Options(**options)).figures())


def flat(capture: Capture, *, simple: bool = True) -> Flat:
    assert capture.optimization is not None
    ghosts = ghosts_of(capture.traced, capture.optimization.provenance, simple=simple)
    options = Options(level="simple" if simple else "ops")
    graph = capture.graphs[Stage.GRAPPLER]
    return flatten(graph, options, traced=capture.traced, ghosts=ghosts)


def words(diagram: Diagram) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return the edges at ghosts, by the names of ops."""
    ghosts = {name for name, box in diagram.boxes.items() if box.look is Look.GHOST}
    return [
        (link.source, link.target, link.lines)
        for link in diagram.links
        if {link.source, link.target} & ghosts
    ]


def test_a_cancelled_pair_stands_between_its_neighbors():
    """Each ghost has a word of why, and its edges say that they were traced."""
    diagram = drawn(dense())
    assert [diagram.boxes[name].lines for name in ("transpose", "transpose_1")] == [
        ("Transpose", "removed: it changes nothing")
    ] * 2
    assert words(diagram) == [
        ("mul", "transpose", (AS_TRACED,)),
        ("transpose", "transpose_1", (AS_TRACED,)),
        ("transpose_1", "output:output_0", (AS_TRACED,)),
    ]
    assert "2 removed ops" in diagram.description
    assert diagram.left_out[-1] == "2 removed ops of plumbing are not drawn."


def test_without_the_option_there_are_none():
    """The graph is drawn as it is."""
    [figure] = figures(dense())
    assert all(box.look is not Look.GHOST for box in figure.diagram.boxes.values())


def test_every_removed_op_at_level_ops():
    """What is no plumbing to that level is drawn: constants and Identity."""
    diagram = drawn(dense(), level="ops")
    ghosts = [name for name, box in diagram.boxes.items() if box.look is Look.GHOST]
    assert ghosts == ["perm", "transpose", "transpose_1", "Identity"]
    assert ("Identity", "output:output_0", (AS_TRACED,)) in words(diagram)


def test_the_legend_explains_ghosts():
    """Both the box and the words of its edges."""
    [figure] = figures(dense(), ghosts=True)
    assert "Dashed rounded corners: op that was removed." in figure.legend
    assert 'Arrow "as traced"' in figure.legend


def test_ghosts_that_nothing_leads_to_are_counted():
    """They have no place on the diagram, and are not lost either."""
    found = optimized(
        """x:Placeholder float32[2] -> r:Relu float32[2] => y
        lone:RandomUniform float32[2] -> t:Tanh float32[2]""",
        "x:Placeholder float32[2] -> r:Relu float32[2] => y",
    )
    diagram = drawn(found)
    assert [n for n, box in diagram.boxes.items() if box.look is Look.GHOST] == ["lone", "t"]
    alone = optimized(
        "x:Placeholder float32[2] -> r:Relu float32[2] => y; lone:RandomUniform float32[2]",
        "x:Placeholder float32[2] -> r:Relu float32[2] => y",
    )
    assert drawn(alone).left_out[-1] == "1 removed op has no place beside what is left."


BRANCHES = {
    "then": "a:Placeholder float32[2] -> t:Tanh float32[2] -> i:Identity float32[2] => r",
    "else": "a:Placeholder float32[2] -> n:Neg float32[2] => r",
}


def test_ghosts_of_an_untaken_branch_read_what_the_branch_read():
    """They are drawn beside the branch that is left."""
    found = optimized(
        """x:Placeholder float32[2]; c:Const bool[] value=False
        c -> if:If float32[2] calls=then_branch=then,else_branch=else => y; x -> if""",
        "x:Placeholder float32[2] -> if/else/_1/n:Neg float32[2] => y",
        functions=BRANCHES,
    )
    graph = flat(found).graph
    [ghost] = [node for node in graph.nodes() if node.kind is NodeKind.GHOST]
    assert (ghost.name, ghost.attrs["removed"]) == ("if/t", "in a branch that is never taken")
    assert [arrow.source for arrow in graph.incoming("if/t")] == ["x"]


def test_a_group_says_how_many_were_removed():
    """Ghosts are no ops of the group."""
    before = ["x:Placeholder float32[2]"]
    after = ["x:Placeholder float32[2]"]
    last = "x"
    for n in range(8):
        before += [f"{last} -> l{n}/a:Relu float32[2] -> l{n}/g:StopGradient float32[2]"]
        before += [f"l{n}/g -> l{n}/b:Tanh float32[2] -> l{n}/c:Sigmoid float32[2]"]
        after += [f"{last} -> l{n}/a:Relu float32[2] -> l{n}/b:Tanh float32[2]"]
        after += [f"l{n}/b -> l{n}/c:Sigmoid float32[2]"]
        last = f"l{n}/c"
    found = optimized("\n".join([*before, f"{last} => y"]), "\n".join([*after, f"{last} => y"]))
    diagram = drawn(found, depth=0, fold=False)
    groups = [box.lines[1:] for box in diagram.boxes.values() if box.look is Look.GROUP]
    assert groups == [("1 removed", "3 ops")] * 8
