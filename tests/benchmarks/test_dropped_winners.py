"""`benchmarks/dropped_winners.py`: which programs halving would have dropped."""

from __future__ import annotations

import pytest

from benchmarks.dropped_winners import counts, dropped, main
from tests.proposers.material import feedback, result


def trained(name: str, *success: float, generation: int = 0):
    steps = tuple(1000 * (k + 1) for k in range(len(success)))
    found = result("x = 1", success[-1], feedback=feedback(steps=steps, success=success), name=name)
    return found.model_copy(update={"candidate": found.candidate.model_copy(update={"generation": generation})})


FAST, LATE, FLAT = trained("fast", 0.5, 0.8), trained("late", 0.0, 0.9), trained("flat", 0.1, 0.1)


def test_the_better_half_stays_rounded_up_and_of_equal_ones_the_earlier():
    assert dropped([FAST, LATE, FLAT], 0) == {"late"}
    assert dropped([FAST, LATE, FLAT], 1) == {"flat"}
    assert dropped([trained("a", 0.0, 0.0), trained("b", 0.0, 0.0)], 0) == {"b"}


def test_winners_and_solved_programs_that_would_have_gone_are_counted():
    alone = trained("alone", 0.0, 0.7, generation=1)  # alone in its generation, it stays
    (row,) = counts([FAST, LATE, FLAT, alone], solved=0.5)
    assert row == {"steps": 1000, "winner_dropped": True, "solved": 3, "solved_dropped": 1}


def test_without_runs_or_curves_it_says_so(capsys, tmp_path):
    assert main([]) == 2
    assert "say which runs" in capsys.readouterr().err
    assert main([str(tmp_path)]) == 2
    with pytest.raises(Exception, match="curve of more than one point"):
        counts([trained("a", 0.5)], solved=0.5)
