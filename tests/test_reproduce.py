"""Published tables run again: listed, planned, run, resumed, and laid out beside the published figures."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.commands.reproduce import COMMANDS
from jaxreward.comparison.cells import Tools, Unfinished
from jaxreward.demonstrations import RandomActor, record_actions, reset_keys
from jaxreward.errors import ChangedSetting, InvalidSetting, UnknownName, UnusableFile, UserError
from jaxreward.reproduction import registry
from jaxreward.reproduction.cell import Budget, Cell, Plan
from jaxreward.reproduction.entry import Entry, Results
from jaxreward.reproduction.grace.episodes import MIXED, before_success
from jaxreward.reproduction.grace.figure4 import Figure4, Figure4b
from jaxreward.reproduction.grace.policies import searches_of
from jaxreward.reproduction.grace.published import MULTI_TASK, TABLE_1, TABLE_2, TABLE_3
from jaxreward.reproduction.grace.reward_search import LevelSearch
from jaxreward.reproduction.grace.robots import whole_episodes
from jaxreward.reproduction.grace.table1 import Table1
from jaxreward.reproduction.grace.tables import Table2, Table3
from jaxreward.reproduction.layout import Measured, Published, ResultTable, Row, mean_row, numbers_of
from jaxreward.tasks import BaseTask, Discrete, Task
from jaxreward.tasks.levels.catalogue import LEVELS
from jaxreward.tasks.levels.mix import LevelMix
from jaxreward.training import quick
from jaxreward.training.learners import for_recovered_rewards

pytestmark = pytest.mark.usefixtures("unsynced")
(command,) = COMMANDS

RUN: list[str] = []
"""Labels of the cells that were run, in order."""
FAILING: dict[str, BaseException] = {}
"""What a cell raises in place of its numbers, by its label."""


@dataclass(frozen=True)
class Sum(Cell):
    """Adds the plan's steps to its seed."""

    kind: ClassVar[str] = "sum"
    shown: ClassVar[tuple[str, ...]] = ("value",)

    seed: int

    def settings(self, plan: Plan) -> dict[str, Any]:
        return {"steps": plan.steps}

    def env_steps(self, plan: Plan) -> int:
        return plan.steps

    def seconds(self, plan: Plan) -> float:
        return 3.0

    def run(self, plan: Plan, tools: Tools) -> Mapping[str, Any] | Unfinished:
        RUN.append(self.label)
        if self.label in FAILING:
            raise FAILING[self.label]
        return {"value": plan.steps + self.seed}


@dataclass(frozen=True)
class Double(Cell):
    """Twice the sum of seed 0."""

    kind: ClassVar[str] = "double"

    def needs(self, plan: Plan) -> Sequence[Cell]:
        return [Sum(self.part, 0)]

    def run(self, plan: Plan, tools: Tools) -> Mapping[str, Any] | Unfinished:
        RUN.append(self.label)
        found = Sum(self.part, 0).read(plan)
        assert found is not None
        return {"value": 2 * found.numbers["value"]}


@dataclass(frozen=True)
class Impossible(Cell):
    kind: ClassVar[str] = "impossible"

    def lacking(self) -> str:
        return "this is not available"

    def run(self, plan: Plan, tools: Tools) -> Mapping[str, Any] | Unfinished:
        raise AssertionError


class Sums(Entry):
    name: ClassVar[str] = "paper/table9"
    summary: ClassVar[str] = "sums of two parts"
    budget: ClassVar[Budget] = Budget(seeds=2, steps=10)
    parts: ClassVar[tuple[str, ...]] = ("left", "right")
    folder: ClassVar[str] = "paper"

    def cells(self, plan: Plan) -> Sequence[Cell]:
        each = (
            [*(Sum(part, seed) for seed in range(plan.budget.seeds)), Double(part), Impossible(part)]
            for part in plan.parts
        )
        return [cell for cells in each for cell in cells]

    def tables(self, plan: Plan, results: Results) -> Sequence[ResultTable]:
        def value(part: str) -> Measured | None:
            cells = (Sum(part, seed) for seed in range(plan.budget.seeds))
            values = [x for cell in cells if cell in results for x in numbers_of(results[cell].numbers, "value")]
            return Measured.of(values, rate=False)

        rows = [Row(part, (value(part), Published(11.0), None)) for part in plan.parts]
        return [ResultTable("Sums", ("part", "ours", "paper", "lacking"), tuple(rows), ("A note.",))]


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry of cells that cost nothing."""
    entry = Sums()
    monkeypatch.setattr(registry, "entries", lambda: {entry.name: entry})
    monkeypatch.setattr("jaxreward.programs.Checker", lambda **_: nullcontext(None))
    monkeypatch.setattr("jax.clear_caches", lambda: None)
    RUN.clear()
    FAILING.clear()


def reproduce(*words: str) -> int:
    return command(["paper/table9", *words])


def written(out: Path) -> dict[str, Any]:
    return json.loads((out / "table9.json").read_text())


def test_without_a_name_the_entries_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command([]) == 0
    assert re.search(r"paper/table9 +sums of two parts; about 12 s", capsys.readouterr().out)


def test_an_unknown_entry_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'paper/table9'"):
        command(["paper/table8"])


def test_a_dry_run_says_what_is_left_and_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce("--out", str(tmp_path), "--only", "left", "--dry-run", "--json") == 0
    said = capsys.readouterr()
    assert RUN == [] and list(tmp_path.iterdir()) == []
    assert "to do: 3 cells, 20 environment steps" in said.err and "this is not available" in said.err
    plan = json.loads(said.out.splitlines()[-1])
    assert plan["budget"] == {"seeds": 2, "steps": 10} and plan["env_steps"] == 20
    assert [cell["state"] for cell in plan["cells"]] == ["to do"] * 3 + ["this is not available"]


def test_figures_stand_beside_the_published_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce("--out", str(tmp_path)) == 0
    page = (tmp_path / "table9.md").read_text()
    assert "| left | 10.500 (4.147 to 16.853) | 11.00 | - |" in page and "A note." in page
    assert "left, impossible: this is not available" in page
    said = capsys.readouterr().out
    assert "10.500 (4.147 to 16.853)" in said and "2 of 6: left, sum, seed 1: value 11.000, " in said
    whole = written(tmp_path)
    assert whole["tables"][0]["rows"][0]["paper"] == {"published": 11.0}
    assert whole["tables"][0]["rows"][0]["ours"]["n"] == 2 and len(whole["cells"]) == 6
    (machine,) = whole["machines"]
    assert machine["cells"] == 6 and machine["device"].startswith("cpu") and machine["versions"]["jax"]
    assert whole["command"].startswith("jaxreward reproduce paper/table9")


def test_what_is_finished_is_not_run_again(tmp_path: Path) -> None:
    out = ("--out", str(tmp_path))
    assert reproduce(*out, "--only", "left") == 0
    first = [*RUN]
    RUN.clear()
    assert reproduce(*out) == 0
    assert first and RUN and set(RUN).isdisjoint(first)
    RUN.clear()
    assert reproduce(*out) == 0
    assert RUN == [] and len(written(tmp_path)["cells"]) == 6


def test_cells_of_other_folders_are_joined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Such as other machines': half of the work was done there."""
    there, here = (str(tmp_path / name) for name in ("there", "here"))
    assert reproduce("--out", there, "--only", "left") == 0
    file = tmp_path / "there" / "table9.json"
    RUN.clear()
    capsys.readouterr()
    words = ("--out", here, "--join", str(file))
    assert reproduce(*words, "--dry-run", "--json") == 0
    states = json.loads(capsys.readouterr().out.splitlines()[-1])["cells"]
    assert [cell["state"] for cell in states if cell["part"] == "left"][:3] == ["done"] * 3
    assert not (tmp_path / "here").exists(), "a plan writes nothing"
    assert reproduce(*words) == 0
    assert RUN and all(label.startswith("right") for label in RUN)
    assert written(tmp_path / "here")["cells"][:3] == json.loads(file.read_text())["cells"]
    assert len(written(tmp_path / "here")["cells"]) == 6
    with pytest.raises(
        ChangedSetting, match="left, sum, seed 0 of .* was run with steps 10 and is now asked for with 20"
    ):
        reproduce("--out", str(tmp_path / "other"), "--join", str(file), "--steps", "20")


def test_a_cell_whose_files_are_needed_is_not_joined(tmp_path: Path) -> None:
    assert reproduce("--out", str(tmp_path / "there"), "--only", "left") == 0
    RUN.clear()
    file = tmp_path / "there" / "table9.json"
    found = json.loads(file.read_text())
    found["cells"] = [cell for cell in found["cells"] if cell["coordinates"]["kind"] != "double"]
    file.write_text(json.dumps(found))
    assert reproduce("--out", str(tmp_path / "here"), "--only", "left", "--join", str(file)) == 0
    assert RUN == ["left, sum, seed 0", "left, double"], "the other sum is joined"


@pytest.mark.parametrize("text", ["{", "[]", '{"cells": [{"a": 1}]}', None])
def test_what_has_no_cells_is_not_joined(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "results.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UnusableFile, match="NAME.json of its folder"):
        reproduce("--out", str(tmp_path / "here"), "--join", str(file))


def test_a_reproduction_that_was_killed_goes_on_with_the_cell_it_was_in(tmp_path: Path) -> None:
    out = ("--out", str(tmp_path))
    FAILING["left, sum, seed 1"] = SystemExit(9)  # nothing of the runner sees it
    with pytest.raises(SystemExit):
        reproduce(*out)
    assert RUN == ["left, sum, seed 0", "left, sum, seed 1"]
    assert Sum("left", 1).status(Plan(tmp_path, ("left",), Sums.budget)) == "begun"
    FAILING.clear()
    RUN.clear()
    assert reproduce(*out) == 0
    assert RUN[0] == "left, sum, seed 1" and len(RUN) == 5


def test_a_cell_that_fails_keeps_those_that_need_it_but_no_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    FAILING["left, sum, seed 0"] = ZeroDivisionError("of the cell")
    FAILING["right, sum, seed 1"] = UserError("this cannot be")
    assert reproduce("--out", str(tmp_path), "--json") == 2
    said = capsys.readouterr()
    assert "right, double" in RUN and "left, sum, seed 1" in RUN and "left, double" not in RUN
    missing = json.loads(said.out.splitlines()[-1])["missing"]
    assert missing["right, sum, seed 1"] == "this cannot be"
    assert "it needs left, sum, seed 0" in missing["left, double"]
    assert "ZeroDivisionError: of the cell" in missing["left, sum, seed 0"]
    assert "of the cell" in (tmp_path / "cells" / "left" / "sum-0.error.txt").read_text()
    assert written(tmp_path)["missing"].keys() >= missing.keys()
    FAILING.clear()
    assert reproduce("--out", str(tmp_path)) == 0


def test_a_cell_is_not_taken_for_one_of_another_budget(tmp_path: Path) -> None:
    out = ("--out", str(tmp_path))
    assert reproduce(*out) == 0
    RUN.clear()
    with pytest.raises(ChangedSetting, match="was begun with steps 10 and is now asked for with 20"):
        reproduce(*out, "--steps", "20")
    assert RUN == [] and len(written(tmp_path)["cells"]) == 6


def test_options_that_an_entry_does_not_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="--candidates is of no use to paper/table9"):
        reproduce("--candidates", "3", "--out", str(tmp_path))
    with pytest.raises(InvalidSetting, match="has no lift; did you mean 'left'"):
        reproduce("--only", "lift", "--out", str(tmp_path))
    with pytest.raises(InvalidSetting, match="--proposer llm"):
        reproduce("--model", "openai/some", "--out", str(tmp_path))


def test_a_damaged_cell_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    assert reproduce("--out", str(tmp_path)) == 0
    file = tmp_path / "cells" / "left" / "sum-0" / "cell.json"
    file.write_text("{")
    with pytest.raises(UnusableFile, match="delete it"):
        Sum("left", 0).read(Plan(tmp_path, ("left",), Sums.budget))
    assert reproduce("--out", str(tmp_path)) == 0
    assert "is damaged" in written(tmp_path)["missing"]["left, sum, seed 0"]


# ---- layout


def test_intervals_are_over_repetitions() -> None:
    assert Measured.of([]) is None
    one = Measured.of([0.5])
    assert one is not None and one.interval is None and one.text() == "0.500"
    three = Measured.of([0.9, 1.0, 1.0])
    assert three is not None and three.interval is not None
    assert three.interval[1] == 1.0 and 0.80 < three.interval[0] < 0.83  # 0.967 - 4.303 * 0.0333
    certain = Measured.of_episodes([1.0, 1.0, 1.0], 300)
    assert certain is not None and certain.interval is not None and 0.98 < certain.interval[0] < 0.99


def test_a_mean_over_rows_needs_all_of_them() -> None:
    rows = [Row("a", (Measured.of([0.5]), Published(1.0), None)), Row("b", (None, Published(0.5), None))]
    assert mean_row("mean", rows).figures == (None, Published(0.75), None)
    assert Published(2212.0, 54.0, digits=0).text() == "2212 ± 54"


# ---- GRACE


def test_the_published_figures_are_of_tasks_that_exist() -> None:
    assert set(TABLE_3) == set(LEVELS) and set(TABLE_2) <= set(TABLE_3)
    assert set(TABLE_1) == {"hopper", "walker2d", "ant", "humanoid"}
    mean = sum(rates.grace for rates in TABLE_3.values()) / len(TABLE_3)
    assert mean == pytest.approx(0.7125)


@pytest.mark.parametrize("entry", [Figure4(), Figure4b(), Table1(), Table2(), Table3()], ids=lambda e: e.title)
def test_every_cell_comes_after_those_that_it_needs(entry: Entry, tmp_path: Path) -> None:
    plan = Plan(tmp_path, entry.parts, entry.budget)
    cells = entry.cells(plan)
    assert len({cell.folder(tmp_path) for cell in cells}) == len(cells)
    for k, cell in enumerate(cells):
        assert set(cell.needs(plan)) <= set(cells[:k])
    assert [row.name for row in entry.tables(plan, {})[0].rows]


def test_tables_share_their_cells_and_have_searches_of_their_own(tmp_path: Path) -> None:
    figure, few, all_ = (
        {c.folder(tmp_path) for c in e.cells(Plan(tmp_path, e.parts, e.budget))}
        for e in (Figure4(), Table2(), Table3())
    )
    assert few < all_ and not figure & all_ and Figure4.folder == Table3.folder == Table2.folder


def test_searches_of_tables_expand_their_data_by_the_learner_of_the_policies(tmp_path: Path) -> None:
    plan = Plan(tmp_path, ("GoToObj",), Budget(seeds=1, steps=1000, candidates=30))
    (search,) = searches_of("GoToObj", plan)
    own, plain = search.search(plan), LevelSearch("GoToObj", 8, 8, 0).search(plan)
    assert own.option == ("expansions=2",) and plain.option == ()
    assert own.ppo == for_recovered_rewards(quick(search.task())) and own.ppo.absorbing


def test_the_multi_task_row_is_one_reward_for_levels_of_one_shape(tmp_path: Path) -> None:
    plan = Plan(tmp_path, (MULTI_TASK,), Budget(seeds=1, steps=1000, candidates=30))
    (search,) = searches_of(MULTI_TASK, plan)
    assert (search.expert, search.negative) == (8 * len(MIXED), 8 * len(MIXED))
    task = search.task()
    assert isinstance(task, LevelMix) and [level.name for level in task.levels] == list(MIXED)
    (table,) = Table2().tables(plan, {})
    assert [row.name for row in table.rows] == [MULTI_TASK, "mean"]
    assert table.rows[0].figures[1::2] == (Published(0.95), Published(0.92), Published(0.31))
    assert any("8 levels" in note for note in table.notes)
    assert not any(MULTI_TASK in note for note in Table2()._notes(dataclasses.replace(plan, parts=("GoToObj",))))


def test_random_play_is_cut_before_it_succeeds(task_of: Callable[..., Task]) -> None:
    """Of the corridor, whose end is reached by going right: its last state must not count against a reward."""
    task = task_of("probe-corridor")
    plans = [[1] * task.horizon, [0] * task.horizon, [1, 0, 0]]
    played = record_actions(task, reset_keys(3, 0), plans)
    cut = before_success(played)
    won = played.success >= 1.0
    assert list(won) == [True, False, False] and list(cut.lengths) == list(played.lengths - won)
    assert not (cut.success >= 1.0).any() and cut.steps == played.steps - 1
    place = [leaf.name for leaf in played.spec.leaves].index("place")
    last = int(cut.lengths[0])
    np.testing.assert_array_equal(cut.states[place][: last + 1], played.states[place][: last + 1])
    np.testing.assert_array_equal(cut.states[place][last + 1 :], played.states[place][last + 2 :])


@pytest.fixture(scope="module")
def searched(checker: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """One cell of figure 4 on the smallest level."""
    out = tmp_path_factory.mktemp("figure4")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jaxreward.programs.Checker", lambda **_: nullcontext(checker))
        patch.setattr("jaxreward.reproduction.grace.figure4.TRAJECTORIES", (8,))
        patch.setattr("jaxreward.reproduction.grace.episodes.HELD_OUT", 12)
        words = ["grace/figure4", "--only", "GoToObjS4", "--seeds", "1", "--candidates", "6", "--out", str(out)]
        assert command(words) == 0
    return out, json.loads((out / "figure4.json").read_text())


@pytest.mark.slow
def test_a_search_of_figure_4_is_judged_on_held_out_episodes(searched: tuple[Path, dict[str, Any]]) -> None:
    out, whole = searched
    (cell,) = whole["cells"]
    assert cell["coordinates"] == {"kind": "search", "part": "GoToObjS4", "expert": 8, "negative": 8, "seed": 0}
    numbers = cell["numbers"]
    assert numbers["candidates"] == 6 and 0.9 < numbers["held_out_accuracy"] <= 1.0
    assert {p.name for p in (out / "episodes" / "GoToObjS4").iterdir()} == {
        "expert-0.npz", "random-0.npz", "expert-held-out.npz", "random-held-out.npz",
    }  # fmt: skip
    assert whole["tables"][0]["rows"][0]["8 + 8"]["mean"] == numbers["held_out_accuracy"]
    assert (out / "figure4.png").exists()


class Slips(BaseTask):
    """Each step ends the episode with a chance."""

    action_space, horizon = Discrete(2), 4

    def __init__(self, chance: float) -> None:
        self.chance = chance

    def reset(self, key: jax.Array) -> jax.Array:
        return jax.random.bernoulli(key, self.chance, (self.horizon + 1,)).at[0].set(False)

    def step(self, state: jax.Array, action: jax.Array) -> jax.Array:
        return jnp.roll(state, -1)

    def success(self, state: jax.Array) -> jax.Array:
        return jnp.bool_(False)

    def terminated(self, state: jax.Array) -> jax.Array:
        return state[0]


@pytest.mark.slow
def test_the_expert_of_robots_is_recorded_in_episodes_that_do_not_end_early() -> None:
    task = Slips(0.3)
    found, played = whole_episodes(task, RandomActor(task.action_space), 5)
    assert len(found) == 5 < played and not found.ended.any() and (found.lengths == task.horizon).all()
    found, played = whole_episodes(Slips(1.0), RandomActor(task.action_space), 5)
    assert found.ended.all() and played == 5 * 16 and (np.diff(found.lengths) <= 0).all()
