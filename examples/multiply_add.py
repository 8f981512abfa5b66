"""The smallest useful graph: two operations on three inputs.

    graph2mermaid examples/multiply_add.py:multiply_add --out examples/multiply_add.md

`--tensors nodes` draws `product` and `result` as nodes of their own instead of edge labels.
"""

import tensorflow as tf


@tf.function(
    input_signature=[
        tf.TensorSpec([None, 4], tf.float32, name="x"),
        tf.TensorSpec([None, 4], tf.float32, name="y"),
        tf.TensorSpec([4], tf.float32, name="b"),
    ]
)
def multiply_add(x, y, b):
    product = tf.multiply(x, y)
    result = tf.add(product, b)
    return result
