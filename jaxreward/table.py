"""A small table for notebooks and terminals: named columns, rows of any values."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, overload

from jaxreward.errors import MissingPackage
from jaxreward.formatting import printable


@dataclass(frozen=True, repr=False)
class Table:
    """Rows under named columns, shown as text, and in a notebook as HTML.

        table["mean"]  # a column as a list
        table[0]  # a row as a dictionary, as iteration gives them
        table[-5:]  # a table of these rows
        table.to_pandas()

    Attributes:
        columns: their names, all different.
        rows: the values, one for each column.
        caption: a line above, if any.

    Raises:
        ValueError: a row with more or fewer values than there are columns, or a column named twice.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "rows", tuple(tuple(row) for row in self.rows))
        if len(set(self.columns)) < len(self.columns):
            raise ValueError(f"a column is named twice: {', '.join(self.columns)}")
        for i, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(f"row {i} has {len(row)} values for {len(self.columns)} columns")

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> Table: ...
    def __getitem__(self, key: str | int | slice) -> list[Any] | dict[str, Any] | Table:
        """A column by its name, a row by its position, or a table of some rows.

        Raises:
            KeyError: there is no such column.
            IndexError: there is no such row.
        """
        if isinstance(key, str):
            if key not in self.columns:
                raise KeyError(f"there is no column {key!r}; there are {', '.join(self.columns)}")
            return [row[list(self.columns).index(key)] for row in self.rows]
        if isinstance(key, slice):
            return replace(self, rows=self.rows[key])
        try:
            row = self.rows[key]
        except IndexError:
            known = f"there are 0 to {len(self) - 1}" if self.rows else "there are none"
            raise IndexError(f"there is no row {key}; {known}") from None
        return dict(zip(self.columns, row, strict=True))

    def __repr__(self) -> str:
        cells = [[printable(name) for name in self.columns], *[[_shown(value) for value in row] for row in self.rows]]
        right = [_is_numeric(column) for column in zip(*self.rows, strict=True)] or [False] * len(self.columns)
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)).rstrip()
            for row in cells
        ]
        return "\n".join([*([printable(self.caption)] if self.caption else []), *lines])

    def _repr_html_(self) -> str:
        right = [_is_numeric(column) for column in zip(*self.rows, strict=True)] or [False] * len(self.columns)
        styles = ["right" if r else "left" for r in right]

        def row(tag: str, texts: Sequence[str]) -> str:
            cells = zip(texts, styles, strict=True)
            return "<tr>" + "".join(f'<{tag} style="text-align:{s}">{escaped(t)}</{tag}>' for t, s in cells) + "</tr>"

        caption = f"<caption>{escaped(self.caption)}</caption>" if self.caption else ""
        body = "".join(row("td", [_shown(value) for value in values]) for values in self.rows)
        return f"<table>{caption}<thead>{row('th', self.columns)}</thead><tbody>{body}</tbody></table>"

    def to_pandas(self) -> Any:
        """The same as a `pandas.DataFrame`.

        Raises:
            MissingPackage: pandas is not installed.
        """
        try:
            import pandas  # type: ignore[import-not-found]
        except ImportError as error:
            message = "to_pandas() needs the package pandas: pip install pandas, or iterate over the table's rows"
            raise MissingPackage(message, "pandas") from error
        return pandas.DataFrame([list(row) for row in self.rows], columns=list(self.columns))


def escaped(text: str) -> str:
    """Text for HTML: invisible characters as escapes, and no markup."""
    return html.escape(printable(text))


def _shown(value: Any) -> str:
    """A cell on one line: four digits of a real number, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool | Integral) or not isinstance(value, Real):
        return " ".join(printable(str(value)).split())
    return f"{float(value):.4g}"


def _is_numeric(column: Sequence[Any]) -> bool:
    return all(value is None or (isinstance(value, Real) and not isinstance(value, bool)) for value in column)
