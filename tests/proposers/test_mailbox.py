"""Answers in files: when one counts, and what is kept of it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from jaxreward.errors import EndCause
from jaxreward.proposers.human.mailbox import Mailbox
from jaxreward.proposers.human.manual import ManualProposer
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.proposers.proposer import Context
from jaxreward.records import Request
from jaxreward.runs import TranscriptLog
from jaxreward.search.seeding import derive_rng
from jaxreward.tasks import card, make_task


def mailbox(folder: Path, wait_s: float = 0.0, notes: list[str] | None = None, **more: Any) -> Mailbox:
    note = (notes if notes is not None else []).append
    context = Context(folder=folder, transcript=TranscriptLog(folder / "exchanges.jsonl"), note=note,
                should_stop=more.pop("should_stop", lambda: False))  # fmt: skip
    box = Mailbox(context, "asked", "told", (".txt", ".md"), "word", "people", wait_s, "this", **more)
    for id in ("a", "b"):
        box.post(id, "say something")
    return box


def say(box: Mailbox, id: str, text: str, age_s: float = 0.0) -> Path:
    path = box.reply_path(id)
    path.write_text(text)
    touched = time.time() - age_s
    os.utime(path, (touched, touched))
    return path


@pytest.mark.parametrize("text", ["", "\n \n"], ids=["touched", "blank"])
def test_an_empty_file_is_no_answer(tmp_path, text):
    box = mailbox(tmp_path)
    say(box, "a", text, age_s=60)
    answers, stopped = box.collect(["a", "b"])
    assert answers == {} and stopped is not None and stopped.cause is EndCause.PEOPLE and stopped.later
    assert str(stopped).startswith("2 of 2 requests") and box.kept("a") is None
    say(box, "a", "yes", age_s=60)
    assert box.collect(["a"]) == ({"a": "yes"}, None)


def test_a_stop_keeps_nothing_that_may_be_half_written(tmp_path):
    box = mailbox(tmp_path, wait_s=0.0, should_stop=lambda: True)
    say(box, "a", "le")
    say(box, "b", "right", age_s=60)
    assert box.collect(["a", "b"]) == ({"b": "right"}, None)
    assert box.kept("a") is None and box.kept("b") == "right"


def test_at_the_end_of_the_wait_what_was_touched_just_now_counts(tmp_path):
    box = mailbox(tmp_path)
    say(box, "a", "yes")
    assert box.collect(["a"]) == ({"a": "yes"}, None)
    say(box, "a", "no")
    assert box.collect(["a"]) == ({"a": "yes"}, None), "what was read stays"


def test_what_has_a_fault_waits_and_is_named_once(tmp_path):
    notes: list[str] = []
    box = mailbox(tmp_path, 0.6, notes)
    path = say(box, "a", "I say yes", age_s=60)
    say(box, "b", "yes", age_s=60)
    answers, stopped = box.collect(["a", "b"], lambda id, text: "" if text.startswith("yes") else "say yes")
    assert answers == {"b": "yes"} and notes[0] == f"{path} cannot be read as a word: say yes"
    assert len(notes) == 2 and notes[1].startswith("waiting for 1 of 2 words")
    assert str(stopped).startswith("1 of 2 requests") and str(stopped).endswith(f"; {notes[0]}")


def test_keys_are_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-9f8e7d6c5b4a3210")
    box = mailbox(tmp_path)
    say(box, "a", "it is sk-9f8e7d6c5b4a3210")
    assert box.collect(["a"]) == ({"a": "it is ***"}, None) and box.kept("a") == "it is ***"
    assert "9f8e" not in (tmp_path / "exchanges.jsonl").read_text()


@pytest.mark.parametrize("stop", [False, True], ids=["touched", "stopped"])
def test_a_program_by_hand_that_is_not_there_yet_does_not_fail(tmp_path, stop):
    made = ManualProposer(card(make_task("probe-choice")), LlmSettings(wait_s=0.0))
    made.open(
        Context(folder=tmp_path, transcript=TranscriptLog(tmp_path / "exchanges.jsonl"), should_stop=lambda: stop)
    )
    request = Request(id="g0000-00", generation=0, operator="scratch")
    made.write_requests([request], lambda r: derive_rng(0, r.id))
    made.reply_path(request).write_text("import jax.num" if stop else "")
    answers = made.propose_all([request], lambda r: derive_rng(0, r.id))
    assert answers.proposals == () and (answers.stopped is None) == stop


def test_unreadable_text_by_hand_waits_for_its_correction(tmp_path):
    made = ManualProposer(card(make_task("probe-choice")), LlmSettings(wait_s=0.0))
    made.open(Context(folder=tmp_path, transcript=TranscriptLog(tmp_path / "exchanges.jsonl")))
    request = Request(id="g0000-00", generation=0, operator="plan")
    made.write_requests([request], lambda r: derive_rng(0, r.id))
    path = made.reply_path(request)
    path.write_text("I cannot think of anything")
    answers = made.propose_all([request], lambda r: derive_rng(0, r.id))
    assert answers.proposals == () and "no JSON object" in str(answers.stopped)
    path.write_text("- near: being near the ball")
    answers = made.propose_all([request], lambda r: derive_rng(0, r.id))
    assert [p.words for p in answers.proposals] == ["- near: being near the ball"]
