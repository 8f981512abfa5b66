"""Golden files: whole outputs kept in `tests/golden`, to be reviewed as what they are.

`pytest --update-golden` writes them anew; look at the difference before you commit it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "golden"

Golden = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden files."""
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files instead of comparing"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a text with the golden file of a name, or write it."""

    def compare(name: str, text: str) -> None:
        file = FOLDER / name
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
            return
        if not file.exists():
            pytest.fail(f"no golden file {name}: run pytest --update-golden and review it")
        assert text == file.read_bytes().decode("utf-8")

    return compare


def unused(pattern: str, used: Iterable[str]) -> list[str]:
    """Return the golden files of a pattern that no test compares with."""
    return sorted({file.name for file in FOLDER.glob(pattern)} - set(used))
