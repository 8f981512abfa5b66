"""What an object of the user's is, told without importing TensorFlow or Keras.

If one of them is not imported, the object is none of theirs; so classes are known by their names.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

_KERAS = ("keras", "tf_keras", "tensorflow.python.keras")


def is_tf_function(obj: object) -> bool:
    """Tell whether an object is a tf.function (bound to an instance or not)."""
    return hasattr(type(obj), "get_concrete_function") and hasattr(type(obj), "python_function")


def is_concrete_function(obj: object) -> bool:
    """Tell whether an object is a ConcreteFunction, such as a signature of a loaded SavedModel."""
    return _is_a(obj, ("ConcreteFunction",), ("tensorflow",))


def is_keras_model(obj: object) -> bool:
    """Tell whether an object is a model of Keras 3, tf_keras or the Keras 2 inside TensorFlow."""
    return _is_a(obj, ("Model",), _KERAS)


def is_tf_module(obj: object) -> bool:
    """Tell whether an object is a tf.Module, which Keras' layers are too."""
    return _is_a(obj, ("Module",), ("tensorflow",))


def is_dataset(obj: object) -> bool:
    """Tell whether an object is a tf.data.Dataset."""
    return _is_a(obj, ("DatasetV2",), ("tensorflow",))


def is_traceable(obj: object) -> bool:
    """Tell whether a tf.function can be made of an object: it is callable, and not a class."""
    return callable(obj) and not isinstance(obj, type) and not inspect.iscoroutinefunction(obj)


def called_function(obj: Any) -> Any:
    """Return the tf.function that an object's class has as `__call__`, else the object itself."""
    call = inspect.getattr_static(type(obj), "__call__", None)
    return obj.__call__ if is_tf_function(call) else obj


def noun(obj: object) -> str:
    """Say what an object is, as a noun with its article: `a class`, `a tensor`, `an int (3)`."""
    if isinstance(obj, type):
        return "a class"
    if isinstance(obj, ModuleType):
        return "a module"
    if obj is None:
        return "None"
    if inspect.iscoroutinefunction(obj):
        return "a coroutine function (async def)"
    if isinstance(obj, (bool, int, float, complex)):
        return f"a number ({obj!r})"
    if is_dataset(obj):
        return "a tf.data.Dataset"
    if is_tf_module(obj):
        return f"a tf.Module ({type(obj).__name__}) without __call__"
    for names, word in _VALUES:
        if _is_a(obj, names, ("tensorflow", "keras", "numpy")):
            return word
    name = type(obj).__name__
    return f"{'an' if name[:1] in 'aeiou' else 'a'} {name}"


_VALUES = (
    (("ResourceVariable", "BaseResourceVariable", "Variable"), "a tf.Variable"),
    (("EagerTensor", "Tensor"), "a tensor"),
    (("TensorSpec",), "a tf.TensorSpec"),
    (("ndarray", "generic"), "a NumPy value"),
)


def _is_a(obj: Any, names: tuple[str, ...], packages: tuple[str, ...]) -> bool:
    """Tell whether one of an object's classes has one of the names, in one of the packages."""
    return any(
        cls.__name__ in names and f"{cls.__module__}.".startswith(tuple(f"{p}." for p in packages))
        for cls in type(obj).__mro__
    )
