"""Rewards of texts: files, scores as those of array programs, and searches on the screens of a clock."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxreward as jr
from jaxreward.demonstrations.clock_screens import GOALS, Goal, clock_episodes, other_episodes
from jaxreward.demonstrations.texts import TextEpisode, load_texts, save_texts
from jaxreward.errors import UnusableFile, UserError
from jaxreward.objectives.demonstrations.fitness import accuracy, airl_fitness
from jaxreward.objectives.texts.objective import TextObjective
from jaxreward.objectives.texts.text_sets import TextData, TextSets
from jaxreward.objectives.texts.text_vocabulary import pieces_of, text_vocabulary
from jaxreward.programs.host.checker import TextChecker
from jaxreward.records import Candidate
from tests.proposers.server import Answer, ChatServer
from tests.substance import substance

pytestmark = pytest.mark.usefixtures("unsynced")

REWARDS: dict[Goal, str] = {
    "timer": "import re\n\n\ndef reward(state):\n    return 8.0 if re.search('\"06h 00m 00s\"', state) else -8.0\n",
    "stopwatch-running": "def reward(state):\n    return 8.0 if 'content-desc=\"Pause\"' in state else -8.0\n",
    "stopwatch-paused": "def reward(state):\n    return 8.0 if 'content-desc=\"Reset\"' in state else -8.0\n",
}
"""What the goals come to, by a person."""


@pytest.fixture(scope="module")
def files_of(tmp_path_factory: pytest.TempPathFactory) -> dict[Goal, tuple[Path, Path]]:
    """For each goal the expert's episodes and others, twelve and twenty."""
    folder, found = tmp_path_factory.mktemp("texts"), {}
    for goal in GOALS:
        found[goal] = folder / f"{goal}.jsonl", folder / f"not-{goal}.jsonl"
        save_texts(found[goal][0], clock_episodes(goal, 12))
        save_texts(found[goal][1], other_episodes(goal, 20))
    return found


def sets_of(goal: Goal) -> TextSets:
    return TextSets.of(
        clock_episodes(goal, 12), other_episodes(goal, 20), experts=8, negatives=12, positives="last", seed=0
    )


# ---- episodes and files


def test_episodes_are_written_and_read_again(tmp_path: Path) -> None:
    odd = TextEpisode(("a\u2028b", 'x\n"y"', ""), ("", "tap"), (-0.5, 0.0))
    save_texts(tmp_path / "t.jsonl", [odd, TextEpisode(("a", "b"))])
    assert load_texts(tmp_path / "t.jsonl") == (odd, TextEpisode(("a", "b"), ("",)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2, is no episode of texts"),
        ("[]", '"states", a list of texts'),
        ('{"states": ["a"]}', "it needs 2 or more"),
        ('{"states": ["a", 1]}', '"states" is no list of texts'),
        ('{"states": ["a", "b"], "actions": ["x", "y"]}', "has 2 actions: give 1"),
        ('{"states": ["a", "b"], "log_probabilities": [0.5]}', "numbers of at most 0"),
        ('{"states": ["a", "b"], "reward": 1}', '"reward" is none of'),
    ],
)
def test_a_line_that_is_no_episode_is_named(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"states": ["a", "b"]}) + "\n" + line + "\n")
    with pytest.raises(UnusableFile, match=re.escape(message)) as refused:
        load_texts(path)
    assert refused.value.line == 2


# ---- the screens


@pytest.mark.parametrize("goal", GOALS)
def test_screens_vary_with_the_seed_and_a_person_tells_them_apart(goal: Goal) -> None:
    expert, others = clock_episodes(goal, 12), other_episodes(goal, 20)
    assert expert == clock_episodes(goal, 12) and expert != clock_episodes(goal, 12, seed=1)
    last = [episode.states[-1] for episode in expert]
    assert len(set(last)) == 12
    names: dict[str, Any] = {}
    exec(REWARDS[goal], names)
    assert all(names["reward"](state) > 0 for state in last)
    assert all(names["reward"](state) < 0 for episode in others for state in episode.states)
    assert all(names["reward"](state) < 0 for episode in expert for state in episode.states[:-1])


# ---- scores


@pytest.mark.slow
@pytest.mark.parametrize("positives", ["last", "all"])
def test_the_score_is_that_of_array_programs_on_the_same_numbers(positives: Any) -> None:
    rng = np.random.default_rng(0)
    known = tuple(TextEpisode(e.states, e.actions, tuple(-rng.random(len(e)))) for e in other_episodes("timer", 10))
    sets = TextSets.of(clock_episodes("timer", 6), known, experts=4, negatives=7, positives=positives, seed=3)
    source = "def reward(state):\n    return len(state) % 7 - 3.0 + 4.0 * ('Timer' in state)"
    with TextChecker(sets.transitions, workers=1) as checker:
        _, program = checker.check(source)
    assert program is not None and sets.held_out is not None
    objective = TextObjective(sets, 0)
    candidate = Candidate(id="a", generation=0, operator="scratch")
    (result,) = objective.score("", "", [candidate], [program], None).results
    assert result.score is not None and result.feedback is not None
    names: dict[str, Any] = {}
    exec(source, names)
    for data, fitness, share in (
        (sets.data, result.score.mean, result.feedback.extra_metrics["accuracy"]),
        (sets.held_out, *(result.feedback.extra_metrics[f"held_out_{n}"] for n in ("fitness", "accuracy"))),
    ):
        paid = np.asarray([names["reward"](state) for _, _, state in data.steps], np.float32)
        own, others = paid[: data.experts], paid[data.experts :]
        assert fitness == pytest.approx(float(airl_fitness(own, others, 0.0, 0.0)), abs=1e-6)
        assert share == pytest.approx(float(accuracy(own, others)), abs=1e-6)


def test_the_expert_s_states_are_the_last_or_all() -> None:
    expert, others = clock_episodes("timer", 2), other_episodes("timer", 3)
    last, all_ = (TextData.of(expert, others, positives) for positives in ("last", "all"))
    assert [state for _, _, state in last.steps[: last.experts]] == [e.states[-1] for e in expert]
    assert all_.experts == all_.of_expert == last.of_expert == sum(map(len, expert)) and last.experts == 2
    assert sorted(last.steps[: last.of_expert]) == sorted(all_.steps[: all_.experts]), (
        "those before are among the others"
    )
    assert last.steps[last.of_expert :] == all_.steps[all_.experts :]


# ---- the vocabulary


def test_pieces_are_attributes_of_one_node_or_words() -> None:
    assert ('text="Pause"', 'selected="true"') in pieces_of('<a><n text="Pause" bounds="[0,0]" selected="true" /></a>')
    apart = pieces_of('<a><n text="Pause" /><n selected="true" /></a>')
    assert ('text="Pause"',) in apart and not any(len(piece) == 2 for piece in apart)
    assert pieces_of('{"text": "06h 00m"}') == {("text",), ("06h",), ("00m",)}


@pytest.mark.slow
@pytest.mark.parametrize("goal", GOALS)
def test_one_term_of_the_vocabulary_tells_the_goal(goal: Goal) -> None:
    sets = sets_of(goal)
    vocabulary = text_vocabulary(sets.data)
    first, everywhere = vocabulary.fragments[0], vocabulary.fragments[-1]
    assert "100% of the expert's states have this, 0% of others" in first.doc and everywhere.name == "everywhere"
    source = vocabulary.source([first.name]) + (
        f"\n\ndef compute_reward(state, action, next_state):\n    return {first.name}(state, action, next_state)\n"
    )
    source = "\n".join(line for line in source.split("\n") if not line.startswith("import jax"))
    with TextChecker(sets.transitions, workers=1) as checker:
        verdict, program = checker.check(source)
    assert program is not None, str(verdict.failure)
    found = TextObjective(sets, 0).separated([program])
    assert [float(part.accuracy[0]) for part in found] == [1.0, 1.0]


# ---- searches


@pytest.mark.slow
@pytest.mark.parametrize("goal", GOALS)
def test_the_genetic_proposer_finds_the_goal(goal: Goal, files_of: Any, tmp_path: Path) -> None:
    run = jr.evolve_texts(
        *files_of[goal], candidates=24, generation=8, negative_episodes=12, out=tmp_path, name="run", progress=False,
        option={"population": 8},
    )  # fmt: skip
    assert run.standing == "finished" and run.best is not None and run.best.score is not None
    found = run.best.result.feedback
    assert found is not None and run.best.score.measure.name == "fitness"
    assert found.extra_metrics["accuracy"] == 1.0 and found.extra_metrics["held_out_accuracy"] == 1.0
    assert (tmp_path / "run" / "best_interface.py").read_text().endswith(run.best.source)
    assert run.report().exists()
    with pytest.raises(UserError, match="with no task to train on"):
        run.policy()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """A model that says nothing of use, then something hostile, then what is wanted."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    hostile = "import os\n\n\ndef reward(state):\n    return os.getpid()\n"
    replies = ["What a fine day.", hostile, "def reward(state):\n    return float(len(state) % 7)\n", REWARDS["timer"]]
    turn = itertools.count()

    def script(body: dict[str, Any], n: int) -> Answer:
        return Answer(f"```python\n{replies[next(turn) % len(replies)]}```", usage=(100, 50))

    with ChatServer(script) as server:
        yield server


@pytest.mark.slow
def test_a_served_model_finds_the_goal_in_view_of_its_mistakes(
    served: ChatServer, files_of: Any, tmp_path: Path
) -> None:
    run = jr.evolve_texts(
        *files_of["timer"], proposer="llm", model="openai/mine", api_base=served.url, price="openai/mine=1,2",
        candidates=3, generation=1, out=tmp_path, name="run", progress=False, option={"population": 1},
    )  # fmt: skip
    assert run.best is not None and run.best.source.strip() == REWARDS["timer"].strip()
    assert run.best.result.feedback is not None
    assert run.best.result.feedback.extra_metrics["held_out_accuracy"] == 1.0
    prompts = ["\n".join(m["content"] for m in seen.body["messages"]) for seen in served.seen]
    assert all("reward(state)" in prompt and "import jax" not in prompt and "jnp" not in prompt for prompt in prompts)
    assert all("xml.etree.ElementTree; nothing else" in prompt and "ValueError" in prompt for prompt in prompts)
    assert "An episode of the expert, 7 steps" in prompts[0]
    assert "State of others" in prompts[0] or "State of the expert, which does not solve the task" in prompts[0]
    assert any("import of 'os' is not allowed" in prompt for prompt in prompts)
    assert any("State of the expert, reward" in prompt and "(wrong)" in prompt for prompt in prompts)


@pytest.mark.long
def test_the_same_call_goes_on_or_returns_the_run_and_other_data_are_refused(files_of: Any, tmp_path: Path) -> None:
    expert, others = (tmp_path / name for name in ("expert.jsonl", "others.jsonl"))
    for path, source in zip((expert, others), files_of["timer"], strict=True):
        path.write_bytes(source.read_bytes())
    given: dict[str, Any] = {"generation": 4, "option": {"population": 4}, "progress": False, "name": "run"}

    def call(candidates: int, out: Path) -> jr.SearchRun:
        return jr.evolve_texts(expert, others, candidates=candidates, out=out, **given)

    first = call(4, tmp_path / "a")
    assert substance(call(4, tmp_path / "a").path) == substance(first.path)
    resumed, whole = call(12, tmp_path / "a"), call(12, tmp_path / "b")
    assert [e for e in substance(resumed.path) if e.type != "finished"] == [
        e for e in substance(whole.path) if e.type != "finished"
    ] + []
    save_texts(expert, clock_episodes("timer", 12, seed=9))
    with pytest.raises(UserError, match="began with other episodes"):
        call(16, tmp_path / "a")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 1000}, "steps"),
        ({"strategy": "revolve", "option": {"fitness": "preference"}}, "no agents of text"),
        ({"option": {"generations": 1, "expansions": 1}}, "leave expansions out"),
        ({"positives": "some"}, "positives"),
        ({"data": "none.jsonl"}, "there is no file"),
        ({"negative": ()}, "there are no episodes that an expert would not play"),
    ],
)
def test_what_has_no_meaning_for_texts_is_refused(
    changes: dict[str, Any], message: str, files_of: Any, tmp_path: Path
) -> None:
    data, negative = files_of["timer"]
    given: dict[str, Any] = {"data": data, "negative": negative, "out": tmp_path, "progress": False, **changes}
    with pytest.raises(UserError, match=message):
        jr.evolve_texts(**given)
    assert not list(tmp_path.iterdir())
