"""The options that steer pages, as words on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph2mermaid import serde
from tests.builders import capture
from tests.cli.conftest import Run, names
from tests.report.reading import read
from tests.views.optimized_captures import dense


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """A capture file of eight layers in a row."""
    lines = ["x:Placeholder float32[4]"]
    before = "x"
    for layer in range(8):
        for op in range(6):
            lines.append(f"{before} -> layer{layer}/op{op}:Op{layer}x{op} float32[4]")
            before = f"layer{layer}/op{op}"
    path = tmp_path / "chain.g2m.json"
    serde.save([capture("\n".join(lines), name="chain")], path)
    return path


@pytest.mark.parametrize("command", [["render"], []], ids=["render", "default"])
@pytest.mark.parametrize(
    ("words", "there", "not_there"),
    [
        (["--depth", "0"], "layer7", "Op7x3"),
        (["--max-nodes", "8"], "ops", "Op7x3"),
        (["--max-nodes", "100", "--no-fold"], "Op7x0", "group"),
        (["--focus", "layer3/op3"], "Op3x2", "Op3x1"),
        (["--focus", "layer3/op3", "--hops", "2"], "Op3x1", "Op3x0"),
        (["--from", "layer3/op3", "--to", "layer4"], "Op4x5", "Op3x2"),
    ],
    ids=["depth", "max-nodes", "no-fold", "focus", "hops", "from-to"],
)
def test_options_reach_the_first_diagram(
    run: Run, chain: Path, command: list[str], words: list[str], there: str, not_there: str
):
    """Both commands take them, and one diagram is the one that they ask for."""
    result = run(*command, chain.name, "--format", "mmd", *words)
    assert (result.exit_code, result.stderr) == (0, "")
    assert (there in result.stdout, not_there in result.stdout) == (True, False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--hops", "2"], "--hops goes with --focus"),
        (["--from", "x"], "--from goes with --to"),
        (["--to", "x"], "--to goes with --from"),
        (["--max-nodes", "1"], "1 is not in the range x>=4"),
        (["--focus", "layre3"], "close to it: layer3"),
        (["--from", "layer3", "--to", "layer2"], "no path from 'layer3' to 'layer2'"),
    ],
)
def test_errors_are_one_line(run: Run, chain: Path, words: list[str], message: str):
    """What does not fit is said in a line, and nothing is written."""
    result = run("render", chain.name, "--out-dir", "pages", *words)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert message in result.stderr
    assert not Path("pages").exists()


def test_a_file_for_each_picture(run: Run, chain: Path):
    """`--out-dir` has an index that links to a file for each part, and they link back."""
    assert run("render", chain.name, "--out-dir", "pages", "--depth", "0").exit_code == 0
    written = names("pages")
    assert written == sorted(
        [".graph2mermaid.json", "index.md", *(f"chain-layer{number}.md" for number in range(8))]
    )
    index = read(Path("pages/index.md").read_text(encoding="utf-8"))
    assert index.items == [f"layer{number}" for number in range(8)]
    assert ("layer3", "chain-layer3.md") in index.links
    part = read(Path("pages/chain-layer3.md").read_text(encoding="utf-8"))
    assert part.headings[0] == (1, "layer3")
    assert ("f", "index.md") in part.links


def test_a_diagram_for_each_picture(run: Run, chain: Path):
    """With `--format mmd` every file is one diagram."""
    words = ["--out-dir", "pages", "--depth", "0", "--format", "mmd"]
    assert run("render", chain.name, *words).exit_code == 0
    written = [name for name in names("pages") if name.endswith(".mmd")]
    assert len(written) == 9
    texts = [Path("pages", name).read_text(encoding="utf-8") for name in written]
    assert all(text.startswith("graph TD\n") and text.count("graph TD") == 1 for text in texts)


def test_ghosts_reach_the_grappler_view(run: Run, tmp_path: Path):
    """Both commands draw what was removed when asked to."""
    path = tmp_path / "dense.g2m.json"
    serde.save([dense()], path)
    for command in (["render"], []):
        words = [*command, path.name, "--view", "grappler", "--format", "mmd"]
        assert "removed" not in run(*words).stdout
        assert "removed: it changes nothing" in run(*words, "--ghosts").stdout
