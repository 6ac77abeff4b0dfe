"""What a language model is shown of its programs in a search on demonstrations: what their `debug` returns, and the
functions that good ones share. The model answers over HTTP on loopback."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaxreward.demonstrations import record_actions, record_random, reset_keys, save_trajectories
from jaxreward.evolution import run_search
from jaxreward.evolution.artifacts import without_debug
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.function_source.normal_form import helpers_of
from jaxreward.objectives.demonstrations.demonstration_options import DemonstrationOptions
from jaxreward.objectives.demonstrations.illustrations import illustrations
from jaxreward.objectives.demonstrations.scoring import DemonstrationData, separate
from jaxreward.programs.debug_values import debug_values
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.records import ExampleChoice, FunctionLibrary
from jaxreward.reports.page import write_report
from jaxreward.runs import read_transcript
from jaxreward.tasks import Task
from jaxreward.training import PPO
from tests.proposers.server import Answer, ChatServer
from tests.proposers.talk import KEY, PRICE
from tests.silent import Silent
from tests.substance import substance

pytestmark = pytest.mark.usefixtures("unoptimised", "unsynced")

DEBUG = """
BIG = 3


def double(state):
    return BIG * state.place


def debug(state):
    return {"distance": distance(state), "there": distance(state) == 0, "places": jnp.arange(20) * double(state)}
"""

HELPERS = (
    "def distance(state):\n    return jnp.abs(state.place - 6)\n",
    "def distance(s):  # to the right end\n    return jnp.abs(s.place - 6)\n\n\n"
    "def there(state):\n    return distance(state) == 0\n",
    "def distance(state):\n    return jnp.float32(6) - state.place\n",
)
CALLS = ("(distance(next_state) == 0)", "there(next_state)", "(distance(next_state) < 0.5)")


def program(style: int, weight: float) -> str:
    pay = f"def compute_reward(state, action, next_state):\n    return {weight} * {CALLS[style]} - 1.0\n"
    return f"import jax.numpy as jnp\n\n\n{HELPERS[style]}\n\n{pay}\n{DEBUG}"


class Model:
    """Answers each new question by the next of its programs, and one that it knows as before; one in six of them has a
    `debug` that prints."""

    def __init__(self) -> None:
        self.questions: dict[str, int] = {}

    def __call__(self, body: dict[str, Any], _: int) -> Answer:
        k = self.questions.setdefault(body["messages"][-1]["content"], len(self.questions))
        source = program(k % 3, 2.0 + k / 10)
        if k % 6 == 1:
            source = source.replace("    return {", "    print(state)\n    return {")
        return Answer(f"```python\n{source}```\n")


@pytest.fixture(scope="module")
def corridor(task_of: Callable[..., Task]) -> Task:
    return task_of("probe-corridor")


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with pytest.MonkeyPatch.context() as patch, ChatServer(Model()) as running:
        patch.setenv("OPENAI_API_KEY", KEY)
        yield running


@pytest.fixture(scope="module")
def settings(corridor: Task, server: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> EvolveSettings:
    path = tmp_path_factory.mktemp("data") / "expert.npz"
    save_trajectories(path, record_actions(corridor, reset_keys(4, 5), [[1] * corridor.horizon] * 4, seed=5))
    return EvolveSettings(
        task="probe-corridor", strategy="grace", objective="demonstrations", proposer="llm",
        demonstrations=DemonstrationOptions(data=(path,), expert_episodes=4, negative_episodes=4),
        llm=LlmSettings(model=("openai/mine",), api_base=server.url, price=(PRICE,), concurrency=1),
        candidates=9, generation=3, final_seeds=0, baselines=(), option=("population=3", "trajectory_chance=0.5"),
        ppo=PPO(envs=8, unroll=8, minibatches=2, hidden=(8,)), name="run",
    )  # fmt: skip


@pytest.fixture(scope="module")
def machine(checker: Any, corridor: Task) -> dict[str, Any]:
    return {"task": corridor, "checker": checker}


@pytest.fixture(scope="module")
def whole(settings: EvolveSettings, machine: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("whole")
    return run_search(dataclasses.replace(settings, out=out), Silent(), **machine), out / "run"


def prompts(run: Path) -> dict[str, str]:
    """The question of every request by its id."""
    exchanges = read_transcript(run / "transcripts" / "exchanges.jsonl")
    return {e.request_id: e.messages[-1]["content"] for e in exchanges}


def test_prompts_show_what_debug_returns_below_every_state(whole: Any) -> None:
    outcome, run = whole
    asked = prompts(run)
    results = outcome.progress.results
    improved = [text for id, text in asked.items() if results[id].candidate.operator == "improve"]
    repairs = [id for id in asked if results[id].candidate.repairs]
    improved = [text for text in improved if "\nState of " in text or "\nAn episode of " in text]
    assert improved
    for text in improved:
        states = re.findall(r"^place: (\d+)\n(?:.*\n)*?debug, distance: (.*)\ndebug, there: (.*)$", text, re.MULTILINE)
        assert states and all(abs(int(place) - 6) == float(far) for place, far, _ in states)
        assert all((there == "True") == (float(far) == 0) for _, far, there in states)
        assert "Numbers that debug returns in which the expert's differ most" in text
        assert re.search(r"^distance: d -[\d.]+; expert 0, 0, 0 to 0; others ", text, re.MULTILINE)
    first = [text for id, text in asked.items() if id.startswith("g0000") and id not in repairs]
    assert first and not any("debug, " in text for text in first)


def test_a_broken_debug_is_sent_back_as_any_other_fault(whole: Any) -> None:
    outcome, _ = whole
    failed = [r for r in outcome.progress.results.values() if r.failure and "print" in r.failure.message]
    repaired = {r.candidate.repairs for r in outcome.progress.results.values() if r.candidate.repairs}
    assert failed and repaired <= {r.candidate.id for r in outcome.progress.results.values() if r.failure}
    assert all(r.candidate.id in repaired for r in failed)


def test_prompts_offer_what_good_programs_share_and_the_parent_lacks(whole: Any) -> None:
    outcome, run = whole
    asked, results = prompts(run), outcome.progress.results
    offered = {id: text for id, text in asked.items() if "# Functions that good programs of this search share" in text}
    assert offered
    for id, text in offered.items():
        section = text.partition("# Functions that good programs of this search share")[2].partition("\n#  ")[0]
        known = [r for r in results.values() if r.candidate.generation < results[id].candidate.generation]
        parent = results[results[id].candidate.parents[0]].candidate.source if results[id].candidate.parents else ""
        texts = FunctionLibrary.of(known).texts(besides=parent)
        assert texts and all(text in section for text in texts)


def test_the_file_of_the_winner_has_no_debug_and_nothing_that_it_alone_needs(whole: Any) -> None:
    outcome, run = whole
    text = (run / "best_interface.py").read_text()
    assert "def debug" in outcome.best.candidate.source and "def debug" not in text
    assert "BIG" not in text and "double" not in text and "def distance" in text
    assert helpers_of(text) == helpers_of(outcome.best.candidate.source)


def test_a_program_without_debug_is_kept_as_it_is() -> None:
    source = program(1, 3.0).partition("\nBIG")[0] + "\n"
    assert without_debug(source) == source and without_debug("def f(:") == "def f(:"
    assert without_debug("def debug(state):\n    return x(state)\n" + source).strip() == source.strip()


def test_the_report_counts_the_functions(whole: Any, tmp_path: Path) -> None:
    outcome, run = whole
    library = FunctionLibrary.of(outcome.progress.results.values())
    assert library.shared and library.generations[0].reused == 0
    assert sum(g.new for g in library.generations) == len(library.functions)
    text = write_report(run, tmp_path / "report.html").read_text()
    assert '<section id="functions">' in text and '"functions":{"$schema"' in text and '"uses":{"$schema"' in text
    first = library.shared[0]
    assert f"<b>{first.name}</b>: {first.programs} programs, since generation 0" in text


def test_a_resumed_search_asks_the_same_questions(
    whole: Any, settings: EvolveSettings, machine: dict[str, Any], tmp_path: Path
) -> None:
    """What is shown comes from the log alone: a model that answers the question alone answers as before."""
    _, run = whole
    lines = (run / "events.jsonl").read_bytes().splitlines(keepends=True)
    told = [k for k, line in enumerate(lines) if b'"type":"told"' in line]
    expected, asked = substance(run), prompts(run)
    for cut in (told[0] + 1, told[-2] + 2):
        copy = tmp_path / f"cut{cut}" / "run"
        shutil.copytree(run, copy)
        (copy / "events.jsonl").write_bytes(b"".join(lines[:cut]))
        exchanges = (run / "transcripts" / "exchanges.jsonl").read_text().splitlines(keepends=True)
        early = tuple(f'"request_id":"g{k:04d}' for k in range(sum(at < cut for at in told)))
        kept = [line for line in exchanges if any(id in line for id in early)]
        (copy / "transcripts" / "exchanges.jsonl").write_text("".join(kept))
        run_search(dataclasses.replace(settings, out=copy.parent, resume=True), Silent(), **machine)
        assert prompts(copy) == asked and substance(copy) == expected


def test_statistics_are_of_what_debug_returns_where_it_is_finite(checker: Any, corridor: Task) -> None:
    """Arrays of several axes are shown and not counted; the largest differences come first."""
    source = (
        "import jax.numpy as jnp\n\n\ndef compute_reward(state, action, next_state):\n"
        "    return 1.0 * next_state.place\n\n\n"
        "def debug(state):\n    return {'log': jnp.log(state.place - 1.0), 'same': 4,\n"
        "            'pair': jnp.stack([state.t, state.place]), 'grid': state.place > jnp.ones((1, 4)),\n"
        "            'long': jnp.arange(900.0)}\n"
    )
    verdict, found = checker.check(source, corridor, debug=True)
    assert found is not None, str(verdict.failure)
    expert = record_actions(corridor, reset_keys(3, 0), [[1] * corridor.horizon] * 3)
    data = DemonstrationData.of(corridor, expert, record_random(corridor, 4, seed=1), "last")
    lines = illustrations(
        ExampleChoice(trajectory=True), separate([found], data)[0], data, expert, np.random.default_rng(0),
        lambda states: debug_values(found, states),
    )  # fmt: skip
    (table,) = [line for line in lines if line.startswith("Numbers that debug returns")]
    names = re.findall(r"^([\w\[\]]+): d", table, re.MULTILINE)
    assert set(names) == {"log", "pair[0]", "pair[1]"} and "nan" not in table and "expert 1.61, 0" in table
    values = [abs(float(x)) for x in re.findall(r": d (-?[\d.]+|-?inf);", table)]
    assert values == sorted(values, reverse=True)
    states = [line for line in lines if line.startswith("State of")]
    assert all(
        re.search(r"debug, grid: \[\[([01]) \1 \1 \1\]\]", text) and "debug, same: 4" in text and "897 898 899]" in text
        for text in states
    )
    assert max(map(len, states)) < 1000
    (episode,) = [line for line in lines if line.startswith("An episode of the expert")]
    assert re.findall(r"debug, pair: \[(\d) (\d)\]", episode) == [(str(k), str(k)) for k in range(7)]
