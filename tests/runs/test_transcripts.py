"""Exchanges on the disk: before they are used, and readable after a crash."""

from __future__ import annotations

import pytest

from jaxreward.errors import FileProblem, UnusableFile
from jaxreward.records import Exchange
from jaxreward.runs import TranscriptLog, read_transcript


def exchange(id: str, turn: int = 0, **fields) -> Exchange:
    return Exchange(request_id=id, turn=turn, model="m", **fields)


def test_what_is_added_is_read_again(tmp_path):
    path = tmp_path / "exchanges.jsonl"
    log = TranscriptLog(path)
    assert log.exchanges() == () and not path.exists()
    said = [exchange("a", reply="x\u2028y \ud800", messages=({"role": "user", "content": "é"},)), exchange("b"),
            exchange("a", 1, cost_usd=None, error="503")]  # fmt: skip
    for one in said:
        log.add(one)
        assert read_transcript(path)[-1] == one
    again = TranscriptLog(path)
    assert list(again.exchanges()) == said and list(again.of("a")) == [said[0], said[2]] and again.of("c") == ()


@pytest.mark.parametrize("torn", [1, 20, -1])
def test_a_torn_last_line_is_cut_off(tmp_path, torn):
    path = tmp_path / "exchanges.jsonl"
    log = TranscriptLog(path)
    log.add(exchange("a"))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:torn])
    again = TranscriptLog(path)
    assert [e.request_id for e in again.exchanges()] == ["a"]
    again.add(exchange("b"))
    assert [e.request_id for e in read_transcript(path)] == ["a", "b"]


def test_damage_elsewhere_names_the_line(tmp_path):
    path = tmp_path / "exchanges.jsonl"
    log = TranscriptLog(path)
    log.add(exchange("a"))
    log.add(exchange("b"))
    path.write_bytes(b"{}\n" + path.read_bytes())
    with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.DAMAGED and e.line == 1):
        TranscriptLog(path)
