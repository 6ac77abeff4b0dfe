"""A program that passed its checks: two functions to replay, and what is known about them."""

from __future__ import annotations

import dataclasses
import hashlib
import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.errors import InvalidSetting, UserError
from jaxreward.formatting import printable
from jaxreward.programs.constants import FloatLiteral, LiteralError, write_back
from jaxreward.programs.encode import trace
from jaxreward.programs.flops import Cost, measure
from jaxreward.programs.interpret import replay, shapes
from jaxreward.programs.limits import Limits
from jaxreward.programs.spec import Spec
from jaxreward.programs.tape import Tape, bind, count, digests, reads
from jaxreward.records import ProgramSummary, Verdict
from jaxreward.sentences import marked
from jaxreward.views import view_shapes


class ProgramRejected(UserError):
    """A program that did not pass its checks.

    Attributes:
        name: its label, such as the name of its file; may be a `Sentence`.
        verdict: that of the checks.
        failure: the failure in it: stage, line, message and hint.
    """

    def __init__(self, name: str, verdict: Verdict) -> None:
        assert verdict.failure is not None
        super().__init__(f"{marked(name)} is rejected: {verdict.failure}")
        self.name, self.verdict, self.failure = name, verdict, verdict.failure


@dataclass(frozen=True)
class Skeleton:
    """A reward with its constants as further inputs: programs that differ in these alone share it.

    Attributes:
        tape: that of the reward, whose inputs are followed by a float32 scalar for each constant.
        constants: where they stand in the source, and their values.
    """

    tape: Tape = field(repr=False)
    constants: tuple[FloatLiteral, ...]


@dataclass(frozen=True)
class Half:
    """One function of a program as a tape; `terms` names the outputs of a reward after the first, all of `debug`."""

    tape: Tape
    terms: tuple[str, ...] = ()
    skeleton: Skeleton | None = None


@dataclass(frozen=True, repr=False)
class Program:
    """An interface: what an agent sees and what it is rewarded for.

    Attributes:
        source: the Python text that was checked; empty for a task's defaults.
        name: a label, such as the name of its file.
        spec: the inputs it reads.
        summary: digest, sizes, costs, and the inputs that reach its outputs.
        skeleton: of its reward, where that has constants that can be inputs.
        debug: its `debug`, where it defines one and its check was asked for that. The digest knows nothing of it.
    """

    source: str = field(repr=False)
    name: str
    spec: Spec = field(repr=False)
    summary: ProgramSummary
    observation_tape: Tape = field(repr=False)
    reward_tape: Tape = field(repr=False)
    skeleton: Skeleton | None = field(default=None, repr=False)
    debug: Half | None = field(default=None, repr=False)

    @property
    def digest(self) -> str:
        return self.summary.digest

    @property
    def terms(self) -> tuple[str, ...]:
        return self.summary.terms

    @property
    def observation_size(self) -> int:
        return self.summary.observation_size

    def __repr__(self) -> str:
        sizes = f"{self.observation_size} features, terms {', '.join(self.terms)}"
        return printable(f"Program({self.name!r}: {sizes}; {self.summary.operations} operations, {self.digest[:12]})")

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p><pre>{html.escape(printable(self.source))}</pre>"

    def __getstate__(self) -> dict[str, Any]:
        """The fields, and not the functions that were made of them."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    def __hash__(self) -> int:
        return hash(self.summary.digest)

    @cached_property
    def constants(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        """The values of the skeleton's constants, float32 (k,); none without a skeleton."""
        known = self.skeleton.constants if self.skeleton else ()
        return np.array([c.value for c in known], np.float32)

    @cached_property
    def structure(self) -> tuple[str, str]:
        """Digests of what the observation computes, and of what the reward does whatever its constants are."""
        state, transition = self.spec.labels()
        (seen,) = digests(self.observation_tape, state)
        tape = self.skeleton.tape if self.skeleton else self.reward_tape
        named = [f"constant {i}" for i in range(len(tape["ins"]) - len(transition))]
        paid = digests(tape, [*transition, *named])
        return seen, hashlib.sha256("|".join(["skeleton", *paid]).encode()).hexdigest()

    def with_constants(self, values: Sequence[float]) -> Program:
        """The same skeleton with other values of its constants, in the source too, and without `debug`. It was not
        checked: before it is kept, check its source.

        Raises:
            InvalidSetting: another number of values, or one that cannot take the place of a literal.
        """
        if self.skeleton is None:
            raise InvalidSetting(f"{self.name} has no constants", "constants")
        known = self.skeleton.constants
        try:
            source, moved = write_back(self.source, known, values)
        except LiteralError as error:
            raise InvalidSetting(f"{self.name}: {error}", "constants") from error
        written = np.array([c.value for c in moved], np.float32)
        digest = hashlib.sha256("|".join([*self.structure, written.tobytes().hex()]).encode()).hexdigest()
        summary = self.summary.model_copy(update={"digest": digest})
        skeleton = Skeleton(self.skeleton.tape, moved)
        tape = bind(skeleton.tape, list(written))
        return dataclasses.replace(
            self, source=source, summary=summary, skeleton=skeleton, reward_tape=tape, debug=None
        )  # fmt: skip

    @cached_property
    def _observe(self) -> Callable[..., list[Any]]:
        return replay(self.observation_tape)

    @cached_property
    def _reward(self) -> Callable[..., list[Any]]:
        return replay(self.reward_tape)

    def observe(self, view: Any) -> jax.Array:
        """The observation of a view, float32 (d,); pure, for jit and vmap.

        Raises:
            InvalidView: a view of another task.
        """
        return jnp.asarray(self._observe(*self.spec.flatten(view))[0])

    def reward(self, view: Any, action: Any, next_view: Any) -> tuple[jax.Array, jax.Array]:
        """The reward of a transition, float32 (), and its terms, float32 (k,); pure, for jit and vmap.

        Raises:
            InvalidView: views or an action of another task.
        """
        arrays = [*self.spec.flatten(view), self.spec.act(action), *self.spec.flatten(next_view)]
        total, *terms = self._reward(*arrays)
        return jnp.asarray(total), jnp.stack(terms)

    @staticmethod
    def default(task: Any, name: str = "default") -> Program:
        """The task's own observation and sparse reward, as a program like any other."""
        spec = Spec.of(task)
        observation, reward = default_observation(task, spec), default_reward(task, spec)
        return assemble("", name, spec, observation, reward, reward_nodes=0)

    @staticmethod
    def dense(task: Any, name: str = "dense") -> Program:
        """The task's own observation with the dense reward that a person made for it.

        Raises:
            InvalidSetting: a task that has none.
        """
        if not hasattr(task, "dense_reward"):
            message = f"{task.name} has no dense reward by a person; compare with its sparse one"
            raise InvalidSetting(message, "baselines", "task")
        spec = Spec.of(task)
        observation, reward = default_observation(task, spec), default_reward(task, spec, "dense")
        return assemble("", name, spec, observation, reward, reward_nodes=0)

    @staticmethod
    def own(task: Any) -> list[Program]:
        """The task's own observation with its sparse reward, and with the dense one where there is one."""
        return [Program.default(task), *([Program.dense(task)] if hasattr(task, "dense_reward") else [])]


def default_observation(task: Any, spec: Spec) -> Half:
    """The task's default observation as a tape, traced here: a task is trusted."""
    view, labels, structs = _example(task), spec.labels()[0], spec.structs()[0]

    def function(*arrays: Any) -> list[Any]:
        value = task.default_observation(jax.tree.unflatten(view, arrays))
        if value.ndim != 1 or value.dtype != jnp.float32:
            raise UserError(f"default_observation must return float32 (d,), got {value.dtype} {value.shape}")
        return [value]

    return Half(trace(function, structs, labels, Limits()))


def default_reward(task: Any, spec: Spec, kind: Literal["sparse", "dense"] = "sparse") -> Half:
    """The task's sparse or dense reward as a tape with the one term `kind`."""
    own = task.sparse_reward if kind == "sparse" else task.dense_reward
    view, labels, structs, n = _example(task), spec.labels()[1], spec.structs()[1], len(spec.leaves)

    def function(*arrays: Any) -> list[Any]:
        state, next_state = jax.tree.unflatten(view, arrays[:n]), jax.tree.unflatten(view, arrays[n + 1 :])
        value = jnp.asarray(own(state, arrays[n], next_state))
        if value.shape != ():
            raise UserError(f"{kind}_reward must return a scalar, got shape {value.shape}")
        value = value.astype(jnp.float32)
        return [value, value]

    return Half(trace(function, structs, labels, Limits()), (kind,))


def _example(task: Any) -> Any:
    return jax.tree.structure(view_shapes(task))


def assemble(
    source: str, name: str, spec: Spec, observation: Half, reward: Half, reward_nodes: int, cost: Cost | None = None,
    debug: Half | None = None,
) -> Program:  # fmt: skip
    """A program from its halves, which must be checked tapes.

    Args:
        cost: of both tapes, if known.
    """
    if cost is None:
        cost = cost_of(observation.tape) + cost_of(reward.tape)
    labels = spec.labels()
    summary = ProgramSummary(
        digest=digest_of(spec, observation.tape, reward.tape),
        observation_size=observation_size(observation.tape),
        terms=reward.terms,
        reward_nodes=reward_nodes,
        operations=count(observation.tape) + count(reward.tape),
        flops=cost.flops,
        elements=cost.elements,
        observation_reads=_names(labels[0], observation.tape),
        reward_reads=_names(labels[1], reward.tape),
    )
    return Program(source, name, spec, summary, observation.tape, reward.tape, reward.skeleton, debug)


def digest_of(spec: Spec, observation: Tape, reward: Tape) -> str:
    """What a program computes, as a digest.

    Names, the order of statements, dead code and a + b for b + a leave no trace in it. The terms'
    values are part of it, in any order and without their names: a reward that reports other terms
    trains the same agent, but the feedback of one must not be shown for the other.
    """
    state, transition = spec.labels()
    (seen,), (total, *terms) = digests(observation, state), digests(reward, transition)
    return hashlib.sha256("|".join(["program", seen, total, *sorted(terms)]).encode()).hexdigest()


def cost_of(tape: Tape, limits: Limits | None = None) -> Cost:
    return measure(jax.make_jaxpr(replay(tape, limits))(*shapes(tape)), limits or Limits())


def observation_size(tape: Tape) -> int:
    return jax.eval_shape(replay(tape), *shapes(tape))[0].shape[0]


def _names(labels: list[str], tape: Tape) -> tuple[str, ...]:
    reached = set().union(*reads(tape))
    return tuple(labels[i] for i in sorted(reached))
