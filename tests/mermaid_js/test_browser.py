"""The harness itself: it must not take a failed or a wrong picture for a good one."""

from __future__ import annotations

import pytest

from tests.mermaid_js.browser import VERSIONS

MODES = [
    pytest.param(version, html, id=f"{version}-{'html' if html else 'svg'}")
    for version in VERSIONS
    for html in (True, False)
]


@pytest.mark.parametrize(("version", "html_labels"), MODES)
@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("graph TD\n  n0[", "Parse error", id="syntax"),
        pytest.param(
            "graph TD\n" + "  n0 --> n1\n" * 501, "limit is 500", id="one edge more than allowed"
        ),
        pytest.param(
            "graph TD\n  n0\n" + " " * 50_000 + "\n",
            "error picture: Maximum text size in diagram exceeded",
            id="too long a text",
        ),
    ],
)
def test_failures_are_seen(mermaid, text, error, version, html_labels):
    """An exception and a picture of an error are both failures, and the next text is drawn."""
    bad, good = mermaid.render([text, 'graph TD\n  n0["x"]\n'], version, html_labels)
    assert not bad.ok
    assert error in bad.error
    assert good.ok
    assert good.nodes == {"n0": "x"}


@pytest.mark.parametrize(
    ("text", "difference"),
    [
        pytest.param('graph TD\n  n0["List<int>"]\n', "node n0: meant", id="node label"),
        pytest.param(
            'graph TD\n  n0["a"]\n  n1["b"]\n  n0 -->|"<i>x</i>"| n1\n',
            "edge labels: meant",
            id="edge label",
        ),
        pytest.param(
            'graph TD\n  subgraph s0["#lt;x#gt;"]\n    n0["a"]\n  end\n',
            "cluster s0: meant",
            id="cluster label",
        ),
        pytest.param(
            'graph TD\n  subgraph s0["a"]\n    n0["a"]\n  end\n  subgraph s0["a"]\n  n1["b"]\n  end\n  n2\n',
            "node n2: meant '(none)'",
            id="node that was not meant",
        ),
        pytest.param(
            'graph TD\n  n0["a"]\n  n1["b"]\n  n0 --> n1 --> n0\n', "edges: meant", id="edges"
        ),
    ],
)
def test_differences_are_seen(mermaid, text, difference):
    """A picture that shows something else than its text means is a failure that says what."""
    with pytest.raises(AssertionError, match=r"^Mermaid 12, HTML labels:") as failure:
        mermaid.assert_drawn(text)
    assert difference in str(failure.value)


def test_an_unknown_version_is_an_error(mermaid):
    """Asking for a version that is not pinned is a failure, not a picture by another one."""
    [rendered] = mermaid.render(["graph TD\n"], version="9")
    assert not rendered.ok
