"""Sentences that name options: in the words of the command line, and in those of Python.

What raises an error knows the option and its value, and not who called. It writes `mention("final_seeds", 3)` into its
message, and where the message is shown it reads `--final-seeds 3`, or `final_seeds=3`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

_OPEN, _MIDDLE, _CLOSE = "\ue000", "\ue001", "\ue002"
"""Characters for private use, which stand in a message until it is a `Sentence`."""


class Sentence(str):
    """A text in the words of the command line.

    Attributes:
        marked: it before the options in it were worded, to be part of another.
        python: the same in the words of Python.
    """

    marked: str
    python: str

    def __new__(cls, text: str) -> Sentence:
        if isinstance(text, Sentence):
            return text
        first, *rest = str(text).split(_OPEN)
        command_line = python = first
        for piece in rest:
            both, _, after = piece.partition(_CLOSE)
            typed, middle, called = both.partition(_MIDDLE)
            command_line, python = command_line + typed + after, python + (called if middle else typed) + after
        sentence = super().__new__(cls, command_line)
        sentence.marked, sentence.python = str(text), python
        return sentence


def marked(text: str) -> str:
    """A text to be part of another sentence, whose options are still to be worded if it is a `Sentence`."""
    return text.marked if isinstance(text, Sentence) else text


def in_python(text: str) -> str:
    """A text in the words of Python, as it is if it is no `Sentence`."""
    return text.python if isinstance(text, Sentence) else text


def either(command_line: str, python: str) -> str:
    """Part of a sentence that is worded when it is shown."""
    return f"{_OPEN}{command_line}{_MIDDLE}{python}{_CLOSE}"


def mention(path: str, value: Any = None) -> str:
    """An option as part of a sentence, with its value: one of a list is a list, of a switch True.

    Args:
        path: of the setting, without the group that flags leave out: `final_seeds`, `model`, `ppo.envs`.
    """
    flag = f"--{path.replace('_', '-')}"
    if value is None:
        return either(flag, path if "." in path else f"{path}=")
    if value is True:
        return either(flag, f"{path}=True")
    words = " ".join(map(_shown, value)) if isinstance(value, list | tuple) else _shown(value)
    return either(f"{flag} {words}", f"{path}={_written(value)}")


RESUME = either("--resume", "the same call")
"""What goes on with a run."""


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _written(value: Any) -> str:
    return repr(str(value) if isinstance(value, Path) else value)
