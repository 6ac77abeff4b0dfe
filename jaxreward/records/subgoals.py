"""What leads to a task's goal, as data: subgoals, by the names of the fragments that are about them."""

from __future__ import annotations

from collections.abc import Container, Iterator

from jaxreward.records.base import Record
from jaxreward.records.vocabulary import Fragment, Vocabulary

FEATURES, TERMS = ("directions", "flags"), ("approaches", "completions", "events")
"""The roles of fragments in a subgoal: of features, and of terms."""


class Subgoal(Record):
    """One thing to be done on the way to a task's goal; every field but `words` has names of fragments.

    Attributes:
        words: what is to be done, in a few words.
        directions: features that say where to go for it.
        flags: features that say whether it is done, or can be.
        approaches: terms that pay for coming nearer to it, and take that back.
        completions: potentials that are 1 while it is done.
        events: terms that pay when it is done.
    """

    words: str
    directions: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    approaches: tuple[str, ...] = ()
    completions: tuple[str, ...] = ()
    events: tuple[str, ...] = ()

    def names(self) -> tuple[str, ...]:
        """Of all fragments."""
        return tuple(name for role in (*FEATURES, *TERMS) for name in getattr(self, role))


class Subgoals(Record):
    """The way to a task's goal.

    Attributes:
        chain: the subgoals, each after those that it needs.
        reward: the term that pays as the task's own sparse reward does; empty where there is none.
        vocabulary: what the subgoals name and the task's vocabulary lacks.
        described: whether the task's description says them, so that language models are not told again.
    """

    chain: tuple[Subgoal, ...] = ()
    reward: str = ""
    vocabulary: Vocabulary = Vocabulary()
    described: bool = False

    def joined(self, own: Vocabulary) -> Vocabulary:
        """The task's vocabulary with that of the subgoals."""
        more = self.vocabulary
        have = {fragment.name for fragment in own.fragments}
        constants = more.constants | own.constants
        if more.discount:  # the task's own may have it without saying what it is
            constants[more.discount] = more.constants[more.discount]
        new: tuple[Fragment, ...] = tuple(fragment for fragment in more.fragments if fragment.name not in have)
        return Vocabulary(
            constants=constants, helpers=more.helpers | own.helpers,
            fragments=(*own.fragments, *new), discount=own.discount or more.discount,
        )  # fmt: skip

    def within(self, known: Container[str]) -> Subgoals:
        """With the names of fragments among `known` alone."""

        def kept(subgoal: Subgoal) -> Subgoal:
            roles = {role: tuple(n for n in getattr(subgoal, role) if n in known) for role in (*FEATURES, *TERMS)}
            return subgoal.model_copy(update=roles)

        reward = self.reward if self.reward in known else ""
        return self.model_copy(update={"chain": tuple(map(kept, self.chain)), "reward": reward})

    def of(self, vocabulary: Vocabulary) -> Subgoals:
        """With what another vocabulary than the task's has of them."""
        own = self.model_copy(update={"vocabulary": Vocabulary()})
        return own.within({fragment.name for fragment in vocabulary.fragments})

    def named(self) -> Iterator[tuple[str, str, str]]:
        """Every name with its role, after the words of the subgoal that has it; those of the reward are empty."""
        for subgoal in self.chain:
            for role in (*FEATURES, *TERMS):
                yield from ((subgoal.words, role, name) for name in getattr(subgoal, role))
        if self.reward:
            yield "", "reward", self.reward
