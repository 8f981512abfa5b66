"""Fixtures and options shared by all tests."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator

import hypothesis
import pytest

from tests.mermaid_js import browser

pytest_plugins = ["tests.golden_files"]

hypothesis.settings.register_profile(
    # Nothing is timed: the machine may be busy with other tests.
    "default",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("default")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that draws, so that `-m "not node"` leaves out all of them."""
    for item in items:
        if "mermaid" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.node)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs TensorFlow where there is none."""
    if item.get_closest_marker("tf") and importlib.util.find_spec("tensorflow") is None:
        pytest.skip("needs TensorFlow")


@pytest.fixture(scope="session")
def mermaid() -> Iterator[browser.Browser]:
    """The real Mermaid. Skips where it cannot run, unless G2M_REQUIRE_BROWSER is set."""
    try:
        started = browser.start()
    except browser.Unavailable as error:
        if os.environ.get("G2M_REQUIRE_BROWSER"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    yield started
    started.close()
