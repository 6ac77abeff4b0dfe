"""Reading a log that grows, is torn, cut or replaced meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxreward.errors import FileProblem, UnusableFile
from jaxreward.runs import EventLog, Told
from jaxreward.runs.follow import LogReader


def seqs(reader: LogReader) -> tuple[list[int], bool]:
    entries, again = reader.read()
    return [entry.seq for entry in entries], again


def log_of(path: Path, n: int) -> None:
    with EventLog(path) as log:
        for k in range(len(log.entries), n):
            log.append(Told(generation=k))


def test_every_event_comes_once(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    reader = LogReader(path)
    assert seqs(reader) == ([], False)
    with EventLog(path) as log:
        log.append(Told(generation=0))
        log.append(Told(generation=1))
        assert seqs(reader) == ([0, 1], False)
        assert seqs(reader) == ([], False)
        log.append(Told(generation=2))
    assert seqs(reader) == ([2], False)


@pytest.mark.parametrize("torn", [b'{"v":1,"seq":2', b"\x00\x00\x00\n", b'{"v":1}'])
def test_a_torn_line_is_waited_for(tmp_path: Path, torn: bytes):
    """The process that wrote it was killed; the next one cuts it off and goes on."""
    path = tmp_path / "events.jsonl"
    log_of(path, 2)
    reader = LogReader(path)
    with open(path, "ab") as file:
        file.write(torn)
    assert seqs(reader) == ([0, 1], False)
    assert seqs(reader) == ([], False)
    log_of(path, 4)
    assert seqs(reader) == ([2, 3], False)


def test_a_log_that_was_cut_back_begins_anew(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    log_of(path, 4)
    reader = LogReader(path)
    reader.read()
    first_two = b"".join(path.read_bytes().splitlines(keepends=True)[:2])
    path.write_bytes(first_two)
    assert seqs(reader) == ([0, 1], True)
    log_of(path, 3)
    assert seqs(reader) == ([2], False)


def test_a_log_that_was_cut_and_is_longer_by_now_begins_anew(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    log_of(path, 2)
    reader = LogReader(path)
    reader.read()
    path.write_bytes(b"")
    with EventLog(path) as log:  # other events, so that no line ends where one did
        for k in range(9):
            log.append(Told(generation=k, account={"some": "words"}))
    assert seqs(reader) == (list(range(9)), True)


def test_a_log_that_was_replaced_begins_anew(tmp_path: Path):
    path, copy = tmp_path / "events.jsonl", tmp_path / "copy.jsonl"
    log_of(path, 2)
    copy.write_bytes(path.read_bytes())
    reader = LogReader(path)
    reader.read()
    copy.replace(path)
    assert seqs(reader) == ([0, 1], True)


def test_a_damaged_line_is_named(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    log_of(path, 2)
    path.write_bytes(b"nonsense\n" + path.read_bytes())
    with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.DAMAGED and e.line == 1):
        LogReader(path).read()
