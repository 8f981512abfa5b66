"""One function on two devices, as it is executed: what goes from one to the other is sent.

    graph2mermaid examples/two_devices.py:two_devices --view runtime --out examples/two_devices.md

So that it works on any machine, the processor is divided into two devices here.
"""

import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)


@tf.function(
    input_signature=[
        tf.TensorSpec([8, 16], tf.float32, name="x"),
        tf.TensorSpec([16, 4], tf.float32, name="weights"),
    ]
)
def two_devices(x, weights):
    with tf.device("CPU:0"):
        product = tf.matmul(x, weights)
    with tf.device("CPU:1"):
        squared = tf.square(product)
        total = tf.reduce_sum(squared)
    return total
