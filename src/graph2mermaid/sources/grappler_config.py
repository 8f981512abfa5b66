"""Grappler's options: those of the process, and those that leave a single optimizer on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from graph2mermaid.graph import Scalar

MAIN_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


class Optimizer(NamedTuple):
    """One optimizer: what it is called, the option that switches it, and when it runs."""

    name: str
    option: str
    by_default: bool = True
    repeated: bool = True
    """Whether the second iteration of the schedule has it as well."""


LOWERING = "function"
"""The optimizer that puts the bodies of called functions in place, and loops and branches."""

OPTIMIZERS = (
    Optimizer("pruning", "disable_model_pruning"),
    Optimizer("implementation_selector", "implementation_selector"),
    Optimizer(LOWERING, "function_optimization"),
    Optimizer("common_subgraph_elimination", "common_subgraph_elimination"),
    Optimizer("debug_stripper", "debug_stripper", by_default=False),
    Optimizer("constfold", "constant_folding"),
    Optimizer("shape", "shape_optimization"),
    Optimizer("auto_mixed_precision", "auto_mixed_precision", by_default=False),
    Optimizer(
        "auto_mixed_precision_onednn_bfloat16",
        "auto_mixed_precision_onednn_bfloat16",
        by_default=False,
    ),
    Optimizer("auto_mixed_precision_mkl", "auto_mixed_precision_mkl", by_default=False),
    Optimizer("auto_mixed_precision_cpu", "auto_mixed_precision_cpu", by_default=False),
    Optimizer("pin_to_host", "pin_to_host_optimization", by_default=False),
    Optimizer("arithmetic", "arithmetic_optimization"),
    Optimizer("layout", "layout_optimizer"),
    Optimizer("remap", "remapping"),
    Optimizer("loop", "loop_optimization", repeated=False),
    Optimizer("dependency", "dependency_optimization"),
    Optimizer("memory", "memory_optimization", repeated=False),
    Optimizer("scoped_allocator", "scoped_allocator_optimization", by_default=False),
)
"""In the order in which the runtime's schedule has them, seen in its log on 2.9.3 and 2.21.0.

Each is switched by an option of its own, which keeps how the process has set it. Naming them in
`RewriterConfig.optimizers` would not, and the name `autoparallel` there ends the process.
"""

_BY_NAME = "common_subgraph_elimination"
"""By its option alone it does not run when the optimizers of arithmetic are off."""
_PRUNING_OFF = "disable_model_pruning"
_MEMORY = "memory_optimization"
_ON, _OFF = 1, 2  # RewriterConfig.Toggle; 0 is the default, 3 AGGRESSIVE
_NO_MEMORY_OPTIMIZER = 1  # RewriterConfig.MemOptType


def process_config() -> Any:
    """Return the ConfigProto with which this process runs functions.

    The private context is the same on 2.9.3 and 2.21.0; there is no public way to all of it.
    """
    from tensorflow.core.protobuf import config_pb2
    from tensorflow.python.eager import context

    config = config_pb2.ConfigProto()
    config.CopyFrom(context.context().config)
    config.graph_options.rewrite_options.ClearField("auto_parallel")  # it would end the process
    return config


def changed_options(config: Any) -> Mapping[str, Scalar]:
    """Return the optimizer options that are set to something else than the default."""
    found: dict[str, Scalar] = {}
    for descriptor, value in config.graph_options.rewrite_options.ListFields():
        if descriptor.enum_type is not None and isinstance(value, int):
            found[descriptor.name] = descriptor.enum_type.values_by_number[value].name
        elif isinstance(value, bool | int | float | str):
            found[descriptor.name] = value
        else:
            found[descriptor.name] = " ".join(str(value).split())
    return dict(sorted(found.items()))


def works(config: Any) -> bool:
    """Tell whether Grappler is on at all."""
    return not config.graph_options.rewrite_options.disable_meta_optimizer


def optimizers_on(config: Any) -> Mapping[str, bool]:
    """Return which optimizers are on, in the order in which they run."""
    options = config.graph_options.rewrite_options
    known = options.DESCRIPTOR.fields_by_name
    return {
        optimizer.name: works(config) and _is_on(options, optimizer)
        for optimizer in OPTIMIZERS
        if optimizer.option in known
    }


def _is_on(options: Any, optimizer: Optimizer) -> bool:
    value = getattr(options, optimizer.option)
    if optimizer.option == _PRUNING_OFF:
        return not value
    if optimizer.option == _MEMORY:
        return bool(value != _NO_MEMORY_OPTIMIZER)
    return bool(value != _OFF) if value else optimizer.by_default


def only(config: Any, name: str) -> Any:
    """Return a copy of the options with one optimizer as it is, run once, and all others off."""
    copy = type(config)()
    copy.CopyFrom(config)
    options = copy.graph_options.rewrite_options
    for optimizer in OPTIMIZERS:
        if optimizer.name == name or optimizer.option not in options.DESCRIPTOR.fields_by_name:
            continue
        off: Any = _NO_MEMORY_OPTIMIZER if optimizer.option == _MEMORY else _OFF
        setattr(options, optimizer.option, True if optimizer.option == _PRUNING_OFF else off)
    options.ClearField("optimizers")
    if name == _BY_NAME:
        options.optimizers.append(name)
    options.ClearField("custom_optimizers")
    options.use_plugin_optimizers = _OFF
    options.meta_optimizer_iterations = 1
    options.min_graph_nodes = -1
    return copy


def lowering(config: Any) -> Any:
    """Return options that lower calls, loops and branches as the runtime does before Grappler."""
    copy = only(config, LOWERING)
    options = copy.graph_options.rewrite_options
    options.function_optimization = _ON
    options.disable_meta_optimizer = False
    return copy


def rounds(config: Any) -> Iterator[tuple[int, str]]:
    """Yield the schedule: the number of the iteration, counted from 1, and an optimizer."""
    on = [o for o in OPTIMIZERS if optimizers_on(config).get(o.name)]
    count = config.graph_options.rewrite_options.meta_optimizer_iterations or 2
    for number in range(1, count + 1):
        for optimizer in on:
            if number == 1 or optimizer.repeated:
                yield number, optimizer.name


@cache
def full_device(requested: str) -> str:
    """Complete a device by the main one: `/device:CPU:1` alone is enough to ask for it."""
    import tensorflow as tf

    main = tf.DeviceSpec.from_string(MAIN_DEVICE)
    return str(main.make_merged_spec(tf.DeviceSpec.from_string(requested)).to_string())


def devices() -> tuple[bytes, ...]:
    """Describe this process's logical devices as serialized `NamedDevice` protos."""
    import tensorflow as tf
    from tensorflow.core.protobuf import device_properties_pb2 as protos

    found = []
    for device in tf.config.list_logical_devices():
        properties = protos.DeviceProperties(type=device.device_type)
        if device.device_type == "CPU":
            properties.num_cores = os.cpu_count() or 1
            properties.frequency = 2000
        elif device.device_type == "GPU":
            _describe_gpu(properties, device.name)
        name = "/job:localhost/replica:0/task:0" + device.name[device.name.rindex("/device:") :]
        found.append(protos.NamedDevice(name=name, properties=properties).SerializeToString())
    return tuple(found)


def _describe_gpu(properties: Any, name: str) -> None:
    """Add what optimizers ask of a graphics card: its generation."""
    import tensorflow as tf

    cards = tf.config.list_physical_devices("GPU")
    index = int(name.rpartition(":")[2])
    if index < len(cards):
        details = tf.config.experimental.get_device_details(cards[index])
        capability = details.get("compute_capability")
        if capability:
            properties.environment["architecture"] = ".".join(map(str, capability))
        properties.model = str(details.get("device_name", ""))
