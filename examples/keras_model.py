"""A Keras model: the target is the model itself, its layers become name scopes.

    graph2mermaid examples/keras_model.py:classifier --out examples/keras_model.md

The model is built, so its input shape is known and no `--input` is needed. Grappler makes one
kernel of the convolution, its bias and its activation.
"""

import tensorflow as tf

inputs = tf.keras.Input([28, 28, 1], name="image")
features = tf.keras.layers.Conv2D(8, 3, strides=2, activation="relu", name="conv")(inputs)
features = tf.keras.layers.GlobalAveragePooling2D(name="pool")(features)
scores = tf.keras.layers.Dense(10, activation="softmax", name="scores")(features)
classifier = tf.keras.Model(inputs, scores, name="classifier")
