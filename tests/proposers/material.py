"""Programs, a vocabulary that is not XLand's, and records to propose from."""

from __future__ import annotations

from jaxreward.records import (
    Candidate,
    Feedback,
    Fragment,
    ProgramSummary,
    Request,
    Result,
    Score,
    TaskCard,
    TermCurve,
    Vocabulary,
)
from jaxreward.tasks.xland_vocabulary import xland_vocabulary

XLAND = TaskCard(
    name="xland-test",
    description="Pick up the yellow pyramid.",
    state_doc="",
    vocabulary=xland_vocabulary([(5, 5), (4, 2), (3, 1)], 9, 9, 80),
)


def _feature(name: str, value: str, *tags: str) -> Fragment:
    return Fragment(name=name, kind="feature", size=3, tags=tags, source=f"def {name}(state):\n    return {value}")


def _term(name: str, value: str, scales: tuple[float, ...], *tags: str) -> Fragment:
    source = f"def {name}(state, action, next_state):\n    return {value}"
    return Fragment(name=name, kind="term", scales=scales, tags=tags, source=source)


ROBOT = TaskCard(
    name="robot",
    description="",
    state_doc="",
    vocabulary=Vocabulary(
        constants={"LIMIT": "2.0"},
        helpers={"scaled": "def scaled(x):\n    return x / LIMIT"},
        fragments=(
            _feature("joints", "scaled(state.q)", "joint", "basic"),
            _feature("speeds", "state.v", "velocity"),
            _feature("tip", "state.tip", "relative", "about:tip"),
            _term("near", "-jnp.sum(next_state.tip**2)", (1.0, 3.0), "milestone", "about:tip"),
            _term("effort", "-jnp.sum(scaled(action) ** 2)", (0.01,), "penalty"),
        ),
    ),
)

HAND_WRITTEN = '''"""A program as a person writes it."""
import jax
import jax.numpy as jnp
from jax import lax

SIZE = 9.0  # cells
PYRAMID, YELLOW = 5, 5


# Finds the pyramid.
def where(grid):
    mask = (grid[..., 0] == PYRAMID) & (grid[..., 1] == YELLOW)
    k = jnp.argmax(mask.reshape(-1))
    return jnp.stack([k // 9, k % 9])


def get_observation(state):
    SPAN = 4
    offset = (where(state.grid) - state.agent.position) / SIZE
    facing = jax.nn.one_hot(state.agent.direction, SPAN)
    return jnp.concatenate([offset, facing])


def compute_reward(state, action, next_state):
    def distance(s):
        return jnp.sum(jnp.abs(where(s.grid) - s.agent.position))

    progress = lax.sub(distance(state), distance(next_state)) * 0.25
    cost = -0.01
    return progress + cost, {"progress": progress, "cost": cost}
'''

IN_FORM = """import jax.numpy as jnp

SPAN = 3.0


def place(state):
    return state.agent.position / SPAN


def pocket(state):
    return state.agent.pocket / 12.0


def bump(state, action, next_state):
    return jnp.where(action == 0, -2.0, 0.0)


def get_observation(state):
    parts = [place(state), pocket(state) * 2.0]
    return jnp.concatenate(parts)


def compute_reward(state, action, next_state):
    terms = {"bumps": -0.5 * bump(state, action, next_state)}
    return sum(terms.values()), terms
"""


def result(source, success=None, feedback=None, size=None, name="a") -> Result:
    summary = None if size is None else ProgramSummary(digest=name, observation_size=size)
    candidate = Candidate(id=name, generation=0, operator="scratch", source=source, summary=summary)
    score = None if success is None else Score(mean=success, se=0.0, n=1, episodes=10)
    return Result(candidate=candidate, score=score, feedback=feedback)


def request(operator="scratch", *parents, **more) -> Request:
    return Request(id="r1", generation=1, operator=operator, parents=parents, **more)


def curve(name, share, fired=True) -> TermCurve:
    peak = 1.0 if fired else 0.0
    return TermCurve(name=name, mean=(0.1 * peak,), minimum=(0.0,), maximum=(peak,), share=share)


def feedback(*curves, **more) -> Feedback:
    return Feedback(terms=curves, **more)
