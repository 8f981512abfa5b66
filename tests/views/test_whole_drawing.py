"""Whole drawings: that nothing of a graph is lost between its pages, whatever is asked for."""

from __future__ import annotations

import hashlib
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from graph2mermaid.graph import Arrow, Edge, EdgeKind, Graph, Node, NodeKind, Stage
from graph2mermaid.mermaid.write import write
from graph2mermaid.passes.inline import MAX_DEPTH
from graph2mermaid.views import make_report
from graph2mermaid.views.drawing import draw
from graph2mermaid.views.options import Options
from tests import builders
from tests.builders import capture
from tests.graph_strategies import FLOAT, models
from tests.report.reading import read
from tests.views.ledger import Ledger

ROOT = Path(__file__).parents[2]

asked = st.fixed_dictionaries(
    {},
    optional={
        "level": st.sampled_from(("ops", "simple")),
        "tensors": st.just("nodes"),
        "fold": st.just(False),
        "max_nodes": st.sampled_from((4, 6, 12, 200)),
        "depth": st.sampled_from((0, 1, 5)),
        "color": st.just("device"),
        "host": st.just("gitlab"),
    },
)
"""What may be asked of every graph."""

few = settings(max_examples=20)


@few
@given(models(), asked)
def test_the_accounts_are_in_order(graph: Graph, options: dict[str, Any]):
    """Every op is on one page or counted, every edge drawn or counted, and no page too large."""
    Ledger(graph, Options(**options)).check()


@few
@given(models(most=12, depth=4), asked)
def test_the_accounts_of_functions_are_in_order(graph: Graph, options: dict[str, Any]):
    """The same holds for the bodies of functions, in their frames and on pages of their own."""
    Ledger(graph, Options(**options)).check()


@few
@given(models(), asked, st.data())
def test_the_accounts_of_a_selection_are_in_order(
    graph: Graph, options: dict[str, Any], data: st.DataObject
):
    """What is around an op, or between two, is drawn as a whole and counts what it leaves out."""
    names = [node.name for node in graph.nodes()]
    first, second = (data.draw(st.sampled_from(names)) for _ in range(2))
    hops = data.draw(st.integers(0, 3))
    options = {**options, "level": "ops", "fold": False}
    ledger = Ledger(graph, Options(**options, focus=first, hops=hops))
    ledger.check()
    chosen = ledger.selected("focus:")
    assert chosen == around(graph, first, hops)
    paths = between(graph, first, second)
    if paths:
        ledger = Ledger(graph, Options(**options, from_=first, to=second))
        ledger.check()
        assert ledger.selected("paths:") == paths


def around(graph: Graph, name: str, hops: int) -> set[str]:
    """Return what is so many edges away."""
    found = {name}
    for _ in range(hops):
        found |= {end for ends in _all(graph) if found & set(ends) for end in ends}
    return found


def between(graph: Graph, first: str, second: str) -> set[str]:
    """Return what is on a path from one op to another."""
    return _after(_all(graph), first) & _after([(b, a) for a, b in _all(graph)], second)


def _after(pairs: list[tuple[str, str]], name: str) -> set[str]:
    found, queue = {name}, [name]
    while queue:
        at = queue.pop()
        new = {b for a, b in pairs if a == at} - found
        found |= new
        queue += new
    return found


def _all(graph: Graph) -> list[tuple[str, str]]:
    """Return the ends of every edge, those to the results included."""
    arrows = (*graph.arrows(), *graph.back_edges)
    results = [(ref.node, f"output:{b.name}") for b in graph.outputs for ref in b.tensors]
    return [*((a.source, a.target) for a in arrows), *results]


# -- from the input to what is drawn --------------------------------------------------------------


@few
@given(models(), st.booleans())
def test_every_op_and_edge_of_the_input_is_drawn(graph: Graph, fold: bool):
    """With `level=ops` the accounts are those of the input itself: ops, edges, back edges."""
    ledger = Ledger(graph, Options(level="ops", fold=fold))
    results = [(ref.node, f"output:{b.name}") for b in graph.outputs for ref in b.tensors]
    assert ledger.total == len(graph) + len(graph.outputs)
    flat = ledger.flat.graph
    edges = [(a.source, a.target, a.edge) for a in (*graph.arrows(), *graph.back_edges)]
    ports = sorted((a, b, e.kind.value, e.source_port or 0) for a, b, e in edges)
    drawn = [(a.source, a.target, a.edge) for a in (*flat.arrows(), *flat.back_edges)]
    kept = sorted(
        (a, b, e.kind.value, e.source_port or 0) for a, b, e in drawn if not b.startswith("output:")
    )
    assert kept == ports
    assert sorted((a, b) for a, b, _ in drawn if b.startswith("output:")) == sorted(results)


@few
@given(models())
def test_what_is_absorbed_is_counted(graph: Graph):
    """Ops that have no box are plumbing, and their number stands under the overview."""
    ledger = Ledger(graph, Options())
    assert ledger.total + ledger.absorbed == len(graph) + len(graph.outputs)


@few
@given(models())
def test_tensors_flow_where_they_did(graph: Graph):
    """An op reads the ops that it read before, past the Identity ops and reads between them."""
    drawn = Ledger(graph, Options(fold=False)).flat.graph
    kept = set(drawn.dag)
    passing = {"Identity", "ReadVariableOp"}
    wanted: set[tuple[str, str]] = set()
    for arrow in (*graph.arrows(), *graph.back_edges):
        if arrow.target in kept and arrow.edge.kind is EdgeKind.DATA:
            source = arrow.source
            while source not in kept and graph[source].op in passing:
                source = graph.incoming(source)[0].source
            if source in kept and arrow.edge.argument != "axis":
                wanted.add((source, arrow.target))
    edges = (*drawn.arrows(), *drawn.back_edges)
    found = {
        (a.source, a.target)
        for a in edges
        if a.edge.kind is EdgeKind.DATA and not a.target.startswith("output:")
    }
    assert found == wanted


@few
@given(models(most=12, depth=4), st.sampled_from(("ops", "simple")))
def test_every_op_of_a_function_is_drawn_where_it_is_called(graph: Graph, level: Any):
    """Bodies two deep are drawn once for each call, deeper ones once on pages of their own."""
    ledger = Ledger(graph, Options(level=level, fold=False))
    assert ledger.total + ledger.absorbed == expected(graph, graph, 0)
    for name, page in ledger.functions.items():
        body = graph.functions[name]
        drawn = ledger.total_of(page) + ledger.absorbed_in(page)
        assert drawn == expected(graph, body, 0)


def test_loop_counters_are_counted():
    """What only counts the iterations of a loop has no box, and is counted with the plumbing."""
    found = builders.graph(
        """
        x:Placeholder float32[2] -> w:While float32[2] float32[2] calls=cond=c,body=b
        x -> w -> r:Relu float32[2] => y
        """,
        functions={
            "c": "a:Placeholder float32[2]; n:Placeholder float32[2]; a -> t:Less bool[] => ok",
            "b": """
                a:Placeholder float32[2] ; n:Placeholder float32[2]
                a -> s:Square float32[2] => r0
                n -> q:AddOne float32[2] => r1
            """,
        },
    )
    ledger = Ledger(found, Options())
    assert ledger.absorbed == 1
    assert (
        ledger.total + 1 == expected(found, found, 0) == Ledger(found, Options(level="ops")).total
    )


def test_a_lowered_loop_in_a_function_leads_back():
    """The back edges of a body are drawn like those of the graph itself."""
    found = builders.graph(
        "x:Placeholder float32[2] -> c:PartitionedCall float32[2] calls=f=h -> r:Relu float32[2] => y",
        functions={
            "h": """
                a:Placeholder float32[2] -> e:Enter float32[2] -> m:Merge float32[2]
                m -> n:NextIteration float32[2] -> m -> s:Sin float32[2] => o
            """
        },
    )
    (page,) = Ledger(found, Options()).pages.values()
    assert [(a.source, a.target) for a in page.links if a.dotted] == [("c/n", "c/m")]


def expected(top: Graph, graph: Graph, depth: int) -> int:
    """Count the boxes of a graph with the bodies it calls: a choice has a diamond and a merge."""
    count = len(graph) + len(graph.outputs) * (depth == 0)
    for node in graph.nodes():
        if not node.calls or depth == MAX_DEPTH:
            continue
        bodies = [top.functions[call.function] for call in node.calls]
        arguments = sum(len(body.inputs) for body in bodies)
        own = {NodeKind.CALL: -1}.get(node.kind, 1 if node.op == "If" else 0)
        count += own - arguments + sum(expected(top, body, depth + 1) for body in bodies)
    return count


# -- reports --------------------------------------------------------------------------------------


@few
@given(models(depth=3), st.booleans())
def test_every_link_of_a_report_has_a_target(graph: Graph, separate: bool):
    """Links lead to a heading of the file or to another file; from the first, all are reached."""
    report = make_report([capture(graph)], options=Options(out_dir=separate))
    pages = {f"{page.name}.md": read(page.report.to_markdown()) for page in report.pages()}
    if not separate:
        pages = {"": read(report.to_markdown())}
    first = next(iter(pages))
    reached, queue = {first}, [first]
    while queue:
        page = queue.pop()
        found = pages[page]
        for words, target in found.links:
            file, _, anchor = target.partition("#")
            assert (file or page) in pages, (words, target)
            if anchor:
                automatic = {slug(title) for _, title in pages[file or page].headings}
                assert anchor in automatic | set(pages[file or page].anchors), (words, target)
            if (file or page) not in reached:
                reached.add(file or page)
                queue.append(file or page)
    assert reached == set(pages)


def slug(title: str) -> str:
    """Return the anchor of a heading as hosts make it."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


@few
@given(models(depth=2))
def test_the_table_sums_to_the_input(graph: Graph):
    """The first table of a report counts ops, edges and parameters of the graph itself."""
    found = read(make_report([capture(graph)]).to_markdown())
    counts = {row[0]: re.findall(r"[\d,]+", row[1])[-1] for row in found.tables[0][1:]}
    table = {what: int(count.replace(",", "")) for what, count in counts.items()}
    kinds = [a.edge.kind for a in (*graph.arrows(), *graph.back_edges)]
    assert table["Ops"] == len(graph)
    assert table["Data edges"] == kinds.count(EdgeKind.DATA)
    assert table["Control edges"] == kinds.count(EdgeKind.CONTROL)
    held = [node.holds.size or 0 for node in graph.nodes() if node.holds]
    assert table["Parameters (elements of the variables)"] == sum(held)
    if graph.functions:
        assert table["Ops in function bodies"] == sum(map(len, graph.functions.values()))


# -- large ones -----------------------------------------------------------------------------------


def wide(count: int, shape: str) -> Graph:
    """Return thousands of ops in one scope."""
    nodes = [Node("x", "Placeholder", NodeKind.INPUT, (FLOAT,), label="x")]
    arrows = []
    for number in range(count):
        op = "Relu" if shape != "different" else f"Op{number * 7919 % 101}"
        nodes.append(Node(f"net/n{number}", op, outputs=(FLOAT,)))
        before = {
            "star": ["x"],
            "chain": [nodes[-2].name],
            "tree": [nodes[(number + 1) // 2].name] if number else ["x"],
            "different": [nodes[number * 31 % (number + 1)].name, nodes[-2].name],
        }[shape]
        for port, source in enumerate(before):
            arrows.append(Arrow(source, nodes[-1].name, Edge(target_port=port, tensor=FLOAT)))
    return Graph.build("f", Stage.TRACED, nodes, arrows)


def deep(count: int) -> Graph:
    """Return scopes inside scopes, with two ops in each."""
    nodes = [Node("x", "Placeholder", NodeKind.INPUT, (FLOAT,), label="x")]
    arrows = []
    for number in range(count):
        scope = "/".join(f"s{at}" for at in range(number + 1))
        for word in ("Relu", f"Exp{number}"):
            nodes.append(Node(f"{scope}/{word}", word, outputs=(FLOAT,)))
            arrows.append(Arrow(nodes[-2].name, nodes[-1].name, Edge(tensor=FLOAT)))
    return Graph.build("f", Stage.TRACED, nodes, arrows)


def many_outputs(count: int) -> Graph:
    """Return an op with so many outputs that all go to one op."""
    nodes = [Node("split", "Split", outputs=(FLOAT,) * count), Node("join", "Concat")]
    edges = [Edge(source_port=port, target_port=port, tensor=FLOAT) for port in range(count)]
    return Graph.build("f", Stage.TRACED, nodes, [Arrow("split", "join", edge) for edge in edges])


LARGE = {
    "star": lambda: wide(2000, "star"),
    "chain": lambda: wide(3000, "chain"),
    "tree": lambda: wide(2000, "tree"),
    "different": lambda: wide(1000, "different"),
    "deep": lambda: deep(120),
    "many outputs": lambda: many_outputs(2000),
}


@pytest.mark.parametrize("options", [{}, {"fold": False}, {"tensors": "nodes", "host": "gitlab"}])
@pytest.mark.parametrize("shape", LARGE)
def test_the_accounts_of_large_graphs_are_in_order(shape: str, options: dict[str, Any]):
    """Thousands of ops in one scope are pages that are all small."""
    Ledger(LARGE[shape](), Options(**options)).check()


def test_a_flat_graph_has_no_slivers_of_pages():
    """Ops without scopes, wired at random, are drawn on pages that are full."""
    chance = random.Random(0)
    nodes = [Node(f"n{at}", f"Op{at % 7}", outputs=(FLOAT,)) for at in range(2000)]
    arrows = [
        Arrow(nodes[at - 1 - chance.randrange(min(at, 40))].name, nodes[at].name, Edge())
        for at in range(1, 2000)
    ]
    pictures = list(draw(Graph.build("f", Stage.TRACED, nodes, arrows), Options()))
    assert len(pictures) < len(nodes) / 10


# -- the same every time --------------------------------------------------------------------------


def digest(graphs: list[Graph]) -> str:
    """Return a hash of the pages of some graphs."""
    found = hashlib.sha256()
    for graph in graphs:
        for options in (Options(), Options(level="ops", tensors="nodes", host="gitlab")):
            for picture in draw(graph, options):
                found.update(f"{picture.key} {picture.title} {picture.parts}".encode())
                found.update(
                    "\n".join((write(picture.diagram), *picture.diagram.left_out)).encode()
                )
    return found.hexdigest()


def sample(count: int) -> list[Graph]:
    """Return graphs that are the same in every process."""
    found: list[Graph] = []
    derandomized = settings(
        max_examples=count, derandomize=True, database=None, phases=[Phase.generate]
    )

    @derandomized
    @given(models(depth=3))
    def keep(graph: Graph) -> None:
        found.append(graph)

    keep()
    return [*found, wide(300, "different"), many_outputs(70)]


def test_the_hash_seed_changes_nothing():
    """Two processes draw the same bytes."""
    code = "from tests.views.test_whole_drawing import digest, sample\nprint(digest(sample(15)))"
    made = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(made) == 1


@pytest.mark.node
def test_the_pages_are_drawn(mermaid):
    """The browser shows what pages of generated graphs mean."""
    for graph in sample(8):
        for picture in list(draw(graph, Options()))[:4]:
            mermaid.assert_drawn(write(picture.diagram), picture.diagram)
