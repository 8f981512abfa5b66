"""A training step of Keras' ResNet-50: some 8,500 ops, as an overview and pages of its parts.

    graph2mermaid examples/resnet50_training.py:train_step --out-dir examples/resnet50_training

The overview shows the stages of the model, the gradients and the optimizer. What is equal, as the
five blocks of the fourth stage, has one page for all. `--focus conv5_block3_out --hops 2` draws
one place of it. A group of the Grappler graph says what became of the ops in it.
"""

import tensorflow as tf

LEARNING_RATE = 0.1

model = tf.keras.applications.ResNet50(weights=None, classes=10, input_shape=(64, 64, 3))
optimizer = tf.keras.optimizers.SGD(LEARNING_RATE, momentum=0.9)
optimizer.build(model.trainable_variables)
cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy()


@tf.function(
    input_signature=[
        tf.TensorSpec([8, 64, 64, 3], tf.float32, name="images"),
        tf.TensorSpec([8], tf.int32, name="labels"),
    ]
)
def train_step(images, labels):
    with tf.GradientTape() as tape:
        scores = model(images, training=True)
        loss = cross_entropy(labels, scores)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss
