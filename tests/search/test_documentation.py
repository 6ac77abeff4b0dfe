"""The worked example of docs/search.md runs as it stands."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

from jaxreward.errors import UserError
from jaxreward.search import STRATEGIES
from jaxreward.search.option_text import own_options

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "search.md").read_text()


@pytest.fixture
def example(monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    module = types.ModuleType("documentation_example")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, "docs/search.md", "exec"), module.__dict__)
    return module


def test_the_new_strategy_searches(example, landscape):
    world = landscape("narrow")
    state = world.search(example.HillClimber(restart=0.0), 40, 4)
    assert [request.operator for request in world.requests] == ["scratch"] * 4 + ["improve"] * 36
    assert state.best.score.mean > max(result.score.mean for result in world.results[:4])
    with pytest.raises(UserError, match="restart of strategy hill-climber is 2"):
        example.HillClimber(restart=2)


def written(value):
    """A default as `--option` takes it."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("name", ["eureka", "revolve", "rf-agent", "forge"])
def test_the_page_has_every_option_with_its_default(name):
    (section,) = re.findall(rf"^## {name}\n(.*?)^## ", PAGE, re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| ", section, re.MULTILINE)
    assert dict(rows) == {option: written(value) for option, value in own_options(name).items()}


def test_the_page_names_every_strategy_and_every_option_of_limen():
    assert all(f"## {name}\n" in PAGE for name in STRATEGIES)
    defaults = own_options("limen")
    assert all(f"`{name}`" in PAGE for name in defaults)
    for name in ("islands", "initial", "global_share", "crossover", "migration_interval"):
        assert f"| `{name}` | {defaults[name]} |" in PAGE
