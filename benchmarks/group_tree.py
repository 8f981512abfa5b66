"""Time the division of a graph into groups, on made-up networks of several sizes.

Usage: python benchmarks/group_tree.py [NODES ...]
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator

from graph2mermaid.graph import Arrow, Edge, Graph, Node, Stage, TensorSpec
from graph2mermaid.passes.groups import group_tree
from graph2mermaid.passes.inline import inline

SPECS = [TensorSpec("float32", (8, 2**n)) for n in range(4, 10)]


def blocks(count: int) -> Iterator[tuple[Node, tuple[str, ...]]]:
    """Yield the nodes of stages of equal blocks under numbered scopes."""
    last: tuple[str, ...] = ()
    for block in range(count // 20):
        spec = SPECS[block * len(SPECS) * 20 // count % len(SPECS)]
        start = last
        for number in range(20):
            layer = ("conv", "bn", "act", "out")[number // 5]
            name = f"net/stage{block // 10}_block{block % 10}_{layer}_1/op{number}"
            inputs = (*last, *start) if number == 19 else last
            yield Node(name, f"Op{number % 7}", outputs=(spec,)), inputs
            last = (name,)


def flat(count: int) -> Iterator[tuple[Node, tuple[str, ...]]]:
    """Yield nodes without scopes, wired at random to recent ones."""
    chance = random.Random(0)
    names: list[str] = []
    for number in range(count):
        name = f"Op{number % 9}_{number}"
        inputs = tuple(names[-1 - chance.randrange(min(len(names), 40))] for _ in range(2) if names)
        names.append(name)
        yield Node(name, f"Op{number % 9}", outputs=(chance.choice(SPECS),)), inputs


def updates(count: int) -> Iterator[tuple[Node, tuple[str, ...]]]:
    """Yield as many equal chains as there are nodes for, all read from one hub."""
    yield Node("sgd/rate", "Const", outputs=(SPECS[0],)), ()
    for chain in range(count // 5):
        last = "sgd/rate"
        for step in ("Mul", "Sub", "Add", "Neg", "Assign"):
            name = f"sgd/{step}_{chain}"
            yield Node(name, step, outputs=(SPECS[chain % 6],)), (last,)
            last = name


MAKERS: dict[str, Callable[[int], Iterator[tuple[Node, tuple[str, ...]]]]] = {
    "blocks": blocks,
    "flat": flat,
    "updates": updates,
}


def built(made: Iterator[tuple[Node, tuple[str, ...]]]) -> Graph:
    """Build a graph of nodes and the names of their inputs."""
    nodes: list[Node] = []
    arrows: list[Arrow] = []
    for node, inputs in made:
        nodes.append(node)
        arrows += [
            Arrow(source, node.name, Edge(target_port=port)) for port, source in enumerate(inputs)
        ]
    return Graph.build("benchmark", Stage.TRACED, nodes, arrows)


def main() -> None:
    """Print one line for each network and size."""
    sizes = [int(word.replace("_", "")) for word in sys.argv[1:]] or [1_000, 10_000, 100_000]
    for title, make in MAKERS.items():
        for size in sizes:
            inlined = inline(built(make(size)))
            start = time.perf_counter()
            tree = group_tree(inlined)
            seconds = time.perf_counter() - start
            print(f"{title:8} {size:>9,} nodes {seconds:8.3f} s  {len(tree.children)} at the top")


if __name__ == "__main__":
    main()
