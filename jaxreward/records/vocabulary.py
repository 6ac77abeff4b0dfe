"""What programs are built from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any, Literal

from pydantic import Field, model_validator

from jaxreward.function_source import fragment_text
from jaxreward.function_source.definitions import source_of
from jaxreward.function_source.statements import Statement, fresh_name
from jaxreward.records.base import Record


class Fragment(Record):
    """A named piece of vocabulary: one top-level function, as readable source.

        Fragment(name="near", kind="term", source="def near(state, action, next_state): ...")
        Fragment(near)  # the same of a function

    Of a function, `name` and `doc` are its own, `kind` follows from its parameters, and `source` is its text with the
    constants and helper functions that it needs inside (`jaxreward.function_source`); the rest is given by name.

    A `feature` is `def name(state)` returning a float32 vector of `size` values of order one; a
    `term` is `def name(state, action, next_state)` returning a scalar. `scales` are the
    multipliers worth trying first; `tags` group fragments (`milestone`, `shaping`, `penalty`,
    `relative`, `local_view`, ..., and the objects they speak of). `weight` is how likely the genetic
    proposer is to draw it, against others of 1.
    """

    name: str
    kind: Literal["feature", "term"]
    source: str
    size: int = 1
    scales: tuple[float, ...] = (1.0,)
    tags: tuple[str, ...] = ()
    doc: str = ""
    weight: float = Field(default=1.0, gt=0.0)

    def __init__(self, function: Callable[..., Any] | None = None, /, **fields: Any) -> None:
        """The fields, or those of a function.

        Raises:
            UnreadableFunction: a function that cannot be written out as text.
        """
        if function is not None:
            fields = {**asdict(fragment_text(function)), **fields}
        super().__init__(**fields)


class Vocabulary(Record):
    """What a genetic proposer may build programs from.

    `constants` maps a module-level name to its literal source; `helpers` maps a function name to
    its source. Fragments and helpers refer to both by name; a program carries only what it uses. `discount` is the name
    of the constant by which potentials are written, if any: a search gives it the learner's discount, since potentials
    of another one can be farmed (Ng et al. 1999).
    """

    constants: dict[str, str] = Field(default_factory=dict)
    helpers: dict[str, str] = Field(default_factory=dict)
    fragments: tuple[Fragment, ...] = ()
    discount: str = Field(default="", exclude_if=lambda name: not name)

    @model_validator(mode="after")
    def _check(self) -> Vocabulary:
        if self.discount and self.discount not in self.constants:
            raise ValueError(f"discount names '{self.discount}', which is none of the constants: add it to them")
        return self

    def discounted(self, discount: float) -> Vocabulary:
        """With `discount` in the potentials."""
        if not self.discount:
            return self
        constants = self.constants | {self.discount: repr(round(float(discount), 6))}
        return self.model_copy(update={"constants": constants})

    def source(self, names: Iterable[str]) -> str:
        """The fragments called `names` as Python text, with the helpers and constants that they need, each after what
        it needs itself. It begins with the imports of `jax` and `jnp`; add `get_observation` or `compute_reward` that
        calls them, and it is a program.

        Raises:
            UnknownName: no fragment of a name, with the nearest one.
        """
        return source_of(self, names)

    @property
    def texts(self) -> dict[str, str]:
        """The text of every part by its name."""
        return {**self.constants, **self.helpers, **{fragment.name: fragment.source for fragment in self.fragments}}

    def differing(self, other: Vocabulary) -> tuple[str, ...]:
        """Names of parts that are another part's in `other`, sorted."""
        mine, others = self.texts, other.texts
        return tuple(sorted(name for name in mine.keys() & others.keys() if mine[name] != others[name]))

    def apart_from(self, other: Vocabulary, names: Iterable[str] | None = None) -> Vocabulary:
        """With new names for the parts that are called `names`, by default those that `other` has another of; no new
        name is one of `other`."""
        taken, new = {*self.texts, *other.texts}, dict[str, str]()
        for name in self.differing(other) if names is None else sorted(names):
            new[name] = fresh_name(name, taken)
            taken.add(new[name])
        if not new:
            return self

        def renamed(text: str) -> str:  # the names of the module alone, no field of the same name
            return Statement(text).renamed(new).text

        def called(name: str) -> str:
            return new.get(name, name)

        return Vocabulary(
            constants={called(name): text for name, text in self.constants.items()},
            helpers={called(name): renamed(text) for name, text in self.helpers.items()},
            fragments=tuple(
                f.model_copy(update={"name": called(f.name), "source": renamed(f.source)}) for f in self.fragments
            ),
            discount=called(self.discount),
        )
