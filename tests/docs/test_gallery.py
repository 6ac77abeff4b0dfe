"""docs/gallery.md shows the interfaces as they are, with the scores that were measured."""

from __future__ import annotations

import re
from pathlib import Path

from jaxreward.reports.short_code import short_code

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "gallery.md").read_text()


def test_programs_are_those_of_the_files():
    shown = re.findall(r"```python\n# (interfaces/\w+/genetic\.py)\n(.*?)```", PAGE, re.DOTALL)
    assert len(shown) >= 3
    for file, text in shown:
        assert text.strip() == short_code((ROOT / file).read_text(), documented=True), file
        assert f"](../{file})" in PAGE


def test_films_are_small():
    films = re.findall(r"!\[[^\]]+\]\((pictures/[^)]+\.gif)\)", PAGE)
    assert len(films) >= 3
    assert all((ROOT / "docs" / film).stat().st_size < 1_000_000 for film in films)
