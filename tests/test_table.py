"""The table that results are shown as in notebooks and terminals."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

from jaxreward.errors import MissingPackage
from jaxreward.table import Table


def example() -> Table:
    return Table(("term", "mean", "n"), [("held", np.float32(0.123456), 12), ("moved", None, 7)], "Terms")


def test_rows_and_columns_are_read_by_position_and_by_name():
    table = example()
    assert len(table) == 2
    assert table["n"] == [12, 7]
    assert table[1] == {"term": "moved", "mean": None, "n": 7} == list(table)[1]
    with pytest.raises(KeyError, match="term, mean, n"):
        table["share"]
    assert table[-1] == table[1]
    last = table[-1:]
    assert list(last) == [table[1]] and (last.columns, last.caption) == (table.columns, table.caption)
    with pytest.raises(IndexError, match="there is no row 2; there are 0 to 1"):
        table[2]
    with pytest.raises(IndexError, match="there is no row 0; there are none"):
        Table(("a",), [])[0]


def test_text_is_aligned_with_numbers_to_the_right():
    assert repr(example()).splitlines() == [
        "Terms",
        "term     mean   n",
        "held   0.1235  12",
        "moved           7",
    ]
    assert repr(Table(("a", "b"), [])) == "a  b"


def test_nothing_of_a_cell_is_markup_or_invisible():
    table = Table(("<b>",), [("<script>alert(1)</script>",), ("\x1b[2J\u202e",)], "<i>")
    shown = table._repr_html_()
    assert "<script>" not in shown and "<b>" not in shown and "<i>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "\x1b" not in shown + repr(table) and "\u202e" not in shown + repr(table)


def test_rows_of_another_length_and_columns_named_twice_are_refused():
    with pytest.raises(ValueError, match="row 1 has 1 values for 2 columns"):
        Table(("a", "b"), [(1, 2), (1,)])
    with pytest.raises(ValueError, match="named twice"):
        Table(("a", "a"), [])


def test_pandas_gets_values_and_names_and_its_absence_is_a_sentence(monkeypatch: pytest.MonkeyPatch):
    made = types.SimpleNamespace(DataFrame=lambda rows, columns: (rows, columns))
    monkeypatch.setitem(sys.modules, "pandas", made)
    assert example().to_pandas() == ([["held", np.float32(0.123456), 12], ["moved", None, 7]], ["term", "mean", "n"])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackage, match="pip install pandas"):
        example().to_pandas()
