"""Panda cabinet: pull a drawer open by its handle (RF-Agent's FrankaCabinet, appendix A; IsaacGymEnvs)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from xml.etree import ElementTree

import jax
import jax.numpy as jnp

from jaxreward.records import Instruction, Measure, Subtask, Vocabulary
from jaxreward.tasks.metrics import Mean, Reached, WithExtraMetrics
from jaxreward.tasks.robots.panda_base import PANDA_WORDS, PandaTask
from jaxreward.tasks.robots.physics import Data, own_model
from jaxreward.tasks.robots.state import RobotState, RobotView

OPEN = 0.39
"""Metres that the drawer must be out, as in IsaacGymEnvs."""
GENTLE = 0.3
"""Metres a second up to which the drawer is pulled gently."""
AT_HANDLE = 0.08
"""Metres from the gripper to the middle of the handle within which it is at it."""
STILL = 0.02
"""Metres up to which the drawer has not moved."""
POSE_NOISE = 0.125
"""Half the width of the uniform noise on the seven joints at reset (rad), as in IsaacGymEnvs."""
TOUCHING = {"type": "capsule", "rgba": "0.5 0.5 0.5 1"}
"""Attributes of geometries that can touch the handle."""


@dataclass(frozen=True)
class PandaCabinet(PandaTask):
    """A Panda-like arm that must open a drawer.

    Args:
        horizon: control steps (0.02 s) of an episode.
        impl: of MJX, `jax` or `warp`.
    """

    horizon: int = 400

    name = "panda-cabinet"
    state_notes = (
        "qpos is [7 joint angles (rad), 2 finger positions (m), drawer position (m)], qvel their velocities; ctrl is\n"
        "[7 joint angles, finger position] that the motors are asked for. Each finger is 0 (closed) to 0.04 m (open)\n"
        "from the middle. Lengths are in metres, in the frame of the arm's base: x forward, y left, z up. The handle\n"
        "is a bar of radius 0.01 m along y, from 0.09 m right to 0.09 m left, 0.22 m above the ground and, with the\n"
        "drawer shut, at x = 0.72; the drawer's front is 0.07 m behind it. The drawer opens towards the arm (-x), by\n"
        "up to 0.45 m. Fingers and palm touch the handle, without friction; nothing else collides. At the beginning\n"
        "the gripper is open and points down, one finger behind the other along x. A control step lasts 0.02 s."
    )
    own_words: ClassVar[Mapping[str, str]] = {
        **PANDA_WORDS,
        "info.drawer_pos": f"how far the drawer is out (m), 0 to 0.45; the goal is more than {OPEN}",
        "info.drawer_vel": "velocity of the drawer (m/s), positive when it opens",
        "info.handle_pos": "middle of the handle (m)",
        "info.left_tip": "tip of the left finger, at the beginning the one farther from the arm (m)",
        "info.right_tip": "tip of the right finger, at the beginning the one nearer to the arm (m)",
        "info.approach": "direction in which the fingers point; (0, 0, -1) is down",
        "info.gripper_handle_dist": "distance of gripper and middle of the handle (m)",
    }

    @property
    def description(self) -> str:
        return (
            "A robot arm with seven joints and a gripper (Franka Emika Panda) opens a drawer by its handle, a bar in "
            f"front of it. An episode lasts {0.02 * self.horizon:g} seconds and succeeds if the drawer is more than "
            f"{OPEN} m out at some moment."
        )

    @property
    def xml(self) -> str:
        return with_cabinet(own_model("panda"), own_model("cabinet"))

    def start(self, key: jax.Array) -> Data:
        """The joints of the arm near home, the motors asked for just that; the drawer shut."""
        home = jax.tree.map(jnp.asarray, self.home)
        noise = jax.random.uniform(key, (7,), minval=-POSE_NOISE, maxval=POSE_NOISE)
        return home.replace(qpos=home.qpos.at[:7].add(noise), ctrl=home.ctrl.at[:7].add(noise))

    def sensed(self, data: Data) -> dict[str, Any]:
        frames = self.physics.frames(data)
        gripper, handle = self.site(frames, "gripper"), self.site(frames, "handle")
        return {
            "drawer_pos": data.qpos[9], "drawer_vel": data.qvel[9], "gripper_pos": gripper, "handle_pos": handle,
            "left_tip": self.site(frames, "left_tip"), "right_tip": self.site(frames, "right_tip"),
            "approach": frames.xmat[self.physics.model.body("hand").id].reshape(3, 3)[:, 2],
            "gripper_handle_dist": jnp.linalg.norm(gripper - handle),
        }  # fmt: skip

    def score(self) -> WithExtraMetrics:
        """Success; extra metrics are the farthest and the mean position of the drawer (m), and how well each subtask of
        the instruction was done, in [0, 1]."""
        length = Measure(name="drawer position", unit="m", rate=False)
        mean = Mean(lambda _, action, state: _out(state), self.horizon, length)
        return WithExtraMetrics(
            Reached(lambda state: _out(state) > OPEN),
            {"farthest": Farthest(), "mean_position": mean, "reached": Reached(_at_handle), "held": Held(),
             "pulled": Farthest(1.0 / OPEN), "gentle": Gentle()},
        )  # fmt: skip

    def instruction(self) -> Instruction:
        from jaxreward.tasks.robots.cabinet_fragments import SUBTASK_TERMS

        said = {
            "reach": ("bring the gripper to the handle", "reached"),
            "hold": ("keep the handle between the two fingers while the drawer moves", "held"),
            "pull": (f"pull the drawer {OPEN} m out", "pulled"),
            "gently": (f"pull gently: the drawer never moves faster than {GENTLE} m/s", "gentle"),
        }
        return Instruction(
            words="Reach for the handle, put a finger on either side of it, and pull the drawer open with the handle "
            "between the fingers, gently, without flinging it open.",
            subtasks=tuple(
                Subtask(name=name, words=words, metric=metric, terms=SUBTASK_TERMS[name])
                for name, (words, metric) in said.items()
            ),
        )

    def default_observation(self, view: RobotView) -> jax.Array:
        """Joints and drawer, what the motors are asked for, gripper, handle and the way between them; (37,)."""
        info, data = view.info, view.data
        way = info["handle_pos"] - info["gripper_pos"]
        return jnp.concatenate([data.qpos, data.qvel, data.ctrl, info["gripper_pos"], info["handle_pos"], way])

    def sparse_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """1 for every step that ends with the drawer more than 0.39 m out."""
        return (next_view.info["drawer_pos"] > OPEN).astype(jnp.float32)

    def dense_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """The gripper at the handle at two scales, pointing down, a finger on either side, and the drawer out; actions
        cost a little."""
        info = next_view.info
        away = info["gripper_handle_dist"]
        reach = 0.5 * jnp.exp(-3.0 * away) + 0.5 * jnp.exp(-((away / 0.06) ** 2))
        pointing = -0.2 * info["approach"][2]
        across = (info["left_tip"] - info["handle_pos"])[0] > 0.0
        across &= (info["handle_pos"] - info["right_tip"])[0] > 0.0
        around = 0.3 * across * (away < 0.06)
        out = 10.0 * info["drawer_pos"] + (info["drawer_pos"] > OPEN)
        return reach + pointing + around + out - 0.01 * jnp.sum(action**2)

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.robots.cabinet_fragments import vocabulary

        return vocabulary(self.horizon)


@dataclass(frozen=True)
class Farthest:
    """How far the drawer was out at most, in an episode (m); with a `scale`, that times it, at most 1."""

    scale: float = 0.0

    def init(self) -> jax.Array:
        return jnp.zeros(())

    def update(self, acc: jax.Array, state: RobotState, action: jax.Array, next_state: RobotState) -> jax.Array:
        return jnp.maximum(acc, _out(next_state))

    def value(self, acc: jax.Array) -> jax.Array:
        return jnp.minimum(self.scale * acc, 1.0) if self.scale else acc


@dataclass(frozen=True)
class Held:
    """Of the way by which the drawer moved out, the share with the handle between the fingers; 0 where it did not
    move."""

    def init(self) -> tuple[jax.Array, jax.Array]:
        return jnp.zeros(()), jnp.zeros(())

    def update(
        self, acc: tuple[jax.Array, jax.Array], state: RobotState, action: jax.Array, next_state: RobotState
    ) -> tuple[jax.Array, jax.Array]:
        moved = jnp.maximum(_out(next_state) - _out(state), 0.0)
        return acc[0] + moved, acc[1] + moved * _between(next_state)

    def value(self, acc: tuple[jax.Array, jax.Array]) -> jax.Array:
        return jnp.where(acc[0] > STILL, acc[1] / jnp.maximum(acc[0], STILL), 0.0)


@dataclass(frozen=True)
class Gentle:
    """1 while the drawer was never faster than `GENTLE`, 0 from three times that on; 0 where it did not move."""

    def init(self) -> tuple[jax.Array, jax.Array]:
        return jnp.zeros(()), jnp.zeros(())  # how far it came out at most, and how fast

    def update(
        self, acc: tuple[jax.Array, jax.Array], state: RobotState, action: jax.Array, next_state: RobotState
    ) -> tuple[jax.Array, jax.Array]:
        speed = jnp.where(next_state.data.broken, jnp.inf, jnp.abs(next_state.info["drawer_vel"]))
        return jnp.maximum(acc[0], _out(next_state)), jnp.maximum(acc[1], speed)

    def value(self, acc: tuple[jax.Array, jax.Array]) -> jax.Array:
        slow = jnp.clip((3.0 * GENTLE - acc[1]) / (2.0 * GENTLE), 0.0, 1.0)
        return jnp.where(acc[0] > STILL, slow, 0.0)


def _at_handle(state: RobotState) -> jax.Array:
    return ~state.data.broken & (state.info["gripper_handle_dist"] < AT_HANDLE)


def _between(state: RobotState) -> jax.Array:
    """Whether the handle is between the fingers, and the gripper at it."""
    info = state.info
    astride = (info["left_tip"] - info["handle_pos"])[0] > 0.0
    astride &= (info["handle_pos"] - info["right_tip"])[0] > 0.0
    return _at_handle(state) & astride


def _out(state: RobotState) -> jax.Array:
    """How far the drawer is out (m); 0 where the simulation failed."""
    return jnp.where(state.data.broken, 0.0, state.info["drawer_pos"])


def with_cabinet(arm: str, cabinet: str) -> str:
    """The MJCF of the arm with the cabinet instead of its target, seen from elsewhere, and with fingers that touch."""
    root, added = ElementTree.fromstring(arm), ElementTree.fromstring(cabinet)
    world = _child(root, "worldbody")
    for replaced in ("body[@name='target']", "camera"):
        world.remove(_child(world, replaced))
    world.extend(_child(added, "worldbody"))
    del _child(root, "option/flag").attrib["contact"]
    for side in ("left", "right"):
        finger = _child(root, f".//body[@name='{side}_finger']")
        # Inside of the finger's box; it touches what the closed fingers would meet in the middle.
        pad = {"name": f"{side}_pad", "fromto": "0 0.009 0.01 0 0.009 0.046", "size": "0.009"}
        ElementTree.SubElement(finger, "geom", pad | TOUCHING)
        ElementTree.SubElement(finger, "site", {"name": f"{side}_tip", "pos": "0 0.009 0.055"})
    palm = {"name": "palm", "fromto": "0 -0.08 0.04 0 0.08 0.04", "size": "0.02"}
    ElementTree.SubElement(_child(root, ".//body[@name='hand']"), "geom", palm | TOUCHING)
    root.remove(_child(root, "keyframe"))
    root.extend([_child(added, "contact"), _child(added, "keyframe")])
    return ElementTree.tostring(root, encoding="unicode")


def _child(node: ElementTree.Element, path: str) -> ElementTree.Element:
    found = node.find(path)
    if found is None:
        raise ValueError(f"the model has no {path}")
    return found
