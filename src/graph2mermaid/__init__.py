"""See what TensorFlow runs: the graph of a `tf.function` as Mermaid in Markdown.

>>> import graph2mermaid
>>> capture = graph2mermaid.load("multiply_add.g2m.json")  # doctest: +SKIP
>>> print(capture.to_mermaid())  # doctest: +SKIP

Importing this package imports neither TensorFlow nor networkx; a name is loaded when it is used.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from os import PathLike

    from graph2mermaid.capture import Capture, Environment
    from graph2mermaid.errors import (
        CaptureError,
        Graph2MermaidError,
        MissingDependencyError,
        SignatureError,
        TargetError,
        TraceError,
    )
    from graph2mermaid.graph import (
        Arrow,
        Binding,
        Call,
        Edge,
        EdgeKind,
        Graph,
        Node,
        NodeKind,
        SourceLine,
        Stage,
        TensorRef,
        TensorSpec,
    )
    from graph2mermaid.report.model import Report

__all__ = [
    "Arrow",
    "Binding",
    "Call",
    "Capture",
    "CaptureError",
    "Edge",
    "EdgeKind",
    "Environment",
    "Graph",
    "Graph2MermaidError",
    "MissingDependencyError",
    "Node",
    "NodeKind",
    "Report",
    "SignatureError",
    "SourceLine",
    "Stage",
    "TargetError",
    "TensorRef",
    "TensorSpec",
    "TraceError",
    "__version__",
    "compile_xla",
    "load",
    "optimize",
    "trace",
]

__version__ = "0.1.0"

_HOMES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("Capture", "Environment"), "graph2mermaid.capture"),
        **dict.fromkeys(
            (
                "CaptureError",
                "Graph2MermaidError",
                "MissingDependencyError",
                "SignatureError",
                "TargetError",
                "TraceError",
            ),
            "graph2mermaid.errors",
        ),
        **dict.fromkeys(
            (
                "Arrow",
                "Binding",
                "Call",
                "Edge",
                "EdgeKind",
                "Graph",
                "Node",
                "NodeKind",
                "SourceLine",
                "Stage",
                "TensorRef",
                "TensorSpec",
            ),
            "graph2mermaid.graph",
        ),
        "Report": "graph2mermaid.report.model",
    }
)


def __getattr__(name: str) -> Any:
    """Load a public name from its module the first time that it is used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, the ones not loaded yet included."""
    return sorted({*globals(), *__all__})


def trace(fn: Callable[..., Any], *args: Any, kwargs: Mapping[str, Any] | None = None) -> Capture:
    """Trace a function and return its graph, every time anew.

    The function itself does not run; its Python code does, once, as TensorFlow traces it. Nothing
    is left behind: the function's own traces, the values of variables and random number
    generators stay as they are. Only variables that it makes on its first call are made now.

    Args:
        fn: A `tf.function`, a plain function or lambda, a bound method, a `functools.partial`, a
            Keras model or layer, or any other callable. A ConcreteFunction is shown as it is.
        args: For each positional parameter a `tf.TensorSpec` (`graph2mermaid.TensorSpec` does as
            well) or an example value: a tensor, a NumPy array, or any Python value, which then
            becomes part of the graph. Parameters that are left out take what the function says
            of itself: its `input_signature`, its first existing trace, TensorSpec annotations,
            defaults. What nothing is known of is assumed to be float32 of unknown rank, and a
            note in the capture says so.
        kwargs: The same for parameters by name.

    Returns:
        A capture with the traced graph.

    Raises:
        SignatureError: The arguments do not fit the function.
        TraceError: TensorFlow could not trace it.
        MissingDependencyError: TensorFlow is not installed.

    Examples:
        >>> import tensorflow as tf
        >>> import graph2mermaid
        >>> def multiply_add(x, y, b):
        ...     product = tf.multiply(x, y)
        ...     return tf.add(product, b)
        >>> rows = tf.TensorSpec([None, 4])
        >>> capture = graph2mermaid.trace(multiply_add, rows, rows, tf.TensorSpec([4]))
        >>> [node.op for node in capture.traced.nodes()]
        ['Placeholder', 'Placeholder', 'Placeholder', 'Mul', 'AddV2', 'Identity']
        >>> [str(binding.type) for binding in capture.traced.inputs]
        ['float32[?,4]', 'float32[?,4]', 'float32[4]']
    """
    _require_tensorflow("trace")
    return _traced(fn, args, kwargs)


def optimize(
    fn: Callable[..., Any],
    *args: Any,
    kwargs: Mapping[str, Any] | None = None,
    run: bool = False,
) -> Capture:
    """Trace a function, and find what Grappler and the runtime make of the graph.

    Args:
        fn: As for [`trace`][graph2mermaid.trace].
        args: As for `trace`.
        kwargs: The same for parameters by name.
        run: Run the function once to record what TensorFlow runs: with the values given, or with
            made-up ones (unknown dimensions 2, floats normal, integers 0). Its variables are put
            back afterwards. Without it the function does not run.

    Returns:
        A capture with the graphs of the stages `traced`, `grappler` and `runtime`, and its
        `optimization`: where every op came from and went. Where there is no optimized graph a note
        in the capture says why.

    Raises:
        SignatureError: The arguments do not fit the function.
        TraceError: TensorFlow could not trace it.
        MissingDependencyError: TensorFlow is not installed.

    Examples:
        >>> import tensorflow as tf
        >>> import graph2mermaid
        >>> def six(x):
        ...     return x * tf.sqrt(tf.constant(4.0) * 9.0)
        >>> capture = graph2mermaid.optimize(six, tf.TensorSpec([8, 64]))
        >>> [node.op for node in capture.graphs[graph2mermaid.Stage.GRAPPLER].nodes()]
        ['Const', 'Placeholder', 'Mul']
        >>> capture.optimization.provenance.nodes["Sqrt"].how.value
        'folded'
    """
    _require_tensorflow("optimize")
    return _traced(fn, args, kwargs, views=("grappler", "runtime"), run=run)


def compile_xla(
    fn: Callable[..., Any], *args: Any, kwargs: Mapping[str, Any] | None = None
) -> Capture:
    """Trace a function, and compile it with XLA to see which kernels come out.

    The function need not be marked `jit_compile`, and does not run.

    Args:
        fn: As for [`trace`][graph2mermaid.trace].
        args: As for `trace`. XLA compiles for known shapes: unknown dimensions are taken as 2, which a
            note in the capture says. What a function uses as a shape or an axis has to be a value.
        kwargs: The same for parameters by name.

    Returns:
        A capture with the graphs of the stages `traced` and `xla`, and its `compilation` in numbers.
        Where XLA cannot compile the function a note in the capture says why.

    Raises:
        SignatureError: The arguments do not fit the function.
        TraceError: TensorFlow could not trace it.
        MissingDependencyError: TensorFlow is not installed.

    Examples:
        >>> import tensorflow as tf
        >>> import graph2mermaid
        >>> def dense(x, w):
        ...     return tf.nn.relu(tf.matmul(x, w) + 1.0)
        >>> capture = graph2mermaid.compile_xla(
        ...     dense, tf.TensorSpec([8, 64]), tf.TensorSpec([64, 4])
        ... )
        >>> [node.op for node in capture.graphs[graph2mermaid.Stage.XLA].nodes()]
        ['parameter', 'parameter', 'dot', 'fusion']
    """
    _require_tensorflow("compile_xla")
    return _traced(fn, args, kwargs, views=("xla",))


def load(path: str | PathLike[str]) -> Capture | tuple[Capture, ...]:
    """Read a file as a capture.

    Args:
        path: A capture file (`.g2m.json`), for which TensorFlow is not needed; or what the command
            line takes as a target: a `.keras` or `.h5` file, a SavedModel folder, one of its
            signatures (`folder:serving_default`), a GraphDef (`.pb`, `.pbtxt`), HLO as
            `--xla_dump_to` writes it (`.hlo.pb`, `.txt`), or a function in a Python file
            (`model.py:multiply_add`), which is loaded as importing it would.

    Returns:
        The capture, or a tuple of them if a capture file holds none or several.

    Raises:
        TargetError: There is no such file, or nothing in it can be traced.
        CaptureError: The capture file is damaged, or of a newer schema.
        SignatureError: The model cannot be traced without shapes that the file does not have.
        TraceError: TensorFlow could not trace it.
        MissingDependencyError: TensorFlow is needed, and not installed.

    Examples:
        >>> import graph2mermaid
        >>> graph2mermaid.load("no_such_file.g2m.json")
        Traceback (most recent call last):
        graph2mermaid.errors.TargetError: there is no file, folder or module called 'no_such_file.g2m.json'
    """
    import os

    from graph2mermaid.sources.target import TargetKind, needs_tensorflow, parse, resolve

    name = parse(os.fspath(path))
    if needs_tensorflow(name):
        _require_tensorflow("load")
    resolved = resolve(name)
    if resolved.kind is TargetKind.CAPTURE:
        from graph2mermaid import serde

        captures = tuple(serde.load(resolved.obj))
    else:
        from graph2mermaid.sources.tracing import capture

        captures = tuple(capture(resolved))
    return captures[0] if len(captures) == 1 else captures


def _traced(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    *,
    views: tuple[str, ...] = (),
    run: bool = False,
) -> Capture:
    from graph2mermaid.sources.arguments import ask_in_python
    from graph2mermaid.sources.concrete import Inputs, callable_name
    from graph2mermaid.sources.stages import later_stages
    from graph2mermaid.sources.tracing import trace_callable

    name = callable_name(fn)
    inputs = Inputs(args, kwargs or {})
    return trace_callable(
        fn,
        inputs,
        target=name,
        name=name,
        ask=ask_in_python,
        further=later_stages(views, run=run),
    )


def _require_tensorflow(function: str) -> None:
    import importlib.util

    if importlib.util.find_spec("tensorflow") is None:
        from graph2mermaid.errors import MissingDependencyError

        raise MissingDependencyError(
            f"graph2mermaid.{function} needs TensorFlow, which is not installed: "
            "pip install 'graph2mermaid[cpu]'"
        )
