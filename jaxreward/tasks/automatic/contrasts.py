"""Terms that tell two sets of states apart: thresholds and linear terms of the features in which they differ most.

For rewards from demonstrations, where the data are all that is known: neither the task's reward nor its metric is
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from jaxreward.function_source.scopes import fresh_name
from jaxreward.records import Fragment, Vocabulary
from jaxreward.tasks.automatic.draft import rounded
from jaxreward.tasks.automatic.information import Signal
from jaxreward.tasks.automatic.play import Array, Play
from jaxreward.tasks.automatic.ranking import fragment_values
from jaxreward.tasks.fragment_template import Template

MOST = 48
"""Columns of features of which terms are made."""
MORE = 8
"""Columns of which more terms are made for each further set of states."""
WIDEST = 512
"""Columns of a feature that are looked at, the first ones."""
LEAST = 0.02
"""Part of what there is to tell of the two sets that a column must tell by itself."""
_FEW = 12
"""Different values of a column that are kinds, or counts: no linear terms are made of it."""
_THRESHOLD, _LINEAR, _CONSTANT = (4.0, 8.0, 2.0, 16.0), (1.0, 3.0, 0.3), (2.0, 4.0, 1.0, 8.0)


class Contrast(NamedTuple):
    """How a column of a feature differs between an expert's states and others.

    Attributes:
        feature, column: which one.
        effect: Cohen's d, positive where the expert's values are larger.
        threshold: the value at which the two sets are told apart best, and by which the larger values are the expert's
            if `above`.
        shares: the share of the expert's states, and of others, that are on the expert's side of it.
        told: mutual information with which set a state is of, as a part of that.
        mean, spread: over all states.
    """

    feature: str
    column: int
    effect: float
    threshold: float
    above: bool
    shares: tuple[float, float]
    told: float
    mean: float
    spread: float
    is_kind: bool


def labelled(views: Any, actions: Array, next_views: Any, expert: Array) -> Play:
    """Transitions as play whose reward is 1 for those of an expert, bool (N,), and 0 for others."""
    label, nothing = expert.astype(np.float32), np.zeros(len(expert), np.float32)
    return Play(views, next_views, actions, label, nothing, label, nothing, np.zeros(len(expert), int), True)


def contrasts_of(vocabulary: Vocabulary, played: Play) -> list[Contrast]:
    """The columns of the vocabulary's features in which labelled states differ, the most telling first.

    Clocks are left out, and copies of an action that is real: they tell what a policy did and for how long, and a
    reward of them would not depend on what became of it.
    """
    features = [f for f in vocabulary.fragments if f.kind == "feature"]
    before, values = (
        fragment_values(features, vocabulary.helpers, vocabulary.constants, replace(played, views=views))
        for views in (played.views, played.next_views)
    )
    expert, signal = played.reward > 0.5, Signal(played.reward)
    found, seen = list[Contrast](), set[bytes]()
    for feature in features:
        for column, x in enumerate(np.asarray(values[feature.name], np.float64).T[:WIDEST]):
            if not np.isfinite(x).all() or np.ptp(x) == 0.0:
                continue
            told = signal.told_by(x)
            if (
                told < LEAST
                or (key := np.argsort(x, kind="stable").tobytes() + np.diff(np.sort(x)).astype(bool).tobytes()) in seen
            ):
                continue
            seen.add(key)
            if _is_clock(before[feature.name][:, column], x) or _is_action(x, played.actions):
                continue
            found.append(_contrast(feature.name, column, x, expert, told))
    return sorted(found, key=lambda c: -c.told)[:MOST]


def contrast_vocabulary(vocabulary: Vocabulary, played: Play) -> Vocabulary:
    """`vocabulary` with terms of its contrasts on labelled transitions, and a cost of every step: a reward of them is
    high in the expert's states and low in others. Terms that pay nothing in any of them are left out: they cannot tell
    anything, and a reward is longer by each."""
    vocabulary = _without_silent_terms(vocabulary, played)
    taken = _names(vocabulary)
    terms = _terms(contrasts_of(vocabulary, played), taken)
    everywhere = Template(
        fresh_name("everywhere", taken), "bonus basic", "A cost of every state.", "-1.0", 1, _CONSTANT
    )
    terms.append(Fragment(
        name=everywhere.name, kind="term", source=everywhere.source("term"), scales=everywhere.scales,
        doc=everywhere.doc, tags=tuple(everywhere.tags.split()),
    ))  # fmt: skip
    return vocabulary.model_copy(update={"fragments": (*vocabulary.fragments, *terms)})


def with_more_contrasts(vocabulary: Vocabulary, played: Play) -> Vocabulary:
    """`vocabulary` with terms of what other labelled transitions differ in most: of few columns, since there may be
    many such sets."""
    more = _terms(contrasts_of(vocabulary, played)[:MORE], _names(vocabulary))
    return vocabulary.model_copy(update={"fragments": (*vocabulary.fragments, *more)})


def _names(vocabulary: Vocabulary) -> set[str]:
    return {*vocabulary.constants, *vocabulary.helpers, *(f.name for f in vocabulary.fragments)}


def _terms(found: Sequence[Contrast], taken: set[str]) -> list[Fragment]:
    """Thresholds and linear terms; their names join `taken`."""
    terms = list[Fragment]()
    for contrast in found:
        for template in _templates(contrast):
            name = fresh_name(template.name, taken)
            taken.add(name)
            named = template._replace(name=name)
            terms.append(Fragment(
                name=name, kind="term", source=named.source("term"), scales=named.scales, doc=named.doc,
                tags=tuple(named.tags.split()), weight=float(f"{0.2 + 4.0 * contrast.told / found[0].told:.2g}"),
            ))  # fmt: skip
    return terms


def _without_silent_terms(vocabulary: Vocabulary, played: Play) -> Vocabulary:
    # all fragments are given: terms may call features
    values = fragment_values(vocabulary.fragments, vocabulary.helpers, vocabulary.constants, played)
    silent = {f.name for f in vocabulary.fragments if f.kind == "term" and not np.any(values[f.name][:, 0])}
    return vocabulary.model_copy(
        update={"fragments": tuple(f for f in vocabulary.fragments if f.name not in silent)}
    )  # fmt: skip


def _is_clock(before: Array, after: Array) -> bool:
    """Whether a column changes at every step, by the same, as far as float32 can tell."""
    change, rounding = np.abs(after - before), 4 * np.finfo(np.float32).eps * np.abs(after).max()
    return bool(np.ptp(after - before) <= max(1e-4 * change.max(), rounding) and change.min() > 100 * rounding)


def _is_action(x: Array, actions: Array) -> bool:
    """Whether a column is one of the continuous actions, scaled or shifted."""
    if actions.ndim != 2 or not np.issubdtype(actions.dtype, np.floating) or len(np.unique(x)) <= _FEW:
        return False
    centred, scaled = x - x.mean(), actions - actions.mean(0)
    both = np.linalg.norm(centred) * np.linalg.norm(scaled, axis=0)
    return bool((np.abs(centred @ scaled) > 0.9999 * both).any())


def _contrast(feature: str, column: int, x: Array, expert: Array, told: float) -> Contrast:
    one, other = x[expert], x[~expert]
    pooled = float(np.sqrt((one.var() + other.var()) / 2)) or 1e-6
    edges = np.unique(x)
    if len(edges) > 256:
        edges = np.unique(np.quantile(x, np.linspace(0, 1, 257)))
    cuts = (edges[1:] + edges[:-1]) / 2
    above = [1.0 - np.searchsorted(np.sort(part), cuts, side="right") / len(part) for part in (one, other)]
    best = int(np.argmax(np.abs(above[0] - above[1])))
    shares, is_above = (above[0][best], above[1][best]), bool(above[0][best] > above[1][best])
    if not is_above:
        shares = (1.0 - shares[0], 1.0 - shares[1])
    return Contrast(
        feature, column, float((one.mean() - other.mean()) / pooled), rounded(float(cuts[best]), 4), is_above,
        (float(shares[0]), float(shares[1])), told, float(x.mean()), float(x.std()), len(edges) <= _FEW,
    )  # fmt: skip


def _templates(c: Contrast) -> Iterator[Template]:
    value, what = f"{c.feature}(next_state)[{c.column}]", f"{c.feature}[{c.column}]"
    sign, words = (">", "more than") if c.above else ("<", "less than")
    doc = f"{what} is {words} {c.threshold:g}: {c.shares[0]:.0%} of the expert's states, {c.shares[1]:.0%} of others."
    name = f"{c.feature}_{c.column}_{'above' if c.above else 'below'}"
    yield Template(name, "shaping", doc, f"jnp.where({value} {sign} {c.threshold!r}, 1.0, 0.0)", 1, _THRESHOLD)
    if not c.is_kind:
        mean, spread = rounded(c.mean, 3) if c.mean else 0.0, rounded(c.spread, 3)
        of = f"({value} - {mean!r}) / {spread!r}" if c.effect > 0 else f"({mean!r} - {value}) / {spread!r}"
        doc = (
            f"How {'large' if c.effect > 0 else 'small'} {what} is, in standard deviations (Cohen's d {c.effect:.2g})."
        )
        yield Template(f"{c.feature}_{c.column}_line", "shaping", doc, f"jnp.clip({of}, -3.0, 3.0)", 1, _LINEAR)
