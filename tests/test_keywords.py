"""Sentences about options in the words of Python."""

from __future__ import annotations

import pytest

from jaxreward.evolution.keywords import as_keywords
from jaxreward.evolution.settings import EvolveSettings


@pytest.mark.parametrize(
    ("said", "in_python"),
    [
        ("--steps 1.5e6, --seeds 2 and more", "steps=1.5e6, seeds=2 and more"),
        ("nothing is lost, go on with --resume", "nothing is lost, go on with the same call"),
        ("allow more with --max-attempts and --resume", "allow more with max_attempts= and resume=True"),
        ("--preset paper is for xland-easy", "preset='paper' is for xland-easy"),
        ("--model openai/x: the weight after =", "model=['openai/x']: the weight after ="),
        ("--observation /a/b.py has no entry", "observation='/a/b.py' has no entry"),
        ("--observation: there is no file x", "observation=: there is no file x"),
        ("--ppo.envs is large", "ppo.envs is large"),
        (
            "say jaxreward tell --name x, or evolve --resume; --steps",
            "say jaxreward tell --name x, or evolve --resume; steps=",
        ),
        ("`jaxreward check --task x` says more than --steps.", "`jaxreward check --task x` says more than steps=."),
        ("--port 0 takes any that is free - or a--steps", "--port 0 takes any that is free - or a--steps"),
    ],
)
def test_options_are_named_as_keyword_arguments(said, in_python):
    assert as_keywords(said, EvolveSettings) == in_python
