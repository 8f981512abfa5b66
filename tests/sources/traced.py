"""Traces as the tests of shapes and arguments look at them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from graph2mermaid.sources.concrete import Inputs, Traced, trace_of
from graph2mermaid.sources.signature import parse_inputs, split_input
from graph2mermaid.sources.structure import argument_leaves


def traced(function: Callable[..., Any], *options: str, **given: Any) -> Traced:
    """Trace a function, called `m.py:f`, with `--input` options and whatever else is given."""
    inputs = Inputs(options=parse_inputs(map(split_input, options)), **given)
    return trace_of(function, inputs, name="m.py:f")


def arguments(found: Traced) -> dict[str, str]:
    """Return the arguments of a trace in words, by place."""
    parameters = inspect.signature(found.python_function).parameters.values()
    names = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]
    leaves = argument_leaves(found.concrete.structured_input_signature, names)
    return {leaf.path: leaf.type for leaf in leaves}
