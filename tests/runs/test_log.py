"""The event log: what is read back after any crash, and who may write."""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import subprocess
import sys

import pytest

from jaxreward.errors import EndCause, FileProblem, UnusableFile
from jaxreward.records import Candidate, Feedback, Proposal, Result, Score
from jaxreward.runs import Baseline, Finished, Paused, Proposed, Told, Trained
from jaxreward.runs.events import EVENT_TYPES, Event, event_adapter
from jaxreward.runs.log import EventLog, read_log


@pytest.fixture
def path(tmp_path):
    return tmp_path / "events.jsonl"


def written(path, count=3):
    with EventLog(path) as log:
        for generation in range(count):
            log.append(Told(generation=generation))
    return path.read_bytes()


def events(path):
    return [entry.event for entry in read_log(path)]


def test_what_was_appended_is_read(path):
    written(path, 2)
    with EventLog(path) as log:
        assert [entry.event for entry in log.entries] == [Told(generation=0), Told(generation=1)]
        log.append(Finished(reason="budget"))
        assert read_log(path) == log.entries, "readers need no lock"
    assert [entry.seq for entry in read_log(path)] == [0, 1, 2]


def test_a_missing_log_is_empty(path):
    assert read_log(path) == []


@pytest.mark.parametrize("text", ['a "quoted"\nline\u2028 \U0001f600 \x7f', ""])
def test_text_and_numbers_survive_exactly(path, text):
    candidate = Candidate(id="a", generation=0, operator="scratch", source=text)
    feedback = Feedback(success=(0.1, math.nan, math.inf, -math.inf, 1e-300), value_fit=math.nan)
    result = Result(candidate=candidate, score=Score(mean=0.1 + 0.2, se=math.nan, n=1, episodes=3), feedback=feedback)
    with EventLog(path) as log:
        log.append(Proposed(proposal=Proposal(request_id="a", source=text)))
        log.append(Trained(results=(result,)))
    json.loads(path.read_text().splitlines()[1], parse_constant=pytest.fail)  # strict JSON: no bare NaN
    proposed, trained = events(path)
    assert isinstance(proposed, Proposed) and isinstance(trained, Trained)
    assert proposed.proposal.source == text
    assert repr(trained.results[0]) == repr(result)


@pytest.mark.long
def test_a_log_cut_at_any_byte_is_the_log_of_its_whole_lines(path):
    whole = written(path)
    ends = [k + 1 for k, byte in enumerate(whole) if byte == ord("\n")]
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        complete = sum(end <= size for end in ends)
        assert events(path) == [Told(generation=k) for k in range(complete)]
        with EventLog(path) as log:
            log.append(Told(generation=99))
        assert events(path) == [*(Told(generation=k) for k in range(complete)), Told(generation=99)]


@pytest.mark.parametrize("tail", [b"\x00" * 40, b"\x00" * 40 + b"\n", b'{"v":1,"se\n', b"\xff\xfe\n", b'{"v":1'])
def test_garbage_after_the_last_line_is_dropped(path, tail):
    whole = written(path)
    path.write_bytes(whole + tail)
    assert len(events(path)) == 3
    with EventLog(path) as log:
        assert path.read_bytes() == whole + tail, "nothing is cut before something is written"
        log.append(Told(generation=3))
    assert path.read_bytes().startswith(whole) and len(events(path)) == 4


def damage(path, number, line):
    lines = path.read_bytes().splitlines()
    lines[number - 1] = line(lines[number - 1])
    path.write_bytes(b"\n".join(lines) + b"\n")


@pytest.mark.parametrize(
    ("line", "problem", "subject"),
    [
        (lambda line: line[:20], FileProblem.DAMAGED, ""),
        (lambda line: b"\x00" * 30, FileProblem.DAMAGED, ""),
        (lambda line: b"", FileProblem.DAMAGED, ""),
        (lambda line: b"[1]", FileProblem.WRONG_KIND, ""),
        (lambda line: line.replace(b'"v":1', b'"v":2'), FileProblem.OTHER_VERSION, "version 2"),
        (lambda line: line.replace(b'"seq":1', b'"seq":7'), FileProblem.DAMAGED, "7 where 1"),
        (lambda line: line.replace(b'"told"', b'"tolled"'), FileProblem.OTHER_VERSION, "'tolled'"),
        (
            lambda line: line.replace(b'"generation":1', b'"generation":"x"'),
            FileProblem.OTHER_VERSION,
            "told.generation",
        ),
        (
            lambda line: line.replace(b'"generation"', b'"extra":1,"generation"'),
            FileProblem.OTHER_VERSION,
            "told.extra",
        ),
    ],
)
def test_a_line_that_cannot_be_read_is_named(path, line, problem, subject):
    written(path)
    damage(path, 2, line)
    before = path.read_bytes()
    for opening in (read_log, EventLog):
        with pytest.raises(UnusableFile) as raised:
            opening(path)
        error = raised.value
        assert (error.path, error.problem, error.line) == (path, problem, 2) and subject in str(error)
    assert path.read_bytes() == before


def test_an_unknown_event_at_the_end_is_not_taken_for_a_torn_line(path):
    written(path)
    damage(path, 3, lambda line: line.replace(b'"told"', b'"tolled"'))
    with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.OTHER_VERSION and e.line == 3):
        read_log(path)


def test_every_event_type_is_known_to_the_reader():
    union = Event.__origin__  # pyright: ignore[reportAttributeAccessIssue]
    assert {cls.model_fields["type"].default for cls in union.__args__} == set(EVENT_TYPES)


def test_two_writers_are_refused_and_the_lock_ends_with_its_holder(path):
    with EventLog(path), pytest.raises(UnusableFile, match=f"by process {os.getpid()} on "):
        EventLog(path)
    EventLog(path).close()


def test_a_file_system_without_locks_is_used_with_a_warning(path, monkeypatch):
    def unsupported(*args):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with pytest.warns(UserWarning, match="a file system without locks"):
        written(path)
    assert len(events(path)) == 3


def test_a_writer_in_another_process_is_refused_until_it_is_killed(path):
    hold = "import sys, pathlib, time; from jaxreward.runs.log import EventLog\n"
    hold += "log = EventLog(pathlib.Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", hold, str(path)], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None and child.stdout.readline() == b"held\n"
            with pytest.raises(UnusableFile, match=f"by process {child.pid} on "):
                EventLog(path)
        finally:
            child.kill()
    EventLog(path).close()


@pytest.mark.parametrize("call", ["pwrite", "fsync"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_loses_no_events(path, monkeypatch, call, code):
    whole = written(path)
    real = os.pwrite

    def fail(file, *args):
        if call == "pwrite":
            real(file, args[0][:10], args[1])  # some of the line still fitted
        raise OSError(code, os.strerror(code))

    with EventLog(path) as log:
        with monkeypatch.context() as patch:
            patch.setattr(os, call, fail)
            with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.FULL):
                log.append(Told(generation=3))
        assert path.read_bytes() == whole and len(log.entries) == 3
        log.append(Told(generation=3))
    assert len(events(path)) == 4


def test_short_writes_are_completed(path, monkeypatch):
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, offset: real(file, data[:7], offset))
    written(path)
    assert events(path) == [Told(generation=k) for k in range(3)]


def test_a_second_writer_that_got_past_the_lock_is_noticed(path):
    with EventLog(path) as log:
        log.append(Told(generation=0))
        with path.open("ab") as intruder:
            intruder.write(b"x\n")
        with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.IN_USE):
            log.append(Told(generation=1))


def test_a_closed_log_takes_nothing(path):
    log = EventLog(path)
    log.close()
    log.close()
    with pytest.raises(ValueError, match="is closed"):
        log.append(Told(generation=0))


def test_extra_metrics_keep_their_key_of_earlier_versions():
    feedback = Feedback.model_validate({"beside": {"mean_distance": 0.5}})
    assert feedback == Feedback.model_validate({"extra_metrics": {"mean_distance": 0.5}})
    line = event_adapter.dump_python(Baseline(name="sparse", feedback=feedback), mode="json")
    assert line["feedback"]["beside"] == feedback.extra_metrics and "extra_metrics" not in line["feedback"]
    assert event_adapter.validate_python(line).feedback == feedback  # type: ignore[union-attr]


def test_an_end_has_a_cause_and_one_of_earlier_versions_none(path):
    with EventLog(path) as log:
        log.append(Finished(reason="all candidates are trained", cause=EndCause.CANDIDATES))
        log.append(Paused(reason="stopped by SIGTERM"))
    now, before = path.read_text().splitlines()
    assert '"cause":"candidates"' in now and "cause" not in before, "the bytes of before"
    first, second = events(path)
    assert isinstance(first, Finished) and first.cause is EndCause.CANDIDATES
    assert isinstance(second, Paused) and second.cause is None
