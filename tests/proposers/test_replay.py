"""Replaying recorded proposals."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jaxreward.errors import FileProblem, InvalidSetting, UnusableFile, UserError
from jaxreward.proposers.registry import make_proposer
from jaxreward.proposers.replay import ReplayProposer
from jaxreward.records import Failure, Proposal
from tests.proposers.material import XLAND, request

ANSWER = Proposal(request_id="r1", source="def get_observation(state): ...\n", proposer="genetic", tokens=3)
REFUSAL = Proposal(request_id="r2", failure=Failure(stage="reply", message="no program in the answer"))
RNG = np.random.default_rng(0)


def answer(proposer, id="r1"):
    (proposal,) = proposer.propose_all([request().model_copy(update={"id": id})], lambda _: RNG).proposals
    return proposal


def recorded(tmp_path, extra=""):
    events = [
        {"type": "run_started", "task": "t"},
        {"type": "asked", "requests": [{"id": "r1"}]},
        *({"type": "proposed", "proposal": p.model_dump(mode="json")} for p in (ANSWER, REFUSAL)),
        {"type": "checked", "request_id": "r1", "verdict": {"failure": None}},
    ]
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(e) + "\n" for e in events) + extra)
    return path


def test_every_kind_of_recording_replays_exactly(tmp_path):
    path = recorded(tmp_path)
    for recording in (path, str(path), tmp_path, {"r1": ANSWER, "r2": REFUSAL}):
        proposer = make_proposer("replay", XLAND, recording=recording)
        assert answer(proposer) == ANSWER
        assert answer(proposer, "r2") == REFUSAL


def test_a_torn_last_line_is_left_out(tmp_path):
    proposer = ReplayProposer(recorded(tmp_path, '{"type": "proposed", "prop'))
    assert answer(proposer) == ANSWER


def test_a_recording_that_cannot_be_replayed_is_a_mistake(tmp_path):
    with pytest.raises(UserError, match="has no answer to request 'r9'"):
        answer(ReplayProposer({"r1": ANSWER}), "r9")
    with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.MISSING):
        ReplayProposer(tmp_path / "missing.jsonl")
    with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.WRONG_KIND):
        ReplayProposer({})
    with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.DAMAGED and e.line == 1):
        path = tmp_path / "bad.jsonl"
        path.write_text("{\n{}\n")
        ReplayProposer(path)
    with pytest.raises(InvalidSetting, check=lambda e: e.settings == ("recording",)):
        make_proposer("replay", XLAND)
