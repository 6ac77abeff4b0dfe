"""The entries by name. Another paper's are a module more here."""

from __future__ import annotations

from functools import cache

from jaxreward.errors import UnknownName
from jaxreward.reproduction.entry import Entry
from jaxreward.reproduction.forge import tables as forge
from jaxreward.reproduction.grace.figure4 import Figure4, Figure4b
from jaxreward.reproduction.grace.table1 import Table1
from jaxreward.reproduction.grace.tables import Table2, Table3
from jaxreward.reproduction.limen import figures as limen
from jaxreward.reproduction.rda import figures as rda
from jaxreward.reproduction.rf_agent import tables as rf_agent


@cache
def entries() -> dict[str, Entry]:
    """All entries by name."""
    every: tuple[Entry, ...] = (
        *(forge.Table2(), forge.Table3(), forge.Figure3()),
        *(Figure4(), Figure4b(), Table1(), Table2(), Table3()),
        *(limen.Figure4(), limen.Figure5(), limen.Figure6()),
        *(rda.Figure4(), rda.Figure7a(), rda.Figure7b()),
        *(rf_agent.Table1(), rf_agent.Table6(), rf_agent.Table7()),
    )
    return {entry.name: entry for entry in every}


def entry_of(name: str) -> Entry:
    """The entry of this name.

    Raises:
        UnknownName: there is none.
    """
    found = entries()
    if name not in found:
        raise UnknownName("entry", name, found, settings=("entry",))
    return found[name]
