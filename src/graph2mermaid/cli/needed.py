"""What has to be installed for what was asked."""

from __future__ import annotations

import importlib.util

from graph2mermaid.errors import MissingDependencyError


def require_tensorflow(doing: str) -> None:
    """Say at once what is missing, before the user's code is run.

    Args:
        doing: What it is needed for: `tracing`.

    Raises:
        MissingDependencyError: TensorFlow is not installed.
    """
    if importlib.util.find_spec("tensorflow") is None:
        raise MissingDependencyError(
            f"{doing} needs TensorFlow, which is not installed: pip install 'graph2mermaid[cpu]'"
        )
