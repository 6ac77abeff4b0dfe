"""The end of a run: the best and the baselines, trained again on fresh seeds and side by side.

What a search measured of its best is biased: it was selected for it. So the best and its rivals
are trained from scratch with seeds, and on held-out levels, that no search has seen (LIMEN 5.5).
"""

from __future__ import annotations

import dataclasses

from jaxreward.evolution import Evolution, Parts
from jaxreward.programs import Program
from jaxreward.records import Failure, Score
from jaxreward.runs import Baseline, Finished, Run, Spent

# Seeds of the final training start here, out of reach of any number of training seeds.
FIRST_SEED = 1_000_000
BEST = "best"


def compare(main: Evolution) -> Score | None:
    """Train the best of a search and its baselines; returns the score of the best.

    Every contender is logged as a `Baseline`, the best under the name `best`. One that was trained
    before counts only if it was the same program, with the same seeds and steps.
    """
    s = main.settings
    best = main.strategy.best(main.progress.state)
    contenders = {BEST: main.program(best.candidate)} if best is not None and s.final_seeds else {}
    rivals, searched = _rivals(main)
    contenders |= rivals
    seeds = range(FIRST_SEED, FIRST_SEED + s.final_seeds) if s.final_seeds else range(s.seeds)
    steps = s.final_steps or s.steps
    missing = [name for name, program in contenders.items() if not _done(main, name, program, len(seeds), steps)]
    if missing:
        # All of them and not the missing alone: so a run killed between two events rounds as it would have.
        trained = main.train(list(contenders.values()), tag="final", label="final training", steps=steps, seeds=seeds)
        for row, (name, program) in enumerate(contenders.items()):
            if name in missing:
                share, found_by = len(contenders), searched.get(name, Spent())
                main.log(Baseline(
                    name=name, digest=program.digest, steps=steps, score=trained.score(row),
                    env_steps=trained.env_steps // share, compile_s=trained.compile_s / share,
                    run_s=trained.run_s / share, tokens=found_by.tokens, cost_usd=found_by.cost_usd,
                ))  # fmt: skip
        main.forget("final")
    final = main.progress.baselines.get(BEST) if BEST in contenders else None
    score = final.score if final else (best.score if best else None)
    main.store_best(score)
    return score


def _done(main: Evolution, name: str, program: Program, seeds: int, steps: int) -> bool:
    known = main.progress.baselines.get(name)
    return (
        known is not None
        and known.score is not None
        and (known.digest, known.score.n, known.steps) == (program.digest, seeds, steps)
    )


def _rivals(main: Evolution) -> tuple[dict[str, Program], dict[str, Spent]]:
    """The baselines by name, and what searches for them have used."""
    s = main.settings
    rivals: dict[str, Program] = {}
    searched: dict[str, Spent] = {}
    if "sparse" in s.baselines:
        rivals["sparse"] = Program.default(main.task)
    if "best-of-n" in s.baselines:
        best, searched["best-of-n"] = _best_of_n(main)
        if best is not None:
            rivals["best-of-n"] = best
        elif "best-of-n" not in main.progress.baselines:
            spent = searched["best-of-n"]
            why = "none of its candidates has a score" if spent.attempts else "no budget for language models was left"
            failure = Failure(stage="filtered", message=why)
            main.log(Baseline(name="best-of-n", failure=failure, tokens=spent.tokens, cost_usd=spent.cost_usd))
    return rivals, searched


def _best_of_n(main: Evolution) -> tuple[Program | None, Spent]:
    """The best of as many independent samples, searched for in a run inside the run.

    It may spend on language models what the budgets of the run leave.
    """
    s, spent = main.settings, main.progress.spent
    llm = s.llm.less(usd=spent.cost_usd, tokens=spent.tokens, requests=spent.calls)
    if llm is None:
        main.watcher.note("best-of-n is left out: the run has spent the whole budget for language models")
        return None, Spent()
    recording = s.recording / "best-of-n" if s.recording and s.recording.is_dir() else s.recording
    inner = dataclasses.replace(
        s, strategy="best-of-n", baselines=(), llm=llm, recording=recording, out=main.run.path, name="best-of-n"
    )
    path = inner.out / inner.run_name
    begun = (path / "config.toml").exists()
    with Run.resume(path) if begun else Run.create(path, inner.as_config()) as run:
        other = Evolution(run, inner, Parts.of(inner, main.task), main.checker, main.watcher, main.stop)
        if other.spent() is None or other.progress.started is None:
            main.watcher.note("the same budget again for best-of-n, to compare with")
            reason = other.search() or ""
            best = other.strategy.best(other.progress.state)
            other.log(Finished(reason=reason, best=best.candidate.id if best else None))
        best = other.strategy.best(other.progress.state)
        return other.program(best.candidate) if best is not None else None, other.progress.spent
