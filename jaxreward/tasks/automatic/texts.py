"""Texts of programs with places for what a program calls its arguments.

A place is one control character. No name of a field holds one, nor does the text of a key, in which Python escapes
them: so nothing that a task is called is taken for a place, and no text needs escaping.
"""

from __future__ import annotations

STATE = "\x01"
"""The state that a quantity is read from."""
BEFORE, ACTION, AFTER = "\x02", "\x03", "\x04"
"""The arguments of a reward."""
NOW, NEXT = "\x05", "\x06"
"""The values of a quantity in the two states of a reward, in the line of a term."""
UNKNOWN = "\x07"
"""What cannot be written."""

_NAMES = str.maketrans({BEFORE: "state", ACTION: "action", AFTER: "next_state"})


def of(text: str, state: str) -> str:
    """`text` with the name of a state, or a place for one, where it reads `STATE`."""
    return text.replace(STATE, state)


def named(text: str) -> str:
    """`text` as it stands in a reward."""
    return text.translate(_NAMES)
