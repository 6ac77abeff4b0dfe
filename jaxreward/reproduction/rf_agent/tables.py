"""RF-Agent's tables 1, 6 and 7: searches for rewards on robots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from jaxreward.records.measure import normalised
from jaxreward.reproduction.cell import Budget, Cell, Plan
from jaxreward.reproduction.entry import Entry, Results
from jaxreward.reproduction.layout import Figure, Measured, Published, ResultTable, Row
from jaxreward.reproduction.rf_agent.published import TABLE_1, TABLE_6, TABLE_7, Scores
from jaxreward.reproduction.searches import OwnInterfaces, TrainedSearch, fresh_score, task_of
from jaxreward.tasks import measure_of

STRATEGIES = {"eureka": "eureka", "revolve": "revolve", "rf_agent": "rf-agent"}
TITLES = {"sparse": "sparse", "human": "person", "eureka": "Eureka", "revolve": "REvolve", "rf_agent": "RF-Agent"}
FRESH = 5
"""Seeds of the final training, as in the paper (section 5.3)."""
CANDIDATES = 30
"""Of a search by default; the paper has 80."""


def searches(part: str, strategy: str, plan: Plan, option: str = "") -> list[TrainedSearch]:
    return [TrainedSearch(part, strategy, "reward", seed, option, FRESH) for seed in range(plan.budget.seeds)]


class RFAgentEntry(Entry):
    """A table of methods by task."""

    budget: ClassVar[Budget] = Budget(seeds=1, steps=0, candidates=CANDIDATES)
    folder: ClassVar[str] = "rf-agent"
    published: ClassVar[Mapping[str, Scores]]

    def cells(self, plan: Plan) -> Sequence[Cell]:
        return [cell for part in plan.parts for cell in self._of(part, plan)]

    def _of(self, part: str, plan: Plan) -> list[Cell]:
        found = [cell for strategy in STRATEGIES.values() for cell in searches(part, strategy, plan)]
        return [OwnInterfaces(part, FRESH), *found]

    def tables(self, plan: Plan, results: Results) -> Sequence[ResultTable]:
        methods = [m for m in TITLES if m != "human" or any(s.human for s in self.published.values())]
        columns = ("task", *(c for m in methods for c in (TITLES[m], f"{TITLES[m]}, paper")))
        rows = [
            Row(_named(part), tuple(f for m in methods for f in (_ours(part, m, plan, results), self._paper(part, m))))
            for part in plan.parts
        ]
        return [ResultTable("Scores on five fresh seeds", columns, tuple(rows), _notes(plan))]

    def _paper(self, part: str, method: str) -> Published | None:
        return getattr(self.published[part], method)


class Table1(RFAgentEntry):
    """Five of its seven tasks."""

    name: ClassVar[str] = "rf-agent/table1"
    summary: ClassVar[str] = "rewards by Eureka, REvolve and RF-Agent on five robots, beside a person's"
    parts: ClassVar[tuple[str, ...]] = tuple(TABLE_1)
    published: ClassVar[Mapping[str, Scores]] = TABLE_1

    def tables(self, plan: Plan, results: Results) -> Sequence[ResultTable]:
        columns = ("task", *(c for m in STRATEGIES for c in (TITLES[m], f"{TITLES[m]}, paper")))
        rows = [
            Row(_named(part), tuple(f for m in STRATEGIES for f in self._normalised(part, m, plan, results)))
            for part in plan.parts
        ]
        note = "(method - sparse) / (person - sparse), of means, each in its own units."
        return [*super().tables(plan, results), ResultTable("Human-normalised scores", columns, tuple(rows), (note,))]

    def _normalised(self, part: str, method: str, plan: Plan, results: Results) -> tuple[Figure, Figure]:
        measure = measure_of(task_of(part))
        found, sparse, human = (_ours(part, m, plan, results) for m in (method, "sparse", "human"))
        own = None
        if isinstance(found, Measured) and isinstance(sparse, Measured) and isinstance(human, Measured):
            own = normalised(*(measure.oriented(x.mean) for x in (found, sparse, human)))
        of, low, high = (self._paper(part, m) for m in (method, "sparse", "human"))
        assert of is not None and low is not None and high is not None
        paper = normalised(of.value, low.value, high.value)
        return (
            None if own is None else Measured(own, None, 1, rate=False),
            None if paper is None else Published(paper),
        )


class Table6(RFAgentEntry):
    """New tasks of the ant."""

    name: ClassVar[str] = "rf-agent/table6"
    summary: ClassVar[str] = "the same on two new tasks of the ant"
    parts: ClassVar[tuple[str, ...]] = tuple(TABLE_6)
    published: ClassVar[Mapping[str, Scores]] = TABLE_6


class Table7(Entry):
    """Combinations of the actions of an expansion, on the ant."""

    name: ClassVar[str] = "rf-agent/table7"
    summary: ClassVar[str] = "RF-Agent's actions in combinations, on the ant"
    budget: ClassVar[Budget] = Budget(seeds=1, steps=0, candidates=CANDIDATES)
    parts: ClassVar[tuple[str, ...]] = tuple(TABLE_7)
    folder: ClassVar[str] = "rf-agent"

    def cells(self, plan: Plan) -> Sequence[Cell]:
        return [cell for part in plan.parts for cell in self._of(part, plan)]

    def _of(self, combination: str, plan: Plan) -> list[TrainedSearch]:
        counts = ",".join(map(str, TABLE_7[combination].counts))
        return searches("ant, speed", "rf-agent", plan, "" if combination == "all" else f"counts={counts}")

    def tables(self, plan: Plan, results: Results) -> Sequence[ResultTable]:
        whole = TABLE_7["all"].ant
        best = fresh_score(results, self._of("all", plan))
        rows = []
        for part in plan.parts:
            found, paper = fresh_score(results, self._of(part, plan)), TABLE_7[part].ant
            share = found and best and best.mean > 0 and Measured(found.mean / best.mean, None, 1)
            rows.append(Row(part, (found, Published(paper), share or None, Published(paper / whole))))
        columns = ("actions", "speed", "paper", "share of all actions", "paper's share")
        return [ResultTable("Mean speed of the ant on five fresh seeds", columns, tuple(rows), _notes(plan))]


def _ours(part: str, method: str, plan: Plan, results: Results) -> Figure:
    if method in STRATEGIES:
        return fresh_score(results, searches(part, STRATEGIES[method], plan))
    return fresh_score(results, [OwnInterfaces(part, FRESH)], {"human": "dense"}.get(method, method))


def _named(part: str) -> str:
    """A part with the metric of its task."""
    return f"{part} ({measure_of(task_of(part)).label})"


def _notes(plan: Plan) -> tuple[str, ...]:
    return (
        f"Here: {plan.budget.seeds} search(es) of {plan.candidates} candidates, {plan.proposer} proposer, the learner "
        "and steps of the preset quick, on models of our own; scores at the end of training. The paper: 80 samples by "
        "GPT-4o-mini, Isaac Gym, the best of each policy's checkpoints, in its units; of the quadcopter minus the "
        "distance. Intervals of 95 %: of one search "
        "over fresh training seeds, of several over searches.",
    )
