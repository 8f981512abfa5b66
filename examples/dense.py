"""A dense layer written by hand, with things in it that TensorFlow improves.

    graph2mermaid examples/dense.py:dense --out examples/dense.md

The report shows the graph as written, and what Grappler, TensorFlow's optimizer, makes of it.
MatMul, BiasAdd and Relu become one kernel. A MatMul can transpose by itself, so the two transposes go into
it as well, and undo each other there. `scale` is computed once instead of at every call.
"""

import tensorflow as tf

# Variables are made once, outside the function; in the graph they are captures.
kernel = tf.Variable(tf.random.stateless_normal([64, 32], seed=[1, 2]), name="kernel")
bias = tf.Variable(tf.zeros([32]), name="bias")


@tf.function(input_signature=[tf.TensorSpec([8, 64], tf.float32, name="x")])
def dense(x):
    there = tf.transpose(x)
    back = tf.transpose(there)
    hidden = tf.nn.relu(tf.nn.bias_add(tf.matmul(back, kernel), bias))
    scale = tf.reduce_sum(tf.constant([1.0, 2.0, 3.0]))
    scaled = hidden * scale
    return scaled
