"""MJX on Warp: one buffer for the contacts of all lanes."""

from __future__ import annotations

import tomllib
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.tasks import make_task
from jaxreward.tasks.robots import physics

needs_warp = pytest.mark.skipif(find_spec("warp") is None, reason="warp is not installed")
LANES = (3, 4)


def standing(steps: int = 15) -> tuple[np.ndarray, np.ndarray]:
    """Heights of quadrupeds that stand for a while, mapped over twice, and whether their simulations failed."""
    task: Any = make_task("go1-push-recovery", impl="warp")

    def stand(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        still = jnp.zeros(12)
        state, _ = jax.lax.scan(lambda s, _: (task.step(s, still), None), task.reset(key), None, length=steps)
        return state.info["height"], state.data.broken

    heights, broken = jax.jit(jax.vmap(jax.vmap(stand)))(jax.random.split(jax.random.key(0), LANES))
    return np.asarray(heights), np.asarray(broken)


@needs_warp
def test_the_quadruped_stands_on_every_lane(capfd):
    heights, broken = standing()
    assert heights.shape == LANES and not broken.any()
    np.testing.assert_allclose(heights, 0.26, atol=0.02)  # 0.44 m lower, if nothing held it
    said = capfd.readouterr()
    assert "iterations" not in said.out + said.err and "Module" not in said.out + said.err


@needs_warp
def test_a_step_with_more_contacts_than_fit_has_failed(monkeypatch):
    monkeypatch.setattr(physics, "CONTACTS", 1)
    assert standing()[1].all()


@pytest.mark.skipif(find_spec("warp") is not None, reason="warp is installed")
def test_without_warp_the_other_is_named():
    with pytest.raises(InvalidSetting) as error:
        _ = make_task("go1-push-recovery", impl="warp").physics  # type: ignore[attr-defined]
    assert error.value.settings == ("task.impl",)
    assert "use impl='jax'" in str(error.value) and "\n" not in str(error.value)


def test_the_extra_is_pinned_to_what_mjx_works_with():
    project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    pins = dict(part.replace("[warp]", "").split("==") for part in project["project"]["optional-dependencies"]["warp"])
    assert pins["mujoco"] == pins["mujoco-mjx"] == metadata.version("mujoco-mjx")
    wanted = next(r for r in metadata.requires("mujoco-mjx") or () if r.startswith("warp-lang"))
    assert wanted.split(";")[0].strip() == f"warp-lang=={pins['warp-lang']}"
