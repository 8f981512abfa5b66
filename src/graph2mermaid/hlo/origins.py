"""Which TensorFlow ops an HLO instruction comes from, by the names that XLA keeps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from graph2mermaid.graph import Graph, Node

NO_OPS = frozenset({"XLA_Args", "XLA_Retvals"})
"""What XLA names the arguments and results of a function by, which are no ops."""


class Place(NamedTuple):
    """An op of a traced graph, or of a function that it calls."""

    function: str
    """The key of the function in `Graph.functions`; the empty string for the graph itself."""
    name: str


class Origins:
    """Finds the ops of a traced graph that instructions name.

    XLA names an op of a called function `CALL/INNER` where it put the call in place, or `INNER`
    alone, and an op of a loop's or branch's body as the body does. Several names stand with `;`
    between them.
    """

    def __init__(self, traced: Graph) -> None:
        self._traced = traced
        self._found: dict[str, tuple[Place, ...]] = {}

    def places(self, op_name: str) -> tuple[Place, ...]:
        """Return the ops that an instruction's `op_name` stands for; none where it names none."""
        if op_name not in self._found:
            parts = (part for part in op_name.split(";") if part)
            places = (self._place(part) for part in parts)
            self._found[op_name] = tuple(dict.fromkeys(place for place in places if place))
        return self._found[op_name]

    def node(self, place: Place) -> Node:
        """Return the op at a place."""
        return self._graph(place.function)[place.name]

    def all(self) -> Iterator[Place]:
        """Yield every op of the graph, and of the functions that it calls."""
        yield from (Place("", name) for name in self._traced.names())
        for key, body in self._traced.functions.items():
            yield from (Place(key, name) for name in body.names())

    def _graph(self, function: str) -> Graph:
        return self._traced.functions[function] if function else self._traced

    def _place(self, name: str) -> Place | None:
        found = self._inside("", name)
        if found is not None:
            return found
        keys = self._by_name.get(name, ())
        return Place(keys[0], name) if keys else None

    def _inside(self, function: str, name: str) -> Place | None:
        """Find an op by its own name, or behind the calls whose names its name begins with."""
        graph = self._graph(function)
        if name in graph:
            return Place(function, name)
        at = name.find("/")
        while at > 0:
            call = name[:at]
            for callee in graph[call].calls if call in graph else ():
                if callee.function in self._traced.functions and callee.function != function:
                    found = self._inside(callee.function, name[at + 1 :])
                    if found is not None:
                        return found
            at = name.find("/", at + 1)
        return None

    @cached_property
    def _by_name(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for key, body in self._traced.functions.items():
            for name in body.names():
                found[name] = (*found.get(name, ()), key)
        return found
