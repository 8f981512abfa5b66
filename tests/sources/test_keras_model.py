"""Keras model files of every kind: what loads, and what is refused before it runs."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from graph2mermaid.errors import TargetError
from graph2mermaid.sources.keras_model import load_keras_model

pytestmark = [
    pytest.mark.tf,
    pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file"),
]


def keras_3():
    """Return Keras 3, or skip the test."""
    return pytest.importorskip("keras", minversion="3")


def keras_2():
    """Return Keras 2, which is part of TensorFlow 2.9 and later the package tf_keras."""
    import tensorflow as tf

    return tf.keras if tf.keras.__version__ < "3" else pytest.importorskip("tf_keras")


def has_zip_files(keras):
    """Tell whether this Keras has the `.keras` format."""
    return tuple(map(int, keras.__version__.split(".")[:2])) >= (2, 12)


def dense(keras):
    """Make a model of one layer."""
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="hidden")], name="mlp")


def with_lambda(keras):
    """Make a model with Python code in it, which its files hold as bytes."""
    return keras.Sequential(
        [keras.Input((4,)), keras.layers.Lambda(lambda x: x * 2.0, name="double")]
    )


def with_custom_layer(keras):
    """Make a model with a class that only this file has."""

    Mine = type("Mine", (keras.layers.Layer,), {"call": lambda self, x: x})
    return keras.Sequential([keras.Input((4,)), Mine(), keras.layers.Dense(3)])


def saved(model, path):
    """Save a model and return where."""
    model.save(str(path))
    return path


def refused(path, **options):
    """Return the one line that says why a file is not loaded."""
    with pytest.raises(TargetError) as caught:
        load_keras_model(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(str(path), "M")


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
@pytest.mark.parametrize("which", [keras_2, keras_3], ids=["keras2", "keras3"])
def test_a_file_is_loaded_by_the_keras_that_wrote_it(tmp_path, which, suffix):
    """Keras 2 and 3 build other graphs; where both are installed, each loads its own files."""
    keras = which()
    if suffix == ".keras" and not has_zip_files(keras):
        pytest.skip("this Keras writes no .keras files")
    model, notes = load_keras_model(saved(dense(keras), tmp_path / f"m{suffix}"))
    assert isinstance(model, keras.Model)
    assert model.name == "mlp"
    assert notes == ()


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
@pytest.mark.parametrize("which", [keras_2, keras_3], ids=["keras2", "keras3"])
def test_a_lambda_layer_is_refused_unless_allowed(tmp_path, which, suffix):
    """The code in a file is not run, in no format and no version, before the user says so."""
    keras = which()
    if suffix == ".keras" and not has_zip_files(keras):
        pytest.skip("this Keras writes no .keras files")
    path = saved(with_lambda(keras), tmp_path / f"m{suffix}")
    assert refused(path) == (
        "M has a Lambda layer (double), which would run code from the file; if you trust the "
        "file, add --unsafe"
    )
    model, _ = load_keras_model(path, unsafe=True)
    assert model.layers[-1].name == "double"


def test_code_is_found_wherever_it_hides(tmp_path):
    """Code may also be an activation, or in a model inside the model."""
    path = tmp_path / "m.keras"
    code = {"class_name": "__lambda__", "config": {"code": "4wEA"}}
    inner = {"class_name": "Dense", "config": {"name": "h", "activation": code}}
    config = {"class_name": "Sequential", "config": {"layers": [{"config": {"layers": [inner]}}]}}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("metadata.json", "{}")
    assert refused(path).startswith("M has a Lambda layer (lambda), ")


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
@pytest.mark.parametrize("which", [keras_2, keras_3], ids=["keras2", "keras3"])
def test_a_class_of_the_users_own_is_named(tmp_path, which, suffix):
    """Only the file that defines the class can load the model, so that is the target to type."""
    keras = which()
    if suffix == ".keras" and not has_zip_files(keras):
        pytest.skip("this Keras writes no .keras files")
    assert refused(saved(with_custom_layer(keras), tmp_path / f"m{suffix}")) == (
        "M needs the class or function Mine, which is not part of Keras; load the model in the "
        "Python file that defines it, and name the model: FILE.py:model"
    )


def test_weights_alone_are_no_model(tmp_path):
    """A weights file says nothing of the graph."""
    path = tmp_path / "m.weights.h5"
    dense(keras_2()).save_weights(str(path))
    assert refused(path) == (
        "M holds weights without a model; save the model as a whole with model.save(...)"
    )


def test_a_model_of_a_later_keras_is_named_as_such(tmp_path):
    """Where only Keras 2 is, a file of Keras 3 says which TensorFlow it needs."""
    import keras

    if keras.__version__ >= "3":
        pytest.skip("Keras 3 is installed")
    path = tmp_path / "m.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", '{"class_name": "Sequential"}')
        archive.writestr("metadata.json", '{"keras_version": "3.15.1"}')
    assert refused(path) == (
        f"M was saved by Keras 3.15.1, which Keras {keras.__version__} cannot load; "
        "use TensorFlow 2.16 or newer"
    )


def test_an_old_keras_says_that_it_has_no_zip_files(tmp_path):
    """Before Keras 2.12 the `.keras` format did not exist."""
    import keras

    if has_zip_files(keras):
        pytest.skip("this Keras has the .keras format")
    path = tmp_path / "m.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", '{"class_name": "Sequential"}')
        archive.writestr("metadata.json", '{"keras_version": "2.13.1"}')
    assert refused(path) == (
        f"M: Keras {keras.__version__} cannot load .keras files; save the model as .h5 or as a "
        "SavedModel, or use TensorFlow 2.12 or newer"
    )


@pytest.mark.parametrize(
    ("suffix", "name"), [(".keras", "m.h5"), (".h5", "m.keras")], ids=["zip", "hdf5"]
)
def test_a_file_under_the_wrong_name_says_the_right_one(tmp_path, suffix, name):
    """Keras 3 goes by the name; the message says what to rename the file to."""
    right = saved(dense(keras_3()), tmp_path / f"m{suffix}")
    path = right.rename(tmp_path / name)
    assert refused(path) == (
        f"M has the content of another kind of file; rename it to {right.name}"
    )


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("m.keras", b"", "M is empty"),
        (
            "m.h5",
            b"not a model",
            "M is damaged or not a Keras model: neither a zip nor an HDF5 file",
        ),
        ("m.keras", b"PK\x03\x04rest", "M is damaged or not a Keras model: File is not a zip file"),
        ("m.h5", b"\x89HDF\r\n\x1a\nrest", "M is damaged: "),
    ],
    ids=["empty", "text", "truncated zip", "truncated HDF5"],
)
def test_damage_is_one_clear_line(tmp_path, name, content, said):
    """The message says what the file is not."""
    path = tmp_path / name
    path.write_bytes(content)
    assert refused(path).startswith(said)


def test_an_archive_of_something_else_is_no_model(tmp_path):
    """A zip file without a configuration is not a Keras model."""
    path = tmp_path / "m.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert refused(path).startswith("M is damaged or not a Keras model: ")


def test_a_missing_file_says_so():
    """The system's own words, without its error number."""
    assert refused(Path("nowhere.h5")) == "M cannot be read: No such file or directory"
