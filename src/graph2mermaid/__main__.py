"""`python -m graph2mermaid` and the `graph2mermaid` script."""

from __future__ import annotations

import os
import sys
import threading


def main() -> None:
    """Run the command line and exit with its status.

    Raises:
        SystemExit: Always, with the status.
    """
    from graph2mermaid.cli.streams import close_stdout
    from graph2mermaid.cli.trace import app

    try:
        app.main(prog_name="graph2mermaid")
    except SystemExit as end:
        # User code may still print when the process ends, or have threads that never end.
        close_stdout()
        if any(not t.daemon for t in threading.enumerate() if t is not threading.main_thread()):
            sys.stderr.flush()
            os._exit(end.code if isinstance(end.code, int) else 0)
        raise


if __name__ == "__main__":
    # `-m` puts the working directory first on the search path: a random.py of the user's there
    # would be imported by everything. Targets find their folder without it.
    if sys.path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109  # pathlib comes from there
        del sys.path[0]
    main()
