"""A run's folder without a search: the log and the transcript that one would have left, of any size."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from jaxreward.records import (
    Candidate,
    Exchange,
    Failure,
    Feedback,
    Notice,
    ProgramSummary,
    Proposal,
    Result,
    Score,
    TermCurve,
    Verdict,
)
from jaxreward.runs import Asked, AskedRequest, Baseline, Checked, Finished, Proposed, Run, RunStarted, Told, Trained
from jaxreward.runs.provenance import Provenance
from jaxreward.runs.transcripts import TRANSCRIPT, TranscriptLog

STEPS = tuple(range(20_000, 200_001, 20_000))
TERMS = ("closer_to_blue_pyramid_empty_handed", "holding", "step_cost")
MODEL = "openai/made-up"


def source_of(id: str, rng: np.random.Generator) -> str:
    """A program of some length that no other candidate has."""
    weights = ", ".join(f"{w:.3f}" for w in rng.normal(size=3))
    helpers = "\n".join(
        f"def helper_{k}(state):\n    # {id}: how far the agent is from object {k}\n"
        f"    return jnp.abs(state.agent.position - jnp.asarray([{k}, {rng.integers(9)}])).sum()\n"
        for k in range(12)
    )
    return (
        f"import jax.numpy as jnp\n\nWEIGHTS = ({weights})\n\n{helpers}\n"
        "def get_observation(state):\n    return jnp.concatenate([state.agent.position, state.agent.position])\n\n"
        "def compute_reward(state, action, next_state):\n"
        f"    total = {' + '.join(f'helper_{k}(next_state)' for k in range(12))}\n"
        "    return total, {'closer_to_blue_pyramid_empty_handed': total}\n"
    )


def summary_of(id: str, rng: np.random.Generator) -> ProgramSummary:
    """Its size, somewhere in an archive."""
    return ProgramSummary(
        digest=f"{abs(hash_of(id)):064x}", observation_size=int(rng.integers(4, 120)), terms=TERMS,
        reward_nodes=int(rng.integers(20, 900)), operations=int(rng.integers(20, 400)), flops=4000, elements=80,
        observation_reads=("state.agent.position",), reward_reads=("next_state.grid", "state.agent.position"),
    )  # fmt: skip


def hash_of(id: str) -> int:
    return int.from_bytes(id.encode(), "big")


def feedback_of(level: float, rng: np.random.Generator, notices: tuple[Notice, ...] = ()) -> Feedback:
    """A training of two seeds that ends at `level`."""
    ramp = np.array([level * (1 - math.exp(-(i + 1) / 3)) for i in range(len(STEPS))])
    seeds = np.clip(ramp + 0.05 * rng.normal(size=(2, len(STEPS))), 0, 1)
    curve = lambda x: tuple(float(v) for v in x)  # noqa: E731
    terms = tuple(
        TermCurve(name=name, mean=curve(rng.normal(size=len(STEPS))), minimum=(-2.0,) * len(STEPS),
                  maximum=(2.0,) * len(STEPS), share=share)
        for name, share in zip(TERMS, (0.6, 0.3, 0.1), strict=True)
    )  # fmt: skip
    return Feedback(
        steps=STEPS, success=curve(seeds.mean(0)), episode_return=curve(ramp * 3), length=(9.0,) * len(STEPS),
        seed_success=curve(seeds[:, -1]), by_seed=tuple(map(curve, seeds)), term_steps=STEPS, terms=terms, entropy=0.4,
        value_fit=0.8, return_success_correlation=0.7, notices=notices,
    )  # fmt: skip


def make_run(
    path: Path,
    candidates: int = 20,
    *,
    strategy: str = "limen",
    talk: int = 2_000,
    finished: bool = True,
    seed: int = 0,
) -> Path:
    """Write a run of `candidates` programs in generations of eight, each with a prompt of `talk` characters.

    One in six fails its check, one in nine falls short; candidates start from earlier ones. A finished run has a
    winner trained on fresh seeds, a sparse baseline and a search of independent samples without a score.
    """
    rng = np.random.default_rng(seed)
    options = ["islands=3", "observation_width=32", "reward_width=100"] if strategy == "limen" else []
    config = {"task": "xland-easy", "task_arg": [], "strategy": strategy, "option": options, "proposer": "llm",
              "candidates": candidates, "seeds": 2, "steps": 200_000, "final_steps": 0}  # fmt: skip
    with Run.create(path, config) as run:
        talked = TranscriptLog(run.transcripts / TRANSCRIPT)
        run.append(
            RunStarted(
                config=config,
                versions={"jaxreward": "0.1.0", "jax": "0.10.2"},
                task="xland-easy",
                strategy=strategy,
                proposer="llm",
                command="jaxreward evolve --proposer llm",
            )
        )
        done: list[Result] = []
        for generation in range(math.ceil(candidates / 8)):
            ids = [f"g{generation:04d}-{i:02d}" for i in range(min(8, candidates - 8 * generation))]
            _generation(run, talked, generation, ids, done, rng, talk)
        scored = [r for r in done if r.score]
        best = max(scored, key=lambda r: r.score.merit if r.score else 0.0)
        summary = best.candidate.summary
        assert summary is not None
        run.save_best(best.candidate.source, Provenance(task="xland-easy", digest=summary.digest, score=best.score))
        if finished:
            for name, digest, level in (("best", summary.digest, 0.85), ("sparse", "0" * 64, 0.25)):
                score = Score(mean=level, se=0.02, n=5, episodes=1280)
                run.append(Baseline(name=name, digest=digest, steps=200_000, score=score,
                                    feedback=feedback_of(level, rng), env_steps=1_000_000, compile_s=2.0,
                                    run_s=9.0))  # fmt: skip
            nothing = Failure(stage="filtered", message="none of its candidates has a score")
            run.append(Baseline(name="best-of-n", failure=nothing))
            run.append(Finished(reason=f"{candidates} candidates are trained", best=best.candidate.id))
    return path


def _generation(
    run: Run, talked: TranscriptLog, index: int, ids: list[str], done: list[Result], rng: np.random.Generator, talk: int
) -> None:
    known = [r.candidate for r in done if r.score]
    parents = {id: (known[int(rng.integers(len(known)))].id,) if known else () for id in ids}
    operator = {id: "improve" if parents[id] else "scratch" for id in ids}
    run.append(Asked(generation=index, requests=tuple(
        AskedRequest(id=id, operator=operator[id], parents=parents[id]) for id in ids)))  # fmt: skip
    results: list[Result] = []
    for id in ids:
        source, failed = source_of(id, rng), rng.random() < 1 / 6
        prompt = f"Write a program for {id}. <script>alert('a prompt')</script> " + "State your idea. " * (talk // 17)
        talked.add(Exchange(
            request_id=id, turn=0, model=MODEL, messages=({"role": "user", "content": prompt},), cost_usd=0.01,
            reply=f"```python\n{source}\n```", finish="stop", prompt_tokens=talk // 4, completion_tokens=900,
            latency_s=3.0,
        ))  # fmt: skip
        thought = f"Idea {id}: <img src=x onerror=alert(1)> walk to the goal first & hold it."
        run.append(Proposed(proposal=Proposal(request_id=id, source=source, proposer="llm", model=MODEL, calls=1,
                                              thought=thought, tokens=900 + talk // 4, cost_usd=0.01)))  # fmt: skip
        if failed:
            failure = Failure(stage="guard", message=f"the name 'open' is not allowed ({id})", line=3, hint="remove it")
            run.append(Checked(request_id=id, verdict=Verdict(failure=failure)))
            done.append(Result(candidate=Candidate(id=id, generation=index, operator=operator[id]), failure=failure))
            continue
        summary = summary_of(id, rng)
        run.append(Checked(request_id=id, verdict=Verdict(summary=summary)))
        run.save_program(summary.digest, source)
        level = float(np.clip(0.2 + 0.05 * index + 0.25 * rng.random(), 0, 0.95))
        candidate = Candidate(id=id, generation=index, operator=operator[id], parents=parents[id], proposer="llm",
                              model=MODEL, thought=thought, tokens=900 + talk // 4, cost_usd=0.01, source=source,
                              summary=summary)  # fmt: skip
        if rng.random() < 1 / 9:
            short = Failure(
                stage="filtered", message="success 0.010 after 50,000 steps is below 0.05", hint="show the goal"
            )
            results.append(
                Result(candidate=candidate, failure=short, feedback=feedback_of(0.01, rng), env_steps=100_000)
            )
        else:
            spread = (Notice(kind="seed_spread", message="success ranges from 0.2 to 0.6 over seeds"),)
            feedback = feedback_of(level, rng, spread if rng.random() < 0.3 else ())
            score = Score(mean=level, se=0.03, n=2, episodes=512)
            results.append(Result(candidate=candidate, score=score, feedback=feedback, env_steps=400_000))
    if results:
        run.append(Trained(results=tuple(results), compile_s=6.0, run_s=21.0))
    run.append(Told(generation=index))
    done += results
