"""Optional dependencies: the packages of every extra, and the sentence where one is missing."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import NamedTuple

from jaxreward.errors import MissingPackage


class Extra(NamedTuple):
    """What an extra is for, and its packages: their names on PyPI by the module that shows that one is installed."""

    purpose: str
    packages: Mapping[str, str]


_MUJOCO = {"mujoco": "mujoco", "mujoco.mjx": "mujoco-mjx"}
EXTRAS: Mapping[str, Extra] = {
    "llm": Extra("language models as proposers", {"litellm": "litellm", "httpx": "httpx", "dotenv": "python-dotenv"}),
    "xland": Extra("tasks in XLand-MiniGrid", {"xminigrid": "xminigrid"}),
    "brax": Extra("tasks in Brax", {"brax": "brax", **_MUJOCO}),
    "mujoco": Extra("robots in MuJoCo XLA", _MUJOCO),
    "gymnax": Extra("tasks on environments of gymnax", {"gymnax": "gymnax"}),
    "jumanji": Extra("tasks on environments of jumanji", {"jumanji": "jumanji"}),
    "playground": Extra("tasks on environments of MuJoCo Playground", {"mujoco_playground": "playground"}),
    "minari": Extra(
        "demonstrations from data sets of Minari", {"minari": "minari", "h5py": "h5py", "PIL": "pillow"}
    ),
    "reports": Extra(
        "reports, plots and films",
        {
            "matplotlib": "matplotlib", "PIL": "pillow", "imageio_ffmpeg": "imageio-ffmpeg", "pygments": "pygments",
            "vl_convert": "vl-convert-python",
        },
    ),
    "tensorboard": Extra("runs in TensorBoard", {"tensorboardX": "tensorboardX"}),
    "wandb": Extra("runs in Weights & Biases", {"wandb": "wandb"}),
    "store": Extra("copies of runs on other file systems and in buckets", {"fsspec": "fsspec"}),
    "ray": Extra("training on a Ray cluster", {"ray": "ray"}),
}  # fmt: skip
"""The extras of `pyproject.toml` that a command asks for, by name."""


def missing(extra: str) -> tuple[str, ...]:
    """The packages of an extra that are not installed, by their names on PyPI; nothing but MuJoCo is imported."""
    return tuple(package for module, package in EXTRAS[extra].packages.items() if not _found(module))


def _found(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:  # of the package that the module lies in
        return False


def install(extra: str) -> str:
    """The command that installs an extra."""
    return f'pip install "jaxreward[{extra}]"'


def require(extra: str, what: str, *settings: str) -> None:
    """Require the packages of an extra, before anything is written, trained or asked.

    Args:
        what: needs them: `--plot`, `the task hopper`.
        settings: paths of the settings that ask for it.

    Raises:
        MissingPackage: one of them is not installed.
    """
    if lacking := missing(extra):
        are = "is" if len(lacking) == 1 else "are"
        sentence = f"{what} needs {', '.join(lacking)}, which {are} not installed: {install(extra)}"
        raise MissingPackage(sentence, lacking[0], *settings)
