"""Every strategy in a whole run: words and programs in the log, killed at every event, replayed.

Checking and training are formulas here: what is on trial is the loop, its log and the strategy.
"""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from jaxreward.errors import EndCause, FileProblem, UnusableFile
from jaxreward.evolution.loop import Evolution
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Setup
from jaxreward.objectives.training.objective import TrainingObjective
from jaxreward.operators import OPERATORS, WORDS
from jaxreward.programs import Checker
from jaxreward.proposers.human.judge import Judge
from jaxreward.proposers.proposer import Answers, OneByOne
from jaxreward.proposers.replay import ReplayProposer
from jaxreward.records import Failure, ProgramSummary, Proposal, Request, Result, Score, Seen, Verdict, Watched
from jaxreward.runs import Asked, Proposed, Run, StopSignal, Told, Trained, read_log
from jaxreward.search import make_strategy
from jaxreward.search.registry import STRATEGIES
from jaxreward.tasks import make_task
from tests.ends import cause_of
from tests.silent import Silent

pytestmark = pytest.mark.usefixtures("unsynced")
SMALL = {
    "rf-agent": ("initial=2", "counts=1,1,1,1,1"),
    "forge": ("initial=3",),
    "grace": ("population=3",),
    "revolve": ("initial=3", "islands=2", "migration_interval=3", "migration=1"),
    "limen": ("initial=3", "islands=2", "migration_interval=4"),
}
SETTINGS = EvolveSettings(task="probe-corridor", candidates=11, generation=4, final_seeds=0, baselines=())


class Talkative(OneByOne):
    """Programs of which some are rejected or repeat others, and words if it has any."""

    name = "talkative"

    def __init__(self, words: bool = True) -> None:
        self.words = words

    def propose(self, request: Request, rng: np.random.Generator) -> Proposal:
        if request.operator in WORDS:
            return self._say(request, rng)
        kind = rng.choice(["bad", "again", "new"], p=[0.1, 0.1, 0.8])
        seen = "" if kind == "bad" else "same" if kind == "again" else f"{request.id} {rng.random()}"
        thought = f"thought of {request.id}" if request.thought else ""
        source = f"{seen} " + " ".join(parent.candidate.id for parent in request.parents)
        return Proposal(request_id=request.id, proposer=self.name, source=source, thought=thought)

    def _say(self, request: Request, rng: np.random.Generator) -> Proposal:
        if not self.words:
            failure = Failure(stage="declined", message="no words")
            return Proposal(request_id=request.id, proposer=self.name, failure=failure)
        about = request.parents[0].candidate.id if request.parents else ""
        words = {"align": f"aligned {about}", "verify": f"{rng.uniform(-1, 1):.2f}", "plan": "- goal: reach it"}
        words |= {"divide": "- goal: reach it", "revise": "- goal: reach it at once"}
        words["watch"] = Watched(subtasks={"goal": (Seen(score=float(rng.uniform())),)}).as_words()
        return Proposal(request_id=request.id, proposer=self.name, words=words[request.operator])


class Formulas:
    """A checker for them."""

    def check_many(self, sources: list[str], task: Any, *, debug: bool = False) -> list[Any]:
        found = []
        for source in sources:
            digest = hashlib.sha256(source.encode()).hexdigest()
            summary = ProgramSummary(
                digest=digest, observation_size=3, reward_nodes=int(digest[:2], 16) * 8, terms=("goal",)
            )  # fmt: skip
            failure = Failure(stage="guard", message="empty") if source.startswith(" ") else None
            program = None if failure else SimpleNamespace(digest=digest)
            found.append((Verdict(summary=None if failure else summary, failure=failure), program))
        return found


class Search(Evolution):
    """A search with given scores."""

    def _train(self, candidates: Any, known: Any) -> None:
        results = []
        for candidate in candidates:
            value = int(candidate.summary.digest[:8], 16) / 16**8
            if value > 0.9:
                results.append(Result(candidate=candidate, failure=Failure(stage="diverged", message="NaN")))
            else:
                results.append(Result(candidate=candidate, score=Score(mean=value, se=0.1, n=2, episodes=8)))
        self.log(Trained(results=tuple(results)))


class Voters:
    """People who answer at once."""

    operators, waits = frozenset({"prefer"}), True

    def open(self, context: Any) -> None:
        return None

    def judge_all(self, requests: Any, rng_of: Any) -> Answers:
        def vote(request: Request) -> Proposal:
            words = str(rng_of(request).choice(["first", "second", "equal"]))
            return Proposal(request_id=request.id, proposer="people", words=words)

        return Answers(tuple(map(vote, requests)))


def search(out: Path, strategy: str, proposer: Any = None, **changes: Any) -> Evolution:
    changes = {"option": SMALL.get(strategy, ()), **changes}
    settings = dataclasses.replace(SETTINGS, out=out, name="run", strategy=strategy, **changes)
    made = make_strategy(strategy, **settings.strategy_options())
    judge = cast(Judge, Voters()) if made.asks_people and not isinstance(proposer, ReplayProposer) else None
    task = make_task("probe-corridor")
    parts = Setup(task, TrainingObjective(task, settings), made, proposer or Talkative(), judge=judge)
    path = out / "run"
    with Run.resume(path) if path.exists() else Run.create(path, settings.as_config()) as run:
        main = Search(run, settings, parts, cast(Checker, Formulas()), Silent(), StopSignal())
        main.search()
        return main


def events(out: Path, *kinds: type) -> list[Any]:
    found = [entry.event for entry in read_log(out / "run" / "events.jsonl")]
    return [event for event in found if not kinds or isinstance(event, kinds)]


def substance(out: Path) -> list[Any]:
    return [event for event in events(out) if event.type not in ("run_started", "resumed")]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """An uninterrupted run of each strategy, made when it is first asked for."""
    made: dict[str, tuple[Evolution, Path]] = {}

    def run_of(name: str) -> tuple[Evolution, Path]:
        if name not in made:
            out = tmp_path_factory.mktemp(name)
            made[name] = search(out, name), out
        return made[name]

    return run_of


@pytest.fixture(scope="module", params=sorted(STRATEGIES))
def whole(request, runs):
    return request.param, *runs(request.param)


def test_a_run_trains_its_budget_exactly_and_records_depth(whole):
    name, main, _ = whole
    assert main.progress.spent.trained == SETTINGS.candidates
    results = main.progress.results
    for result in results.values():
        candidate = result.candidate
        above = [results[id].candidate.depth for id in candidate.parents]
        assert candidate.depth == (1 + max(above) if above and candidate.operator not in WORDS else 0)
    assert any(r.candidate.depth for r in results.values()) == (name != "best-of-n")
    assert {r.candidate.operator for r in results.values()} <= set(OPERATORS)


def test_text_requests_cost_no_attempts(whole):
    name, main, out = whole
    words = [r for e in events(out, Asked) for r in e.requests if r.operator in WORDS]
    expected = {"rf-agent": {"align", "verify"}, "forge": {"plan"}, "rda": {"divide", "watch", "revise"}}
    assert {r.operator for r in words} == expected.get(name, set())
    spent = main.progress.spent
    assert spent.words == len(words) and spent.attempts == len(events(out, Proposed)) - len(words)
    assert all(main.progress.results[r.id].words and not main.progress.results[r.id].score for r in words)


@pytest.mark.long
def test_killed_at_every_event_and_resumed_the_end_is_the_same(whole, tmp_path):
    name, _, out = whole
    lines = (out / "run" / "events.jsonl").read_bytes().splitlines(keepends=True)
    for cut in range(1, len(lines)):
        copy = tmp_path / str(cut)
        shutil.copytree(out / "run", copy / "run")
        (copy / "run" / "events.jsonl").write_bytes(b"".join(lines[:cut]))
        search(copy, name)
        assert substance(copy) == substance(out), cut


def test_a_recorded_run_replays_to_the_same_log(whole, tmp_path):
    name, _, out = whole
    search(tmp_path, name, ReplayProposer(out / "run"))
    assert substance(tmp_path) == substance(out)


def test_an_aligned_thought_is_what_later_requests_show(runs):
    main, _ = runs("rf-agent")
    trained = [r for r in main.progress.results.values() if r.score and r.candidate.generation == 0]
    assert trained and all(r.candidate.thought == f"aligned {r.candidate.id}" for r in trained)


def test_the_log_contains_the_tree(runs):
    main, out = runs("rf-agent")
    nodes: dict[str, Any] = {}
    for event in events(out, Told):
        nodes |= {node["id"]: node for node in event.account["nodes"]}
    scored = {r.candidate.id for r in main.progress.results.values() if r.score}
    assert scored <= set(nodes) and all(node["parent"] in {*nodes, "", None} for node in nodes.values())


@pytest.mark.parametrize("name", ["rf-agent", "forge"])
def test_declined_text_requests_are_not_repeated(tmp_path, name):
    main = search(tmp_path, name, Talkative(words=False))
    assert main.progress.spent.trained == SETTINGS.candidates
    asked = [a.requests[0].operator for a in events(tmp_path, Asked) if a.requests[0].operator in WORDS]
    assert asked and len(asked) == len(set(asked))
    assert not any(r.words for r in main.progress.results.values())


JUDGED = ("fitness=preference", "initial=3", "islands=2", "votes=1")


def test_a_replay_has_its_votes_from_the_recording():
    settings = dataclasses.replace(SETTINGS, strategy="revolve", option=JUDGED)
    assert Setup.of(settings).judge is not None
    with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.MISSING):  # it asks for no judge
        Setup.of(dataclasses.replace(settings, proposer="replay", recording=Path("nowhere")))


@pytest.mark.parametrize("generation", [3, 4, 11])
def test_people_judge_every_candidate_also_those_of_the_last_generation(tmp_path, generation):
    main = search(tmp_path, "revolve", option=JUDGED, generation=generation)
    trained = {r.candidate.id for r in main.progress.results.values() if r.score}
    assert main.progress.spent.trained == SETTINGS.candidates
    assert set(main.progress.state.memory.ratings) == trained
    assert cause_of(main.spent()) is EndCause.CANDIDATES


def test_a_judged_run_is_resumed_and_replayed_without_new_votes(tmp_path):
    search(tmp_path / "a", "revolve", option=JUDGED)
    lines = (tmp_path / "a" / "run" / "events.jsonl").read_bytes().splitlines(keepends=True)
    for cut in range(1, len(lines), 7):
        copy = tmp_path / str(cut)
        shutil.copytree(tmp_path / "a" / "run", copy / "run")
        (copy / "run" / "events.jsonl").write_bytes(b"".join(lines[:cut]))
        search(copy, "revolve", option=JUDGED)
        assert substance(copy) == substance(tmp_path / "a"), cut
    search(tmp_path / "b", "revolve", ReplayProposer(tmp_path / "a" / "run"), option=JUDGED)
    assert substance(tmp_path / "b") == substance(tmp_path / "a")


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_a_proposer_whose_programs_all_fail_ends_the_run_soon(tmp_path, name):
    class Hopeless(Talkative):
        def propose(self, request, rng):
            proposal = super().propose(request, rng)
            return proposal.model_copy(update={"source": " "}) if proposal.source else proposal

    main = search(tmp_path, name, Hopeless(), candidates=100)
    assert main.progress.spent.attempts <= 5 * SETTINGS.generation
    asked = [r for e in events(tmp_path, Asked) for r in e.requests if r.operator in WORDS]
    assert len(asked) <= 6 * SETTINGS.generation


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {"bandit": True}) for name in sorted(STRATEGIES) if name != "rda"),
        *((name, {"ablations": 2}) for name in ("limen", "rf-agent")),
    ],
    ids=str,
)
def test_with_bandit_or_ablations_the_log_still_folds_to_the_same(tmp_path, name, options):
    main = search(tmp_path, name, **options)
    assert main.progress.spent.trained == SETTINGS.candidates
    lines = (tmp_path / "run" / "events.jsonl").read_bytes().splitlines(keepends=True)
    copy = tmp_path / "cut"
    shutil.copytree(tmp_path / "run", copy / "run")
    (copy / "run" / "events.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]))
    search(copy, name, **options)
    assert substance(copy) == substance(tmp_path)
