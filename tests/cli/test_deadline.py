"""`--timeout` and Ctrl-C: user code that never ends is ended, with one line and no file."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import command, environment, program

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals differ")

HANGING = {
    "waits": "import time\nwhile True: time.sleep(1)",
    "in C": "import itertools\nmax(itertools.count())",
    "swallows": """
import time
while True:
    try:
        time.sleep(1)
    except BaseException:
        pass
""",
    "ignores signals": """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True: time.sleep(1)
""",
    "child": "import subprocess\nsubprocess.run(['sleep', '600'])",
}


@pytest.mark.parametrize("text", HANGING.values(), ids=HANGING)
def test_code_that_hangs(text: str):
    """Whatever it does, it is ended after the time, and nothing is left."""
    Path("model.py").write_text(text, encoding="utf-8")
    done = program("list", "model.py", "--timeout", "1.5")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "Error: loading and tracing took more than 1.5 s (--timeout) and was stopped; "
        "nothing was written\n"
    )


def test_code_that_is_done_in_time():
    """With time enough the result is the same as without a limit."""
    Path("model.py").write_text("def f(x): return x", encoding="utf-8")
    done = program("list", "model.py", "--timeout", "60")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "model.py:f  function  (x)\n"


def test_an_error_under_a_limit():
    """The exit status and the line are those of the command itself."""
    Path("model.py").write_text("1 / 0", encoding="utf-8")
    done = program("list", "model.py", "--timeout", "60")
    assert done.returncode == 2
    assert done.stderr.startswith("Error: cannot load model.py: ZeroDivisionError")


def test_code_that_crashes():
    """A crash of the process that ran it is one line, too."""
    Path("model.py").write_text("import os\nos.abort()", encoding="utf-8")
    done = program("list", "model.py", "--timeout", "60")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "Error: the process was ended by SIGABRT while it loaded or traced the code"
    )


def test_threads_that_never_end_do_not_keep_the_program():
    """The result is written, so the program ends; what is printed at its end is no result."""
    Path("model.py").write_text(
        "import atexit, threading\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
        "def f(x): return x\n",
        encoding="utf-8",
    )
    Path("prints.py").write_text(
        "import atexit\natexit.register(print, 'bye')\ndef f(x): return x\n", encoding="utf-8"
    )
    done = program("list", "model.py")
    assert (done.returncode, done.stdout) == (0, "model.py:f  function  (x)\n")
    done = program("list", "prints.py")
    assert (done.returncode, done.stdout) == (0, "prints.py:f  function  (x)\n")
    assert done.stderr == "bye\n"


def test_user_code_cannot_see_that_it_is_watched():
    """Programs that the user's code starts do not take themselves for the watched one."""
    Path("model.py").write_text(
        "import os\nprint([k for k in os.environ if k.startswith('GRAPH2MERMAID')])",
        encoding="utf-8",
    )
    assert program("list", "model.py", "--timeout", "60").stderr.startswith("[]\n")


@pytest.mark.parametrize("words", [[], ["--timeout", "600"]], ids=["plain", "timeout"])
def test_ctrl_c_while_user_code_runs(words: list[str]):
    """An interruption ends the program with status 130, without a traceback or a file."""
    Path("model.py").write_text(
        "import sys, time\nprint('started', flush=True)\ntime.sleep(600)", encoding="utf-8"
    )
    with subprocess.Popen(
        command("list", "model.py", *words),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate()
    assert (process.returncode, output) == (130, "")
    assert errors.strip() == "Error: interrupted"
