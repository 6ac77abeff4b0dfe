"""Off-screen pictures of robots by MuJoCo's own renderer."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import Any

import mujoco
import numpy as np

from jaxreward.errors import UserError

_mj: Any = mujoco
"""Its functions are compiled and known to no type checker."""


class CannotRender(UserError):
    """What this machine lacks to render pictures; no mistake of the task."""


def posed(model: Any, **arrays: Any) -> Any:
    """An `MjData` of the model with these arrays in place of its own (`qpos=` (nq,), `qvel=` (nv,), ...), and all that
    follows from them."""
    data = _mj.MjData(model)
    for name, values in arrays.items():
        getattr(data, name)[:] = np.asarray(values)
    _mj.mj_forward(model, data)
    return data


def render(model: Any, data: Any, camera: str | int = -1) -> np.ndarray:
    """A picture of a MuJoCo model, uint8 (240, 320, 3), from one of its cameras; -1, or a name that none of them has,
    is one that sees all of it.

    Raises:
        CannotRender: this machine cannot render, or has no display and MUJOCO_GL is not set.
    """
    if not _has_gl():  # else MuJoCo fails on opening a window, and again on cleaning up
        raise CannotRender(_HOW.format(reason="there is no screen"))
    if isinstance(camera, str):
        camera = _mj.mj_name2id(model, _mj.mjtObj.mjOBJ_CAMERA, camera)
    try:
        renderer = _renderer_of(model)
        renderer.update_scene(data, camera)
        return renderer.render()
    except Exception as error:
        _close()
        raise CannotRender(_HOW.format(reason=error)) from error


_OPEN = threading.local()
"""The renderer of the model that this thread drew last: opening one takes longer than several pictures."""


def _renderer_of(model: Any) -> Any:
    if getattr(_OPEN, "model", None) is not model:
        _close()
        _OPEN.renderer, _OPEN.model = _mj.Renderer(model, height=240, width=320), model
        # Anew each time: it must come before what the driver registered when it was first loaded.
        atexit.unregister(_close)
        atexit.register(_close)
    return _OPEN.renderer


def _close() -> None:
    renderer, _OPEN.renderer, _OPEN.model = getattr(_OPEN, "renderer", None), None, None
    if renderer is not None:
        renderer.close()


_HOW = (
    "MuJoCo cannot draw here ({reason}): set MUJOCO_GL=egl (Debian: libegl1 libegl-mesa0) or MUJOCO_GL=osmesa "
    "(libosmesa6)"
)


def _has_gl() -> bool:
    return sys.platform != "linux" or any(os.environ.get(x) for x in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"))
