"""What a search shows of itself while it runs, on a terminal and in a log."""

from __future__ import annotations

import io
import sys
import threading
import types
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from rich.console import Console

from jaxreward.records import SUCCESS, Measure
from jaxreward.reports import notebook
from jaxreward.reports.live import QUIET_S, Live
from jaxreward.reports.status import states
from jaxreward.runs import Entry, Progress, Trained, advance
from tests.reports import example


@dataclass(frozen=True)
class Training:
    """As `jaxreward.training.Progress`, which takes seconds to import."""

    steps: int
    total: int
    phase: str = "train"
    chunk: int = 0
    chunks: int = 1
    success: dict[int, float] = field(default_factory=dict)
    measure: Measure = SUCCESS


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Watched:
    """A `Live` and the run that it follows; time stands still unless it is moved."""

    def __init__(self, width: int, terminal: bool = True) -> None:
        self.clock, self.out = Clock(), io.StringIO()
        console = Console(file=self.out, width=width, force_terminal=terminal, soft_wrap=True, markup=False,
                          highlight=False, legacy_windows=False)  # fmt: skip
        self.live = Live(console, candidates=6, clock=self.clock)
        self.progress: Progress[Any] = Progress(None)

    def logged(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.progress = advance(self.progress, entry.event, lambda state, _: state)
            self.clock.now += 10.0
            self.live.logged(entry, self.progress)

    @property
    def drawn(self) -> list[str]:
        return self.live._draw().plain.splitlines()


WHOLE = example.entries(example.events())


@pytest.mark.parametrize(
    "until, expected",
    [
        (2, {"waiting for a proposal": 4}), (4, {"waiting for a proposal": 2, "being checked": 2}),
        (6, {"being checked": 4}),
        (10, {"training": 2, "failed": 1, "duplicate": 1}), (11, {"scored": 1, "failed": 2, "duplicate": 1}),
    ],
)  # fmt: skip
def test_every_candidate_is_in_one_state(until: int, expected: dict[str, int]):
    watched = Watched(100)
    watched.logged(WHOLE[:until])
    assert watched.progress.open is not None and states(watched.progress.open) == expected


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal_whatever_goes_on(width: int):
    """Else the terminal breaks it, and what should be replaced stays."""
    watched = Watched(width)
    for entry in WHOLE:
        watched.logged([entry])
        watched.live.proposing("12/16 replies, $0.4213; waiting for provider/some-model-with-a-long-name until 12:34")
        assert max(map(len, watched.drawn), default=0) <= width and len(watched.drawn) <= 6
        watched.live.training("cell 3 of 12, generation 1 (contenders)", Training(123_456, 2_000_000, chunks=12))
        assert max(map(len, watched.drawn)) <= width and len(watched.drawn) <= 6


def test_a_terminal_shows_where_the_search_stands():
    watched = Watched(100)
    watched.logged(WHOLE[:12])
    watched.logged(WHOLE[12:21])
    watched.live.training("generation 1", Training(0, 4000, "compile"))
    watched.clock.now += 30.0
    assert watched.drawn[0] == "generation 1: 2 training, 1 failed, 1 duplicate"
    assert watched.drawn[1] == "2 of 6 candidates trained, best 0.400 (0.273 to 0.527) g0000-00"
    assert watched.drawn[2].endswith("0% compiling for 30 s")
    watched.live.training("generation 1", Training(1000, 4000, success={0: 0.5}))
    watched.clock.now += 10.0
    watched.live.training("generation 1", Training(2000, 4000, success={0: 0.3, 1: 0.7}))
    assert watched.drawn[2].endswith("50% 2.00k of 4.00k steps, 100 steps/s, 20 s left, best 0.70")
    # 240 s for 2 candidates and two halves: 3 more take 240 s. Of 10 s of training 7.5 s were compiled, and 3,000 steps
    # came in the rest: 6,000 steps of the final training take 12.5 s.
    assert watched.drawn[3].startswith("4.0 min so far, about 4.2 min left, 40% proposing, 40% checking, 4% compiling")
    assert watched.drawn[4] == "$0.40, 8,000 tokens, 8 requests"
    watched.logged(WHOLE[21:23])
    assert "left" in watched.drawn[1], "the final training is still to come"
    watched.logged(WHOLE[23:])
    assert not any(" left" in line for line in watched.drawn)
    assert [line for line in watched.drawn if "training" in line or "generation 1" in line] == [watched.drawn[1]]


def test_what_the_trainer_reports_is_all_there_is_of_a_training_alone():
    watched = Watched(80)
    watched.live.training("training", Training(1000, 4000, success={0: 0.5}))
    assert watched.drawn[0] == "training" and "25%" in watched.drawn[1] and len(watched.drawn) == 2


def test_the_best_is_the_least_where_less_is_better_and_small_distances_keep_their_digits():
    watched, miss = Watched(100), Measure(name="miss", unit="m", rate=False, higher_is_better=False, worst=1.0)
    watched.live.training("training", Training(1, 2, success={0: 0.5, 1: 0.012}, measure=miss))
    assert "best 0.012" in watched.drawn[1]


def test_what_trained_before_a_search_began_is_forgotten():
    """In a comparison: the task's own interface, then a search."""
    watched = Watched(80)
    watched.live.training("sparse", Training(4000, 4000))
    watched.logged(WHOLE[:2])
    assert watched.drawn[:3] == [
        "generation 0: 4 waiting for a proposal",
        "0 of 6 candidates trained",
        "asking the proposer",
    ]


def test_a_run_that_is_taken_up_knows_what_was_before():
    """Its budget is what is left, its speed that of this process, its best that of all."""
    watched = Watched(120)
    for entry in WHOLE[:12]:
        watched.progress = advance(watched.progress, entry.event, lambda state, _: state)
    watched.logged(WHOLE[12:13])
    assert watched.drawn[1].startswith("2 of 6 candidates trained, best 0.400")
    assert watched.drawn[-2] == "0.0 s so far" or watched.drawn[-2].startswith("0 s so far")


def test_a_log_gets_a_line_a_minute_at_most_and_no_escape_codes():
    watched = Watched(80, terminal=False)
    watched.logged(WHOLE[:10])
    said: list[int] = []
    for k in range(30):
        watched.live.training("generation 0", Training(100 * k, 4000))
        watched.clock.now += 7.0
        watched.live.beat()
        said.append(len(watched.out.getvalue().splitlines()))
    times = [7.0 * k for k in range(1, 30) if said[k] > said[k - 1]]
    assert len(times) == 3 and all(later - sooner >= QUIET_S for sooner, later in pairwise(times))
    assert "\x1b" not in watched.out.getvalue()
    line = watched.out.getvalue().splitlines()[1]
    assert line.startswith("generation 0: 900 of 4.00k steps, 14 steps/s, 3.5 min left; 2.7 min so far")


def test_nothing_is_said_of_what_has_ended():
    watched = Watched(80, terminal=False)
    watched.logged(WHOLE)
    watched.clock.now += 3600.0
    watched.live.beat()
    assert watched.out.getvalue() == ""


def test_a_generation_has_a_line_of_its_own():
    watched = Watched(80, terminal=False)
    watched.logged(WHOLE[:11])
    assert watched.progress.open is not None
    results = watched.progress.open.results()
    watched.live.generation(0, results, results[0], watched.progress.spent)
    assert watched.out.getvalue() == (
        "generation 0: 1 trained, success 0.40; without a score: duplicate, filtered, trace; best so far "
        "0.400 (0.273 to 0.527), g0000-00; 2/6 candidates, 8 device s; $0.20, 4,000 tokens, 4 requests\n"
    )


def test_a_terminal_is_left_clean():
    """The lines replace themselves, notes stay above them, and nothing remains at the end."""
    watched = Watched(80)
    with watched.live as live:
        watched.logged(WHOLE[:10])
        live.note("a note")
        live.training("generation 0", Training(1000, 4000))
    text = watched.out.getvalue()
    assert "a note\n" in text and text.rstrip().endswith("\x1b[2K") and "\x1b[?25h" in text


def test_live_output_pauses_while_the_terminal_asks_for_votes():
    watched = Watched(80)
    config = {"judge": "terminal", **example.CONFIG}
    started, asked = example.events(config)[:2]
    votes = asked.model_copy(update={"requests": (asked.requests[0].model_copy(update={"operator": "prefer"}),)})  # type: ignore[union-attr]
    with watched.live as live:
        assert live._screen is not None
        watched.logged(example.entries([started, votes]))
        assert not live._screen.is_started


def test_times_are_shared_between_compiling_and_training_as_the_devices_were():
    watched = Watched(120)
    watched.logged(entry for entry in WHOLE if entry.seq < 12)
    trained = next(e.event for e in WHOLE if isinstance(e.event, Trained))
    assert trained.compile_s == 3 * trained.run_s
    assert "36% proposing, 36% checking, 7% compiling, 2% training" in watched.drawn[-2]


def test_a_notebook_shows_lines_that_are_redrawn_and_taken_away(monkeypatch):
    shown: list[str] = []

    class Handle:
        def update(self, value: Any) -> None:
            shown.append(value._repr_html_())

    def display(value: Any, **how: Any) -> Handle | None:
        shown.append(value._repr_html_())
        return Handle() if how == {"display_id": True} else None

    monkeypatch.setattr(notebook, "_EVERY_S", 0.0)
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(display=sys.modules["IPython.display"]))
    live = Live(Console(file=io.StringIO(), force_jupyter=True), candidates=6)
    live.proposing("asks <b>")
    with live:
        deadline = threading.Event()
        while len(shown) < 3 and not deadline.wait(0.01):
            pass
    assert shown[0] == shown[1] and shown[0].startswith("<pre>") and "asks &lt;b&gt;" in shown[0]
    assert shown[-1] == "", "it is taken away at the end"
