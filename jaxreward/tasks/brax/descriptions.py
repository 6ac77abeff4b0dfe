"""Descriptions of the arrays of Brax's states: which index is which body, joint or motor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

WORDS: Mapping[str, str] = {
    "q": "positions of the joints: see below",
    "qd": "velocities of the joints: see below",
    "x.pos": "[x, y, z] of every body's frame in the world (m)",
    "x.rot": "its rotation, a unit quaternion with the real part first",
    "xd.vel": "its velocity in the world (m/s)",
    "xd.ang": "its angular velocity in the world (rad/s)",
    "last_action": "the action of the step before, zeros at first",
    "step_count": "control steps taken",
    "action": "in [-1, 1], what each motor gives of its full force: see below",
}
"""Descriptions of the arrays of every view, and of the action."""

ANT_LEGS = ("front left", "back left", "back right", "front right")
"""With x ahead and y to the left; Brax's file names the second and third otherwise."""

BODY_NAMES: Mapping[str, Sequence[str]] = {
    "ant": ("torso", *(f"{part} leg {k} ({where})" for k, where in enumerate(ANT_LEGS, 1)
            for part in ("upper", "lower"))),
}  # fmt: skip
"""Names of bodies where the model has none for some."""

PLANAR = (
    "The robot moves in the plane of x and z only. Standing, its torso is 1.25 m high, and q[1] is the height of the "
    "torso less that."
)
FACTS: Mapping[str, str] = {
    "hopper": PLANAR,
    "walker2d": PLANAR,
    "ant": "Standing, its torso is about 0.55 m high. Its feet touch the floor; its legs pass through it.",
    "humanoid": "Standing, its torso is 1.4 m high. Its feet touch the floor; all else passes through it. The motors "
    "take 0.4 x action, which the environment's own reward squares.",
    "inverted_pendulum": "The pole stands at the angle q[1] = 0.",
    "reacher": "The target's place in the plane is q[2:4] and x.pos[2]; the fingertip lies 0.11 m along the x axis of "
    "body 1.",
}

ROOT_Q, ROOT_QD = "root: position, quaternion", "root: velocity, angular velocity in the torso's frame"
UNITS = {2: "m", 3: "rad"}
"""By MuJoCo's type of a joint: slide, hinge."""


def notes_of(env_name: str, env: Any, control_s: float) -> str:
    """Bodies, joints and motors of a robot by index, and facts of its world."""
    model, names = env.sys.mj_model, BODY_NAMES.get(env_name, env.sys.link_names)
    joints = [model.joint(k) for k in range(model.njnt)]
    driven = [model.joint(model.actuator_trnid[k, 0]).name for k in range(model.nu)]
    q = [(_span(j.qposadr[0], 7), ROOT_Q) if j.type[0] == 0 else (j.qposadr[0], _joint(j)) for j in joints]
    qd = [(_span(j.dofadr[0], 6), ROOT_QD) if j.type[0] == 0 else (j.dofadr[0], j.name) for j in joints]
    lines = [
        f"Rows of x and xd: {_listed(enumerate(names))}.",
        f"q: {_listed(q)}.",
        f"qd: {_listed(qd)}.",
        f"action: {_listed(enumerate(driven))}.",
        f"The world's x points ahead, y to the left, z up. {FACTS[env_name]}",
        f"A control step lasts {control_s:g} s.",
    ]
    return "\n".join(lines)


def _joint(joint: Any) -> str:
    low, high = joint.range
    limits = f" from {low:.3g} to {high:.3g}" if -inf < low < high else ""
    return f"{joint.name} ({UNITS[int(joint.type[0])]}{limits})"


def _span(first: int, size: int) -> str:
    return f"{first}-{first + size - 1}"


def _listed(pairs: Any) -> str:
    return ", ".join(f"{index} {name}" for index, name in pairs)
