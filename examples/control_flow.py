"""A loop with a condition in it: AutoGraph turns Python's `while` and `if` into graph ops.

    graph2mermaid examples/control_flow.py:collatz_steps --out examples/control_flow.md

The loop is one op in the graph. Its condition and its body, and the two branches in the body, are
functions of their own, drawn as frames where they are called. To run it,
TensorFlow takes the loop apart into Switch, Merge and their like; the Grappler graph shows it put
together again.
"""

import tensorflow as tf


@tf.function(input_signature=[tf.TensorSpec([], tf.int32, name="n")])
def collatz_steps(n):
    """Count the steps from n to 1: halve what is even, else triple it and add one."""
    steps = tf.constant(0)
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps = steps + 1
    return steps
