"""Calls of Grappler that cannot take this process down with them."""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from graph2mermaid.sources import grappler_child
from graph2mermaid.sources.attr_values import Shape, read_shape
from graph2mermaid.sources.grappler_child import (
    OK,
    OPTIMIZE,
    SHAPES,
    Grappler,
    answer,
    read_blobs,
    write_blobs,
)

SECONDS = 300.0
"""How long one call may take. Grappler itself gives up after five minutes, between two passes."""


class GrapplerError(Exception):
    """Grappler has no result: it crashed, ran too long, or said that it cannot. One line."""


class Worker:
    """A child process that calls Grappler; it is started again after a crash.

    An op that only this process knows, because the user's code loaded its library, is unknown to
    the child. Such a graph is optimized in this process, as it would be if it ran.
    """

    def __init__(self, devices: Sequence[bytes]) -> None:
        """Take the devices as serialized `NamedDevice` protos."""
        self._devices = tuple(devices)
        self._child: _Child | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the child, which then loads while this process does something else."""
        with self._lock:
            if self._child is None and sys.executable:
                with contextlib.suppress(OSError):
                    self._child = _Child(self._devices)

    def optimize(self, meta_graph: bytes, config: bytes, *, seconds: float = SECONDS) -> bytes:
        """Return the GraphDef that the optimizers of a ConfigProto make of a MetaGraphDef.

        Raises:
            GrapplerError: There is no result.
        """
        (graph,) = self._call((OPTIMIZE, meta_graph, config), seconds)
        return graph

    def shapes(
        self, meta_graph: bytes, *, seconds: float = SECONDS
    ) -> Mapping[str, tuple[Shape, ...]]:
        """Return the shapes of each op's outputs, as far as they follow from the graph.

        Raises:
            GrapplerError: There is no result.
        """
        from tensorflow.core.grappler.costs import op_performance_data_pb2 as protos

        parse = protos.OpInfo.TensorProperties.FromString
        blobs = iter(self._call((SHAPES, meta_graph), seconds))
        found: dict[str, tuple[Shape, ...]] = {}
        for name in blobs:
            count = int(next(blobs))
            found[name.decode()] = tuple(read_shape(parse(next(blobs)).shape) for _ in range(count))
        return found

    def close(self) -> None:
        """End the child."""
        with self._lock:
            child, self._child = self._child, None
            if child is not None:
                child.close()

    def _call(self, request: Sequence[bytes], seconds: float) -> list[bytes]:
        self.start()
        with self._lock:
            if self._child is None:
                return _here(self._devices, request)
            try:
                status, *parts = self._child.ask(request, seconds)
            except GrapplerError:
                self._child.close()
                self._child = None
                raise
        if status == OK:
            return parts
        words = parts[0].decode(errors="replace")
        if "not registered" in words:
            return _here(self._devices, request)
        raise GrapplerError(_line(words))


@cache
def worker(devices: tuple[bytes, ...]) -> Worker:
    """Return the process's only worker for these devices; it ends with the process."""
    found = Worker(devices)
    atexit.register(found.close)
    return found


class _Child:
    """One run of the child's program."""

    def __init__(self, devices: Sequence[bytes]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self._process = subprocess.Popen(  # noqa: S603 - this Python, and a file of this package
            # Isolated: neither the working directory nor this folder may shadow a module.
            [sys.executable, "-I", grappler_child.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # It is told about the devices and opens none. Of messages only the fatal one counts.
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        self._greeted = False
        with contextlib.suppress(OSError):  # it is gone already, which the first request tells
            if self._process.stdin:
                folders = os.pathsep.join(_library_folders()).encode()
                write_blobs(self._process.stdin, [folders, *devices])

    def ask(self, request: Sequence[bytes], seconds: float) -> list[bytes]:
        """Return the answer to a request.

        Raises:
            GrapplerError: The child ended, or had to be ended.
        """
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            found = self._exchange(request)
        finally:
            timer.cancel()
        if found is not None:
            return found
        if late.is_set():
            raise GrapplerError(f"stopped after {seconds:g} s")
        raise GrapplerError(f"crashed{self._last_words()}")

    def close(self) -> None:
        """End the process, which waits for requests or is gone."""
        process = self._process
        for stream in (process.stdin, process.stdout):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._errors.close()

    def _exchange(self, request: Sequence[bytes]) -> list[bytes] | None:
        """Return the answer, or None when the child is gone."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            return None
        if not self._greeted:
            if read_blobs(stdout) is None:
                return None
            self._greeted = True
        try:
            write_blobs(stdin, request)
        except OSError:
            return None
        return read_blobs(stdout)

    def _last_words(self) -> str:
        """Return what the library wrote when it gave up, if it did."""
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        fatal = [line.partition("] ")[2] for line in lines if " F " in line or line[:1] == "F"]
        return f": {_line(fatal[-1])}" if fatal and fatal[-1] else ""


def _here(devices: Sequence[bytes], request: Sequence[bytes]) -> list[bytes]:
    try:
        return answer(Grappler(devices), *request)
    except Exception as error:  # pybind11 translates C++ exceptions to several types
        raise GrapplerError(_line(str(error))) from error


def _library_folders() -> list[str]:
    """Return where the child finds TensorFlow, and NumPy, which its library loads."""
    import numpy as np
    import tensorflow as tf

    found = [Path(module.__file__).parent.parent for module in (tf, np) if module.__file__]
    return list(dict.fromkeys(map(str, found)))


def _line(words: str) -> str:
    text = " ".join(words.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


_LONGEST = 300
