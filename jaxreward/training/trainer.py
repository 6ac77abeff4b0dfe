"""`train`: a population through rungs, chunks and devices.

A chunk is a group of candidates that one device trains at a time. Cutting a population into chunks
changes nothing but rounding, since nothing in a chunk depends on its neighbours. While one chunk
trains, the next is compiled in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial

from jaxreward.errors import InvalidSetting
from jaxreward.tasks import Task, measure_of, progress_names, require_sound
from jaxreward.training.arguments import (
    check_function,
    check_rungs,
    check_task,
    for_budget,
    learner_of,
    require_32_bits,
    seeds_of,
    whole,
)
from jaxreward.training.candidates import Candidate, programs_of
from jaxreward.training.execution import Execution
from jaxreward.training.executor import Checkpointing
from jaxreward.training.hyperparameters import PPO
from jaxreward.training.imitation import Imitation, ImitationRows
from jaxreward.training.learners import for_imitation, quick
from jaxreward.training.local import LocalExecutor
from jaxreward.training.networks import Variables
from jaxreward.training.plan import EVAL_EPISODES, Evaluation, make_schedule
from jaxreward.training.population_training import PopulationTraining, Progress
from jaxreward.training.result import TrainResult
from jaxreward.training.rungs import Rung
from jaxreward.training.sac_hyperparameters import Learner
from jaxreward.training.warm_start import require_policy


def train(
    task: Task,
    programs: Candidate | Sequence[Candidate],
    ppo: Learner | None = None,
    *,
    seeds: int | Sequence[int] = 3,
    steps: int = 1_000_000,
    rungs: Sequence[Rung] = (),
    checkpoints: int = 20,
    eval_episodes: int = EVAL_EPISODES,
    execution: Execution | None = None,
    checkpointing: Checkpointing | None = None,
    progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    trusted: bool = False,
    imitation: Imitation | None = None,
    start: Variables | None = None,
) -> TrainResult:
    """Train an agent for every program and seed, in parallel.

    A candidate's result depends on its program and the seed alone, up to rounding: not on its
    position, its neighbours, the chunk or the device.

    Args:
        task: what to solve.
        programs: the candidates, C of them: programs, functions of (state) or (state, action, next_state), pairs of
            both, and paths of programs; one alone stands for a list of it.
        ppo: the learner's hyperparameters, a `PPO` or a `SAC`; those of `quick` for the task and the devices that train
            it if omitted, with `imitation` in the form of `learners.for_imitation`.
        seeds: a number S, for seeds 0 .. S-1, or the seeds themselves.
        steps: environment steps of each agent, rounded up to whole updates.
        rungs: cuts within the budget; the learning rate always follows the whole budget.
        checkpoints: number of points of the curves, evenly spaced; at each an agent plays `eval_episodes`
            held-out episodes, but at most `ppo.envs`.
        eval_episodes: held-out episodes of an agent at a rung and at the end, rounded up to a multiple of `ppo.envs`
            where they are more.
        execution: where it runs and how it is compiled.
        checkpointing: where to save it; without, nothing is saved.
        progress: called with the state of the training.
        should_stop: asked before every update.
        trusted: trace functions in this process in place of checking their text, see `jaxreward.load_program`.
        imitation: learn from demonstrations in place of the programs' rewards, which are then only measured, see
            `jaxreward.imitate`.
        start: the variables of one agent, as `TrainResult.variables` returns them, that all agents begin with; their
            observations are those of all programs. The optimiser, and the critics of SAC, start afresh.

    Returns:
        Scores, curves and diagnostics.

    Raises:
        UserError: invalid settings, a mistake in the task (see `jaxreward.check_task`), or functions that make no
            program (see `jaxreward.load_program`); demonstrations of another task.
        Interrupted: `should_stop` returned True.
    """
    check_task(task)
    require_32_bits()
    require_sound(task)
    execution = execution or Execution()
    if ppo is None:
        ppo = quick(task, execution.platform)
        ppo = ppo if imitation is None else for_imitation(ppo)
    ppo = learner_of(ppo)
    seed_list = seeds_of(seeds)
    steps, checkpoints = whole("steps", steps), whole("checkpoints", checkpoints)
    eval_episodes = whole("eval_episodes", eval_episodes)
    check_rungs(rungs)
    check_function("progress", progress)
    check_function("should_stop", should_stop)
    if eval_episodes < 1:
        raise InvalidSetting(f"there must be at least 1 held-out episode, not {eval_episodes}", "eval_episodes")
    execution.check(ppo)
    for name in ("threshold", "untrained") if measure_of(task).rate else ():
        rates = [value for rung in rungs if (value := getattr(rung, name)) is not None]
        if rates and not 0.0 <= min(rates) <= max(rates) <= 1.0:
            message = f"{name} of a rung is a success rate in [0, 1], not {min(rates)} to {max(rates)}"
            raise InvalidSetting(message, f"rung.{name}")
    if any(r.untrained is not None for r in rungs) and not progress_names(task):
        message = f"{task.name} does not say what comes before success: leave the rung's `untrained` out"
        raise InvalidSetting(message, "rung.untrained")
    schedule = make_schedule(ppo, steps, checkpoints, rungs)
    ppo = for_budget(ppo, schedule.updates, imitation is not None)
    candidates = programs_of(programs, task, trusted)
    if start is not None:
        require_policy(start, task, candidates, ppo)
    learned_from = None
    if imitation is not None and isinstance(ppo, PPO):
        learned_from = ImitationRows.of(imitation, task, candidates, ppo)
    given, local = execution.executor, partial(LocalExecutor, execution.devices, execution.memory_gb)
    with nullcontext(given) if given is not None else local() as executor:
        return PopulationTraining(
            task=task, programs=candidates, ppo=ppo, seeds=seed_list, schedule=schedule,
            evaluation=Evaluation.of(ppo, eval_episodes), execution=execution, executor=executor,
            checkpointing=checkpointing, progress=progress or (lambda _: None),
            should_stop=should_stop or (lambda: False), imitation=learned_from, start=start,
        ).run()  # fmt: skip
