"""Sentences about options, in the words of the command line and in those of Python."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from jaxreward.config import check_bounds
from jaxreward.errors import InvalidSetting, UserError, errors_in_python
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.sentences import RESUME, Sentence, in_python, marked, mention


@pytest.mark.parametrize(
    ("written", "typed", "called"),
    [
        (mention("final_seeds", 3), "--final-seeds 3", "final_seeds=3"),
        (mention("max_usd", 0.5), "--max-usd 0.5", "max_usd=0.5"),
        (mention("max_attempts"), "--max-attempts", "max_attempts="),
        (mention("preset", "paper"), "--preset paper", "preset='paper'"),
        (mention("model", ["openai/x", "y"]), "--model openai/x y", "model=['openai/x', 'y']"),
        (mention("observation", Path("/a/b.py")), "--observation /a/b.py", "observation='/a/b.py'"),
        (mention("restart", True), "--restart", "restart=True"),
        (mention("ppo.envs"), "--ppo.envs", "ppo.envs"),
        (f"go on with {RESUME}", "go on with --resume", "go on with the same call"),
        ("`jaxreward check --task x` says more", *["`jaxreward check --task x` says more"] * 2),
    ],
)
def test_an_option_is_worded_where_it_is_shown(written: str, typed: str, called: str):
    sentence = Sentence(f"<{written}, {written}>")
    assert sentence == f"<{typed}, {typed}>" and in_python(sentence) == f"<{called}, {called}>"
    assert Sentence(f"{marked(sentence)}!").python == f"<{called}, {called}>!"
    assert pickle.loads(pickle.dumps(sentence)).python == sentence.python and Sentence(sentence) is sentence


@pytest.mark.parametrize(
    "text", ["", "plain", "\ue000", "\ue002 \ue001", "\ue000a\ue002", "\ue000a\ue000b\ue001c\ue002"]
)
def test_any_text_may_be_one(text: str):
    assert not {"\ue000"} & {*Sentence(text), *Sentence(text).python}


def test_an_error_keeps_its_options_for_python():
    with pytest.raises(InvalidSetting) as error, errors_in_python():
        check_bounds(EvolveSettings(candidates=0))
    assert str(error.value) == "candidates= must be at least 1, not 0" and error.value.settings == ("candidates",)
    with pytest.raises(InvalidSetting) as error:
        check_bounds(EvolveSettings(candidates=0))
    assert str(error.value) == "--candidates must be at least 1, not 0"
    sent = pickle.loads(pickle.dumps(error.value))
    assert str(sent) == str(error.value) and sent.sentence.python.startswith("candidates=") and sent.settings
    assert str(UserError(f"{error.value.sentence.marked}; more")).startswith("--candidates")
