"""What all tests on real TensorFlow share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mermaid_js.browser import Browser
from tests.tf import drawn


@pytest.fixture(scope="module", autouse=True)
def every_picture_is_drawn(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a module's tests the real Mermaid draws each diagram that they looked at as text.

    Left out where there is no browser, or where `-m "not node"` says to do without.
    """
    browser: Browser | None = None
    if "not node" not in request.config.getoption("markexpr"):
        try:
            browser = request.getfixturevalue("mermaid")
        except pytest.skip.Exception:
            browser = None
    drawn.TEXTS.clear()
    yield
    if browser is not None:
        for text in drawn.TEXTS:
            browser.assert_drawn(text)
