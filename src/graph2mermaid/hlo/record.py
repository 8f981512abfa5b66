"""What a capture keeps of a compilation beside the graph of its module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graph2mermaid.errors import CaptureError
from graph2mermaid.graph import Graph
from graph2mermaid.hlo.model import Module
from graph2mermaid.hlo.origins import NO_OPS, Origins


@dataclass(frozen=True, slots=True)
class Compilation:
    """How the HLO of a capture came about, in numbers. The rest is on the nodes of its graph."""

    instructions: int
    """All instructions of the optimized module, those inside fusions and reducers included."""
    mappable: int = 0
    """Those of them that are no parameter, and so stand for something that is computed."""
    mapped: int = 0
    """Those of the mappable ones that name a TensorFlow op: one of the traced graph, where it is
    known."""
    before: int | None = None
    """Instructions before XLA optimized them; None where that is not known."""
    assumed: tuple[str, ...] = ()
    """Arguments whose shape was made up, as they would be typed: `x=float32[2,4]`."""

    @property
    def coverage(self) -> float:
        """The share of what is computed that is mapped to TensorFlow ops."""
        return self.mapped / self.mappable if self.mappable else 1.0


def compilation_of(
    module: Module,
    traced: Graph | None = None,
    *,
    before: int | None = None,
    assumed: tuple[str, ...] = (),
) -> Compilation:
    """Count what is in a module, and how much of it names TensorFlow ops."""
    origins = Origins(traced) if traced is not None else None
    computing = [one for one in module.instructions() if one.parameter is None]
    mapped = sum(
        one.op_name not in {"", *NO_OPS} if origins is None else bool(origins.places(one.op_name))
        for one in computing
    )
    total = len(list(module.instructions()))
    return Compilation(total, len(computing), mapped, before, assumed)


def compilation_to_data(compilation: Compilation) -> dict[str, Any]:
    """Return what `json.dumps` takes; what is empty is left out."""
    data = {
        "instructions": compilation.instructions,
        "mappable": compilation.mappable,
        "mapped": compilation.mapped,
        "before": compilation.before,
        "assumed": list(compilation.assumed),
    }
    return {key: value for key, value in data.items() if value not in (None, [])}


def compilation_from_data(data: Mapping[str, Any]) -> Compilation:
    """Return the compilation that `compilation_to_data` made data of.

    Raises:
        CaptureError: The data is of another form.
    """
    numbers = {key: data.get(key, 0) for key in ("instructions", "mappable", "mapped")}
    before, assumed = data.get("before"), data.get("assumed", [])
    counts = [*numbers.values(), *([] if before is None else [before])]
    if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in counts):
        raise CaptureError("the compilation is damaged: a count is no whole number")
    if not isinstance(assumed, list) or not all(isinstance(text, str) for text in assumed):
        raise CaptureError("the compilation is damaged: 'assumed' is no list of texts")
    return Compilation(**numbers, before=before, assumed=tuple(assumed))
