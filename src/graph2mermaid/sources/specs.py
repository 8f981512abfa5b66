"""Our specs as TensorFlow's, structures made of them, and what annotations say of a parameter."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from graph2mermaid.errors import SignatureError
from graph2mermaid.graph import TensorSpec
from graph2mermaid.sources.nests import is_nest, leaves_with_paths, map_with_paths
from graph2mermaid.sources.signature import EXAMPLE, Given, Path, input_option, path_text
from graph2mermaid.sources.structure import tensor_spec


def to_tf(spec: TensorSpec) -> Any:
    """Return the same specification as TensorFlow's.

    Raises:
        SignatureError: This version of TensorFlow has no such dtype.
    """
    import tensorflow as tf

    try:
        dtype = tf.dtypes.as_dtype(spec.dtype)
    except TypeError:
        raise SignatureError(
            f"{spec}: TensorFlow {tf.__version__} has no dtype {spec.dtype}"
        ) from None
    return tf.TensorSpec(spec.shape, dtype)


def as_tf(value: Any) -> Any:
    """Return arguments with our own TensorSpecs and Keras' symbolic tensors as TensorFlow's specs.

    Everything else is left as it is, so that a structure keeps its own type.
    """
    if not any(_spec_like(leaf) for _, leaf in leaves_with_paths(value)):
        return value
    return map_with_paths(
        lambda _, leaf: to_tf(tensor_spec(leaf)) if _spec_like(leaf) else leaf, value
    )


def _spec_like(leaf: Any) -> bool:
    return isinstance(leaf, TensorSpec) or type(leaf).__name__ == "KerasTensor"


def like(base: Any, spec: TensorSpec) -> Any:
    """Return a given specification as TensorFlow's: ragged or sparse where `base` is."""
    import tensorflow as tf

    plain = to_tf(spec)
    if isinstance(base, tf.RaggedTensorSpec) and spec.shape is not None:
        # No public properties on 2.9.3; private ones exist on 2.9.3 and 2.21.0.
        rank = min(base._ragged_rank, max(len(spec.shape) - 1, 0))
        splits = base._row_splits_dtype
        return tf.RaggedTensorSpec(plain.shape, plain.dtype, rank, splits)
    if isinstance(base, tf.SparseTensorSpec):
        return tf.SparseTensorSpec(plain.shape, plain.dtype)
    return plain


def without_name(spec: Any) -> Any:
    """Return a TensorSpec without its name; anything else as it is."""
    import tensorflow as tf

    return tf.TensorSpec(spec.shape, spec.dtype) if type(spec) is tf.TensorSpec else spec


def holds_specs(value: Any) -> bool:
    """Tell whether an argument asks for types and shapes rather than being an example."""
    import tensorflow as tf

    return any(isinstance(leaf, tf.TypeSpec) for _, leaf in leaves_with_paths(value))


def fits(declared: Any, given: Any) -> bool:
    """Tell whether an argument has the structure of a declared one, and specs that it allows.

    What is no tensor yet (a number, a list of numbers) is left for TensorFlow to judge.
    """
    import tensorflow as tf

    if is_nest(declared):
        if not is_nest(given) or len(declared) != len(given):
            return False
        parts = dict(leaves_with_paths(given))
        return all(
            path in parts and fits(leaf, parts[path]) for path, leaf in leaves_with_paths(declared)
        )
    if not isinstance(declared, tf.TypeSpec) or not (
        isinstance(given, tf.TypeSpec) or hasattr(given, "dtype")
    ):
        return True
    if not isinstance(given, tf.TypeSpec):
        given = tf.type_spec_from_value(given)
    return bool(declared.is_compatible_with(given))


def structure_of(given: Sequence[Given], annotation: Any = None) -> Any:
    """Put the specs of one parameter together, each at its path.

    Numbers make a tuple, names a dict or, where the annotation says so, a named tuple, an attrs
    class or an ExtensionType.

    Raises:
        SignatureError: Numbers and names are mixed, a number is left out, or the fields are not
            those of the annotated class.
    """
    return _assemble(given[0].parameter, (), {one.path: one.spec for one in given}, annotation)


def evaluated(annotation: Any, namespace: Mapping[str, Any]) -> Any:
    """Return what an annotation means when it is written as text; None when it has no meaning."""
    if annotation is inspect.Parameter.empty:
        return None

    def holder() -> None: ...

    while isinstance(annotation, str | typing.ForwardRef):  # text of text, where both are written
        text = annotation if isinstance(annotation, str) else annotation.__forward_arg__
        holder.__annotations__ = {"it": text}
        try:
            found = inspect.get_annotations(holder, globals=dict(namespace), eval_str=True)
        except Exception:  # any expression of the user's, in any state
            return None
        annotation = found["it"]
    return annotation


def spec_of_annotation(annotation: Any) -> Any:
    """Return the TypeSpec that an annotation holds, or None.

    It may be the annotation itself, be one of the extras of `Annotated`, or be the annotation of
    every field of a named tuple.
    """
    import tensorflow as tf

    if isinstance(annotation, tf.TypeSpec):
        return annotation
    if typing.get_origin(annotation) is typing.Annotated:
        return next((x for x in annotation.__metadata__ if isinstance(x, tf.TypeSpec)), None)
    if inspect.isclass(annotation) and hasattr(annotation, "_fields"):
        fields = [spec_of_annotation(a) for a in _field_annotations(annotation).values()]
        return annotation(*fields) if fields and None not in fields else None
    return None


def scalar_of_annotation(annotation: Any) -> Any:
    """Return the spec of a scalar for a parameter annotated with a plain Python type, or None."""
    import tensorflow as tf

    dtypes = {int: tf.int32, float: tf.float32, bool: tf.bool, str: tf.string}
    dtype = dtypes.get(annotation) if inspect.isclass(annotation) else None
    return None if dtype is None else tf.TensorSpec([], dtype)


def _assemble(parameter: str, path: Path, specs: Mapping[Path, TensorSpec], annotation: Any) -> Any:
    if () in specs:
        return to_tf(specs[()])
    groups: dict[str | int, dict[Path, TensorSpec]] = {}
    for (key, *rest), spec in specs.items():
        groups.setdefault(key, {})[tuple(rest)] = spec
    fields = _field_annotations(annotation) if inspect.isclass(annotation) else {}
    parts = {
        key: _assemble(parameter, (*path, key), inner, fields.get(str(key)))
        for key, inner in groups.items()
    }
    here = path_text(parameter, path)
    if any(isinstance(key, int) for key in parts):
        return _sequence(here, parts)
    return _record(here, parts, annotation) if fields else parts


def _sequence(here: str, parts: Mapping[str | int, Any]) -> tuple[Any, ...]:
    named = next((key for key in parts if isinstance(key, str)), None)
    if named is not None:
        raise SignatureError(
            f"--input {here}[{named!r}]: {here} has numbered parts as well; give either all parts"
            " of it by number or all by name"
        )
    for number in range(len(parts)):
        if number not in parts:
            raise SignatureError(
                f"--input: {here}[{number}] is missing; type {input_option(f'{here}[{number}]', EXAMPLE)}"
            )
    return tuple(parts[number] for number in range(len(parts)))


def _record(here: str, parts: Mapping[str | int, Any], record: Any) -> Any:
    import tensorflow as tf

    name = record.__name__
    if dataclasses.is_dataclass(record) and not hasattr(record, "__tf_flatten__"):
        raise SignatureError(
            f"--input {here}: TensorFlow does not look into the dataclass {name} (it has"
            " no __tf_flatten__); give a value of it with --inputs FILE:NAME"
        )
    make = record.Spec if issubclass(record, tf.experimental.ExtensionType) else record
    try:
        return make(**{str(name): part for name, part in parts.items()})
    except TypeError as error:
        names = ", ".join(_field_annotations(record))
        raise SignatureError(f"--input {here}: {name} has the fields {names} ({error})") from None


def _field_annotations(record: Any) -> dict[str, Any]:
    """Return the fields of a class that TensorFlow takes apart, with their annotations."""
    import tensorflow as tf

    is_record = (
        hasattr(record, "_fields")
        or hasattr(record, "__attrs_attrs__")
        or dataclasses.is_dataclass(record)
        or issubclass(record, tf.experimental.ExtensionType)
    )
    if not is_record:
        return {}
    names = getattr(record, "_fields", None)
    if names is None and hasattr(record, "__attrs_attrs__"):
        names = [attribute.name for attribute in record.__attrs_attrs__]
    annotations = getattr(record, "__annotations__", {})
    module = inspect.getmodule(record)
    names = annotations if names is None else names
    return {
        n: evaluated(annotations.get(n, inspect.Parameter.empty), vars(module) if module else {})
        for n in names
    }
