"""Plans of the genetic proposer: components out of a vocabulary, and programs that carry a plan out."""

from __future__ import annotations

import re

from jaxreward.proposers.genetic.genome import Genome
from jaxreward.proposers.genetic.lexicon import subjects
from jaxreward.proposers.genetic.variation import MOST, Variation
from jaxreward.records import Fragment

COMPONENTS = (5, 10)
"""How many components a plan has, where the vocabulary has so many terms."""

TERMS = 6
"""Planned terms that a program takes all of; of more, some."""

_COMPONENT = re.compile(r"^- (\w+):", re.MULTILINE)


def plan(variation: Variation) -> str:
    """Terms about a theme in the form of a plan, `- name: what it rewards`, the milestone first; or those of blocks."""
    lexicon, rng = variation.lexicon, variation.rng
    theme = lexicon.theme(rng)
    count = int(rng.integers(COMPONENTS[0], COMPONENTS[1] + 1))
    reward = variation.fresh_half(Genome(), "reward", theme)
    names = [gene.name for gene in reward.genes("reward")]
    if variation.blocks is not None:  # what else a plan has is about the same things
        count, theme = COMPONENTS[0], variation.theme(reward)
    while len(names) < count and (fragment := lexicon.draw(rng, "reward", theme, names)):
        names.append(fragment.name)
    return "\n".join(f"- {name}: {_words(lexicon.fragments[name])}" for name in names)


def named(words: str) -> tuple[str, ...]:
    """The names of a plan's components, in order."""
    return tuple(dict.fromkeys(_COMPONENT.findall(words)))


def carried_out(words: str, variation: Variation) -> Genome:
    """A program whose reward is a plan's components, as far as the vocabulary knows them, and whose
    observation is about the same things; the rest, and all where nothing is known, is as from scratch."""
    lexicon, rng = variation.lexicon, variation.rng
    known = [lexicon.fragments[name] for name in named(words) if name in lexicon.fragments]
    terms = [fragment for fragment in known if fragment.kind == "term"]
    theme = tuple(dict.fromkeys(s for fragment in known for s in subjects(fragment))) or _mentioned(words, variation)
    genome = Genome()
    for part in variation.parts:
        if part == "reward" and terms:
            genome = genome.with_half(part, ())
            for fragment in _subset(terms, variation):
                genome = variation.add(genome, part, fragment)
        else:
            genome = variation.fresh_half(genome, part, theme[:3] or lexicon.theme(rng))
    return genome


def _subset(terms: list[Fragment], variation: Variation) -> list[Fragment]:
    """All terms, or of many a few in their order, the first, which a plan is built around, among them."""
    if len(terms) <= TERMS:
        return terms
    count = int(variation.rng.integers(TERMS - 2, min(len(terms), MOST["reward"]) + 1))
    others = variation.rng.permutation(len(terms) - 1)[: count - 1]
    return [terms[i] for i in (0, *sorted(int(i) + 1 for i in others))]


def _mentioned(words: str, variation: Variation) -> tuple[str, ...]:
    """Subjects that the words mention, in the order of their first mention."""
    text = words.lower().replace("_", " ")
    found = [(text.find(s.lower().replace("_", " ")), s) for s in variation.lexicon.subjects]
    return tuple(s for at, s in sorted(found) if at >= 0)


def _words(fragment: Fragment) -> str:
    return " ".join((fragment.doc or fragment.name.replace("_", " ")).split())
