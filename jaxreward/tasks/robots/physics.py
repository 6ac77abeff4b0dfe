"""Steps of MuJoCo XLA on a state that holds only what the next step depends on.

An `mjx.Data` carries contacts, constraints and every frame of the robot. Thousands of them, copied
wherever an episode may end, would make a trainer memory-bound. A `Data` here holds positions, velocities, controls and
the solver's warm start; an `mjx.Data` exists only within a step.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from functools import cached_property, partial
from importlib import resources
from typing import Any, Literal

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from flax import struct

from jaxreward.errors import UserError
from jaxreward.kernels.linalg import compile_without_lapack
from jaxreward.tasks.option_checks import check_choice, invalid_option
from jaxreward.tasks.rendering import posed, render

with contextlib.redirect_stdout(io.StringIO()):  # it prints there that warp is not installed
    from mujoco import mjx

_mj: Any = mujoco
"""Its functions are compiled and known to no type checker."""

Impl = Literal["jax", "warp"]
IMPLS = ("jax", "warp")

CONTACTS = 32
"""Contacts per environment in the buffer that all share, with Warp."""
ROWS = 128
"""Constraint rows of an environment, with Warp: four for an ordinary contact."""


class Data(struct.PyTreeNode):
    """A moment of a simulation.

    `qpos` (nq,) and `qvel` (nv,) are generalised positions and velocities, `ctrl` (nu,) the last commands to the
    actuators, `act` (na,) the activations of those that have one, `actuator_force` (nu,) their forces in the last
    simulation step, `mocap_pos` (nmocap, 3) where bodies stand that are moved from outside, `warmstart` (nv,) the
    solver's last accelerations. `broken` says that the simulation has failed: a step whose result was not finite is not
    taken.
    """

    qpos: jax.Array
    qvel: jax.Array
    ctrl: jax.Array
    act: jax.Array
    actuator_force: jax.Array
    mocap_pos: jax.Array
    warmstart: jax.Array
    broken: jax.Array


class InvalidModel(UserError):
    """A MuJoCo model that cannot be used.

    Attributes:
        actuator: the index of the actuator concerned; None if it is the model as a whole.
    """

    def __init__(self, message: str, actuator: int | None = None) -> None:
        super().__init__(message)
        self.actuator = actuator


class Physics:
    """A model and its steps.

    Args:
        xml: MJCF.
        impl: the implementation of MJX: `jax`, or `warp` on a GPU by NVIDIA (the extra `warp`).

    Raises:
        InvalidModel: a model that MuJoCo cannot read.
        InvalidSetting: an implementation that does not exist or is not installed.
    """

    def __init__(self, xml: str, impl: Impl = "jax") -> None:
        check_choice("impl", impl, IMPLS)
        compile_without_lapack()
        try:
            self.model = _mj.MjModel.from_xml_string(xml)
        except ValueError as error:
            raise InvalidModel(f"MuJoCo cannot read the model: {' '.join(str(error).split())}") from error
        self.impl: Impl = impl
        try:
            with jax.ensure_compile_time_eval():  # it may be made while something is traced
                self._device, self._faults = self._put()
            self._blank = self._empty(1)
        except (ImportError, RuntimeError, NotImplementedError) as error:
            instead = "" if impl == "jax" else ": use impl='jax'"
            raise invalid_option("impl", f"MJX cannot use impl={impl!r} here ({error}){instead}") from error

    def _put(self) -> tuple[Any, int]:
        """The model for MJX, and the bits of Warp's `overflow` that say that a step cannot be trusted."""
        if self.impl == "jax":
            return mjx.put_model(self.model, impl="jax"), 0
        import warp  # pyright: ignore[reportMissingImports]
        from mujoco.mjx.third_party.mujoco_warp import OverflowType

        warp.config.log_level = warp.LOG_WARNING  # it would print a line for every kernel that it loads
        device: Any = mjx.put_model(self.model, impl="warp")
        # A solver that stops after `iterations` is as configured; Warp would print that for every step.
        faults = int(OverflowType.ALL & ~(OverflowType.ITERATIONS | OverflowType.LS_ITERATIONS))
        return device.tree_replace({"opt._impl.warn_overflow": faults}), faults

    def _empty(self, envs: int) -> Any:
        """An `mjx.Data` as numpy arrays, with Warp's buffers for `envs` environments."""
        sizes: dict[str, Any] = {} if self.impl == "jax" else {"naconmax": CONTACTS * envs, "njmax": ROWS}
        with jax.ensure_compile_time_eval():
            return jax.tree.map(np.asarray, mjx.make_data(self.model, impl=self.impl, **sizes))

    @cached_property
    def timestep(self) -> float:
        """Seconds of a simulation step."""
        return float(self.model.opt.timestep)

    @cached_property
    def quaternions(self) -> tuple[int, ...]:
        """Where in `qpos` the quaternions of free and ball joints begin."""
        kinds = {int(_mj.mjtJoint.mjJNT_FREE): 3, int(_mj.mjtJoint.mjJNT_BALL): 0}
        joints = zip(self.model.jnt_type.tolist(), self.model.jnt_qposadr.tolist(), strict=True)
        return tuple(at + kinds[kind] for kind, at in joints if kind in kinds)

    def home(self) -> Data:
        """The keyframe `home`, or the model's zero where it has none, as numpy arrays."""
        m = self.model
        frame = _mj.mj_name2id(m, _mj.mjtObj.mjOBJ_KEY, "home")
        if frame >= 0:
            data = self.at(m.key_qpos[frame], m.key_qvel[frame], m.key_ctrl[frame])
            act, mocap = np.float32(m.key_act[frame]), np.float32(m.key_mpos[frame]).reshape(-1, 3)
            return data.replace(act=act, mocap_pos=mocap)
        return self.at(m.qpos0, np.zeros(m.nv), np.zeros(m.nu))

    def at(self, qpos: Any, qvel: Any, ctrl: Any) -> Data:
        """A state from positions, velocities and controls, as numpy arrays; activations are 0."""
        mocap = np.zeros((self.model.nmocap, 3))
        for body in range(self.model.nbody):
            if self.model.body_mocapid[body] >= 0:
                mocap[self.model.body_mocapid[body]] = self.model.body_pos[body]
        fields: dict[str, Any] = {
            "qpos": qpos, "qvel": qvel, "ctrl": ctrl, "act": np.zeros(self.model.na), "mocap_pos": mocap,
            "actuator_force": np.zeros(self.model.nu), "warmstart": np.zeros(self.model.nv),
        }  # fmt: skip
        arrays: dict[str, Any] = {name: np.asarray(x, np.float32) for name, x in fields.items()}
        return Data(**arrays, broken=np.zeros((), bool))  # type: ignore[arg-type]

    def step(self, data: Data, ctrl: jax.Array, substeps: int, push: jax.Array | None = None, body: str = "") -> Data:
        """`substeps` simulation steps under `ctrl` (nu,), a force `push` (3,) on `body` all the while, in N.

        With Warp, a step that overflows the buffers has failed.
        """
        at = self.model.body(body).id if push is not None else 0

        def advance(blank: Any, data: Data, ctrl: jax.Array, push: jax.Array | None) -> tuple[Data, jax.Array]:
            whole = _filled(blank, data).replace(ctrl=ctrl)
            if push is not None:
                whole = whole.replace(xfrc_applied=jnp.asarray(whole.xfrc_applied).at[at, :3].set(push))
            whole = jax.lax.fori_loop(0, substeps, lambda _, d: mjx.step(self._device, d), whole)
            moved = data.replace(
                qpos=whole.qpos, qvel=whole.qvel, ctrl=ctrl, act=whole.act, actuator_force=whole.actuator_force,
                warmstart=whole.qacc_warmstart,
            )  # fmt: skip
            fits = jnp.ones((), bool) if self.impl == "jax" else (whole._impl.overflow & self._faults) == 0
            return moved, fits

        run = partial(advance, self._blank) if self.impl == "jax" else _batched_by_warp(advance, self._empty)
        moved, fits = run(data, ctrl, push)
        sound = jax.tree.reduce(lambda ok, x: ok & jnp.isfinite(x).all(), moved, fits & ~data.broken)
        return jax.tree.map(lambda new, old: jnp.where(sound, new, old), moved, data).replace(broken=~sound)

    def frames(self, data: Data) -> Any:
        """An `mjx.Data` whose frames of bodies, geometries and sites (`xpos`, `xmat`, `site_xpos`, ...) are right."""
        return mjx.kinematics(self._device, _filled(self._blank, data))

    def on_host(self, data: Data) -> Any:
        """MuJoCo's own data in a state, with all that follows from it."""
        return posed(self.model, qpos=data.qpos, qvel=data.qvel, ctrl=data.ctrl, mocap_pos=data.mocap_pos)

    def draw(self, data: Data, camera: str) -> np.ndarray:
        """A picture by MuJoCo's own renderer, uint8 (240, 320, 3), from one of the model's cameras, or from one that
        sees all of it where there is none of that name.

        Raises:
            CannotRender: this machine cannot render, or has no display and MUJOCO_GL is not set.
        """
        return render(self.model, self.on_host(data), camera)


def _filled(blank: Any, data: Data) -> Any:
    return blank.replace(
        qpos=data.qpos, qvel=data.qvel, ctrl=data.ctrl, act=data.act, mocap_pos=data.mocap_pos,
        qacc_warmstart=data.warmstart,
    )  # fmt: skip


def _batched_by_warp(advance: Callable[..., Any], blank: Callable[[int], Any]) -> Callable[..., Any]:
    """`advance` without its first argument, which is `blank(n)` where n lanes are mapped over together.

    All worlds of Warp share one buffer of contacts, and under `vmap` only the rule for it knows how many there are.
    """

    def mapped(n: int) -> Callable[..., Any]:
        @jax.custom_batching.custom_vmap
        def run(*args: Any) -> Any:
            return jax.vmap(partial(advance, jax.tree.map(_compact, blank(n))))(*args)

        @run.def_vmap
        def nested(size: int, batched: Any, *args: Any) -> Any:
            whole = jax.tree.map(lambda x, b: x if b else jnp.broadcast_to(x, (size, *x.shape)), args, tuple(batched))
            out = mapped(size * n)(*jax.tree.map(lambda x: x.reshape(size * n, *x.shape[2:]), whole))
            return jax.tree.map(lambda x: x.reshape(size, n, *x.shape[1:]), out), jax.tree.map(lambda _: True, out)

        return run

    def alone(*args: Any) -> Any:
        return jax.tree.map(lambda x: x[0], mapped(1)(*jax.tree.map(lambda x: jnp.asarray(x)[None], args)))

    return alone


def _compact(x: np.ndarray[Any, Any]) -> Any:
    """The array; where all of it is one number, not as a constant that the compiled program carries."""
    return jnp.full(x.shape, x.flat[0]) if x.size and (x == x.flat[0]).all() else x


def own_model(name: str) -> str:
    """The MJCF of one of the robots in this folder."""
    return resources.files("jaxreward.tasks.robots").joinpath(f"{name}.xml").read_text(encoding="utf-8")


def rotate(quat: jax.Array, vector: jax.Array) -> jax.Array:
    """`vector` (3,) turned by the unit quaternion `quat` (4,), real part first."""
    w, axis = quat[0], quat[1:]
    return vector + 2.0 * jnp.cross(axis, jnp.cross(axis, vector) + w * vector)


def rotate_back(quat: jax.Array, vector: jax.Array) -> jax.Array:
    """`vector` (3,) of the world in the frame that `quat` turns to."""
    return rotate(quat * jnp.array([1.0, -1.0, -1.0, -1.0]), vector)
