"""Text of others on terminals and pages."""

from __future__ import annotations

import io
import unicodedata

import pytest
from rich.table import Table

from jaxreward.formatting import printable, seeds_text
from jaxreward.reports.console import PlainConsole

HIDDEN = [
    *("\x00", "\x07", "\x1b", "\x7f", "\x85", "\x9b", "\r"),
    *map(chr, range(0x200B, 0x2010)),
    *map(chr, range(0x202A, 0x202F)),
    *map(chr, (*range(0x2060, 0x2065), *range(0x2066, 0x206A))),
    *("\u061c", "\ufeff", "\u00ad", "\u2028", "\u2029", "\ud800", "\U000e0041"),
]


@pytest.mark.parametrize("char", HIDDEN, ids=ascii)
def test_invisible_characters_are_escaped(char):
    text = printable(f"a{char}b")
    assert char not in text and text.isprintable() and text.startswith("a\\") and text.endswith("b")


def test_visible_characters_are_unchanged():
    text = "é 漢字 – “x” 😀 \t ½\nשלום"
    assert printable(text) == text and printable("a\r\nb") == "a\nb"


def test_no_control_character_reaches_the_console():
    out = io.StringIO()
    console = PlainConsole(file=out, force_terminal=True, width=200)
    evil = "\x1b]0;pwned\x07\u202eevil [bold]x[/bold]"
    console.print(evil)
    table = Table(title=evil)
    table.add_column(evil)
    table.add_row(evil)
    console.print(table)
    said = out.getvalue()
    assert said.count("\\x1b]0;pwned\\x07\\u202eevil [bold]x[/bold]") == 4
    assert "\x1b]" not in said and "\x07" not in said and "\u202e" not in said
    assert not [c for c in said if unicodedata.category(c) == "Cf"]


def test_one_seed_is_no_seeds() -> None:
    assert [seeds_text(1), seeds_text(1, "fresh "), seeds_text(3)] == ["1 seed", "1 fresh seed", "3 seeds"]
