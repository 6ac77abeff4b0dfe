"""A vocabulary as the genetic proposer sees it: fragments by family and subject, and a prior.

The first tag of a fragment is its family; tags `about:thing` name its subjects,
in order. Everything else here is general: nothing knows a task.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxreward.errors import InvalidSetting
from jaxreward.function_source.definitions import definitions
from jaxreward.function_source.statements import Statement, closure
from jaxreward.proposers.genetic.genome import Gene, Part
from jaxreward.records import Fragment, Vocabulary
from jaxreward.sentences import mention

KIND: Mapping[Part, str] = {"observation": "feature", "reward": "term"}

FAMILY_WEIGHT = {
    "relative": 4.0, "contact": 1.5, "held": 1.5, "walking": 1.0, "time": 0.3, "pocket": 0.7, "position": 0.7,
    "milestone": 3.0, "potential": 3.0, "shaping": 3.0, "penalty": 1.0, "bonus": 0.7,
}  # fmt: skip
"""How often a family is drawn, 1 where it is not listed."""

TAG_WEIGHT = {"expensive": 0.4, "large": 0.3}
OFF_THEME, REVERSED = 0.05, 0.3


class Lexicon:
    """The fragments of a vocabulary, ready to be drawn."""

    def __init__(self, vocabulary: Vocabulary, farmable: float = 1.0):
        """`farmable` is the weight of fragments with that tag, against others of 1."""
        if not vocabulary.fragments:
            raise InvalidSetting(
                f"the task has no vocabulary, which the genetic proposer builds programs from: leave "
                f"{mention('vocabulary', 'own')} "
                "out, or use another proposer",
                "proposer",
            )
        self.fragments = {fragment.name: fragment for fragment in vocabulary.fragments}
        self._tag_weight = TAG_WEIGHT | {"farmable": farmable}
        self.statements = definitions(vocabulary)
        self._by_name = {name: s for s in self.statements if not s.is_import for name in s.binds}
        self.subjects = tuple(dict.fromkeys(s for f in vocabulary.fragments for s in subjects(f)))
        self._definitions = dict[tuple[str, ...], tuple[Statement, ...]]()
        self._worth = {s: max(f.weight for f in vocabulary.fragments if s in subjects(f)) for s in self.subjects}

    def definition(self, names: Iterable[str]) -> tuple[Statement, ...]:
        """The statements that define fragments, with all they need."""
        wanted = tuple(names)
        if wanted not in self._definitions:
            self._definitions[wanted] = closure(wanted, self.statements)
        return self._definitions[wanted]

    def get(self, gene: Gene, statements: Sequence[Statement]) -> Fragment | None:
        """The fragment that a gene is, if its definition in a program is the vocabulary's own."""
        fragment = self.fragments.get(gene.name)
        if fragment is None:
            return None
        own = self._by_name[gene.name].shape
        return fragment if any(s.shape == own for s in statements if gene.name in s.binds) else None

    def is_constant(self, fragment: Fragment) -> bool:
        """Whether a term reads nothing, neither states nor action: alone it makes a reward that is refused."""
        node = self._by_name[fragment.name].node
        if not isinstance(node, ast.FunctionDef):
            return False
        given = {argument.arg for argument in node.args.args}
        return given.isdisjoint(n.id for n in ast.walk(node) if isinstance(n, ast.Name))

    def theme(self, rng: np.random.Generator) -> tuple[str, ...]:
        """One to three subjects in random order: what a new program will be about. Those of fragments of more weight
        are likelier."""
        if not self.subjects:
            return ()
        size = min(int(rng.choice([1, 2, 3], p=[0.4, 0.5, 0.1])), len(self.subjects))
        worth = np.array([self._worth[s] for s in self.subjects])
        if np.ptp(worth) == 0.0:
            return tuple(self.subjects[i] for i in rng.permutation(len(self.subjects))[:size])
        drawn = rng.choice(len(self.subjects), size, replace=False, p=worth / worth.sum())
        return tuple(self.subjects[i] for i in drawn)

    def counterpart(self, name: str, one: str, other: str) -> str:
        """The fragment that says the same with two subjects exchanged; `name` itself if there is none."""
        exchange = {one: other, other: one}
        whole = "|".join(re.escape(s) for s in sorted(exchange, key=len, reverse=True))
        swapped = re.sub(rf"(?<![A-Za-z0-9])(?:{whole})(?![A-Za-z0-9])", lambda m: exchange[m[0]], name)
        return swapped if swapped in self.fragments and swapped != name else name

    def draw(
        self,
        rng: np.random.Generator,
        part: Part,
        theme: Sequence[str] = (),
        have: Container[str] = (),
        *,
        families: Container[str] | None = None,
        about: str | None = None,
        tag: str | None = None,
        stage: int | None = None,
    ) -> Fragment | None:
        """Draw a fragment: first a family, then one of it, those about the theme being likelier.

        `families`, `about` and `tag` narrow the choice down. With `stage`, the fragment is one about
        `theme[stage]` and nothing that comes later in the theme. None if nothing is left.
        """
        if stage is not None:
            about = theme[stage]
        weights: dict[str, float] = {}
        for fragment in self.fragments.values():
            if fragment.kind != KIND[part] or fragment.name in have:
                continue
            if families is not None and family(fragment) not in families:
                continue
            if about is not None and about not in subjects(fragment):
                continue
            if tag is not None and tag not in fragment.tags:
                continue
            rarity = fragment.weight * math.prod(self._tag_weight.get(t, 1.0) for t in fragment.tags)
            fit = affinity(fragment, theme) if stage is None else fitness_for(fragment, theme, stage)
            weights[fragment.name] = fit * rarity
        if not weights:
            return None
        by_family: dict[str, list[str]] = {}
        for name in weights:
            by_family.setdefault(family(self.fragments[name]), []).append(name)
        # A family counts in full if its best member fits: the number of its members does not matter.
        share = {f: FAMILY_WEIGHT.get(f, 1.0) * max(weights[n] for n in names) for f, names in by_family.items()}
        members = by_family[pick(rng, share)]
        return self.fragments[pick(rng, {name: weights[name] for name in members})]

    def gene(self, rng: np.random.Generator, fragment: Fragment) -> Gene:
        """The fragment with one of its scales, the first ones being likelier."""
        scales = fragment.scales or (1.0,)
        return Gene(fragment.name, float(pick(rng, {scale: 0.5**i for i, scale in enumerate(scales)})))


def family(fragment: Fragment) -> str:
    return next((tag for tag in fragment.tags if not tag.startswith("about:")), "other")


def subjects(fragment: Fragment) -> tuple[str, ...]:
    """The subjects of a fragment, in order."""
    return tuple(tag.removeprefix("about:") for tag in fragment.tags if tag.startswith("about:"))


def affinity(fragment: Fragment, theme: Sequence[str]) -> float:
    """How well a fragment fits a theme, in (0, 1]: 1 if it has no other subjects, in the same order."""
    own = subjects(fragment)
    if not own:
        return 1.0
    if not set(own) <= set(theme):
        return OFF_THEME
    order = [theme.index(s) for s in own]
    return 1.0 if order == sorted(order) or "pair" in fragment.tags else REVERSED


def fitness_for(fragment: Fragment, theme: Sequence[str], stage: int) -> float:
    """How well a fragment guides at a stage: it ties the stage's subject to those before it.

    Tags `early` and `late` mark what makes sense only before, or after, something was achieved.
    """
    fit = affinity(fragment, theme[: stage + 1])
    if stage and len(subjects(fragment)) > 1:
        fit *= 2.0
    return fit * (0.2 if ("early" if stage else "late") in fragment.tags else 1.0)


def pick(rng: np.random.Generator, weights: Mapping[Any, float]) -> Any:
    """One of the keys, each with a chance in proportion to its weight."""
    options = list(weights)
    p = np.array([weights[o] for o in options], float)
    return options[int(rng.choice(len(options), p=p / p.sum()))]
