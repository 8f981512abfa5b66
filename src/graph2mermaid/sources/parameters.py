"""A function as far as its arguments are concerned, and arguments by the parameters they are for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graph2mermaid.errors import SignatureError
from graph2mermaid.graph import TensorSpec
from graph2mermaid.sources.nests import (
    describe_nest,
    is_forgotten,
    leaves_with_paths,
    map_with_paths,
)
from graph2mermaid.sources.signature import EXAMPLE, Given, input_option, path_text
from graph2mermaid.sources.specs import without_name
from graph2mermaid.sources.structure import tensor_spec

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


DESCRIBED = "_graph2mermaid_callee"
"""The attribute of a function made here that describes its arguments: from its name to a Callee."""


@dataclass(frozen=True)
class Known:
    """Arguments by parameter that the function itself makes known, and where from."""

    values: Mapping[str, Any]
    source: str = ""
    """In words, for a note; empty when there is nothing to say."""
    fixed: bool = False
    """Whether the function takes this structure and no other, as with an `input_signature`."""
    assumed: bool = False
    """Whether it may be wrong, so that the user is told what to type instead."""


@dataclass(frozen=True)
class Derived:
    """A parameter that follows from the ones before it, as labels do from what a model returns."""

    make: Callable[[Mapping[str, Any]], Any]
    """From the chosen arguments to this one, or to None when they do not tell."""
    reason: str
    """Why, in words, for a note: `the model's output and loss suggest`."""


@dataclass(frozen=True)
class Callee:
    """A function, as far as its arguments are concerned."""

    name: str
    """As the user knows it; messages start with it."""
    signature: inspect.Signature
    """The parameters that are still to be given."""
    known: Sequence[Known] = ()
    """In order of precedence."""
    input_signature: Mapping[str, Any] | None = None
    """The tf.function's own, by parameter. Values must fit it; other specs are asked for as such."""
    namespace: Mapping[str, Any] = field(default_factory=dict)
    """The globals of the function's module, for annotations written as text."""
    aliases: Mapping[str, tuple[str, tuple[str | int, ...]]] = field(default_factory=dict)
    """Other names of places in parameters: the input layers of a Keras model."""
    objects: frozenset[str] = frozenset()
    """Parameters that took Python objects in an earlier trace, which nothing can stand for."""
    derived: Mapping[str, Derived] = field(default_factory=dict)
    """Parameters that nobody has to give when the ones before them are known."""
    examples: Mapping[str, Mapping[str, TensorSpec]] = field(default_factory=dict)
    """By parameter, what messages show for each place in it when nothing is known of it."""
    needs_shapes: str = ""
    """What it is, if it cannot be traced without shapes: `a Keras model that is not built`."""
    duplicate: Callable[[], Any] | None = None
    """Makes one that is like it, which a trial may build. It may fail."""


def example_places(callee: Callee, parameters: Iterable[str]) -> dict[str, TensorSpec]:
    """Return what to show for parameters that nothing is known of, place by place."""
    found: dict[str, TensorSpec] = {}
    for name in parameters:
        found |= callee.examples.get(name) or {name: EXAMPLE}
    return found


def bind_values(callee: Callee, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given values by parameter."""
    parameters = callee.signature.parameters.values()
    positional = [p.name for p in parameters if p.kind in POSITIONAL]
    variadic = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    keywords = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), None)
    if len(args) > len(positional) and variadic is None:
        takes = listed(positional) if positional else "none"
        raise SignatureError(
            f"{callee.name} takes {len(positional)} positional arguments ({takes}), but"
            f" {len(args)} are given"
        )
    found: dict[str, Any] = dict(zip(positional, args, strict=False))
    if variadic and len(args) > len(positional):
        found[variadic] = tuple(args[len(positional) :])
    for name, value in kwargs.items():
        if name in found:
            raise SignatureError(f"{callee.name}: {name} is given twice")
        parameter = callee.signature.parameters.get(name)
        if parameter is None or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            if keywords is None:
                raise SignatureError(_no_parameter(callee, name))
            found.setdefault(keywords, {})[name] = value
        else:
            found[name] = value
    return found


def bind_options(
    callee: Callee, given: Mapping[str, Sequence[Given]], values: Mapping[str, Any]
) -> dict[str, list[Given]]:
    """Return what `--input` says by parameter, other names of a place and `**kwargs` resolved."""
    keywords = next(
        (p.name for p in callee.signature.parameters.values() if p.kind is p.VAR_KEYWORD), None
    )
    found: dict[str, list[Given]] = {}
    for one in (one for several in given.values() for one in several):
        place = _place(callee, one, keywords)
        if place.parameter in values:
            raise SignatureError(f"{callee.name}: {one.name} is given by --inputs and by --input")
        found.setdefault(place.parameter, []).append(place)
    for name, several in found.items():
        kind = callee.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL and not several[0].path:
            example = input_option(path_text(name, (0,)), several[0].spec)
            raise SignatureError(f"{callee.name} takes any number of {name}; type {example}")
    return found


def _place(callee: Callee, given: Given, keywords: str | None) -> Given:
    """Return the parameter that a name stands for: its own, an alias, or `**kwargs`."""
    if given.parameter in callee.signature.parameters:
        parameter, path = callee.aliases.get(str(given.path[0]) if given.path else "", ("", ()))
        if parameter == given.parameter and path and isinstance(path[0], int):
            return Given(parameter, (*path, *given.path[1:]), given.spec)  # `inputs.left`
        return given
    if given.parameter in callee.aliases:
        parameter, path = callee.aliases[given.parameter]
        return Given(parameter, (*path, *given.path), given.spec)
    if keywords is not None:
        return Given(keywords, (given.parameter, *given.path), given.spec)
    raise SignatureError(_no_parameter(callee, given.parameter))


def call_with(
    signature: inspect.Signature, chosen: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Split the chosen arguments as a call would; after a gap the rest goes by name."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    gap = False
    for name, parameter in signature.parameters.items():
        if name not in chosen:
            gap = gap or parameter.kind in POSITIONAL
            if (
                parameter.kind is parameter.POSITIONAL_ONLY
                and parameter.default is not parameter.empty
            ):
                args.append(parameter.default)
                gap = False
        elif parameter.kind is parameter.VAR_POSITIONAL:
            args += chosen[name]
        elif parameter.kind is parameter.VAR_KEYWORD:
            kwargs.update(chosen[name])
        elif parameter.kind in POSITIONAL and not gap:
            args.append(chosen[name])
        else:
            kwargs[name] = chosen[name]
    return tuple(args), kwargs


def named_arguments(
    signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a trace's `structured_input_signature` by parameter.

    TensorFlow writes the arguments of `*args` after the positional ones, and those of `**kwargs`
    among the keyword-only ones.
    """
    names = [p.name for p in signature.parameters.values() if p.kind in POSITIONAL]
    found: dict[str, Any] = dict(zip(names, args, strict=False))
    found |= {name: value for name, value in kwargs.items() if name in signature.parameters}
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL and args[len(names) :]:
            found[parameter.name] = tuple(args[len(names) :])
        elif parameter.kind is parameter.VAR_KEYWORD:
            rest = {name: value for name, value in kwargs.items() if name not in found}
            found |= {parameter.name: rest} if rest else {}
    return {name: found[name] for name in signature.parameters if name in found}


def by_parameter(
    signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a trace's arguments by parameter in a form to trace with again.

    An object that TensorFlow did not keep is left out. A specification loses its name: where
    TensorFlow put the name in, it would be taken for one that the user chose.
    """
    return {
        name: map_with_paths(lambda _, leaf: without_name(leaf), value)
        for name, value in named_arguments(signature, args, kwargs).items()
        if not _holds_object(value)
    }


def objects_among(
    signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> frozenset[str]:
    """Return the parameters that took an object in a trace, which TensorFlow did not keep."""
    named = named_arguments(signature, args, kwargs)
    return frozenset(name for name, value in named.items() if _holds_object(value))


def _holds_object(value: Any) -> bool:
    return any(is_forgotten(leaf) for _, leaf in leaves_with_paths(value))


def describe_arguments(signature: inspect.Signature, values: Mapping[str, Any]) -> str:
    """Return the arguments in words: `x: float32[?,4], n: 2`."""
    parts: list[str] = []
    for name, value in values.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            parts += [f"{name}[{i}]: {describe_nest(item)}" for i, item in enumerate(value)]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            parts += [f"{key}: {describe_nest(item)}" for key, item in value.items()]
        else:
            parts.append(f"{name}: {describe_nest(value)}")
    return ", ".join(parts)


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence: `x, w and b`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""


def _no_parameter(callee: Callee, name: str) -> str:
    names = [p.name for p in callee.signature.parameters.values()]
    names += [alias for alias in callee.aliases if alias not in names]
    if not names:
        return f"{callee.name} has no parameter {name!r}; it takes none"
    return (
        f"{callee.name} has no parameter {name!r}; its parameters are {listed(names)}:"
        f" type {_example_option(callee, names[0])}"
    )


def _example_option(callee: Callee, parameter: str) -> str:
    """Return an option for a parameter, or for the first tensor in it, that can be typed."""
    value = next(
        (known.values[parameter] for known in callee.known if parameter in known.values), None
    )
    for path, leaf in leaves_with_paths(value):
        if hasattr(leaf, "dtype") and hasattr(leaf, "shape"):
            return input_option(path_text(parameter, path), tensor_spec(leaf))
    place, spec = next(iter(example_places(callee, [parameter]).items()))
    return input_option(place, spec)
