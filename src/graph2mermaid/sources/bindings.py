"""A traced function's arguments and results, under the names of its signature."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from graph2mermaid.graph import Binding, TensorRef
from graph2mermaid.sources.structure import argument_leaves, leaves, tensor_spec


def input_bindings(
    concrete: Any,
    arguments: Sequence[Any],
    python_function: Any,
    own_names: Mapping[str, str],
) -> tuple[Binding, ...]:
    """Return the arguments, each with the placeholders that stand for it."""
    signature = getattr(concrete, "structured_input_signature", None)
    if signature is None:
        return _plain_bindings(arguments)
    names = _parameter_names(concrete)
    extra = _variadic_name(python_function)
    if extra:
        names = [name for name in names if name in _positional_names(python_function)]
    found = argument_leaves(signature, names, extra or "args")
    if sum(leaf.tensors for leaf in found) != len(arguments):
        return _plain_bindings(arguments)
    rest = iter(arguments)
    return tuple(
        Binding(
            own_names.get(leaf.path, leaf.path),
            tuple(ref_to(next(rest)) for _ in range(leaf.tensors)),
            leaf.type,
        )
        for leaf in found
    )


def _plain_bindings(tensors: Sequence[Any]) -> tuple[Binding, ...]:
    return tuple(Binding(t.op.name, (ref_to(t),), str(tensor_spec(t))) for t in tensors)


def ref_to(tensor: Any) -> TensorRef:
    """Return where a tensor comes from."""
    return TensorRef(tensor.op.name, tensor.value_index)


def _parameter_names(concrete: Any) -> list[str]:
    """Return the names of the positional parameters, `self` left out.

    2.21 has `function_type`; 2.9 has `_function_spec`; a pruned or loaded function has neither.
    """
    function_type = getattr(concrete, "function_type", None)
    if function_type is not None:
        return [
            name
            for name, parameter in function_type.parameters.items()
            if parameter.kind.name in ("POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD")
        ]
    spec = getattr(concrete, "_function_spec", None)
    if spec is not None:
        return [str(name) for name in spec.arg_names]
    return [str(name) for name in getattr(concrete, "_arg_keywords", None) or ()]


def _positional_names(python_function: Any) -> set[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return {p.name for p in _signature(python_function) if p.kind in kinds}


def _variadic_name(python_function: Any) -> str | None:
    """Return the name of `*rest`; TensorFlow numbers what it takes in its own ways."""
    variadic = (p for p in _signature(python_function) if p.kind is p.VAR_POSITIONAL)
    return next((p.name for p in variadic), None)


def _signature(python_function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(python_function).parameters.values())
    except (TypeError, ValueError):  # nothing, or nothing that has one
        return []


def output_bindings(concrete: Any, outputs: Sequence[Any]) -> tuple[Binding, ...]:
    """Return the results under their names in the structure that the function returns."""
    structure = concrete.structured_outputs
    if structure is None:
        return plain_outputs(outputs)
    found = list(leaves(structure)) if not _is_leaf(structure) else None
    if found is None:
        leaf = next(leaves(structure, "output_0"))
        return (Binding(leaf.path, tuple(ref_to(t) for t in outputs), leaf.type),)
    if sum(leaf.tensors for leaf in found) != len(outputs):
        return plain_outputs(outputs)
    rest = iter(outputs)
    return tuple(
        Binding(leaf.path, tuple(ref_to(next(rest)) for _ in range(leaf.tensors)), leaf.type)
        for leaf in found
    )


def _is_leaf(structure: Any) -> bool:
    return next(leaves(structure, "output_0"), None) is not None and not isinstance(
        structure, Mapping | list | tuple
    )


def plain_outputs(outputs: Sequence[Any]) -> tuple[Binding, ...]:
    """Return results that have no names of their own, by number."""
    return tuple(
        Binding(f"output_{i}", (ref_to(t),), str(tensor_spec(t))) for i, t in enumerate(outputs)
    )
