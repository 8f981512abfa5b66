"""Write the GraphDef of the ResNet-50 training step: 8,477 nodes with random weights.

One step of `keras.applications.ResNet50(weights=None)`: forward pass, GradientTape, SGD with
momentum. Needs TensorFlow and Keras 3; takes about ten seconds.

    python benchmarks/make_resnet50_training_graphdef.py [FILE.pb]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

DEFAULT = Path(".cache/resnet50_training_step.pb")


def training_step_graph_def() -> Any:
    """Trace the step and return its GraphDef."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    model = keras.applications.ResNet50(weights=None)
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)

    def train_step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            probabilities = model(images, training=True)
            losses = keras.losses.sparse_categorical_crossentropy(labels, probabilities)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    concrete = tf.function(train_step).get_concrete_function(
        tf.TensorSpec([8, 224, 224, 3], tf.float32), tf.TensorSpec([8], tf.int32)
    )
    return concrete.graph.as_graph_def()


def main(path: Path = DEFAULT) -> None:
    """Write the file and say how large it is."""
    graph_def = training_step_graph_def()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(graph_def.SerializeToString(deterministic=True))
    print(f"{path}: {len(graph_def.node):,} nodes, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
