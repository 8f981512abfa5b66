"""One step of training: the forward pass, its gradients, and the update of the variables.

    graph2mermaid examples/train_step.py:train_step --out examples/train_step.md

`--level ops` shows every op, the reads and writes of the variables included. In the Grappler
graph, what does not depend on the data is a constant.
"""

import tensorflow as tf

LEARNING_RATE = 0.1

weights = tf.Variable(tf.zeros([3, 1]), name="weights")
offset = tf.Variable(tf.zeros([1]), name="offset")


@tf.function(
    input_signature=[
        tf.TensorSpec([32, 3], tf.float32, name="features"),
        tf.TensorSpec([32, 1], tf.float32, name="targets"),
    ]
)
def train_step(features, targets):
    with tf.GradientTape() as tape:
        predicted = tf.matmul(features, weights) + offset
        loss = tf.reduce_mean(tf.square(predicted - targets))
    weights_gradient, offset_gradient = tape.gradient(loss, [weights, offset])
    weights.assign_sub(LEARNING_RATE * weights_gradient)
    offset.assign_sub(LEARNING_RATE * offset_gradient)
    return loss
