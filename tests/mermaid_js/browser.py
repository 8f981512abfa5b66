"""The real Mermaid in a headless browser, and what is read back from its pictures."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graph2mermaid.mermaid.diagram import Diagram, Frame
from graph2mermaid.mermaid.escape import readable, shown

HERE = Path(__file__).parent
VERSIONS = ("12", "11", "10")
"""The newest; 11.12.2, which reads labels as Markdown; 10.7.0, which JupyterLab and GitLab use."""


class Unavailable(Exception):
    """There is no browser, no node, or no Mermaid on this machine."""


@dataclass(frozen=True)
class Rendered:
    """One picture. Labels have a line feed at each line break."""

    ok: bool
    error: str = ""
    nodes: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)
    edges: tuple[tuple[str, str], ...] = ()
    edge_labels: tuple[str, ...] = ()
    title: str = ""
    description: str = ""
    width: int = 0
    height: int = 0
    ms: int = 0


@dataclass(frozen=True)
class Meant:
    """What a picture has to show."""

    nodes: Mapping[str, str]
    clusters: Mapping[str, str]
    edges: tuple[tuple[str, str], ...]
    edge_labels: tuple[str, ...]

    @classmethod
    def by_diagram(cls, diagram: Diagram) -> Meant:
        """Say what a diagram means, with the ids that the writer promises."""
        ids = {key: f"n{number}" for number, key in enumerate(diagram.boxes)}
        frames = [frame for frame in _frames(diagram.frames) if not frame.empty]
        return cls(
            nodes={ids[key]: _seen(box.lines) for key, box in diagram.boxes.items()},
            clusters={
                f"s{number}": _seen([" · ".join(filter(None, frame.lines))])
                for number, frame in enumerate(frames)
            },
            edges=tuple((ids[link.source], ids[link.target]) for link in diagram.links),
            edge_labels=tuple(filter(None, (_seen(link.lines) for link in diagram.links))),
        )

    @classmethod
    def by_text(cls, text: str) -> Meant:
        """Read what a text of our own writer means."""
        nodes = re.findall(r'^\s*(n\d+)[\[({]+"([^"]*)"', text, re.MULTILINE)
        clusters = re.findall(r'^\s*subgraph (s\d+)\["([^"]*)"\]', text, re.MULTILINE)
        edges = re.findall(
            r'^\s*(n\d+) (?:-->|-\.->|==>)(?:\|"([^"]*)"\|)? (n\d+)$', text, re.MULTILINE
        )
        return cls(
            nodes={name: _seen_text(text) for name, text in nodes},
            clusters={name: _seen_text(text) for name, text in clusters},
            edges=tuple((source, target) for source, _, target in edges),
            edge_labels=tuple(filter(None, (_seen_text(text) for _, text, _ in edges))),
        )

    def differences(self, got: Rendered, *, html_labels: bool) -> Iterator[str]:
        """Say in which ways a picture shows something else."""
        if not got.ok:
            yield got.error
            return
        # Without HTML, Mermaid cuts lines where they get too wide, and what was a space is lost.
        look = readable if html_labels else lambda text: "".join(readable(text).split())
        for what, meant, shown_ in (
            ("node", self.nodes, got.nodes),
            ("cluster", self.clusters, got.clusters),
        ):
            for name in sorted({*meant, *shown_}):
                wanted, seen = look(meant.get(name, "(none)")), look(shown_.get(name, "(none)"))
                if wanted != seen:
                    yield f"{what} {name}: meant {wanted!r}, drawn {seen!r}"
        if Counter(self.edges) != Counter(got.edges):
            yield f"edges: meant {sorted(self.edges)}, drawn {sorted(got.edges)}"
        wanted_labels, labels = (
            sorted(map(look, self.edge_labels)),
            sorted(map(look, got.edge_labels)),
        )
        if wanted_labels != labels:
            yield f"edge labels: meant {wanted_labels}, drawn {labels}"


class Browser:
    """A process that draws with all pinned versions of Mermaid."""

    def __init__(self, node: str, chromium: str) -> None:
        self._process = subprocess.Popen(
            [node, str(HERE / "render.mjs"), chromium],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def render(
        self, texts: Sequence[str], version: str = "12", html_labels: bool = True
    ) -> list[Rendered]:
        """Draw each text, and say what the picture shows or why there is none."""
        return [self._render(text, version, html_labels) for text in texts]

    def assert_drawn(
        self,
        text: str,
        diagram: Diagram | None = None,
        version: str = "12",
        html_labels: bool = True,
    ) -> Rendered:
        """Draw a text of our writer and fail unless the picture shows all that it means.

        Nodes, clusters, edges and every label are read back. Where the diagram that the text was
        written from is given, the picture has to show that as well.
        """
        [rendered] = self.render([text], version, html_labels)
        wrong = list(Meant.by_text(text).differences(rendered, html_labels=html_labels))
        if diagram is not None and not wrong:
            wrong = list(Meant.by_diagram(diagram).differences(rendered, html_labels=html_labels))
        where = f"Mermaid {version}, {'HTML' if html_labels else 'SVG'} labels"
        assert not wrong, "\n".join([f"{where}:", *wrong, text])
        return rendered

    def close(self) -> None:
        """End the process and its browser."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _render(self, text: str, version: str, html_labels: bool) -> Rendered:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"id": 0, "text": text, "version": version, "htmlLabels": html_labels}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the browser ended with status {self._process.wait()}"
        answer = json.loads(line)
        if not answer["ok"]:
            return Rendered(ok=False, error=answer["error"])
        return Rendered(
            ok=True,
            nodes=answer["nodes"],
            clusters=answer["clusters"],
            edges=tuple((source, target) for source, target in answer["edges"]),
            edge_labels=tuple(answer["edgeLabels"]),
            title=answer["title"],
            description=answer["description"],
            width=answer["width"],
            height=answer["height"],
            ms=answer["ms"],
        )


def start() -> Browser:
    """Start a browser, after fetching the pinned packages where they are missing.

    Raises:
        Unavailable: Something it needs is not on this machine; the message says what.
    """
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium or not Path(chromium).exists():
        raise Unavailable("no chromium: install it, or set CHROMIUM to its path")
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        raise Unavailable("no node or no npm on PATH")
    _install(npm)
    return Browser(node, chromium)


def _install(npm: str) -> None:
    """Fetch the packages once for all processes, again when package.json has changed."""
    wanted = (HERE / "package.json").read_text(encoding="utf-8")
    done = HERE / "node_modules" / ".installed.json"
    (HERE / "node_modules").mkdir(exist_ok=True)
    with (HERE / "node_modules" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists() and done.read_text(encoding="utf-8") == wanted:
            return
        quiet = ["--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"]
        result = subprocess.run([npm, "install", *quiet], cwd=HERE, check=False)
        if result.returncode:
            raise Unavailable(f"npm install failed with status {result.returncode}")
        done.write_text(wanted, encoding="utf-8")


def _frames(frames: Sequence[Frame]) -> Iterator[Frame]:
    for frame in frames:
        yield frame
        yield from _frames(frame.frames)


def _seen(lines: Sequence[str]) -> str:
    return readable("\n".join(shown(lines)))


def _seen_text(label_text: str) -> str:
    return readable(label_text.replace("<br/>", "\n"))
