"""Why searches end."""

from __future__ import annotations

from jaxreward.errors import End, EndCause
from jaxreward.runs import Failed, Finished, Paused


def cause_of(end: End | Paused | Finished | Failed | None) -> EndCause | None:
    """The cause of an end; the test fails where there is no end."""
    assert end is not None
    return end.cause
