"""`jaxreward train`: given interfaces, trained over fresh seeds and compared."""

from __future__ import annotations

import dataclasses

from jaxreward.commands.estimate import describe_training
from jaxreward.commands.evolve import MACHINE
from jaxreward.commands.output import console_of, print_json
from jaxreward.commands.resolve import Command, Given, Resolved, Source
from jaxreward.commands.retrain import TrainSettings, retrain
from jaxreward.commands.summary import show_retrained, train_json
from jaxreward.evolve.presets import preset, quick_learner, quick_steps
from jaxreward.reports.live import Live
from jaxreward.runs.disk import check_target
from jaxreward.tasks import has_real_actions


def resolve(given: Given[TrainSettings]) -> Resolved[TrainSettings]:
    """The settings: steps and learner are by default those for the task on two cores, with `--preset paper` those of
    the paper."""
    base = TrainSettings(task=given.get("task", TrainSettings.task))
    if given.line.preset not in ("", "quick"):
        of_paper = preset(given.line.preset, base.task)
        steps = of_paper.final_steps or of_paper.steps
        base = dataclasses.replace(base, steps=steps, seeds=of_paper.final_seeds, ppo=of_paper.ppo)
    elif has_real_actions(base.task):
        steps, learner = quick_steps(base.task), quick_learner(base.task)
        base = dataclasses.replace(base, steps=steps, seeds=3, checkpoints=8, ppo=learner)
    return given.over(base, Source.PRESET)


def run(resolved: Resolved[TrainSettings]) -> int:
    """Train and print the table; returns the exit status."""
    settings = resolved.settings
    settings.check()
    console = console_of(settings.json)
    settings.make_task()
    if settings.plot is not None and not settings.dry_run:
        check_target(settings.plot)  # not after hours of training
    for line in describe_training(settings):
        console.print(line)
    if settings.dry_run:
        if settings.json:
            print_json({"dry_run": True})
        return 0
    with Live(console) as live:
        done = retrain(settings, live.training)
    show_retrained(settings, done, console)
    if settings.json:
        print_json(train_json(settings, done))
    return 0


COMMANDS = (
    Command(
        "train", TrainSettings, run=run, resolve=resolve,
        main=("task", "task_arg", "interfaces", "seeds", "steps", "eval_episodes", "diagnose", "plot", "dry_run",
              "json"),
        topics={
            "training": ("task", "task_arg", "interfaces", "seeds", "first_seed", "steps", "checkpoints",
                         "eval_episodes", *MACHINE),
            "ppo": ("ppo",),
            "output": ("diagnose", "plot", "unsafe_no_sandbox", "dry_run", "json"),
        },
        presets=True, examples=("train --task xland-easy --interfaces interfaces/xland_easy/*.py",),
    ),
)  # fmt: skip
