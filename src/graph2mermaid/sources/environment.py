"""The versions and devices that a capture is made with."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from collections import Counter

from graph2mermaid.capture import Environment


def environment() -> Environment:
    """Return what the running process traces with.

    Physical devices are listed, which leaves logical devices for the user's code to configure.
    """
    import tensorflow as tf

    devices = Counter(device.device_type for device in tf.config.list_physical_devices())
    return Environment(
        tensorflow=tf.__version__,
        keras=_keras(),
        python=platform.python_version(),
        devices=tuple(f"{count} x {kind}" for kind, count in devices.items()),
    )


def _keras() -> str:
    """Return the version of Keras; of several, those that the process has imported.

    Importing Keras to ask it would take seconds, so the installed package is asked.
    """
    installed = [name for name in ("keras", "tf_keras") if _version(name)]
    imported = [name for name in installed if name in sys.modules]
    legacy = os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true")
    names = imported or (installed[-1:] if legacy else installed[:1])
    return ", ".join(
        _version(name) if name == "keras" else f"{name} {_version(name)}" for name in names
    )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
