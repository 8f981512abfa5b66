"""The shape of the package: who may import whom, and what stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import graph2mermaid
from graph2mermaid.capture import Capture
from graph2mermaid.graph import Stage
from tests.builders import graph

PACKAGE = Path(graph2mermaid.__file__).parent

CORE = {"collector", "errors", "graph"}
RECORDING = CORE | {"capture", "hlo", "memory", "optimization", "provenance"}
READING = RECORDING | {"liveness", "passes", "mermaid", "report", "views"}

MAY_IMPORT = {
    "collector": set[str](),
    "errors": set[str](),
    "graph": {"errors"},
    "hlo": CORE,
    "memory": CORE,
    "liveness": CORE | {"memory"},
    "optimization": CORE,
    "provenance": CORE | {"optimization"},
    "capture": CORE | {"hlo", "memory", "optimization", "provenance"},
    "serde": RECORDING,
    "passes": CORE,
    "mermaid": CORE | {"passes"},
    "report": CORE | {"mermaid"},
    "views": READING,
    "sources": RECORDING,
}
"""Each part of the package, and the other parts that it may import.

The rim (`__init__`, `__main__`, `cli`) may import everything.
"""

RIM = {"__init__", "__main__", "cli"}

SANCTIONED = {("capture", "views"), ("capture", "serde"), ("capture", "report")}
"""A capture makes its own report and saves itself: inside a method, or for type checkers only."""

TENSORFLOW = {"tensorflow", "keras", "tf_keras", "google", "numpy"}
KNOWS_TENSORFLOW = {"sources"}


@dataclass(frozen=True)
class Import:
    """One imported module, and where the statement stands."""

    file: str
    line: int
    part: str
    module: str
    late: bool
    """Inside a function, or under `if TYPE_CHECKING`: not run when the module is imported."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


def test_imports_point_one_way():
    """No part of the package imports a part that the table does not allow it."""
    wrong = [
        str(found)
        for found in imports()
        if (target := part_of(found.module)) is not None
        and found.part not in RIM
        and target not in {found.part, *MAY_IMPORT[found.part]}
        and not (found.late and (found.part, target) in SANCTIONED)
    ]
    assert wrong == []


def test_every_part_has_a_place_in_the_table():
    """A new module or folder is put into the table, or it would not be checked."""
    parts = {path.stem for path in PACKAGE.glob("*.py")}
    parts |= {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert parts == {*MAY_IMPORT, *RIM}


def test_only_the_sources_know_tensorflow():
    """TensorFlow and what it brings are imported in `sources` alone, and only in functions."""
    wrong = [
        str(found)
        for found in imports()
        if found.module.partition(".")[0] in TENSORFLOW
        and not (found.part in KNOWS_TENSORFLOW and found.late)
    ]
    assert wrong == []


def test_imports_are_found_where_they_hide():
    """The walk that the tests above rest on sees nested, aliased and type-only imports."""
    text = """
import a.b as c
from d import e
if TYPE_CHECKING:
    import f
def g():
    def h():
        from i.j import k
"""
    found = {(module, late) for module, _, late in walk(ast.parse(text))}
    assert found == {("a.b", False), ("d.e", False), ("f", True), ("i.j.k", True)}


def test_no_public_name_is_a_submodule():
    """Importing a submodule must not replace a public function of the same name."""
    modules = {path.stem for path in PACKAGE.glob("*.py")}
    modules |= {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    assert modules.isdisjoint(graph2mermaid.__all__)


def test_no_module_is_a_drawer():
    """Every module says by its name what is in it."""
    names = {path.stem for path in PACKAGE.rglob("*.py")}
    assert names.isdisjoint({"utils", "util", "helpers", "helper", "common", "misc"})


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import graph2mermaid", {"click", "networkx", "numpy", "tensorflow"}),
        ("run(['--help'])", {"networkx", "numpy", "tensorflow", "keras", "markdown_it"}),
        ("run(['--version'])", {"networkx", "numpy", "tensorflow", "keras", "markdown_it"}),
    ],
    ids=["import", "help", "version"],
)
def test_start_up_is_light(statement: str, heavy: set[str]):
    """What every run pays for imports none of the slow packages."""
    assert loaded_modules(statement).isdisjoint(heavy)


def test_render_works_without_tensorflow(tmp_path: Path):
    """A report from a capture file never imports TensorFlow, whether or not it is installed."""
    file = tmp_path / "small.g2m.json"
    small = graph("x:Placeholder -> r:Relu")
    Capture("small.py:f", "f", {Stage.TRACED: small}).save(file)
    out = tmp_path / "small.md"

    loaded = loaded_modules(f"run(['render', {str(file)!r}, '--out', {str(out)!r}])")

    assert loaded.isdisjoint(TENSORFLOW - {"google"})
    assert "Relu" in out.read_text(encoding="utf-8")


def imports() -> Iterator[Import]:
    """Yield every import statement of the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE)
        part = relative.parts[0].removesuffix(".py")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for module, line, late in walk(tree):
            yield Import(str(relative), line, part, module, late)


def walk(node: ast.AST, late: bool = False) -> Iterator[tuple[str, int, bool]]:
    """Yield module, line and lateness of the imports in a syntax tree.

    `from a import b` yields `a.b`: b may be a module.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, child.lineno, late) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            for alias in child.names:
                yield f"{child.module}.{alias.name}", child.lineno, late
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        type_only = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        yield from walk(child, late or inside or type_only)


def part_of(module: str) -> str | None:
    """Return the part of the package that a module belongs to, or None for other packages."""
    package, _, rest = module.partition(".")
    if package != graph2mermaid.__name__:
        return None
    part = rest.partition(".")[0]
    known = (PACKAGE / part).is_dir() or (PACKAGE / f"{part}.py").is_file()
    return part if known else "__init__"


def loaded_modules(statement: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter has imported after a statement.

    `run(arguments)` in the statement is the command line.
    """
    program = f"""
import sys

def run(arguments):
    from graph2mermaid.__main__ import main

    sys.argv = ["graph2mermaid", *arguments]
    try:
        main()
    except SystemExit as stop:
        assert not stop.code, stop.code

{statement}
names = sorted({{name.partition(".")[0] for name in sys.modules}})
print("loaded:", *names, file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        cwd=PACKAGE.parent,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].removeprefix("loaded: ").split())
