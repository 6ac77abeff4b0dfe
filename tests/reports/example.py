"""A run written by hand, whose every number is known: two generations of four, a baseline, the best trained again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxreward.records import (
    Candidate,
    Failure,
    Feedback,
    Measure,
    Notice,
    ProgramSummary,
    Proposal,
    Result,
    Score,
    TermCurve,
    Verdict,
)
from jaxreward.runs import (
    Asked,
    AskedRequest,
    Baseline,
    Checked,
    Entry,
    Event,
    Finished,
    Proposed,
    RunStarted,
    Told,
    Trained,
)
from jaxreward.runs.events import event_adapter, json_ready

BEGAN = 1_700_000_000.0
SECRET = "sk-never-to-be-seen-0123456789"

CONFIG: dict[str, Any] = {
    "task": "toy", "strategy": "limen", "proposer": "llm", "candidates": 6, "generation": 4, "seeds": 2, "steps": 1000,
    "final_seeds": 3, "final_steps": 0, "baselines": ["sparse"], "max_env_steps": 0, "ppo": {"learning_rate": 1e-3},
    "llm": {"max_usd": 2.0},
}  # fmt: skip


def score(mean: float, n: int = 2, se: float = 0.01, measure: Measure | None = None) -> Score:
    return Score(mean=mean, se=se, n=n, episodes=128 * n, **({"measure": measure} if measure else {}))


def feedback(end: float) -> Feedback:
    near = TermCurve(name="near", mean=(0.1, 0.2), minimum=(0.0, 0.0), maximum=(1.0, 1.0), share=0.9)
    return Feedback(
        steps=(500, 1000), success=(end / 2, end), episode_return=(1.0, 2.0), length=(80.0, 40.0),
        term_steps=(500, 1000), terms=(near,),
        notices=(Notice(kind="dominant_term", message="near makes up 90 % of the reward"),),
    )  # fmt: skip


def candidate(id: str, parents: tuple[str, ...] = (), **more: Any) -> Candidate:
    summary = ProgramSummary(digest=f"digest-{id}", observation_size=12, terms=("near",))
    return Candidate(
        id=id, generation=int(id[1:5]), operator="improve" if parents else "scratch", parents=parents,
        source=f"def compute_reward(state):\n    return {id!r}\n", summary=summary, **more,
    )  # fmt: skip


def generation(index: int, parents: tuple[str, ...], means: Sequence[float | None]) -> list[Event]:
    """Four candidates: two with these scores (None: filtered), one that is rejected, one that is a duplicate."""
    ids = [f"g{index:04}-{k:02}" for k in range(4)]
    operator = "improve" if parents else "scratch"
    asked = tuple(AskedRequest(id=id, operator=operator, parents=parents) for id in ids)
    proposals = [
        Proposed(proposal=Proposal(request_id=id, proposer="llm", model="m", source=candidate(id).source, calls=1,
                                   tokens=1000, cost_usd=0.05))
        for id in ids
    ]  # fmt: skip
    passed = [Checked(request_id=id, verdict=Verdict(summary=candidate(id).summary)) for id in ids[:2]]
    rejected = Checked(
        request_id=ids[2], verdict=Verdict(failure=Failure(stage="trace", message="no such field", line=3))
    )
    double = Checked(request_id=ids[3], verdict=Verdict(summary=candidate(ids[3]).summary), duplicate_of=ids[0])
    results = []
    for id, mean in zip(ids, means, strict=False):
        if mean is None:
            failure = Failure(stage="filtered", message="success 0.010 after 500 steps is short")
            results.append(Result(candidate=candidate(id, parents), failure=failure, env_steps=1000))
        else:
            found = Result(candidate=candidate(id, parents), score=score(mean), feedback=feedback(mean), env_steps=2000)
            results.append(found)
    trained = Trained(results=tuple(results), compile_s=6.0, run_s=2.0)
    return [
        Asked(generation=index, requests=asked),
        *proposals,
        *passed,
        rejected,
        double,
        trained,
        Told(generation=index),
    ]


def events(
    config: dict[str, Any] | None = None, best: float = 0.9, started: dict[str, Any] | None = None
) -> list[Event]:
    """A finished search; the second generation finds the `best`."""
    said = {**CONFIG, **(config or {})}
    command = "jaxreward evolve --task toy"
    begun = RunStarted(**{  # type: ignore[arg-type]
        "config": said, "versions": {"jaxreward": "0.1.0"}, "task": said["task"], "strategy": said["strategy"],
        "proposer": said["proposer"], "command": command, **(started or {}),
    })  # fmt: skip
    return [
        begun, *generation(0, (), (0.4, None)), *generation(1, ("g0000-00",), (best, 0.3)),
        Baseline(name="best", digest="digest-g0001-00", steps=1000, score=score(best - 0.05, n=3), env_steps=3000),
        Baseline(name="sparse", digest="sparse", steps=1000, score=score(0.2, n=3), env_steps=3000),
        Finished(reason="all candidates are trained", best="g0001-00"),
    ]  # fmt: skip


def line(entry: Entry) -> str:
    record = {
        "v": 1,
        "seq": entry.seq,
        "at": entry.at,
        "event": json_ready(event_adapter.dump_python(entry.event, mode="json")),
    }
    return json.dumps(record) + "\n"


def entries(of: Sequence[Event]) -> list[Entry]:
    """Ten seconds from each event to the next."""
    return [Entry(seq, BEGAN + 10.0 * seq, event) for seq, event in enumerate(of)]


def write_run(folder: Path, of: Sequence[Event] | None = None) -> Path:
    """A run's folder with such a log."""
    folder.mkdir(parents=True)
    (folder / "programs").mkdir()
    (folder / "config.toml").write_text('task = "toy"\n')
    (folder / "events.jsonl").write_text("".join(map(line, entries(events() if of is None else of))))
    return folder
