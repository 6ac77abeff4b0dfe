"""Steps of an expert's episodes that a language model marks as solving the task, over HTTP on loopback."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxreward as jr
from jaxreward.cli import main
from jaxreward.demonstrations import Trajectories, WrongTrajectories, from_arrays, load_trajectories, save_trajectories
from jaxreward.evolution.cleaning import _marks
from jaxreward.objectives.demonstrations.demonstration_options import DemonstrationOptions
from jaxreward.objectives.demonstrations.demonstration_sets import DemonstrationSets
from jaxreward.objectives.demonstrations.episode_text import episode_text, shown_every
from jaxreward.objectives.demonstrations.illustrations import illustrations
from jaxreward.objectives.demonstrations.scoring import DemonstrationData
from jaxreward.records import ExampleChoice
from tests.proposers.server import Answer, ChatServer, closed_port
from tests.proposers.talk import KEY

GOAL = 7
WALKS = ([0, 1, 2, 7, 6, 5], [3, 7, 7, 4], [1, 2, 3, 4], [7, 6, 7])
"""Places of each episode: the expert wanders on after it was at the goal, and once it never gets there."""


class Line(jr.BaseTask):
    """Places 0 to 8 on a line."""

    horizon = 12
    action_space = jr.Discrete(3)

    def reset(self, key: jax.Array) -> jax.Array:
        return jax.random.randint(key, (1,), 0, 9)

    def step(self, state: jax.Array, action: jax.Array) -> jax.Array:
        return jnp.clip(state + action - 1, 0, 8)

    def success(self, state: jax.Array) -> jax.Array:
        return state[0] == GOAL


LINE = f"import jax\nimport jax.numpy as jnp\nimport jaxreward as jr\n\nGOAL = {GOAL}\n\n{inspect.getsource(Line)}"


def walks(solves: bool = False) -> Trajectories:
    states = [np.array(walk, np.int32)[:, None] for walk in WALKS]
    marks = [s[1:, 0] == GOAL for s in states] if solves else None
    return from_arrays(Line(), states, [np.zeros(len(s) - 1, int) for s in states], solves=marks)


def marks(episodes: Trajectories) -> list[int]:
    assert episodes.solves is not None
    return episodes.solves.tolist()


def solving(prompt: str) -> list[int]:
    """The steps after which the place is the goal, as a model would read them from a prompt: a step that changes
    nothing is at the place of the one before."""
    at, found = 0, []
    for number, text in re.findall(r"^Step (\d+), action \d+[^\n]*:\n(.*)$", prompt, re.M):
        moved = re.fullmatch(r"state: \[(\d+)\]", text)
        at = int(moved[1]) if moved else at
        found += [int(number)] if at == GOAL else []
    return found


def reads(body: dict[str, Any], _: int) -> Answer:
    return Answer(json.dumps({"reasoning": "it stops there", "steps": solving(body["messages"][-1]["content"])}))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    save_trajectories(tmp_path / "walks.npz", walks())
    return tmp_path / "walks.npz"


def clean(file: Path, url: str, *more: str) -> int:
    words = ["--model", "openai/mine", "--api-base", url, "--price", "openai/mine=1,2", "--wait-s", "0"]
    return main(["clean", str(file), *words, "--retries", "0", *more])


def test_a_model_marks_the_steps_that_solve_the_task(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ChatServer(reads) as server:
        assert clean(file, server.url, "--json") == 0
    out = capsys.readouterr()
    found = json.loads(out.out.splitlines()[-1])
    cleaned = load_trajectories(file.with_name("walks_clean.npz"))
    wanted = walks(solves=True)
    assert marks(cleaned) == marks(wanted)
    assert found == {
        "file": str(file.with_name("walks_clean.npz")), "episodes": 4, "left_out": [], "steps": 13, "solving": 4,
        "unknown": 0, "cost_usd": 0.0008, "unpriced_tokens": 0,
    }  # fmt: skip
    assert "4 of 13 steps solve the task; in 1 episode none does; cost $0.0008" in out.err
    assert "next: jaxreward evolve --task TASK --objective demonstrations" in out.err, "no name that a file made up"
    assert all("mission" not in s.body["messages"][1]["content"] for s in server.seen)
    replies = "".join(p.read_text() for p in file.with_name("walks_clean_replies").iterdir())
    assert KEY not in replies and "it stops there" in replies


def test_an_unusable_answer_is_asked_for_again_and_then_left_out(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def script(body: dict[str, Any], n: int) -> Answer:
        text = body["messages"][-1]["content"]
        never = "state: [1]" in text.split("Step 1")[0]
        return Answer("I cannot say.") if never or n == 0 else reads(body, n)

    with ChatServer(script) as server:
        assert clean(file, server.url, "--concurrency", "1") == 0
    assert server.calls == 6
    cleaned = load_trajectories(file.with_name("walks_clean.npz"))
    out = capsys.readouterr().out
    assert len(cleaned) == 3 and "left out for want of a usable answer: 3, counted from 1; cost $0.0012" in out


def test_replies_are_kept_where_the_endpoint_fails(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert clean(file, f"http://127.0.0.1:{closed_port()}/v1") == 2
    said = capsys.readouterr().err
    assert "the replies so far are in" in said and "--resume" not in said
    assert not file.with_name("walks_clean.npz").exists()
    with ChatServer(reads) as server:
        assert clean(file, server.url, "--max-requests", "2") == 2
        assert server.calls == 2
        assert clean(file, server.url) == 0
        assert server.calls == 4
    capsys.readouterr()
    assert clean(file, "http://127.0.0.1:9/v1") == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize("none", ["[]", "-1", "[-1]"])
def test_another_model_or_task_is_another_question(file: Path, none: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What the refusal advises helps: replies of another question are not taken for answers to this one."""
    with ChatServer([Answer(f'{{"steps": {none}}}')]) as server:
        assert clean(file, server.url) == 2
        assert "no step of any episode solves the task" in capsys.readouterr().err and server.calls == 4
        assert clean(file, server.url) == 2 and server.calls == 4
    assert not file.with_name("walks_clean.npz").exists()
    (file.parent / "line.py").write_text(LINE)
    with ChatServer(reads) as server:
        assert clean(file, server.url, "--task", str(file.parent / "line.py")) == 0 and server.calls == 4
        assert (
            clean(
                file,
                server.url,
                "--model",
                "openai/other",
                "--price",
                "openai/other=1,2",
                "--out",
                str(file.with_name("other.npz")),
            )
            == 0
        )
        assert server.calls == 8


def test_a_model_that_was_of_no_use_is_asked_again(file: Path) -> None:
    with ChatServer([Answer("I cannot say.")]) as server:
        assert clean(file, server.url) == 2 and server.calls == 8
    with ChatServer(reads) as server:
        assert clean(file, server.url) == 0 and server.calls == 4


def test_steps_that_were_not_shown_are_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def script(body: dict[str, Any], _: int) -> Answer:
        text = body["messages"][-1]["content"]
        return reads(body, 0) if "could not be used" in text else Answer('{"steps": [2, 99]}')

    with ChatServer(script) as server:
        assert clean(file, server.url) == 0 and server.calls == 8
    asked = server.seen[-1].body["messages"][-1]["content"]
    assert "99 is no step of the episode that is shown" in asked and "1 to " in asked
    assert marks(load_trajectories(file.with_name("walks_clean.npz"))) == marks(walks(solves=True))


def test_a_step_between_two_that_are_shown_is_as_they_are_or_not_known() -> None:
    shown = np.array([2, 4, 6, 8, 9])
    assert _marks(shown, [6, 8]).tolist() == [0, 0, 0, 0, -1, 1, 1, 1, 0]
    assert _marks(shown, [2]).tolist() == [-1, 1, -1, 0, 0, 0, 0, 0, 0]
    assert _marks(np.array([1]), [1]).tolist() == [1]


def test_steps_that_are_not_known_are_in_no_set() -> None:
    states = [np.array([0, 1, 2, 7, 7], np.int32)[:, None]]
    episodes = from_arrays(Line(), states, [np.zeros(4, int)], solves=[[0, -1, -1, 1]])
    data = DemonstrationData.of(Line(), episodes, walks(), "marked")
    assert (data.experts, data.of_expert) == (1, 2)
    assert data.transitions.next_states[0][:2, 0].tolist() == [7, 1]


@pytest.mark.long
def test_the_task_and_the_missions_are_told_where_they_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    task = jr.make_task("babyai/GoToObj")
    episodes = jr.demonstrations.record_expert(task, 2, seed=0)
    save_trajectories(tmp_path / "expert.npz", episodes)
    with ChatServer([Answer('{"steps": [1]}')]) as server:
        assert clean(tmp_path / "expert.npz", server.url) == 0
        bare = [seen.body["messages"][1]["content"] for seen in server.seen]
        assert clean(tmp_path / "expert.npz", server.url, "--task", task.name, "--out", str(tmp_path / "b.npz")) == 0
        told = [seen.body["messages"][1]["content"] for seen in server.seen[2:]]
    assert not any(task.name in text or mission in text for text in bare for mission in episodes.texts)
    assert all(task.description.splitlines()[0] in text for text in told)
    assert sorted(m for text in told for m in re.findall("The mission: (.*)", text)) == sorted(episodes.texts)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--task-arg", "a=1"], "--task-arg is for --task"),
        (["--task", "xland-easy"], "record them with this task"),
        (["--out", "marks.txt"], "name it marks.txt.npz"),
        (["--out", "/proc/marks.npz"], "replies cannot be kept in /proc/marks_replies"),
        (["--max-usd", "0.000001"], "does not reach for one call"),
    ],
)
def test_what_is_refused(file: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with ChatServer(reads) as server:
        assert clean(file, server.url, *words) == 2
    assert said in capsys.readouterr().err and not server.calls


def test_marked_states_are_told_from_all_others() -> None:
    """The expert's other states are among the negative ones (GRACE, section 4), also those after a marked one."""
    data = DemonstrationData.of(Line(), walks(solves=True), walks(), "marked")
    after = data.transitions.next_states[0][:, 0]
    assert data.experts == 4 and (after[:4] == GOAL).all()
    assert data.of_expert == 13 and not (after[4:13] == GOAL).any() and len(after) == 26


def test_an_unmarked_set_says_how_to_mark_it() -> None:
    with pytest.raises(WrongTrajectories, match="jaxreward clean"):
        walks().positive_steps("marked")
    with pytest.raises(WrongTrajectories, match="nothing is to be told from others"):
        walks(solves=True).take([2]).positive_steps("marked")


def test_marks_go_with_their_episodes(tmp_path: Path) -> None:
    marked = walks(solves=True)
    save_trajectories(tmp_path / "a.npz", marked)
    assert marks(load_trajectories(tmp_path / "a.npz")) == marks(marked)
    assert marks(marked.take([3, 0])) == [False, True, False, False, True, False, False]
    assert jr.demonstrations.joined([marked, walks()]).solves is None


@pytest.mark.slow
def test_a_search_takes_the_marked_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_trajectories(tmp_path / "a.npz", walks(solves=True))
    save_trajectories(tmp_path / "b.npz", walks())
    words: dict[str, Any] = {
        "objective": "demonstrations", "candidates": 4, "option": ("expansions=0",), "progress": False,
        "final_seeds": 0, "baselines": (),
    }  # fmt: skip
    run = jr.evolve(Line(), data=(tmp_path / "a.npz",), **words)
    shown = json.loads((run.path / "demonstrations" / "rewards.json").read_text())
    told = [episode["positive"] for group in shown["groups"] if group["who"] == "expert" for episode in group["shown"]]
    assert sorted(sum(positive) for positive in told) == [0, 1, 1, 2]
    with pytest.raises(jr.UserError, match=r"mark those too with `jaxreward clean .*b.npz`"):
        jr.evolve(Line(), data=(tmp_path / "a.npz", tmp_path / "b.npz"), name="both", **words)


def test_whatever_the_seed_a_marked_episode_is_searched_with(tmp_path: Path) -> None:
    """One of twenty, or two of ten: then the other is held out."""
    others = tmp_path / "others.npz"
    save_trajectories(others, jr.demonstrations.joined([walks()] * 5))
    for count, marked in ((20, 1), (10, 2)):
        states = [np.array(WALKS[0] if k < marked else WALKS[2], np.int32)[:, None] for k in range(count)]
        episodes = from_arrays(Line(), states, [np.zeros(len(x) - 1, int) for x in states],
                               solves=[x[1:, 0] == GOAL for x in states])  # fmt: skip
        save_trajectories(tmp_path / f"{marked}.npz", episodes)
        for seed in range(6):
            sets = DemonstrationSets.of(Line(), DemonstrationOptions((tmp_path / f"{marked}.npz",), (others,)), seed)
            held_out = sets.held_out[0] if sets.held_out is not None else None
            assert len(sets.expert.positive_steps("marked")) == 1
            assert (held_out is not None and len(held_out.positive_steps("marked")) == 1) == (marked == 2)


def test_a_prompt_says_which_steps_of_an_episode_solve_the_task() -> None:
    long = from_arrays(Line(), [np.arange(41, dtype=np.int32)[:, None] % 9], [np.zeros(40, int)],
                       solves=[np.arange(40) == 22])  # fmt: skip
    data = DemonstrationData.of(Line(), long, walks(), "marked")
    choice = ExampleChoice(trajectory=True)
    *_, text = illustrations(choice, None, data, long, np.random.default_rng(0))
    assert re.findall(r"^After step (\d+), action 0, which solves the task:", text, re.M) == ["23"]
    every = DemonstrationData.of(Line(), long, walks(), "all")
    assert "which solves" not in illustrations(choice, None, every, long, np.random.default_rng(0))[-1]


def test_a_long_episode_shows_fewer_steps_and_always_the_last() -> None:
    places = np.arange(90, dtype=np.int32)[:, None] % 9
    long = from_arrays(Line(), [places], [np.zeros(89, int)])
    whole = episode_text(long, 0, len, 100_000)
    assert [int(n) for n in re.findall(r"^Step (\d+),", whole.text, re.M)] == list(range(1, 90))
    short, shown = episode_text(long, 0, len, 1_000)
    assert [int(n) for n in re.findall(r"^Step (\d+),", short, re.M)] == shown.tolist()
    assert len(short) <= 1_000 and shown[-1] == 89 and set(np.diff(shown)) == {8}
    with pytest.raises(WrongTrajectories, match="two states of line take .* tokens, and a prompt has room for 50"):
        episode_text(long, 0, len, 50)
    assert shown_every(5, 2).tolist() == [0, 2, 4] and shown_every(1, 8).tolist() == [0]


def test_an_episode_is_told_by_what_changes() -> None:
    assert episode_text(walks(), 1, len, 100_000).text == (
        "An episode of the expert, 3 steps. Before step 1:\nstate: [3]\nStep 1, action 0:\nstate: [7]\n"
        "Step 2, action 0:\nnothing of the state changes\nStep 3, action 0:\nstate: [4]"
    )
