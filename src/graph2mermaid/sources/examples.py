"""Shapes to show in a message, tried before they are shown: a line that is printed works."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from graph2mermaid.graph import TensorSpec
from graph2mermaid.sources.failures import full_reason
from graph2mermaid.sources.signature import EXAMPLE

Places = Mapping[str, TensorSpec]
"""What to give for each place in the arguments: `batch['image']`, `n`."""
Attempt = Callable[[Places], BaseException | None]
"""Traces with these, and returns what went wrong, if anything did."""

_MOST_ATTEMPTS = 16
_UNKNOWN = re.compile(
    r"unknown|NoneType|[Cc]annot infer|rank None|Iterating over|iterated|not fully defined"
    r"|Cannot convert a partially|as_list"
)
_RANK = re.compile(r"(?:rank|ndim=?|at least) ?(\d)\b")
_GOT = re.compile(r"valid indices, got <tf\.Tensor '([^:']+):\d+'")
_DTYPES = ("int32", "int64", "bool", "string", "float32", "float64", "float16", "complex64")
_LARGEST_DIMENSION = 1 << 20


def unknown_ranks(places: Places) -> dict[str, TensorSpec]:
    """Return the same places with unknown shapes, which most functions take."""
    return {name: replace(spec, shape=None) for name, spec in places.items()}


def that_work(
    places: Places, attempt: Attempt, *, failure: BaseException | None = None
) -> dict[str, TensorSpec] | None:
    """Change examples until they can be traced with, led by what goes wrong.

    Args:
        places: Where to begin.
        attempt: Tries some.
        failure: What went wrong with `places`, when that is known already.

    Returns:
        Examples that work, with shapes where those are found; or None.
    """
    search = _Search(attempt)
    found = search.any_that_work(dict(places), failure or search.failure(places))
    if found is None:
        return None
    if all(spec.shape is not None for spec in found.values()):
        return found
    usual, *others = _with_shapes(found)
    if not search.left:
        return found
    if shaped := search.any_that_work(usual, search.failure(usual)):
        return shaped
    for shaped in others:
        if search.left and search.failure(shaped) is None:
            return shaped
    return found


class _Search:
    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._seen: list[Places] = []
        self.left = _MOST_ATTEMPTS

    def failure(self, places: Places) -> BaseException | None:
        self.left -= 1
        self._seen.append(dict(places))
        return self._attempt(places)

    def any_that_work(
        self, places: dict[str, TensorSpec], failure: BaseException | None
    ) -> dict[str, TensorSpec] | None:
        """Make one change after the other; one that leads to another error is a step forward."""
        while failure is not None:
            step = self._step(places, full_reason(failure))
            if step is None:
                return None
            places, failure = step
        return places

    def _step(
        self, places: dict[str, TensorSpec], words: str
    ) -> tuple[dict[str, TensorSpec], BaseException | None] | None:
        for changed in _changes(places, words):
            if changed in self._seen:
                continue
            if not self.left:
                return None
            failure = self.failure(changed)
            if failure is None or full_reason(failure) != words:
                return changed, failure
        return None


def _changes(places: dict[str, TensorSpec], words: str) -> Iterator[dict[str, TensorSpec]]:
    """Yield changes of one place that an error's words suggest, the likeliest first."""
    if (got := _GOT.search(words)) and got[1] in places:
        yield places | {got[1]: TensorSpec("int32", ())}
    unshaped = [name for name, spec in places.items() if spec.shape is None]
    if unshaped and _UNKNOWN.search(words):
        yield places | {name: _shaped(places[name], EXAMPLE.shape) for name in unshaped}
    named = [dtype for dtype in _DTYPES if re.search(rf"\b{dtype}\b", words)]
    for dtype in named:
        for name, spec in places.items():
            if dtype != spec.dtype:
                yield places | {name: replace(spec, dtype=dtype)}
    for rank in dict.fromkeys(int(found) for found in _RANK.findall(words)):
        for name, spec in places.items():
            if spec.shape is not None and len(spec.shape) != rank:
                yield places | {name: _shaped(spec, _of_rank(rank))}
    for size in _sizes(words):
        for name, spec in places.items():
            if spec.shape and spec.shape[-1] != size:
                yield places | {name: _shaped(spec, (*spec.shape[:-1], size))}


def _with_shapes(places: dict[str, TensorSpec]) -> Iterator[dict[str, TensorSpec]]:
    """Yield the same with shapes in place of unknown ones, the most telling first."""
    usual = EXAMPLE.shape
    for floats, others in ((usual, usual), (usual, (None,)), (usual, ()), ((), ())):
        yield {
            name: spec
            if spec.shape is not None
            else _shaped(spec, floats if spec.dtype.startswith("float") else others)
            for name, spec in places.items()
        }


def _shaped(spec: TensorSpec, shape: tuple[int | None, ...] | None) -> TensorSpec:
    return replace(spec, shape=shape)


def _of_rank(rank: int) -> tuple[int | None, ...]:
    last = EXAMPLE.shape or ()
    return (None, *last[-1:] * (rank - 1)) if rank else ()


def _sizes(words: str) -> list[int]:
    found = (int(number) for number in re.findall(r"(?<![\w.])\d+(?![\w.]*\w)", words))
    return [size for size in dict.fromkeys(found) if 0 < size < _LARGEST_DIMENSION]
