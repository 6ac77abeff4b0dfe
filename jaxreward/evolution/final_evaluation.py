"""The end of a run: the best and the baselines, trained again on fresh seeds.

The score of a search's best is biased by selection. So the best and the baselines are trained from scratch with
seeds, and on held-out levels, that no search has used (LIMEN 5.5).
"""

from __future__ import annotations

import dataclasses

from jaxreward import files
from jaxreward.evolution.loop import Evolution
from jaxreward.evolution.policies import keep_fresh, save_policy
from jaxreward.evolution.setup import Setup
from jaxreward.evolution.steady_state import searched
from jaxreward.objectives.training.candidate_trainer import CandidateTrainer
from jaxreward.programs import Program
from jaxreward.records import Failure, Score
from jaxreward.reports.run_view import BEST_OF_N, FINAL_BEST
from jaxreward.runs import Baseline, Run
from jaxreward.runs.disk import explain_full_disk
from jaxreward.runs.events import json_ready
from jaxreward.tasks.documentation import instruction_of
from jaxreward.training import PPO, Learner
from jaxreward.training.banks import BANKS

# Seeds of the final training start here, out of reach of any number of training seeds.
FIRST_SEED = 1_000_000


def final_evaluation(main: Evolution) -> Score | None:
    """Train the best of a search and its baselines; returns the score of the best.

    Each is logged as a `Baseline`, the best under the name `best`. A logged one is reused only if it is of the
    same program, seeds and steps.
    """
    s = main.settings
    best = main.strategy.best(main.progress.state)
    programs = {FINAL_BEST: main.program(best.candidate)} if best is not None and s.final_seeds else {}
    if s.final_seeds or s.objective == "training":  # else the scores of the search are no success to compare with
        programs |= _baselines(main)
    seeds = range(FIRST_SEED, FIRST_SEED + s.final_seeds) if s.final_seeds else range(s.seeds)
    steps = s.final_steps or s.steps
    missing = {name for name, program in programs.items() if not _done(main, name, program, len(seeds), steps)}
    BANKS.clear()  # what only the search needs would be compiled, and computed on all rows
    for tag, ppo, together in _groups(s.hyper, programs):
        if not missing & together.keys():
            continue
        # All of them and not the missing alone: so a run killed between two events rounds as it would have.
        trained = _trainer(main, tag, ppo).train(list(together.values()), steps=steps, seeds=seeds)
        for row, (name, program) in enumerate(together.items()):
            if name == FINAL_BEST and s.objective == "demonstrations" and not trained.diverged[row].all():
                save_policy(main.run, main.store, trained, row)  # the search itself keeps none
            if name in missing:
                if instruction_of(main.task) is not None:  # a model may rate them (`jaxreward rate`)
                    keep_fresh(main.store, name, trained, row, steps)
                share = len(together)
                main.log(Baseline(
                    name=name, digest=program.digest, steps=steps, score=trained.score(row),
                    feedback=trained.feedback(row),
                    env_steps=trained.env_steps // share, compile_s=trained.compile_s / share,
                    run_s=trained.run_s / share,
                ))  # fmt: skip
        main.forget(tag)
    final = main.progress.baselines.get(FINAL_BEST) if FINAL_BEST in programs else None
    score = final.score if final else (best.score if best else None)
    main.store_best(score)
    return score


def _groups(ppo: Learner, programs: dict[str, Program]) -> list[tuple[str, Learner, dict[str, Program]]]:
    """What trains together, each with a tag and its learner. Where a recovered reward takes early ends for states that
    are never left, a reward of the task's own does not: it says what an end is worth."""
    if not isinstance(ppo, PPO) or not ppo.absorbing:
        return [("final", ppo, programs)]
    own = {name: program for name, program in programs.items() if name in ("sparse", "dense")}
    found = {name: program for name, program in programs.items() if name not in own}
    return [("final", ppo, found), ("final-own", ppo.replace(absorbing=False), own)]


def _trainer(main: Evolution, tag: str, learner: Learner) -> CandidateTrainer:
    bench, s = main.bench, main.settings
    if isinstance(learner, PPO):
        s = dataclasses.replace(s, ppo=learner)
    return CandidateTrainer(
        s, main.task, bench.store, bench.room(), tag, "final training", bench.progress, bench.should_stop,
    )  # fmt: skip


def _done(main: Evolution, name: str, program: Program, seeds: int, steps: int) -> bool:
    known = main.progress.baselines.get(name)
    return (
        known is not None
        and known.score is not None
        and (known.digest, known.score.n, known.steps) == (program.digest, seeds, steps)
    )


def _baselines(main: Evolution) -> dict[str, Program]:
    """The baselines by name; best-of-n is a search of its own at the same budget, run here."""
    s = main.settings
    found: dict[str, Program] = {}
    if "sparse" in s.baselines:
        found["sparse"] = Program.default(main.task)
    if "dense" in s.baselines:
        found["dense"] = Program.dense(main.task)
    if BEST_OF_N in s.baselines:
        best = _best_of_n(main)
        if best is not None:
            found[BEST_OF_N] = best
        elif BEST_OF_N not in main.progress.baselines:
            failure = Failure(stage="filtered", message="none of its candidates has a score")
            main.log(Baseline(name=BEST_OF_N, failure=failure))
    return found


def _best_of_n(main: Evolution) -> Program | None:
    """The best of as many independent samples, searched for in a run inside the run.

    What it spends on language models counts into the budgets of the run.
    """
    s, recording = main.settings, main.settings.recording
    if recording is not None:
        recording = (recording if recording.is_dir() else recording.parent) / BEST_OF_N
    inner = dataclasses.replace(
        s, strategy=BEST_OF_N, option=(), bandit=False, ablations=0, surrogate=0, evolve=s.evolves, baselines=(),
        recording=recording, out=main.run.path, name=BEST_OF_N,
    )  # fmt: skip
    path = inner.out / inner.run_name
    with explain_full_disk(path):
        files.require_folder(path)
    begun = files.is_there(path / "config.toml")
    with Run.resume(path) if begun else Run.create(path, inner.as_config()) as run:
        objects = {k: v for k, v in main.given.identities.items() if k != "strategy"}
        given = dataclasses.replace(main.given, vocabulary=main.derived, identities=objects)
        copies = main.run.path if s.objective == "demonstrations" else None
        setup = Setup.of(inner, main.task, main.observation, given, copies)
        other = Evolution(run, inner, setup, main.checker, main.watcher, main.stop,
                          part_of=main, elsewhere=main.transcript.exchanges())  # fmt: skip
        if other.progress.config != json_ready(inner.as_config()):
            other.begin()  # with other budgets than before, or for the first time
        if other.spent() is None:
            main.watcher.note("the same budget again for best-of-n, to compare with")
            if (end := searched(other)) is not None:
                other.end(end)
        best = other.strategy.best(other.progress.state)
        return other.program(best.candidate) if best is not None else None
