"""What surrounds a trace: TensorFlow's switches as by default, and nothing of it left behind."""

from __future__ import annotations

import contextlib
import random
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def undisturbed() -> Iterator[list[str]]:
    """Trace as TensorFlow would by default, and leave no mark on the process's random numbers.

    Yields:
        A list for notes, filled when the context is entered.
    """
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.eager import context

    notes: list[str] = []
    eagerly = tf.config.functions_run_eagerly()
    if eagerly:
        notes.append(
            "tf.config.run_functions_eagerly(True) is set: calls run op by op, without this graph;"
            " it was traced with the switch off"
        )
        tf.config.run_functions_eagerly(False)
    # Initial values of variables made on the first call are drawn while tracing. TensorFlow's own
    # generator is private, the same on 2.9.3 and 2.21.0, and absent until it is used.
    rng = getattr(context.context(), "_rng", None)
    states = random.getstate(), np.random.get_state(), rng and rng.getstate()
    try:
        with _own_conversions(), warnings.catch_warnings():
            # How Keras builds a model is no concern of the user's; that it cannot is an error.
            warnings.filterwarnings("ignore", module=r"(tf_)?keras\.")
            yield notes
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        if rng:
            rng.setstate(states[2])
        tf.config.run_functions_eagerly(eagerly)


@contextlib.contextmanager
def _own_conversions() -> Iterator[None]:
    """Let AutoGraph convert every function anew.

    It keeps what it has converted by code object, and code objects are equal when their text and
    line are, whatever their file: of two checkouts of a program the second would be shown with
    the lines of the first. Private, the same on 2.9.3 and 2.21.0.
    """
    from tensorflow.python.autograph.impl import api
    from tensorflow.python.autograph.pyct import cache

    transpiler = api._TRANSPILER
    kept = transpiler._cache
    transpiler._cache = cache.CodeObjectCache()
    try:
        yield
    finally:
        transpiler._cache = kept
