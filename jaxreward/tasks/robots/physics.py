"""Steps of MuJoCo XLA on a state that holds only what the next step depends on.

An `mjx.Data` carries contacts, constraints and every frame of the robot. A trainer that keeps thousands of
them, and copies them wherever an episode may end, would mostly move memory. So a `Data` here is positions,
velocities, what drives the robot and the solver's warm start; an `mjx.Data` lives within a step alone.
"""

from __future__ import annotations

import contextlib
import io
from functools import cached_property
from importlib import resources
from typing import Any, Literal

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from flax import struct

from jaxreward.errors import UserError
from jaxreward.kernels.linalg import keep_off_the_pool
from jaxreward.tasks.pictures import render

with contextlib.redirect_stdout(io.StringIO()):  # it prints there that warp is not installed
    from mujoco import mjx

_mj: Any = mujoco
"""Its functions are compiled and known to no type checker."""

Impl = Literal["jax", "warp"]
IMPLS = ("jax", "warp")


class Data(struct.PyTreeNode):
    """A moment of a simulation.

    `qpos` (nq,) and `qvel` (nv,) are generalised positions and velocities, `ctrl` (nu,) what the actuators were last
    told, `actuator_force` (nu,) what they gave in the last simulation step, `mocap_pos` (nmocap, 3) where bodies
    stand that are moved from outside, `warmstart` (nv,) the solver's last accelerations. `broken` says that the
    simulation has failed: a step whose result was not finite is not taken.
    """

    qpos: jax.Array
    qvel: jax.Array
    ctrl: jax.Array
    actuator_force: jax.Array
    mocap_pos: jax.Array
    warmstart: jax.Array
    broken: jax.Array


class Physics:
    """A model and its steps.

    Args:
        xml: MJCF.
        impl: the implementation of MJX: `jax`, or `warp` on a GPU by NVIDIA (`pip install mujoco-mjx[warp]`).

    Raises:
        UserError: an implementation that does not exist or is not installed.
    """

    def __init__(self, xml: str, impl: Impl = "jax") -> None:
        if impl not in IMPLS:
            raise UserError(f"impl is {impl!r}: choose one of {', '.join(IMPLS)}")
        keep_off_the_pool()
        self.model = _mj.MjModel.from_xml_string(xml)
        self.impl: Impl = impl
        try:
            with jax.ensure_compile_time_eval():  # it may be made while something is traced
                self._device = mjx.put_model(self.model, impl=impl)
                self._blank = jax.tree.map(np.asarray, self._empty())
        except (ImportError, RuntimeError, NotImplementedError) as error:
            raise UserError(f"MJX cannot use impl={impl!r} here ({error}): use impl='jax'") from error

    def _empty(self) -> Any:
        if self.impl == "jax":
            return mjx.make_data(self.model, impl="jax")
        # One world's share of buffers that all worlds have together.
        return mjx.make_data(self.model, impl="warp", naconmax=32, njmax=128)

    @cached_property
    def timestep(self) -> float:
        """Seconds of a simulation step."""
        return float(self.model.opt.timestep)

    def key(self, name: str = "home") -> Data:
        """The state of a keyframe, as numpy arrays."""
        frame = self.model.key(name)
        return self.at(frame.qpos, np.zeros(self.model.nv), frame.ctrl)

    def at(self, qpos: Any, qvel: Any, ctrl: Any) -> Data:
        """A state from positions, velocities and controls, as numpy arrays."""
        mocap = np.zeros((self.model.nmocap, 3))
        for body in range(self.model.nbody):
            if self.model.body_mocapid[body] >= 0:
                mocap[self.model.body_mocapid[body]] = self.model.body_pos[body]
        parts: dict[str, Any] = {
            "qpos": qpos, "qvel": qvel, "ctrl": ctrl, "actuator_force": np.zeros(self.model.nu), "mocap_pos": mocap,
            "warmstart": np.zeros(self.model.nv),
        }  # fmt: skip
        arrays: dict[str, Any] = {name: np.asarray(x, np.float32) for name, x in parts.items()}
        return Data(**arrays, broken=np.zeros((), bool))  # type: ignore[arg-type]

    def step(self, data: Data, ctrl: jax.Array, substeps: int, push: jax.Array | None = None, body: str = "") -> Data:
        """`substeps` simulation steps under `ctrl` (nu,), a force `push` (3,) on `body` all the while, in N."""
        whole = self._whole(data).replace(ctrl=ctrl)
        if push is not None:
            at = self.model.body(body).id
            whole = whole.replace(xfrc_applied=jnp.asarray(whole.xfrc_applied).at[at, :3].set(push))
        whole = jax.lax.fori_loop(0, substeps, lambda _, d: mjx.step(self._device, d), whole)
        moved = data.replace(
            qpos=whole.qpos, qvel=whole.qvel, ctrl=ctrl, actuator_force=whole.actuator_force,
            warmstart=whole.qacc_warmstart,
        )  # fmt: skip
        sound = jax.tree.reduce(lambda ok, x: ok & jnp.isfinite(x).all(), moved, ~data.broken)
        return jax.tree.map(lambda new, old: jnp.where(sound, new, old), moved, data).replace(broken=~sound)

    def frames(self, data: Data) -> Any:
        """An `mjx.Data` whose frames of bodies, geometries and sites (`xpos`, `xmat`, `site_xpos`, ...) are right."""
        return mjx.kinematics(self._device, self._whole(data))

    def _whole(self, data: Data) -> Any:
        return self._blank.replace(
            qpos=data.qpos, qvel=data.qvel, ctrl=data.ctrl, mocap_pos=data.mocap_pos, qacc_warmstart=data.warmstart
        )

    def on_host(self, data: Data) -> Any:
        """MuJoCo's own data in a state, with all that follows from it."""
        host = _mj.MjData(self.model)
        host.qpos[:], host.qvel[:], host.ctrl[:] = (np.asarray(x) for x in (data.qpos, data.qvel, data.ctrl))
        host.mocap_pos[:] = np.asarray(data.mocap_pos)
        _mj.mj_forward(self.model, host)
        return host

    def draw(self, data: Data, camera: str) -> np.ndarray:
        """A picture by MuJoCo's own renderer, uint8 (240, 320, 3).

        Raises:
            UserError: this machine cannot render, or has no screen and was not told to do without.
        """
        return render(self.model, self.on_host(data), camera)


def own_model(name: str) -> str:
    """The MJCF of one of the robots beside this file."""
    return resources.files("jaxreward.tasks.robots").joinpath(f"{name}.xml").read_text(encoding="utf-8")


def rotate(quat: jax.Array, vector: jax.Array) -> jax.Array:
    """`vector` (3,) turned by the unit quaternion `quat` (4,), real part first."""
    w, axis = quat[0], quat[1:]
    return vector + 2.0 * jnp.cross(axis, jnp.cross(axis, vector) + w * vector)


def rotate_back(quat: jax.Array, vector: jax.Array) -> jax.Array:
    """`vector` (3,) of the world in the frame that `quat` turns to."""
    return rotate(quat * jnp.array([1.0, -1.0, -1.0, -1.0]), vector)
