"""The program of the child process in which Grappler is called.

Grappler is C++, and an error in it can end the process it runs in; here that costs one result. The
program is started by its path, without the rest of this package and without the TensorFlow API:
loading Grappler alone takes a fraction of the time that `import tensorflow` takes.

Requests and answers are lists of byte strings; see `read_blobs`. A request is an operation and its
parts; the answer is `ok` and the result's parts, or `error` and the words for it.
"""

from __future__ import annotations

import importlib
import os
import struct
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

_COUNT = struct.Struct("<I")
_SIZE = struct.Struct("<Q")

OPTIMIZE = b"optimize"
SHAPES = b"shapes"
OK = b"ok"
ERROR = b"error"


def write_blobs(stream: IO[bytes], blobs: Sequence[bytes]) -> None:
    """Write byte strings so that the other side knows where each ends."""
    stream.write(_COUNT.pack(len(blobs)))
    for blob in blobs:
        stream.write(_SIZE.pack(len(blob)))
        stream.write(blob)
    stream.flush()


def read_blobs(stream: IO[bytes]) -> list[bytes] | None:
    """Read what `write_blobs` wrote, or None when the other side is gone."""
    try:
        (count,) = _COUNT.unpack(stream.read(_COUNT.size))
        blobs = []
        for _ in range(count):
            (size,) = _SIZE.unpack(stream.read(_SIZE.size))
            blob = stream.read(size)
            if len(blob) < size:
                return None
            blobs.append(blob)
    except struct.error:
        return None
    return blobs


class Grappler:
    """Grappler for a set of devices."""

    def __init__(self, devices: Sequence[bytes]) -> None:
        """Take the devices as serialized `NamedDevice` protos; nothing is done on them.

        The runtime uses a virtual cluster as well. The private modules and their signatures are
        the same on 2.9.3 and 2.21.0, up to the name of the first function.
        """
        package = "tensorflow.python.grappler."
        cluster = importlib.import_module(package + "_pywrap_tf_cluster")
        optimizer = importlib.import_module(package + "_pywrap_tf_optimizer")
        self._item = importlib.import_module(package + "_pywrap_tf_item")
        self._cluster = cluster.TF_NewVirtualCluster(list(devices))
        self._optimize = (
            getattr(optimizer, "TF_OptimizeGraphSerialized", None) or optimizer.TF_OptimizeGraph
        )

    def optimize(self, meta_graph: bytes, config: bytes) -> bytes:
        """Run the optimizers that a ConfigProto has on, on the graph of a MetaGraphDef."""
        graph: bytes = self._optimize(self._cluster, config, meta_graph, False, b"graph", False)
        return graph

    def shapes(self, meta_graph: bytes) -> list[bytes]:
        """Infer the shapes: for each op its name, the number of outputs, and their protos."""
        item = self._item.TF_NewItem(meta_graph, True, False)
        blobs: list[bytes] = []
        for name, outputs in self._item.TF_GetOpProperties(item).items():
            blobs += [name.encode(), b"%d" % len(outputs), *outputs]
        return blobs


def answer(grappler: Grappler, operation: bytes, *parts: bytes) -> list[bytes]:
    """Do what a request asks."""
    if operation == OPTIMIZE:
        return [grappler.optimize(*parts)]
    return grappler.shapes(*parts)


def main() -> None:
    """Answer requests until the other side closes the connection."""
    # The library may print; the connection is kept apart from that.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    first = read_blobs(requests)
    if first is None:
        return
    path, *devices = first
    sys.path[:0] = path.decode().split(os.pathsep)
    _load()
    grappler = Grappler(devices)
    write_blobs(answers, [OK])
    while (request := read_blobs(requests)) is not None:
        try:
            result = answer(grappler, *request)
        except Exception as error:  # noqa: PERF203 - pybind11 raises several types
            write_blobs(answers, [ERROR, str(error).encode(errors="replace")])
        else:
            write_blobs(answers, [OK, *result])


def _load() -> None:
    """Load TensorFlow's shared libraries, leaving the Python API aside where that works."""
    roots = (Path(path, "tensorflow") for path in sys.path)
    root = next((root for root in roots if (root / "python").is_dir()), Path("tensorflow"))
    # Empty packages in place of the real ones, whose `__init__` import everything.
    stand_ins = ("tensorflow", "tensorflow.python", "tensorflow.python.grappler")
    for name in stand_ins:
        package: Any = types.ModuleType(name)
        package.__path__ = [str(root.parent.joinpath(*name.split(".")))]
        sys.modules[name] = package
    try:
        importlib.import_module("tensorflow.python.pywrap_tensorflow")
        importlib.import_module("tensorflow.python.grappler._pywrap_tf_optimizer")
    except ImportError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "tensorflow"]:
            del sys.modules[name]
        importlib.import_module("tensorflow")


if __name__ == "__main__":
    main()
