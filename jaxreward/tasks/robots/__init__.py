"""Robots in MuJoCo XLA, and their tasks."""

from jaxreward.extras import require

require("mujoco", __name__)
