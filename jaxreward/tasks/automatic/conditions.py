"""Terms of how far the conditions that a task checks are from holding.

A condition tells nothing that the view hides. It compares arrays of the view with one another, or is a bound, one
number, in the code that the sparse reward and the end of an episode are computed by. Constants that would stand for
something else stay out: arrays, as of the place of a goal that is not shown, numbers that a quantity is equal to or is
taken from, and all that only the metric compares with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.function_source.scopes import fresh_name
from jaxreward.tasks.automatic.draft import Draft
from jaxreward.tasks.automatic.expressions import Comparison, Text, literal
from jaxreward.tasks.automatic.leaves import Leaves
from jaxreward.tasks.automatic.play import Array, Play
from jaxreward.tasks.automatic.terms import gain, scales, term
from jaxreward.tasks.automatic.texts import ACTION, AFTER, BEFORE, NEXT, STATE, UNKNOWN, named, of

MOST = 16
"""Conditions, at most."""
RARE = 0.003
"""Share of the transitions of random play in which a condition holds that is rare."""
LONGEST = 240
"""Characters of a comparison's sides."""
_MOST_NAMES = 3
"""Arrays that the name of a condition tells of each of its sides."""
_SAYS = {"eq": "equal", "ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}


class Checked(NamedTuple):
    """A comparison that the task makes; `is_paid` where the sparse reward or the end of an episode depends on it."""

    comparison: Comparison
    is_paid: bool


def conditions(checked: Sequence[Checked], played: Play, leaves: Leaves) -> Iterator[Draft]:
    """Terms of how far comparisons of one state are from holding.

    One that hardly ever holds in random play may be what is to be reached; of another, random play tells more.
    """
    found: dict[str, Comparison] = {}
    for comparison, is_paid in checked:
        if _is_fair(comparison, is_paid):
            found.setdefault(_gap(comparison), comparison)
    chosen = list(found.items())[:MOST]
    sides = evaluated([of(gap, place) for gap, _ in chosen for place in (BEFORE, AFTER)], played)
    taken = set[str]()
    for (gap, comparison), before, after in zip(chosen, sides[::2], sides[1::2], strict=True):
        span = float(np.ptp(after))
        if not np.isfinite(span) or span == 0.0 or np.ptp(after - before) < 1e-6 * span:  # a count of steps
            continue
        weight = 1.5 if (after <= 1e-6).mean() < RARE else 0.5
        name, words = _called(comparison, leaves, taken)
        none: frozenset[int] = frozenset()
        yield gain(f"{name}_potential", "potential", f"Potential: minus what is missing to {words}.", gap, none, span,
                   weight, -1)  # fmt: skip
        yield gain(f"{name}_away", "potential", f"Potential: what is missing to {words}.", gap, none, span, 0.3)
        yield term(f"{name}_gap", "shaping", f"Minus what is missing to {words}.", gap, f"-{NEXT}", none, 0.5 * weight,
                   scales(span)[::2])  # fmt: skip


def _is_fair(comparison: Comparison, is_paid: bool) -> bool:
    """Whether a comparison is one of numbers of one state, and tells nothing that the view hides."""
    operator, left, right = comparison
    sides = left.text + right.text
    one_state = (BEFORE in sides) != (AFTER in sides)
    if not one_state or UNKNOWN in sides or ACTION in sides or len(sides) > LONGEST:
        return False
    if not all(np.dtype(x.dtype).kind in "if" for x in (left, right)) or left.embeds or right.embeds:
        return False
    if operator == "lt" and right.text == "0":  # how an index is checked
        return False
    fixed = [x for x in (left, right) if x.is_fixed]
    if not fixed:
        return True
    return is_paid and operator != "eq" and literal(fixed[0].text) is not None


def _gap(comparison: Comparison) -> str:
    """The text of what is missing to a comparison of the state at `STATE`."""
    operator, left, right = comparison
    one, other = (x.text.replace(BEFORE, STATE).replace(AFTER, STATE) for x in (left, right))
    gap = f"jnp.abs({one} - {other})"
    if operator != "eq":
        gap = f"({one} - {other})" if operator in ("lt", "le") else f"({other} - {one})"
    whole = max(np.prod(left.shape), np.prod(right.shape)) > 1
    return f"jnp.sum({gap}).astype(jnp.float32)" if whole else f"{gap}.astype(jnp.float32)"


def _called(comparison: Comparison, leaves: Leaves, taken: set[str]) -> tuple[str, str]:
    """A name of the arrays that are compared, other than those of `taken`, to which it is added; and words."""
    operator, left, right = comparison
    sides = [_side(x, leaves) for x in (left, right)]
    name = fresh_name(f"{sides[0]}_{operator}_{sides[1]}", taken)
    taken.add(name)
    words = [side.replace("_", " ") for side in sides]
    if right.is_fixed:
        words[1] = right.text
    if left.is_fixed:
        words[0] = left.text
    return name, f"{words[0]} being {_SAYS[operator]} {words[1]}"


def _side(text: Text, leaves: Leaves) -> str:
    value = literal(text.text)
    if value is not None:
        short = f"{abs(value):g}".replace(".", "_").replace("e-0", "e_").replace("e+0", "e").replace("-", "_")
        return f"minus_{short}" if value < 0 else short
    return "_".join(list(dict.fromkeys(leaves.read_by(text.text)))[:_MOST_NAMES])


def evaluated(texts: Sequence[str], played: Play) -> list[Array]:
    """The values of expressions of state, action and next state in random play (N, ...)."""
    if not texts:
        return []
    listed = "".join(f"{named(text)}, " for text in texts)
    source = f"lambda state, action, next_state: [{listed}]"  # of texts of this package
    run = jax.jit(jax.vmap(eval(source, {"jnp": jnp, "jax": jax})))
    return [np.asarray(x) for x in run(played.views, played.actions, played.next_views)]
