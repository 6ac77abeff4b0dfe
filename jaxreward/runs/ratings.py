"""`ratings.json` in the folder of a run: what a model rated of its agents, after the search."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jaxreward import files
from jaxreward.records import Ratings
from jaxreward.runs.disk import write_atomic

RATINGS = "ratings.json"


def read_ratings(run: Path, digests: Mapping[str, str]) -> Ratings | None:
    """The ratings of a run.

    Args:
        run: its folder.
        digests: of its programs by name as they are now; the ratings of others are left out.

    Returns:
        None where nothing is rated, or the file is damaged.
    """
    try:
        found = Ratings.model_validate_json(files.read_bytes(run / RATINGS, below=run))
    except (OSError, ValueError):
        return None
    kept = {name: rated for name, rated in found.programs.items() if digests.get(name) == rated.digest}
    return found.model_copy(update={"programs": kept}) if kept else None


def save_ratings(run: Path, ratings: Ratings) -> None:
    """Write them into the folder of a run, in place of earlier ones."""
    write_atomic(run / RATINGS, ratings.model_dump_json(indent=1) + "\n", below=run)
