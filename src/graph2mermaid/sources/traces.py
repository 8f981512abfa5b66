"""The traces that a function has already: what to trace it with again, and what to name."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Sequence
from typing import Any

from graph2mermaid.sources.objects import is_tf_function
from graph2mermaid.sources.parameters import describe_arguments, named_arguments

_MOST_NAMED = 5
"""How many other traces a note names."""


def existing_traces(function: Any) -> list[Any]:
    """Return the traces that a tf.function has, the first one first.

    With an `input_signature` there can be only one, and asking for it would make it. Private
    API, the same on 2.9.3 and 2.21.0.
    """
    if function.input_signature is not None:
        return []
    return list(function._list_all_concrete_functions())


def loaded_traces(function: Any) -> list[Any] | None:
    """Return the traces of a function from a SavedModel, or None for any other function.

    There is no Python code to trace it anew. Private RestoredFunction, the same on both versions.
    """
    traces = getattr(function, "concrete_functions", None)
    return list(traces) if is_tf_function(function) and isinstance(traces, list) else None


def note_on_others(function: Any, traces: Sequence[Any], shown: Any) -> tuple[str, ...]:
    """Return notes on the traces of a tf.function that differ from the one shown."""
    signature = _signature(function)
    by_text: dict[str, list[Any]] = {}
    for trace in traces:
        by_text.setdefault(_text(trace, signature), []).append(trace)
    same = by_text.pop(_text(shown, signature), [])
    notes = []
    if same and all(_ops(trace) != _ops(shown) for trace in same):
        notes.append(
            "calls with these arguments still use an older trace, whose graph is another one: what"
            " the function reads has changed since"
        )
    if by_text:
        named = "; ".join(f"({text})" for text in list(by_text)[:_MOST_NAMED])
        more = f"; and {len(by_text) - _MOST_NAMED} more" if len(by_text) > _MOST_NAMED else ""
        notes.append(f"other existing traces, not shown here: {named}{more}")
    return tuple(notes)


def _ops(concrete: Any) -> Counter[tuple[str, bytes]]:
    """Count the ops of a graph by type, constants by value.

    Names are left out: Keras numbers its scopes anew at every trace.
    """
    return Counter(
        (
            op.type,
            op.node_def.attr["value"].tensor.SerializeToString() if op.type == "Const" else b"",
        )
        for op in concrete.graph.get_operations()
    )


def _text(concrete: Any, signature: inspect.Signature) -> str:
    return describe_arguments(
        signature, named_arguments(signature, *concrete.structured_input_signature)
    )


def _signature(function: Any) -> inspect.Signature:
    if loaded_traces(function) is None:
        return inspect.signature(function.python_function)
    # On 2.9.3 a loaded function's Python function takes `(*args, **kwargs)`.
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = function.function_spec.arg_names
    rest = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)
    return inspect.Signature([*(inspect.Parameter(name, kind) for name in names), rest])
