"""The copy of a run that `--store` asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jaxreward.errors import InvalidSetting
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.reports.run_view import is_written
from jaxreward.runs import StopSignal
from jaxreward.sentences import mention
from jaxreward.storage import Mirror, Place, fetch


def place_of(settings: EvolveSettings) -> Place | None:
    """Where the copy of the run is kept; None where none is.

    Raises:
        InvalidSetting: an address that cannot be, or one in the folder of the run itself.
    """
    if not settings.store:
        return None
    place = Place(f"{settings.store.rstrip('/')}/{settings.run_name}")
    path = (settings.out / settings.run_name).resolve()
    if place.local is not None and place.local.resolve().is_relative_to(path):
        raise InvalidSetting(f"{mention('store')} is the folder of the run itself: name another", "store")
    return place


def bring(settings: EvolveSettings) -> str:
    """Bring the run that is to be resumed up to its copy, if there is one; says what was done, if anything."""
    place, path = place_of(settings), settings.out / settings.run_name
    if place is None or is_written(path):
        return ""
    fetched = fetch(place, path, required=False)
    return f"fetched {fetched / 1e6:.1f} MB of {path} from its copy" if fetched else ""


@contextmanager
def copied(
    settings: EvolveSettings, place: Place | None, stop: StopSignal, note: Callable[[str], None]
) -> Iterator[Callable[[], None]]:
    """Keeps the copy up, if there is a place for one; gives what is to be called after every event."""
    if place is None:
        yield lambda: None
        return

    def end(reason: str) -> None:
        stop.reason = stop.reason or reason

    path, new = settings.out / settings.run_name, not settings.resume
    with Mirror(path, place, new, note, lambda: stop.requested, end) as mirror:
        yield mirror.changed
