"""Loading the user's files as importing them would, without touching anybody else's modules."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import random
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph2mermaid.errors import MissingDependencyError, TargetError
from graph2mermaid.sources.loading import Loaded, load_file, load_module


@pytest.fixture(autouse=True)
def _put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work in the test's folder, and forget afterwards what was loaded from it."""
    monkeypatch.chdir(tmp_path)
    before = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(before):
        del sys.modules[name]


def write(**files: str) -> None:
    """Write Python files into the working directory; two underscores in a name are a slash."""
    for name, text in files.items():
        path = Path(name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")


def packages(*folders: str) -> None:
    for folder in folders:
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / "__init__.py").touch()


def load(path: str) -> Loaded:
    return load_file(Path(path))


def test_a_file_is_a_module_like_any_other():
    """What importing gives a module is there: its name, file and spec, its source and pickling."""
    write(
        model="""
        import dataclasses

        @dataclasses.dataclass
        class Config:
            width: int = 3

        def f(x):
            return x
        """
    )
    module = load("model.py").module
    assert module.__name__ == "model"
    assert module.__file__ == str(Path("model.py").absolute())
    assert module.__spec__ is not None
    assert inspect.getsource(module.f) == "def f(x):\n    return x\n"
    assert dataclasses.asdict(pickle.loads(pickle.dumps(module.Config(4)))) == {"width": 4}


def test_a_file_runs_once():
    """Several names of one file load it a single time, however its path is written."""
    write(model="runs = []\nruns.append(1)")
    first = load("model.py").module
    assert load(str(Path("model.py").absolute())).module is first
    assert load("./model.py").module is first
    assert first.runs == [1]


def test_main_blocks_do_not_run():
    """The part that runs a file as a program is left alone."""
    write(model="ran = False\nif __name__ == '__main__':\n    ran = True")
    assert load("model.py").module.ran is False


def test_siblings_can_be_imported_at_once_and_later():
    """The file's folder is importable while it loads, and while its code runs afterwards."""
    write(
        app__model="""
        import first

        def later():
            import second
            return second.VALUE
        """,
        app__first="VALUE = 1",
        app__second="VALUE = 2",
    )
    loaded = load("app/model.py")
    with loaded.home.entered("app/model.py"):
        assert loaded.module.later() == 2
    assert loaded.module.first.VALUE == 1


def test_a_file_of_a_package_is_imported_as_its_member():
    """Relative imports work, and so do siblings of the topmost package."""
    packages("src/net", "src/net/blocks")
    write(
        src__helpers="BIAS = 1.0",
        src__net__layers="def act(x): return x",
        src__net__blocks__model="""
        import helpers
        from ..layers import act
        from . import __name__ as package
        """,
    )
    module = load("src/net/blocks/model.py").module
    assert module.__name__ == "net.blocks.model"
    assert module.package == "net.blocks"
    assert module.helpers.BIAS == 1.0
    assert module.act is sys.modules["net.layers"].act
    assert sys.modules["net.blocks"].model is module


def test_relative_imports_need_no_init_file():
    """A folder without `__init__.py` is a package all the same, where the file treats it as one."""
    write(net__model="from .layers import act", net__layers="act = 'act'")
    module = load("net/model.py").module
    assert (module.__name__, module.act) == ("net.model", "act")


def test_a_module_that_its_package_imported_is_not_loaded_again():
    """`__init__.py` may import the target itself."""
    packages("net")
    Path("net/__init__.py").write_text("from net.model import f\n", encoding="utf-8")
    write(net__model="runs = globals().get('runs', 0) + 1\ndef f(x): return x")
    module = load("net/model.py").module
    assert module is sys.modules["net.model"]
    assert module.runs == 1


def test_a_package_itself_is_its_init_file():
    """`net/__init__.py` is loaded as the package."""
    packages("net")
    write(net__layers="act = 1")
    Path("net/__init__.py").write_text("from .layers import act\n", encoding="utf-8")
    assert load("net/__init__.py").module is sys.modules["net"]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("my model-v2.py", "my_model_v2_1"),
        ("1st.py", "1st"),
        ("random.py", "random_1"),
        ("pytest.py", "pytest_1"),
    ],
    ids=["spaces", "digit", "standard library", "installed"],
)
def test_awkward_names(file: str, name: str):
    """Any file name loads, and none takes the place of another module."""
    before = sys.modules.get(Path(file).stem)
    Path(file).write_text("MARK = 'user file'\n", encoding="utf-8")
    loaded = load(file)
    assert (loaded.module.MARK, loaded.module.__name__) == ("user file", name)
    assert sys.modules[name] is loaded.module
    assert sys.modules.get(Path(file).stem, before) in (before, loaded.module)


def test_a_folder_cannot_shadow_the_standard_library():
    """`random.py` beside the target, or the target itself, is not what `import random` means."""
    write(random="raise RuntimeError('not this one')", model="import random\nfound = random")
    assert load("model.py").module.found is random


def test_a_target_may_have_the_name_of_what_it_imports():
    """`pytest.py` that says `import pytest` gets the installed package."""
    write(pytest="import pytest as found")
    assert load("pytest.py").module.found is pytest


def test_siblings_go_before_installed_packages_for_user_code_alone():
    """The user's own module wins in the user's files; what libraries import is not replaced."""
    packages("site-packages/library")
    write(
        installed="WHOSE = 'user'",
        model="""
        import installed
        import library
        """,
    )
    site = Path("site-packages")
    (site / "installed_too.py").write_text("WHOSE = 'library'\n", encoding="utf-8")
    Path("installed_too.py").write_text("WHOSE = 'user'\n", encoding="utf-8")
    (site / "installed.py").write_text("WHOSE = 'library'\n", encoding="utf-8")
    (site / "library/__init__.py").write_text("import installed_too as found\n", encoding="utf-8")
    sys.path.append(str(site.absolute()))
    try:
        module = load("model.py").module
    finally:
        sys.path.remove(str(site.absolute()))
    assert module.installed.WHOSE == "user"
    assert module.library.found.WHOSE == "library"


def test_two_folders_keep_their_modules_apart():
    """Two targets with siblings of the same name each get their own, now and later."""
    for folder in ("a", "b"):
        write(
            **{
                f"{folder}__model": """
                from layers import NAME

                def later():
                    import layers, extra
                    return layers.NAME + extra.NAME
                """,
                f"{folder}__layers": f"NAME = {folder!r}",
                f"{folder}__extra": f"NAME = {folder!r}",
            }
        )
    first, second = load("a/model.py"), load("b/model.py")
    assert (first.module.NAME, second.module.NAME) == ("a", "b")
    for loaded, name in ((first, "aa"), (second, "bb"), (first, "aa")):
        with loaded.home.entered("model.py"):
            assert loaded.module.later() == name


def test_packages_of_the_same_name_stay_apart():
    """Two checkouts of one project can be compared in one call."""
    for folder in ("old", "new"):
        packages(f"{folder}/net")
        write(
            **{
                f"{folder}__net__model": "from net.layers import NAME",
                f"{folder}__net__layers": f"NAME = {folder!r}",
            }
        )
    assert [load(f"{f}/net/model.py").module.NAME for f in ("old", "new")] == ["old", "new"]


def test_a_package_with_the_name_of_a_standard_module():
    """A stray `__init__.py` in a folder called `code` breaks neither the file nor Python."""
    import code

    packages("code")
    write(code__model="from .layers import act", code__layers="act = 1")
    module = load("code/model.py").module
    assert (module.act, sys.modules["code"]) == (1, code)


def test_user_code_sees_an_argument_list_of_its_own(monkeypatch: pytest.MonkeyPatch):
    """A file that parses `sys.argv` does not see ours, and it is there again afterwards."""
    ours = ["graph2mermaid", "model.py:f", "--out", "graph.md"]
    monkeypatch.setattr(sys, "argv", ours)
    write(
        model="""
        import argparse, sys
        parser = argparse.ArgumentParser()
        parser.add_argument("--units", type=int, default=4)
        units = parser.parse_args().units
        argv = list(sys.argv)
        """
    )
    module = load("model.py").module
    assert (module.units, module.argv) == (4, ["model.py"])
    assert sys.argv is ours


def test_nothing_else_of_the_process_changes():
    """The search path, the finders and the working directory are as they were."""
    write(model="import os\nos.chdir('/')")
    before = (list(sys.path), list(sys.meta_path), Path.cwd())
    load("model.py")
    assert (list(sys.path), list(sys.meta_path), Path.cwd()) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\nx.y\n", "AttributeError at model.py:2: 'int' object has no attribute 'y'"),
        ("def f(:\n    pass\n", "SyntaxError at model.py:1: invalid syntax"),
        ("import json\njson.loads('{')\n", "JSONDecodeError at model.py:2: Expecting property"),
        (
            "\nimport no_such_module_here\n",
            "ModuleNotFoundError at model.py:2: No module named 'no_such_module_here'",
        ),
        ("raise ValueError('two\\n  lines')\n", "ValueError at model.py:1: two lines"),
        ("raise ValueError\n", "ValueError at model.py:1: no message"),
        (
            "import sys\nsys.exit('wrong data')\n",
            (
                "it called sys.exit('wrong data') at model.py:2; "
                'put what runs a program under `if __name__ == "__main__":`'
            ),
        ),
        ("class Odd(BaseException): ...\nraise Odd('x')\n", "Odd at model.py:2: x"),
    ],
    ids=["raises", "syntax", "in-library", "import", "lines", "empty", "exit", "base-exception"],
)
def test_what_a_file_raises_is_one_line_that_says_where(text: str, message: str):
    """The line names the file and the innermost line of the user's own code."""
    Path("model.py").write_text(text, encoding="utf-8")
    with pytest.raises(TargetError) as caught:
        load("model.py")
    assert str(caught.value).startswith(f"cannot load model.py: {message}")
    assert "\n" not in str(caught.value)
    assert "model" not in sys.modules


def test_an_error_in_a_sibling_names_the_sibling():
    """The place is where the error is, not which file was asked for."""
    write(app__model="import sibling", app__sibling="\n\n1 / 0")
    place = Path("app", "sibling.py")
    with pytest.raises(TargetError, match=f"ZeroDivisionError at {place}:3: division by zero"):
        load("app/model.py")


def test_a_sibling_hidden_by_a_standard_module_is_named():
    """An import that fails because Python's own module was found says which file to rename."""
    write(model="from profile import make_model", profile="def make_model(): ...")
    with pytest.raises(TargetError, match=r"profile\.py has the name of one of Python's own"):
        load("model.py")


def test_a_sibling_that_hides_a_package_is_named():
    """A module of the user's in place of an installed one says which file to rename."""
    write(model="import pytest_pkg_x\npytest_pkg_x.mark", pytest_pkg_x="")
    Path("site").mkdir()
    Path("site/pytest_pkg_x.py").touch()
    sys.path.append(str(Path("site").absolute()))
    try:
        with pytest.raises(TargetError, match=r"\(pytest_pkg_x\.py hides the package pytest_pkg_x"):
            load("model.py")
    finally:
        sys.path.remove(str(Path("site").absolute()))


def test_missing_tensorflow_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    """A file that needs TensorFlow where there is none says what to install."""
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    write(model="import tensorflow as tf")
    with pytest.raises(MissingDependencyError) as caught:
        load("model.py")
    assert str(caught.value) == (
        "model.py needs TensorFlow, which is not installed: pip install 'graph2mermaid[cpu]'"
    )


def test_ctrl_c_is_not_an_error_of_the_file():
    """An interruption goes through to whoever handles it."""
    write(model="raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        load("model.py")


def test_modules_come_from_the_working_directory_first():
    """A dotted name is imported as `python -m` finds it."""
    packages("pkg")
    write(pkg__mod="from .other import VALUE", pkg__other="VALUE = 7")
    loaded = load_module("pkg.mod")
    assert (loaded.module.VALUE, loaded.module.__name__) == (7, "pkg.mod")
    assert load("pkg/mod.py").module is loaded.module


@pytest.mark.parametrize("name", ["no_such_module", "pkg.no_such_module", "no.such.module"])
def test_a_module_that_does_not_exist(name: str):
    """A wrong name is told apart from a module that fails to import another."""
    packages("pkg")
    with pytest.raises(TargetError) as caught:
        load_module(name)
    assert str(caught.value) == f"there is no file, folder or module called {name!r}"


def test_a_module_that_cannot_import_another():
    """The missing module is the one that its code names."""
    write(mod="import no_such_module_here")
    with pytest.raises(TargetError, match=r"cannot load mod: ModuleNotFoundError at mod\.py:1"):
        load_module("mod")
