"""Mistakes in a task, its vocabulary included, that can be found before anything is trained on it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from jaxreward.errors import UserError
from jaxreward.programs import Checker
from jaxreward.programs.guard import ENTRIES
from jaxreward.programs.limits import Limits
from jaxreward.programs.spec import Spec
from jaxreward.programs.target import Target
from jaxreward.proposers.genetic.genome import Gene, Genome, write
from jaxreward.proposers.genetic.lexicon import Lexicon
from jaxreward.records import Failure, Fragment, Verdict, Vocabulary
from jaxreward.tasks import Finding, InvalidTask, Location, SourceLocator, mistakes_in, require_none
from jaxreward.tasks.documentation import instruction_of, subgoals_of
from jaxreward.views import view_shapes

_AT_ONCE = 12
"""Fragments of a kind that are checked as one program: each alone only where that is rejected."""

_TELLING = 5
"""Characters of a line that is looked for in a file: shorter ones stand anywhere."""

_sound = dict[int, Any]()
"""Tasks whose vocabulary has no mistake."""


def check_task(task: Any, *, checker: Checker | None = None, unsafe_no_sandbox: bool = False) -> tuple[Finding, ...]:
    """The mistakes in a task, those that others follow from first; none in a sound one.

    Its methods are traced, some steps with random actions are computed, and every fragment of its vocabulary is checked
    as a program is. Takes some seconds, on a simulation of bodies up to half a minute.

    Args:
        task: an object with the protocol `Task`, or one that is meant to have it.
        checker: to check fragments with; one is started, and ended, if omitted.
        unsafe_no_sandbox: check fragments without the sandbox, on systems that have none.

    Returns:
        Each mistake with the file and the line that it stands in, as far as they are known. `str()` gives a sentence.
    """
    found = mistakes_in(task)
    if not found:
        return _of_programs(task, task, _vocabulary_of(task), checker, unsafe_no_sandbox)
    # Fragments read the view alone: if that is sound, their mistakes are reported with the others.
    if not _is_seen(task):
        return found
    return (*found, *_of_programs(task, _Still(task), _vocabulary_of(task), checker, unsafe_no_sandbox))


def require_vocabulary(
    task: Any, given: Vocabulary | None = None, *, checker: Checker | None = None, unsafe_no_sandbox: bool = False
) -> None:
    """Require that programs can read the views of a sound task, and use every fragment of its vocabulary, whatever
    the states are. A task of this package is taken to be so; any other is examined once.

    Args:
        given: the vocabulary, in place of the task's own.

    Raises:
        UserError: they cannot: the first mistake, and how many more there are.
    """
    if given is None:

        def found_in_own() -> tuple[Finding, ...]:
            return _of_programs(task, _Still(task), _vocabulary_of(task), checker, unsafe_no_sandbox)

        require_none(task, _sound, found_in_own)
    elif found := _of_programs(task, _Still(task), given, checker, unsafe_no_sandbox):
        raise InvalidTask(found)


def _vocabulary_of(task: Any) -> Vocabulary:
    """The task's own, with that of its subgoals where nothing is wrong with them."""
    try:
        return subgoals_of(task).joined(task.vocabulary())
    except (Exception, SystemExit):  # which `_wrong` reports
        return task.vocabulary()


def _is_seen(task: Any) -> bool:
    """Whether a task with mistakes has views that programs can read, and defaults for what a program lacks."""
    try:
        spec = Spec.of(task)
        view = view_shapes(task)
        seen = jax.eval_shape(task.default_observation, view)
        paid = jax.eval_shape(task.sparse_reward, view, spec.action.struct(), view)
        return seen.ndim == 1 and paid.shape == () and isinstance(task.vocabulary(), Vocabulary)
    except (Exception, SystemExit):
        return False


def _of_programs(
    task: Any, judged_on: Any, vocabulary: Vocabulary, checker: Checker | None, unsafe_no_sandbox: bool
) -> tuple[Finding, ...]:
    """What keeps programs from being written for a task; `judged_on` is what the checker is given for it."""
    author = SourceLocator(task)
    found = (*_unreadable_views(task, author), *_unreadable_texts(vocabulary, task, author))
    found += (*_wrong(instruction_of, "instruction", task, author), *_wrong(subgoals_of, "subgoals", task, author))
    if found or not vocabulary.fragments:
        return found
    if checker is not None:
        return tuple(_rejected(vocabulary, task, judged_on, author, checker))
    with Checker(unsafe_no_sandbox=unsafe_no_sandbox, workers=1) as own:
        return tuple(_rejected(vocabulary, task, judged_on, author, own))


def _unreadable_views(task: Any, author: SourceLocator) -> Iterator[Finding]:
    """Mistakes in the views and transitions that programs read."""
    try:
        spec = Spec.of(task)
    except UserError as error:
        yield Finding(str(error), *author.line_of_result(task.view))
        return
    if hasattr(task, "sample_transitions"):
        try:
            Target(task, spec, Limits().magnitude).samples(None)
        except Exception as error:
            said = error if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            yield Finding(f"`sample_transitions` is of no use: {said}", *author.line_of_result(task.sample_transitions))


def _wrong(of: Callable[[Any], Any], method: str, task: Any, author: SourceLocator) -> Iterator[Finding]:
    """What is wrong with an optional method of a task, whose result `of` gives."""
    try:
        of(task)
    except (Exception, SystemExit) as error:
        said = str(error) if isinstance(error, UserError) else f"`{method}()` fails: {type(error).__name__}: {error}"
        given = getattr(task, method)
        yield Finding(said, *(author.line_of_result(given) if callable(given) else author.line_of_name(method)))


# ---- the texts


def _unreadable_texts(vocabulary: Vocabulary, task: Any, author: SourceLocator) -> Iterator[Finding]:
    """Mistakes in the texts of a vocabulary."""
    texts = [(f"the constant '{name}'", name, f"{name} = {text}") for name, text in vocabulary.constants.items()]
    texts += [(f"the helper '{name}'", name, text) for name, text in vocabulary.helpers.items()]
    texts += [(_called(f), f.name, f.source) for f in vocabulary.fragments]
    bound = Counter(name for _, name, _ in texts)
    for what, name, text in texts:
        try:
            body = ast.parse(text.strip()).body
        except (SyntaxError, ValueError) as error:
            line = text.strip().splitlines()[(getattr(error, "lineno", None) or 1) - 1 :][:1]
            said = getattr(error, "msg", None) or str(error)
            place = _place(text.strip(), "".join(line).strip(), name, task, author)
            yield Finding(f"{what} is not valid Python: {said}", *place)
            continue
        place = _place(text.strip(), "", name, task, author)
        node = body[0] if len(body) == 1 else None
        if what.startswith("the constant"):
            if not isinstance(node, ast.Assign):
                yield Finding(f"{what} must be one expression, such as 0.5", *place)
        elif not isinstance(node, ast.FunctionDef) or node.name != name:
            yield Finding(f"{what} must be the text of one function of that name: def {name}(...)", *place)
        if name in ENTRIES:
            yield Finding(f"{what} has the name of a function of a program: give it another", *place)
        elif bound[name] > 1:
            yield Finding(f"{what} has a name that another part of the vocabulary has: give each its own", *place)
            bound[name] = 0  # reported once


def _called(fragment: Fragment) -> str:
    return f"the {fragment.kind} '{fragment.name}'"


def _place(text: str, words: str, name: str, task: Any, author: SourceLocator) -> Location:
    """Where a line of a text of the vocabulary stands: the line itself, the text, its name, or what returns it."""
    for known in (words, words.removeprefix("return ")):
        if len(known) > _TELLING and (place := author.line_of_text(known)):
            return place
    return author.line_of_text(text) or author.line_of_text(name) or author.line_of_result(task.vocabulary)


# ---- fragments as programs


class _Still:
    """A task less its `step`, so that nothing is played: its programs are checked on random arrays."""

    def __init__(self, task: Any) -> None:
        self.action_space = task.action_space
        self.reset, self.view = task.reset, task.view
        self.default_observation, self.sparse_reward = task.default_observation, task.sparse_reward


def _rejected(
    vocabulary: Vocabulary, task: Any, judged_on: Any, author: SourceLocator, checker: Checker
) -> Iterator[Finding]:
    """Fragments that no program can use."""
    lexicon = Lexicon(vocabulary)
    kinds = [[f for f in vocabulary.fragments if f.kind == kind] for kind in ("feature", "term")]
    groups = [some[k : k + _AT_ONCE] for some in kinds for k in range(0, len(some), _AT_ONCE)]
    faults = _faults(groups, lexicon, judged_on, checker)
    alone = [[f] for group, fault in zip(groups, faults, strict=True) if fault is not None for f in group]
    for (fragment,), fault in zip(alone, _faults(alone, lexicon, judged_on, checker), strict=True):
        if fault is not None:
            lines = _program([fragment], lexicon).splitlines()
            returns = [line.strip() for line in fragment.source.splitlines() if line.strip().startswith("return ")]
            words = lines[fault.line - 1].strip() if fault.line and fault.line <= len(lines) else "".join(returns[-1:])
            yield Finding(
                _sentence(fragment, fault), *_place(fragment.source.strip(), words, fragment.name, task, author)
            )


def _sentence(fragment: Fragment, failure: Failure) -> str:
    hint = f": {failure.hint}" if failure.hint else ""
    return f"{_called(fragment)} of the vocabulary is rejected ({failure.stage}), {failure.message}{hint}"


def _faults(
    groups: Sequence[Sequence[Fragment]], lexicon: Lexicon, task: Any, checker: Checker
) -> list[Failure | None]:
    """Why a program of each group of fragments is rejected; None where it is not."""
    sources = [_program(group, lexicon) for group in groups]
    verdicts = [verdict for verdict, _ in checker.check_many(sources, task)] if sources else []
    real = not isinstance(task, _Still)
    return [_fault(group, verdict, real) for group, verdict in zip(groups, verdicts, strict=True)]


def _fault(fragments: Sequence[Fragment], verdict: Verdict, real: bool) -> Failure | None:
    if verdict.failure is not None:
        # On random arrays, numbers that are not finite may never come up in the task; a constant may have company.
        numeric = verdict.failure.stage == "numeric"
        return None if numeric and (not real or "is constant" in verdict.failure.message) else verdict.failure
    says, has = sum(fragment.size for fragment in fragments), verdict.summary and verdict.summary.observation_size
    if fragments[0].kind == "feature" and has != says:
        return Failure(stage="contract", message=f"it has {has} values and says {says}", hint=f"write size={has}")
    return None


def _program(fragments: Sequence[Fragment], lexicon: Lexicon) -> str:
    genes = tuple(Gene(fragment.name) for fragment in fragments)
    genome = Genome(statements=lexicon.definition(gene.name for gene in genes))
    part = "observation" if fragments[0].kind == "feature" else "reward"
    return write(genome.with_half(part, genes))
