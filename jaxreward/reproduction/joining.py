"""Cells that were finished elsewhere: taken from the files of results of other folders, such as other machines'."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from jaxreward import files
from jaxreward.config import Malformed, parse_json
from jaxreward.errors import FileProblem, UnusableFile, why_unreadable
from jaxreward.reproduction.cell import FORMAT, Cell, FinishedCell, Plan
from jaxreward.runs.events import json_ready


def joinable(cells: Sequence[Cell], plan: Plan, paths: Sequence[Path]) -> dict[Cell, FinishedCell]:
    """The cells that are not done in the folder of the plan, and are in files of results, `NAME.json` of other folders.
    One that a cell needs which is yet to be run is left out: its other files are elsewhere.

    Raises:
        UnusableFile: a file is no such file, or of another version.
        ChangedSetting: a cell in it was run with other settings.
    """
    found = dict[Cell, FinishedCell]()
    for path in paths:
        finished = _cells_in(path)
        for cell in cells:
            known = next((one for one in finished if one.coordinates == json_ready(cell.coordinates)), None)
            if known is not None and not cell.lacking() and cell.status(plan) != "done":
                cell.require_settings(plan, known.settings, f"{cell.label} of {path} was run", "leave that file out")
                found.setdefault(cell, known)
    while needed := {need for cell in cells if not _there(cell, plan, found) for need in cell.needs(plan)} & set(found):
        for cell in needed:
            del found[cell]
    return found


def _there(cell: Cell, plan: Plan, found: dict[Cell, FinishedCell]) -> bool:
    return bool(cell.lacking()) or cell in found or cell.status(plan) == "done"


def _cells_in(path: Path) -> list[FinishedCell]:
    wanted = "give a file of results that jaxreward reproduce wrote, NAME.json of its folder"
    try:
        content: Any = parse_json(files.read_text(path))
        found = [FinishedCell.model_validate(cell) for cell in content["cells"]]
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path} cannot be read ({why_unreadable(error)}): {wanted}"
        raise UnusableFile(message, path, FileProblem.UNREADABLE) from error
    except (Malformed, ValidationError, KeyError, TypeError) as error:
        raise UnusableFile(f"{path} has no cells: {wanted}", path, FileProblem.WRONG_KIND) from error
    if other := next((cell.format for cell in found if cell.format != FORMAT), None):
        message = f"{path} has cells in format {other}, and this version reads {FORMAT}: leave it out"
        raise UnusableFile(message, path, FileProblem.OTHER_VERSION)
    return found
