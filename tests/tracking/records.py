"""TensorBoard's event files, read as TensorBoard does."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Value:
    """A value of a tag at a step; text is a value too."""

    tag: str
    step: int
    value: float | str
    at: float


def read_folder(folder: Path) -> list[Value]:
    """Everything in the event files of a folder, in order; each is one run of TensorBoard's."""
    return [value for path in sorted(folder.glob("events.out.tfevents.*")) for value in _values(path)]


def _values(path: Path) -> Iterator[Value]:
    from tensorboardX.proto.event_pb2 import Event  # type: ignore[attr-defined]

    data, at = path.read_bytes(), 0
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        event: Any = Event()
        event.ParseFromString(data[at + 12 : at + 12 + size])
        at += 12 + size + 4  # a length with its checksum, the record, its checksum
        for value in event.summary.value:
            text = value.tensor.string_val
            yield Value(value.tag, event.step, text[0].decode() if text else value.simple_value, event.wall_time)
