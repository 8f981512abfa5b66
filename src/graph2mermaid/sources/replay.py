"""Grappler's optimizers once more, one at a time, to see which of them did what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from graph2mermaid.optimization import OpForm, PassChange
from graph2mermaid.sources import grappler_config
from graph2mermaid.sources.attr_values import Shape
from graph2mermaid.sources.graph_changes import Snapshot, changes
from graph2mermaid.sources.grappler_worker import GrapplerError, Worker
from graph2mermaid.sources.op_defs import ARGUMENT_OPS, RESULT_OPS

_ARGUMENT = "FakeParam"
_VARIABLE = "VarHandleOp"
_RESOURCE = 20  # DataType.DT_RESOURCE


class Replay(NamedTuple):
    """What a replay found out."""

    passes: tuple[PassChange, ...]
    ended: Mapping[str, OpForm]
    notes: tuple[str, ...]


NO_REPLAY = Replay((), {}, ())


class Offline:
    """Grappler on a function's graph, such that it knows of it what the runtime knows.

    Grappler called from outside forgets the shapes of arguments. Each is therefore an op that
    has a shape of its own while Grappler works: a variable `VarHandleOp`, another one `FakeParam`.
    """

    def __init__(
        self, worker: Worker, before: Any, concrete: Any, device_of: Mapping[str, str]
    ) -> None:
        """Take the graph as it was handed to the runtime.

        Args:
            worker: Calls Grappler.
            before: The GraphDef.
            concrete: The function, for the shapes of its arguments.
            device_of: The devices of ops, as far as they are known.
        """
        self._worker = worker
        self._arguments: dict[str, Any] = {}
        graph = type(before)()
        graph.CopyFrom(before)
        for node in graph.node:
            node.device = device_of.get(node.name) or grappler_config.full_device(node.device)
            if node.op in ARGUMENT_OPS:
                self._stand_in(node, concrete.inputs[node.attr["index"].i])
        results = [node.name for node in graph.node if node.op in RESULT_OPS]
        kept = [op.name for op in concrete.graph.control_outputs]
        self._keep = _kept(dict.fromkeys([*results, *kept]))
        self._type = type(before)
        self._state: bytes = graph.SerializeToString()

    def shapes(self) -> Mapping[str, tuple[Shape, ...]]:
        """Infer the shapes of every op's outputs.

        Raises:
            GrapplerError: There is no result.
        """
        return self._worker.shapes(_graph_field(self._state) + self._keep)

    def graph(self) -> Any:
        """Return the graph, with its arguments as they are in the one that was handed over."""
        graph = self._type.FromString(self._state)
        for node in graph.node:
            argument = self._arguments.get(node.name)
            if argument is not None:
                device = node.device
                node.CopyFrom(argument)
                node.device = device
        return graph

    def snapshot(self) -> Snapshot:
        """Return the graph as it is compared with another."""
        return Snapshot(self._type.FromString(self._state), self._arguments)

    def apply(self, config: Any) -> bool:
        """Run the optimizers that a ConfigProto has on, on the result of the last call.

        Returns:
            Whether the graph is another one now.

        Raises:
            GrapplerError: There is no result; the next call starts where this one did.
        """
        meta_graph = _graph_field(self._state) + self._keep
        result = self._worker.optimize(meta_graph, config.SerializeToString(deterministic=True))
        changed = result != self._state
        self._state = result
        return changed

    def _stand_in(self, node: Any, tensor: Any) -> None:
        from tensorflow.core.framework import node_def_pb2

        kept = node_def_pb2.NodeDef()
        kept.CopyFrom(node)
        number, index = node.attr["T"].type, node.attr["index"].i
        if number == _RESOURCE:
            held = held_by(tensor)
            if held is None:
                return
            node.op, number, shape = _VARIABLE, held.dtype, held.shape
        elif tensor.shape.rank is None:
            return
        else:
            node.op, shape = _ARGUMENT, tensor.shape.as_proto()
        node.ClearField("attr")
        node.attr["dtype"].type = number
        node.attr["shape"].shape.CopyFrom(shape)
        if node.op == _VARIABLE:
            node.attr["shared_name"].s = b"%d" % index
        else:  # two arguments alike are not the same
            node.attr["_index"].i = index
        self._arguments[node.name] = kept


def replay(offline: Offline, config: Any) -> Replay:
    """Apply one optimizer after the other in the order of the real schedule.

    Args:
        offline: The graph as it was handed to the runtime.
        config: The ConfigProto of the process; optimizers that it has off stay off.
    """
    notes: list[str] = []
    done: dict[tuple[int, str], PassChange] = {}
    steps: list[tuple[int, str, Any]] = [
        (0, grappler_config.LOWERING, grappler_config.lowering(config))
    ]
    configs = {
        name: grappler_config.only(config, name) for _, name in grappler_config.rounds(config)
    }
    steps += [(number, name, configs[name]) for number, name in grappler_config.rounds(config)]
    broken: set[str] = set()
    before = offline.snapshot()
    for number, name, one in steps:
        if name in broken or (number > 1 and not _any_changes(done.values(), number - 1)):
            continue
        try:
            changed = offline.apply(one)
        except GrapplerError as error:
            broken.add(name)
            notes.append(f"The replay of Grappler's optimizer {name} has no result: {error}.")
            size = len(before)
            done[number, name] = PassChange(name, number, (), size, size, str(error))
            continue
        after = offline.snapshot() if changed else before
        found = changes(before, after)
        done[number, name] = PassChange(name, number, found, len(before), len(after))
        before = after
    return Replay(tuple(done.values()), before.forms(), tuple(notes))


def held_by(tensor: Any) -> Any:
    """Return what a resource handle points to, or None when it is not one variable.

    The private API is the same on 2.9.3 and 2.21.0.
    """
    from tensorflow.python.ops import handle_data_util

    data = handle_data_util.get_resource_handle_data(tensor)
    if not data or not data.is_set or len(data.shape_and_type) != 1:
        return None
    return data.shape_and_type[0]


def _any_changes(done: Iterable[PassChange], number: int) -> bool:
    return any(change.changes for change in done if change.round == number)


def _kept(names: Iterable[str]) -> bytes:
    """Return the part of a MetaGraphDef that says which ops must stay."""
    from tensorflow.core.protobuf import meta_graph_pb2

    meta_graph = meta_graph_pb2.MetaGraphDef()
    meta_graph.collection_def["train_op"].node_list.value.extend(names)
    return bytes(meta_graph.SerializeToString())


def _graph_field(graph: bytes) -> bytes:
    """Return the field `graph_def` of a serialized MetaGraphDef, without parsing the graph."""
    size, length = len(graph), bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return b"\x12" + bytes([*length, size]) + graph
