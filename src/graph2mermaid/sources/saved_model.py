"""SavedModel folders, of TensorFlow 1 and 2: a signature as a function, or at least its graph."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph2mermaid.errors import TargetError
from graph2mermaid.graph import Graph
from graph2mermaid.sources.failures import reason
from graph2mermaid.sources.graph_file import GraphFile, read_graph_file
from graph2mermaid.sources.listing import Candidate
from graph2mermaid.sources.shapes import infer_shapes
from graph2mermaid.sources.signature_def import (
    default_signature,
    signature_graph,
    signature_names,
    signature_text,
)
from graph2mermaid.sources.tf_function import graph_of

_FILES = ("saved_model.pb", "saved_model.pbtxt")


@dataclass(frozen=True)
class _Request:
    """What was asked for, once it is known to be there."""

    name: str
    is_signature: bool
    """Else it is a tf.function of the saved object."""


def candidates(path: Path) -> list[Candidate]:
    """Return what in a SavedModel can be traced: its signatures, and its objects' tf.functions.

    Raises:
        TargetError: The file is damaged.
    """
    file = _read(path)
    names = signature_names(file.signatures)
    found = [Candidate(n, "signature", signature_text(file.signatures[n])) for n in names]
    others = [name for name in _functions(file) if name not in names]
    return found + [Candidate(name, "tf.function", "(...)") for name in others]


def load_signature(path: Path, signature: str | None = None) -> Any:
    """Load a SavedModel and return the ConcreteFunction of one of its signatures.

    Args:
        path: The folder.
        signature: A signature, or a tf.function of the saved object (`encoder.call`). Without it
            `serving_default`, or the only one there is.

    Raises:
        TargetError: There is no such signature, or TensorFlow cannot load the model.
    """
    file = _read(path)
    request = _request(path, file, signature)
    try:
        return _load(path, file, request)
    except Exception as error:
        raise TargetError(f"{path} cannot be loaded: {_short(error)}") from error


def graph_from_saved_model(
    path: Path, signature: str | None = None
) -> tuple[Graph, tuple[str, ...]]:
    """Make the graph of one signature of a SavedModel.

    A model that TensorFlow cannot load (an op that it lacks, a missing variables file) is read
    from its `saved_model.pb` alone.

    Returns:
        The graph, and sentences on what a reader must know about it.

    Raises:
        TargetError: There is no such signature, or the file is damaged.
    """
    return trace_from_saved_model(path, signature)[:2]


def trace_from_saved_model(
    path: Path, signature: str | None = None
) -> tuple[Graph, tuple[str, ...], Any]:
    """Make the graph of one signature, and return its ConcreteFunction as well.

    The same as `graph_from_saved_model`; the ConcreteFunction is None where TensorFlow cannot load
    the model.

    Raises:
        TargetError: There is no such signature, or the file is damaged.
    """
    file = _read(path)
    request = _request(path, file, signature)
    try:
        concrete = _load(path, file, request)
    except Exception as error:
        if not request.is_signature:
            raise TargetError(f"{path} cannot be loaded: {_short(error)}") from error
        shapes, _ = infer_shapes(file.graph_def)
        graph = signature_graph(
            file.graph_def, file.signatures[request.name], name=request.name, shapes=shapes
        )
        note = (
            f"TensorFlow cannot load {path}, so the graph is read from its file alone and can "
            f"neither be optimized nor run: {_short(error)}."
        )
        return graph, (note,), None
    graph = graph_of(concrete, name=request.name)
    return graph, _traces_note(path, file, request), concrete


def _read(path: Path) -> GraphFile:
    found = next((path / name for name in _FILES if (path / name).is_file()), None)
    if found is None:
        raise TargetError(f"{path} is not a SavedModel: it has no {_FILES[0]}")
    return read_graph_file(found)


def _request(path: Path, file: GraphFile, wanted: str | None) -> _Request:
    """Find what was asked for in the file, before the model is loaded."""
    signatures, functions = signature_names(file.signatures), _functions(file)
    if wanted:
        if wanted in signatures or wanted in functions:
            return _Request(wanted, wanted in signatures)
        raise TargetError(
            f"{path} has no signature {wanted!r}; {_offer(path, signatures, functions)}"
        )
    if name := default_signature(signatures):
        return _Request(name, is_signature=True)
    if len(functions) == 1 and not signatures:
        return _Request(functions[0], is_signature=False)
    what = "several signatures" if signatures else "no signature"
    raise TargetError(f"{path} has {what}; {_offer(path, signatures, functions)}")


def _offer(path: Path, signatures: Sequence[str], functions: Sequence[str]) -> str:
    names = list(dict.fromkeys([*signatures, *functions]))
    if not names:
        return "nothing in it can be traced"
    more = f" and {len(names) - _MOST_OFFERED} more" if len(names) > _MOST_OFFERED else ""
    return f"there is {', '.join(f'{path}:{name}' for name in names[:_MOST_OFFERED])}{more}"


def _functions(file: GraphFile) -> list[str]:
    """Return the traced tf.functions of the saved object, by the path that leads to each.

    A file of TensorFlow 1 has no objects. The functions of single Keras layers, and what Keras
    keeps for itself, are left out.
    """
    nodes = file.objects.nodes if file.objects else ()
    found: dict[str, None] = {}
    seen = {0}
    queue = [(0, "")] if nodes else []
    for node_id, prefix in queue:  # grows while it is read: nearest objects first
        for child in nodes[node_id].children:
            node = nodes[child.node_id]
            if child.local_name.startswith(_NOT_THE_USERS):
                continue
            if node.function.concrete_functions:
                found[prefix + child.local_name] = None
            elif _is_module(node) and child.node_id not in seen:
                seen.add(child.node_id)
                queue.append((child.node_id, f"{prefix}{child.local_name}."))
    return list(found)


def _is_module(node: Any) -> bool:
    return node.HasField("user_object") and not node.user_object.identifier.startswith("_tf_keras")


_MOST_OFFERED = 8
_NOT_THE_USERS = ("signatures", "keras_api", "call_and_return_", "_default_save_signature")


def _load(path: Path, file: GraphFile, request: _Request) -> Any:
    import tensorflow as tf

    # With several graphs in it, the loader has to be told which.
    loaded = tf.saved_model.load(str(path), tags=list(file.tags) or None)
    if request.is_signature:
        concrete = loaded.signatures[request.name]
    else:
        found = loaded
        for name in request.name.split("."):
            found = getattr(found, name)
        concrete = found.concrete_functions[0]
    # A function does not keep its variables alive, which are gone with the object that has them.
    concrete._graph2mermaid_keeps = loaded
    return concrete


def _traces_note(path: Path, file: GraphFile, request: _Request) -> tuple[str, ...]:
    """Say which trace is shown when a saved tf.function has several."""
    if request.is_signature:
        return ()
    count = _trace_count(file, request.name.split("."))
    if count < 2:
        return ()
    return (f"{path}:{request.name} was saved with {count} traces; the first is shown.",)


def _trace_count(file: GraphFile, names: Iterable[str]) -> int:
    nodes = file.objects.nodes
    node = nodes[0]
    for name in names:
        node = nodes[next(c.node_id for c in node.children if c.local_name == name)]
    return len(node.function.concrete_functions)


def _short(error: Exception) -> str:
    return _BESIDE_THE_POINT.sub("", reason(error))


# The name of the computer, and advice for another situation.
_BESIDE_THE_POINT = re.compile(r" (?:in binary running on|You may be trying to load on) .*")
