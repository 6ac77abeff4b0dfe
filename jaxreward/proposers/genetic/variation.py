"""Variation of genomes: new ones from a vocabulary, edits of one, mixtures of two."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np

from jaxreward.function_source.statements import Statement, fresh_name, lines_of, split
from jaxreward.proposers.genetic.genome import ENTRY, Gene, Genome, Part, number
from jaxreward.proposers.genetic.lexicon import KIND, Lexicon, subjects
from jaxreward.records import Fragment

MOST = {"observation": 20, "reward": 10}
WIDEST = 384
"""Features in all (columns); the verifier's limit is 512."""

GUIDING = ("shaping", "potential")

BASIC = 0.8
"""Chance of each fragment tagged `basic` to be in a new observation."""


class BlockOperators(Protocol):
    """Operators on genomes by the subgoals of a task (`blocks.Blocks`)."""

    @property
    def share(self) -> float:
        """How often a program from scratch is built in blocks."""
        ...

    @property
    def reward(self) -> str:
        """The name of the term that pays as the task does, which every program has."""
        ...

    def names_of_stages(self) -> Sequence[Collection[str]]: ...
    def scratch(self, variation: Variation) -> Genome: ...
    def half(self, genome: Genome, part: Part, variation: Variation) -> Genome: ...
    def edit(self, kind: str, genome: Genome, variation: Variation) -> Genome: ...
    def repaired(self, genome: Genome, dead: Collection[str], variation: Variation) -> Genome: ...
    def needs(self, name: str) -> bool: ...
    def with_reward(self, genome: Genome, variation: Variation) -> Genome: ...
    def crossover(self, one: Genome, other: Genome, variation: Variation) -> Genome: ...


class Variation:
    """Operators on genomes over a lexicon, restricted to the parts that may change.

    Genes in `needed`, pairs of a half and a name, are not removed or replaced at random.
    """

    def __init__(
        self,
        lexicon: Lexicon,
        rng: np.random.Generator,
        parts: Sequence[Part] = ("observation", "reward"),
        blocks: BlockOperators | None = None,
        needed: Collection[tuple[Part, str]] = (),
    ):
        self.lexicon, self.rng, self.parts, self.blocks = lexicon, rng, tuple(parts), blocks
        self.needed = frozenset(needed)

    def of(self, part: Part) -> Variation:
        """The same of one part alone."""
        return Variation(self.lexicon, self.rng, (part,), self.blocks, self.needed)

    def drawn_blocks(self) -> BlockOperators | None:
        """The blocks, if there are any, as often as programs from scratch are built in them."""
        return self.blocks if self.blocks is not None and self.rng.random() < self.blocks.share else None

    # --- from nothing

    def scratch(self) -> Genome:
        """A sensible random program: about a theme, with what most programs have; or in blocks."""
        if (blocks := self.drawn_blocks()) is not None:
            return self.with_varying_term(blocks.scratch(self))
        theme = self.lexicon.theme(self.rng)
        genome = Genome()
        for part in self.parts:
            genome = self.themed_half(genome, part, theme)
        return self.with_varying_term(genome)

    def fresh_half(self, genome: Genome, part: Part, theme: Sequence[str]) -> Genome:
        """Replace a half by a new one: about a theme, or in blocks as often as programs from scratch are."""
        if (blocks := self.drawn_blocks()) is not None:
            return blocks.half(genome, part, self)
        return self.themed_half(genome, part, theme)

    def themed_half(self, genome: Genome, part: Part, theme: Sequence[str], avoid: Collection[str] = ()) -> Genome:
        """Replace a half by a new one: 4-10 features or 2-6 terms about the theme, none of those to `avoid`."""
        fragments = [f for f in self.lexicon.fragments.values() if f.name not in avoid]
        genome = genome.with_half(part, ())

        def draw(**narrower) -> Fragment | None:
            return self.lexicon.draw(self.rng, part, theme, {*_names(genome, part), *avoid}, **narrower)

        if part == "observation":
            count = int(self.rng.integers(4, 11))
            genome = self.with_basic(genome, part, avoid)
            for subject in theme:
                genome = self.add(genome, part, draw(about=subject, tag="relative"))
        else:
            count = int(self.rng.integers(2, 7))
            genome = self.with_basic(genome, part, avoid)
            whole = [f for f in fragments if f.tags[:1] == ("milestone",) and subjects(f) == tuple(theme)]
            milestone = whole[int(self.rng.integers(len(whole)))] if whole else draw(families=["milestone"])
            genome = self.add(genome, part, milestone)
            for stage in range(len(theme)):
                genome = self.add(genome, part, draw(families=GUIDING, stage=stage))
        while len(genome.genes(part)) < count and (fragment := draw()):
            genome = self.add(genome, part, fragment)
        return genome

    def with_basic(self, genome: Genome, part: Part, avoid: Collection[str] = ()) -> Genome:
        """With most of what most programs have."""
        basic = [f for f in self.lexicon.fragments.values() if "basic" in f.tags and f.kind == KIND[part]]
        for fragment in [f for f in basic if f.name not in avoid and self.rng.random() < BASIC]:
            genome = self.add(genome, part, fragment)
        return genome

    # --- single edits; each returns its argument where it does not apply

    def add(self, genome: Genome, part: Part, fragment: Fragment | None) -> Genome:
        """Append a fragment as a gene, with its definition."""
        if fragment is None or len(genome.genes(part)) >= MOST[part] or fragment.name in _names(genome, part):
            return genome
        if part == "observation" and self.width(genome) + fragment.size > WIDEST:
            return genome
        gene = self.lexicon.gene(self.rng, fragment)
        genome, renamed = genome.with_statements(self.lexicon.definition([gene.name]))
        gene = Gene(renamed.get(gene.name, gene.name), gene.weight)
        return genome.with_half(part, (*genome.genes(part), gene))

    def width(self, genome: Genome) -> int:
        """Columns of the observation, as far as the vocabulary knows its genes."""
        known = [self.lexicon.get(gene, genome.statements) for gene in genome.genes("observation")]
        return sum(fragment.size if fragment else 1 for fragment in known)

    def theme(self, genome: Genome) -> tuple[str, ...]:
        """The subjects that a genome is mostly about, in the order in which they occur in its terms."""
        count: dict[str, float] = {}
        order: tuple[str, ...] = ()
        weights: dict[Part, float] = {"reward": 2.0, "observation": 1.0}
        for part, weight in weights.items():
            for gene in genome.genes(part):
                fragment = self.lexicon.get(gene, genome.statements)
                for subject in subjects(fragment) if fragment else ():
                    count[subject] = count.get(subject, 0.0) + weight
                if part == "reward" and fragment and "pair" not in fragment.tags:
                    order = max(order, subjects(fragment), key=len)
        if not count:
            return self.lexicon.theme(self.rng)
        often = [s for s in count if count[s] >= 0.3 * max(count.values())]
        ranked = [s for s in order if s in often]
        return tuple([*ranked, *sorted((s for s in often if s not in ranked), key=lambda s: -count[s])])

    def add_one(self, genome: Genome, part: Part) -> Genome:
        theme = self.theme(genome)
        return self.add(genome, part, self.lexicon.draw(self.rng, part, theme, _names(genome, part)))

    def with_varying_term(self, genome: Genome) -> Genome:
        """The genome with one more term where all of its reward's are constants, such as a cost of every step."""
        genes = genome.genes("reward") if "reward" in self.parts else ()
        known = [self.lexicon.get(gene, genome.statements) for gene in genes]
        if not genes or not all(f is not None and self.lexicon.is_constant(f) for f in known):
            return genome
        constant = {f.name for f in self.lexicon.fragments.values() if f.kind == "term" and self.lexicon.is_constant(f)}
        return self.add(genome, "reward", self.lexicon.draw(self.rng, "reward", self.theme(genome), constant))

    def remove(self, genome: Genome, part: Part, name: str | None = None) -> Genome:
        """Drop a gene, a random one without a name; the last gene stays."""
        genes = genome.genes(part)
        name = name or self._dispensable(genome, part)
        if len(genes) < 2 or name is None:
            return genome
        return genome.with_half(part, tuple(g for g in genes if g.name != name))

    def replace(self, genome: Genome, part: Part, name: str | None = None) -> Genome:
        genes = genome.genes(part)
        name = name or self._dispensable(genome, part)
        if name is None:
            return genome
        fragment = self.lexicon.draw(self.rng, part, self.theme(genome), _names(genome, part))
        if fragment is None:
            return genome
        if len(genes) >= MOST[part]:  # there is no room for one more before one has gone
            return self.add(self.remove(genome, part, name), part, fragment)
        return self.remove(self.add(genome, part, fragment), part, name)

    def _dispensable(self, genome: Genome, part: Part) -> str | None:
        """The name of a random gene that is not known to be needed; None where there is none."""
        names = [gene.name for gene in genome.genes(part) if (part, gene.name) not in self.needed]
        return names[int(self.rng.integers(len(names)))] if names else None

    def scale(self, genome: Genome, part: Part, name: str, factor: float) -> Genome:
        """Multiply a gene's weight, within a hundred times of what its fragment suggests."""

        def scaled(gene: Gene) -> Gene:
            fragment = self.lexicon.get(gene, genome.statements)
            usual = fragment.scales if fragment and fragment.scales else (0.1, 1.0)
            size = np.clip(abs(gene.weight) * factor, min(usual) / 30, max(usual) * 30)
            return Gene(gene.name, number(float(np.copysign(size, gene.weight))))

        return genome.with_half(part, tuple(scaled(g) if g.name == name else g for g in genome.genes(part)))

    def reweight(self, genome: Genome, part: Part) -> Genome:
        """Change a random gene's weight: mostly by less than a factor of three."""
        genes = genome.genes(part)
        if not genes:
            return genome
        gene = genes[int(self.rng.integers(len(genes)))]
        return self.scale(genome, part, gene.name, float(np.exp(self.rng.normal(0.0, 0.7))))

    def retarget(self, genome: Genome) -> Genome:
        """Exchange a subject of the genome for another, in both halves."""
        if len(self.lexicon.subjects) < 2:
            return genome
        theme = self.theme(genome)
        one = theme[int(self.rng.integers(len(theme)))]
        others = [s for s in self.lexicon.subjects if s != one]
        other = others[int(self.rng.integers(len(others)))]
        for part in self.parts:
            genes = []
            for gene in genome.genes(part):
                known = self.lexicon.get(gene, genome.statements)
                name = self.lexicon.counterpart(gene.name, one, other) if known else gene.name
                genome, renamed = genome.with_statements(self.lexicon.definition([name]) if name != gene.name else ())
                genes.append(Gene(renamed.get(name, name), gene.weight))
            if len({g.name for g in genes}) == len(genes):
                genome = genome.with_half(part, tuple(genes) or genome.half(part))
        return genome

    # --- opaque halves

    def perturb(self, genome: Genome, part: Part, most: int = 3) -> Genome:
        """Change one to `most` float literals of an opaque half, by less than a factor of three mostly.

        Zero and infinity stay as they are.
        """
        half = genome.half(part)
        if not isinstance(half, Statement):
            return genome
        lines = [line.encode() for line in lines_of(half.text)]
        constants = [n for n in ast.walk(half.node) if isinstance(n, ast.Constant)]
        literals = [n for n in constants if _perturbable(n, lines)]
        if not literals:
            return genome
        count = min(len(literals), int(self.rng.integers(1, most + 1)))
        chosen = [literals[i] for i in self.rng.permutation(len(literals))[:count]]
        for n in sorted(chosen, key=lambda n: (n.lineno, n.col_offset), reverse=True):
            factor = float(np.exp(self.rng.normal(0.0, 0.7)))
            if not (old := _perturbable(n, lines)):  # another literal is said to be in the same place
                continue
            value, line = number(old * factor) or old, lines[n.lineno - 1]
            lines[n.lineno - 1] = line[: n.col_offset] + repr(value).encode() + line[n.end_col_offset :]
        return genome.with_half(part, Statement(b"\n".join(lines).decode()))

    def open(self, genome: Genome, part: Part) -> Genome:
        """Make an opaque half a gene of its own, so that others can be added to it."""
        half = genome.half(part)
        if not isinstance(half, Statement) or not isinstance(half.node, ast.FunctionDef):
            return genome
        parameters = {"observation": "state", "reward": "state, action, next_state"}[part]
        if len(half.node.args.args) != len(parameters.split(", ")):
            return genome
        taken = {n for s in (*genome.statements, half) for n in (*s.binds, *s.needs)}
        taken |= {n.id for n in ast.walk(half.node) if isinstance(n, ast.Name)}
        name = fresh_name(f"inherited_{part}", taken)
        inner = half.renamed({ENTRY[part]: name})
        paired = _returns_pair(half.node)
        if paired is None:
            return genome
        new = [inner]
        if paired:
            total = fresh_name(f"{name}_total", taken)
            new += split(f"def {total}({parameters}):\n    return {name}({parameters})[0]\n")
            name = total
        genome, _ = genome.with_half(part, ()).with_statements(new)
        return genome.with_half(part, (Gene(name),))

    # --- two parents

    def crossover(self, one: Genome, other: Genome) -> Genome:
        """Halves of two parents put together, or a mixture of their genes or of their blocks."""
        if self.blocks is not None and self.rng.random() < 0.5:
            return self.blocks.crossover(one, other, self)
        both: list[Part] = [p for p in self.parts if one.half(p) is not None and other.half(p) is not None]
        if len(self.parts) == 2 and len(both) == 2 and self.rng.random() < 0.5:
            return self.graft(one, other, self.parts[int(self.rng.integers(2))])
        child = one
        for part in both:
            if one.genes(part) and other.genes(part):
                child = self.mix(child, other, part)
            elif self.rng.random() < 0.5:
                child = self.graft(child, other, part)
        return child

    def graft(self, one: Genome, other: Genome, part: Part) -> Genome:
        """`one` with a half of `other` in place of its own."""
        half = other.half(part)
        moving = [*other.needed(part), *([half] if isinstance(half, Statement) else [])]
        base = one.with_half(part, None)
        base, renamed = base.with_statements([s for s in moving if s is not half])
        if isinstance(half, Statement):
            return base.with_half(part, half.renamed({k: v for k, v in renamed.items() if k != ENTRY[part]}))
        return base.with_half(part, tuple(Gene(renamed.get(g.name, g.name), g.weight) for g in half or ()))

    def mix(self, one: Genome, other: Genome, part: Part) -> Genome:
        """Genes of both: common ones with either's weight, the others with even chances."""
        base, renamed = one.with_statements(other.needed(part))
        theirs = {renamed.get(g.name, g.name): g.weight for g in other.genes(part)}
        mine = {g.name: g.weight for g in one.genes(part)}
        genes = []
        for name in dict.fromkeys([*mine, *theirs]):
            weights = [w[name] for w in (mine, theirs) if name in w]
            if len(weights) == 2 or self.rng.random() < 0.5:
                genes.append(Gene(name, weights[int(self.rng.integers(len(weights)))]))
        least = min(2, len(mine), len(theirs))
        for name in mine:
            if len(genes) < least and name not in {g.name for g in genes}:
                genes.append(Gene(name, mine[name]))
        return self.fitted(base.with_half(part, tuple(genes)), part)

    def fitted(self, genome: Genome, part: Part) -> Genome:
        """With no more genes of a half, and no more columns, than may be."""
        genome = genome.with_half(part, genome.genes(part)[: MOST[part]])
        while part == "observation" and self.width(genome) > WIDEST:
            genome = self.remove(genome, part)
        return genome


def _names(genome: Genome, part: Part) -> set[str]:
    return {gene.name for gene in genome.genes(part)}


def _perturbable(literal: ast.Constant, lines: Sequence[bytes]) -> float:
    """The value of a float literal, 0 where it cannot be scaled or is not where the tree says."""
    value = literal.value
    if not isinstance(value, float) or not math.isfinite(value):
        return 0.0
    try:
        return value if float(lines[literal.lineno - 1][literal.col_offset : literal.end_col_offset]) == value else 0.0
    except (ValueError, IndexError):
        return 0.0


def _returns_pair(function: ast.FunctionDef) -> bool | None:
    """Whether a reward returns (scalar, terms): True, False, or None if its returns disagree."""
    inner = [n for n in ast.walk(function) if isinstance(n, ast.FunctionDef) and n is not function]
    nested = {r for n in inner for r in ast.walk(n)}
    returns = [n.value for n in ast.walk(function) if isinstance(n, ast.Return) and n not in nested]
    pairs = {isinstance(value, ast.Tuple) for value in returns}
    return pairs.pop() if len(pairs) == 1 else None
