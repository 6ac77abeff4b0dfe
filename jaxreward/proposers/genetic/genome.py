"""A program as a genome: an ordered list of weighted features and one of weighted terms.

A genome is written as an ordinary source file and read back from any source, by parsing alone:

    def get_observation(state):
        return jnp.concatenate(
            [
                agent_position(state),
                2.0 * offset(state),
            ]
        )

    def compute_reward(state, action, next_state):
        terms = {
            "closer": 0.1 * closer(state, action, next_state),
            "gently": 0.5 * slow(state, action, next_state) + 0.1 * smooth(state, action, next_state),
        }
        return sum(terms.values()), terms

The functions named there are genes; whatever they need in the file travels with them. A function
not in this form is carried whole (opaque). `write(read(write(g))) == write(g)`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from jaxreward.function_source.statements import Statement, arranged, closure, disentangled, split

Part = Literal["observation", "reward"]
ENTRY: Mapping[Part, str] = {"observation": "get_observation", "reward": "compute_reward"}
_WIDTH = 120
LARGEST = 1e308
"""What a weight is at most: programs say no `inf`."""


class Gene(NamedTuple):
    """A fragment function by name, and the number it is multiplied by."""

    name: str
    weight: float = 1.0


Half = tuple[Gene, ...] | Statement | None
"""Genes, an opaque function, or nothing (the task's default stands in)."""


@dataclass(frozen=True)
class Genome:
    """A program in parts; `statements` define everything the two halves call, `groups` are pairs of a gene of the
    reward and the term that it is a part of, where that is not a term of its own."""

    observation: Half = None
    reward: Half = None
    statements: tuple[Statement, ...] = ()
    groups: tuple[tuple[str, str], ...] = ()

    def half(self, part: Part) -> Half:
        return getattr(self, part)

    def genes(self, part: Part) -> tuple[Gene, ...]:
        """The genes of a half; none where it is opaque or absent."""
        half = self.half(part)
        return half if isinstance(half, tuple) else ()

    def with_half(self, part: Part, half: Half) -> Genome:
        return replace(self, **{part: half})

    def with_statements(self, statements: Sequence[Statement]) -> tuple[Genome, dict[str, str]]:
        """Add definitions; the second value maps those that had to be renamed to their new names."""
        opaque = [half for half in (self.observation, self.reward) if isinstance(half, Statement)]
        names = disentangled((*self.statements, *opaque), statements)
        have = {s.shape for s in self.statements}
        new = [r for r in (s.renamed(names) for s in statements) if r.shape not in have]
        return replace(self, statements=(*self.statements, *new)), names

    def needed(self, part: Part) -> tuple[Statement, ...]:
        """The statements that one half needs, each after those that it needs itself."""
        half = self.half(part)
        roots = half.needs if isinstance(half, Statement) else [g.name for g in half or ()]
        return closure(roots, self.statements)

    @property
    def key(self) -> tuple:
        """Equal for genomes that differ in order, layout and comments only."""
        halves = []
        for part in ENTRY:
            half = self.half(part)
            halves.append(half.shape if isinstance(half, Statement) else half and tuple(sorted(half)))
        return (*halves, frozenset(s.shape for part in ENTRY for s in self.needed(part) if not s.is_import))


def read(source: str) -> Genome:
    """Take a program apart. Nothing is executed, and nothing is refused but what cannot be parsed.

    Raises:
        SyntaxError or ValueError: if the source cannot be parsed.
    """
    statements = split(source)
    entries = {s.binds[0]: s for s in statements if s.is_function and s.binds[0] in ENTRY.values()}
    others = tuple(s for s in statements if s not in entries.values())
    functions = {s.binds[0] for s in others if s.is_function}
    halves: dict[Part, Half] = {}
    groups: tuple[tuple[str, str], ...] = ()
    for part, name in ENTRY.items():
        entry = entries.get(name)
        found = _genes(part, entry.node, functions) if entry and isinstance(entry.node, ast.FunctionDef) else None
        halves[part] = tuple(gene for _, gene in found) if found else entry
        if found and part == "reward":
            groups = tuple((gene.name, term) for term, gene in found if term not in ("", gene.name))
    for part, name in ENTRY.items():  # one entry may call the other: then it is a definition like any other
        if any(name in s.needs for s in statements) and name in entries:
            others = (*others, entries[name])
            halves[part] = entries[name]
    return Genome(halves["observation"], halves["reward"], others, groups)


def readable(source: str) -> Genome | None:
    """As `read`; None if the source cannot be parsed."""
    try:
        return read(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


def write(genome: Genome) -> str:
    """The genome as readable source: imports, constants, helpers, fragments, the two functions."""
    groups = dict(genome.groups)
    entries = [_entry(part, genome.half(part), groups) for part in ENTRY if genome.half(part) is not None]
    genes = {gene.name for part in ENTRY for gene in genome.genes(part)}
    used = list(dict.fromkeys(s for part in ENTRY for s in genome.needed(part)))
    used = [s for s in used if s.text not in entries]
    return arranged(used, genes, entries)


def number(value: float) -> float:
    """A weight as written in a source: two significant digits, and finite."""
    return float(f"{min(max(value, -LARGEST), LARGEST):.2g}")


def _entry(part: Part, half: Half, groups: Mapping[str, str]) -> str:
    if isinstance(half, Statement):
        return half.text
    lines = []
    if part == "observation":
        for gene in half or ():
            scale = "" if gene.weight == 1.0 else f"{gene.weight!r} * "
            lines.append(f"            {scale}{gene.name}(state),")
        head = ["def get_observation(state):", "    return jnp.concatenate(", "        ["]
        return "\n".join([*head, *lines, "        ]", "    )"])
    terms: dict[str, list[str]] = {}
    for gene in half or ():
        summand = f"{gene.weight!r} * {gene.name}(state, action, next_state)"
        terms.setdefault(groups.get(gene.name, gene.name), []).append(summand)
    for name, summands in terms.items():
        lines += _term(name, summands)
    head = ["def compute_reward(state, action, next_state):", "    terms = {"]
    return "\n".join([*head, *lines, "    }", "    return sum(terms.values()), terms"])


def _term(name: str, summands: Sequence[str]) -> list[str]:
    """The lines of a term of the reward."""
    line = f'        "{name}": {" + ".join(summands)},'
    if len(summands) == 1 or len(line) <= _WIDTH:
        return [line]
    first, *others = summands
    return [f'        "{name}": (', f"            {first}", *(f"            + {s}" for s in others), "        ),"]


def _genes(part: Part, entry: ast.FunctionDef, functions: set[str]) -> list[tuple[str, Gene]] | None:
    """The genes of a function in the genome's form, each after its term's name, or None if it is in another."""
    parameters = [a.arg for a in entry.args.args]
    if len(parameters) != {"observation": 1, "reward": 3}[part] or entry.decorator_list or entry.args.defaults:
        return None
    body = [s for s in entry.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    local: dict[str, ast.expr] = {}
    for statement in body[:-1]:
        if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
            return None
        target = statement.targets[0]
        if not isinstance(target, ast.Name) or target.id in local:
            return None
        local[target.id] = statement.value
    if not body or not isinstance(body[-1], ast.Return) or body[-1].value is None:
        return None
    items = (_concatenated if part == "observation" else _summed)(body[-1].value, local)
    if not items:
        return None
    genes = [(term, _gene(item, parameters, functions)) for term, item in items]
    found = [(term, gene) for term, gene in genes if gene is not None]
    return found if len(found) == len(genes) == len({gene.name for _, gene in found}) else None


def _concatenated(value: ast.expr, local: Mapping[str, ast.expr]) -> list[tuple[str, ast.expr]] | None:
    """The parts of `jnp.concatenate([...])`."""
    if not (isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords):
        return None
    if ast.unparse(value.func) not in ("jnp.concatenate", "jnp.hstack", "jax.numpy.concatenate", "jax.numpy.hstack"):
        return None
    parts = value.args[0]
    parts = local.get(parts.id, parts) if isinstance(parts, ast.Name) else parts
    if not isinstance(parts, ast.List | ast.Tuple) or len(local) > 1:
        return None
    return [("", part) for part in parts.elts]


def _summed(value: ast.expr, local: Mapping[str, ast.expr]) -> list[tuple[str, ast.expr]] | None:
    """The summands of the values of `sum(terms.values()), terms`, each after its key."""
    if not (isinstance(value, ast.Tuple) and len(value.elts) == 2 and len(local) == 1):
        return None
    ((name, terms),) = local.items()
    if ast.unparse(value) != f"(sum({name}.values()), {name})" or not isinstance(terms, ast.Dict):
        return None
    keys = [str(key.value) if isinstance(key, ast.Constant) else "" for key in terms.keys]
    named = [key for key in keys if key]
    if len({*named}) < len(named):  # Python keeps the last of equal keys
        return None
    pairs = zip((key if key.isidentifier() else "" for key in keys), terms.values, strict=True)
    return [(key, summand) for key, value in pairs for summand in _summands(value)]


def _summands(value: ast.expr) -> list[ast.expr]:
    """The parts of a sum, in order."""
    found: list[ast.expr] = []
    while isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        found.append(value.right)
        value = value.left
    return [value, *reversed(found)]


def _gene(item: ast.expr, parameters: list[str], functions: set[str]) -> Gene | None:
    """`f(state)`, `2.0 * f(state)` or `f(state) * 2.0`."""
    weight = 1.0
    if isinstance(item, ast.BinOp) and isinstance(item.op, ast.Mult):
        sides = (item.left, item.right) if isinstance(item.right, ast.Call) else (item.right, item.left)
        try:
            literal = ast.literal_eval(sides[0])
            if isinstance(literal, bool) or not isinstance(literal, int | float):
                return None
            weight, item = float(literal), sides[1]
        except (ValueError, TypeError, OverflowError):
            return None
        if not math.isfinite(weight):  # could be read, but not written
            return None
    if not (isinstance(item, ast.Call) and isinstance(item.func, ast.Name) and not item.keywords):
        return None
    called_with = [a.id for a in item.args if isinstance(a, ast.Name)]
    if item.func.id not in functions or called_with != parameters or len(item.args) != len(parameters):
        return None
    return Gene(item.func.id, weight)
