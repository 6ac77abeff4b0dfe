"""Text of models, servers, programs and other people's files, as terminals and pages may show it."""

from __future__ import annotations

import unicodedata

_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of Unicode: control characters, format characters (those that turn the direction of text or have no
width), halves of surrogate pairs, separators of lines and paragraphs."""


class _Escapes(dict[int, str]):
    """What stands for each character, found when it is first met."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        hidden = char not in "\n\t" and unicodedata.category(char) in _INVISIBLE
        self[code] = char if not hidden else _escaped(code)
        return self[code]


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_ESCAPES = _Escapes()


def printable(text: str) -> str:
    """The text with every character that cannot be seen as its escape, such as `\\x1b` or `\\u202e`.

    These are control characters, which can move the cursor or change a terminal, characters that turn the direction of
    text or have no width, which can make a program read as another, and halves of surrogate pairs. Line feeds and tabs
    stay, and carriage return with line feed is a line feed.
    """
    return text.replace("\r\n", "\n").translate(_ESCAPES)
