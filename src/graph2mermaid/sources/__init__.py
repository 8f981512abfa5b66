"""Where graphs come from: the only part that imports TensorFlow."""
