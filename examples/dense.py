"""A dense layer written by hand, with things in it that TensorFlow will improve.

    graph2mermaid examples/dense.py:dense --out examples/dense.md

This is the graph as written. When it runs, TensorFlow fuses MatMul, BiasAdd and Relu into one
kernel, computes `scale` once instead of at every call, and drops the two transposes, which undo
each other.
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
