"""What tasks on simulators of bodies have in common."""

from __future__ import annotations

from jaxreward.devices import cores_of_a_device

UNFUSED = {"xla_cpu_use_fusion_emitters": False}
"""XLA's fusions cost some simulations dearly on CPU: those of the kinematics of a serial chain make each link cost ten
times the one before, and with them the hopper compiles 3 times longer and, resets included, steps 3 times slower. They
double the speed of the humanoid's springs."""

ONLY_FAILURES = "only where the simulation fails"
"""When an episode ends early that nothing else ends (see `documentation`)."""

LANES_OF_A_CORE = 64
"""Environments that step together on CPU, for each core: the arrays of so many stay in its cache. What that
is worth on two cores is in docs/appendix/robot_results.md, "Speed"."""


def lanes_at_once(platform: str) -> int:
    """Of a simulation of bodies, how many environments a step holds; 0 for all."""
    return LANES_OF_A_CORE * cores_of_a_device() if platform == "cpu" else 0
