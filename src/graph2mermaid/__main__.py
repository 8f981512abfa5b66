"""`python -m graph2mermaid` and the `graph2mermaid` script."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line and exit with its status."""
    from graph2mermaid.cli.trace import app

    app.main(prog_name="graph2mermaid")


if __name__ == "__main__":
    # `-m` puts the working directory first on the search path: a random.py of the user's there
    # would be imported by everything. Targets find their folder without it.
    if sys.path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109  # pathlib comes from there
        del sys.path[0]
    main()
