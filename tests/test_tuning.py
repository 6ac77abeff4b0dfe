"""The numerical search for the constants of rewards, by trainings that are made up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jaxreward.objectives.training.tuning import MOST_AT_ONCE, Tuned, generations, tune
from jaxreward.programs import Program
from jaxreward.records import SUCCESS, Candidate, Feedback, Measure, Notice, Result, Score
from jaxreward.training.rungs import Standing

PLAIN = """\
def compute_reward(state, action, next_state):
    near = -abs(next_state.step_num - 3.0) / 9
    held = 0.5 * (next_state.agent.pocket[0] == 5)
    return {} * near + held, dict(near=near, held=held)
"""
WITHOUT = "def compute_reward(state, action, next_state):\n    return next_state.step_num / 9"


@pytest.fixture(scope="module")
def easy(task_of):
    return task_of("xland-easy")


@pytest.fixture(scope="module")
def programs(checker, easy) -> list[Program]:
    found = [p for _, p in checker.check_many([PLAIN.format(0.25), WITHOUT, PLAIN.format("0.7 * 0.3")], easy)]
    assert [len(p.constants) for p in found] == [3, 0, 4]
    return found


def candidates(programs) -> list[Candidate]:
    return [
        Candidate(id=f"c{k}", generation=0, operator="scratch", source=p.source, summary=p.summary)
        for k, p in enumerate(programs)
    ]


class Trainings:
    """Says that a setting is worth what `value` makes of its constants, and remembers what it was asked for. With
    `come` no success is told from that of random actions, and episodes come as far as it makes of the constants."""

    def __init__(self, value, task, settings: int, measure: Measure = SUCCESS, come=None) -> None:
        self.task, self.settings = task, SimpleNamespace(tune=settings, seed=7, tuning_steps=100)
        self.value, self.measure, self.come = value, measure, come
        self.untrained_merit = None if come is None else 0.5
        self.asked: list[tuple[int, list[Program]]] = []

    def train(self, programs, name, **_) -> Any:
        self.asked.append((int(name.removeprefix("tune-")), list(programs)))
        values = np.array([self.value(p.constants) for p in programs])
        come = np.array([self.come(p.constants) if self.come else 0.0 for p in programs])
        standing = Standing(self.measure, np.array([100]), values[:, None], 0 * values, 0, 0 * values, come)
        return SimpleNamespace(standing=standing.only, env_steps=100 * len(programs))


def near(target):
    """More the nearer the logarithm of the last constant is to that of `target`."""
    return lambda constants: float(np.exp(-abs(np.log(constants[-1] / target))))


def remark(tuned: Tuned, row: int) -> Notice:
    found = tuned.notices[row]
    assert found is not None
    return found


def run(programs, checker, easy, settings, value, **more) -> tuple[Tuned, Trainings]:
    trainings: Any = Trainings(value, easy, settings, **more)
    return tune(candidates(programs), programs, trainings, checker), trainings


def test_settings_make_generations():
    assert [generations(n) for n in (2, 16, 17, 64)] == [(1, 2), (1, 16), (2, 8), (4, 16)]
    assert all(a * b <= n and b <= MOST_AT_ONCE for n in range(2, 200) for a, b in [generations(n)])


def test_every_structure_is_asked_for_side_by_side_its_own_setting_first(programs, checker, easy):
    _, trainings = run(programs, checker, easy, 32, near(1.0))
    assert [generation for generation, _ in trainings.asked] == [0, 1]
    for generation, asked in trainings.asked:
        assert len(asked) == 32 and len({p.structure for p in asked[:16]}) == len({p.structure for p in asked}) - 1 == 1
        assert (asked[0] is programs[0], asked[16] is programs[2]) == (generation == 0,) * 2
        assert len({p.digest for p in asked}) == 32


def test_a_better_setting_is_written_into_the_source_and_checked(programs, checker, easy):
    tuned, trainings = run(programs, checker, easy, 64, near(0.05))
    best = max((near(0.05)(p.constants) for _, asked in trainings.asked for p in asked[:16]), default=0.0)
    program, candidate = tuned.programs[0], tuned.candidates[0]
    assert near(0.05)(program.constants) == best > 0.8 > near(0.05)(programs[0].constants)
    assert program.structure == programs[0].structure and program.digest != programs[0].digest
    again = checker.check(candidate.source, easy)[1]
    assert again is not None and candidate.summary is not None
    assert again.digest == program.digest == candidate.summary.digest
    assert candidate.id == "c0" and remark(tuned, 0).kind == "tuned" and "64" in remark(tuned, 0).message


def test_nothing_changes_where_nothing_is_better(programs, checker, easy):
    for value in (lambda _: 0.0, near(0.25)):
        tuned, _ = run(programs[:2], checker, easy, 8, value)
        assert tuned.programs[0] is programs[0] and tuned.candidates[0].source == programs[0].source
        assert "none better" in remark(tuned, 0).message


def test_the_next_best_is_taken_where_the_best_fails_its_check(programs, checker, easy, monkeypatch):
    """And the number that is written is one that float32 has."""
    value, refused = near(0.05), list[str]()
    check_many = checker.check_many

    def refusing(sources, task):
        if not refused:
            refused.extend(sources)
            return [(None, None)]
        return check_many(sources, task)

    monkeypatch.setattr(checker, "check_many", refusing)
    tuned, trainings = run(programs[:1], checker, easy, 32, value)
    tried = sorted((value(p.constants) for _, asked in trainings.asked for p in asked), reverse=True)
    assert len(refused) == 1 and value(tuned.programs[0].constants) == tried[1] > value(programs[0].constants)


def test_constants_at_the_end_of_float32(checker, easy):
    source = PLAIN.format("3e38 * 1e-37 * 2e-38")
    program = checker.check(source, easy)[1]
    assert [float(np.float32(v)) for v in (3e38, 1e-37, 2e-38)] == [float(c) for c in program.constants[-3:]]
    tuned, trainings = run([program], checker, easy, 16, near(1e-37))
    assert all(np.isfinite(p.constants).all() and (p.constants > 0).all() for _, a in trainings.asked for p in a)
    assert np.isfinite(tuned.programs[0].constants).all()
    beyond = checker.check(PLAIN.format("min(1e300, 0.5) * 0.25"), easy)[1]
    assert [float(c) for c in beyond.constants] == [3.0, 0.5, 0.25], "float32 has no 1e300"


def test_a_reward_without_constants_takes_no_steps(programs, checker, easy):
    tuned, _ = run(programs, checker, easy, 4, near(1.0))
    assert tuned.programs[1] is programs[1] and tuned.notices[1] is None
    assert tuned.env_steps == (400, 0, 400)
    nothing, trainings = run(programs[1:2], checker, easy, 4, near(1.0))
    assert not trainings.asked and nothing.env_steps == (0,)


def test_less_is_better_where_the_measure_says_so(programs, checker, easy):
    distance = Measure(name="distance", unit="m", rate=False, higher_is_better=False, worst=9.0)
    tuned, _ = run(programs[:1], checker, easy, 32, lambda c: -near(0.05)(c), measure=distance)
    assert near(0.05)(tuned.programs[0].constants) > near(0.05)(programs[0].constants)


def test_progress_decides_where_success_says_nothing(programs, checker, easy):
    """However it differs by chance."""
    tuned, _ = run(programs[:1], checker, easy, 32, lambda c: 0.01 * near(0.5)(c), come=near(0.05))
    own = programs[0]
    assert near(0.05)(tuned.programs[0].constants) > 0.8 > near(0.05)(own.constants)
    assert (
        f"{0.01 * near(0.5)(own.constants):.3g} (progress {near(0.05)(own.constants):.3g}) as proposed"
        in remark(tuned, 0).message
    )


def test_the_same_seed_tries_the_same(programs, checker, easy):
    one, other = (run(programs, checker, easy, 32, near(0.05))[1] for _ in range(2))
    assert [[p.digest for p in asked] for _, asked in one.asked] == [[p.digest for p in a] for _, a in other.asked]


def test_results_carry_what_tuning_took_and_found(programs, checker, easy):
    tuned, _ = run(programs, checker, easy, 4, near(1.0))
    score = Score(mean=0.5, se=0.1, n=2, episodes=20)
    for row, steps in ((0, 410), (1, 10)):
        result = Result(candidate=tuned.candidates[row], score=score, feedback=Feedback(), env_steps=10)
        annotated = tuned.annotated(row, result)
        assert annotated.feedback is not None
        assert annotated.env_steps == steps and [n.kind for n in annotated.feedback.notices] == ["tuned"] * (row == 0)
