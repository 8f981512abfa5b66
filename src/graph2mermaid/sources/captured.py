"""What a traced function takes from around it: variables, tables, constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from graph2mermaid.graph import Binding, NodeKind, TensorRef, TensorSpec
from graph2mermaid.sources.attributes import value_text
from graph2mermaid.sources.keras_build import variable_paths
from graph2mermaid.sources.structure import tensor_spec


@dataclass(frozen=True)
class Captured:
    """One capture: what a user takes it for, and what its placeholder stands for."""

    binding: Binding
    kind: NodeKind
    holds: TensorSpec | None = None
    value: str | None = None
    whole: int | None = None
    """For one replica's part of a distributed variable: which variable that is."""


def variables_of(concrete: Any) -> Sequence[Any]:
    """Return the variables that are still there; the graph holds them only weakly."""
    try:
        return tuple(getattr(concrete, "variables", ()))
    except AssertionError:  # one was deleted since: "Called a function referencing variables ..."
        return ()


def captures_of(func_graph: Any, variables: Sequence[Any]) -> list[Captured]:
    """Tell apart what the function takes from around it: variables, tables, constants.

    `FuncGraph.captures` gives pairs (outside, placeholder inside) in the order of the last
    inputs, on 2.9.3 and 2.21.0.
    """
    by_handle = {id(v.handle): v for v in variables if hasattr(v, "handle")}
    by_handle |= {id(part.handle): v for v in variables for part in getattr(v, "values", ())}
    paths = variable_paths() if by_handle else {}
    found = []
    for outside, inside in func_graph.captures:
        variable = by_handle.get(id(outside))
        found.append(_captured(outside, inside, variable, paths.get(id(variable), "")))
    deferred = getattr(func_graph, "deferred_internal_captures", ())
    return found + [_captured(None, inside, None) for inside in deferred]


def _captured(outside: Any, inside: Any, variable: Any, path: str = "") -> Captured:
    ref = TensorRef(inside.op.name, inside.value_index)
    spec = tensor_spec(inside)
    if variable is not None:
        value = tensor_spec(variable)
        name = path or str(variable.name).removesuffix(":0")
        binding = Binding(name, (ref,), f"Variable {value}")
        return Captured(binding, NodeKind.VARIABLE, value, whole=_whole(variable))
    if spec.dtype in ("resource", "variant"):
        holds = _handle_data(inside)
        words = spec.dtype if holds is None else f"{spec.dtype} {holds}"
        return Captured(Binding(ref.node, (ref,), words), NodeKind.VARIABLE, holds)
    text = value_text(outside.numpy()) if hasattr(outside, "numpy") else None
    words = f"constant {spec}" if hasattr(outside, "numpy") else str(spec)
    return Captured(Binding(ref.node, (ref,), words), NodeKind.CONST, None, text)


def _whole(variable: Any) -> int | None:
    """Return which distributed variable one is a replica's part of.

    The private link is on the variable in 2.9.3, and on its handle in 2.21.0.
    """
    for part in (variable, getattr(variable, "handle", None)):
        link = getattr(part, "_distributed_container", None)
        whole = link() if callable(link) else None
        if whole is not None:
            return id(whole)
    return None


def capture_bindings(captures: Sequence[Captured]) -> tuple[Binding, ...]:
    """Return what a user takes for one capture: a variable, whatever its number of replicas."""
    found: dict[tuple[str, int], Binding] = {}
    for index, capture in enumerate(captures):
        key = ("one", index) if capture.whole is None else ("whole", capture.whole)
        first = found.get(key)
        tensors = (*(first.tensors if first else ()), *capture.binding.tensors)
        found[key] = replace(first or capture.binding, tensors=tensors)
    return tuple(found.values())


def _handle_data(tensor: Any) -> TensorSpec | None:
    """Return what a resource handle points to (private API, checked on 2.9.3 and 2.21.0)."""
    import tensorflow as tf
    from tensorflow.python.ops import handle_data_util

    data = handle_data_util.get_resource_handle_data(tensor)
    if not data or not data.is_set or len(data.shape_and_type) != 1:
        return None
    item = data.shape_and_type[0]
    shape = tf.TensorShape(item.shape)
    return tensor_spec(tf.TensorSpec(shape, tf.dtypes.as_dtype(item.dtype)))
