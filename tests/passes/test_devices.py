"""Frames around what runs on each device."""

from __future__ import annotations

import pytest

from graph2mermaid.passes.bodies import Body
from graph2mermaid.passes.devices import by_device, short_device
from graph2mermaid.passes.inline import MAX_DEPTH, Inlined
from tests.builders import graph

LOCAL = "/job:localhost/replica:0/task:0/device:"
TWO = f"""
    x:Placeholder float32[] device={LOCAL}CPU:0
    x -> a:Relu float32[] device={LOCAL}CPU:1 -> b:Tanh float32[] device={LOCAL}CPU:0
    b -> nowhere:Neg float32[]
"""


@pytest.mark.parametrize(
    ("device", "short"),
    [
        (f"{LOCAL}CPU:1", "CPU:1"),
        ("/device:GPU:0", "GPU:0"),
        ("/job:worker/replica:0/task:2/device:GPU:0", "job:worker/task:2/GPU:0"),
        ("", ""),
    ],
    ids=["local", "short", "another job", "none"],
)
def test_short_device(device: str, short: str):
    """What is the same for all devices of one program is left out; other jobs stay named."""
    assert short_device(device) == short


def test_each_device_has_a_frame():
    """Every op with a device stands in its frame; one without stands in none."""
    found = by_device(Inlined(graph(TWO), {}, {}, ()))
    titles = {key: body.title for key, body in found.bodies.items()}
    assert sorted(titles.values()) == ["CPU:0", "CPU:1"]
    assert {name: titles[key] for name, key in found.home.items()} == {
        "x": "CPU:0",
        "a": "CPU:1",
        "b": "CPU:0",
    }


def test_one_device_needs_no_frame():
    """A graph of a single device is left as it is."""
    inlined = Inlined(graph(TWO.replace("CPU:1", "CPU:0")), {}, {}, ())
    assert by_device(inlined) is inlined


def test_bodies_stand_in_the_frame_of_their_device():
    """Frames nest one level deeper, and those too deep give their ops to the frame around them."""
    made = graph(TWO)
    bodies: dict[str, Body] = {}
    for depth in range(1, MAX_DEPTH + 2):
        parent = f"body{depth - 1}" if depth > 1 else None
        bodies[f"body{depth}"] = Body(f"body{depth}", "f", "a", "body", parent, depth, "body")
    home = {"nowhere": f"body{MAX_DEPTH + 1}"}
    found = by_device(Inlined(made, bodies, home, ()))
    outermost = found.bodies["body1"]
    assert outermost.parent is not None
    assert found.bodies[outermost.parent].title == "CPU:1"
    assert max(body.depth for body in found.bodies.values()) <= MAX_DEPTH
    assert found.home["nowhere"] in found.bodies
