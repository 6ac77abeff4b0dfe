"""`benchmarks/recorded_samples.py`: what a model of the scores would have found among recorded programs."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.recorded_samples import RecordedSamplesSettings, Sample, compared, drawn, main

RNG = np.random.default_rng(0)
NOISE = [Sample({f"observation x{k % 7}": 1.0}, float(RNG.random())) for k in range(100)]
GOOD = [Sample({"reward good": float(k % 4 == 0), "reward other": float(k % 3 == 0)}, 0.8 * (k % 4 == 0) + 0.001 * k)
        for k in range(100)]  # fmt: skip


def test_the_model_finds_what_is_good_and_nothing_in_noise():
    s = RecordedSamplesSettings(candidates=24, draws=8, repeats=50)
    good, noise = compared(GOOD, s), compared(NOISE, s)
    assert good["mean by the model"] > good["mean at random"] + 0.3
    assert noise["mean by the model"] == pytest.approx(noise["mean at random"], abs=0.1)


def test_no_program_is_drawn_twice_and_the_first_generation_is_random():
    s = RecordedSamplesSettings(candidates=24, draws=8)
    scores = [drawn(GOOD, s, model, np.random.default_rng(3)) for model in (False, True)]
    assert all(len({*found}) == 24 for found in scores)
    assert scores[0][:8] == scores[1][:8] and scores[0][8:] != scores[1][8:]
    whole = RecordedSamplesSettings(candidates=100, draws=8)
    assert sorted(drawn(GOOD, whole, True, np.random.default_rng(3))) == sorted(sample.score for sample in GOOD)


def test_without_runs_it_says_so(capsys, tmp_path):
    assert main([]) == 2
    assert "say which runs" in capsys.readouterr().err
    assert main([str(tmp_path)]) == 2
