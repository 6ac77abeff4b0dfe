"""The functions that the programs of a search share: GRACE's reward library (Figure 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from jaxreward.function_source.normal_form import Definition, Helper, helpers_of
from jaxreward.function_source.scopes import fresh_name
from jaxreward.records.candidate import Result

LEAST_SHARED = 2
"""Programs that have a function that is said to be shared."""

_COPIES = "genetic"
"""The proposer whose programs do not count: their functions are copied from a vocabulary, and nobody wrote them."""


class GenerationCount(NamedTuple):
    """The different functions in the scored programs of a generation: `new`, or `reused` from an earlier one."""

    generation: int
    new: int
    reused: int


@dataclass(frozen=True)
class SharedFunction:
    """A function in scored programs, by its normal form (`function_source.normal_form`).

    Attributes:
        name: the most frequent of its names; of two functions with one name the second has a number.
        source: its text in the best of these programs, after the functions and constants that it needs.
        programs: how many have it, and of the better half of all programs, how many `good` ones.
        generation: in which it occurred first.
        helper: as the best of the programs has it.
    """

    name: str
    source: str
    programs: int
    good: int
    generation: int
    helper: Helper


@dataclass(frozen=True)
class FunctionLibrary:
    """Functions that rewards call, over the candidates of a search; `of` counts them.

    Attributes:
        functions: those of all programs, the ones of most programs first.
        generations: those with a scored program, in their order.
    """

    functions: tuple[SharedFunction, ...]
    generations: tuple[GenerationCount, ...]

    @staticmethod
    def of(results: Iterable[Result]) -> FunctionLibrary:
        """The library of the programs that have a score.

        A program that was scored again, e.g. on more data, is one, with its last score. Programs of the genetic
        proposer do not count.
        """
        programs = _programs(results)
        merits = sorted(map(_merit, programs), reverse=True)
        good = merits[(len(merits) - 1) // 2] if merits else 0.0
        uses = dict[str, list[tuple[Result, Helper]]]()
        for result in programs:
            for helper in helpers_of(result.candidate.source):
                uses.setdefault(helper.key, []).append((result, helper))
        found = dict[str, SharedFunction]()
        for having in sorted(uses.values(), key=len, reverse=True):
            name = fresh_name(Counter(helper.name for _, helper in having).most_common(1)[0][0], found)
            _, helper = max(having, key=lambda pair: _merit(pair[0]))
            found[name] = SharedFunction(
                name, _joined(helper.definitions), len(having), sum(_merit(result) >= good for result, _ in having),
                min(result.candidate.generation for result, _ in having), helper,
            )  # fmt: skip
        return FunctionLibrary(tuple(found.values()), _counted(programs))

    @cached_property
    def shared(self) -> tuple[SharedFunction, ...]:
        """Functions of several programs."""
        return tuple(f for f in self.functions if f.programs >= LEAST_SHARED)

    def texts(self, *, besides: str = "", most: int = 6, lines: int = 24, characters: int = 2_400) -> tuple[str, ...]:
        """The sources of functions that several good programs have, the most frequent first.

        Args:
            besides: a program whose functions are left out.
            most, characters: functions, and characters of all.
            lines: of one function with what it needs; a longer one is left out.
        """
        owned = helpers_of(besides)
        keys, known = {helper.key for helper in owned}, {d[:2] for helper in owned for d in helper.definitions}
        found, names = list[str](), set[str]()
        for function in sorted(self.functions, key=lambda f: -f.good):
            fresh = [d for d in function.helper.definitions if d[:2] not in known]
            text, bound = _joined(fresh), {name for d in fresh for name in d.names}
            if function.good < LEAST_SHARED or len(found) == most:
                break
            if function.helper.key in keys or bound & names or text.count("\n") >= lines or len(text) > characters:
                continue
            characters -= len(text)
            keys.update(d.key for d in fresh)
            known.update(d[:2] for d in fresh)
            names |= bound
            found.append(f"# in {function.programs} programs\n{text}")
        return tuple(found)


def _merit(result: Result) -> float:
    assert result.score is not None
    return result.score.merit


def _programs(results: Iterable[Result]) -> list[Result]:
    """Those that count, each once."""
    known = dict[str, Result]()
    for result in results:
        candidate = result.candidate
        if result.score is not None and candidate.proposer != _COPIES:
            digest = candidate.summary.digest if candidate.summary else candidate.id
            known[digest] = known.get(digest, result).model_copy(update={"score": result.score})
    return list(known.values())


def _counted(programs: Sequence[Result]) -> tuple[GenerationCount, ...]:
    found, known = list[GenerationCount](), set[str]()
    for generation in sorted({result.candidate.generation for result in programs}):
        sources = [r.candidate.source for r in programs if r.candidate.generation == generation]
        keys = {helper.key for source in sources for helper in helpers_of(source)}
        found.append(GenerationCount(generation, len(keys - known), len(keys & known)))
        known |= keys
    return tuple(found)


def _joined(definitions: Sequence[Definition]) -> str:
    return "\n\n\n".join(d.text for d in definitions)
