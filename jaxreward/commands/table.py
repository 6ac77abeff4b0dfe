"""The commands of `jaxreward`. The module of each is imported when it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxreward.commands.resolve import Command

SUMMARIES = {
    "evolve": "Search for an interface of a task.",
    "ask": "Write a search's next requests as files, for people and programs.",
    "tell": "Read, check and train the programs that answer them.",
    "compare": "Compare strategies at equal budget.",
    "reproduce": "Run a published table or figure again, beside the paper's figures.",
    "train": "Train given interfaces over fresh seeds and compare them.",
    "rate": "Have a vision model rate how far agents do what they were told.",
    "report": "Write the report of a run, one page.",
    "serve": "Show runs in a browser as they grow.",
    "record": "Record episodes of a task, to search rewards from them.",
    "clean": "Have a language model mark which steps of episodes solve the task.",
    "film": "Film a trained agent, of a run or of an interface.",
    "doctor": "Examine this machine: versions, devices, sandbox, disk, training.",
    "check": "Check programs, or a task of your own, without training.",
    "export": "Write an interface as a module for training code of yours.",
    "new-task": "Write a file with a small task, to be changed into your own.",
    "tasks": "List the tasks, or describe one.",
    "strategies": "List the search strategies, or describe one.",
    "prompt": "Show what a language model would be sent.",
    "runs": "List runs, show one, follow one, set several side by side.",
    "completion": "Print a script that completes all of this in a shell.",
}
"""A line on each command, or group of commands, by name."""


def commands_of(name: str) -> dict[str, Command[Any]]:
    """The commands that begin with `name`, by name: one, or those of a group such as `runs list`."""
    module = f"jaxreward.commands.{name.replace('-', '_')}"
    return {command.name: command for command in import_module(module).COMMANDS}
