"""Pictures of robots by MuJoCo's own renderer, which needs no screen."""

from __future__ import annotations

import os
import sys
from typing import Any

import mujoco
import numpy as np

from jaxreward.errors import UserError

_mj: Any = mujoco
"""Its functions are compiled and known to no type checker."""


def posed(model: Any, qpos: Any, qvel: Any) -> Any:
    """An `MjData` of the model at these generalised positions (nq,) and velocities (nv,)."""
    data = _mj.MjData(model)
    data.qpos[:], data.qvel[:] = np.asarray(qpos), np.asarray(qvel)
    _mj.mj_forward(model, data)
    return data


def render(model: Any, data: Any, camera: str | int = -1) -> np.ndarray:
    """A picture of a MuJoCo model, uint8 (240, 320, 3), from one of its cameras; -1 is that which sees all of it.

    Raises:
        UserError: this machine cannot render, or has no screen and was not told to do without.
    """
    if not _has_gl():  # MuJoCo would try a window, fail, and complain again when it cleans up
        raise UserError(_HOW.format(reason="there is no screen"))
    try:
        with _mj.Renderer(model, height=240, width=320) as renderer:
            renderer.update_scene(data, camera)
            return renderer.render()
    except Exception as error:
        raise UserError(_HOW.format(reason=error)) from error


_HOW = (
    "MuJoCo cannot draw here ({reason}): set MUJOCO_GL=egl (Debian: libegl1 libegl-mesa0) or MUJOCO_GL=osmesa "
    "(libosmesa6)"
)


def _has_gl() -> bool:
    return sys.platform != "linux" or any(os.environ.get(x) for x in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"))
