"""How a user wrote the parts of a task: messages name a part as its user did."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Wording:
    """What messages call the methods of a task: by their names where the user wrote a class, and by the arguments of
    the function that made the task where that was given functions.

    Attributes:
        names: what the user calls a method, where that is not its name.
        methods: the user wrote methods, which have `self`; else functions and objects, given as arguments.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    methods: bool = True

    def name(self, method: str) -> str:
        """What the user calls a method."""
        return self.names.get(method, method)

    def of_metric(self, method: str) -> str:
        """What the user calls a method of the metric: `score().update`, `score.update`."""
        return f"{self.name('score')}{'()' if self.methods else ''}.{method}"

    def signature(self, name: str, given: Collection[str]) -> str:
        """How a method is defined: `step(self, state, action)`, `step(state, action)`."""
        return f"{name}({', '.join(('self', *given) if self.methods else given)})"

    def request(self, method: str, given: Collection[str]) -> str:
        """The words that ask for a method: `write sparse_reward(self, ...)`, `give reward(...)`."""
        return f"{'write' if self.methods else 'give'} {self.signature(self.name(method), given)}"


OF_A_CLASS = Wording()


def wording_of(task: object) -> Wording:
    """The wording of a task, that of a class where it says nothing else."""
    found = getattr(task, "wording", None)
    return found if isinstance(found, Wording) else OF_A_CLASS
