"""The tree of RF-Agent: values, visits, UCT and backup (section 4, equations 2 and 3)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from jaxreward.records import Result
from jaxreward.search.selection import scored, softmax

ROOT = "root"
"""The id of the virtual root, which holds no program."""


@dataclass(frozen=True)
class Node:
    """A program in the tree: Q(s), N(s), v_self and its place.

    A program without a score is a visit of its parent and nothing else: it has no `result` and no `q`.
    `depth` is 0 for the root; `branch` is the ancestor on the first layer. `expansions` counts how
    often the node was expanded; a `closed` one has nothing left to expand in its subtree.
    """

    id: str
    parent: str = ""
    depth: int = 0
    branch: str = ""
    result: Result | None = None
    q: float | None = None
    visits: int = 0
    verify: float | None = None
    children: tuple[str, ...] = ()
    expansions: int = 0
    closed: bool = False


@dataclass(frozen=True)
class Tree:
    """Nodes by id; `low` and `high` are the extremes of all scores so far (Q_min and Q_max);
    `branches` maps the nodes of the first layer to the scored nodes of their subtrees."""

    nodes: Mapping[str, Node] = field(default_factory=lambda: MappingProxyType({ROOT: Node(ROOT)}))
    low: float = math.inf
    high: float = -math.inf
    branches: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def empty(self) -> bool:
        """Whether no node has a score."""
        return self.low > self.high

    def result(self, id: str) -> Result:
        """The result of a scored node."""
        result = self.nodes[id].result
        if result is None:
            raise ValueError(f"node {id} has no score and holds no program")
        return result

    def lineage(self, id: str) -> Iterator[Node]:
        """The node and its ancestors, nearest first, without the root."""
        while id != ROOT:
            node = self.nodes[id]
            yield node
            id = node.parent

    def grow(self, parent: str, results: Sequence[Result], max_depth: int) -> Tree:
        """With `results` as new leaves under `parent`; nothing is backed up."""
        nodes, branches = dict(self.nodes), dict(self.branches)
        low, high = self.low, self.high
        above = nodes[parent]
        for result in results:
            id = result.candidate.id
            branch = id if parent == ROOT else above.branch
            depth = above.depth + 1
            node = Node(id, parent, depth, branch, visits=1)
            if result.score is not None:
                q = scored(result).merit
                node = replace(node, result=result, q=q, closed=depth >= max_depth)
                low, high = min(low, q), max(high, q)
                branches[branch] = (*branches.get(branch, ()), id)
            nodes[id] = node
        ids = tuple(result.candidate.id for result in results)
        nodes[parent] = replace(above, children=(*above.children, *ids))
        return Tree(MappingProxyType(nodes), low, high, MappingProxyType(branches))

    def backup(self, start: str, eta: float) -> Tree:
        """Equation 3 at `start` and all its ancestors, once: N is the sum of the children's, Q moves by
        `eta` to the best child's. The root has visits and no value."""
        nodes = dict(self.nodes)
        id = start
        while True:
            node = nodes[id]
            children = [nodes[child] for child in node.children]
            values = [child.q for child in children if child.q is not None]
            q = (1 - eta) * node.q + eta * max(values) if node.q is not None and values else node.q
            nodes[id] = replace(
                node,
                q=q,
                visits=sum(child.visits for child in children),
                expansions=node.expansions + (id == start),
                closed=bool(values) and all(child.closed for child in children if child.q is not None),
            )
            if id == ROOT:
                return replace(self, nodes=MappingProxyType(nodes))
            id = node.parent

    def amended(self, nodes: Mapping[str, Node]) -> Tree:
        """With some nodes in place of those of the same id."""
        return replace(self, nodes=MappingProxyType({**self.nodes, **nodes}))

    def uct(self, id: str, exploration: float) -> list[tuple[Node, float]]:
        """The scored children of a node with their UCT values (equation 2); `exploration` is lambda.

        Where all scores are equal the first part is 0. A child without a judgement counts as 0 in the
        softmax, which is left out where no sibling has one.
        """
        children = [child for name in self.nodes[id].children if (child := self.nodes[name]).q is not None]
        if not children:
            return []
        span = self.high - self.low
        log_visits = math.log(self.nodes[id].visits + 1)
        promise = softmax([child.verify or 0.0 for child in children])
        if all(child.verify is None for child in children):
            promise = 0.0 * promise
        values = []
        for child, hope in zip(children, promise, strict=True):
            assert child.q is not None
            exploit = (child.q - self.low) / span if span > 0 else 0.0
            explore = math.sqrt(2 * log_visits / child.visits) + float(hope)
            values.append((child, exploit + exploration * explore))
        return values

    def walk(self, exploration: float) -> str | None:
        """The open leaf that UCT leads to from the root; among equals the first born. None if all are closed."""
        id = ROOT
        while not self.nodes[id].closed:
            choices = [(value, node.id) for node, value in self.uct(id, exploration) if not node.closed]
            if not choices:
                return None if id == ROOT else id
            id = max(choices, key=lambda choice: choice[0])[1]
        return None

    def open_leaves(self) -> list[Node]:
        """Scored nodes without a scored child that may be expanded, those expanded least often alone."""
        parents = {node.parent for node in self.nodes.values() if node.q is not None}
        leaves = [n for n in self.nodes.values() if n.q is not None and not n.closed and n.id not in parents]
        fewest = min((leaf.expansions for leaf in leaves), default=0)
        return [leaf for leaf in leaves if leaf.expansions == fewest]
