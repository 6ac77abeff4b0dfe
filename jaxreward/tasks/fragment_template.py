"""Templates of fragments, from which the vocabulary of a task is made."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Literal, NamedTuple

from jaxreward.records import Fragment, Subgoal, Subgoals, Vocabulary

SHAPES = """
def length(vector):
    return jnp.sqrt(jnp.sum(vector**2) + 1e-12)


def bell(x, width):
    return jnp.exp(-((x / width) ** 2))
"""
"""Helpers of every robot's vocabulary: a length with a gradient at zero, and a bell curve."""


DONE = (5.0, 10.0, 2.0)
"""Scales of what pays for having done something."""


class Template(NamedTuple):
    """A fragment with placeholders: `lines` is the body after the docstring, the last one returned."""

    name: str
    tags: str
    doc: str
    lines: tuple[str, ...] | str
    size: int = 1
    scales: tuple[float, ...] = (1.0,)

    def source(self, kind: Literal["feature", "term"]) -> str:
        """The function's text, placeholders included."""
        lines = (self.lines,) if isinstance(self.lines, str) else self.lines
        arguments = "state" if kind == "feature" else "state, action, next_state"
        body = [f'"""{self.doc}"""', *lines[:-1], f"return {lines[-1]}"]
        return "\n".join([f"def {self.name}({arguments}):", *("    " + line for line in body)])


def make_vocabulary(
    features: Iterable[Template], terms: Iterable[Template], helpers: str = "", constants: dict[str, str] | None = None
) -> Vocabulary:
    """The vocabulary of templates without placeholders; `helpers` is the text of the functions that they call, and a
    constant `GAMMA` the learner's discount."""

    def fragment(template: Template, kind: Literal["feature", "term"]) -> Fragment:
        return Fragment(
            name=template.name, kind=kind, source=template.source(kind), size=template.size, scales=template.scales,
            tags=tuple(template.tags.split()), doc=template.doc,
        )  # fmt: skip

    fragments = [*(fragment(p, "feature") for p in features), *(fragment(p, "term") for p in terms)]
    return Vocabulary(
        constants=constants or {}, helpers=functions_of(helpers), fragments=tuple(fragments),
        discount="GAMMA" if "GAMMA" in (constants or {}) else "",
    )  # fmt: skip


class Stage(NamedTuple):
    """A subgoal as `make_subgoals` takes it: its words, features that say where to go, terms that pay for the way made
    and take it back, and the name of a function of states that is 1 where it is done and else 0, in words too."""

    words: str
    directions: tuple[str, ...]
    approaches: tuple[str, ...]
    done: str = ""
    doc: str = ""


def make_subgoals(
    stages: Iterable[Stage],
    reward: Template,
    helpers: str,
    scales: tuple[float, ...] = DONE,
    terms: Iterable[Template] = (),
) -> Subgoals:
    """Subgoals of a task that pays `reward`, a term; of stages that can be seen to be done with a flag and a potential.

    Args:
        helpers: the text of functions that the vocabulary lacks.
        scales: of the potentials.
        terms: further ones that the vocabulary lacks.
    """
    chain, flags, potentials = list[Subgoal](), list[Template](), list[Template]()
    for words, directions, approaches, done, doc in stages:
        flag, potential = (f"{done}_flag",) if done else (), (f"{done}_potential",) if done else ()
        chain.append(Subgoal(
            words=words, directions=directions, flags=flag, approaches=approaches, completions=potential
        ))  # fmt: skip
        flags += [Template(name, "flag", f"Whether {doc}.", f"{done}(state)[None]") for name in flag]
        potentials += [
            Template(name, "potential", f"Potential 1 while {doc}: takes back what it paid.",
                     f"GAMMA * {done}(next_state) - {done}(state)", 1, scales)
            for name in potential
        ]  # fmt: skip
    vocabulary = make_vocabulary(flags, (*terms, *potentials, reward), helpers, {"GAMMA": "0.99"})
    return Subgoals(chain=tuple(chain), reward=reward.name, vocabulary=vocabulary)


def functions_of(source: str) -> dict[str, str]:
    """The text of every function of a module, by name."""
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return {node.name: ast.get_source_segment(source, node) or "" for node in functions}
