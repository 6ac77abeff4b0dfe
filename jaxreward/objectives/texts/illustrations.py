"""Episodes of texts in words, with the rewards of a program, for whoever improves it."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np

from jaxreward.objectives.demonstrations.illustrations import examples, shown_steps, summary
from jaxreward.objectives.demonstrations.scoring import Separation
from jaxreward.objectives.texts.text_sets import TextSets
from jaxreward.records import ExampleChoice

_LONGEST = 4_000
"""Characters of a state."""

_IN_EPISODE = 800
"""Characters of a state of a whole episode."""


def illustrations(
    choice: ExampleChoice, found: Separation | None, sets: TextSets, rng: np.random.Generator
) -> tuple[str, ...]:  # fmt: skip
    """Texts about the data, the most important first.

    Args:
        choice: what to show.
        found: what one program makes of the data; without one, states are shown without rewards.
        rng: chooses what no reward chooses.
    """
    data = sets.data
    lines = [summary(found, data.experts)] if found is not None else []
    if choice.trajectory:
        lines.append(_episode(sets, int(rng.integers(len(sets.expert)))))
    own, others = list[str](), list[str]()
    for k, head in examples(choice, found, len(data.steps), data.experts, data.of_expert, rng):
        _, action, state = data.steps[k]
        (own if k < data.experts else others).append(f"{head}{_after(action)}:\n{_cut(state, _LONGEST)}")
    # In turn, since not all of them may fit.
    lines += [text for pair in zip_longest(own, others) for text in pair if text is not None]
    return tuple(lines)


def _episode(sets: TextSets, index: int) -> str:
    """States of an episode of the expert, from the first to the last."""
    episode = sets.expert[index]
    lines = [f"An episode of the expert, {len(episode)} steps. Before the first step:"]
    lines.append(_cut(episode.states[0], _IN_EPISODE))
    for t in map(int, shown_steps(len(episode))):
        lines.append(f"After step {t + 1}{_after(episode.actions[t])}:\n{_cut(episode.states[t + 1], _IN_EPISODE)}")
    return "\n".join(lines)


def _after(action: str) -> str:
    return f", after action {_cut(' '.join(action.split()), 200)}" if action else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
