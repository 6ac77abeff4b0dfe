"""Brax's locomotion: `hopper`, `walker2d`, `ant` and `humanoid` run forward.

The metric is the environment's own undiscounted return, as in Table 1 of GRACE, or the forward speed, as in RF-Agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, nan
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.records import Measure
from jaxreward.tasks.brax.base import BraxTask
from jaxreward.tasks.brax.environment import BraxView, as_pipeline
from jaxreward.tasks.metrics import Mean, Sum, WithExtraMetrics
from jaxreward.tasks.option_checks import check_choice

METRICS = ("return", "speed")
FAST = 1.0
"""m/s from which the sparse reward is paid."""
SPEED = Measure(name="speed", unit="m/s", rate=False, worst=-5.0)
"""No robot runs backward as fast as the worst."""


class Runner(NamedTuple):
    """A body and the numbers in its environment's reward: `forward` per m/s, `alive` per step, `control` per squared
    action. `height` (m) and `tilt` (rad) are where its torso may be. `by_mass`: of its centre of mass is the speed, not
    of its torso. `scaled`: the reward's actions are those the actuators get."""

    words: str
    end: str
    forward: float
    alive: float
    control: float
    height: tuple[float, float]
    tilt: float = inf
    by_mass: bool = False
    scaled: bool = False


RUNNERS = {
    "hopper": Runner(
        "A one-legged robot that moves in a vertical plane (torso, thigh, leg, foot; three motors) hops forward",
        "its torso sinks below 0.7 m or tilts by more than 0.2 rad",
        1.0, 1.0, 1e-3, (0.7, inf), 0.2,
    ),
    "walker2d": Runner(
        "A two-legged robot that moves in a vertical plane (torso and two legs; six motors) walks forward",
        "its torso leaves the heights from 0.8 to 2 m or tilts by more than 1 rad",
        1.0, 1.0, 1e-3, (0.8, 2.0), 1.0,
    ),
    "ant": Runner(
        "A four-legged robot (a round torso, two joints in each leg, eight motors) runs forward",
        "its torso leaves the heights from 0.2 to 1 m",
        1.0, 1.0, 0.5, (0.2, 1.0),
    ),
    "humanoid": Runner(
        "A robot in the shape of a human (torso, legs, arms; seventeen motors) walks forward",
        "its torso leaves the heights from 1 to 2 m",
        1.25, 5.0, 0.1, (1.0, 2.0), by_mass=True, scaled=True,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Run(BraxTask):
    """Run forward, along x.

    The sparse reward is 1 for every step at `FAST` or more on which the robot is still up, else 0.

    Args:
        kind: one of `RUNNERS`.
        metric: `return`, the sum of the environment's own rewards; or `speed`, metres forward per second of the whole
            horizon, so that a step after a fall counts 0. The other one is an extra metric.
    """

    kind: str = "hopper"
    metric: Literal["return", "speed"] = "return"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("metric", self.metric, METRICS)

    @property
    def name(self) -> str:
        return self.kind

    @property
    def body(self) -> Runner:
        return RUNNERS[self.kind]

    @property
    def description(self) -> str:
        b = self.body
        goal = f"as fast as possible. An episode lasts {self.horizon} steps of {self.control_s:g} s and ends early if"
        value = {
            "return": f"The score is the sum, over its steps, of {b.forward:g} x forward speed (m/s) + {b.alive:g} - "
            f"{b.control:g} x squared {'torque inputs (0.4 x action)' if b.scaled else 'actions'}.",
            "speed": "The score is the mean forward speed in m/s over the whole time, 0 after an early end.",
        }
        return f"{b.words} (along x) {goal} {b.end}. {value[self.metric]}"

    @cached_property
    def returns(self) -> Measure:
        """The return; its worst is that of going backward at `FAST` with all motors at their full force."""
        with jax.ensure_compile_time_eval():  # it may be asked for while something is traced
            most = np.abs(np.asarray(self.control(jnp.ones(self.action_space.shape)), np.float64))
        b = self.body
        worst = -self.horizon * (b.forward * FAST + b.control * float((most**2).sum()))
        return Measure(name="return", rate=False, worst=worst)

    def score(self) -> WithExtraMetrics:
        def metrics(broken: float) -> dict[str, Sum | Mean]:
            paid = self.figure(lambda s, a, after: after.reward, broken)
            speed = self.figure(lambda s, a, after: self.speed(self.view(s), self.view(after)), broken)
            return {"return": Sum(paid, self.returns), "speed": Mean(speed, self.horizon, SPEED, missing=0.0)}

        other = next(m for m in METRICS if m != self.metric)
        return WithExtraMetrics(metrics(nan)[self.metric], {other: metrics(0.0)[other]})

    # ---- rewards

    @cached_property
    def _masses(self) -> tuple[np.ndarray, np.ndarray]:
        """Masses (bodies,) and centres of mass in the bodies' frames (bodies, 3), as Brax weighs them."""
        link = self.env.sys.link.inertia
        scale = float(self.env.sys.spring_mass_scale) if self.backend in ("spring", "positional") else 0.0
        return np.asarray(link.mass) ** (1.0 - scale), np.asarray(link.transform.pos)

    def place(self, view: BraxView) -> jax.Array:
        """How far the robot is along x, in m (scalar)."""
        if not self.body.by_mass:
            return view.x.pos[0, 0]
        mass, centre = self._masses
        w, axis = view.x.rot[:, :1], view.x.rot[:, 1:]
        turned = centre + 2.0 * jnp.cross(axis, jnp.cross(axis, centre) + w * centre)
        return jnp.sum(mass * (view.x.pos + turned)[:, 0]) / mass.sum()

    def speed(self, view: BraxView, next_view: BraxView) -> jax.Array:
        """Forward speed over one step, in m/s (scalar)."""
        return (self.place(next_view) - self.place(view)) / self.control_s

    def up(self, view: BraxView) -> jax.Array:
        """Whether the torso is where the episode goes on (bool scalar)."""
        low, high = self.body.height
        height, tilt = view.x.pos[0, 2], view.q[2] if self.body.tilt < inf else 0.0
        return (height > low) & (height < high) & (jnp.abs(tilt) < self.body.tilt)

    def sparse_reward(self, view: BraxView, action: jax.Array, next_view: BraxView) -> jax.Array:
        """1 for every step at `FAST` or more on which the robot is still up."""
        return ((self.speed(view, next_view) >= FAST) & self.up(next_view)).astype(jnp.float32)

    def default_observation(self, view: BraxView) -> jax.Array:
        """The environment's own observation; the humanoid's has the torques of the last action."""
        seen = as_pipeline(view)
        return self.env._get_obs(seen, self.control(view.last_action)) if self.body.scaled else self.env._get_obs(seen)

    def control(self, action: jax.Array) -> jax.Array:
        """What the environment makes of `action` (actuators,) before it looks at it."""
        action = jnp.clip(action, -1.0, 1.0)
        if not self.body.scaled:
            return action
        low, high = np.asarray(self.env.sys.actuator.ctrl_range, np.float32).T
        return low + 0.5 * (action + 1.0) * (high - low)

    def dense_reward(self, view: BraxView, action: jax.Array, next_view: BraxView) -> jax.Array:
        """The environment's own reward."""
        b = self.body
        effort = jnp.sum(self.control(action) ** 2)
        return b.forward * self.speed(view, next_view) + b.alive - b.control * effort
