"""Subgoals of XLand's rulesets: names that the vocabulary has, and a reward that is the task's own."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from xminigrid.types import RuleSet

from jaxreward.errors import UserError
from jaxreward.records import Subgoal, Subgoals
from jaxreward.tasks import card, make_task
from jaxreward.tasks.xland import XLand, paper_task
from jaxreward.tasks.xland_generator import LADDER
from tests.compilation import jit

BALL, SQUARE = (3, 1), (4, 2)
GOALS = {
    1: [1, *BALL], 3: [3, *BALL], 4: [4, *BALL, *SQUARE], 5: [5, *BALL, 3, 3], 6: [6, 3, 3],
    7: [7, *BALL, *SQUARE], 8: [8, *BALL, *SQUARE], 9: [9, *BALL, *SQUARE], 10: [10, *BALL, *SQUARE],
    11: [11, *BALL], 12: [12, *BALL], 13: [13, *BALL], 14: [14, *BALL],
}  # fmt: skip


def task_of(goal):
    encoded = np.asarray(goal + [0] * (5 - len(goal)), np.uint8)
    ruleset = RuleSet(jnp.asarray(encoded), jnp.zeros((1, 7), jnp.uint8), jnp.asarray([BALL, SQUARE], jnp.uint8))
    return XLand("goals", "XLand-MiniGrid-R1-9x9", ruleset, 300)


def term(task, name):
    """The function of a fragment; the vocabulary is our own text."""
    defined = {}
    exec(task.subgoals().joined(task.vocabulary()).source([name]), defined)
    return defined[name]


def random_play(task, envs=256, steps=120):
    """Transitions of random actions, episodes that reach the goal going on."""
    rng = np.random.default_rng(0)
    actions = jnp.asarray(rng.choice(6, (steps, envs), p=[0.4, 0.12, 0.12, 0.18, 0.18, 0.0]), jnp.int32)

    def step(states, action):
        after = jax.vmap(task.step)(states, action)
        return after, (jax.vmap(task.view)(states), action, jax.vmap(task.view)(after))

    start = jit(jax.vmap(task.reset))(jax.random.split(jax.random.key(0), envs))
    return jit(lambda s: jax.lax.scan(step, s, actions)[1])(start)


@pytest.mark.slow
@pytest.mark.parametrize("kind", GOALS)
def test_the_reward_of_the_subgoals_is_the_tasks_own(kind):
    task = task_of(GOALS[kind])
    seen = random_play(task)
    both = jax.vmap(jax.vmap(lambda *t: (task.sparse_reward(*t), term(task, "goal_reached")(*t))))
    own, written = jit(both)(*seen)
    assert own.sum() > 0, "random play reaches it"
    assert np.array_equal(np.asarray(own), np.asarray(written))


@pytest.mark.parametrize("name", ["xland-easy", "xland-medium", "xland-hard", *LADDER[::5]])
def test_every_subgoal_has_directions_and_an_approach(name):
    task: Any = make_task(name)
    found = task.subgoals()
    known = {fragment.name: fragment for fragment in found.joined(task.vocabulary()).fragments}
    assert {name for *_, name in found.named()} <= set(known)
    assert found.reward == "goal_reached" and found.chain
    for subgoal in found.chain:
        assert subgoal.directions and subgoal.flags and subgoal.approaches, subgoal.words
        for role, kind in (("directions", "feature"), ("flags", "feature"), ("approaches", "term")):
            assert all(known[n].kind == kind for n in getattr(subgoal, role))


@pytest.mark.slow
def test_approaches_and_completions_are_differences_of_potentials():
    """r + gamma r' of a way there and back is what two steps on the spot give, whatever lies between (Ng et al.)."""
    gamma, task = 0.99, paper_task("xland-hard")
    names = [n for s in task.subgoals().chain for n in (*s.approaches, *s.completions)]
    state = task.view(task.reset(jax.random.key(3)))
    held = state.replace(agent=state.agent.replace(pocket=jnp.asarray((3, 2), jnp.uint8)))
    for name in names:
        value = jit(term(task, name))
        there, back, stay = value(state, 3, held), value(held, 4, state), value(state, 1, state)
        assert float(there + gamma * back) == pytest.approx(float((1 + gamma) * stay), abs=1e-5), name


def test_a_name_that_is_no_fragment_is_told():
    class Wrong(XLand):
        def subgoals(self):
            return Subgoals(chain=(Subgoal(words="open the box", flags=("box_open",)),))

    ruleset = paper_task("xland-easy").ruleset
    with pytest.raises(UserError, match="'open the box' of mine names 'box_open'"):
        card(Wrong("mine", "XLand-MiniGrid-R1-9x9", ruleset, 80))
