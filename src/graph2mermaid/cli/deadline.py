"""`--timeout`: user code runs in a process of its own, which can be ended whatever it does.

A thread could not do it: code that hangs inside a C function never lets another thread run, and
code that catches everything swallows an interruption.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from graph2mermaid.errors import Graph2MermaidError

_VARIABLE = "GRAPH2MERMAID_DONE_FD"
_NONE = "none"
_GRACE_S = 1.0
_FORWARDED = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class TimeoutExceededError(Graph2MermaidError):
    """Loading and tracing took longer than `--timeout` allows."""


_pipe: list[str] = []
"""The number of the pipe to the watching process, once it was looked for."""


def is_supervised() -> bool:
    """Tell whether this process is one that another one watches."""
    if _VARIABLE in os.environ:
        _pipe.append(os.environ.pop(_VARIABLE))  # it is nothing to processes of the user's
    return bool(_pipe)


def user_code_is_done() -> None:
    """Tell the watching process, if there is one, that the time is not counted any more."""
    if is_supervised() and (number := _pipe[0]) != _NONE:
        with suppress(OSError):
            os.write(int(number), b"done")
            os.close(int(number))


def supervise(arguments: Sequence[str], seconds: float) -> int:
    """Run the same command in another process, and return its exit status.

    Raises:
        TimeoutExceededError: Its user code was not done in time; it has been ended, and with it
            every process that it started.
        Graph2MermaidError: It crashed.
    """
    started = (
        f"import sys; sys.path[:] = {sys.path!r}; from graph2mermaid.__main__ import main; main()"
    )
    command = [sys.executable, "-c", started, *arguments]
    if os.name != "posix":
        return _supervise_simply(command, seconds)
    reading, writing = os.pipe()
    child = subprocess.Popen(  # noqa: S603  # our own command, with the user's arguments
        command,
        env={**os.environ, _VARIABLE: str(writing)},
        pass_fds=(writing,),
        start_new_session=True,  # so that everything it starts can be ended with it
    )
    os.close(writing)
    with _forwarding_signals(child):
        ready, _, _ = select.select([reading], [], [], seconds)
        os.close(reading)
        if not ready and child.poll() is None:
            _end(child)
            raise _exceeded(seconds)
        return _status(child.wait())


def _supervise_simply(command: Sequence[str], seconds: float) -> int:
    """Count the whole run: no pipe can be handed over and no group ended where this is used."""
    environment = {**os.environ, _VARIABLE: _NONE}
    with subprocess.Popen(command, env=environment) as child:  # noqa: S603
        try:
            return _status(child.wait(seconds))
        except subprocess.TimeoutExpired:
            child.kill()
            raise _exceeded(seconds) from None


def _exceeded(seconds: float) -> TimeoutExceededError:
    return TimeoutExceededError(
        f"loading and tracing took more than {seconds:g} s (--timeout) and was stopped; "
        "nothing was written"
    )


@contextmanager
def _forwarding_signals(child: subprocess.Popen[bytes]) -> Iterator[None]:
    def forward(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(child: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE_S)
    child.wait()


def _status(code: int) -> int:
    """Return the exit status for a child's; one that a signal ended is told by what it was."""
    if code >= 0:
        return code
    if -code in _FORWARDED:
        return 128 - code
    name = signal.Signals(-code).name
    raise Graph2MermaidError(f"the process was ended by {name} while it loaded or traced the code")
