"""How a level that is too wide is cut."""

from __future__ import annotations

import random

import pytest

from graph2mermaid.passes.divide import by_prefix, connected_parts, pieces, repeated
from graph2mermaid.passes.level import Level, Unit
from graph2mermaid.passes.wiring import Wiring
from tests.builders import graph


def level(text: str) -> Level:
    """Return the level of all nodes of a graph."""
    wiring = Wiring(graph(text))
    return Level(wiring, [Unit(node.name, None, at) for at, node in enumerate(wiring.nodes)])


def groups(names: str) -> dict[str, int]:
    """Return how many of the names are in the group of each prefix."""
    units = [Unit(name, None, at) for at, name in enumerate(names.split())]
    return {prefix: len(members) for prefix, members in by_prefix(units)}


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("conv1_pad conv1_bn conv2_block1_bn conv2_block2_bn out", {"conv1": 2, "conv2": 2}),
        ("stem block_1_expand block_1_bn block_2_expand block_2_bn", {"block_1": 2, "block_2": 2}),
        ("expanded_conv_bn expanded_conv_relu top a b c", {"expanded_conv": 2}),
        (
            "block2a_conv block2a_bn block2b_conv block2b_bn block3a_x block3a_y top",
            {"block2": 4, "block3a": 2},
        ),
        ("conv2d bn relu conv2d_1 bn_1 relu_1 conv2d_2 bn_2 relu_2", {}),
        ("net_a_x net_a_y net_b_x net_b_y", {"net_a": 2, "net_b": 2}),
        ("same same_1", {}),
        ("", {}),
    ],
    ids=["stages", "blocks", "longest", "letters", "scattered", "all", "two", "none"],
)
def test_prefixes(names: str, found: dict[str, int]):
    """What stands together and begins alike is one group; what is scattered is none."""
    assert groups(names) == found


@pytest.mark.parametrize(
    ("labels", "stretches"),
    [
        ("abcabcabc", [(0, 9, 3)]),
        ("xxabababyy", [(2, 8, 2)]),
        ("aaaa", [(0, 4, 1)]),
        ("abcd", []),
        ("abcabcxdededede", [(7, 15, 2), (0, 6, 3)]),
        ("", []),
    ],
)
def test_repeated(labels: str, stretches: list[tuple[int, int, int]]):
    """A stretch is whole periods of one pattern; the longest is found first."""
    found = repeated([ord(letter) for letter in labels])
    assert [(s.start, s.stop, s.step) for s in found] == sorted(stretches)


def test_parts_are_apart_once_their_hub_is_cut():
    """A node that all parts read joins nothing."""
    lines = [
        f"hub:Const -> a{i}:Relu -> b{i}:Exp" if not i else f"hub -> a{i}:Relu -> b{i}:Exp"
        for i in range(5)
    ]
    found = level("\n".join(lines))
    assert len(connected_parts(found, 8)) == 1
    assert [len(part) for part in connected_parts(found, 3)] == [2] * 5


def test_pieces_end_where_one_tensor_flows():
    """Between the branches of a module there is no cut; after the node that joins them there is."""
    lines = ["x:Placeholder"]
    last = "x"
    for module in range(4):
        lines += [f"{last} -> m{module}b{b}:Relu -> m{module}c{b}:Exp" for b in range(5)]
        lines += [f"m{module}c0 -> m{module}join:Concat"]
        lines += [f"m{module}c{branch} -> m{module}join" for branch in range(1, 5)]
        last = f"m{module}join"
    found = level("\n".join(lines))
    ends = [found.units[piece[-1]].name for piece in pieces(found, 24)]
    assert ends == ["m0join", "m1join", "m2join", "m3join"]


@pytest.mark.parametrize("count", [25, 100, 577, 5000])
def test_pieces_cover_the_row(count: int):
    """Whatever the row, the pieces are consecutive and not too many."""
    found = level("\n".join(f"op{i}:Relu" for i in range(count)))
    cut = pieces(found, 24)
    assert [at for piece in cut for at in piece] == list(range(count))
    assert 1 < len(cut) <= 24


def at_random(count: int, reach: int) -> str:
    """Return ops that each read one or two of those shortly before them."""
    chance = random.Random(0)
    lines = ["op0:Relu"]
    for number in range(1, count):
        before = {number - 1 - chance.randrange(min(number, reach)) for _ in range(2)}
        lines += [
            f"op{at} -> op{number}:Add" if not i else f"op{at} -> op{number}"
            for i, at in enumerate(sorted(before))
        ]
    return "\n".join(lines)


@pytest.mark.parametrize("reach", [10, 40, 300])
def test_pieces_are_as_much_as_a_page_shows(reach: int):
    """Where no tensor ends a part, pieces are neither wider than a page nor slivers."""
    found = level(at_random(500, reach))
    cut = pieces(found, 24)
    assert [at for piece in cut for at in piece] == list(range(500))
    assert all(4 <= len(piece) <= 24 for piece in cut)
    assert len(cut) <= 500 / 8 + 1
