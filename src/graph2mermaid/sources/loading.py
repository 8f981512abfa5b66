"""Loading the user's Python files and modules, as importing them would."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import itertools
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType, TracebackType

from graph2mermaid.errors import Graph2MermaidError, MissingDependencyError, TargetError
from graph2mermaid.sources.userspace import Home, home_of, is_own_code

_LONGEST_MESSAGE = 300


@dataclass(frozen=True)
class Loaded:
    """A module of the user's, and where its code has to run."""

    module: ModuleType
    home: Home
    shown: str
    """The file or module as the user typed it."""


def load_file(path: Path, shown: str | None = None) -> Loaded:
    """Load a Python file, once per process.

    A file in a package is imported as its member; any other file under its own name, or, where
    that name is taken, under one made from it, so that no other module is replaced.

    Args:
        path: The file.
        shown: What messages call it; the path if not given.

    Raises:
        TargetError: The file cannot be read, is not valid Python, or fails while it is loaded.
        MissingDependencyError: It needs TensorFlow, which is not installed.
    """
    shown = shown or str(path)
    file = Path(os.path.abspath(path))  # noqa: PTH100  # Path.resolve() would follow links
    with explained(shown):
        root, packages = _package_of(file)
    home = home_of(root)
    home.add(file.parent)
    home.add(file.resolve().parent)
    with home.entered(shown), explained(shown):
        module = _find_file(file) or _import_file(file, root, packages)
    return Loaded(module, home, shown)


def load_module(name: str) -> Loaded:
    """Import a module by its dotted name; the working directory is searched first.

    Raises:
        TargetError: There is no such module, or it fails while it is imported.
        MissingDependencyError: It needs TensorFlow, which is not installed.
    """
    home = home_of(Path.cwd())
    with home.entered(name), explained(name):
        top = name.partition(".")[0]
        if top not in sys.modules and top not in sys.stdlib_module_names:
            spec = PathFinder.find_spec(top, [str(home.root)])
            if spec is not None and spec.loader is not None:
                _execute(spec)
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
            raise TargetError(f"there is no file, folder or module called {name!r}") from None
    return Loaded(module, home, name)


@contextmanager
def explained(shown: str) -> Iterator[None]:
    """Turn whatever user code raises into one line that names the file and line.

    Raises:
        TargetError: The code raised something, or called `sys.exit`.
        MissingDependencyError: It needs TensorFlow, which is not installed.
    """
    try:
        yield
    except (KeyboardInterrupt, Graph2MermaidError):
        raise
    except SystemExit as error:
        place = _at(error)
        raise TargetError(
            f"cannot load {shown}: it called sys.exit({error.code!r}){place}; "
            'put what runs a program under `if __name__ == "__main__":`'
        ) from error
    except BaseException as error:
        needed = (error.name or "").partition(".")[0] if isinstance(error, ImportError) else ""
        if needed == "tensorflow" and isinstance(error, ModuleNotFoundError):
            raise MissingDependencyError(
                f"{shown} needs TensorFlow, which is not installed: "
                "pip install 'graph2mermaid[cpu]'"
            ) from error
        raise TargetError(
            f"cannot load {shown}: {type(error).__name__}{_at(error)}: "
            f"{one_line(error)}{_hint(error, needed)}"
        ) from error


def one_line(error: BaseException) -> str:
    """Return an exception's message on one line, cut where it gets long."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    text = " ".join(text.split()) or "no message"
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 1] + "…"


def user_line(error: BaseException) -> tuple[str, int] | None:
    """Return file and line of the innermost frame in the user's own code, if there is one."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return _shown_file(error.filename), error.lineno
    return _innermost(error.__traceback__)


def _innermost(trace: TracebackType | None) -> tuple[str, int] | None:
    found = None
    for frame, line in traceback.walk_tb(trace):
        if is_own_code(frame.f_code.co_filename):
            found = (_shown_file(frame.f_code.co_filename), line)
    return found


def _at(error: BaseException) -> str:
    place = user_line(error)
    return "" if place is None else f" at {place[0]}:{place[1]}"


def _hint(error: BaseException, module: str) -> str:
    """Say it when two modules have the same name, one of them the user's."""
    place = _innermost(error.__traceback__)
    if place is None:
        return ""
    if module in sys.stdlib_module_names:
        sibling = Path(place[0]).with_name(f"{module}.py")
        if sibling.is_file():
            return f" ({sibling} has the name of one of Python's own modules; rename it)"
    hiding = getattr(error, "obj", None)  # of an AttributeError
    file = getattr(hiding, "__file__", None) if isinstance(hiding, ModuleType) else None
    if hiding is None or file is None or not is_own_code(file):
        return ""
    if not _is_taken(hiding.__name__, Path(file).parent, known=False):
        return ""
    return f" ({_shown_file(file)} hides the package {hiding.__name__}; rename it)"


def _shown_file(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def _package_of(file: Path) -> tuple[Path, list[Path]]:
    """Return the folder to import from, and the package folders between it and the file."""
    if not os.access(file, os.R_OK):
        raise PermissionError("the file may not be read")
    packages = [
        *itertools.takewhile(
            lambda folder: (folder / "__init__.py").is_file() and folder.name.isidentifier(),
            file.parents,
        )
    ]
    if not packages:
        # Without an __init__.py the file may still be written for `python -m folder.file`.
        depth = _relative_depth(file)
        packages = list(file.parents[:depth]) if depth < len(file.parents) else []
    root = packages[-1].parent if packages else file.parent
    return root, packages[::-1]


def _relative_depth(file: Path) -> int:
    """Return how many folders up a file's relative imports reach."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return 0  # loading it will say so
    return max((n.level for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)), default=0)


def _import_file(file: Path, root: Path, packages: list[Path]) -> ModuleType:
    parent = _import_packages(packages)
    if file.stem == "__init__":
        if parent:
            return sys.modules[parent]
        name, search = _free_name(file.parent.name, root), [str(file.parent)]
    else:
        name, search = (f"{parent}.{file.stem}" if parent else _free_name(file.stem, root)), None
    found = _find_file(file)  # its package may have imported it
    if found is not None:
        return found
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=search)
    if spec is None:
        raise TargetError(f"{file.name} is not a Python file")
    module = _execute(spec)
    if parent:
        setattr(sys.modules[parent], file.stem, module)
    return module


def _import_packages(packages: list[Path]) -> str:
    """Import a chain of package folders and return the innermost one's name."""
    if not packages:
        return ""
    name = _import_top(packages[0])
    for folder in packages[1:]:
        name = f"{name}.{folder.name}"
        importlib.import_module(name)
    return name


def _import_top(folder: Path) -> str:
    for known, module in list(sys.modules.items()):
        if "." not in known and any(_same(folder, p) for p in getattr(module, "__path__", ())):
            return known
    name = folder.name
    if name in sys.modules or name in sys.stdlib_module_names:
        name = _free_name(name, folder.parent)
    init = folder / "__init__.py"
    if init.is_file():
        spec = importlib.util.spec_from_file_location(
            name, init, submodule_search_locations=[str(folder)]
        )
    else:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
    assert spec is not None  # noqa: S101  # every .py file has a loader
    _execute(spec)
    return name


def _free_name(wanted: str, root: Path) -> str:
    """Return a module name like the wanted one that no other module has or would get."""
    name = re.sub(r"\W", "_", wanted)
    if name == wanted and not _is_taken(name, root):
        return name
    return next(n for n in (f"{name}_{i}" for i in itertools.count(1)) if not _is_taken(n, root))


def _is_taken(name: str, root: Path, *, known: bool = True) -> bool:
    """Tell whether another module has a name (if `known`), or would be found under it."""
    if known and (name in sys.modules or name in sys.stdlib_module_names):
        return True
    elsewhere = [entry for entry in sys.path if Path(entry or ".").absolute() != root]
    spec = PathFinder.find_spec(name, elsewhere)
    return spec is not None and spec.loader is not None and spec.origin is not None


def _execute(spec: ModuleSpec) -> ModuleType:
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        if spec.loader is not None:
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(spec.name, None)
        raise
    return sys.modules.get(spec.name, module)


def _find_file(file: Path) -> ModuleType | None:
    """Return the module that a file was already loaded as."""
    for name, module in list(sys.modules.items()):
        known = getattr(module, "__file__", None)
        if (
            name != "__main__"
            and isinstance(known, str)
            and Path(known).name == file.name
            and _same(file, known)
        ):
            return module
    return None


def _same(file: Path, other: str) -> bool:
    try:
        return file.samefile(other)
    except OSError:
        return False
