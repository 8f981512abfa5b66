"""Files that hold a graph: GraphDef, MetaGraphDef and SavedModel protos, binary or text."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graph2mermaid.errors import TargetError
from graph2mermaid.graph import Graph
from graph2mermaid.sources.graphdef import graph_from_graph_def
from graph2mermaid.sources.shapes import has_shapes, infer_shapes
from graph2mermaid.sources.signature_def import (
    default_signature,
    signature_graph,
    signature_names,
)

# The first field of a text proto says which message it is.
_FIELDS: Mapping[str, str] = {
    "node": "GraphDef",
    "library": "GraphDef",
    "version": "GraphDef",
    "versions": "GraphDef",
    "meta_info_def": "MetaGraphDef",
    "graph_def": "MetaGraphDef",
    "saver_def": "MetaGraphDef",
    "collection_def": "MetaGraphDef",
    "signature_def": "MetaGraphDef",
    "asset_file_def": "MetaGraphDef",
    "object_graph_def": "MetaGraphDef",
    "saved_model_schema_version": "SavedModel",
    "meta_graphs": "SavedModel",
}
_FIRST_FIELD = re.compile(rb"(?:\s|#[^\n]*\n)*([a-z_]+)\s*[:{<]")
_OP_TYPE = re.compile(r"[A-Za-z_<][\w.<>/-]*")


@dataclass(frozen=True)
class GraphFile:
    """What a graph file holds."""

    graph_def: Any
    signatures: Mapping[str, Any] = field(default_factory=dict)
    """`SignatureDef` protos by name; a plain GraphDef has none."""
    tags: tuple[str, ...] = ()
    """The tags of the MetaGraphDef, such as `serve`."""
    objects: Any = None
    """The `SavedObjectGraph` of a SavedModel that TensorFlow 2 wrote, else empty or None."""


def read_graph_def(path: Path) -> Any:
    """Return the `GraphDef` in a file.

    Raises:
        TargetError: The file cannot be read, or holds no graph.
    """
    return read_graph_file(path).graph_def


def read_graph_file(path: Path) -> GraphFile:
    """Read a `.pb` or `.pbtxt` file; its content says which of the forms it has, not its name.

    Of the graphs in a SavedModel the one with the tag `serve` is taken, else the first.

    Raises:
        TargetError: The file cannot be read, or holds no graph.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TargetError(f"{path}: {error.strerror or error}") from error
    if not data.strip():
        raise TargetError(f"{path} is empty")
    first = _FIRST_FIELD.match(data)
    if first and (message := _FIELDS.get(first[1].decode("ascii"))):
        return _opened(path, _parse_text(path, message, data))
    for message in ("GraphDef", "SavedModel", "MetaGraphDef"):
        if proto := _parse_binary(message, data):
            return _opened(path, proto)
    raise TargetError(
        f"{path} is damaged or not a graph: it is no GraphDef, MetaGraphDef or SavedModel proto"
    )


def graph_from_file(path: Path) -> tuple[Graph, tuple[str, ...]]:
    """Make the graph in a `.pb` or `.pbtxt` file, with the shapes that TensorFlow can work out.

    Where the file has signatures, as MetaGraphDefs do, the graph is that of the default one.

    Returns:
        The graph, and sentences on what a reader must know about it.

    Raises:
        TargetError: The file cannot be read, or holds no graph, or a damaged one.
    """
    file = read_graph_file(path)
    shapes, problem = ({}, None) if has_shapes(file.graph_def) else infer_shapes(file.graph_def)
    notes = []
    if problem:
        notes.append(f"{path}: shapes are shown only where the file has them: {problem}.")
    signature = default_signature(file.signatures)
    if signature is None:
        if others := signature_names(file.signatures):
            notes.append(
                f"{path} has the signatures {', '.join(others)}; the graph holds all of them."
            )
        return graph_from_graph_def(file.graph_def, name=path.stem, shapes=shapes), tuple(notes)
    graph = signature_graph(
        file.graph_def, file.signatures[signature], name=path.stem, shapes=shapes
    )
    notes.append(f"{path}: the part of the graph behind the signature {signature!r} is shown.")
    return graph, tuple(notes)


def _message(name: str) -> Any:
    from tensorflow.core.framework import graph_pb2
    from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

    classes = {
        "GraphDef": graph_pb2.GraphDef,
        "MetaGraphDef": meta_graph_pb2.MetaGraphDef,
        "SavedModel": saved_model_pb2.SavedModel,
    }
    return classes[name]()


def _parse_text(path: Path, message: str, data: bytes) -> Any:
    from google.protobuf import text_format

    proto = _message(message)
    try:
        text_format.Parse(data.decode("utf-8"), proto, allow_unknown_field=True)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise TargetError(f"{path} is not a {message} in text form: {error}") from error
    return proto


def _parse_binary(message: str, data: bytes) -> Any:
    """Return the proto, or None when the bytes are no such message.

    Bytes of one message often parse as another, so what comes out has to make sense as well.
    """
    from google.protobuf.message import DecodeError

    proto = _message(message)
    try:
        with warnings.catch_warnings():  # old protobuf warns of bytes that it leaves over
            warnings.simplefilter("ignore")
            proto.ParseFromString(data)
    except DecodeError:
        return None
    graphs = {
        "GraphDef": lambda: [proto],
        "MetaGraphDef": lambda: [proto.graph_def],
        "SavedModel": lambda: [meta.graph_def for meta in proto.meta_graphs],
    }[message]()
    return proto if graphs and all(map(_is_graph, graphs)) else None


def _is_graph(graph_def: Any) -> bool:
    nodes = graph_def.node
    ops = {node.op for node in nodes}
    return bool(ops) and all(map(_OP_TYPE.fullmatch, ops)) and all(node.name for node in nodes)


def _opened(path: Path, proto: Any) -> GraphFile:
    name = type(proto).__name__
    if name == "GraphDef":
        file = GraphFile(proto)
    else:
        metas = list(proto.meta_graphs) if name == "SavedModel" else [proto]
        serving = [meta for meta in metas if "serve" in meta.meta_info_def.tags]
        file = _of_meta((serving or metas or [_message("MetaGraphDef")])[0])
    if not file.graph_def.node:
        raise TargetError(f"{path}: the graph in it has no nodes")
    return file


def _of_meta(meta: Any) -> GraphFile:
    return GraphFile(
        meta.graph_def,
        {key: meta.signature_def[key] for key in sorted(meta.signature_def)},
        tuple(meta.meta_info_def.tags),
        meta.object_graph_def if meta.HasField("object_graph_def") else None,
    )
