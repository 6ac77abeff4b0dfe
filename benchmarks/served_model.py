"""A search by a language model that writes programs of mixed quality, with and without what searches may add to it.

    python benchmarks/served_model.py --out benchmarks/results/served_model.json

The model is served over HTTP on loopback. Some of its answers are no programs, some are programs from scratch, of parts
that the task's vocabulary has, and the others are edits of a program that the prompt shows, as by the genetic proposer
without blocks: it does not know what leads to the goal. Each way of searching has the same number of candidates, and
the same answers to the same prompts; `confirm` trains some of them again, and `env_steps` of a row counts everything
but the training on fresh seeds of what was found. One call follows another, so that a search with the same seed is the
same. The same command goes on with the searches that its file lacks.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.command import begun, save, status_of
from jaxreward.commands.resolve import parse
from jaxreward.config import Arg, check_bounds
from jaxreward.errors import UserError
from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
from jaxreward.records import Candidate, Request, Result, Score, TaskCard
from jaxreward.runs.provenance import commit
from tests.proposers.server import Answer, ChatServer

WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "stages": {"stages": True},
    "ablations": {"ablations": 2},
    "behaviour": {"option": {"descriptors": "behaviour"}},
    "restarts": {"option": {"patience": 2, "restarts": 0.2}},
    "confirm": {"confirm_seeds": 3},
    "all": {
        "stages": True, "ablations": 2, "confirm_seeds": 3,
        "option": {"descriptors": "behaviour", "patience": 2, "restarts": 0.2},
    },
}  # fmt: skip
"""What a search has besides the defaults."""

_PROGRAM = re.compile(r"```python\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class ServedModelSettings:
    """Search by a model of mixed quality."""

    task: str = "xland-hard"
    """What to solve."""
    ways: tuple[str, ...] = tuple(WAYS)
    """What searches have besides the defaults."""
    strategy: str = "limen"
    """How to search."""
    searches: Annotated[int, Arg(least=1)] = 5
    """Searches of each kind."""
    candidates: Annotated[int, Arg(least=1)] = 48
    """Candidates of a search."""
    generation: Annotated[int, Arg(least=1)] = 12
    """Candidates of a generation."""
    steps: Annotated[int, Arg(least=1)] = 100_000
    """Environment steps of each candidate, with one training seed."""
    final_seeds: Annotated[int, Arg(least=1)] = 5
    """Fresh seeds of what was found."""
    broken: float = 0.2
    """The share of answers that are no programs."""
    scratch: float = 0.3
    """The share of answers that are programs from scratch."""
    unsafe_no_sandbox: bool = False
    """Check programs without the sandbox. For systems that have none."""
    out: Path | None = None
    """File for the results, written after every search."""


class Model:
    """Answers that depend on the prompt, the number of times that it came, and `seed` alone."""

    def __init__(self, card: TaskCard, s: ServedModelSettings, seed: int) -> None:
        self._proposer, self._settings, self._seed = GeneticProposer(card, blocks=False), s, seed
        self._came: dict[str, int] = {}

    def __call__(self, body: Mapping[str, Any], _: int) -> Answer:
        prompt = json.dumps(body["messages"])
        number = self._came[prompt] = self._came.get(prompt, -1) + 1
        digest = hashlib.sha256(f"{self._seed} {number} {prompt}".encode()).digest()
        return Answer(self.answer(str(body["messages"][-1]["content"]), np.random.default_rng(list(digest))))

    def answer(self, prompt: str, rng: np.random.Generator) -> str:
        """Words with a program, or something that is none."""
        shown = [text for text in _PROGRAM.findall(prompt) if "def compute_reward" in text]
        chance = rng.random()
        if chance < self._settings.broken:
            return (
                "Pay for the goal.\n\n```python\ndef compute_reward(state, action, next_state)\n    return 1.0\n```\n"
            )
        edited = bool(shown) and chance >= self._settings.broken + self._settings.scratch
        parents = (_result(shown[int(rng.integers(len(shown)))]),) if edited else ()
        operator = "structure" if edited else "scratch"
        request = Request(id="served", generation=0, operator=operator, parents=parents, evolve="both")
        return f"What changes is below.\n\n```python\n{self._proposer.propose(request, rng).source}\n```\n"


def _result(source: str) -> Result:
    candidate = Candidate(id="shown", generation=0, operator="scratch", source=source)
    return Result(candidate=candidate, score=Score(mean=0.0, se=0.0, n=1, episodes=1))


def search_row(way: str, seed: int, s: ServedModelSettings) -> dict[str, Any]:
    """What a search found, and how much it used."""
    import jaxreward as jr
    from jaxreward.tasks import card, make_task

    os.environ.setdefault("OPENAI_API_KEY", "sk-served-on-loopback")
    model = Model(card(make_task(s.task)), s, seed)
    with ChatServer(model) as server, tempfile.TemporaryDirectory() as folder:
        run = jr.evolve(
            s.task, strategy=s.strategy, proposer="llm", model=("openai/served",), api_base=server.url,
            price=("openai/served=0,0",), evolve="both", candidates=s.candidates, generation=s.generation, seeds=1,
            steps=s.steps, seed=seed, concurrency=1, baselines=(), final_seeds=s.final_seeds, out=Path(folder),
            progress=False, unsafe_no_sandbox=s.unsafe_no_sandbox, **WAYS[way],
        )  # fmt: skip
        calls = server.calls
    best, spent = run.best, run.view.progress.spent
    found = best.result.score if best is not None else None
    return {
        "way": way,
        "seed": seed,
        "commit": commit() or "unknown",
        "fresh": best.score.mean if best is not None and best.score is not None else None,
        "search": found.mean if found is not None else None,
        "env_steps": spent.env_steps,
        "trained": spent.trained,
        "answers": calls,
    }


def run(s: ServedModelSettings) -> dict[str, Any]:
    """All searches; the file is written after each."""
    from benchmarks.machine import machine
    from jaxreward.tasks import make_task, measure_of

    check_bounds(s)
    for way in s.ways:
        if way not in WAYS:
            raise UserError(f"there is no way of searching '{way}': there are {', '.join(WAYS)}")
    if min(s.broken, s.scratch) < 0 or s.broken + s.scratch > 1:
        raise UserError(f"broken and scratch are shares of all answers, not {s.broken} and {s.scratch}")
    how = {name: getattr(s, name) for name in ("task", "strategy", "candidates", "generation", "steps", "final_seeds",
                                               "broken", "scratch")}  # fmt: skip
    report = begun(s.out, how) or {"benchmark": "served_model", **machine(), **how, "rows": []}
    known = {(row["way"], row["seed"]) for row in report["rows"]}
    for seed in range(s.searches):
        for way in dict.fromkeys(s.ways):
            if (way, seed) not in known:
                report["rows"].append(row := search_row(way, seed, s))
                save(report, s.out)
                print(f"search {seed}, {way}: {row['fresh']} on fresh seeds", flush=True)
    worst = measure_of(make_task(s.task)).worst
    for way in dict.fromkeys(s.ways):
        rows = [row for row in report["rows"] if row["way"] == way]
        fresh = np.mean([worst if row["fresh"] is None else row["fresh"] for row in rows])
        steps = np.mean([row["env_steps"] for row in rows]) / 1e6
        print(f"{way}: {fresh:.3f} on fresh seeds, mean of {len(rows)} searches of {steps:.2f} million steps")
    return report


def main(argv: list[str] | None = None) -> int:
    return status_of("served_model", lambda: run(parse(ServedModelSettings, None, argv, "served_model.py")))


if __name__ == "__main__":
    sys.exit(main())
