"""A reward that fits the demonstrations and misses what they are for is found out by the policy that it trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxreward as jr
from jaxreward.demonstrations import load_trajectories, record_actions, reset_keys, save_trajectories
from jaxreward.evolution import run_search
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Objects
from jaxreward.objectives.demonstrations.demonstration_options import DemonstrationOptions
from jaxreward.programs import Checker
from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
from jaxreward.records import Proposal, Request
from jaxreward.reports.demonstrated import CONFIRMED, Demonstrated
from jaxreward.reports.page import write_report
from jaxreward.reports.run_view import RunView
from jaxreward.runs import Baseline
from jaxreward.training import PPO
from tests.silent import Silent
from tests.substance import substance

pytestmark = [pytest.mark.usefixtures("unoptimised", "unsynced"), pytest.mark.long]

WRONG = "def compute_reward(state, action, next_state):\n    return 40.0 * next_state.lamp - 20.0\n"


class State(NamedTuple):
    lever: jax.Array
    lamp: jax.Array


class TwoLevers(jr.BaseTask):
    """Both levers light the lamp; the second one opens the door besides, which is what is wanted."""

    horizon = 12
    action_space = jr.Discrete(3)

    def reset(self, key: jax.Array) -> State:
        return State(jnp.int32(0), jnp.int32(0))

    def step(self, state: State, action: jax.Array) -> State:
        return State(action.astype(jnp.int32), (action > 0).astype(jnp.int32))

    def success(self, state: State) -> jax.Array:
        return state.lever == 2


class WrongFirst(GeneticProposer):
    """The genetic proposer, but for its first program."""

    def propose(self, request: Request, rng: np.random.Generator) -> Proposal:
        if request.id == "g0000-00":
            return Proposal(request_id=request.id, source=WRONG, proposer=self.name)
        return super().propose(request, rng)


@pytest.fixture(scope="module")
def searched(checker: Checker, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A search with one round of expansion. Others have pulled no lever, so that the lamp alone tells the expert."""
    task, folder = TwoLevers(), tmp_path_factory.mktemp("levers")
    keys = reset_keys(8, 0)
    expert = record_actions(task, keys, [[0] * wait + [2] for wait in (0, 1, 2, 3) * 2])
    assert (expert.success == 1).all() and expert.ended.all()
    others = record_actions(task, keys, [[0] * 12] * 8)
    for name, episodes in (("expert", expert), ("others", others)):
        save_trajectories(folder / f"{name}.npz", episodes)
    settings = EvolveSettings(
        task="levers", strategy="grace", objective="demonstrations",
        demonstrations=DemonstrationOptions(data=(folder / "expert.npz",), negative=(folder / "others.npz",)),
        candidates=36, generation=12, steps=49_152, final_seeds=1, baselines=(),
        option=("population=12", "generations=1", "expansions=1"),
        ppo=PPO(envs=32, unroll=12, minibatches=4, hidden=(16,)), name="run", out=folder,
    )  # fmt: skip
    outcome = run_search(settings, Silent(), checker=checker, given=Objects(task=task, proposer=WrongFirst))
    return outcome, folder / "run"


@pytest.mark.slow
def test_the_wrong_reward_is_the_best_until_its_policy_is_seen(searched: tuple[Any, Path]) -> None:
    outcome, path = searched
    results = outcome.progress.results
    wrong = results["g0000-00"]
    first = [r for r in results.values() if r.candidate.generation == 0 and r.score]
    assert wrong.feedback.extra_metrics["accuracy"] == 1.0
    assert all(wrong.score.mean >= r.score.mean for r in first)
    expansion, *_ = [r for r in results.values() if r.candidate.operator == "expand"]
    assert expansion.candidate.parents == ("g0000-00",)
    played = load_trajectories(path / "demonstrations" / f"expansion-{expansion.candidate.id}.npz")
    lever, lamp = played.states
    assert played.success.mean() < 0.5 and lamp.mean() > 0.7 and (lever == 1).mean() > 0.7, "it farms the lamp"
    again, *_ = [r for r in results.values() if r.candidate.operator == "keep" and r.candidate.parents == ("g0000-00",)]
    assert again.score.mean < wrong.score.mean - 1.0 and again.feedback.extra_metrics["accuracy"] < 0.9


def test_one_round_of_expansion_finds_what_was_meant(searched: tuple[Any, Path]) -> None:
    outcome, path = searched
    assert outcome.best.candidate.source != WRONG
    assert outcome.best.feedback.extra_metrics["accuracy"] > 0.99
    (final,) = [e for e in substance(path) if isinstance(e, Baseline) and e.name == "best"]
    assert final.score is not None and final.score.mean > 0.9


def test_the_report_shows_what_the_policy_was_paid_and_when_the_best_changed(searched: tuple[Any, Path]) -> None:
    _, path = searched
    shown = Demonstrated.of(RunView.read(path))
    assert shown is not None and shown.expansions == len(shown.policies) >= 1
    assert "its fitness was" in shown.policies[0]
    assert [name for name, _ in shown.panels] == ["along_expert", "along_others", "along_policy"]
    policies = {row["group"] for row in shown.charts["along_policy"]["data"]["values"]}
    assert policies == {f"policy of expansion {k + 1}" for k in range(shown.expansions)}
    fitness = [row["value"] for row in shown.charts["fitness_over_generations"]["layer"][-1]["data"]["values"]]
    assert fitness[0] > fitness[-1], "what was best on the first data is not of worth on all"


def test_it_is_said_whether_the_best_is_confirmed(searched: tuple[Any, Path]) -> None:
    _, path = searched
    shown = Demonstrated.of(RunView.read(path))
    assert shown is not None and shown.verdict == CONFIRMED.capitalize() + "."
    assert shown.verdict in write_report(path, path / "report.html").read_text()
