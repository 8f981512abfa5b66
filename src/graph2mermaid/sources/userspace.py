"""Where the user's own code lives: what it may import, and what it sees while it runs.

A file is imported as `python file.py` would run it: its folder can be imported from, and its
argument list is its own. What is imported from one folder stays apart from what is imported from
another, so that two targets may each have their own `layers.py`.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FrameType, ModuleType

_PACKAGE = str(Path(__file__).parent.parent) + os.sep
_LIBRARIES = tuple(
    # Now, since asking for the first time imports a module, which would ask our finder again.
    sysconfig.get_path(name) + os.sep
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


@dataclass(eq=False)
class Home:
    """A folder that user code is imported from.

    Use [`home_of`][graph2mermaid.sources.userspace.home_of], which gives the same object for the
    same folder.
    """

    root: Path
    """What is in it goes before installed packages of the same name, in user code."""
    others: list[Path] = field(default_factory=list)
    """Further folders that are looked into last, after installed packages."""
    _before: frozenset[str] = frozenset()
    _modules: dict[str, ModuleType] = field(default_factory=dict)

    @contextmanager
    def entered(self, script: str) -> Iterator[None]:
        """Let user code run: imports come from this home, and `sys.argv` is the script alone.

        Everything is put back afterwards, the working directory included; what was imported
        stays imported until another home is entered, and is there again when this one is.
        """
        _entered.append(self)
        _make_current(self)
        finder = _SiblingFinder(self.root)
        folder = Path.cwd()
        added = [str(path) for path in dict.fromkeys((self.root, *self.others, folder))]
        argv, sys.argv = sys.argv, [script]
        sys.meta_path.insert(0, finder)
        sys.path.extend(added)
        importlib.invalidate_caches()
        try:
            yield
        finally:
            with suppress(OSError):  # it may be gone by now
                os.chdir(folder)
            sys.argv = argv
            if finder in sys.meta_path:
                sys.meta_path.remove(finder)
            for path in added:
                _remove_last(sys.path, path)
            _entered.pop()
            if _entered:
                _make_current(_entered[-1])

    def add(self, folder: Path) -> None:
        """Let modules be found in one more folder, after everything else."""
        if folder not in (self.root, *self.others):
            self.others.append(folder)

    def owns(self, module: ModuleType) -> bool:
        """Tell whether a top-level module lies directly in one of the folders."""
        locations = list(getattr(module, "__path__", ()))  # a package, with or without __init__.py
        if not locations and isinstance(file := getattr(module, "__file__", None), str):
            locations = [file]
        return any(Path(location).parent in (self.root, *self.others) for location in locations)

    def _leave(self) -> None:
        """Take what was imported from here out of the way of another home."""
        tops = {
            name
            for name, module in list(sys.modules.items())
            if "." not in name and name not in self._before and self.owns(module)
        }
        for name in list(sys.modules):
            if name.partition(".")[0] in tops:
                self._modules[name] = sys.modules.pop(name)

    def _come_back(self) -> None:
        self._before = self._before or frozenset(sys.modules)
        sys.modules.update(self._modules)


# There is one `sys.modules` and one search path in a process, so this state is the module's.
_entered: list[Home] = []
_current: list[Home] = []


def _make_current(home: Home) -> None:
    if _current == [home]:
        return
    for other in _current:
        other._leave()
    home._come_back()
    _current[:] = [home]


@functools.cache
def home_of(root: Path) -> Home:
    """Return the home of a folder, always the same object for the same one."""
    return Home(root)


class _SiblingFinder(MetaPathFinder):
    """Finds the modules beside the user's file, before installed ones, for user code only.

    A folder at the head of `sys.path` would do the same for everybody: a file called `random.py`
    in it would then break the standard library, and one called `keras.py` TensorFlow.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return the spec of a sibling, or None to let the search go on."""
        if path is not None or fullname in sys.stdlib_module_names:
            return None
        if not is_own_code(_importer()):
            return None
        spec = PathFinder.find_spec(fullname, [self._folder])
        if spec is None or spec.loader is None:  # a folder without __init__.py comes last
            return None
        return None if is_loaded_otherwise(spec) else spec


def is_loaded_otherwise(spec: ModuleSpec) -> bool:
    """Tell whether a file is already loaded under another name than the spec's.

    A target called `keras.py` is; its `import keras` means the installed package.
    """
    return spec.name not in sys.modules and any(
        getattr(module, "__file__", None) == spec.origin for module in list(sys.modules.values())
    )


def _importer() -> str:
    """Return the file of the code whose import statement is being carried out."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        name = frame.f_globals.get("__name__", "")
        importing = file.startswith("<frozen importlib") or name.partition(".")[0] == "importlib"
        if file != __file__ and not importing:
            return file
        frame = frame.f_back
    return ""


@functools.cache
def is_own_code(file: str) -> bool:
    """Tell whether a file is the user's: not of an installed package, Python or this package."""
    if file.startswith("<"):
        return False
    if file.startswith(_PACKAGE) or not {"site-packages", "dist-packages"}.isdisjoint(
        Path(file).parts
    ):
        return False
    return not file.startswith(_LIBRARIES)


def _remove_last(items: list[str], item: str) -> None:
    for index in range(len(items) - 1, -1, -1):
        if items[index] == item:
            del items[index]
            return
