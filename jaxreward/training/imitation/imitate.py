"""`imitate`: agents that learn from an expert's episodes, without a reward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jaxreward.demonstrations.trajectories import Positives, Trajectories
from jaxreward.programs import Program
from jaxreward.tasks import Task
from jaxreward.training.arguments import check_task
from jaxreward.training.candidates import Candidate
from jaxreward.training.execution import Execution
from jaxreward.training.executor import Checkpointing
from jaxreward.training.hyperparameters import PPO
from jaxreward.training.imitation.experts import Imitation
from jaxreward.training.imitation.methods import Method
from jaxreward.training.plan import EVAL_EPISODES
from jaxreward.training.population_training import Progress
from jaxreward.training.result import TrainResult
from jaxreward.training.trainer import train


def imitate(
    task: Task,
    experts: Trajectories | Sequence[Trajectories],
    method: str | Method = "gail",
    ppo: PPO | None = None,
    *,
    programs: Candidate | Sequence[Candidate] | None = None,
    positives: Positives = "all",
    seeds: int | Sequence[int] = 3,
    steps: int = 1_000_000,
    checkpoints: int = 20,
    eval_episodes: int = EVAL_EPISODES,
    execution: Execution | None = None,
    checkpointing: Checkpointing | None = None,
    progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    trusted: bool = False,
) -> TrainResult:
    """Train an agent for every set of episodes and seed, in parallel, to do what the expert did.

        episodes = jr.demonstrations.load_trajectories("expert.npz")
        result = jr.imitate(task, [episodes.take(range(n)) for n in (1, 4, 16)], "gail")
        result.success  # (3, seeds)

    Args:
        experts: C sets of episodes of an expert, or one.
        method: `gail`, `airl`, `bc` (behaviour cloning), or a `GAIL`, `AIRL` or `Cloning` with settings of its own.
            With `bc`, `steps` are transitions of the expert that are learned from, and nothing is played but held-out
            episodes.
        programs: an interface for each set, or one for all: agents and discriminators see its observations; its rewards
            are only measured, but must be finite. The task's own by default.
        positives: which transitions of the episodes are learned from: all, the last of each, or the marked ones.

    The other arguments, what is returned and what is raised are those of `train`.

    Returns:
        A candidate for each set. Its return and its terms are by the program's reward, which no agent was paid.
    """
    check_task(task)
    sets = 1 if isinstance(experts, Trajectories) else max(1, _count(experts))
    if programs is None:
        programs = Program.default(task)
    if isinstance(programs, Program | Path) or callable(programs):
        programs = [programs] * sets
    return train(
        task, programs, ppo, seeds=seeds, steps=steps, checkpoints=checkpoints, eval_episodes=eval_episodes,
        execution=execution, checkpointing=checkpointing, progress=progress, should_stop=should_stop, trusted=trusted,
        imitation=Imitation(experts, method, positives),
    )  # fmt: skip


def _count(experts: Any) -> int:
    return len(experts) if isinstance(experts, Sequence) else 1
