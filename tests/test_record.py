"""Episodes in files: of scripted experts, random actions and policies of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxreward as jr
from jaxreward.cli import main
from jaxreward.demonstrations import load_trajectories, record_expert, reset_keys
from jaxreward.errors import InvalidSetting, UserError
from jaxreward.records import Measure


class State(NamedTuple):
    place: jax.Array
    goal: jax.Array


class Line(jr.BaseTask):
    """Walk to a goal on a line of nine cells."""

    horizon = 12
    action_space = jr.Discrete(2)

    def reset(self, key: jax.Array) -> State:
        places = jax.random.randint(key, (2,), 0, 9)
        return State(places[0], jnp.where(places[0] == places[1], (places[1] + 4) % 9, places[1]))

    def step(self, state: State, action: jax.Array) -> State:
        return state._replace(place=jnp.clip(state.place + 2 * action - 1, 0, 8))

    def success(self, state: State) -> jax.Array:
        return state.place == state.goal

    def expert_actions(self, state: Any) -> list[int]:
        way = int(state.goal) - int(state.place)
        return [int(way > 0)] * abs(way)

    def mission(self, state: Any) -> str:
        return f"go to {int(state.goal)}"


@pytest.fixture(scope="module")
def line() -> Line:
    return Line()


def test_an_expert_solves_every_episode_in_the_shortest_way(line: Line) -> None:
    found = record_expert(line, 6, seed=2)
    starts = [line.reset(key) for key in reset_keys(6, 2)]
    assert found.source == "expert" and (found.success == 1).all() and found.ended.all()
    assert found.lengths.tolist() == [abs(int(s.goal) - int(s.place)) for s in starts]
    assert found.texts == tuple(f"go to {int(s.goal)}" for s in starts)


@pytest.mark.slow
def test_a_noisy_expert_goes_on_from_where_chance_leads_it(line: Line) -> None:
    clean, noisy = record_expert(line, 12, seed=2), record_expert(line, 12, seed=2, noise=0.3)
    assert noisy.steps > clean.steps and 0 < noisy.success.mean() <= 1
    again = record_expert(line, 12, seed=2, noise=0.3)
    np.testing.assert_array_equal(noisy.actions, again.actions)
    lost = record_expert(line, 12, seed=2, noise=0.9)
    assert lost.success.mean() < 1
    kept = record_expert(line, 12, seed=2, noise=0.9, solved=True)
    assert len(kept) == 12 and (kept.success == 1).all()


def test_what_cannot_be_recorded_is_told(line: Line) -> None:
    with pytest.raises(UserError, match="probe-corridor has no scripted expert"):
        record_expert(jr.make_task("probe-corridor"), 1)
    with pytest.raises(InvalidSetting, match="must be a probability"):
        record_expert(line, 1, noise=2.0)

    class Far(Line):
        def score(self) -> jr.Sum:
            return jr.Sum(lambda s, a, n: -jnp.ones(()), Measure(name="way", rate=False))

    with pytest.raises(InvalidSetting, match="is for tasks that are solved or not"):
        record_expert(Far(), 1, solved=True)


def record(*words: str) -> int:
    return main(["record", *words])


def test_the_command_writes_a_file_with_its_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "played.npz"
    words = ["probe-corridor", "--task-arg", "length=3", "--by", "random", "--solved", "--episodes", "4"]
    assert record(*words, "--out", str(path), "--json") == 0
    assert '"episodes": 4' in capsys.readouterr().out
    found = load_trajectories(path)
    assert (found.task, found.task_arg, found.source) == ("probe-corridor", ("length=3",), "random")
    assert len(found) == 4 and (found.success == 1).all()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "say which task"),
        (("probe-corridor",), "has no scripted expert"),
        (("probe-corridor", "--by", "random", "--noise", "0.1"), "--noise is for --by expert"),
        (("probe-corridor", "--by", "random", "--out", "a.txt"), "name it a.txt.npz"),
        (("probe-corridor", "--task-arg", "length=40", "--by", "random", "--solved"), "succeed: nothing is written"),
        (("probe-corridor", "--by", "nothing-of-that-name"), "nothing-of-that-name"),
    ],
)
def test_mistakes_are_one_sentence(
    words: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert record(*words) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1 and not list(tmp_path.glob("*.npz"))


def test_nothing_is_overwritten(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(b"mine")
    assert record("probe-corridor", "--by", "random", "--out", str(path)) == 2
    assert "exists already" in capsys.readouterr().err and path.read_bytes() == b"mine"


def test_an_expert_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    own = Path(__file__).read_text().split("class State")[1].split("@pytest.fixture")[0]
    lost = own.replace("[int(way > 0)] * abs(way)", "[int(way < 0)]")
    assert lost != own
    imports = "from typing import Any, NamedTuple\nimport jax\nimport jax.numpy as jnp\nimport jaxreward as jr\n"
    Path("line.py").write_text(f"{imports}class State{lost}")
    assert record("line.py", "--episodes", "3") == 0
    assert "warning: most of these episodes fail" in " ".join(capsys.readouterr().out.split())
