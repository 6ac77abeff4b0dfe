"""What the vocabularies of the robot on wheels have in common: its own frame, movement and costs."""

from __future__ import annotations

from jaxreward.tasks.fragment_template import SHAPES, Template

HELPERS = (
    SHAPES
    + '''

def own(state, vector):
    """A vector of the world in the robot's frame (2,)."""
    cos, sin = jnp.cos(state.data.qpos[2]), jnp.sin(state.data.qpos[2])
    return jnp.stack([cos * vector[0] + sin * vector[1], cos * vector[1] - sin * vector[0]])


def gaps(state):
    return jnp.maximum(state.info["hand_gaps"], 0.0)
'''
)

NEAR = (1.0, 2.0, 0.5)
WAY = (30.0, 100.0, 10.0)
STEP = (3.0, 10.0, 1.0)
SMALL = (0.1, 0.3, 0.03)

TOUCHING = '''
def touching(state):
    """Whether a hand is within 2 cm."""
    return (state.info["hand_gaps"].min() < 0.02).astype(jnp.float32)
'''
NEAR_GOAL = '''
def near_goal(state):
    """Whether what is brought to the goal is within half a metre of it."""
    return (left(state) < 0.5).astype(jnp.float32)
'''
"""Helpers of subgoals."""


def hand_features(thing: str) -> tuple[Template, ...]:
    """Features of hands and trunk at `thing`, which they can touch."""
    return (
        Template("hand_gaps", "hands basic", f"Gaps between the hands and the {thing}, in tens of centimetres.",
                 '10.0 * state.info["hand_gaps"]', 2),
        Template("hand_gaps_fine", "hands scales", "The same, saturating at about 5 cm.",
                 'jnp.tanh(20.0 * state.info["hand_gaps"])', 2),
        Template("hands_on", "hands", f"Whether each hand is within 2 cm of the {thing}.",
                 '(state.info["hand_gaps"] < 0.02).astype(jnp.float32)', 2),
        Template("trunk_gap", "hands", f"The gap between trunk and {thing}, saturating at about 20 cm.",
                 'jnp.tanh(5.0 * state.info["trunk_gap"])[None]'),
    )  # fmt: skip


MOVEMENT = (
    Template("own_velocity", "velocity basic", "Velocity of the robot, and how it turns, halved.",
             "jnp.append(own(state, state.data.qvel[:2]), 0.5 * state.data.qvel[2])", 3),
)  # fmt: skip

ORIENTATION = (
    Template("asked", "action", "Velocity that is asked of the robot, and the turn, halved.",
             "jnp.append(own(state, state.data.ctrl[:2]), 0.5 * state.data.ctrl[2])", 3),
    Template("heading", "orientation", "Sine and cosine of the robot's heading.",
             "jnp.stack([jnp.sin(state.data.qpos[2]), jnp.cos(state.data.qpos[2])])", 2),
    Template("time_passed", "time", "The part of the episode that is over.",
             'jnp.reshape(state.info["step_count"] / HORIZON, (1,)).astype(jnp.float32)'),
)  # fmt: skip


def hand_terms(thing: str) -> tuple[Template, ...]:
    """Terms that bring hands to `thing`."""
    return (
        Template("hands_near", "shaping hands", f"Bells of 10 cm around both hands' touching the {thing}, on average.",
                 "bell(gaps(next_state), 0.1).mean()", 1, NEAR),
        Template("hands_near_wide", "shaping hands", f"One where both hands touch the {thing}, less with the gaps.",
                 "jnp.exp(-3.0 * gaps(next_state)).mean()", 1, NEAR),
        Template("hands_closer", "shaping potential hands", f"The way that the hands made towards the {thing}.",
                 "gaps(state).sum() - gaps(next_state).sum()", 1, WAY),
        Template("hand_touching", "milestone hands", f"Whether a hand is within 2 cm of the {thing}.",
                 '(next_state.info["hand_gaps"].min() < 0.02).astype(jnp.float32)', 1, NEAR),
    )  # fmt: skip


def trunk_cost(thing: str) -> Template:
    """The cost of touching `thing` with the trunk."""
    return Template("trunk_cost", "penalty hands", f"Minus whether the trunk touches the {thing}.",
                    '-(next_state.info["trunk_gap"] < 0.01).astype(jnp.float32)', 1, NEAR)  # fmt: skip


ACTION_COST = Template("action_cost", "penalty action", "Minus the squared action.", "-jnp.sum(action**2)", 1, SMALL)
