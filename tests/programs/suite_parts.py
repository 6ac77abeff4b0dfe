"""Pieces of the candidate suite: a program is a body put into a frame that is fine without it."""

from __future__ import annotations

HEAD = "import jax\nimport jax.numpy as jnp\n"
OBSERVE = "def get_observation(state):\n    return jnp.concatenate([state.pos, state.vel])\n"
PAY = (
    "def compute_reward(state, action, next_state):\n"
    "    before = jnp.sum(jnp.abs(state.goal - state.pos))\n"
    "    after = jnp.sum(jnp.abs(next_state.goal - next_state.pos))\n"
    "    return before - after - 0.01 * jnp.sum(action ** 2)\n"
)


def _indent(body: str) -> str:
    return "".join(f"    {line}\n" for line in body.split("\n"))


def obs(body: str, top: str = "") -> str:
    """A program whose observation is `body`."""
    return f"{HEAD}{top}def get_observation(state):\n{_indent(body)}{PAY}"


def rew(body: str, top: str = "") -> str:
    """A program whose reward is `body`."""
    return f"{HEAD}{top}{OBSERVE}def compute_reward(state, action, next_state):\n{_indent(body)}"


def mod(top: str) -> str:
    """A sound program below the module-level lines `top`."""
    return f"{HEAD}{top}\n{OBSERVE}{PAY}"


def line(body: str) -> str:
    """A program whose observation runs `body` and then returns something sound."""
    return obs(f"{body}\nreturn state.pos")
