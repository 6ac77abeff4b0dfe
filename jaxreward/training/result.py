"""What `train` returns: scores with their errors, and feedback by which a program can be improved."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from jaxreward.errors import InvalidSetting
from jaxreward.formatting import count, printable, span
from jaxreward.programs import Program
from jaxreward.records import ALIGNMENT, SUCCESS, Feedback, Measure, Score, TermCurve
from jaxreward.table import Table, escaped
from jaxreward.tasks import Task
from jaxreward.training.association import FEW, association, won_or_lost
from jaxreward.training.history import History
from jaxreward.training.networks import Variables, unpad
from jaxreward.training.notices import notices
from jaxreward.training.policy import Policy
from jaxreward.training.rungs import Standing
from jaxreward.training.sac_hyperparameters import Learner

_TERM_POINTS = 10
_OF_ANY_LEARNER = ("dead_features", "seed_spread", "plateau", "diverged")
_SHOWN = 6
"""Candidates in the short form of a result."""


@dataclass(frozen=True)
class TrainResult:
    """Results of C candidates and S seeds, with P checkpoints.

    Attributes:
        programs: the candidates, in the order given.
        seeds: the training seeds.
        steps: environment steps of a seed at each checkpoint, int (P,).
        success: the task's metric over held-out episodes at the end, float (C, S); at the rung that stopped
            the candidate, if one did; the measure's worst, 0 of a rate, for a seed that diverged.
        success_curve: the same at each checkpoint, (C, S, P), NaN where not reached.
        return_curve: mean undiscounted return of held-out episodes, (C, S, P).
        length_curve: mean length of held-out episodes, (C, S, P).
        diverged: bool (C, S).
        stopped: steps at which a rung stopped the candidate, 0 if none did, int (C,).
        env_steps: environment steps taken in training, all candidates and seeds together.
        eval_steps: the same, of held-out episodes, each until its end.
        compile_s, run_s, wall_s: seconds spent compiling, running, and in all; compiling and
            running overlap where there are several chunks.
        chunks: candidates of each chunk.
        peak_bytes: device memory that the largest chunk needs, as the compiler reports it.
        extra_metrics: names of what the task's metric measures besides its value.
        progress: those of them that say how far an episode came, the earliest stage first.
        subtask_metrics: those of them by which the subtasks of the task's instruction are measured.
        measure: what the value of the task's metric means.
        reasons: why a rung stopped the candidate, "" where none did.
        collector, compilation, population: how experience was collected, see `execution.Execution`.
        task, ppo: what was trained, and how.
        imitation: the method by which agents learned from demonstrations; empty where programs' rewards trained them.
    """

    programs: tuple[Program, ...]
    seeds: tuple[int, ...]
    steps: np.ndarray
    success: np.ndarray
    diverged: np.ndarray
    stopped: np.ndarray
    histories: tuple[History, ...]
    agents: tuple[Variables, ...]
    env_steps: int
    eval_steps: int
    compile_s: float
    run_s: float
    wall_s: float
    chunks: tuple[int, ...]
    peak_bytes: int
    extra_metrics: tuple[str, ...] = ()
    progress: tuple[str, ...] = ()
    subtask_metrics: tuple[str, ...] = ()
    measure: Measure = SUCCESS
    reasons: tuple[str, ...] = ()
    collector: str = ""
    compilation: str = ""
    population: str = ""
    task: Task | None = None
    ppo: Learner | None = None
    imitation: str = ""

    def __repr__(self) -> str:
        table, more = self._shown()
        return "\n".join([self._heading(), repr(table), *more])

    def _repr_html_(self) -> str:
        table, more = self._shown()
        lines = "".join(f"<p>{escaped(line)}</p>" for line in more)
        return f"<div><p>{escaped(self._heading())}</p>{table._repr_html_()}{lines}</div>"

    def _heading(self) -> str:
        task = f" on {self.task.name}" if self.task is not None else ""
        size = f"{_plural(len(self.programs), 'candidate')}, {_plural(len(self.seeds), 'seed')}"
        steps = count(self.steps[-1]) if len(self.steps) else "0"
        seconds = f"{span(self.wall_s)}, of which {span(self.compile_s)} compiling"
        return printable(f"TrainResult{task}: {size}, {steps} steps each; {seconds}")

    def _shown(self) -> tuple[Table, list[str]]:
        """The first rows of the table, and a line for each thing that they leave out."""
        table = self.table()
        hidden = len(table) - _SHOWN
        more = [f"and {_plural(hidden, 'candidate')} more: result.table()"] if hidden > 0 else []
        if self.diverged.any():
            more.append(f"{_plural(int(self.diverged.sum()), 'agent')} diverged")
        if self.stopped.any():
            more.append(f"{_plural(int((self.stopped > 0).sum()), 'candidate')} stopped early")
        return Table(table.columns, table.rows[:_SHOWN]), more

    def table(self) -> Table:
        """The candidates, the best first: position, program, the metric's mean and the standard error of that, steps,
        and the kinds of the notices in their feedback."""
        scores = [self.score(c) for c in range(len(self.programs))]
        order = sorted(range(len(scores)), key=lambda c: -self.measure.oriented(scores[c].mean))
        warnings = [", ".join(notice.kind for notice in self.feedback(c).notices) for c in range(len(scores))]
        steps = [int(at) or int(self.steps[-1]) for at in self.stopped]
        rows = [(c, self.programs[c].name, scores[c].mean, scores[c].se, steps[c], warnings[c]) for c in order]
        return Table(("candidate", "program", self.measure.name, "error", "steps", "warnings"), rows)

    def terms(self, candidate: int) -> Table:
        """The reward terms of one candidate, over its seeds at its last checkpoint: mean, minimum and maximum per
        environment step, and the share of the summed absolute reward over the last tenth of training.

        Raises:
            InvalidSetting: there is no such candidate.
        """
        rows = [(t.name, t.mean[-1], t.minimum[-1], t.maximum[-1], t.share) for t in self.feedback(candidate).terms]
        return Table(("term", "mean", "min", "max", "share"), rows)

    def policy(self, candidate: int, seed: int | None = None, *, deterministic: bool = False) -> Policy:
        """The trained agent, as `policy(state, key) -> action`; see `policy.Policy` for those with a memory.

        Args:
            candidate, seed: positions; by default the seed with the best value.
            deterministic: choose the most likely action in place of drawing one.

        Raises:
            InvalidSetting: there is no such candidate or seed; a result without its task, as of an earlier version.
        """
        candidate = _position("candidate", candidate, len(self.programs))
        if self.task is None or self.ppo is None:
            raise InvalidSetting("this result does not say what task it is of: make a training.Policy", "task")
        seed = self.best_seed(candidate) if seed is None else seed
        variables = self.variables(candidate, seed)
        return Policy(self.task, self.programs[candidate], variables, self.ppo, deterministic)

    def __getattr__(self, name: str) -> Any:
        """Attributes under their names of earlier versions."""
        old = {"told": "extra_metrics", "beside": "extra", "beside_curve": "extra_curve"}
        if name in old:
            return getattr(self, old[name])
        raise AttributeError(f"a TrainResult has no {name!r}")

    @property
    def collection(self) -> str:
        """How experience was collected, in words: `fused`, `fused, fast` or `stepwise`, and `bank` where it was one."""
        fast, bank = self.compilation == "fast", self.population == "bank"
        return ", ".join([self.collector, *["fast"] * fast, *["bank"] * bank])

    def _curve(self, name: str) -> np.ndarray:
        return np.stack([np.moveaxis(getattr(h, name)[:, 0], 0, -1) for h in self.histories])

    @property
    def success_curve(self) -> np.ndarray:
        return self._curve("success")

    @property
    def return_curve(self) -> np.ndarray:
        return self._curve("ret")

    @property
    def length_curve(self) -> np.ndarray:
        return self._curve("length")

    def extra(self, name: str) -> np.ndarray:
        """An extra metric over held-out episodes at the end, (C, S).

        Raises:
            KeyError: a name that is not in `extra_metrics`.
        """
        return np.stack([curve[:, h.last] for curve, h in zip(self.extra_curve(name), self.histories, strict=True)])

    def extra_curve(self, name: str) -> np.ndarray:
        """The same at each checkpoint, (C, S, P), NaN where not reached.

        Raises:
            KeyError: a name that is not in `extra_metrics`.
        """
        if name not in self.extra_metrics:
            raise KeyError(f"there is no extra metric {name!r}; there are: {', '.join(self.extra_metrics) or 'none'}")
        return self._curve("extra")[:, :, self.extra_metrics.index(name)]

    def variables(self, candidate: int, seed: int) -> Variables:
        """The network's variables of one agent, for observations of the program's own size: `params`, and
        `moments` where observations are normalised. `algorithms.network_of(task, ppo).apply` takes them.

        `candidate` and `seed` are positions.

        Raises:
            InvalidSetting: there is no such candidate or seed.
        """
        import jax

        candidate = _position("candidate", candidate, len(self.programs))
        seed = _position("seed", seed, len(self.seeds))
        one = jax.tree.map(lambda x: x[seed], self.agents[candidate])
        return unpad(one, self.programs[candidate].observation_size)

    def extended(self, rows: Sequence[int], more: TrainResult) -> TrainResult:
        """The candidates `rows` with the further seeds of `more`, a training of just these with as much room and the
        same points. Steps and seconds are those of both."""
        import jax

        pairs = list(zip(rows, range(len(more.programs)), strict=True))
        join = partial(jax.tree.map, lambda a, b: np.concatenate([a, b]))
        return replace(
            self,
            programs=more.programs, seeds=(*self.seeds, *more.seeds),
            success=np.concatenate([self.success[list(rows)], more.success], 1),
            diverged=np.concatenate([self.diverged[list(rows)], more.diverged], 1),
            stopped=self.stopped[list(rows)], reasons=tuple(self.reasons[k] for k in rows),
            histories=tuple(History.join([self.histories[k], more.histories[j]], axis=2) for k, j in pairs),
            agents=tuple(join(self.agents[k], more.agents[j]) for k, j in pairs),
            env_steps=self.env_steps + more.env_steps, eval_steps=self.eval_steps + more.eval_steps,
            compile_s=self.compile_s + more.compile_s, run_s=self.run_s + more.run_s, wall_s=self.wall_s + more.wall_s,
        )  # fmt: skip

    def standing(self, rows: Sequence[int]) -> Standing:
        """Where candidates that were trained to the end stand."""
        stages = [self.extra_metrics.index(name) for name in self.progress]
        return Standing.of(self.measure, [self.histories[k] for k in rows], self.steps, 0, stages)

    def best_seed(self, candidate: int) -> int:
        """The position of the seed with the best value, of those that did not diverge if there are any."""
        candidate = _position("candidate", candidate, len(self.programs))
        values = self.success[candidate] * self.measure.oriented(1.0)
        return int(np.where(self.diverged[candidate], -np.inf, values).argmax())

    def score(self, candidate: int) -> Score:
        """The metric with the standard error of the mean over seeds (one seed: over episodes)."""
        candidate = _position("candidate", candidate, len(self.programs))
        values, history = self.success[candidate], self.histories[candidate]
        n = len(values)
        se = float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else float(history.success_se[history.last, 0, 0])
        episodes = int(history.episodes[history.last, 0].sum())
        return Score(mean=float(values.mean()), se=se, n=n, episodes=episodes, measure=self.measure)

    def alignment(self, candidate: int) -> Score | None:
        """How far the agents of a candidate do the subtasks of the task's instruction, 0 to 1, by its metrics: the mean
        over subtasks and held-out episodes, 0 of a seed that diverged. None where not every subtask has a metric.

        The standard error is that of the mean over seeds; of one seed, the largest that its episodes allow.
        """
        candidate = _position("candidate", candidate, len(self.programs))
        if not self.subtask_metrics:
            return None
        found = np.stack([self.extra(name)[candidate] for name in self.subtask_metrics])
        values = np.nan_to_num(found).clip(0.0, 1.0).mean(0) * ~self.diverged[candidate]
        history, n, mean = self.histories[candidate], len(values), float(values.mean())
        episodes = int(history.episodes[history.last, 0].sum())
        se = float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else float(np.sqrt(mean * (1 - mean) / max(1, episodes)))
        return Score(mean=mean, se=se, n=n, episodes=episodes, measure=ALIGNMENT)

    def feedback(self, candidate: int) -> Feedback:
        """Curves, reward terms and warnings of one candidate, averaged over its seeds."""
        candidate = _position("candidate", candidate, len(self.programs))
        program, history = self.programs[candidate], self.histories[candidate]
        last = history.last
        mean = lambda x: tuple(round(float(v), 6) for v in x[: last + 1, 0].mean(-1))  # noqa: E731
        terms, term_steps = _term_curves(program, history, self.steps, last)
        size = program.observation_size
        episodes = history.episodes[last, 0]
        solved = float((history.success[last, 0] * episodes).sum())
        failed, decided = float(episodes.sum()) - solved, won_or_lost(history, last, self.measure)
        related = association(history, last, self.measure)
        seen = history.obs_max[0] - history.obs_min[0]
        diverged = self.diverged[candidate]
        sound = ~diverged if not diverged.all() else slice(None)
        flat = np.isfinite(seen) & (seen <= 1e-8)  # nothing is seen where nothing is played
        fields: dict[str, Any] = {
            "steps": tuple(self.steps[: last + 1].tolist()),
            "success": mean(history.success),
            "episode_return": mean(history.ret),
            "length": mean(history.length),
            "by_seed": tuple(tuple(round(float(v), 4) for v in curve) for curve in history.success[: last + 1, 0].T),
            "seed_success": tuple(self.success[candidate].tolist()),
            "term_steps": term_steps,
            "terms": terms,
            "dead_features": tuple(np.flatnonzero(flat.all(0)).tolist()),
            "entropy": float(history.entropy[last, 0].mean()),
            "value_fit": float(history.value_fit[last, 0].mean()),
            "return_solved": _mean_or_none(history.ret_solved[last, 0]) if decided and solved >= FEW else None,
            "return_failed": _mean_or_none(history.ret_failed[last, 0]) if decided and failed >= FEW else None,
            "return_success_correlation": related and related.correlation,
            "return_success_interval": related and (related.low, related.high),
            "diverged": int(diverged.sum()),
            "measure": self.measure,
            "extra_metrics": {name: float(self.extra(name)[candidate][sound].mean()) for name in self.extra_metrics},
            "alignment": self.alignment(candidate),
            "progress": {
                name: tuple((np.nan_to_num(self.extra(name)[candidate]) * ~diverged).round(4).tolist())
                for name in self.progress
            },
        }
        errors = history.success_se[: last + 1, 0]
        if self.progress and not self.measure.rate:
            fields["episode_error"] = float(np.sqrt((errors[-1] ** 2).mean() / errors.shape[-1]))
        noise = float(np.sqrt(np.nanmean(errors**2) / errors.shape[-1]))
        found = notices(Feedback(**fields), size, noise)
        if self.imitation:  # what a reward does that nobody was paid is nothing to warn of
            found = (notice for notice in found if notice.kind in _OF_ANY_LEARNER)
        return Feedback(**fields, notices=tuple(found))


def _position(what: str, given: Any, count: int) -> int:
    """A position among `count`, which may be counted from the end; raises InvalidSetting where there is none."""
    try:
        index = operator.index(given)
    except TypeError:
        raise InvalidSetting(f"a {what} is given by its position, 0 to {count - 1}, not {given!r}", what) from None
    if not -count <= index < count:
        raise InvalidSetting(f"there is no {what} {index}: give its position, 0 to {count - 1}", what)
    return index


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _mean_or_none(x: np.ndarray) -> float | None:
    known = x[np.isfinite(x)]
    return float(known.mean()) if known.size else None


def _term_curves(
    program: Program, history: History, steps: np.ndarray, last: int
) -> tuple[tuple[TermCurve, ...], tuple[int, ...]]:
    points = np.unique(np.linspace(0, last, min(_TERM_POINTS, last + 1)).round().astype(int))
    late = slice(max(0, last + 1 - max(1, (last + 1) // 10)), last + 1)
    absolute = history.term_abs[late, 0].mean((0, 1))
    total = absolute.sum()
    curves = (
        TermCurve(
            name=name,
            mean=tuple(history.term_mean[points, 0, :, k].mean(-1).tolist()),
            minimum=tuple(history.term_min[points, 0, :, k].min(-1).tolist()),
            maximum=tuple(history.term_max[points, 0, :, k].max(-1).tolist()),
            share=float(absolute[k] / total) if total > 0 else 0.0,
        )
        for k, name in enumerate(program.terms)
    )
    return tuple(curves), tuple(steps[points].tolist())
