"""What XLA made of a function, as plain data: the module, and what its kernels cost."""

from __future__ import annotations

from graph2mermaid.hlo.costs import Cost, cost
from graph2mermaid.hlo.model import (
    CONTAINERS,
    NO_WORK,
    Computation,
    Instruction,
    Module,
    Shape,
)
from graph2mermaid.hlo.origins import NO_OPS, Origins, Place
from graph2mermaid.hlo.record import (
    Compilation,
    compilation_from_data,
    compilation_of,
    compilation_to_data,
)

__all__ = [
    "CONTAINERS",
    "NO_OPS",
    "NO_WORK",
    "Compilation",
    "Computation",
    "Cost",
    "Instruction",
    "Module",
    "Origins",
    "Place",
    "Shape",
    "compilation_from_data",
    "compilation_of",
    "compilation_to_data",
    "cost",
]
