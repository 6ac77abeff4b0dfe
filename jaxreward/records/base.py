"""The base of all records."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Base of all records: immutable, and strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)
