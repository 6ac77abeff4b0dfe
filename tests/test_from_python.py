"""`jr.evolve`: a search as one call, with names or objects, on a task that trains in a second."""

from __future__ import annotations

import dataclasses
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import jax
import jax.numpy as jnp
import pytest

import jaxreward as jr
from jaxreward.commands.evolve import COMMANDS
from jaxreward.errors import ChangedSetting, EndCause, InvalidSetting, ProposerStopped, UnknownName, UnusableFile
from jaxreward.evolution.python_settings import call_text, search_settings
from jaxreward.evolution.setup import Objects
from jaxreward.evolution.vocabulary import FILE, read_vocabulary, write_vocabulary
from jaxreward.identity import Identity
from jaxreward.proposers.proposer import OneByOne
from jaxreward.records import Proposal
from jaxreward.reports.report_content import commands
from jaxreward.reports.run_view import RunView
from jaxreward.reports.tables import interval
from jaxreward.runs import Asked, Baseline, Paused, Proposed, RunStarted, Told, Trained, read_log
from jaxreward.search import Draft, SearchStrategy, make_strategy
from jaxreward.search import registry as strategies
from jaxreward.sentences import RESUME
from jaxreward.tasks.probe import Probe
from tests.silent import Silent

pytestmark = pytest.mark.usefixtures("warm", "unoptimised", "unsynced")

PPO: dict[str, Any] = {"envs": 8, "unroll": 8, "minibatches": 2, "hidden": [8]}
SMALL: dict[str, Any] = {
    "candidates": 2, "generation": 1, "seeds": 1, "steps": 256, "final_seeds": 1, "ppo": PPO, "progress": False,
}  # fmt: skip


@dataclass(frozen=True)
class Bit(Probe):
    """A task of the user's own."""

    kind: str = "choice"


@dataclass(frozen=True)
class Climb(SearchStrategy[None]):
    """Changes the best program so far."""

    name: ClassVar[str] = "climb"
    first: int = 1

    def _validate(self) -> None: ...

    def _init(self) -> None:
        return None

    def _ask(self, state: Any, n: int, rng: Any) -> list[Draft]:
        if state.counts.trained < self.first or state.best is None:
            return [Draft("scratch")] * n
        return [Draft("improve", parents=(state.best,))] * n

    def _tell(self, state: Any, results: Any) -> None:
        return None


class Scaled(OneByOne):
    """One reward, scaled by another number each time."""

    name = "scaled"

    def __init__(self, card: Any) -> None:
        self.card = card

    def propose(self, request: Any, rng: Any) -> Proposal:
        source = f"def compute_reward(state, action, next_state):\n    return {rng.random():.6f} * next_state.hit\n"
        return Proposal(request_id=request.id, source=source, proposer=self.name)


def best_of(run: jr.SearchRun) -> Any:
    """The best candidate of a run that has one."""
    assert run.best is not None
    return run.best


def events(path: Path) -> list[Any]:
    """What a run did, without clocks."""
    kept = []
    for entry in read_log(path / "events.jsonl"):
        event = entry.event
        if isinstance(event, Trained | Baseline):
            event = event.model_copy(update={"compile_s": 0.0, "run_s": 0.0})
        if isinstance(event, Asked | Trained | Told | Baseline):
            kept.append(event)
    return kept


def started(path: Path) -> RunStarted:
    event = read_log(path / "events.jsonl")[0].event
    assert isinstance(event, RunStarted)
    return event


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(strategies, "_own", {})
    return tmp_path


@pytest.mark.long
def test_a_call_is_the_command_with_the_same_settings(capsys):
    run = jr.evolve("probe-choice", **SMALL)
    out, err = capsys.readouterr()
    assert (out, err) == ("", ""), "no progress was asked for"
    words = "--task probe-choice --candidates 2 --generation 1 --seeds 1 --steps 256 --final-seeds 1 --name typed"
    learner = "--ppo.envs 8 --ppo.unroll 8 --ppo.minibatches 2 --ppo.hidden 8"
    assert COMMANDS[0](f"{words} {learner}".split()) == 0
    assert events(run.path) == events(Path("runs/typed")) and len(events(run.path)) > 4
    assert started(run.path).config == started(Path("runs/typed")).config
    assert run.path == Path("runs/probe-choice-limen-0") and started(run.path).objects == {}
    assert started(run.path).command.startswith("jaxreward.evolve(task='probe-choice', strategy='limen'")


@pytest.mark.long
def test_a_run_is_read_played_reported_and_goes_on(capsys):
    run = jr.evolve("probe-choice", name="first", **SMALL)
    assert (run.standing, run.cause, run.reason) == ("finished", EndCause.CANDIDATES, "all candidates are trained")
    best = best_of(run)
    assert best.score is not None and best.score == run.view.final
    assert "def compute_reward" in best.source and best.program.digest == best.result.candidate.summary.digest
    table = run.table()
    assert table.columns[:8] == ("id", "generation", "operator", "success", "se", "low", "high", "status")
    assert all(row["low"] <= row["success"] <= row["high"] and row["low"] < row["high"] for row in table)
    assert best.interval is not None and best.interval[0] <= best.score.mean <= best.interval[1]
    assert best.interval == interval(best.score) and f"interval=({best.interval[0]:.4g}, " in repr(best)
    assert table["id"] == ["g0000-00", "g0001-00"] and best.id in table["id"]
    assert set(table["status"]) == {"trained"} and run.baselines.keys() == {"sparse"}
    assert 5 <= len(repr(run).splitlines()) <= 10 and repr(run).startswith("SearchRun('runs/first'): finished")
    assert "<details>" in run._repr_html_() and "&quot;" in run._repr_html_()
    policy = run.policy()
    states = jax.vmap(run.task.reset)(jax.random.split(jax.random.key(0), 4))
    actions = jax.jit(jax.vmap(policy))(states, jax.random.split(jax.random.key(1), 4))
    assert actions.shape == (4,) and set(actions.tolist()) <= {0, 1}
    assert run.report(Path("page.html")) == Path("page.html") and "first" in Path("page.html").read_text()

    assert (
        run.film(episodes=3, frames=4) == run.path / "film.gif" and "film.gif" in (run.path / "film.json").read_text()
    )
    assert run.film("other.gif", episodes=3, frames=4).read_bytes()[:3] == b"GIF"
    with pytest.raises(InvalidSetting, match="episodes must be a whole number, at least 3, not 2"):
        run.film(episodes=2)
    with pytest.raises(UnusableFile, match="as .gif or .mp4, not as a.avi"):
        run.film("a.avi")

    before = (run.path / "events.jsonl").read_bytes()
    again = jr.evolve("probe-choice", name="first", **SMALL)
    assert (run.path / "events.jsonl").read_bytes() == before, "the same call only reads a run that has finished"
    assert again.best is not None and again.best.id == best.id and best_of(jr.open_run("first")).source == best.source

    for changed in ({"steps": 512}, {"seed": 1}, {"ppo": {**PPO, "envs": 16}}, {"strategy": "eureka"}):
        with pytest.raises(ChangedSetting, match="runs/first began with") as error:
            jr.evolve("probe-choice", name="first", **{**SMALL, **changed})
        assert str(error.value).endswith("give the same, or give another name= for a new run")
    with pytest.raises(UnusableFile, match="runs/first holds a run already: .*or give another name= for a new run"):
        jr.evolve("probe-choice", name="first", resume=False, **SMALL)
    assert (run.path / "events.jsonl").read_bytes() == before
    more = jr.evolve("probe-choice", name="first", **{**SMALL, "candidates": 3})
    assert more.table()["id"][:2] == table["id"] and more.table()["status"].count("trained") == 3
    with pytest.raises(UnknownName, match="did you mean runs/first"):
        jr.open_run("runs/firts")


@pytest.mark.long
def test_a_replay_has_the_options_of_its_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Half of the programs are new where a model chooses them, which a replay has no model to say."""
    monkeypatch.chdir(tmp_path)
    own = {**SMALL, "candidates": 4, "generation": 2, "option": {"initial": 1}}
    first = jr.evolve("probe-choice", name="first", **own)
    of_recording = {name: value for name, value in own.items() if name != "option"}
    again = jr.evolve("probe-choice", name="again", proposer="replay", recording=first.path, **of_recording)
    known, found = ([r.candidate.source for r in RunView.read(run.path).results.values()] for run in (first, again))
    assert known == found


@pytest.mark.long
def test_objects_search_and_the_same_objects_go_on():
    own: dict[str, Any] = {"strategy": Climb(first=1), "proposer": Scaled, "name": "own"}
    seen: list[Any] = []
    run = jr.evolve(Bit(), on_generation=seen.append, **own, **SMALL)
    assert [g.index for g in seen] == [0, 1] and seen[1].best.candidate.id == best_of(run).id
    assert [r.candidate.id for g in seen for r in g.results] == run.table()["id"]
    assert seen[1].spent.trained == 2 and run.table()["operator"] == ["scratch", "improve"]
    objects = started(run.path).objects
    assert objects.keys() == started(run.path).parts.keys() == {"task", "strategy", "proposer"}
    assert objects["task"].startswith(f"{__name__}.Bit(kind='choice', length=6") and "source" in objects["task"]
    assert started(run.path).config["option"] == ["first=1"]
    assert run.view.results["g0000-00"].candidate.proposer == "scaled"
    assert run.policy()(run.task.reset(jax.random.key(0)), jax.random.key(1)).shape == ()

    assert best_of(jr.evolve(Bit(), **own, **SMALL)).id == best_of(run).id
    assert len(jr.evolve(Bit(), **own, **{**SMALL, "candidates": 3}).table()) == 3
    for call, says in (
        (
            lambda: jr.evolve(Bit(length=7), **own, **SMALL),
            r"began with the task .*length=6.*now given .*length=7.*\(task.length was 6 and is 7\)",
        ),
        (lambda: jr.evolve("probe-choice", **own, **SMALL), "and is now given a name"),
        (lambda: jr.evolve(Bit(), **{**own, "strategy": Climb(first=2)}, **SMALL), "first=1"),
        (lambda: jr.evolve(Bit(), **{**own, "proposer": "genetic"}, **SMALL), "began with the proposer"),
    ):
        with pytest.raises(jr.UserError, match=says):
            call()
    read = jr.open_run(run.path)
    assert read.best is not None and read.best.source == best_of(run).source
    for without_task in (read.policy, read.film):
        with pytest.raises(jr.UserError, match="was given in Python"):
            without_task()
    assert jr.open_run(run.path, task=Bit()).policy()
    with pytest.raises(jr.UserError, match="began with the task .*length=6.*is now given .*length=7.*: give the same"):
        jr.open_run(run.path, task=Bit(length=7))


@pytest.mark.long
def test_the_command_line_does_not_go_on_with_objects_of_python(capsys):
    jr.evolve(Bit(), name="own", **SMALL)
    from tests.test_cli import outcome

    status, _, err = outcome(capsys, "evolve", "--resume", "--name", "own", "--candidates", "3")
    assert status == 2 and "runs/own began with the task" in err and "in Python" in err
    assert "give its call of jaxreward.evolve again" in outcome(capsys, "runs", "show", "own")[1]


@pytest.mark.long
def test_an_exception_of_on_generation_pauses_the_run_and_is_raised():
    def stop(generation: jr.CompletedGeneration) -> None:
        if generation.index == 0:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        jr.evolve("probe-choice", name="cut", on_generation=stop, **SMALL)
    end = read_log(Path("runs/cut/events.jsonl"))[-1].event
    assert isinstance(end, Paused) and "on_generation raised ZeroDivisionError: mine" in end.reason
    cut = jr.evolve("probe-choice", name="cut", **SMALL)
    whole = jr.evolve("probe-choice", name="whole", **SMALL)
    assert events(cut.path) == events(whole.path)


@pytest.mark.long
def test_an_interrupt_pauses_the_run_and_is_raised():
    import signal

    def interrupt(_: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match="runs/cut is paused"):
        jr.evolve("probe-choice", name="cut", on_generation=interrupt, **SMALL)
    assert jr.open_run("cut").cause is EndCause.SIGNAL and jr.open_run("cut").standing == "paused"
    with pytest.raises(SystemExit) as left:
        jr.evolve("probe-choice", name="asked", on_generation=lambda _: signal.raise_signal(signal.SIGTERM), **SMALL)
    assert left.value.code == 75
    assert jr.evolve("probe-choice", name="cut", **SMALL).standing == "finished"


def test_a_search_may_run_in_a_thread_and_be_watched():
    found: list[jr.SearchRun] = []
    logged: list[str] = []

    class Mine(Silent):
        def logged(self, entry: Any, progress: Any) -> None:
            logged.append(entry.event.type)

    thread = threading.Thread(
        target=lambda: found.append(jr.evolve("probe-choice", name="thread", watcher=Mine(), **SMALL))
    )
    thread.start()
    thread.join()
    assert found and found[0].standing == "finished"
    assert logged == [entry.event.type for entry in read_log(Path("runs/thread/events.jsonl"))]


def a_hit(state, action, next_state):
    """Whether the bit was hit."""
    return next_state.hit.astype(jnp.float32)


def the_signal(state):
    return state.signal[None].astype(jnp.float32)


@pytest.mark.slow
def test_a_vocabulary_of_functions_is_that_of_the_run_and_of_the_best_of_n_search_inside():
    """Whose generations are not reported. What lies in the folder of all runs has no part in it."""
    Path("runs").mkdir()
    write_vocabulary(Path("runs"), jr.Vocabulary(constants={"X": "1.0"}))
    seen: list[int] = []
    own = [jr.Fragment(a_hit, scales=(1.0, 0.5, 0.2, 0.1)), jr.Fragment(the_signal)]
    how = {**SMALL, "baselines": ("best-of-n",), "final_seeds": 0}
    run = jr.evolve(Bit(), vocabulary=own, on_generation=lambda g: seen.append(g.index), **how)
    asked = [e.event.generation for e in read_log(run.path / "events.jsonl") if isinstance(e.event, Asked)]
    assert seen == asked == list(range(len(asked)))
    for path in (run.path, run.path / "best-of-n"):
        assert read_vocabulary(path / FILE) == jr.Vocabulary(fragments=tuple(own))
        sources = [e.event.proposal.source for e in read_log(path / "events.jsonl") if isinstance(e.event, Proposed)]
        assert len(sources) >= 2 and all("a_hit(" in text and "the_signal(" in text for text in sources)
    assert jr.evolve(Bit(), vocabulary=own, **how).table()["id"] == run.table()["id"]
    with pytest.raises(jr.UserError, match="began with the vocabulary 2 fragments, .* is now given 1 fragments"):
        jr.evolve(Bit(), vocabulary=own[:1], **how)
    with pytest.raises(jr.UserError, match="'missing' of the vocabulary is rejected"):
        text = "def missing(state, action, next_state):\n    return state.nothing"
        jr.evolve(Bit(), vocabulary=[jr.Fragment(name="missing", kind="term", source=text)], name="other", **how)
    assert not Path("runs/other").exists()
    assert jr.evolve(Bit(), name="usual", **SMALL).path.name == "usual" and not Path("runs/usual", FILE).exists()


def test_a_run_in_which_nothing_was_trained_warns_and_begins_again():
    class Wrong(Scaled):
        def propose(self, request: Any, rng: Any) -> Proposal:
            return Proposal(request_id=request.id, source="def compute_reward(state):\n    return 0\n")

    for _ in range(2):
        with pytest.warns(UserWarning, match="nothing was trained"):
            run = jr.evolve("probe-choice", proposer=Wrong, name="none", **SMALL)
        assert run.best is None and run.standing == "failed" and "failed" in repr(run)
    assert len([e for e in read_log(run.path / "events.jsonl") if isinstance(e.event, RunStarted)]) == 1
    with pytest.raises(jr.UserError, match="no candidate"):
        run.policy()


@pytest.mark.long
def test_a_new_run_is_numbered(monkeypatch):
    (Path("runs") / "probe-choice-limen-0-2").mkdir(parents=True)
    assert jr.evolve("probe-choice", **SMALL).path.name == "probe-choice-limen-0"
    with pytest.raises(ChangedSetting, match="give the same, or give a name=, or resume=False, for a new run"):
        jr.evolve("probe-choice", **{**SMALL, "steps": 512})
    run = jr.evolve("probe-choice", resume=False, **{**SMALL, "steps": 512})
    assert run.path.name == "probe-choice-limen-0-3"


@pytest.mark.parametrize(
    "given, says",
    [
        ({"stepz": 1}, "there is no setting 'stepz'; did you mean 'steps'?"),
        ({"dry_run": True}, "dry_run is for the command line: leave it out, `jaxreward evolve --dry-run` shows what a"),
        ({"zzz": 1}, "there is no setting 'zzz'; `jaxreward evolve --help` lists them"),
        ({"preset": 3}, "there is no preset '3'"),
        ({"ppo": {"lr": 1e-3}}, "did you mean 'ppo.learning_rate'?"),
        ({"llm": {"modle": "x"}}, "did you mean 'llm.model'?"),
        ({"strategy": "lime"}, "there is no strategy 'lime'; did you mean 'limen'?"),
        ({"proposer": "gentic"}, "there is no proposer 'gentic'; did you mean 'genetic'?"),
        ({"task": "probe-chioce"}, "did you mean 'probe-choice'?"),
        ({"preset": "fast"}, "there is no preset 'fast'"),
        ({"option": {"iland": 2}}, "strategy limen has no option 'iland'"),
    ],
)
def test_a_typo_is_answered_with_the_nearest_name(given, says):
    with pytest.raises(UnknownName) as error:
        jr.evolve(**{"task": "probe-choice", **SMALL, **given})
    assert says in str(error.value)
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    "given, says",
    [
        ({"steps": "many"}, "^steps must be a whole number, not 'many'"),
        ({"ppo": {"envs": "x"}}, "^ppo.envs must be a whole number, not 'x'"),
        ({"ppo": 3}, "^ppo must be a PPO, or a dictionary such as {'learning_rate': ...}, not 3"),
        ({"task": ""}, "task is empty: give the name of a task"),
        ({"proposer": lambda a, b: None}, r"^the proposer <lambda> takes \(a, b\) and is called with the TaskCard"),
        ({"proposer": lambda card: None}, "the function <lambda> returns None: let it return a proposer"),
        ({"task": Probe}, "Probe is a class: give an object of it, Probe()"),
        ({"task": None}, "None is no task: give a name, a Python file or an object"),
        ({"task": a_hit}, r"the function a_hit is no task: jr.from_functions\(reset, step"),
        ({"on_generation": 3}, "on_generation is called after every generation: give a function, not 3"),
        ({"watcher": 3}, "int is no watcher yet: it lacks generation, training, proposing, note, logged"),
        ({"strategy": object()}, "object is no strategy yet: it lacks the base class"),
        ({"strategy": Climb(bandit=True)}, "bandit of a strategy is set by the run"),
        ({"strategy": Climb(), "option": {"first": 2}}, "in the object or as option="),
        ({"strategy": Climb(first=cast(Any, []))}, "the option first of Climb cannot be written down"),
        ({"proposer": object()}, "object is no proposer yet: it lacks name"),
        ({"task": Bit(), "task_arg": {"length": 3}}, "task_arg is for a task by its name"),
        ({"name": "a/b"}, "'a/b' cannot be the name of a run"),
        ({"vocabulary": [a_hit]}, "vocabulary is one of auto, own, derived, both, a list of jr.Fragment, or a jr.Voc"),
        ({"vocabulary": []}, "the vocabulary has no fragments"),
        ({"candidates": 0}, "candidates= must be at least 1, not 0"),
        ({"filter_steps": 512}, "filter_steps=512 must be smaller than steps=256"),
        ({"restart": True}, "restart=True trains the short rung apart: give it filter_steps="),
        ({"proposer": "llm"}, "proposer='llm' needs model=: a name of litellm's, e.g. anthropic/"),
        ({"temperature": 0.5}, "temperature= is for proposer='llm'; the genetic proposer has no use for it"),
        ({"baselines": ["dense"]}, "leave dense out of baselines="),
        ({"option": {"islands": "x"}}, r"option=\['islands=x'\]: limen takes"),
    ],
)
def test_what_is_no_such_thing_is_refused_in_a_sentence(given, says):
    with pytest.raises(jr.UserError, match=says) as error:
        jr.evolve(**{"task": "probe-choice", **SMALL, **given})
    assert not Path("runs").exists() and "--" not in str(error.value)


def test_an_own_strategy_needs_an_own_name():
    @dataclass(frozen=True)
    class Limen(Climb):
        name: ClassVar[str] = "limen"

    with pytest.raises(InvalidSetting, match="has the name limen"):
        jr.evolve("probe-choice", strategy=Limen(), **SMALL)


def settings(task: Any = "probe-choice", strategy: Any = "limen", preset: str = "quick", **given: Any) -> Any:
    return search_settings(task, strategy, "genetic", preset, given)[0]


def test_settings_are_those_of_the_preset_for_names_and_objects():
    assert settings(Probe("aim")) == dataclasses.replace(settings("probe-aim"), command=settings(Probe("aim")).command)
    assert settings(Probe("aim")).ppo != settings(Probe("choice")).ppo
    lines = settings("xland-easy", preset="paper-budget", option={"islands": 2})
    assert lines.option == ("initial=1", "islands=2") and lines.candidates == 30
    limen = settings("xland-easy", make_strategy("limen", islands=2), preset="paper-budget")
    assert "islands=2" in limen.option and "initial=8" in limen.option, "an object has its own options"
    ppo = jr.PPO(envs=4)
    assert settings(ppo=ppo).ppo is ppo and settings(ppo={"envs": 4}).ppo == dataclasses.replace(settings().ppo, envs=4)
    assert settings(model="some/model", max_usd=1).llm.max_usd == 1.0 and settings(steps=1e6).steps == 1_000_000
    assert settings(task_arg={"length": 3}).task_arg == ("length=3",)


def test_a_key_in_a_call_is_not_recorded(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", key := "sk-q8Xb71LmZ0")
    assert key not in settings(api_base=f"http://x/{key}").command


def test_an_identity_is_of_class_options_and_source():
    class Bit2(Probe):
        pass

    def identity_of(given: Any) -> str:
        return Identity.of(given).text

    assert identity_of(Bit()) == identity_of(Bit()) != identity_of(Bit(length=2))
    assert identity_of(Bit()).partition(", source ")[2] != identity_of(Bit2("choice")).partition(", source ")[2]
    assert identity_of(Probe("choice")) == "jaxreward.tasks.probe.Probe(kind='choice', length=6, state_notes='')"
    assert identity_of(Climb).startswith(f"{__name__}.Climb, source ")
    assert Objects().identities == {}


class Stops(Scaled):
    """Waits for somebody."""

    name = "stops"

    def propose(self, request: Any, rng: Any) -> Proposal:
        raise ProposerStopped(f"nobody answers: go on with {RESUME}", EndCause.PEOPLE, later=True)


def test_what_stops_a_search_is_told_in_the_words_of_python():
    with pytest.warns(UserWarning, match="nobody answers: go on with the same call$"):
        jr.evolve(Bit(), proposer=Stops, **{**SMALL, "baselines": []})


@pytest.mark.slow
def test_strategies_are_compared_from_python():
    how: dict[str, Any] = {
        "candidates": 2, "generation": 1, "seeds": 1, "steps": 256, "final_seeds": 1, "search_seeds": 1, "ppo": PPO,
        "progress": False, "proposers": [Scaled], "evolve": "reward",
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = jr.compare(Bit(), strategies=[Climb(first=2), "best-of-n"], **how)
    table = found.table()
    assert table["strategy"] == ["climb", "best-of-n", "sparse"] and table["n"][:2] == [1, 1]
    assert set(table["proposer"][:2]) == {"scaled"} and found.missing == {}
    assert "climb" in repr(found) and "<table>" in found._repr_html_()
    assert found.plot("curves.png").stat().st_size > 5000
    runs = found.runs()
    assert [started(run.path).config["option"] for run in runs] == [["first=2"], []]
    assert started(runs[0].path).objects.keys() == {"task", "strategy", "proposer"}
    assert runs[0].policy().deterministic is False
    before = [(run.path / "events.jsonl").read_bytes() for run in runs]
    again = jr.compare(Bit(), strategies=[Climb(first=2), "best-of-n"], **how)
    assert [(run.path / "events.jsonl").read_bytes() for run in runs] == before
    assert repr(again) == repr(found)
    with pytest.warns(UserWarning, match="is not finished: nobody answers: go on with the same call$"):
        stopped = jr.compare(Bit(), strategies=["best-of-n"], **{**how, "proposers": [Stops]})
    assert list(stopped.missing.values()) == ["nobody answers: go on with the same call"]
    with pytest.raises(ChangedSetting):
        jr.compare(Bit(), strategies=[Climb(first=1), "best-of-n"], **how)
    with pytest.raises(jr.UserError, match="another version of probe-choice"):
        jr.compare(Bit(length=7), strategies=[Climb(first=2), "best-of-n"], **how)
    with pytest.raises(UnknownName, match="did you mean 'search_seeds'|there is no setting"):
        jr.compare(Bit(), serch_seeds=1, **how)
    with pytest.raises(InvalidSetting, match="^steps= must not be negative, not -1"):
        jr.compare(Bit(), **{**how, "steps": -1})
    with pytest.raises(InvalidSetting, match=r"search_seeds is the number of searches of each, not \[0, 1\]"):
        jr.compare(Bit(), **{**how, "search_seeds": [0, 1]})
    with pytest.raises(
        InvalidSetting, match=r"ppo is a jaxreward.PPO or SAC, such as PPO\(learning_rate=1e-3\), not \{"
    ):
        jr.train(Bit(), a_hit, cast(Any, {"hidden": [8]}))
    with pytest.raises(InvalidSetting, match="give the class Scaled"):
        jr.compare(Bit(), **{**how, "proposers": [Scaled(None)]})


def test_a_call_is_written_so_that_it_can_be_made_again():
    given = {
        "seeds": [1, 2],
        "ppo": jr.PPO(envs=8, hidden=(3,)),
        "options": {"learner": jr.SAC(warmup=64)},
        "name": "a",
    }
    written = call_text("evolve", given)
    assert written.startswith("jaxreward.evolve(seeds=[1, 2], ppo=jaxreward.PPO(envs=8, hidden=(3,)), options={")
    assert eval(written.removeprefix("jaxreward.evolve").replace("(", "dict(", 1), {"jaxreward": jr}) == given


@pytest.mark.long
def test_the_report_on_a_task_that_was_an_object_says_calls_that_work():
    task = Bit()
    run = jr.evolve(task, name="own", **{**SMALL, "candidates": 1, "final_seeds": 0, "baselines": ()})
    said = commands(RunView.read(run.path))
    assert not any(line.startswith("jaxreward ") for line in said.values()), said
    opened, train = said["Train the winner on ten fresh seeds"].split("\n")
    names = {"jaxreward": jr, "task": task}
    exec(opened, names)
    trained = eval(train.replace("seeds=10", "seeds=1"), names)
    assert trained.seeds == (0,) and trained.ppo == run.ppo and run.ppo.envs == 8 and trained.steps[-1] == 256
    assert eval(said["Run the same search again"], names).path == run.path
    repeated = eval(said["Repeat it from its record, without a model"], names)
    assert best_of(repeated).source == best_of(run).source and repeated.path != run.path
