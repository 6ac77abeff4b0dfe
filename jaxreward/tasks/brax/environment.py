"""Brax's environments, made without its messages and warnings, and the states of tasks on them."""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

with contextlib.redirect_stdout(io.StringIO()):  # it prints there that warp is not installed
    from brax import base, envs

from jaxreward.kernels.linalg import compile_without_lapack

Backend = Literal["spring", "generalized", "positional", "mjx"]
BACKENDS = ("spring", "generalized", "positional", "mjx")

FASTEST = 1e2
"""m/s in one direction; random play stays below 10, and a simulation that blows up must not count as a fast runner."""

Environment = Any
"""One of Brax's, which are untyped: `brax.envs.base.PipelineEnv`."""


class Pose(struct.PyTreeNode):
    """Where the bodies are: `pos` (bodies, 3) in m, `rot` (bodies, 4) unit quaternions, real part first."""

    pos: jax.Array
    rot: jax.Array


class Motion(struct.PyTreeNode):
    """How they move, in the frame of the world: `vel` (bodies, 3) in m/s, `ang` (bodies, 3) in rad/s."""

    vel: jax.Array
    ang: jax.Array


class BraxView(struct.PyTreeNode):
    """`state` of a program, with the names of Brax's own pipeline state."""

    q: jax.Array
    qd: jax.Array
    x: Pose
    xd: Motion
    last_action: jax.Array
    step_count: jax.Array


class BraxState(struct.PyTreeNode):
    """The simulation, Brax's reward and done of the last step, and arrays of the task.

    `pipeline` is the state of Brax's backend, `reward` and `done` (bool) what its `step` returned. `broken` says that
    the simulation has failed: a step whose result is not `sound` is not taken, ends the episode and pays nothing.
    `own` holds arrays of the task by name.
    """

    pipeline: Any
    reward: jax.Array
    done: jax.Array
    broken: jax.Array
    last_action: jax.Array
    step_count: jax.Array
    own: dict[str, jax.Array]


def make_environment(name: str, backend: Backend, solid: tuple[str, ...] = ()) -> Environment:
    """An environment of Brax; the geometries `solid` touch the floor as feet do."""
    compile_without_lapack()
    with warnings.catch_warnings(), jax.ensure_compile_time_eval():  # it may be made while something is traced
        warnings.simplefilter("ignore", UserWarning)  # that Brax's environments are not developed any more
        env: Any = envs.get_environment(name, backend=backend)
        touching = np.array(env.sys.geom_contype)
        for geom in solid:
            touching[env.sys.mj_model.geom(geom).id] = 1
        env.sys = env.sys.replace(geom_contype=touching)
    return env


def view_fields(state: BraxState) -> dict[str, Any]:
    """The fields of a `BraxView` in `state`: everything but reward, done and the task's own."""
    p = state.pipeline
    pose, motion = Pose(pos=p.x.pos, rot=p.x.rot), Motion(vel=p.xd.vel, ang=p.xd.ang)
    return {"q": p.q, "qd": p.qd, "x": pose, "xd": motion, "last_action": state.last_action,
            "step_count": state.step_count}  # fmt: skip


def as_pipeline(view: BraxView) -> Any:
    """`view` as a state of Brax's backend, for Brax's observations."""
    pose = base.Transform(pos=view.x.pos, rot=view.x.rot)
    return base.State(q=view.q, qd=view.qd, x=pose, xd=base.Motion(ang=view.xd.ang, vel=view.xd.vel), contact=None)


def like(tree: Any, shapes: Any) -> Any:
    """`tree` with the dtypes of `shapes`, none of them weak: a scan compiles once for both reset and step."""
    return jax.tree.map(lambda x, shape: jnp.asarray(x, shape.dtype), tree, shapes)


def sound(pipeline: Any) -> jax.Array:
    """Whether positions and velocities are numbers, and no body is faster than `FASTEST` (bool scalar)."""
    arrays = (pipeline.q, pipeline.qd, pipeline.x, pipeline.xd)
    finite = jax.tree.reduce(lambda ok, x: ok & jnp.isfinite(x).all(), arrays, jnp.ones((), bool))
    return finite & (jnp.abs(pipeline.xd.vel) < FASTEST).all()
