"""Metrics that are no rates: negative or unbounded values, less that is better, and what is made of them."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydantic import ValidationError
from rich.console import Console

from jaxreward.commands.summary import evolve_json, human_normalised, show_outcome
from jaxreward.comparison.cells import SparseCell, Tools
from jaxreward.comparison.comparison_table import notes, score_sheet
from jaxreward.comparison.finished_searches import Row, read_search, read_sparse
from jaxreward.errors import EndCause, InvalidSetting, UserError
from jaxreward.evolution import run_search
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Setup
from jaxreward.programs import Program
from jaxreward.proposers.genetic.guidance import band, level
from jaxreward.proposers.prompts.prompt_builder import PromptBook
from jaxreward.records import SUCCESS, Candidate, Feedback, Measure, Request, Result, Score, normalised
from jaxreward.reports.live import Live
from jaxreward.reports.tables import figure, interval, mean_over, paired_difference, score_json, score_table
from jaxreward.runs import StopSignal, Trained, read_log
from jaxreward.runs.provenance import read_header
from jaxreward.search.archive import Archive
from jaxreward.search.seeding import derive_rng
from jaxreward.search.selection import better, top
from jaxreward.tasks import card, measure_of
from jaxreward.tasks.metrics import Mean, Reached, Sum, WithExtraMetrics
from jaxreward.tasks.probe import Probe
from jaxreward.tasks.smoke_test import STEPS
from jaxreward.training import PPO, Progress, Rung, train
from jaxreward.training.notices import notices
from jaxreward.training.plan import held_out_steps
from tests.silent import Silent

pytestmark = [pytest.mark.usefixtures("unoptimised", "unsynced"), pytest.mark.long]

MISS = Measure(name="miss", unit="m", rate=False, higher_is_better=False, worst=3.0, sparse=0.8, human=0.2)
COST = Measure(name="cost", rate=False, worst=-9.0)
SMALL = PPO.brax(
    envs=16, unroll=1, unrolls=8, minibatches=2, epochs=2, hidden=(8,), value_hidden=(8,), learning_rate=0.01
)


@dataclass(frozen=True)
class Aim(Probe):
    """Aim as near as possible: the metric is the distance (less is better), or minus it."""

    measure: Measure = MISS

    def score(self) -> Any:
        sign = -1.0 if self.measure.higher_is_better else 1.0
        return WithExtraMetrics(
            Mean(lambda s, a, t: sign * t.error, self.horizon, self.measure),
            {"hit": Reached(lambda t: t.hit), "sum": Sum(lambda s, a, t: t.error, MISS)},
        )

    def dense_reward(self, view: Any, action: jax.Array, next_view: Any) -> jax.Array:
        return -next_view.error


TASK = Aim("aim")


def result(id: str, mean: float, measure: Measure = MISS, **candidate: Any) -> Result:
    fields: dict[str, Any] = {"id": id, "generation": 0, "source": "", "operator": "scratch", **candidate}
    return Result(candidate=Candidate(**fields), score=Score(mean=mean, se=0.1, n=2, episodes=8, measure=measure))


# ---- the record


def test_a_measure_knows_its_direction():
    assert MISS.oriented(2.0) == -2.0 and COST.oriented(-2.0) == -2.0
    assert MISS.reaches(0.1, 0.2) and not MISS.reaches(0.3, 0.2) and COST.reaches(-1.0, -2.0)
    assert MISS.label == "miss (m), less is better" and SUCCESS.label == "success"
    assert MISS.normalised(0.5) == pytest.approx(0.5) and MISS.normalised(0.2) == pytest.approx(1.0)
    assert MISS.normalised(0.1) == pytest.approx(7 / 6) and COST.normalised(1.0) is None
    assert SUCCESS.level(0.3) == 0.3 and COST.level(0.3) is None


def test_a_rate_of_success_is_written_as_it_always_was():
    assert Score(mean=0.5, se=0.1, n=1, episodes=4).model_dump() == {"mean": 0.5, "se": 0.1, "n": 1, "episodes": 4}
    score = Score(mean=0.5, se=0.1, n=1, episodes=4, measure=MISS)
    assert Score.model_validate_json(score.model_dump_json()) == score and score.merit == -0.5
    with pytest.raises(ValidationError):
        Score.model_validate({"mean": 0.5, "se": 0.1, "n": 1, "episodes": 4, "unit": "m"})


@pytest.mark.parametrize(
    "fields",
    [
        {"worst": float("-inf")},
        {"sparse": float("nan")},
        {"rate": True, "higher_is_better": False},
        {"rate": True, "worst": -1.0},
    ],
)
def test_impossible_measures_are_refused(fields):
    with pytest.raises(ValidationError):
        Measure(**{"name": "x", "rate": False, **fields})


def test_a_dense_baseline_no_better_than_sparse_is_no_scale():
    assert normalised(5.0, 1.0, 1.0) is None and normalised(5.0, 1.0, 0.5) is None
    assert normalised(0.3, 0.0, 0.1, error=0.2) is None and normalised(0.3, 0.0, 1.0, error=0.2) == 0.3
    assert MISS.model_copy(update={"human": 0.9}).normalised(0.3) is None, "less is better, and 0.9 is more than 0.8"


# ---- metrics


def test_metrics_by_hand():
    at = lambda x: jnp.float32(x)  # noqa: E731
    mean = Mean(lambda s, a, t: t, 4, MISS, missing=3.0)
    acc = mean.init()
    for x in (1.0, 2.0):
        acc = mean.update(acc, at(0), at(0), at(x))
    assert float(mean.value(acc)) == pytest.approx((1 + 2 + 3 + 3) / 4), "what an early end leaves out counts"
    both = WithExtraMetrics(Sum(lambda s, a, t: t, COST), {"far": Reached(lambda t: t > 1.5)})
    acc = both.init()
    for x in (1.0, 2.0):
        acc = both.update(acc, at(0), at(0), at(x))
    assert float(both.value(acc)) == 3.0 and both.also(acc).tolist() == [1.0]
    assert both.measure == COST and both.names == ("far",) and measure_of(TASK) == MISS


# ---- training


@pytest.fixture(scope="module")
def trained() -> Any:
    return train(TASK, [Program.default(TASK), Program.dense(TASK)], SMALL, seeds=2, steps=6000, checkpoints=3,
                 eval_episodes=64)  # fmt: skip


@pytest.mark.slow
def test_a_measure_to_minimise_falls_in_training(trained):
    assert trained.measure == MISS and trained.extra_metrics == trained.told == ("hit", "sum")
    curve = trained.success_curve.mean(1)
    assert (curve[:, -1] < curve[:, 0]).all() and (curve[:, -1] < 0.35).all()
    np.testing.assert_allclose(trained.extra("sum"), trained.success, rtol=1e-5)
    np.testing.assert_allclose(trained.extra_curve("sum"), trained.success_curve, rtol=1e-5)
    assert not np.allclose(trained.extra_curve("hit"), trained.success_curve)
    score, feedback = trained.score(1), trained.feedback(1)
    assert score.measure == feedback.measure == MISS and score.merit == -score.mean
    assert feedback.return_solved is None and feedback.return_failed is None
    correlation_found = feedback.return_success_correlation
    assert correlation_found is not None and correlation_found > 0.5, "who returns more is nearer"
    best = trained.best_seed(1)
    assert trained.success[1, best] == trained.success[1].min()


def test_a_result_prints_its_candidates_the_best_first(trained):
    """Also where less is better."""
    order = trained.success.mean(1).argsort()
    heading, _, *rows = repr(trained).splitlines()
    assert "2 candidates, 2 seeds" in heading
    for row, k in zip(rows, order, strict=True):
        position, name, mean, *_ = row.split()
        assert (int(position), name) == (k, trained.programs[k].name)
        assert float(mean) == pytest.approx(trained.success[k].mean(), rel=1e-3)


def test_a_plan_has_all_held_out_steps(trained):
    agents = len(trained.programs) * len(trained.seeds)
    most = agents * held_out_steps(TASK, SMALL, len(trained.steps), 64)
    taken = sum((history.length * history.episodes).sum() for history in trained.histories)
    assert most >= trained.eval_steps == pytest.approx(taken, abs=0.5)


def test_the_correlation_is_that_of_the_episodes():
    from tests.training.test_notices import _history, correlation

    rng = np.random.default_rng(1)
    value = rng.normal(size=(2, 40)) * 3.0 - 5.0
    returns = 0.5 * value + rng.normal(size=(2, 40))
    expected = np.corrcoef(returns.ravel(), value.ravel())[0, 1]
    history = _history(returns.tolist(), value.tolist())
    assert correlation(history, 0, COST) == pytest.approx(expected, abs=1e-3)
    assert correlation(history, 0, MISS) == pytest.approx(-expected, abs=1e-3)


def test_an_agent_that_diverges_counts_as_the_worst():
    @dataclass(frozen=True)
    class Undefined(Aim):
        def dense_reward(self, view: Any, action: jax.Array, next_view: Any) -> jax.Array:
            return jnp.log(-1.0 - next_view.error)

    program = Program.dense(Undefined("aim"))
    gone = train(TASK, [program], SMALL, seeds=1, steps=512, checkpoints=1, eval_episodes=16)
    assert gone.diverged.all() and (gone.success == MISS.worst).all()


def test_a_metric_without_a_value_counts_as_the_worst():
    @dataclass(frozen=True)
    class Blind(Probe):
        """A task whose metric has no value after steps that its examination does not take."""

        def score(self) -> Any:
            return Sum(lambda s, a, t: jnp.where(t.t > STEPS, jnp.nan, 0.0), MISS)

    task = Blind("endless", length=STEPS + 4)
    blind = train(task, [Program.default(task)], SMALL, seeds=1, steps=200, checkpoints=1, eval_episodes=16)
    assert (blind.success == MISS.worst).all() and not blind.diverged.any()


def test_rungs_ask_for_less_where_less_is_better():
    programs = [Program.default(TASK)]
    options: dict[str, Any] = {"seeds": 1, "steps": 512, "checkpoints": 2, "eval_episodes": 16}
    assert train(TASK, programs, SMALL, rungs=[Rung(256, 10.0)], **options).stopped[0] == 0
    assert train(TASK, programs, SMALL, rungs=[Rung(256, 0.001)], **options).stopped[0] == 256
    task = Probe("aim")
    with pytest.raises(UserError, match="success rate"):
        train(task, [Program.default(task)], SMALL, rungs=[Rung(256, 10.0)], **options)


def test_noise_has_no_notices():
    """A curve that stands still within its error, while the return drifts up."""
    rng = np.random.default_rng(0)
    found: list[str] = []
    for _ in range(100):
        curve = tuple(2.9 + 0.02 * rng.normal(size=10))
        seeds = tuple(2.9 + 0.03 * rng.normal(size=2))
        fields: dict[str, Any] = {"success": curve, "episode_return": tuple(range(10)), "seed_success": seeds}
        found += [n.kind for n in notices(Feedback(**fields, measure=COST), 4, noise=0.02)]
    assert found.count("plateau") > 95 and found.count("farmed") + found.count("seed_spread") < 3


def test_notices_use_the_range_of_the_metric():
    def kinds(curve: Any, returns: Any, **fields: Any) -> set[str]:
        feedback = Feedback(success=curve, episode_return=returns, seed_success=(curve[-1],), measure=MISS, **fields)
        return {notice.kind for notice in notices(feedback, 4)}

    falling = (2.0, 1.5, 1.0, 0.8, 0.7, 0.6)
    assert kinds(falling, (1, 2, 3, 4, 5, 6)) == set()
    assert "farmed" in kinds((2.0, 0.5, 0.4, 1.0, 1.5, 1.9), (1, 2, 3, 4, 5, 6))
    assert "plateau" in kinds((2.0, 1.0, 1.0, 1.0, 1.0, 1.0), (1, 2, 3, 4, 5, 6))
    assert "plateau" not in kinds((2.0, 0.2, 0.2, 0.2, 0.2, 0.2), (1, 2, 3, 4, 5, 6)), "as good as a person's"
    assert "uncorrelated" in kinds(
        falling, (1, 2, 3, 4, 5, 6), return_success_correlation=0.05, return_success_interval=(0.0, 0.1)
    )
    assert "seed_spread" in {
        n.kind
        for n in notices(Feedback(success=falling, episode_return=falling, seed_success=(0.3, 1.0), measure=MISS), 4)
    }


# ---- search, words, reports


def test_selection_and_archives_follow_the_direction():
    near, far = result("near", 0.1), result("far", 0.9)
    assert better(near, far) and [r.candidate.id for r in top([far, near], 2)] == ["near", "far"]
    assert better(result("a", -0.1, COST), result("b", -0.9, COST))
    summary = Program.default(TASK).summary
    archive = Archive.empty(1)
    for one in (far, near, result("middle", 0.5)):
        archive = archive.insert(
            one.model_copy(update={"candidate": one.candidate.model_copy(update={"summary": summary})}), 0
        )
    assert [r.candidate.id for r in archive.elites()] == ["near"]


def test_guidance_is_by_the_normalised_score():
    assert level(result("x", 0.79)) < 0.1 and band(result("x", 0.79)).below == 0.3
    assert level(result("x", 0.15)) > 1.0 and band(result("x", -50.0)) == band(result("x", 0.15))
    assert level(result("x", -3.0, COST)) == 0.5, "nothing to compare with"


def test_prompts_say_what_is_measured():
    words = card(TASK)
    page = PromptBook(words).messages(Request(id="g", generation=0, operator="scratch"), derive_rng(0))
    text = "\n".join(m["content"] for m in page)
    assert "score is the miss (in m)" in text and "less is better" in text and "success rate" not in text
    parent = result("p", 0.5, source="import jax.numpy as jnp\n")
    request = Request(id="g", generation=1, operator="improve", parents=(parent,))
    text = "\n".join(m["content"] for m in PromptBook(words).messages(request, derive_rng(0)))
    assert "Miss 0.5 m (standard error 0.1, 2 seeds)" in text and "reaches the goal" not in text
    assert "0.8 is what the task's sparse reward reaches, 0.2 what a reward by an experienced person" in text
    reflect = request.model_copy(update={"operator": "reflect"})
    text = "\n".join(m["content"] for m in PromptBook(words).messages(reflect, derive_rng(0)))
    assert "near zero" not in text and "failed episodes" not in text
    plain = words.model_copy(update={"measure": COST})
    request = Request(id="g", generation=1, operator="improve", parents=(result("p", -2.0, COST, source="x = 1\n"),))
    text = "\n".join(m["content"] for m in PromptBook(plain).messages(request, derive_rng(0)))
    assert "Cost -2" in text and "sparse reward reaches" not in text


def test_tables_and_intervals():
    score = Score(mean=-250.0, se=10.0, n=3, episodes=99, measure=COST)
    low, high = interval(score)
    assert low == pytest.approx(-250 - 43.03, abs=0.1) and high == pytest.approx(-250 + 43.03, abs=0.1)
    one = Score(mean=1234.5, se=10.0, n=1, episodes=64, measure=COST)
    assert interval(one)[1] - 1234.5 == pytest.approx(20.0, abs=0.2)
    assert score_json(score)["measure"]["name"] == "cost"  # type: ignore[index]
    assert [figure(x) for x in (0.5, -250.04, 12345.6, 0.0004)] == ["0.500", "-250.0", "12346", "0.000"]
    small = [figure(x, rate=False) for x in (0.5, 0.0, 0.0004, -0.00046, 1e-5, 12345.6)]
    assert small == ["0.500", "0.000", "0.000400", "-0.000460", "1.00e-05", "12346"]
    console = Console(record=True, width=140)
    tiny = Score(mean=0.0004, se=2e-5, n=2, episodes=8, measure=MISS)
    console.print(score_table("t", [("a", tiny, {})]))
    assert {"0.000400", "2.00e-05", "0.000146 to 0.000654"} <= set(re.split(r" (?!to )(?<!to )", console.export_text()))
    mean = mean_over([score, None])
    assert mean is not None and mean.mean == pytest.approx((-250 - 9) / 2) and mean.measure == COST
    nothing = mean_over([None, None], MISS)
    assert nothing is not None and nothing.mean == MISS.worst and nothing.measure == MISS
    near = Score(mean=0.5, se=0.1, n=2, episodes=8, measure=MISS)
    lost = paired_difference([(None, near), (None, near)], MISS)
    assert lost is not None and lost.mean == 2.5, "who found nothing is farther away"
    difference = paired_difference([(score, one), (score, one)])
    assert difference is not None and difference.mean == pytest.approx(-1484.5) and difference.interval is not None


@pytest.fixture(scope="module")
def searched(checker, tmp_path_factory) -> Any:
    settings = EvolveSettings(
        task="probe-aim", candidates=4, generation=2, seeds=1, steps=512, baselines=("sparse", "dense"), final_seeds=2,
        ppo=SMALL, out=tmp_path_factory.mktemp("measured"), name="run", option=("initial=2",), filter_threshold=9.0,
    )  # fmt: skip
    return run_search(settings, Silent(), task=TASK, checker=checker)


@pytest.mark.slow
def test_a_search_finds_the_least(searched):
    results = [
        r for e in read_log(searched.path / "events.jsonl") if isinstance(e.event, Trained) for r in e.event.results
    ]
    scores = [r.score.mean for r in results if r.score]
    assert len(scores) == 4 and searched.best.score.mean == min(scores)
    header = read_header((searched.path / "best_interface.py").read_text())
    assert header["measure"] == "miss (m), less is better"
    search = read_search(searched.path)
    assert search is not None and search.measure == MISS and search.best_so_far[0] == MISS.worst
    assert search.best_so_far[-1] == min(scores)
    assert any(p.name.startswith("best-policy") for p in (searched.path / "checkpoints").iterdir())


def test_the_report_lists_what_came_of_every_candidate(searched):
    listed = evolve_json(searched)["results"]
    results = searched.progress.results
    assert [(one["id"], one["score"]) for one in listed] == [
        (id, result.score.mean if result.score else None) for id, result in results.items()
    ]
    assert all((one["score"] is None) != (one["failure"] is None) for one in listed)


def test_the_report_is_normalised_by_the_baselines_of_the_run(searched, tmp_path):
    sparse, dense = (searched.baselines[name].score.mean for name in ("sparse", "dense"))
    expected = (searched.score.mean - sparse) / (dense - sparse)
    clear = sparse - dense > 2 * np.hypot(*(searched.baselines[name].score.se for name in ("sparse", "dense")))
    found = human_normalised(searched, searched.score)
    assert found == (pytest.approx(expected) if clear else None)
    assert evolve_json(searched)["best"]["human_normalised"] == found
    scores = {"sparse": 0.8, "dense": 0.2}
    of = lambda mean: Score(mean=mean, se=0.01, n=2, episodes=8, measure=MISS)  # noqa: E731
    baselines = {name: searched.baselines[name].model_copy(update={"score": of(x)}) for name, x in scores.items()}
    assert human_normalised(dataclasses.replace(searched, baselines=baselines), of(0.5)) == pytest.approx(0.5)
    json.dumps(evolve_json(searched), allow_nan=False)
    console = Console(record=True, width=140)
    show_outcome(searched, console)
    text = console.export_text()
    assert "miss (m), less is better on probe-aim" in text and "--resume" not in text
    show_outcome(dataclasses.replace(searched, cause=EndCause.DEVICE_S), console)
    again = f"for more: jaxreward evolve --out {searched.path.parent} --name {searched.path.name} --resume"
    assert f"{again} and a larger --max-device-s" in console.export_text().replace("\n", "")


def test_a_task_without_a_persons_reward_has_no_dense_baseline(tmp_path):
    settings = EvolveSettings(task="probe-choice", baselines=("dense",), out=tmp_path, name="run")
    with pytest.raises(InvalidSetting) as error:
        run_search(settings, Silent())
    assert error.value.settings == ("baselines",)
    with pytest.raises(UserError, match="no dense reward"):
        Program.dense(Probe("choice"))
    with pytest.raises(InvalidSetting) as error:
        run_search(dataclasses.replace(settings, baselines=(), filter_threshold=9.0), Silent())
    assert error.value.settings == ("filter_threshold",)
    short = dataclasses.replace(settings, baselines=(), filter_steps=100, task="hopper")
    with pytest.raises(InvalidSetting) as error:
        run_search(short, Silent())
    assert error.value.settings == ("filter_threshold", "filter_steps")
    assert Setup.of(dataclasses.replace(short, filter_threshold=0.05)).task.name == "hopper", (
        "any value may be asked for"
    )


@pytest.mark.slow
def test_a_comparison_trains_a_persons_reward_beside_the_sparse_one(checker, tmp_path):
    settings = EvolveSettings(task="aim", out=tmp_path, final_seeds=2, steps=256, eval_episodes=8, ppo=SMALL)
    cell = SparseCell(settings)
    assert cell.run(TASK, Tools(checker, Silent(), StopSignal(), str)) is None
    found = read_sparse(cell.path)
    assert found is not None and found.dense is not None and found.dense.score.n == 2
    assert list(found.rows()) == ["sparse", "dense"] and found.digest == Program.default(TASK).digest
    row = Row("aim", "limen", "genetic", (), 1)
    table, (note,) = score_sheet([row], found), notes([row], found)[:1]
    assert [line[0] for line in table.rows] == ["limen", "sparse", "dense"] and "those of sparse and dense" in note
    cell.require_same(TASK)
    assert cell.run(Probe("choice"), Tools(checker, Silent(), StopSignal(), str)) is None
    assert (again := read_sparse(cell.path)) is not None and list(again.rows()) == ["sparse"]


@pytest.mark.slow
def test_a_run_keeps_the_file_of_its_task(checker, tmp_path):
    """And does not go on with another one."""
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import dataclass\nfrom jaxreward.tasks.probe import Probe\n\n\n"
        "@dataclass(frozen=True)\nclass Mine(Probe):\n    kind: str = 'choice'\n"
    )
    settings = EvolveSettings(
        task=str(file), candidates=1, generation=1, seeds=1, steps=64, baselines=(), final_seeds=0, out=tmp_path,
        name="run", ppo=PPO(envs=8, unroll=8, minibatches=1, epochs=1, hidden=(4,)),
    )  # fmt: skip
    run_search(settings, Silent(), checker=checker)
    assert (tmp_path / "run" / "task.py").read_text() == file.read_text()
    file.write_text(file.read_text() + "# changed\n")
    again = run_search(dataclasses.replace(settings, resume=True, candidates=2), Silent(), checker=checker)
    assert again.cause is EndCause.ERROR and "has changed since" in again.reason and again.exit_code == 2


def test_live_lines_show_the_least_where_less_is_better_and_small_distances():
    console = Console(file=io.StringIO(), width=200)
    live = Live(console)
    live.training("training", Progress(1, 2, "run", 0, 1, {0: 0.5, 1: 0.012}, MISS))
    assert live.status.bar is not None and live.status.bar.best == "best 0.0120"
    live.training("training", Progress(2, 2, "run", 0, 1, {0: 0.5, 1: 0.012}))
    assert live.status.bar.best == "best 0.50"
