"""`jaxreward.evolve_texts`: a search for rewards of states that are text, such as the view hierarchies of screens."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jaxreward.config import with_values
from jaxreward.demonstrations.texts import load_texts
from jaxreward.demonstrations.trajectories import Positives
from jaxreward.errors import InvalidSetting, errors_in_python
from jaxreward.evolution.from_python import as_new, searched
from jaxreward.evolution.python_settings import PARAMETERS, call_text, proposer_of, strategy_of, typed_values
from jaxreward.evolution.resuming import has_begun, is_complete, require_same_call
from jaxreward.evolution.search_run import SearchRun
from jaxreward.evolution.settings import TEXTS, EvolveSettings
from jaxreward.evolution.setup import Setup
from jaxreward.evolution.vocabulary import WITHOUT
from jaxreward.evolution.watcher import Watcher
from jaxreward.evolution.watching import OnGeneration, require_watching
from jaxreward.identity import Identity
from jaxreward.objectives.demonstrations.demonstration_options import DemonstrationOptions
from jaxreward.objectives.demonstrations.results import FITNESS
from jaxreward.objectives.texts.objective import TextObjective
from jaxreward.objectives.texts.text_sets import TextSets
from jaxreward.objectives.texts.text_vocabulary import text_vocabulary
from jaxreward.programs.host.checker import TextChecker
from jaxreward.proposers.proposer import Proposer
from jaxreward.proposers.registry import make_proposer, own_proposer
from jaxreward.records import TaskCard, Vocabulary
from jaxreward.runs.run import check_name
from jaxreward.search import SearchStrategy, make_strategy

_KNOWN = {
    *("option", "bandit", "recording", "generation", "candidates", "max_attempts", "seed", "out", "name", "track"),
    *("unsafe_no_sandbox", "llm"),
}
"""Settings of a search that have a meaning here; all others are of training."""

Files = str | Path | Sequence[str | Path]


def evolve_texts(
    data: Files,
    negative: Files,
    *,
    strategy: str | SearchStrategy[Any] | type[SearchStrategy[Any]] = "grace",
    proposer: str | Proposer | Callable[..., Proposer] = EvolveSettings.proposer,
    expert_episodes: int = DemonstrationOptions.expert_episodes,
    negative_episodes: int = DemonstrationOptions.negative_episodes,
    positives: Positives = "last",
    on_generation: OnGeneration | None = None,
    watcher: Watcher | None = None,
    resume: bool = True,
    progress: bool = True,
    **settings: Any,
) -> SearchRun:
    """Search for a reward of texts that tells an expert's states from others (GRACE, section 5.1, Android).

        run = jr.evolve_texts("expert.jsonl", "others.jsonl", candidates=60)
        print(run.best.source, run.best.score)

    A program is Python on strings, `reward(state: str) -> float`; it executes in a locked-down process alone, so no
    agent is trained with it: its score is its fitness on the episodes. The search is a run in the folder `out/name`,
    which the same call goes on with, as `jaxreward.evolve` does.

    Args:
        data: files of an expert's episodes, as `demonstrations.texts.save_texts` writes them.
        negative: files of episodes that an expert would not play.
        strategy, proposer: as for `jaxreward.evolve`. The genetic proposer builds programs from what the expert's
            states have and others lack.
        expert_episodes, negative_episodes: to search with; the others are held out.
        positives: the expert's states to tell from others: the `last` of each episode, or `all`.
        on_generation, watcher, resume, progress: as for `jaxreward.evolve`.
        settings: `candidates`, `generation`, `max_attempts`, `seed`, `option`, `bandit`, `recording`, `out`, `name`,
            `track`, `unsafe_no_sandbox`, and those of language models (`model`, `max_usd`, ...).

    Returns:
        The run. Where it stopped before its end, a warning says so.

    Raises:
        UserError: settings or files that cannot be, a run that is another.
        KeyboardInterrupt, SystemExit: as `jaxreward.evolve`.
    """
    require_watching(on_generation, watcher)
    with errors_in_python():
        named, identities, given = _named(strategy, proposer)
        if positives not in ("last", "all"):
            raise InvalidSetting(f"positives is last or all, not {positives!r}", "positives")
        options = DemonstrationOptions(_paths(data), _paths(negative), positives, expert_episodes, negative_episodes)
        excluded = PARAMETERS | {f.name for f in dataclasses.fields(EvolveSettings) if f.name not in _KNOWN}
        base = EvolveSettings(
            task=TEXTS, objective="demonstrations", demonstrations=options, evolve="reward", baselines=(),
            final_seeds=0, **named,
        )  # fmt: skip
        chosen = with_values(base, typed_values(EvolveSettings, settings, excluded, "jaxreward.evolve_texts"))
        chosen = dataclasses.replace(chosen, command=call_text("evolve_texts", {"data": data, **named, **settings}))
        chosen.check()
        path = chosen.out / check_name(chosen.run_name, "run")
        begun = (resume or bool(chosen.name)) and has_begun(path)
        if resume and begun:
            require_same_call(path, chosen, identities)
        else:
            chosen = as_new(chosen, resume, begun)
        sets = _sets(chosen)
        if resume and begun:
            if is_complete(path, chosen):
                return SearchRun(path)
            chosen = dataclasses.replace(chosen, resume=True)
        setup = _setup(chosen, sets, given)
        checker = TextChecker(sets.transitions, unsafe_no_sandbox=chosen.unsafe_no_sandbox)
    with checker:
        return searched(chosen, setup, None, on_generation, watcher, progress, checker)


def _named(strategy: Any, proposer: Any) -> tuple[dict[str, Any], dict[str, Identity], Any]:
    """The settings of a strategy and a proposer, the identity of one that is an object, and that object."""
    name, options = strategy_of(strategy)
    proposer_name, own = proposer_of(proposer)
    named: dict[str, Any] = {"strategy": name, "proposer": proposer_name}
    if options is not None:
        named["option"] = options
    identities = {} if own is None else {"proposer": Identity.of(own, private=False)}
    return named, identities, own


def _paths(files: Files) -> tuple[Path, ...]:
    return tuple(Path(path).absolute() for path in ([files] if isinstance(files, str | Path) else files))


def _sets(settings: EvolveSettings) -> TextSets:
    options = settings.demonstrations
    expert, others = ([e for path in paths for e in load_texts(path)] for paths in (options.data, options.negative))
    return TextSets.of(
        expert, others, experts=options.expert_episodes, negatives=options.negative_episodes,
        positives="all" if options.positives == "all" else "last", seed=settings.seed,
    )  # fmt: skip


def _setup(settings: EvolveSettings, sets: TextSets, given: Any) -> Setup:
    """The objects of a search. There is no task: the loop hands it to the checker, which checks programs on the data,
    and of a program it reads the source and the digest alone."""
    strategy = make_strategy(settings.strategy, **settings.strategy_options())
    if strategy.asks_people:
        raise InvalidSetting("there are no agents of text for people to compare: use another option", "option")
    if getattr(strategy, "expansions", 0):
        raise InvalidSetting("no policy is trained on texts, so no data can be added: leave expansions out", "option")
    vocabulary = Vocabulary() if settings.proposer in WITHOUT else text_vocabulary(sets.data)
    lengths = [len(state) for _, _, state in sets.data.steps]
    card = TaskCard(
        name="unknown", description="", state_doc=f"state: a string of {min(lengths):,} to {max(lengths):,} characters",
        vocabulary=vocabulary, objective="demonstrations", states="text", measure=FITNESS,
    )  # fmt: skip
    if given is not None:
        proposer = own_proposer(given, card)
    else:
        proposer = make_proposer(settings.proposer, card, **settings.proposer_options())
    no_task: Any = None
    objective: Any = TextObjective(sets, settings.seed)
    derived = vocabulary if vocabulary.fragments else None
    return Setup(no_task, objective, strategy, proposer, derived=derived)
