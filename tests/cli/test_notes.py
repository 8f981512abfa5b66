"""What was asked for and has no effect is said, on standard error and in the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from graph2mermaid import serde
from graph2mermaid.graph import Graph, Stage
from tests.builders import capture
from tests.cli.conftest import Run


def test_hiding_what_is_not_there(run: Run, small: Path):
    """A word after `--hide` that fits nothing is named, with what is close to it."""
    result = run("render", small.name, "--hide", "Rleu")
    assert result.exit_code == 0
    said = "Nothing is hidden for Rleu: there is no such op type, op or scope; close to it: "
    assert result.stderr.startswith(f"Note: --hide: {said}Relu")
    assert said in result.stdout


def test_hiding_what_is_there(run: Run, small: Path):
    """Nothing is said of a word that hides something, nor with `--quiet`."""
    assert run("render", small.name, "--hide", "Relu").stderr == ""
    assert run("render", small.name, "--hide", "Rleu", "--quiet").stderr == ""


def test_coloring_by_device_without_devices(run: Run, small: Path):
    """A graph in which no device is recorded has nothing to color by. What is saved stays as it was."""
    result = run("render", small.name, "--color", "device", "--save", "again.g2m.json")
    said = "no device is recorded in the traced graph"
    assert result.stderr.startswith("Note: ")
    assert said in result.stderr
    assert said in result.stdout
    assert Path("again.g2m.json").read_bytes() == small.read_bytes()


def test_coloring_by_device_with_devices(run: Run):
    """With a device on any op there is nothing to say."""
    made = capture("x:Placeholder -> r:Relu => y", name="f")
    graph = made.traced
    nodes = [replace(node, device="/device:CPU:0") for node in graph.nodes()]
    placed = Graph.build(
        graph.name, graph.stage, nodes, graph.arrows(), inputs=graph.inputs, outputs=graph.outputs
    )
    serde.save([replace(made, graphs={Stage.TRACED: placed})], Path("placed.g2m.json"))
    assert run("render", "placed.g2m.json", "--color", "device").stderr == ""
