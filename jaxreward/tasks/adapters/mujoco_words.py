"""Joints and actuators of a MuJoCo model by index, in words."""

from __future__ import annotations

from math import inf
from typing import Any

_SIZES = {0: (7, 6), 1: (4, 3), 2: (1, 1), 3: (1, 1)}
"""Numbers of a position and of a velocity by MuJoCo's type of a joint: free, ball, slide, hinge."""
_UNITS = {2: "m", 3: "rad"}


def index_words(model: Any) -> list[str]:
    """A line each on positions, velocities and actions: which index is which joint or actuator."""
    q, qd = [], []
    for k in range(model.njnt):
        joint, kind = model.joint(k), int(model.jnt_type[k])
        name = joint.name or f"joint {k}"
        size, speed = _SIZES[kind]
        limits = ""
        if kind in _UNITS:
            low, high = joint.range
            limits = f" ({_UNITS[kind]}{f' from {low:.3g} to {high:.3g}' if -inf < low < high < inf else ''})"
        words = {0: f"{name}: position, quaternion", 1: f"{name}: quaternion"}
        speeds = {0: f"{name}: velocity, angular velocity", 1: f"{name}: angular velocity"}
        q.append(f"{_span(joint.qposadr[0], size)} {words.get(kind, name + limits)}")
        qd.append(f"{_span(joint.dofadr[0], speed)} {speeds.get(kind, name)}")
    driven = [f"{k} {_driven(model, k)}" for k in range(model.nu)]
    lines = {"Positions": q, "Velocities": qd, "action": driven}
    return [f"{what}: {', '.join(words)}." for what, words in lines.items() if words]


def _driven(model: Any, k: int) -> str:
    """What an actuator moves, or its name."""
    of_joint = int(model.actuator_trntype[k]) in (0, 1)
    return (model.joint(int(model.actuator_trnid[k, 0])).name if of_joint else "") or model.actuator(k).name


def _span(first: Any, size: int) -> str:
    return f"{int(first)}-{int(first) + size - 1}" if size > 1 else f"{int(first)}"
