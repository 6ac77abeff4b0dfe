"""Compiler options and slice sizes of physics simulations."""

from __future__ import annotations

from jaxreward.devices import cores_of_a_device

UNFUSED = {"xla_cpu_use_fusion_emitters": False}
"""XLA's fusion emitters slow some simulations down on CPU: in the kinematics of a serial chain each link costs ten
times the one before, and the hopper compiles 3 times longer and steps 3 times slower, resets included. They double the
speed of the humanoid's springs."""

ONLY_FAILURES = "only where the simulation fails"
"""When an episode ends early that nothing else ends (see `documentation`)."""

ENVS_PER_CORE = 64
"""Environments that step together on CPU, per core: their arrays stay in its cache
(docs/appendix/robot_results.md, "Speed")."""


def max_envs_per_step(platform: str) -> int:
    """How many environments of a physics simulation a step holds; 0 for all."""
    return ENVS_PER_CORE * cores_of_a_device() if platform == "cpu" else 0
