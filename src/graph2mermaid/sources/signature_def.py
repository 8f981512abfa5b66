"""SignatureDefs: which part of a saved graph answers a request, and under which names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from graph2mermaid.errors import TargetError
from graph2mermaid.graph import Binding, Graph, Stage, TensorRef, TensorSpec
from graph2mermaid.sources.attr_values import Shape, dtype_name, read_shape
from graph2mermaid.sources.graphdef import graph_from_graph_def

DEFAULT_SIGNATURE = "serving_default"


def signature_names(signatures: Iterable[str]) -> list[str]:
    """Return the names a user may ask for; those of TensorFlow's own start with two underlines."""
    return sorted(name for name in signatures if not name.startswith("__"))


def default_signature(signatures: Iterable[str]) -> str | None:
    """Return the one to take when none is asked for, or None when that is not clear."""
    names = signature_names(signatures)
    if DEFAULT_SIGNATURE in names:
        return DEFAULT_SIGNATURE
    return names[0] if len(names) == 1 else None


def signature_text(signature_def: Any) -> str:
    """Return the arguments of a signature: `(x: float32[?,4])`."""
    inputs = _bindings(signature_def.inputs)
    return f"({', '.join(f'{binding.name}: {binding.type}' for binding in inputs)})"


def signature_graph(
    graph_def: Any,
    signature_def: Any,
    *,
    name: str,
    shapes: Mapping[str, Mapping[str, tuple[Shape, ...]]],
) -> Graph:
    """Make the graph of what a signature's results are computed from.

    Raises:
        TargetError: The signature names a tensor that the graph does not have.
    """
    inputs = _bindings(signature_def.inputs)
    outputs = _bindings(signature_def.outputs)
    present = {node_def.name for node_def in graph_def.node}
    for binding in (*inputs, *outputs):
        for ref in binding.tensors:
            if ref.node not in present:
                raise TargetError(f"{name}: damaged graph: {binding.name!r} is {ref}, not in it")
    part = _what_is_needed(
        graph_def,
        wanted={ref.node for binding in outputs for ref in binding.tensors},
        given={ref.node for binding in inputs for ref in binding.tensors},
    )
    return graph_from_graph_def(
        part, name=name, stage=Stage.TRACED, inputs=inputs, outputs=outputs, shapes=shapes
    )


def _what_is_needed(graph_def: Any, wanted: set[str], given: set[str]) -> Any:
    """Return the part of a graph that some ops depend on, in the same order.

    The rest initializes, saves or trains. What lies before an input is not computed when the
    input is fed.
    """
    sources = {
        node_def.name: [text.lstrip("^").partition(":")[0] for text in node_def.input]
        for node_def in graph_def.node
    }
    needed = wanted | given
    stack = list(wanted - given)
    while stack:
        for source in sources.get(stack.pop(), ()):
            if source not in needed:
                needed.add(source)
                stack.append(source)
    part = type(graph_def)()
    part.library.CopyFrom(graph_def.library)
    part.node.extend(node_def for node_def in graph_def.node if node_def.name in needed)
    for node_def in part.node:
        if node_def.name in given:
            del node_def.input[:]
    return part


def _bindings(infos: Mapping[str, Any]) -> tuple[Binding, ...]:
    return tuple(
        Binding(key, tuple(_refs(infos[key])), _type_text(infos[key])) for key in sorted(infos)
    )


def _refs(info: Any) -> Iterator[TensorRef]:
    encoding = info.WhichOneof("encoding")
    if encoding == "composite_tensor":
        for component in info.composite_tensor.components:
            yield from _refs(component)
        return
    if encoding == "coo_sparse":
        sparse = info.coo_sparse
        names = [
            sparse.indices_tensor_name,
            sparse.values_tensor_name,
            sparse.dense_shape_tensor_name,
        ]
    else:
        names = [info.name]
    for name in names:
        node, _, port = name.partition(":")
        yield TensorRef(node, int(port) if port.isdecimal() else 0)


_COMPOSITE = {"coo_sparse": "SparseTensor ", "composite_tensor": "composite tensor "}


def _type_text(info: Any) -> str:
    spec = TensorSpec(dtype_name(info.dtype), read_shape(info.tensor_shape))
    return f"{_COMPOSITE.get(info.WhichOneof('encoding'), '')}{spec}"
