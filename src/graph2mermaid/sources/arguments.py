"""What a function is traced with: what was given first, then what the function says itself.

The order is a promise to the user: the function's `input_signature`; the signature of its first
existing trace; TensorSpec annotations; defaults; an unknown-rank float32. Whatever was assumed is
said in a note, together with what to type instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from graph2mermaid.errors import SignatureError
from graph2mermaid.graph import TensorSpec
from graph2mermaid.sources.nests import describe_nest, is_nest, leaves_with_paths, map_with_paths
from graph2mermaid.sources.parameters import (
    Callee,
    Known,
    bind_options,
    bind_values,
    call_with,
    describe_arguments,
    example_places,
    listed,
)
from graph2mermaid.sources.signature import Given, input_option, path_text
from graph2mermaid.sources.specs import (
    evaluated,
    fits,
    holds_specs,
    like,
    scalar_of_annotation,
    spec_of_annotation,
    structure_of,
)
from graph2mermaid.sources.structure import tensor_spec


@dataclass(frozen=True)
class Arguments:
    """The arguments to trace with."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    """The parameters whose shape nobody gave."""
    parameters: tuple[str, ...] = ()
    """The parameters that the arguments are for; the others keep their defaults."""
    overridden: tuple[str, ...] = ()
    """The parameters that were asked for otherwise than the function's `input_signature` says."""
    shown: str = ""
    """All of them in words: `x: float32[?,4], n: 2`."""
    values: tuple[Sequence[Any], Mapping[str, Any]] = ((), MappingProxyType({}))
    """What to run it with: as `args` and `kwargs`, but with the values that were given where an
    `input_signature` says what to trace with."""


class ShapesNeededError(SignatureError):
    """The function cannot be traced without shapes that nobody gave."""

    def __init__(self, message: str, places: Mapping[str, TensorSpec]) -> None:
        super().__init__(message)
        self.places = places
        """An example for each place."""


class Ask(Protocol):
    """Makes the words that tell the user how to give certain shapes."""

    def __call__(self, places: Mapping[str, TensorSpec], *, or_values: bool = False) -> str:
        """Return them for these places; `or_values` tells of example values as well."""


def ask_on_command_line(places: Mapping[str, TensorSpec], *, or_values: bool = False) -> str:
    """Return the options to type for these places."""
    options = " ".join(input_option(name, spec) for name, spec in places.items())
    return f"type {options}" + (", or give values with --inputs FILE:NAME" if or_values else "")


def ask_in_python(places: Mapping[str, TensorSpec], *, or_values: bool = True) -> str:  # noqa: ARG001
    """Return what to pass for these places."""
    return f"pass a tf.TensorSpec or an example value for {listed(list(places))}"


def choose(
    callee: Callee,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    given: Mapping[str, Sequence[Given]] | None = None,
    *,
    ask: Ask = ask_on_command_line,
) -> Arguments:
    """Decide on every argument of a function.

    Args:
        callee: The function.
        args: Positional values or TypeSpecs.
        kwargs: Values or TypeSpecs by name.
        given: What `--input` says, by parameter.
        ask: Makes the words that tell the user how to give certain shapes.

    Raises:
        SignatureError: A name or a count does not fit the function, or a part of a structure is
            missing.
        ShapesNeededError: The function cannot be traced without shapes that nobody gave.
    """
    values = bind_values(callee, args, kwargs or {})
    options = bind_options(callee, given or {}, values)
    chooser = _Chooser(callee, values, options)
    for parameter in callee.signature.parameters.values():
        chooser.choose(parameter)
    needed = [name for name in chooser.assumed if name not in callee.derived]
    if needed and callee.needs_shapes:
        places = example_places(callee, needed)
        raise ShapesNeededError(f"{callee.name} is {callee.needs_shapes}; {ask(places)}", places)
    positional, keywords = call_with(callee.signature, chooser.chosen)
    return Arguments(
        positional,
        keywords,
        tuple(chooser.notes(ask)),
        tuple(chooser.assumed),
        tuple(chooser.chosen),
        tuple(chooser.overridden),
        describe_arguments(callee.signature, chooser.chosen),
        call_with(callee.signature, {**chooser.chosen, **chooser.values}),
    )


class _Chooser:
    """Goes through the parameters in order, and remembers what has to be said about them."""

    def __init__(
        self,
        callee: Callee,
        values: Mapping[str, Any],
        options: Mapping[str, Sequence[Given]],
    ) -> None:
        self._callee = callee
        self._values = values
        self._options = options
        self.chosen: dict[str, Any] = {}
        self.by_source: dict[str, tuple[Known, list[str]]] = {}
        self._derived: list[str] = []
        self.assumed: list[str] = []
        self.overridden: list[str] = []
        self.values: dict[str, Any] = {}
        """The values that were given for what is traced as the `input_signature` says."""
        self._scalars: list[str] = []

    def choose(self, parameter: inspect.Parameter) -> None:
        """Decide on one parameter; a default that is good enough is left to the function."""
        name = parameter.name
        own = self._callee.input_signature
        if name in self._values:
            self.chosen[name] = self._values[name]
            if own is not None:
                self._fit(name, own.get(name))
            return
        known = next((k for k in self._callee.known if name in k.values), None)
        base = known.values[name] if known else spec_of_annotation(self._annotation(parameter))
        if name in self._options:
            if base is None and name in self._callee.derived and self._options[name][0].path:
                base = self._callee.derived[name].make(self.chosen)
            self.chosen[name] = self._placed(parameter, base, known)
            if own is not None:
                self._fit(name, own.get(name))
        elif name in self._callee.derived and self._derive(name):
            self._derived.append(name)
        elif known:
            self.chosen[name] = base
            if known.source and not _says_nothing(parameter, base):
                self.by_source.setdefault(known.source, (known, []))[1].append(name)
        elif base is not None:
            self.chosen[name] = base
        elif parameter.default is parameter.empty:
            self._assume(parameter)

    def notes(self, ask: Ask) -> Iterable[str]:
        """Yield what a reader must know of the choice."""
        for known, names in self.by_source.values():
            shown = {name: self.chosen[name] for name in names}
            words = describe_arguments(self._callee.signature, shown)
            if known.assumed:
                yield f"{words} assumed from {known.source}; {ask(_tensors(shown))}"
            else:
                yield f"{words} as in {known.source}"
        for name in self._derived:
            words = describe_arguments(self._callee.signature, {name: self.chosen[name]})
            why = self._callee.derived[name].reason
            places = _tensors({name: self.chosen[name]})
            yield f"{words} assumed, as {why}; {ask(places)}"
        if self.overridden:
            own = describe_arguments(self._callee.signature, self._callee.input_signature or {})
            yield (
                f"traced with {listed(self.overridden)} as given; the function's own"
                f" input_signature is ({own})"
            )
        unknown = [name for name in self.assumed if name not in self._scalars]
        if unknown:
            shape = "shapes" if len(unknown) > 1 else "shape"
            yield (
                f"{shape} of {listed(unknown)} assumed: unknown rank float32 (a matmul then"
                f" becomes BatchMatMulV2); {ask(example_places(self._callee, unknown))}"
            )
        for name in self._scalars:
            spec = tensor_spec(self.chosen[name])
            yield f"{name} assumed from its annotation: {spec}; {ask({name: spec})}"

    def _derive(self, name: str) -> bool:
        """Take what follows from the arguments so far, if it does."""
        if set(self.assumed) & set(self.chosen):
            return False  # nothing follows from what is itself not known
        found = self._callee.derived[name].make(self.chosen)
        if found is not None:
            self.chosen[name] = found
        return found is not None

    def _fit(self, name: str, declared: Any) -> None:
        """Compare what was given with what an `input_signature` declares.

        A value is traced as the signature says, whatever its own shape. A TypeSpec asks for
        something else, which the signature has to allow.
        """
        given = self.chosen[name]
        if declared is None:
            self.overridden.append(name)
            return
        if not fits(declared, given):
            declared_text = describe_arguments(self._callee.signature, {name: declared})
            raise SignatureError(
                f"{self._callee.name} has the input_signature ({declared_text}), which"
                f" {describe_nest(given)} does not fit"
            )
        if not holds_specs(given):
            self.values[name] = _as_tensor(given, declared)
            self.chosen[name] = declared
        elif describe_nest(given) != describe_nest(declared):
            self.overridden.append(name)

    def _assume(self, parameter: inspect.Parameter) -> None:
        import tensorflow as tf

        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return
        if parameter.name == "self":
            raise SignatureError(
                f"{self._callee.name} is a method of a class: name it through an object of the"
                f" class, such as model.py:net.forward"
            )
        if parameter.name in self._callee.objects:
            raise SignatureError(
                f"{self._callee.name} takes a Python object as {parameter.name}, which no shape can"
                " stand for; give it with --inputs FILE:NAME"
            )
        scalar = scalar_of_annotation(self._annotation(parameter))
        if scalar is not None:
            self._scalars.append(parameter.name)
        self.assumed.append(parameter.name)
        self.chosen[parameter.name] = scalar or tf.TensorSpec(None, tf.float32)

    def _placed(self, parameter: inspect.Parameter, base: Any, known: Known | None) -> Any:
        """Put the given specifications in their places in a parameter."""
        given = self._options[parameter.name]
        if not given[0].path:
            return like(base, given[0].spec)
        if parameter.kind is parameter.VAR_KEYWORD:
            return structure_of(given, dict)
        places = {path for path, _ in leaves_with_paths(base)} if is_nest(base) else set()
        if all(one.path in places for one in given):
            at = {one.path: one.spec for one in given}
            return map_with_paths(lambda p, leaf: like(leaf, at[p]) if p in at else leaf, base)
        if places and known and known.fixed:
            missing = next(one for one in given if one.path not in places)
            existing = ", ".join(path_text(parameter.name, p) for p in sorted(places, key=str))
            raise SignatureError(
                f"--input {missing.name}: {self._callee.name} takes {existing} there, and no"
                f" {missing.name}"
            )
        return structure_of(given, self._annotation(parameter))

    def _annotation(self, parameter: inspect.Parameter) -> Any:
        return evaluated(parameter.annotation, self._callee.namespace)


def _as_tensor(value: Any, declared: Any) -> Any:
    """Return a Python number, or an array, as the tensor that a function is declared to take."""
    import tensorflow as tf

    if isinstance(declared, tf.TensorSpec) and not hasattr(value, "dtype"):
        return tf.convert_to_tensor(value, declared.dtype)
    return value


def _tensors(values: Mapping[str, Any]) -> dict[str, TensorSpec]:
    """Return every tensor in these arguments by its place."""
    return {
        path_text(name, path): tensor_spec(leaf)
        for name, value in values.items()
        for path, leaf in leaves_with_paths(value)
        if hasattr(leaf, "dtype") and hasattr(leaf, "shape")
    }


def _says_nothing(parameter: inspect.Parameter, value: Any) -> bool:
    """Tell whether a known argument is the default anyway."""
    if isinstance(value, list | tuple | Mapping):
        return not value
    return parameter.default is value or (
        isinstance(value, bool | int | float | str) and bool(parameter.default == value)
    )
