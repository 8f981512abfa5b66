"""Functions and models that show what the graphs of real programs are like.

Each maker returns the capture of one of them. They are made once in a process, since tests of the
graph, of the report and of the picture all look at the same ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import graph2mermaid
from graph2mermaid import Capture

MAKERS: dict[str, Callable[[], Capture]] = {}
MODELS: dict[str, Callable[[], Capture]] = {}
"""The large ones, of which tests look at a sample of the parts."""


def _kept(makers: dict[str, Callable[[], Capture]]) -> Any:
    def decorate(make: Callable[[], Capture]) -> Callable[[], Capture]:
        made = makers[make.__name__] = functools.cache(make)
        return made

    return decorate


small = _kept(MAKERS)
large = _kept(MODELS)


def keras_3() -> Any:
    """Return Keras 3, or skip the test: TensorFlow 2.9 has none."""
    return pytest.importorskip("keras", minversion="3", reason="Keras 3 needs TensorFlow 2.16")


def tf_keras() -> Any:
    """Return Keras 2 as a package of its own, or skip the test: TensorFlow 2.9 has none."""
    return pytest.importorskip("tf_keras")


def keras_of_tensorflow() -> Any:
    """Return the Keras that TensorFlow brings: 3, or 2 with TensorFlow 2.9."""
    return pytest.importorskip("tensorflow").keras


# --- little or nothing to draw -----------------------------------------------------------------


@small
def wasteful() -> Capture:
    """Results that nothing reads, and an argument that nothing reads."""
    import tensorflow as tf

    def wasteful(x, unused):
        tf.exp(x)
        tf.random.normal([2])
        tf.unique(tf.reshape(x, [-1]))
        return x + 1.0

    return graph2mermaid.trace(wasteful, tf.TensorSpec([2, 2]), tf.TensorSpec([3]))


@small
def nothing() -> Capture:
    """No op at all."""
    import tensorflow as tf

    return graph2mermaid.trace(tf.function(lambda: None))


@small
def handed_back() -> Capture:
    """The argument itself, twice."""
    import tensorflow as tf

    def handed_back(x):
        return x, x

    return graph2mermaid.trace(handed_back, tf.TensorSpec([2]))


@small
def constant() -> Capture:
    """No argument, and a result that is known before it runs."""
    import tensorflow as tf

    def constant():
        return tf.constant(2.0) * 3.0

    return graph2mermaid.trace(constant)


# --- Keras -------------------------------------------------------------------------------------


def mlp(keras: Any) -> Any:
    """Make a model of two layers; its name and theirs show in the graph."""
    layers = [
        keras.layers.InputLayer((4,), name="features"),
        keras.layers.Dense(3, activation="relu", name="hidden"),
        keras.layers.Dense(2, name="logits"),
    ]
    return keras.Sequential(layers, name="mlp")


@small
def sequential() -> Capture:
    """A model of Keras 3."""
    return graph2mermaid.trace(mlp(keras_3()))


def _batch_norm(keras: Any, *, training: bool) -> Capture:
    import tensorflow as tf

    layer = keras.layers.BatchNormalization(name="norm")
    layer.build((None, 4, 4, 3))

    def normalize(x):
        return layer(x, training=training)

    return graph2mermaid.trace(normalize, tf.TensorSpec([2, 4, 4, 3]))


@small
def batch_norm_training() -> Capture:
    """Keras 3 takes it apart, and updates its averages."""
    return _batch_norm(keras_3(), training=True)


@small
def batch_norm_inference() -> Capture:
    """The same without an update."""
    return _batch_norm(keras_3(), training=False)


@small
def batch_norm_fused() -> Capture:
    """Keras 2 has one op for it."""
    keras = keras_of_tensorflow()
    return _batch_norm(keras if keras.__version__ < "3" else tf_keras(), training=True)


@small
def keras_3_lstm() -> Capture:
    """A recurrent layer is a loop."""
    import tensorflow as tf

    lstm = keras_3().layers.LSTM(3, name="lstm")
    lstm.build((None, 5, 2))

    def rnn(x):
        return lstm(x)

    return graph2mermaid.trace(rnn, tf.TensorSpec([2, 5, 2]))


@small
def tf_keras_lstm() -> Capture:
    """Keras 2 has an implementation for each kind of device."""
    keras = keras_of_tensorflow()
    keras = keras if keras.__version__ < "3" else tf_keras()
    layers = [keras.layers.InputLayer((5, 2)), keras.layers.LSTM(3, name="lstm")]
    return graph2mermaid.trace(keras.Sequential(layers, name="net"))


@small
def attention() -> Capture:
    """One tensor is query, key and value."""
    import tensorflow as tf

    attend = keras_3().layers.MultiHeadAttention(2, 4, name="mha")
    attend.build((None, 5, 8), (None, 5, 8))

    def self_attention(x):
        return attend(x, x)

    return graph2mermaid.trace(self_attention, tf.TensorSpec([2, 5, 8]))


@small
def transformer_block() -> Capture:
    """Attention and a small network, each around a residual connection."""
    keras = keras_3()
    layers = keras.layers
    x = keras.Input((16, 32), name="tokens")
    attended = layers.MultiHeadAttention(4, 8, name="attention")(x, x)
    first = layers.LayerNormalization(name="norm_1")(layers.Add(name="add_1")([x, attended]))
    hidden = layers.Dense(64, activation="gelu", name="expand")(first)
    out = layers.Add(name="add_2")([first, layers.Dense(32, name="contract")(hidden)])
    model = keras.Model(x, layers.LayerNormalization(name="norm_2")(out), name="block")
    return graph2mermaid.trace(model)


@small
def mixed_precision() -> Capture:
    """Variables are float32, what is computed with them bfloat16."""
    import tensorflow as tf

    keras = keras_3()
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = keras.Sequential(
            [
                keras.Input((3,), dtype="int32"),
                keras.layers.Embedding(10, 4, name="embedding"),
                keras.layers.Flatten(name="flatten"),
                keras.layers.Dense(2, name="dense"),
            ],
            name="net",
        )
        return graph2mermaid.trace(model, tf.TensorSpec([2, 3], tf.int32))
    finally:
        keras.config.set_dtype_policy(policy)


@small
def fit_step() -> Capture:
    """What `model.fit` runs for each batch: forward, backward, update, metrics."""
    import tensorflow as tf

    keras = keras_3()
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="dense")], name="net")
    model.compile("sgd", "mse")
    model.optimizer.build(model.trainable_variables)

    def one_step(x, y):
        return model.train_step((x, y))

    return graph2mermaid.trace(one_step, tf.TensorSpec([8, 4]), tf.TensorSpec([8, 3]))


# --- tf.data -----------------------------------------------------------------------------------


@small
def pipeline_step() -> Capture:
    """A whole input pipeline is one captured value."""
    import tensorflow as tf

    def scale(v):
        return tf.cast(v, tf.float32) / 255.0

    rows = tf.data.Dataset.range(10).filter(lambda v: v % 2 == 0).map(scale).batch(2)

    def consume():
        iterator = iter(rows)
        return next(iterator) + next(iterator)

    return graph2mermaid.trace(tf.function(consume))


# --- names -------------------------------------------------------------------------------------


@small
def keywords() -> Capture:
    """Ops and arguments bear the names of Mermaid's own words."""
    import tensorflow as tf

    def flow(end, x, o):
        a = tf.add(end, x, name="graph")
        b = tf.add(a, o, name="style")
        with tf.name_scope("subgraph"):
            c = tf.nn.relu(b)
        with tf.name_scope("1layer"):
            d = tf.nn.relu(c)
        return tf.add(d, 1.0, name="click")

    return graph2mermaid.trace(flow, *[tf.TensorSpec([2])] * 3)


@small
def calls_a_lambda() -> Capture:
    """A function without a name is called `<lambda>`, which looks like HTML."""
    import tensorflow as tf

    square = tf.function(lambda x: x * x + 1.0)

    def outer(x):
        return square(x) - 2.0

    return graph2mermaid.trace(outer, tf.TensorSpec([2]))


@small
def long_names() -> Capture:
    """Names of more than a thousand characters."""
    import tensorflow as tf

    def block(x, depth):
        with tf.name_scope(f"very_long_encoder_block_scope_name_{depth}"):
            x = tf.nn.relu(tf.nn.relu(x))
            return x if depth == 30 else block(x, depth + 1)

    def encoder(x):
        return block(x, 0)

    return graph2mermaid.trace(encoder, tf.TensorSpec([2]))


# --- TensorFlow 1 ------------------------------------------------------------------------------


def version_1_loop() -> Any:
    """Make the GraphDef of a loop and a choice as TensorFlow 1 wrote them."""
    import tensorflow as tf

    v1 = tf.compat.v1
    graph = tf.Graph()
    v1.disable_control_flow_v2()
    try:
        with graph.as_default():
            x = v1.placeholder(tf.float32, [2], name="x")
            _, y = v1.while_loop(
                lambda i, y: i < 3, lambda i, y: (i + 1, y * 2.0), [0, x], name="loop"
            )
            z = v1.cond(tf.reduce_sum(y) > 1.0, lambda: y + 1.0, lambda: y - 1.0, name="branch")
            tf.identity(z, name="out")
    finally:
        v1.enable_control_flow_v2()
    return graph.as_graph_def(add_shapes=True)


@small
def frozen() -> Capture:
    """A part of an old graph, made callable."""
    import tensorflow as tf

    graph_def = version_1_loop()
    v1 = tf.compat.v1
    wrapped = v1.wrap_function(lambda: tf.import_graph_def(graph_def, name=""), [])
    return graph2mermaid.trace(wrapped.prune("x:0", "out:0"))


# --- models of real size -----------------------------------------------------------------------


@functools.cache
def mobilenet() -> Any:
    """Make MobileNetV2 without its weights."""
    return keras_of_tensorflow().applications.MobileNetV2(weights=None)


@functools.cache
def resnet() -> Any:
    """Make ResNet50 without its weights."""
    return keras_of_tensorflow().applications.ResNet50(weights=None)


def step_of(model: Any, optimizer: Any) -> Any:
    """Return a training step of a classifier, with a loop's usual parts written out."""
    import tensorflow as tf

    if hasattr(optimizer, "build"):
        optimizer.build(model.trainable_variables)

    def train_step(images, labels):
        with tf.GradientTape() as tape:
            scores = model(images, training=True)
            losses = tf.keras.losses.sparse_categorical_crossentropy(labels, scores)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        # AutoGraph of TensorFlow 2.9 knows no `strict`.
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # noqa: B905
        return loss

    return train_step


def images(size: int | None = None) -> Any:
    """Return the type of a batch of images."""
    import tensorflow as tf

    return tf.TensorSpec([size, 224, 224, 3])


@large
def mobilenet_inference() -> Capture:
    """A model with inverted residual blocks."""
    return graph2mermaid.trace(mobilenet())


@large
def resnet_inference() -> Capture:
    """A model with residual blocks."""
    return graph2mermaid.trace(resnet())


@functools.cache
def resnet_step() -> Any:
    """Return a training step of ResNet50 as a tf.function, and its optimizer."""
    import tensorflow as tf

    optimizer = keras_of_tensorflow().optimizers.SGD(0.1, momentum=0.9)
    return tf.function(step_of(resnet(), optimizer)), optimizer


@large
def resnet_training() -> Capture:
    """Thousands of ops."""
    import tensorflow as tf

    step, _ = resnet_step()
    return graph2mermaid.trace(step, images(8), tf.TensorSpec([8], tf.int32))
