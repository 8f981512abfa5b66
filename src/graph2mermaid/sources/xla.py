"""Compile a function with XLA, without running it: the HLO that a device executes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graph2mermaid.errors import Graph2MermaidError, MissingDependencyError
from graph2mermaid.graph import Graph
from graph2mermaid.sources.failures import full_reason

ASSUMED = 2
"""What an unknown dimension is compiled for, as where arguments are made up to run a function."""

_UNSUPPORTED = re.compile(r"Detected unsupported operations .*? on \S+: (?P<ops>.*)", re.DOTALL)
_OP = re.compile(
    r"(?P<op>\w+) \(No registered '(?P=op)' OpKernel for .*?\{\{node (?P<node>\S+?)\}\}"
)
_CONSTANT = re.compile(
    r"Input \d+ to node [`'](?P<node>[^`']+)[`'] with op (?P<op>\w+) must be a compile-time constant"
)
_AROUND = re.compile(r"^Failed getting HLO text: '(?P<words>.*)'$", re.DOTALL)
_AFTER = re.compile(
    r"\s*(?:The op is created at:|Stack trace for op definition:|tf2xla conversion).*", re.DOTALL
)
_NODE = re.compile(r"\s*\[?\[?\{\{node \S+?\}\}\]?\]?")
_LONGEST = 300


class NotCompiledError(Graph2MermaidError):
    """XLA cannot compile a function; the message says what is in the way, and what to type."""


@dataclass(frozen=True)
class Compiled:
    """What XLA made of a function."""

    hlo: Any
    """The `HloProto`: the optimized module, and its buffer assignment."""
    before: int | None = None
    """Instructions of the module before it was optimized; None where that is not known."""
    assumed: tuple[str, ...] = ()
    """Arguments whose shape was made up, as they would be typed: `x=float32[2,4]`."""


def compile_hlo(
    concrete: Any,
    traced: Graph,
    arguments: Sequence[Any] | None = None,
    *,
    count_before: bool = False,
) -> Compiled:
    """Compile a traced function for the device that TensorFlow would choose.

    The function does not run. One compilation gives everything; the module before it was
    optimized is asked for as well, which takes no optimization and so a tenth of the time.

    Args:
        concrete: The function. It need not be marked `jit_compile`.
        traced: Its graph, which has the user's names of its arguments.
        arguments: Values for the arguments, where there are any: what has to be known at compile
            time (a shape, an axis) is taken from them.
        count_before: Count the instructions before they are optimized as well.

    Raises:
        NotCompiledError: XLA cannot compile it.
    """
    assumed: list[str] = []
    given = _static(concrete, traced, arguments, assumed)
    with _eager():
        module = _module_of(compiler_ir(concrete, traced, given, "optimized_hlo_proto_serialized"))
        before = _module_before(concrete, traced, given) if count_before else None
    return Compiled(module, before, tuple(assumed))


def hlo_messages() -> Any:
    """Return the module of TensorFlow that has the messages of XLA: `HloProto` and others.

    It is private, and at the same place in 2.9.3 and 2.21.0.

    Raises:
        MissingDependencyError: TensorFlow is not installed.
    """
    try:
        from tensorflow.compiler.xla.service import hlo_pb2
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "reading an HLO proto needs TensorFlow, which is not installed: "
            "pip install 'graph2mermaid[cpu]' (printed HLO is read without it)"
        ) from error
    return hlo_pb2


def _module_of(data: bytes) -> Any:
    hlo = hlo_messages().HloProto()
    hlo.ParseFromString(data)
    return hlo


def _module_before(concrete: Any, traced: Graph, given: Sequence[Any]) -> int | None:
    with contextlib.suppress(NotCompiledError):
        module = hlo_messages().HloModuleProto()
        module.ParseFromString(compiler_ir(concrete, traced, given, "hlo_serialized"))
        return sum(len(computation.instructions) for computation in module.computations)
    return None


def _eager() -> Any:
    from tensorflow.python.eager import context

    return context.eager_mode()  # the program may have switched it off


def compiler_ir(concrete: Any, traced: Graph, given: Sequence[Any], stage: str) -> bytes:
    """Ask TensorFlow for the HLO of a function, at a stage of those that it has.

    `Context.get_compiler_ir` is what `tf.function.experimental_get_compiler_ir` calls, which
    refuses functions that are not marked. Its parameters differ in 2.9.3 and 2.21.0.
    """
    import inspect

    import tensorflow as tf
    from tensorflow.python.eager import context

    get = context.context().get_compiler_ir
    common = {
        "device_name": tf.constant(0.0).device,
        "function_name": concrete.name,
        "stage": stage,
    }
    captured = list(concrete.captured_inputs)
    try:
        if "flat_args" in inspect.signature(get).parameters:
            found = get(
                **common, platform_name=None, flat_args=list(given), captured_inputs=captured
            )
        else:
            found = get(**common, args=[*given, *captured])
    except Exception as error:  # ValueError or whatever a compiler pass raises
        raise NotCompiledError(_why(error, traced, given)) from error
    return bytes(found)


# -- arguments --------------------------------------------------------------------------------


def _static(
    concrete: Any, traced: Graph, arguments: Sequence[Any] | None, assumed: list[str]
) -> list[Any]:
    """Return a value or a static type for each argument; XLA compiles for known shapes only."""
    import tensorflow as tf

    if arguments is not None:
        return list(arguments)
    names = {ref.node: binding.name for binding in traced.inputs for ref in binding.tensors}
    inputs = concrete.inputs[: len(concrete.inputs) - len(concrete.captured_inputs)]
    specs = []
    for tensor in inputs:
        name = names.get(tensor.op.name, tensor.op.name)
        if tensor.dtype in (tf.string, tf.variant, tf.resource):
            raise NotCompiledError(
                f"XLA compiles numbers only, and {name} is a {tensor.dtype.name}; "
                "name a function that takes none"
            )
        if tensor.shape.rank is None:
            raise NotCompiledError(
                f"XLA needs known shapes, and the rank of {name} is unknown: give "
                f"--input '{name}={tensor.dtype.name}[{ASSUMED},{ASSUMED}]'"
            )
        shape = [ASSUMED if size is None else size for size in tensor.shape]
        if not tensor.shape.is_fully_defined():
            assumed.append(f"{name}={tensor.dtype.name}[{','.join(map(str, shape))}]")
        specs.append(tf.TensorSpec(shape, tensor.dtype))
    return specs if _takes_types() else [tf.zeros(spec.shape, spec.dtype) for spec in specs]


def _takes_types() -> bool:
    """Tell whether types are enough; TensorFlow 2.9 needs tensors."""
    import inspect

    from tensorflow.python.eager import context

    return "flat_args" in inspect.signature(context.context().get_compiler_ir).parameters


# -- why not ----------------------------------------------------------------------------------


def _why(error: Exception, traced: Graph, given: Sequence[Any]) -> str:
    """Say in a line what XLA cannot compile, and what to do about it."""
    words = str(error)
    around = _AROUND.match(words)
    words = around["words"] if around else words
    ops = _ops(words, traced)
    if ops:
        return f"XLA cannot compile {ops}; name a function that does without"
    constant = _CONSTANT.search(words)
    if constant is not None:
        place = _placed(constant["op"], constant["node"], traced)
        needed = f"XLA needs to know an input of {place} when it compiles (a shape, size or axis)"
        if any(hasattr(value, "numpy") for value in given) and _takes_types():
            return f"{needed}, and it is worked out while the function runs"
        return f"{needed}: give the values of the arguments, --inputs FILE:NAME"
    short = _NODE.sub("", _AFTER.sub("", words))
    short = short if short.strip() else full_reason(error)
    return f"XLA cannot compile it: {' '.join(short.split())[:_LONGEST].rstrip('. ')}"


def _ops(words: str, traced: Graph) -> str:
    unsupported = _UNSUPPORTED.search(words)
    if unsupported is None:
        return ""
    found = {match["op"]: match["node"] for match in _OP.finditer(unsupported["ops"])}
    return ", ".join(_placed(op, node, traced) for op, node in found.items())


def _placed(op: str, name: str, traced: Graph) -> str:
    """Return `StringFormat at model.py:3`: an op, and the line that made it."""
    for graph in (traced, *traced.functions.values()):
        if name in graph and (source := graph[name].source) is not None:
            return f"{op} at {source}"
    return op
