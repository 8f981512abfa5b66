"""Virtual environments for the scripts beside this file. Standard library only, Python 3.10."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IN_CI = os.environ.get("CI") == "true"

QUIET = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "CUDA_VISIBLE_DEVICES": "-1",  # the same graphs and the same reports on every machine
}
"""What every command gets on top of the user's own environment."""


class SetUpError(Exception):
    """The machine lacks something; the message says what, and how to get it."""


@dataclass(frozen=True)
class Environment:
    """One virtual environment: `.venv` or `.venv-NAME` in the project's folder."""

    name: str
    pythons: tuple[str, ...]
    """The Python versions that will do, the preferred one first."""
    packages: tuple[str, ...]
    """What pip installs, the project itself included."""
    without_dependencies: tuple[str, ...] = ()
    """What pip installs after that, without looking at what it asks for."""

    @property
    def folder(self) -> Path:
        """Where it is."""
        return ROOT / (f".venv-{self.name}" if self.name else ".venv")

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"


def find_python(versions: Sequence[str]) -> Path | None:
    """Return an interpreter of the first version that this machine has and that runs.

    A `python3.10` on the path may be a shim that only fails, so each candidate is started.
    """
    for version in versions:
        for command, extra in _candidates(version):
            found = _ask(command, extra, version)
            if found is not None:
                return found
    return None


def _candidates(version: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    yield sys.executable, {}
    yield f"python{version}", {}
    for installed in _pyenv_versions():
        if installed.startswith(f"{version}."):
            yield f"python{version}", {"PYENV_VERSION": installed}
    pyenv_root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")  # noqa: PTH111
    # Unlike Path.glob, this passes over folders that belong to somebody else.
    for path in sorted(glob(f"{pyenv_root}/versions/{version}.*/bin/python"), reverse=True):  # noqa: PTH207
        yield path, {}
    yield f"/usr/bin/python{version}", {}


def _pyenv_versions() -> list[str]:
    if shutil.which("pyenv") is None:
        return []
    listing = subprocess.run(
        ["pyenv", "versions", "--bare"], capture_output=True, text=True, check=False
    )
    return listing.stdout.split()


def _ask(command: str, extra: Mapping[str, str], version: str) -> Path | None:
    """Return the real path of the interpreter behind a command, if it is of this version."""
    # A virtual environment is no base for another one: its folder may be deleted.
    question = (
        "import sys, venv; print('%d.%d' % sys.version_info[:2], sys._base_executable, sep='\\n')"
    )
    try:
        answer = subprocess.run(
            [command, "-c", question],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **extra},
        )
    except OSError:
        return None
    lines = answer.stdout.splitlines()
    if answer.returncode or len(lines) != 2 or lines[0] != version:
        return None
    return Path(lines[1])


def set_up(environment: Environment, base: Path) -> None:
    """Make the environment, or do nothing when it is as it should be already.

    Raises:
        SetUpError: It could not be made.
    """
    wanted = _fingerprint(environment, base)
    stamp = environment.folder / "set-up"
    if stamp.exists() and stamp.read_text() == wanted and _runs(environment.python):
        return
    say(f"setting up {environment.folder.name} with {base} (some minutes the first time)")
    stamp.unlink(missing_ok=True)
    _make_folder(environment, base)
    pip = [str(environment.python), "-m", "pip", "install", "--quiet"]
    quietly([*pip, "--upgrade", "pip>=25.1"])  # the first that knows --group
    quietly([*pip, *environment.packages])
    if environment.without_dependencies:
        quietly([*pip, "--no-deps", *environment.without_dependencies])
    stamp.write_text(wanted)


def _fingerprint(environment: Environment, base: Path) -> str:
    parts = (base, environment, (ROOT / "pyproject.toml").read_text())
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _runs(python: Path) -> bool:
    try:
        return subprocess.run([str(python), "-c", ""], check=False).returncode == 0
    except OSError:
        return False


def _make_folder(environment: Environment, base: Path) -> None:
    keep = _runs(environment.python)
    command = [str(base), "-m", "venv", *([] if keep else ["--clear"]), str(environment.folder)]
    try:
        quietly(command)
    except SetUpError:
        if base.parent != Path("/usr/bin"):
            raise
        # Debian keeps what venv needs in a package of its own.
        package = f"{base.resolve().name}-venv"
        apt_install([package], f"venv of {base} needs the package {package}")
        quietly(command)


def apt_install(packages: Sequence[str], why: str) -> None:
    """Install Debian packages, where this user may.

    Raises:
        SetUpError: There is no apt-get, the user is not root, or it failed.
    """
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise SetUpError(f"{why}; as root: apt-get install {' '.join(packages)}")
    say(f"installing {' '.join(packages)} by apt-get")
    quiet_apt = {"DEBIAN_FRONTEND": "noninteractive"}
    quietly(["apt-get", "update", "-qq"], quiet_apt)
    quietly(["apt-get", "install", "-y", "-qq", *packages], quiet_apt)


def quietly(
    command: Sequence[str], extra: Mapping[str, str] | None = None, cwd: Path = ROOT
) -> None:
    """Run a command and show what it printed only if it fails.

    Raises:
        SetUpError: It failed.
    """
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **QUIET, **(extra or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SetUpError(f"{done.stdout}\n`{' '.join(command)}` failed ({done.returncode})")


def say(text: str) -> None:
    """Print a line of progress at once, before the output of the commands it announces."""
    print(f"-- {text}", flush=True)
