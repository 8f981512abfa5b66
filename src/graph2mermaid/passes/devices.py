"""Stand the ops of each device in a frame of their own."""

from __future__ import annotations

from dataclasses import replace

from graph2mermaid.passes.bodies import Body
from graph2mermaid.passes.inline import MAX_DEPTH, Inlined


def by_device(inlined: Inlined) -> Inlined:
    """Return the graph with a frame around what runs on each device.

    Frames of loops and branches stand inside that of their device; what would nest deeper than
    frames do stands in the frame around it. A graph of one device is returned as it is.
    """
    graph = inlined.graph
    devices = list(dict.fromkeys(node.device for node in graph.nodes() if node.device))
    if len(devices) < 2:
        return inlined
    frames = {
        device: Body(f"device:{device}", "", "", "device", None, 1, short_device(device))
        for device in devices
    }
    moved: dict[str, Body] = {}
    into: dict[str, str] = {}
    """For each body that nests too deep, the frame around it."""
    for key, body in inlined.bodies.items():
        device = graph[body.call].device if body.call in graph else ""
        parent = body.parent or (frames[device].key if device else None)
        parent = into.get(parent, parent) if parent else None
        depth = moved[parent].depth + 1 if parent in moved else 2 if parent else 1
        if depth > MAX_DEPTH and parent:
            into[key] = parent
        else:
            moved[key] = replace(body, parent=parent, depth=depth)
    home = {name: into.get(key, key) for name, key in inlined.home.items()}
    for node in graph.nodes():
        if node.device:
            home.setdefault(node.name, frames[node.device].key)
    bodies = {body.key: body for body in frames.values()} | moved
    return replace(inlined, bodies=bodies, home=home)


def short_device(device: str) -> str:
    """Return `CPU:1` for `/job:localhost/replica:0/task:0/device:CPU:1`; other jobs stay named."""
    parts = [part for part in device.split("/") if part]
    local = ("job:localhost", "replica:0", "task:0")
    kept = [part.removeprefix("device:") for part in parts if part not in local]
    return "/".join(kept)
