"""RF-Agent: Monte Carlo tree search over reward programs (the paper's section 4 and Algorithm 1)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from jaxreward.errors import InvalidSetting
from jaxreward.records import Evolve, Result
from jaxreward.search.draft import Draft
from jaxreward.search.selection import draw, merit, rank_logits, sample
from jaxreward.search.strategy import SearchStrategy, State, outcomes, was_trained
from jaxreward.search.strategy_options import (
    require_choice,
    require_flag,
    require_integer,
    require_number,
    require_share,
)
from jaxreward.search.tree import ROOT, Node, Tree

Search = Literal["uct", "dfs", "bfs", "greedy"]

ACTIONS = ("structure", "weights", "crossover", "path", "different", "improve")
"""The operators of an expansion, in the order of `counts`; `improve` is the ablations' basic action."""


@dataclass(frozen=True)
class Expansion:
    """The last node to be expanded, lambda at that time, and the operators of the answers so far."""

    node: str
    exploration: float
    answered: tuple[str, ...] = ()


@dataclass(frozen=True)
class RFAgentMemory:
    """The tree, the ids of its elites (best first), the last expansion, how many candidates of
    expansions were trained, and the nodes that wait for a thought and for a judgement."""

    tree: Tree
    elites: tuple[str, ...] = ()
    expansion: Expansion | None = None
    grown: int = 0
    unaligned: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()


@dataclass(frozen=True)
class RFAgent(SearchStrategy[RFAgentMemory]):
    """A tree of programs: UCT selects a leaf, an expansion applies every action to it, scores are backed up.

    `initial` trained candidates from scratch make the first layer (N_I); `counts` are the children of
    an expansion by action: structure, weights, crossover, path, different, and as an optional sixth
    the basic `improve`. `exploration` is lambda at the start; it falls linearly to 0 as the candidates of
    expansions reach `budget` less `initial`, and stays where the budget is not known. `eta` is the rate of
    the backup. Crossover takes its other parents from the `elites` best programs; `context` is the least
    and the most programs that an action shows, the node itself included. Nodes at `max_depth` are not
    expanded. With `thoughts` a program comes with its idea, with `align` that idea is rewritten from the
    trained program, with `verify` the proposer judges every node. `search` replaces UCT:
    `dfs` expands the youngest leaves first, best of siblings first, `bfs` layer by layer, `greedy` the
    leaf of the best score.
    """

    name: ClassVar[str] = "rf-agent"
    natural: ClassVar[Evolve] = "reward"
    initial: int = 6
    counts: tuple[int, ...] = (2, 2, 2, 1, 1)
    exploration: float = 0.4
    eta: float = 0.7
    elites: int = 10
    context: tuple[int, int] = (2, 4)
    max_depth: int = 16
    search: Search = "uct"
    thoughts: bool = True
    align: bool = True
    verify: bool = True

    def _validate(self) -> None:
        for name in ("initial", "elites", "max_depth"):
            require_integer(self.name, name, getattr(self, name), 1)
        for name in ("thoughts", "align", "verify"):
            require_flag(self.name, name, getattr(self, name))
        require_number(self.name, "exploration", self.exploration)
        require_share(self.name, "eta", self.eta)
        require_choice(self.name, "search", self.search, get_args(Search))
        for count in self.counts:
            require_integer(self.name, "counts", count, 0)
        for number in self.context:
            require_integer(self.name, "context", number, 2)
        if not 5 <= len(self.counts) <= 6 or not sum(self.counts):
            raise InvalidSetting(
                f"Option counts of strategy {self.name} is {self.counts!r}: give five or six whole numbers that are "
                f"not all 0, of children by {', '.join(ACTIONS)}.",
                "strategy.counts",
            )
        if len(self.context) != 2 or self.context[0] > self.context[1]:
            raise InvalidSetting(
                f"Option context of strategy {self.name} is {self.context!r}: give two whole numbers, the least and "
                "the most programs that a request shows.",
                "strategy.context",
            )

    def _init(self) -> RFAgentMemory:
        return RFAgentMemory(Tree())

    # ---- asking

    def _ask(self, state: State[RFAgentMemory], n: int, rng: np.random.Generator) -> list[Draft]:
        memory = state.memory
        missing = self.initial - (state.counts.trained - memory.grown)
        if missing > 0 or memory.tree.empty:
            return self._scratch(min(n, missing if missing > 0 else self.initial))
        todo = self._todo(memory.expansion)
        if todo and memory.expansion is not None:
            return self._drafts(memory, memory.expansion.node, todo[:n], rng)
        words = self._words(state)
        if words:
            return words
        node = self._select(state)
        if node is None:
            return self._scratch(min(n, self.initial))
        return self._drafts(memory, node, self._plan[:n], rng)

    @property
    def _plan(self) -> tuple[str, ...]:
        """The operators of an expansion."""
        return tuple(action for action, count in zip(ACTIONS, self.counts, strict=False) for _ in range(count))

    def _todo(self, expansion: Expansion | None) -> tuple[str, ...]:
        """What an expansion still lacks; empty if it is complete or none was begun."""
        if expansion is None:
            return ()
        left, answered = [], Counter(expansion.answered)
        for action in self._plan:
            if answered[action]:
                answered[action] -= 1
            else:
                left.append(action)
        # An action may have been carried out by another operator (a crossover without a mate, the
        # bandit): then the number of answers decides, and the earlier actions count as done.
        return tuple(left[len(left) - max(0, len(self._plan) - len(expansion.answered)) :])

    def _scratch(self, n: int) -> list[Draft]:
        return [Draft("scratch", thought=self.thoughts)] * n

    def _words(self, state: State[RFAgentMemory]) -> list[Draft]:
        """Requests for thoughts, and when those are in, for judgements."""
        tree = state.memory.tree
        for operator, ids in (("align", state.memory.unaligned), ("verify", state.memory.unverified)):
            if ids and operator not in state.declined:
                return [Draft(operator, parents=(tree.result(id),)) for id in ids]
        return []

    def exploration_at(self, state: State[RFAgentMemory]) -> float:
        """Lambda: `exploration` (N - t) / N with t trained candidates of expansions out of N."""
        if not self.budget:
            return self.exploration
        total = max(1, self.budget - self.initial)
        return self.exploration * max(0, total - state.memory.grown) / total

    def _select(self, state: State[RFAgentMemory]) -> str | None:
        """The node to expand, None where every node is closed."""
        tree = state.memory.tree
        if self.search == "uct":
            return tree.walk(self.exploration_at(state))
        leaves = tree.open_leaves()
        if not leaves:
            return None
        order = {id: k for k, id in enumerate(tree.nodes)}
        keys = {
            "dfs": lambda leaf: (order[tree.nodes[leaf.parent].children[0]], *_standing(leaf)),
            "bfs": lambda leaf: (-leaf.depth, -order[leaf.id]),
            "greedy": _standing,
        }
        return max(leaves, key=keys[self.search]).id

    def _drafts(self, memory: RFAgentMemory, id: str, actions: Sequence[str], rng: np.random.Generator) -> list[Draft]:
        return [self._draft(memory, id, action, rng) for action in actions]

    def _draft(self, memory: RFAgentMemory, id: str, action: str, rng: np.random.Generator) -> Draft:
        tree, node = memory.tree, memory.tree.nodes[id]
        others: Sequence[str] = ()
        if action == "crossover":
            others = self._mates(memory, id, rng)
            action = action if others else "improve"
        elif action == "path":
            others = [ancestor.id for ancestor in tree.lineage(id)][1 : self.context[1]]
        elif action == "different":
            others = self._strangers(tree, node, rng)
        parents = tuple(tree.result(other) for other in (id, *others))
        return Draft(action, parents=parents, thought=self.thoughts)

    def _shown_besides(self, rng: np.random.Generator) -> int:
        low, high = self.context
        return int(rng.integers(low, high + 1)) - 1

    def _mates(self, memory: RFAgentMemory, id: str, rng: np.random.Generator) -> tuple[str, ...]:
        """Elites other than the node, drawn with weight 1 / (rank + 2)."""
        ranked = [(elite, logit) for elite, logit in zip(memory.elites, rank_logits(len(memory.elites))) if elite != id]
        k = self._shown_besides(rng)
        return draw([elite for elite, _ in ranked], [logit for _, logit in ranked], k, rng)

    def _strangers(self, tree: Tree, node: Node, rng: np.random.Generator) -> tuple[str, ...]:
        """Nodes of other subtrees of the first layer, or any others where there are none."""
        k = self._shown_besides(rng)
        foreign = [id for branch, ids in tree.branches.items() if branch != node.branch for id in ids]
        found = foreign or [id for id in tree.branches[node.branch] if id != node.id]
        return sample(found, k, rng)

    # ---- telling

    def _tell(self, state: State[RFAgentMemory], results: tuple[Result, ...]) -> RFAgentMemory:
        memory = state.memory
        ends = outcomes(results)
        founders = [result for result in ends if not result.candidate.parents]
        children = [result for result in ends if result.candidate.parents]
        if founders:
            tree = memory.tree.grow(ROOT, founders, self.max_depth).backup(ROOT, self.eta)
            memory = replace(memory, tree=tree)
        if children:
            memory = self._grown(state, memory, children[0].candidate.parents[0], children)
        new = [result for result in ends if result.score is not None]
        ranked = [(id, memory.tree.result(id)) for id in memory.elites]
        ranked += [(result.candidate.id, result) for result in new]
        ranked.sort(key=lambda pair: merit(pair[1]), reverse=True)
        ids = tuple(result.candidate.id for result in new if result.candidate.source)
        trained = sum(was_trained(r) for r in results if r.candidate.parents)
        return replace(
            memory,
            elites=tuple(id for id, _ in ranked[: self.elites]),
            grown=memory.grown + trained,
            unaligned=(*memory.unaligned, *ids) if self.align else (),
            unverified=(*memory.unverified, *ids) if self.verify else (),
        )

    def _tell_ablated(self, state: State[RFAgentMemory], results: tuple[Result, ...]) -> RFAgentMemory:
        """They are no nodes: an expansion of the program that they come from is still to be made."""
        return replace(state.memory, grown=state.memory.grown + sum(map(was_trained, results)))

    def _grown(
        self, state: State[RFAgentMemory], memory: RFAgentMemory, node: str, children: Sequence[Result]
    ) -> RFAgentMemory:
        """With the children under the expanded node, backed up once the expansion is complete."""
        expansion = memory.expansion
        if expansion is None or not self._todo(expansion):
            expansion = Expansion(node, self.exploration_at(state))
        answered = tuple(child.candidate.operator for child in children)
        expansion = replace(expansion, answered=(*expansion.answered, *answered))
        tree = memory.tree.grow(node, children, self.max_depth)
        if not self._todo(expansion):
            tree = tree.backup(node, self.eta)
        return replace(memory, tree=tree, expansion=expansion)

    def _tell_words(self, state: State[RFAgentMemory], results: tuple[Result, ...]) -> RFAgentMemory:
        memory, tree = state.memory, state.memory.tree
        answered: dict[str, set[str]] = {"align": set(), "verify": set()}
        changed: dict[str, Node] = {}
        for result in results:
            operator, id = result.candidate.operator, result.candidate.parents[0]
            answered[operator].add(id)
            node = changed.get(id, tree.nodes[id])
            if operator == "align" and result.words:
                changed[id] = replace(node, result=tree.result(id).with_thought(result.words))
            if operator == "verify":
                changed[id] = replace(node, verify=_judgement(result.words))
        return replace(
            memory,
            tree=tree.amended(changed),
            unaligned=tuple(id for id in memory.unaligned if id not in answered["align"]),
            unverified=tuple(id for id in memory.unverified if id not in answered["verify"]),
        )

    def words_expected(self, candidates: int) -> int:
        return candidates * (self.align + self.verify)

    def account(self, before: State[RFAgentMemory], after: State[RFAgentMemory]) -> dict[str, Any]:
        old, new = before.memory.tree.nodes, after.memory.tree.nodes
        expansion = after.memory.expansion
        account: dict[str, Any] = {}
        if expansion is not None and expansion != before.memory.expansion:
            account = {"expanded": expansion.node, "lambda": expansion.exploration}
        account["nodes"] = [
            {"id": n.id, "parent": n.parent, "Q": n.q, "N": n.visits, "verify": n.verify, "depth": n.depth}
            for n in new.values()
            if n.id not in old or _figures(old[n.id]) != _figures(n)
        ]
        return account


def _figures(node: Node) -> tuple[float | None, int, float | None]:
    return node.q, node.visits, node.verify


def _standing(leaf: Node) -> tuple[float, ...]:
    assert leaf.result is not None
    return merit(leaf.result)


def _judgement(words: str) -> float | None:
    """A number in [-1, 1], None where there is none."""
    try:
        value = float(words)
    except ValueError:
        return None
    return min(1.0, max(-1.0, value)) if math.isfinite(value) else None
