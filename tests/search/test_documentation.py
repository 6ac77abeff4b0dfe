"""The worked example of docs/search.md runs as it stands."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

from jaxreward.commands.strategies import description
from jaxreward.errors import InvalidSetting
from jaxreward.search import STRATEGIES, make_strategy
from jaxreward.search.option_text import own_options
from tests.search.conftest import make_result
from tests.test_strategies import SETTINGS, search, substance

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "search.md").read_text()


@pytest.fixture
def example(monkeypatch):
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    assert len([line for line in code.splitlines() if line.strip()]) < 80
    before = dict(STRATEGIES)
    module = types.ModuleType("documentation_example")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, "docs/search.md", "exec"), module.__dict__)
    yield module
    STRATEGIES.clear()
    STRATEGIES.update(before)


def test_the_new_strategy_searches(example, landscape):
    world = landscape("narrow")
    state = world.search(make_strategy("threshold-accepting", initial=4, budget=40), 40, 4)
    assert [request.operator for request in world.requests[:4]] == ["scratch"] * 4
    assert {request.operator for request in world.requests[4:]} == {"structure", "weights", "reflect"}
    assert state.best.score.mean > max(result.score.mean for result in world.results[:4])
    assert state.memory.moves > 1
    with pytest.raises(InvalidSetting, check=lambda e: e.settings == ("strategy.threshold",)):
        make_strategy("threshold-accepting", threshold=-1.0)


def test_the_new_strategy_accepts_what_is_a_little_worse_and_less_so_in_the_end(example):
    strategy = make_strategy("threshold-accepting", threshold=0.2, initial=1, budget=10)
    state = strategy.tell(strategy.init(), [make_result("a", 0.5)])
    state = strategy.tell(state, [make_result("b", 0.35)])  # 0.15 worse, the threshold is 0.18
    assert state.memory.here.candidate.id == "b"
    state = strategy.tell(state, [make_result("c", 0.1)])  # 0.25 worse
    assert state.memory.here.candidate.id == "b"
    for k in range(6):
        state = strategy.tell(state, [make_result(f"d{k}", None, stage="diverged")])
    state = strategy.tell(state, [make_result("e", 0.3)])  # 0.05 worse, the threshold is 0.02
    assert state.memory.here.candidate.id == "b"


def test_the_new_strategy_runs_logs_and_resumes(example, tmp_path):
    main = search(tmp_path, "threshold-accepting")
    assert main.progress.spent.trained == SETTINGS.candidates
    lines = (tmp_path / "run" / "events.jsonl").read_bytes().splitlines(keepends=True)
    whole = substance(tmp_path)
    (tmp_path / "run" / "events.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]))
    search(tmp_path, "threshold-accepting")
    assert substance(tmp_path) == whole
    assert "threshold" in description("threshold-accepting")


def written(value):
    """A default as `--option` takes it."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("name", ["eureka", "revolve", "rf-agent", "forge", "grace"])
def test_the_page_has_every_option_with_its_default(name):
    (section,) = re.findall(rf"^## {name}\n(.*?)^## ", PAGE, re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| ", section, re.MULTILINE)
    assert dict(rows) == {option: written(value) for option, value in own_options(name).items()}


def test_the_page_names_every_strategy_and_every_option_of_limen():
    assert all(f"## {name}\n" in PAGE for name in STRATEGIES)
    (section,) = re.findall(r"^## limen\n(.*?)^## ", PAGE, re.DOTALL | re.MULTILINE)
    defaults = own_options("limen")
    assert all(f"`{name}`" in section for name in defaults)
    for name in ("islands", "initial", "global_share", "crossover", "migration_interval"):
        assert f"| `{name}` | {defaults[name]} |" in section
