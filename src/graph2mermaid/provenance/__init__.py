"""How a traced graph and the optimized one hang together, op by op.

Ops are named by their path; see [`flat`][graph2mermaid.provenance.flat].
"""

from __future__ import annotations

from graph2mermaid.provenance.data import from_data, to_data
from graph2mermaid.provenance.explain import explain
from graph2mermaid.provenance.fusion import Blocked, Blocker, blocked_fusions
from graph2mermaid.provenance.model import (
    GONE,
    Fate,
    Folded,
    How,
    NodeOrigin,
    OpFate,
    Provenance,
    Suspect,
)
from graph2mermaid.provenance.record import (
    Difference,
    Optimization,
    PassResult,
    optimization_from_data,
    optimization_to_data,
    recorded,
)

__all__ = [
    "GONE",
    "Blocked",
    "Blocker",
    "Difference",
    "Fate",
    "Folded",
    "How",
    "NodeOrigin",
    "OpFate",
    "Optimization",
    "PassResult",
    "Provenance",
    "Suspect",
    "blocked_fusions",
    "explain",
    "from_data",
    "optimization_from_data",
    "optimization_to_data",
    "recorded",
    "to_data",
]
