"""The options of `jaxreward compare`, and its errors."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from jaxreward.commands.compare import COMMANDS
from jaxreward.commands.resolve import resolve
from jaxreward.comparison.compare_settings import CompareSettings
from jaxreward.errors import UserError
from jaxreward.training import PPO, quick_real

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--strategies", "limn"], "limen"),
        (["--tasks", "xland-esay"], "did you mean 'xland-easy'"),
        (["--tasks", "xland-easy", "xland-easy"], "--tasks names one of them twice"),
        (["--strategies"], "--strategies names nothing"),
        (["--proposers", "manual"], "--proposers are genetic and llm"),
        (["--proposers", "llm"], "needs --model"),
        (["--model", "openai/x"], "are for --proposers llm"),
        (["--shard", "3/2"], "must be i/n"),
        (["--shard", "half"], "must be i/n"),
        (["--option", "islands=2"], "must be STRATEGY.KEY=VALUE"),
        (["--option", "limn.islands=2"], "did you mean limen"),
        (["--option", "limen.iland=2"], "iland"),
        (["--search-seeds", "0"], "--search-seeds must be at least 1"),
        (["--final-seeds", "0"], "--final-seeds must be at least 1"),
        (["--candidates", "0"], "--candidates must be at least 1"),
        (["--steps", "-1"], "--steps must not be negative"),
        (["--evolve", "both", "--observation", "x.py"], "--observation is for --evolve reward"),
        (["--proposers", "llm", "--model", "openai/x", "--price", "openai/x=900,9000"], "nobody can be asked"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_gets_a_sentence_and_leaves_nothing(options: list[str], says: str, tmp_path: Path):
    with pytest.raises(UserError, match=re.escape(says)):
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
        # the first two are no options; those of `llm` are those of `evolve`, listed in commands.md
        if field.name not in ("command", "learner", "llm"):
            assert f"`--{field.name.replace('_', '-')}" in text, field.name
    assert "(commands.md)" in text


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
