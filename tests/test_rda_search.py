"""A search with subtasks and a scripted judge, on real trainings."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from jaxreward.errors import End, EndCause, InvalidSetting, UserError
from jaxreward.evolution import run_search
from jaxreward.evolution.filming import policy_of
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.proposers.judging import ScriptedJudge
from jaxreward.proposers.proposer import Answers, OneByOne
from jaxreward.records import Feedback, Instruction, Proposal, Subtask, Watched, read_subtasks
from jaxreward.reports.run_view import RunView
from jaxreward.runs import Asked, Checked, Proposed, Trained, read_log
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.search.selection import merit, scored
from jaxreward.tasks import card
from jaxreward.training import PPO, train
from tests.careful_corridor import BACK, CarefulCorridor
from tests.silent import Silent

pytestmark = [pytest.mark.usefixtures("unoptimised", "unsynced"), pytest.mark.long]
TASK = CarefulCorridor()
RNG_OF = lambda _: np.random.default_rng(0)  # noqa: E731
SETTINGS = EvolveSettings(
    task="careful-corridor", strategy="rda", option=("samples=2",), candidates=4, generation=2, seeds=1, steps=4096,
    final_seeds=1, baselines=(), seed=1, ppo=PPO(envs=16, unroll=8, minibatches=2, hidden=(8,), learning_rate=0.01),
)  # fmt: skip


def search(checker: Any, out: Path, **changes: Any) -> list[Any]:
    settings = dataclasses.replace(SETTINGS, out=out, name="run", **changes)
    run_search(settings, Silent(), task=TASK, checker=checker)
    return [entry.event for entry in read_log(out / "run" / "events.jsonl")]


@pytest.fixture(scope="module")
def whole(checker, tmp_path_factory):
    out = tmp_path_factory.mktemp("rda")
    return search(checker, out), out


def asked(events: list[Any]) -> list[list[str]]:
    return [[r.operator for r in event.requests] for event in events if isinstance(event, Asked)]


def seen(events: list[Any]) -> dict[str, Watched]:
    """What was seen of each candidate."""
    of = {r.id: r.parents[0] for e in events if isinstance(e, Asked) for r in e.requests if r.operator == "watch"}
    said = {e.proposal.request_id: e.proposal.words for e in events if isinstance(e, Proposed)}
    return {id: found for request, id in of.items() if (found := Watched.read(said.get(request, ""))) is not None}


def test_subtasks_programs_judge_and_again(whole):
    events, out = whole
    assert asked(events) == [["divide"], ["compose"] * 2, ["watch"] * 2, ["revise"], ["amend"] * 2, ["watch"] * 2]
    summaries = [e.verdict.summary for e in events if isinstance(e, Checked)]
    assert all(summary is not None and list(summary.terms) == ["arrive", "turn"] for summary in summaries)
    results = {r.candidate.id: r for e in events if isinstance(e, Trained) for r in e.results}
    found = seen(events)
    assert set(found) == set(results)
    for id, watched in found.items():
        metrics = (results[id].feedback or Feedback()).extra_metrics
        assert watched.scores() == {"arrive": metrics["arrived"], "turn": metrics["went_back"]}
    view = RunView.read(out / "run")
    assert view.best is not None
    assert found[view.best.candidate.id].score == max(watched.score for watched in found.values())


HASTY = f"""
def hit(state, action, next_state):
    return next_state.hit.astype(jnp.float32)


{BACK}

def compute_reward(state, action, next_state):
    terms = {{
        "arrive": 10.0 * hit(state, action, next_state),
        "turn": WEIGHT * back(state, action, next_state),
    }}
    return sum(terms.values()), terms
"""


class Designer(OneByOne):
    """Asks for too little of one subtask at first, and for more once a judge says so."""

    name = "designer"

    def __init__(self) -> None:
        self.read = list[str]()

    def propose(self, request: Any, rng: Any) -> Proposal:
        if request.operator in ("divide", "revise"):
            words = "- arrive: arrive at the right end\n- turn: go back a step on the way"
            return Proposal(request_id=request.id, words=words, proposer=self.name)
        watched = Watched.read(request.watched.words) if request.watched else None
        low = watched is not None and watched.scores()["turn"] < 0.5
        self.read += watched.reasons("turn") if watched else []
        weight = 1.0 if low else 0.001
        source = "import jax.numpy as jnp\n" + HASTY.replace("WEIGHT", f"{weight + 0.0001 * int(request.id[-2:])!r}")
        return Proposal(request_id=request.id, source=source, proposer=self.name)


def test_the_policy_that_is_kept_is_the_winners(whole):
    _, out = whole
    best = RunView.read(out / "run").best
    assert best is not None and best.candidate.summary is not None
    kept = json.loads((out / "run" / "best-policy.json").read_text())
    assert kept["digest"] == best.candidate.summary.digest
    tags = Checkpoints(out / "run" / "checkpoints").tags()
    assert "best-policy" in tags and f"policy-{best.candidate.id}" in tags


class Spent(Designer):
    """Its budget ends while programs are asked for."""

    def propose_all(self, requests: Any, rng_of: Any) -> Answers:
        found = super().propose_all(requests, rng_of)
        spent = End("the requests are spent", EndCause.REQUESTS) if requests[0].operator == "amend" else None
        return dataclasses.replace(found, spent=spent)


@pytest.mark.long
def test_what_is_trained_is_judged_though_the_proposers_budget_is_spent(tmp_path):
    import jaxreward as jr

    jr.evolve(
        TASK, strategy="rda", option={"samples": 1}, candidates=9, generation=1, seeds=1, steps=2048, final_seeds=0,
        baselines=(), proposer=Spent(), ppo=SETTINGS.ppo, out=tmp_path, name="run",
    )  # fmt: skip
    events = [entry.event for entry in read_log(tmp_path / "run" / "events.jsonl")]
    assert len(seen(events)) == sum(len(e.results) for e in events if isinstance(e, Trained)) == 2


@pytest.mark.long
def test_a_run_that_was_cut_off_goes_on_alike(whole, checker, tmp_path):
    search(checker, tmp_path, candidates=2)
    search(checker, tmp_path, candidates=4, resume=True)
    assert seen([e.event for e in read_log(tmp_path / "run" / "events.jsonl")]) == seen(whole[0])


@pytest.mark.long
def test_what_was_recorded_is_replayed_with_what_was_seen(whole, checker, tmp_path):
    events = search(checker, tmp_path, proposer="replay", recording=whole[1] / "run")
    assert seen(events) == seen(whole[0]) and asked(events) == asked(whole[0])


@pytest.mark.long
def test_a_reward_that_succeeds_without_doing_as_told_is_caught_and_mended(checker, tmp_path):
    """Success alone would keep it."""
    import jaxreward as jr

    designer = Designer()
    jr.evolve(
        TASK, strategy="rda", option={"samples": 1}, candidates=2, generation=1, seeds=1, steps=16384, final_seeds=0,
        baselines=(), proposer=designer, ppo=dataclasses.replace(SETTINGS.ppo, entropy=0.0), out=tmp_path, name="run",
    )  # fmt: skip
    events = [entry.event for entry in read_log(tmp_path / "run" / "events.jsonl")]
    first, second = (r for e in events if isinstance(e, Trained) for r in e.results)
    assert merit(first) >= merit(second) and scored(second).mean > 0.85
    before, after = (seen(events)[r.candidate.id].scores()["turn"] for r in (first, second))
    assert before < 0.1 < 0.8 < after
    best = RunView.read(tmp_path / "run").best
    assert best is not None and best.candidate.id == second.candidate.id
    assert any("hardly done" in why and "go back a step" in why for why in designer.read)


@pytest.mark.parametrize("options", [(), ("watch=false",)])
def test_tasks_without_an_instruction_are_refused(checker, tmp_path, options):
    with pytest.raises(InvalidSetting, match="is for tasks with an instruction"):
        settings = dataclasses.replace(SETTINGS, task="probe-choice", option=options, out=tmp_path)
        run_search(settings, Silent(), checker=checker)


class Told(CarefulCorridor):
    """With subtasks of the test's."""

    subtasks: Any = ()

    def instruction(self) -> Any:
        return self.subtasks


@pytest.mark.parametrize(
    ("subtasks", "words"),
    [
        ([Subtask(name="a", words="do", metric="gone")], "scored by 'gone', which is none of the task's extra metrics"),
        ([Subtask(name="a", words="do", terms=("gone",))], "names 'gone', which is no term of the vocabulary"),
        ([Subtask(name="a", words="do"), Subtask(name="a", words="go")], "two subtasks of careful-corridor are called"),
        ("walk", "returns str: let it return Instruction"),
    ],
)
def test_what_an_instruction_names_is_checked(subtasks, words):
    import jaxreward as jr

    task = Told()
    given = Instruction(words="Go.", subtasks=tuple(subtasks)) if isinstance(subtasks, list) else subtasks
    object.__setattr__(task, "subtasks", given)
    assert any(words in str(finding) for finding in jr.check_task(task))
    with pytest.raises(UserError, match=words.split(",")[0]):
        card(task)


def test_an_attribute_of_that_name_is_no_instruction():
    task = Told()
    object.__setattr__(task, "instruction", "Walk to the end.")
    assert card(task).instruction is None
    object.__setattr__(task, "instruction", Instruction(words="Walk to the end.", subtasks=()))
    with pytest.raises(UserError, match="`instruction` of careful-corridor is a value: make it a method"):
        card(task)


@pytest.mark.long
def test_a_metric_for_every_subtask_is_needed_to_judge(checker, tmp_path):
    task = Told()
    object.__setattr__(task, "subtasks", Instruction(words="Go.", subtasks=(Subtask(name="a", words="do"),)))
    with pytest.raises(InvalidSetting, match="the subtask 'a' of careful-corridor has no metric"):
        run_search(dataclasses.replace(SETTINGS, out=tmp_path), Silent(), task=task, checker=checker)


def test_a_judge_has_no_opinion_on_what_it_cannot_measure(result_of):
    judge = ScriptedJudge(TASK.instruction())
    answers = judge.judge_all([result_of({"arrived": 1.0})], RNG_OF)
    assert answers.proposals[0].failure is not None and "went_back" in answers.proposals[0].failure.message


@pytest.fixture
def result_of():
    from tests.proposers.material import feedback, request, result

    def watch(metrics: dict[str, float]) -> Any:
        parent = result("", 0.5, name="a")
        return request("watch", parent.model_copy(update={"feedback": feedback(extra_metrics=metrics)}))

    return watch


def test_a_value_that_is_no_number_is_not_done(result_of):
    judge = ScriptedJudge(TASK.instruction())
    answers = judge.judge_all(
        [result_of({"arrived": float("nan"), "went_back": 1.7})], lambda _: np.random.default_rng(0)
    )
    seen = Watched.read(answers.proposals[0].words)
    assert seen is not None and seen.scores() == {"arrive": 0.0, "turn": 1.0}


def test_a_seed_that_diverged_does_nothing_that_it_was_told(result_of):
    judge, asked = ScriptedJudge(TASK.instruction()), result_of({"arrived": 1.0, "went_back": 0.5})
    parent = asked.parents[0]
    diverged = parent.model_copy(update={
        "feedback": parent.feedback.model_copy(update={"diverged": 1}),
        "score": parent.score.model_copy(update={"n": 2}),
    })  # fmt: skip
    answers = judge.judge_all([asked.model_copy(update={"parents": (diverged,)})], RNG_OF)
    seen = Watched.read(answers.proposals[0].words)
    assert seen is not None and seen.scores() == {"arrive": 0.5, "turn": 0.25}


def test_subtasks_are_read_as_they_are_written():
    words = "\n".join(["- reach: come near: nearer", "- Hold: no name", "text", "- reach: twice", "- pull: now"])
    assert [(s.name, s.words) for s in read_subtasks(words)] == [("reach", "come near: nearer"), ("pull", "now")]


@pytest.mark.long
def test_agents_go_on_from_the_policy_of_the_best(checker, tmp_path):
    """A program of the second iteration, trained from the policy of its parent, gives what the search has."""
    events = search(checker, tmp_path, option=("samples=2", "warm=true"), evolve="reward", steps=256)
    store = Checkpoints(tmp_path / "run" / "checkpoints")
    first, second = (e.results for e in events if isinstance(e, Trained))
    (parent,) = second[0].candidate.parents
    assert parent in {r.candidate.id for r in first}
    program = checker.check(second[0].candidate.source, TASK)[1]
    start, kept = (policy_of(store, [f"policy-{id}"], TASK, program, SETTINGS.ppo)
                   for id in (parent, second[0].candidate.id))  # fmt: skip
    warm, cold = (train(TASK, [program], SETTINGS.ppo, seeds=1, steps=256, start=of).variables(0, 0)
                  for of in (start, None))  # fmt: skip
    near = [np.allclose(a, b, atol=1e-4) for a, b in zip(jax.tree.leaves(warm), jax.tree.leaves(kept), strict=True)]
    far = [np.allclose(a, b, atol=1e-4) for a, b in zip(jax.tree.leaves(cold), jax.tree.leaves(kept), strict=True)]
    assert all(near) and not all(far)


def test_only_agents_that_observe_alike_go_on():
    with pytest.raises(InvalidSetting, match="only with the same observation"):
        dataclasses.replace(SETTINGS, option=("warm=true",), evolve="both").check()
