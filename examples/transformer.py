"""A training step of a transformer encoder whose twelve equal layers are drawn once.

    graph2mermaid examples/transformer.py:train_step --out-dir examples/transformer

The model's parts keep the names that they have here. `--no-fold` draws each layer by itself.
`--view traced` makes half of the pages: the other half is what Grappler makes of the step.
"""

import tensorflow as tf

LAYERS, WIDTH, HEADS, WORDS, LENGTH, BATCH = 12, 64, 4, 1000, 32, 8

layers = tf.keras.layers


def encoder():
    """Make the model: embedded words, twelve layers, and a score for each of two classes."""
    words = tf.keras.Input([LENGTH], dtype="int32", name="words")
    x = layers.Embedding(WORDS, WIDTH, name="embedding")(words)
    for number in range(1, LAYERS + 1):
        x = encoder_layer(x, f"layer{number}")
    scores = layers.Dense(2, name="head")(layers.GlobalAveragePooling1D(name="pool")(x))
    return tf.keras.Model(words, scores, name="encoder")


def encoder_layer(x, name):
    """Let each word look at the others, then think about what it saw."""
    seen = layers.MultiHeadAttention(HEADS, WIDTH // HEADS, name=f"{name}_attention")(x, x)
    x = layers.LayerNormalization(name=f"{name}_norm1")(x + seen)
    thought = layers.Dense(4 * WIDTH, activation="gelu", name=f"{name}_expand")(x)
    thought = layers.Dense(WIDTH, name=f"{name}_project")(thought)
    return layers.LayerNormalization(name=f"{name}_norm2")(x + thought)


model = encoder()
optimizer = tf.keras.optimizers.Adam()
optimizer.build(model.trainable_variables)
cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function(
    input_signature=[
        tf.TensorSpec([BATCH, LENGTH], tf.int32, name="words"),
        tf.TensorSpec([BATCH], tf.int32, name="labels"),
    ]
)
def train_step(words, labels):
    with tf.GradientTape() as tape:
        scores = model(words, training=True)
        loss = cross_entropy(labels, scores)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss
