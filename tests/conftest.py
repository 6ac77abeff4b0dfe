"""Tests run on the CPU unless JAX_PLATFORMS says otherwise; set before anything imports JAX.

What takes seconds to start or to compile is made once for all tests that need it as it is.
"""

from __future__ import annotations

import functools
import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import chromium  # noqa: F401 - a fixture
from tests.compilation import OPTIMISED, UNOPTIMISED
from tests.replacing import replacing

if TYPE_CHECKING:
    from jaxreward.programs import Checker
    from jaxreward.tasks import Task

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("MPLBACKEND", "agg")
os.environ["JAX_NUM_CPU_DEVICES"] = "1"  # chunks are cut by devices

STATE = tempfile.mkdtemp(prefix="jaxreward-state-")
"""The state folder of the tests, apart from that of the user who runs them."""
os.environ["XDG_STATE_HOME"] = STATE

COMPILED = None if "JAX_COMPILATION_CACHE_DIR" in os.environ else tempfile.mkdtemp(prefix="jaxreward-tests-")
"""A compilation cache for all workers and for the commands that tests start."""
if COMPILED:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = COMPILED
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"


def pytest_unconfigure() -> None:
    shutil.rmtree(STATE, ignore_errors=True)
    if COMPILED:
        shutil.rmtree(COMPILED, ignore_errors=True)


def pytest_collection_finish() -> None:
    """What is imported by now stays: the collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 1000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The package of the longest tests first, so that no worker is left alone with one of them at the end."""
    items.sort(key=lambda item: item.path.parent.name != "training")


@pytest.fixture(autouse=True)
def keys_do_not_stay() -> Iterator[None]:
    """Keys that the test's own `.env` put into the environment of the process are gone after it."""
    before = set(os.environ)
    yield
    for name in os.environ.keys() - before:
        if name.endswith("KEY"):
            del os.environ[name]


@pytest.fixture(scope="session")
def checker() -> Iterator[Checker]:
    """A checker with the limits of a search; its processes take seconds to start."""
    from jaxreward.programs import Checker

    with Checker() as shared:
        yield shared


@pytest.fixture(scope="session")
def task_of() -> Callable[..., Task]:
    """`make_task_of` that makes each task once: what was played or compiled for one is kept with it."""
    from jaxreward.tasks import make_task_of

    made = functools.cache(make_task_of)
    return lambda name, arguments=(): made(name, tuple(arguments))


@pytest.fixture(scope="module")
def warm(checker: Checker, task_of: Callable[[str], Task]) -> Iterator[None]:
    """Commands of the module's tests find processes that run, and tasks and trainings that are compiled.

    `tests/test_cli.py` starts them cold.
    """
    running: Callable[..., Any] = lambda **_: nullcontext(checker)  # noqa: E731
    checkers = [f"jaxreward.{module}.Checker" for module in ("programs", "evolution.api", "evolution.task_check")]
    makers = [f"jaxreward.{module}.make_task_of" for module in ("tasks", "evolution.settings", "commands.train")]
    with replacing(dict.fromkeys(checkers, running) | dict.fromkeys(makers, task_of)):
        yield


@pytest.fixture(scope="module")
def unoptimised() -> Iterator[None]:
    """XLA compiles what the module trains without optimisations, unless the environment has `OPTIMISED`.

    `tests/training/test_optimised.py` and `tests/test_cli.py` compile as users do.
    """
    if OPTIMISED in os.environ:
        yield
        return
    import jax

    from jaxreward.devices import supported
    from jaxreward.training import compiled

    jax.config.update("jax_disable_most_optimizations", True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "xla_options", lambda platform, *_: supported(UNOPTIMISED, platform) or None)
        yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(scope="module")
def unsynced() -> Iterator[None]:
    """Logs are not forced onto the disk: tests of kills write themselves what a kill leaves of a log."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield
