"""Functions that TensorFlow rewrites before they run, with values to run them on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Case:
    """A tf.function, arguments for it, and its variables."""

    function: Any
    args: tuple[Any, ...] = ()
    variables: tuple[Any, ...] = ()


MAKERS: dict[str, Callable[[], Case]] = {}


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    """Keep a maker under its name."""
    MAKERS[make.__name__] = make
    return make


@case
def dense() -> Case:
    """A product, a bias and an activation: one kernel."""
    import tensorflow as tf

    @tf.function
    def dense(x, w, b):
        return tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))

    return Case(dense, (tf.ones([8, 4]), tf.ones([4, 2]), tf.ones([2])))


@case
def dense_with_plus() -> Case:
    """The same with `+`, which is one kernel only where shapes are known, and oneDNN is on."""
    import tensorflow as tf

    w, b = tf.Variable(tf.ones([4, 2])), tf.Variable(tf.ones([2]))

    @tf.function
    def dense(x):
        return tf.nn.relu(tf.matmul(x, w) + b)

    return Case(dense, (tf.ones([8, 4]),), (w, b))


@case
def folded() -> Case:
    """Constants only, beside one argument."""
    import tensorflow as tf

    @tf.function
    def folded(x):
        return x * tf.reduce_sum(tf.ones([3]) * 2.0)

    return Case(folded, (tf.ones([2]),))


@case
def tiny() -> Case:
    """Nothing but constants, and too few ops to be optimized."""
    import tensorflow as tf

    return Case(tf.function(lambda: tf.constant(2.0) * 3.0))


@case
def two_calls() -> Case:
    """One function called twice; equal constants of the calls become one."""
    import tensorflow as tf

    @tf.function
    def inner(a, b):
        return tf.nn.relu(tf.matmul(a, b) + 1.0)

    @tf.function
    def outer(x):
        return inner(x, x) + inner(x, 2.0 * x)

    return Case(outer, (tf.ones([2, 2]),))


@case
def loop_with_branch() -> Case:
    """A loop with a branch in its body."""
    import tensorflow as tf

    @tf.function
    def loop(x):
        i = tf.constant(0)
        while i < 3:
            if tf.reduce_sum(x) > 10.0:  # noqa: SIM108 - AutoGraph is to see a statement
                x = x - 1.0
            else:
                x = tf.matmul(x, x)
            i = i + 1
        return x

    return Case(loop, (tf.eye(2),))


@case
def loop_over_range() -> Case:
    """A loop that fills an array."""
    import tensorflow as tf

    @tf.function
    def rows(x):
        out = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        for i in tf.range(tf.shape(x)[0]):
            out = out.write(i, x[i] * 2.0)
        return out.stack()

    return Case(rows, (tf.ones([3, 2]),))


@case
def several_branches() -> Case:
    """A choice among three branches."""
    import tensorflow as tf

    @tf.function
    def pick(index, x):
        branches = [lambda: x + 1.0, lambda: tf.matmul(x, x), lambda: tf.nn.relu(x)]
        return tf.switch_case(index, branches, default=lambda: tf.zeros_like(x))

    return Case(pick, (tf.constant(1), tf.ones([2, 2])))


@case
def known_branch() -> Case:
    """A branch that is decided before it runs."""
    import tensorflow as tf

    @tf.function
    def known(x):
        return tf.cond(tf.constant(True), lambda: tf.matmul(x, x), lambda: x - 1.0)

    return Case(known, (tf.eye(2),))


@case
def training_step() -> Case:
    """Variables that are read and changed."""
    import tensorflow as tf

    w, b = tf.Variable(tf.ones([3, 1])), tf.Variable(tf.zeros([1]))

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
        for variable, gradient in zip((w, b), tape.gradient(loss, (w, b))):  # noqa: B905
            variable.assign_sub(0.1 * gradient)
        return loss

    return Case(step, (tf.ones([4, 3]), tf.ones([4, 1])), (w, b))


@case
def order_matters() -> Case:
    """Ops that are there for what they do: prints, checks, assignments."""
    import tensorflow as tf

    count = tf.Variable(0.0)

    @tf.function
    def step(x):
        before = count.read_value()
        count.assign_add(x)
        tf.debugging.assert_greater(x, 0.0)
        return before, count * 1.0

    return Case(step, (tf.constant(2.0),), (count,))


@case
def lookup() -> Case:
    """A table and strings."""
    import tensorflow as tf

    keys, values = tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)
    start = tf.lookup.KeyValueTensorInitializer(keys, values)
    table = tf.lookup.StaticHashTable(start, -1)

    @tf.function
    def tokens(text):
        return table.lookup(tf.strings.split(tf.strings.lower(text)).flat_values)

    found = Case(tokens, (tf.constant(["A b"]),))
    found.function.keeps = table
    return found


@case
def over_dataset() -> Case:
    """A function whose only argument is a dataset."""
    import tensorflow as tf

    @tf.function
    def total(numbers):
        result = tf.constant(0, tf.int64)
        for number in numbers:
            result += number
        return result

    return Case(total, (tf.data.Dataset.range(3),))


@case
def unknown_sizes() -> Case:
    """Shapes that are known only when it runs."""
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec([None, 4])])
    def flat(x):
        return tf.reshape(x, [tf.shape(x)[0], tf.shape(x)[1], 1])

    return Case(flat, (tf.ones([3, 4]),))


@case
def unused_argument() -> Case:
    """An argument that nothing reads, and a result that nobody sees."""
    import tensorflow as tf

    @tf.function
    def wasteful(x, unused):
        tf.exp(x)
        return x + 1.0

    return Case(wasteful, (tf.ones([2]), tf.ones([3])))


@case
def changed_answer() -> Case:
    """A sigmoid that does not matter to what is the largest."""
    import tensorflow as tf

    @tf.function
    def label(x):
        return tf.argmax(tf.sigmoid(x), axis=-1)

    return Case(label, (tf.ones([2, 3]),))


@case
def python_inside() -> Case:
    """Python that runs whenever the function does."""
    import tensorflow as tf

    @tf.function
    def opaque(x):
        return tf.numpy_function(lambda a: a + 1, [x], tf.float32) * 2.0

    return Case(opaque, (tf.ones([2]),))
