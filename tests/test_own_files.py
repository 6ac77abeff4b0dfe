"""Strategies and proposers in Python files of the user's, on the command line and in runs of somebody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxreward.runs import Trained, read_log
from tests.test_cli import outcome

pytestmark = pytest.mark.usefixtures("warm", "unoptimised")

STRATEGY = '''
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from jaxreward.search import Draft, SearchStrategy

Path(__file__).with_name("executed").touch()


@dataclass(frozen=True)
class Climb(SearchStrategy[None]):
    """Changes the best program so far, again and again."""

    name: ClassVar[str] = "climb"
    first: int = 2

    def _validate(self):
        pass

    def _init(self):
        return None

    def _ask(self, state, n, rng):
        if state.best is None or state.counts.trained < self.first:
            return [Draft("scratch")] * n
        return [Draft("improve", parents=(state.best,))] * n

    def _tell(self, state, results):
        return None
'''
PROPOSER = '''
from pathlib import Path

from jaxreward.proposers.proposer import OneByOne
from jaxreward.records import Proposal

Path(__file__).with_name("executed").touch()


class Fixed(OneByOne):
    """One reward with another number each time."""

    name = "fixed"

    def propose(self, request, rng):
        reward = f"def compute_reward(state, action, next_state):\\n    return {rng.random():.6f} * next_state.hit\\n"
        return Proposal(request_id=request.id, source=reward, proposer=self.name)
'''
SMALL = (
    *("--task", "probe-choice", "--candidates", "2", "--generation", "1", "--seeds", "1", "--steps", "256"),
    *("--final-seeds", "0", "--baselines", "--ppo.envs", "8", "--ppo.unroll", "8", "--ppo.minibatches", "2"),
    *("--ppo.hidden", "8", "--name", "run"),
)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("climb.py").write_text(STRATEGY)
    Path("fixed.py").write_text(PROPOSER)
    return tmp_path


def trained() -> list[str]:
    events = [entry.event for entry in read_log(Path("runs/run/events.jsonl"))]
    return [r.candidate.id for e in events if isinstance(e, Trained) for r in e.results]


def test_a_strategy_and_a_proposer_in_files_search(folder, capsys):
    own = ("--strategy", "climb.py", "--proposer", "fixed.py:Fixed", "--option", "first=1")
    status, _, err = outcome(capsys, "evolve", *SMALL, *own)
    assert status == 0, err
    assert len(trained()) == 2
    config = Path("runs/run/config.toml").read_text()
    assert f'strategy = "{folder}/climb.py"' in config and f'proposer = "{folder}/fixed.py:Fixed"' in config
    assert '"first=1"' in config and "improve" in Path("runs/run/events.jsonl").read_text()
    assert Path("runs/run/strategy.py").read_text() == STRATEGY
    assert Path("runs/run/proposer.py").read_text() == PROPOSER


@pytest.mark.long
def test_a_run_with_files_goes_on_where_they_are_named_again(folder, capsys):
    own = ("--strategy", "climb.py", "--proposer", "fixed.py")
    assert outcome(capsys, "evolve", *SMALL, *own)[0] == 0
    Path("executed").unlink()
    on = ("evolve", "--resume", "--name", "run", "--candidates", "3")
    status, _, err = outcome(capsys, *on)
    assert status == 2 and f"say --strategy {folder}/climb.py" in err
    status, _, err = outcome(capsys, *on, "--strategy", "climb.py")
    assert status == 2 and f"say --proposer {folder}/fixed.py" in err
    assert not Path("executed").exists()
    status, _, err = outcome(capsys, *on, *own)
    assert status == 0, err
    assert len(trained()) == 3
    Path("climb.py").write_text(STRATEGY + "\n# changed\n")
    status, _, err = outcome(capsys, "evolve", "--resume", "--name", "run", *own)
    assert status == 2 and "climb.py has changed since" in err and "say --strategy runs/run/strategy.py" in err


@pytest.mark.parametrize(
    "argv",
    [
        ("evolve", "--resume", "--name", "run", "--dry-run"),
        ("evolve", "--config", "runs/run/config.toml", "--dry-run"),
        ("evolve", "--proposer", "replay", "--recording", "runs/run", "--dry-run"),
        ("prompt", "show", "--run", "runs/run"),
        ("runs", "show", "run"),
        ("report", "run"),
    ],
    ids=" ".join,
)
def test_no_command_executes_the_files_of_a_run_unasked(argv, folder, capsys):
    assert outcome(capsys, "evolve", *SMALL, "--strategy", "climb.py", "--proposer", "fixed.py")[0] == 0
    import jaxreward.proposers.registry as proposers
    import jaxreward.search.registry as strategies

    strategies._own.clear()  # another process
    proposers._of_files.clear()
    for name in ("climb.py", "fixed.py"):
        Path(name).write_text(Path(name).read_text() + "\n")  # it would be imported again
    Path("executed").unlink()
    status, _, err = outcome(capsys, *argv)
    assert not Path("executed").exists()
    assert status == (0 if argv[0] in ("runs", "report") else 2), err
    assert status == 0 or "look at it first" in err


def test_the_options_of_a_strategy_in_a_file_are_listed_and_checked(folder, capsys):
    status, out, _ = outcome(capsys, "strategies", "climb.py")
    assert status == 0 and "climb.py: evolves both by default" in out and "first  2" in out
    status, _, err = outcome(capsys, "evolve", *SMALL, "--strategy", "climb.py", "--option", "frist=1")
    assert status == 2 and "did you mean 'first'?" in err
    status, _, err = outcome(capsys, "evolve", *SMALL, "--strategy", "climb.py", "--option", "first=x")
    assert status == 2 and "a whole number" in err


@pytest.mark.parametrize(
    "option, text, says",
    [
        ("strategy", STRATEGY.replace("_tell", "_told"), "Climb lacks _tell"),
        ("strategy", STRATEGY.replace('    name: ClassVar[str] = "climb"\n', ""), "Climb lacks name"),
        ("strategy", STRATEGY.replace("@dataclass(frozen=True)\n", ""), "the decorator @dataclass(frozen=True)"),
        ("strategy", "x = 1 / 0", "ZeroDivisionError: division by zero (own.py, line 1)"),
        ("strategy", "x = 1", "has no class that is a strategy (see docs/search.md)"),
        ("strategy", STRATEGY + STRATEGY.replace("Climb", "Other"), "several strategies: name one"),
        ("proposer", PROPOSER.replace("def propose(", "def suggest("), "Fixed lacks propose"),
        (
            "proposer",
            "class Mine:\n    name = 'x'\n",
            "Mine lacks propose_all, the base class jaxreward.proposers.proposer.Proposer",
        ),
    ],
)
def test_a_file_without_such_a_class_is_refused_with_what_it_lacks(option, text, says, folder, capsys):
    Path("own.py").write_text(text)
    status, _, err = outcome(capsys, "evolve", *SMALL, f"--{option}", "own.py")
    assert status == 2 and says in err and err.count("\n") == 1
    assert not Path("runs").exists()


def test_a_proposer_that_cannot_be_made_is_reported_with_its_line(folder, capsys):
    Path("fixed.py").write_text(PROPOSER + "\n    def __init__(self, card):\n        raise ValueError(card.name)\n")
    status, _, err = outcome(capsys, "evolve", *SMALL, "--proposer", "fixed.py")
    assert status == 2 and "ValueError: probe-choice (fixed.py, line 20)" in err
