"""The options of `jaxreward compare`, and its errors."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from jaxreward.commands.compare import COMMANDS
from jaxreward.commands.resolve import resolve
from jaxreward.comparison.cells import SearchCell
from jaxreward.comparison.compare_settings import CompareSettings
from jaxreward.comparison.finished_searches import SearchKey
from jaxreward.comparison.outcome import _Budgeted, _require_equal_budgets
from jaxreward.errors import ChangedSetting, InvalidSetting, UnknownName, UserError
from jaxreward.evolution.costs import cost_s, search_s, search_steps
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.runs.toml import flat
from jaxreward.search.confirmation import AT_ONCE, MOST
from jaxreward.training import PPO, quick_real

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--tasks", "xland-easy", "xland-easy"], ("tasks",)),
        (["--strategies"], ("strategies",)),
        (["--proposers", "manual"], ("proposers",)),
        (["--proposers", "llm"], ("llm.model", "proposer")),
        (["--model", "openai/x"], ("proposers", "llm")),
        (["--shard", "3/2"], ("shard",)),
        (["--shard", "half"], ("shard",)),
        (["--option", "islands=2"], ("option",)),
        (["--option", "limn.islands=2"], ("option", "strategies")),
        (["--search-seeds", "0"], ("search_seeds",)),
        (["--final-seeds", "0"], ("final_seeds",)),
        (["--candidates", "0"], ("candidates",)),
        (["--steps", "-1"], ("steps",)),
        (["--halving", "1", "--generation", "1"], ("generation", "halving")),
        (["--evolve", "both", "--observation", "x.py"], ("observation", "evolve")),
        (["--proposers", "llm", "--model", "openai/x", "--blocks", "on"], ("blocks", "proposers")),
        (["--proposers", "llm", "--model", "openai/x", "--surrogate", "8"], ("surrogate", "proposers")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_setting_that_cannot_be_is_named_and_leaves_nothing(
    options: list[str], settings: tuple[str, ...], tmp_path: Path
):
    with pytest.raises(InvalidSetting) as raised:
        COMMANDS[0](["--out", str(tmp_path / "out"), "--strategies", "limen", "best-of-n", *options])
    assert raised.value.settings == settings and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "kind", "nearest"),
    [
        (["--strategies", "limn"], "strategy", "limen"),
        (["--tasks", "xland-esay"], "task", "xland-easy"),
        (["--option", "limen.iland=2"], "option of strategy limen", "islands"),
    ],
)
def test_an_unknown_name_comes_with_the_nearest(options: list[str], kind: str, nearest: str, tmp_path: Path):
    with pytest.raises(UnknownName, check=lambda e: (e.kind, e.nearest) == (kind, nearest)):
        COMMANDS[0](["--out", str(tmp_path / "out"), "--strategies", "limen", "best-of-n", *options])
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_a_cost_that_nobody_can_confirm_leaves_nothing(tmp_path: Path):
    options = ["--proposers", "llm", "--model", "openai/x", "--price", "openai/x=900,9000"]
    with pytest.raises(UserError, match="nobody can be asked"):
        COMMANDS[0](["--out", str(tmp_path / "out"), "--strategies", "limen", "best-of-n", *options])
    assert not (tmp_path / "out").exists()


def test_each_task_has_the_steps_of_its_preset_unless_told():
    settings = CompareSettings(tasks=("xland-easy", "xland-medium"))
    assert {(c.settings.task, c.settings.steps) for c in settings.cells()} == {
        ("xland-easy", 200_000), ("xland-medium", 500_000),
    }  # fmt: skip
    assert {c.settings.steps for c in dataclasses.replace(settings, steps=7).cells()} == {7}


def test_every_option_is_documented():
    text = (ROOT / "docs" / "compare.md").read_text()
    for field in dataclasses.fields(CompareSettings):
        # the first five are no options; the groups are those of `evolve`, listed on their pages
        if field.name not in ("command", "of_ppo", "platform", "own_tasks", "own_proposers", "llm", "demonstrations"):
            assert f"`--{field.name.replace('_', '-')}" in text, field.name
    assert "(commands.md)" in text and "(demonstrations.md" in text


def test_each_task_has_its_learner_with_the_options_given():
    """A setting of the learner does not throw away the rest of what suits robots."""
    tasks = ["--tasks", "xland-easy", "quadcopter-hover"]
    found = learners([*tasks, "--ppo.learning-rate", "3e-4"])
    assert found["quadcopter-hover"] == quick_real(learning_rate=3e-4)
    assert found["xland-easy"] == PPO(learning_rate=3e-4)
    assert learners(tasks) == {"xland-easy": PPO(), "quadcopter-hover": quick_real()}


def learners(arguments: list[str]) -> dict[str, PPO]:
    return {cell.settings.task: cell.settings.ppo for cell in resolve(COMMANDS[0], arguments).settings.cells()}


def test_an_option_equal_to_another_learners_default_is_applied(tmp_path: Path):
    assert quick_real().discount != PPO().discount and quick_real().learning_rate != PPO().learning_rate
    own = quick_real(learning_rate=PPO().learning_rate, discount=PPO().discount)
    task = ["--tasks", "panda-tracking"]
    said = ["--ppo.learning-rate", str(PPO().learning_rate), "--ppo.discount", str(PPO().discount)]
    assert learners([*task, *said]) == {"panda-tracking": own}
    file = tmp_path / "settings.toml"
    file.write_text(f"[ppo]\nlearning-rate = {PPO().learning_rate}\ndiscount = 0.5\n")
    assert learners([*task, "--config", str(file), *said[2:]]) == {"panda-tracking": own}, "the command line wins"


@pytest.mark.parametrize("option", ["ablations", "confirm-seeds"])
def test_what_some_strategies_do_not_have_is_left_out_for_them(tmp_path: Path, option: str) -> None:
    words = ["--tasks", "probe-choice", "--search-seeds", "1", "--steps", "1024", "--out", str(tmp_path)]
    assert COMMANDS[0]([*words, f"--{option}", "2", "--dry-run"]) == 0
    settings = resolve(COMMANDS[0], [*words, f"--{option}", "2"]).settings
    given = {c.settings.strategy: getattr(c.settings, option.replace("-", "_")) for c in settings.cells()[1:]}
    assert given["limen"] == 2 and given["grace"] == 0 and given["best-of-n"] == 2 * (option == "confirm-seeds")


def test_what_is_for_the_genetic_proposer_is_no_setting_of_others(tmp_path: Path):
    mixed = CompareSettings(
        strategies=("limen",), proposers=("genetic", "llm"), llm=LlmSettings(model=("openai/x",)), blocks="on",
        surrogate=8, search_seeds=1, out=tmp_path,
    )  # fmt: skip
    mixed.check()
    found = {c.settings.proposer: c.settings for c in mixed.cells() if isinstance(c, SearchCell)}
    assert (found["genetic"].blocks, found["genetic"].surrogate) == ("on", 8)
    assert (found["llm"].blocks, found["llm"].surrogate) == ("off", 0)

    def searched(proposer: str, seed: int, **other: str) -> _Budgeted:
        key = SearchKey("xland-easy", "limen", proposer, seed)
        return _Budgeted(Path(proposer), key, dict(flat(found[proposer].as_config())) | other)

    searches = [searched(proposer, 0) for proposer in found]
    _require_equal_budgets(searches, {}, "x")
    other = searched("genetic", 1, blocks="off")
    with pytest.raises(ChangedSetting, match="has blocks on and .* has off"):
        _require_equal_budgets([*searches, other], {}, "x")


def test_samples_of_best_of_n_stay_independent_beside_a_search_that_learns(tmp_path: Path):
    compared = CompareSettings(strategies=("limen", "best-of-n"), surrogate=8, search_seeds=1, out=tmp_path)
    compared.check()
    found = {c.settings.strategy: c.settings for c in compared.cells() if isinstance(c, SearchCell)}
    assert (found["limen"].surrogate, found["best-of-n"].surrogate) == (8, 0)

    def searched(strategy: str, seed: int, **other: int) -> _Budgeted:
        key = SearchKey("xland-easy", strategy, "genetic", seed)
        return _Budgeted(Path(strategy), key, dict(flat(found[strategy].as_config())) | other)

    searches = [searched(strategy, 0) for strategy in found]
    _require_equal_budgets(searches, {}, "x")
    with pytest.raises(ChangedSetting, match="has surrogate 8 and .* has 0"):
        _require_equal_budgets([*searches, searched("limen", 1, surrogate=0)], {}, "x")


def test_searches_end_at_equal_environment_steps():
    settings = CompareSettings(
        strategies=("limen", "best-of-n"), steps=1000, seeds=2, candidates=100, generation=4, max_env_steps=20_000,
        halving=1,
    )  # fmt: skip
    cells = [c for c in settings.cells() if isinstance(c, SearchCell)]
    assert {(c.settings.max_env_steps, c.settings.halving) for c in cells} == {(20_000, 1)}
    assert search_steps(cells[0].settings) == 20_000 + 4 * 2 * 1000, "the generation that reaches the limit ends"
    unlimited = dataclasses.replace(cells[0].settings, max_env_steps=0)
    assert search_steps(unlimited) == 200_000
    task = unlimited.make_task()
    assert search_s(cells[0].settings, task) == pytest.approx(0.14 * search_s(unlimited, task))


def test_what_is_confirmed_is_counted_once_and_not_beyond_a_limit():
    plain = EvolveSettings(task="xland-easy", candidates=30, seeds=2, steps=1000, generation=8)
    confirmed, task = dataclasses.replace(plain, confirm_seeds=5), plain.make_task()
    assert search_steps(confirmed) == search_steps(plain) + MOST * 5 * 1000
    alone = cost_s(task, plain.hyper, AT_ONCE, 5, 1000, episodes=plain.eval_episodes)
    assert search_s(confirmed, task) == pytest.approx(search_s(plain, task) + alone)
    limited = dataclasses.replace(confirmed, max_env_steps=20_000)
    assert search_steps(limited) == 20_000 + 8 * 2 * 1000
    roomy = dataclasses.replace(confirmed, max_env_steps=10**6)
    assert search_steps(roomy) == search_steps(confirmed)
