"""The pages in docs/ say what is so: examples run, tables agree with the code, links lead somewhere."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
import shlex
import sys
import tomllib
import types
from pathlib import Path
from typing import Any

import pytest

from jaxreward.cli import main
from jaxreward.commands.table import SUMMARIES
from jaxreward.config import apply
from jaxreward.evolution.presets import PAPER_BUDGETS
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.objectives.demonstrations.demonstration_options import DemonstrationOptions
from jaxreward.programs import Checker
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.training import PPO, SAC

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "interfaces").glob("*.md")),
]


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page(name), re.DOTALL)


def blocks_from(name: str, text: str) -> list[str]:
    """The blocks of Python from the first that has `text`."""
    found = blocks(name, "python")
    return found[next(k for k, block in enumerate(found) if text in block) :]


def cells(text: str) -> list[list[str]]:
    """Rows of all Markdown tables."""
    return [[c.strip() for c in line.strip()[1:-1].split("|")] for line in text.splitlines() if line.startswith("| ")]


def execute(code: str, name: str, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("documentation_example")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, f"docs/{name}", "exec"), module.__dict__)
    return module


@pytest.mark.slow
def test_the_new_task_trains_and_a_program_helps(monkeypatch: pytest.MonkeyPatch):
    example = execute("\n".join(blocks_from("tasks.md", "class Docking")), "tasks.md", monkeypatch)
    default, program = example.result.success[:, 0]
    assert program > 0.9 and program > default + 0.3


@pytest.mark.slow
@pytest.mark.usefixtures("unoptimised")
def test_the_new_task_keeps_the_protocol(monkeypatch: pytest.MonkeyPatch, checker: Checker):
    """A few updates; programs of its vocabulary pass their checks; what the wind will do is not in view."""
    from jaxreward.programs import Program
    from jaxreward.proposers.registry import make_proposer
    from jaxreward.records import Request
    from jaxreward.search.seeding import derive_rng
    from jaxreward.tasks import Task, card
    from jaxreward.training import train

    task = execute(blocks_from("tasks.md", "class Docking")[0], "tasks.md", monkeypatch).Docking()
    assert isinstance(task, Task)
    proposer = make_proposer("genetic", card(task))
    request = Request(id="a", generation=0, operator="scratch")
    [(verdict, program), (blind, _)] = checker.check_many(
        [
            proposer.propose_all([request], lambda _: derive_rng(0)).proposals[0].source,
            "def compute_reward(state, action, next_state):\n    return state.key\n",
        ],
        task,
    )
    assert program is not None, verdict.failure
    assert not blind.ok
    small = PPO(envs=8, unroll=8, hidden=(8,))
    result = train(task, [Program.default(task), program], small, seeds=2, steps=256, checkpoints=2, eval_episodes=8)
    assert result.success.shape == (2, 2) and not result.diverged.any()


@pytest.mark.long
@pytest.mark.usefixtures("unoptimised")
def test_a_task_in_thirty_lines(monkeypatch: pytest.MonkeyPatch):
    """It is what `new-task` writes, sound, and trains; so is the task from functions below it."""
    import jaxreward as jr
    from jaxreward.commands.new_task import TEMPLATE

    first, functions = blocks_from("tasks.md", "class KeyAndDoor")[:2]
    assert first == TEMPLATE
    assert len([line for line in first.splitlines() if line.strip()]) <= 32
    example = execute(first + functions, "tasks.md", monkeypatch)
    for task in (example.KeyAndDoor(), example.ball):
        assert jr.check_task(task) == ()
        small = jr.PPO(envs=8, unroll=8, hidden=(8,))
        result = jr.train(task, [jr.Program.default(task)], small, seeds=1, steps=128, checkpoints=1, eval_episodes=8)
        assert result.success.shape == (1, 1) and not result.diverged.any()


@pytest.mark.slow
@pytest.mark.usefixtures("unoptimised")
def test_a_model_and_forty_lines_make_a_task(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The file is a task by its name, what follows trains it, and the other metric is one."""
    import jax

    from jaxreward.tasks import Task, card, make_task, measure_of

    model, use, measure, instruction, subgoals = blocks("add_a_task.md", "python")
    task_lines = model[model.index("@dataclass") :].splitlines()
    assert len([line for line in task_lines if line.strip()]) <= 40
    file = tmp_path / "swing_up.py"
    file.write_text(model)
    task = make_task(str(file))
    assert isinstance(task, Task) and task.name == "swing-up" and abs(task.control_s - 0.02) < 1e-9  # type: ignore[attr-defined]
    words = card(task).state_doc
    assert "the pole hangs at 0" in words and "6 N to the right" in words
    example = execute("\n".join((model, use, measure, instruction, subgoals)), "add_a_task.md", monkeypatch)
    assert example.result.success.shape == (2, 1) and not example.result.diverged.any()
    high = example.SwingHigh()
    assert measure_of(high).label == "height (m)" and high.score().names == ("was_up",)
    told = card(example.SwingUpInPlace()).instruction
    assert told is not None and [subtask.metric for subtask in told.subtasks] == ["was_up", "stayed"]
    assert [subgoal.words for subgoal in card(example.SwingUpInBlocks()).subgoals.chain] == ["swing the pole up"]
    state = jax.eval_shape(high.reset, jax.random.key(0))
    assert jax.eval_shape(lambda s: high.score().update(high.score().init(), s, None, s), state)


def test_the_ruleset_file_is_a_task(tmp_path: Path):
    from jaxreward.tasks import make_task

    (text,) = blocks("tasks.md", "toml")
    file = tmp_path / "ruleset.toml"
    file.write_text(text)
    task = make_task(f"xland/XLand-MiniGrid-R1-9x9/{file}")
    assert task.horizon == 120
    assert "Put the red key and the purple square next to each other" in task.description
    assert "the green ball becomes a red key" in task.description


def test_kinds_of_goals_and_rules_have_the_ids_of_the_page():
    from jaxreward.tasks import xland

    tables = page("tasks.md").split("Kinds of rules")
    for text, kinds, suffix in ((tables[0], xland._GOALS, "Goal"), (tables[1], xland._RULES, "Rule")):
        names = [kind.__name__.removesuffix(suffix) for kind in kinds]
        written = {
            (row[i], row[i + 1].split(" t")[0].split(" p")[0]) for row in cells(text) if len(row) == 4 for i in (0, 2)
        }
        for ids, name in written:
            if ids and ids[0].isdigit() and name != "none":
                stem, _, sides = name.partition(" ")
                expected = [stem + side for side in sides.split(", ")] if sides else [stem]
                assert [names[int(i)] for i in ids.split(", ")] == expected
        assert len({i for ids, _ in written for i in ids.split(", ") if i.isdigit()} - {"0"}) == len(names) - 1


@pytest.mark.long
@pytest.mark.usefixtures("unoptimised")
def test_the_policy_can_be_played(monkeypatch: pytest.MonkeyPatch):
    complete = [block for block in blocks("trainer.md", "python") if 'make_task("probe-choice")' in block]
    example = execute(complete[0], "trainer.md", monkeypatch)
    assert example.result.success.min() == 1.0
    assert float(example.reward) == 1.0 and example.program.terms == ("sparse",)


def test_functions_of_the_page_are_a_program(
    task_of, checker: Checker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """As in a script: their text is read and checked, and traced as they are they compute the same."""
    (text,) = [block for block in blocks("programs.md", "python") if "def approach(" in block]
    (tmp_path / "script_of_a_page.py").write_text("import jax.numpy as jnp\n\n" + text.split("program = ")[0])
    monkeypatch.syspath_prepend(str(tmp_path))
    script, task = importlib.import_module("script_of_a_page"), task_of("xland-easy")
    program = checker.load((script.look, script.approach), task)
    assert program.observation_size == 1 and program.terms == ("gain",)
    assert checker.load((script.look, script.approach), task, trusted=True).digest == program.digest


@pytest.mark.parametrize(("learner", "heading"), [(PPO, "## The learner"), (SAC, "### Soft actor-critic")])
def test_settings_of_learners(learner: Any, heading: str):
    section = re.split(r"^##+ ", page("trainer.md").partition(f"{heading}\n")[2], flags=re.MULTILINE)[0]
    table = {row[0].strip("`"): row[1] for row in cells(section) if len(row) == 4 and row[0].startswith("`")}
    assert table.keys() == {field.name for field in dataclasses.fields(learner)}
    for field in dataclasses.fields(learner):
        kind = "traced" if field.metadata.get("pytree_node", True) else "static"
        assert f"| `{field.name}` | {table[field.name]} | {kind} |" in section
        written = table[field.name].replace("infinity", "inf")
        try:
            value: object = float(written) if isinstance(field.default, float) else ast.literal_eval(written)
        except ValueError:
            value = written
        assert value == field.default, field.name


def test_every_notice_is_explained():
    source = (ROOT / "jaxreward" / "training" / "notices.py").read_text()
    kinds = set(re.findall(r'Notice\(kind="(\w+)"', source))
    assert kinds and all(f"| `{kind}` |" in page("trainer.md") for kind in kinds)


def test_options_of_evolve_and_train():
    from jaxreward.commands.train import TrainSettings

    text = page("commands.md")
    for settings in (EvolveSettings, TrainSettings):
        for field in dataclasses.fields(settings):
            if field.name in ("command", "llm", "demonstrations"):  # not an option; options without a prefix, below
                continue
            assert f"--{field.name.replace('_', '-')}" in text, field.name
    for field in dataclasses.fields(DemonstrationOptions):
        assert f"--{field.name.replace('_', '-')}" in page("demonstrations.md"), field.name
    for field in dataclasses.fields(LlmSettings):
        assert f"--{field.name.replace('_', '-')}" in text, field.name


QUICK = ("evolve --help", "evolve --stepz", "tasks", "strategies", "check", "train --dry-run", "prompt")


@pytest.mark.long
def test_every_command_has_a_transcript_and_what_quick_ones_print_is_so(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "interfaces").symlink_to(ROOT / "interfaces")
    (tmp_path / "bad.py").write_text("def get_observation(state):\n    return state.agent.positon\n")
    task = re.findall(r"^```python\n(.*?)^```", page("add_a_task.md"), re.DOTALL | re.MULTILINE)[0]
    (tmp_path / "swing_up.py").write_text(task.replace('"data.qpos":', '"data.qpso":').replace("return Mean", "Mean"))
    transcripts = re.findall(r"^```\n(\$ .*?)^```", page("commands.md"), re.DOTALL | re.MULTILINE)
    shown = [order for text in transcripts for order in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]]
    tried: set[str] = set()
    for order in shown:
        words, _, printed = order.partition("\n")
        quick = [start for start in QUICK if words.removeprefix("jaxreward ").startswith(start)]
        if not quick:
            continue
        tried.update(quick)
        words, cut, lines = words.partition(" | head -")
        try:
            main(shlex.split(words)[1:])
        except SystemExit as left:  # how --help leaves
            assert left.code == 0
        captured = capsys.readouterr()
        found = [line.rstrip() for line in (captured.out + captured.err).strip().split("\n")]
        assert found[: int(lines) if cut else None] == printed.strip().split("\n"), words
    assert tried == set(QUICK)
    groups = set(SUMMARIES) - {"compare", "reproduce", "completion"}  # on pages of their own; a script
    assert {order.split()[1] for order in shown if order.startswith("jaxreward")} >= groups


def test_the_settings_file():
    (text,) = blocks("commands.md", "toml")
    settings = apply(EvolveSettings(), tomllib.loads(text), "docs/commands.md")
    assert settings.candidates == 30 and settings.ppo.hidden == (128, 128)
    settings.check()


def test_budgets_of_the_paper():
    for task, b in PAPER_BUDGETS.items():
        short = f"{b.filter_steps:,} steps, {b.filter_threshold}" if b.filter_steps else "none"
        row = f"| `{task}` | {short} | {b.steps:,} | {b.final_seeds} x {b.final_steps or b.steps:,} |"
        assert row in page("commands.md")


def test_keys_of_every_json_object_are_documented():
    text = page("commands.md")
    for file, functions in {
        "commands/summary.py": ("evolve_json",), "commands/train.py": ("train_json", "rows"),
        "reports/tables.py": ("score_json",), "reports/run_tables.py": ("summary_json", "json", "_reached_json"),
        "reports/run_text.py": ("run_json", "_generation_json"),
    }.items():  # fmt: skip
        tree = ast.parse((ROOT / "jaxreward" / file).read_text())
        found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name in functions]
        assert len(found) == len(functions)
        for node in (n for function in found for n in ast.walk(function) if isinstance(n, ast.Dict)):
            for key in node.keys:
                if isinstance(key, ast.Constant):
                    assert f"`{key.value}`" in text or f'"{key.value}"' in text, key.value


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path):
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            assert (path.parent / target).exists(), target
