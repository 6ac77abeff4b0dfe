"""The policies that a search trains: which are kept, what judges look at of them, and which others begin with."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaxreward import files
from jaxreward.config import parse_json
from jaxreward.evolution.evidence import save_evidence
from jaxreward.evolution.filming import policy_of
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.objectives.training.generation import Agents
from jaxreward.operators import REPEATS
from jaxreward.programs import Program
from jaxreward.proposers.human.people import PICTURES
from jaxreward.proposers.judging import AgentJudge
from jaxreward.records import Candidate, Result
from jaxreward.reports.films import write_film, write_strip
from jaxreward.reports.run_view import RunView
from jaxreward.runs import Run
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.runs.disk import make_folder, write_atomic
from jaxreward.search import SearchStrategy, State
from jaxreward.search.selection import merit
from jaxreward.tasks import Drawable, Task
from jaxreward.training import Learner, TrainResult
from jaxreward.training.episodes import play
from jaxreward.training.networks import Variables

POLICY = "best-policy.json"
"""File of a run with the digest of the program that the policy in `checkpoints/best-policy` was trained with."""


@dataclass(frozen=True)
class Policies:
    """The policies of a search, in the store of its run. `note` shows a sentence to the user."""

    run: Run
    store: Checkpoints
    task: Task
    settings: EvolveSettings
    strategy: SearchStrategy[Any]
    judge: AgentJudge | None
    note: Callable[[str], None]

    @property
    def keeps_all(self) -> bool:
        """Whether those of all candidates are kept: a judge says later which is the best, or children need them."""
        return self.judge is not None or self.strategy.watches or self.strategy.starts_warm

    def save(
        self,
        sound: Sequence[Agents],
        candidates: Sequence[Candidate],
        results: Sequence[Result],
        state: State[Any],
        untold: Sequence[Result] = (),
    ) -> None:
        """Keep what is wanted of the agents of a training that did not all diverge, whose `results` are these; `untold`
        are earlier ones that the strategy does not know yet."""
        if self.keeps_all:
            for agents in sound:
                self._save_agents(agents)
        elif sound:
            known = [_comparable(self.strategy.best(state), candidates, state), *untold]
            best = max((merit(r) for r in known if r is not None and r.score is not None), default=())
            merits = {r.candidate.id: merit(r) for r in results if r.score is not None}
            agents = max(sound, key=lambda a: merits.get(a.candidate.id, ()))
            if merits.get(agents.candidate.id, ()) > best:
                save_policy(self.run, self.store, agents.trained, agents.row)

    def _save_agents(self, agents: Agents) -> None:
        """Save the policy of a candidate's best seed, and what the judge looks at."""
        row, trained, s = agents.row, agents.trained, self.settings
        policy = trained.variables(row, trained.best_seed(row))
        self.store.save(_tag_of(agents.candidate.id), policy)
        if self.judge is not None and self.judge.films:
            draw_agents(self.task, agents.candidate, trained, row, s.hyper, self.run.path / PICTURES)
        elif self.judge is not None and s.frames:
            save_evidence(
                self.run.path, agents.candidate.id, self.task, trained.programs[row], policy, s.hyper,
                episodes=s.llm.judge_episodes, frames=s.frames,
            )  # fmt: skip

    def start(self, candidates: Sequence[Candidate], programs: Sequence[Program]) -> Variables | None:
        """The policy that the agents of candidates begin with: that of the one program that all were made from, where
        the strategy starts warm; None for new agents."""
        parents = {candidate.parents[:1] for candidate in candidates}
        if not self.strategy.starts_warm or parents == {()}:
            return None
        first = next(iter(parents)) if len(parents) == 1 else ()
        tags = [_tag_of(id) for id in first]
        found = policy_of(self.store, tags, self.task, programs[0], self.settings.hyper)
        if found is None:
            self.note("there is no policy of the parent to begin with: these agents are new")
        return found

    def keep_best(self, best: Result | None) -> None:
        """Make the policy of the best candidate that of the run, where those of all are kept."""
        if not self.keeps_all or best is None or best.candidate.summary is None:
            return
        text, path = json.dumps({"digest": best.candidate.summary.digest}), self.run.path / POLICY
        known = files.is_there(path) and files.read_text(path) == text
        if not known and self.store.copy(_tag_of(best.candidate.id), "best-policy"):
            write_atomic(path, text)


def _tag_of(id: str) -> str:
    """The checkpoint with the policy of a candidate."""
    return f"policy-{id}"


def _comparable(best: Result | None, candidates: Sequence[Candidate], state: State[Any]) -> Result | None:
    """The best so far by scores that those of `candidates` can be compared with: programs that are scored again on
    fresh seeds have them by these."""
    if state.confirmation is None or any(candidate.operator not in REPEATS for candidate in candidates):
        return best
    return state.confirmation.leader


def save_policy(run: Run, store: Checkpoints, trained: TrainResult, row: int) -> None:
    """Save the policy of the best seed of a program that was trained, and the digest of the program."""
    store.save("best-policy", trained.variables(row, trained.best_seed(row)))
    write_atomic(run.path / POLICY, json.dumps({"digest": trained.programs[row].digest}))


def keep_fresh(store: Checkpoints, name: str, trained: TrainResult, row: int, steps: int) -> None:
    """Save the policies of a program of the final training in place of earlier ones under its `name`; those of seeds
    that diverged are left out."""
    earlier = re.compile(rf"fresh-{re.escape(name)}-[0-9a-f]+-\d+-\d+")
    for tag in store.tags():
        if earlier.fullmatch(tag):
            store.delete(tag)
    for seed in np.flatnonzero(~trained.diverged[row]).tolist():
        store.save(f"{fresh_tag(name, trained.programs[row].digest, steps)}-{seed:03d}", trained.variables(row, seed))


def fresh_tag(name: str, digest: str, steps: int) -> str:
    """What the tags of the policies of a program of the final training begin with."""
    return f"fresh-{name}-{digest[:16]}-{steps}"


def is_policy_of(view: RunView, winner: Result) -> bool:
    """Whether the best policy of a run is that of its winner: while a generation trains it may be the next one's."""
    try:
        digest = parse_json(files.read_text(view.path / POLICY))["digest"]
    except (OSError, ValueError, KeyError, TypeError):
        return view.standing == "finished"  # of an earlier version, which did not say
    return winner.candidate.summary is not None and digest == winner.candidate.summary.digest


def draw_agents(task: Task, candidate: Candidate, trained: TrainResult, row: int, ppo: Learner, folder: Path) -> None:
    """A film and a strip, `<id>.gif` and `<id>.png`, of the best seed of a candidate that was trained to the end.

    `folder` lies in that of a run. All candidates play the same episodes. The task must be `Drawable`.
    """
    assert isinstance(task, Drawable)
    make_folder(folder, below=folder.parent)
    seed = trained.best_seed(row)
    episodes = play(task, trained.programs[row], trained.variables(row, seed), ppo)
    frames = [[task.draw(episode.state(t)) for t in range(episode.length + 1)] for episode in episodes]
    write_film(folder / f"{candidate.id}.gif", frames, below=folder.parent)
    write_strip(folder / f"{candidate.id}.png", frames, below=folder.parent)
