"""GRACE: evolution of rewards that tell an expert's states from others (Sapora et al. 2026, section 4)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from jaxreward.records import ACCURACY, Evolve, ExampleChoice, Result
from jaxreward.search.draft import Draft
from jaxreward.search.selection import merit, scored, softmax, top, without
from jaxreward.search.strategy import SearchStrategy, State, was_trained
from jaxreward.search.strategy_options import invalid, require_choice, require_integer, require_number, require_share

Replacement = Literal["top", "elite"]


@dataclass(frozen=True)
class Watched:
    """A reward whose policy expanded the data, and the id of the request for it."""

    expansion: str
    reward: Result


@dataclass(frozen=True)
class GraceMemory:
    """The `population`, best first, and how many children were told since the last of the `expansions` of the data;
    after one the programs of before are `stale`, until they are scored again. `reserve` holds programs outside of the
    population, which then have another chance. `trained` are all new programs so far;
    `watched` those whose policies expanded the data, `confirmations` times after the last round."""

    population: tuple[Result, ...] = ()
    reserve: tuple[Result, ...] = ()
    children: int = 0
    expansions: int = 0
    stale: tuple[Result, ...] = ()
    trained: int = 0
    confirmations: int = 0
    watched: tuple[Watched, ...] = ()

    def knows(self, reward: Result) -> bool:
        """Whether the data hold episodes of its policy."""
        return any(watched.reward.candidate.source == reward.candidate.source for watched in self.watched)


@dataclass(frozen=True)
class Grace(SearchStrategy[GraceMemory]):
    """A population of rewards, of which parents are drawn by softmax of their fitness (Algorithm 1).

    The first `population` candidates start from scratch. Then every candidate is a parent changed in view of states
    that it scores wrongly, the parent drawn with probability proportional to exp(fitness / `temperature`). With
    `replacement="top"` the best of old and new stay (Algorithm 1); with `"elite"` the `elite` best of the old ones stay
    and the best of the new take the other places (Table 6). A request shows a whole trajectory of the expert with
    chance `trajectory_chance`, only states with wrong rewards with chance `wrong_chance`, and only states of the expert
    with chance `expert_chance` (Table 6).

    A round is `generations` times as many children as the population has members. After each of the first `expansions`
    rounds the best reward trains a policy, whose trajectories join the negative ones (phase 3), and the population is
    scored again, with up to `reserve` others, first the best of every other set of terms; the round after it is left
    out where the best still tells apart a share of at least `enough` of all pairs of an expert state and another.
    The last `shaping_generations` of the last round ask for rewards that grow along the expert's trajectories. With
    `generations` 0 the rounds share the budget equally, those from scratch included, of which there are then no more
    than three in five of the first round; no round is left out, and only budgets end the last.

    After the last round the data are expanded once more, as in Algorithm 1, with the best reward; and again, at most
    `confirmations` times in all, until the best on all data is a reward whose own policy they hold: a reward that tells
    all states apart that anyone has seen may still pay for one that only its own policy finds. With `expansions` 0
    nothing is confirmed. Where all states of the expert's episodes are to be told from others, that would never end: a
    policy that does what the expert does can not be told from it, and rewards that try are poor. There the result is
    the reward whose policy is nearest to the expert: the highest fitness that any reward has on the episodes of both is
    the least (Abbeel and Ng 2004, "Apprenticeship learning via inverse reinforcement learning", section 3).
    """

    name: ClassVar[str] = "grace"
    ablates: ClassVar[bool] = False
    confirms: ClassVar[bool] = False
    natural: ClassVar[Evolve] = "reward"
    population: int = 20
    elite: int = 4
    replacement: Replacement = "top"
    temperature: float = 1.0
    generations: int = 0
    expansions: int = 0
    confirmations: int = 3
    reserve: int = 80
    enough: float = 1.0
    shaping_generations: int = 0
    trajectory_chance: float = 0.25
    wrong_chance: float = 0.5
    expert_chance: float = 0.75
    show_failures: int = 2

    def _validate(self) -> None:
        require_integer(self.name, "population", self.population, 1)
        for name in (
            "elite",
            "generations",
            "expansions",
            "confirmations",
            "reserve",
            "shaping_generations",
            "show_failures",
        ):
            require_integer(self.name, name, getattr(self, name), 0)
        for name in ("enough", "trajectory_chance", "wrong_chance", "expert_chance"):
            require_share(self.name, name, getattr(self, name))
        require_number(self.name, "temperature", self.temperature, above=True)
        require_choice(self.name, "replacement", self.replacement, get_args(Replacement))
        if self.replacement == "elite" and self.elite > self.population:
            raise invalid(self.name, "elite", self.elite, f"give at most the population, {self.population}.")
        if self.shaping_generations and not self.generations:
            remedy = "the last generations must be known: give generations too."
            raise invalid(self.name, "shaping_generations", self.shaping_generations, remedy)
        if self.shaping_generations > self.generations:
            remedy = f"give at most generations, {self.generations}."
            raise invalid(self.name, "shaping_generations", self.shaping_generations, remedy)

    def _init(self) -> GraceMemory:
        return GraceMemory()

    def _ask(self, state: State[GraceMemory], n: int, rng: np.random.Generator) -> list[Draft]:
        memory = state.memory
        if memory.stale:
            return [Draft("keep", parents=(member,)) for member in memory.stale]
        if self._expands(state) or self._confirms(state):
            return [Draft("expand", parents=memory.population[:1])]
        failures = state.failures[: self.show_failures]
        in_round = memory.expansions < self.expansions and self._paced and "expand" not in state.declined
        if not memory.population or state.counts.trained < self._founders:
            if in_round and not self.generations:
                n = min(n, max(1, self._founders - state.counts.trained))
            return [Draft("scratch", failures=failures)] * n
        if in_round:
            n = min(n, self._round(memory) - memory.children)  # a generation ends with its round
        return [self._child(memory, failures, rng) for _ in range(n)]

    def _child(self, memory: GraceMemory, failures: tuple[Result, ...], rng: np.random.Generator) -> Draft:
        fitness = np.asarray([scored(member).merit for member in memory.population])
        parent = memory.population[int(rng.choice(len(fitness), p=softmax(fitness / self.temperature)))]
        if self._shapes(memory):
            return Draft("shape", parents=(parent,), examples=ExampleChoice(trajectory=True), failures=failures)
        chances = (self.trajectory_chance, self.wrong_chance, self.expert_chance)
        trajectory, wrong, expert = (bool(rng.random() < chance) for chance in chances)
        choice = ExampleChoice(trajectory=trajectory, only_wrong=wrong, only_expert=expert)
        return Draft("improve", parents=(parent,), examples=choice, failures=failures)

    def _tell(self, state: State[GraceMemory], results: tuple[Result, ...]) -> GraceMemory:
        memory = state.memory
        if memory.stale:
            return self._rescored(memory, results)
        new = tuple(result for result in results if result.score is not None)
        population = self._selected(memory.population, new)
        reserve = self._reserved((*memory.reserve, *memory.population, *new), population)
        children = memory.children + sum(bool(result.candidate.parents) for result in results)
        trained = memory.trained + sum(map(was_trained, results))
        return replace(memory, population=population, reserve=reserve, children=children, trained=trained)

    def _selected(self, old: tuple[Result, ...], new: tuple[Result, ...]) -> tuple[Result, ...]:
        if self.replacement == "top" or len(old) < self.population:
            return top((*old, *new), self.population)
        elite = top(old, self.elite)
        joined = top(new, self.population - len(elite))
        rest = top(without(old, elite), self.population - len(elite) - len(joined))
        return top((*elite, *joined, *rest), self.population)

    def _reserved(self, known: tuple[Result, ...], population: tuple[Result, ...]) -> tuple[Result, ...]:
        """Of the programs outside of the population the best of every set of terms that it lacks, then the best."""
        if not self.expansions:
            return ()
        outside = without(top(known, len(known)), population)
        seen, first = {frozenset(_terms(member)) for member in population}, list[Result]()
        for result in outside:
            if (terms := frozenset(_terms(result))) not in seen:
                seen.add(terms)
                first.append(result)
        return top(
            (*first[: self.reserve], *without(outside, first)[: max(0, self.reserve - len(first))]), self.reserve
        )

    def _rescored(self, memory: GraceMemory, results: tuple[Result, ...]) -> GraceMemory:
        """`results` are of programs that waited, on the data as they are now."""
        asked = {parent for result in results for parent in result.candidate.parents}
        stale = tuple(member for member in memory.stale if member.candidate.id not in asked)
        scored_again = tuple(result for result in results if result.score is not None)
        population = top((*memory.population, *scored_again), self.population)
        reserve = self._reserved((*memory.reserve, *memory.population, *scored_again), population)
        now = {result.candidate.source: result for result in scored_again}
        watched = tuple(replace(w, reward=now.get(w.reward.candidate.source, w.reward)) for w in memory.watched)
        good = not stale and bool(population) and _accuracy(population[0]) >= self.enough
        skipped = bool(memory.confirmations) or good
        children = self._round(memory) if skipped and self.generations else 0
        return replace(memory, population=population, reserve=reserve, stale=stale, children=children, watched=watched)

    def _tell_words(self, state: State[GraceMemory], results: tuple[Result, ...]) -> GraceMemory:
        """The data were expanded, so that no score is of them; or they could not be, and all stays as it is."""
        old = state.memory
        if self._confirms(state):
            memory = replace(old, confirmations=old.confirmations + 1)
        else:
            memory = replace(old, children=0, expansions=old.expansions + 1)
        expanded = [result for result in results if result.words]
        if expanded:
            watched = (*old.watched, Watched(expanded[0].candidate.id, old.population[0]))
            known = (*old.population, *old.reserve)
            sources = {result.candidate.source for result in known}
            # Those whose policies were seen may be the result, whatever new data made of them.
            dropped = {w.reward.candidate.source: w.reward for w in watched if w.reward.candidate.source not in sources}
            stale = (*known, *dropped.values())
            memory = replace(memory, population=(), reserve=(), stale=stale, watched=watched)
        return memory

    def finished(self, state: State[GraceMemory]) -> str:
        memory = state.memory
        if not self.generations or memory.children < self._round(memory) or self._expands(state):
            return ""
        if self.unsettled(state):
            return ""
        return f"the strategy's {self.generations} generations are complete"

    def unsettled(self, state: State[GraceMemory]) -> bool:
        return self.rescoring(state) or self._confirms(state)

    def rescoring(self, state: State[GraceMemory]) -> bool:
        return bool(state.memory.stale)

    def account(self, before: State[GraceMemory], after: State[GraceMemory]) -> dict[str, Any]:
        memory = after.memory
        return {
            "members": len(memory.population),
            "fitness": [scored(member).mean for member in memory.population],
            "children": memory.children,
            "expansions": memory.expansions,
            "confirmations": memory.confirmations,
        }

    @property
    def _paced(self) -> bool:
        """Whether rounds have an end: they are counted in generations, or share a budget that is known."""
        return self.generations > 0 or self.budget > 0

    def _round(self, memory: GraceMemory) -> int:
        """Children of the current round."""
        if self.generations:
            return self.generations * self.population
        return self._share if memory.expansions else max(0, self._share - self._founders)

    @property
    def _share(self) -> int:
        """Candidates of a round, where the rounds share the budget."""
        return -(-self.budget // (1 + self.expansions))

    @property
    def _founders(self) -> int:
        """Candidates that start from scratch, of a shared budget no more than three in five of the first round."""
        shared = self.expansions > 0 and not self.generations and self.budget > 0
        return min(self.population, -(-3 * self._share // 5)) if shared else self.population

    def _expands(self, state: State[GraceMemory]) -> bool:
        memory = state.memory
        founded = bool(memory.population) and state.counts.trained >= self._founders
        due = self._paced and founded and memory.children >= self._round(memory)
        return due and memory.expansions < self.expansions and "expand" not in state.declined

    def _confirms(self, state: State[GraceMemory]) -> bool:
        """Whether the best is a reward whose policy nobody has seen, where no round follows."""
        memory = state.memory
        if not self.expansions or memory.confirmations >= self.confirmations or "expand" in state.declined:
            return False
        return self._is_over(memory) and bool(memory.population) and not memory.knows(memory.population[0])

    def _is_over(self, memory: GraceMemory) -> bool:
        """Whether no round follows."""
        if self.generations:
            return memory.expansions >= self.expansions and memory.children >= self._round(memory)
        return 0 < self.budget <= memory.trained

    def _shapes(self, memory: GraceMemory) -> bool:
        first = (self.generations - self.shaping_generations) * self.population
        last = memory.expansions >= self.expansions
        return last and self.shaping_generations > 0 and memory.children >= first

    def _best(self, state: State[GraceMemory]) -> Result | None:
        """The best of the population: scores of before an expansion are of other data. In the end the reward whose
        policy is nearest to the expert, where that is known."""
        memory = state.memory
        if self._is_over(memory) and not self.unsettled(state) and (nearest := _nearest(memory)) is not None:
            return nearest
        known = memory.population or memory.stale
        return max(known, key=merit) if known else state.best


def _nearest(memory: GraceMemory) -> Result | None:
    """Of the rewards whose policies were seen the one whose policies, on average, all known rewards tell least from the
    expert (as Abbeel and Ng 2004 choose among policies); None where that is not known."""
    known = (*memory.population, *memory.reserve, *(watched.reward for watched in memory.watched))
    margins, rewards = dict[str, list[float]](), dict[str, Result]()
    for watched in memory.watched:
        told = [r.feedback.told_apart.get(watched.expansion, -np.inf) for r in known if r.feedback is not None]
        if np.isfinite(margin := max(told, default=-np.inf)):
            source = watched.reward.candidate.source
            margins.setdefault(source, []).append(margin)
            rewards[source] = watched.reward
    return rewards[min(margins, key=lambda source: float(np.mean(margins[source])))] if margins else None


def _terms(result: Result) -> tuple[str, ...]:
    return result.candidate.summary.terms if result.candidate.summary else ()


def _accuracy(result: Result) -> float:
    extra = result.feedback.extra_metrics if result.feedback else {}
    return extra.get(ACCURACY, 0.0)
