"""The terms that a view suggests: what a reward may pay for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from jaxreward.tasks.automatic.draft import Draft, rounded
from jaxreward.tasks.automatic.features import like_numbers, like_vectors
from jaxreward.tasks.automatic.quantities import Number, Place
from jaxreward.tasks.automatic.scene import Scene, helper
from jaxreward.tasks.automatic.texts import NEXT, NOW, STATE, of
from jaxreward.tasks.fragment_template import Template
from jaxreward.tasks.task import Box

MILESTONE = (1.0, 2.0, 0.5)
COST = (0.01, 0.003, 0.03)
MOST_GATES = 4
"""Flags that divide an episode into stages."""


def terms(scene: Scene, space: object) -> Iterator[Draft]:
    """All terms, in the order of their use: of equal ones the first counts."""
    for target in scene.targets:
        yield from _of_target(target, scene)
    yield from _staged(scene)
    for number in scene.numbers:
        yield from _of_number(number)
    for one, other in like_vectors(scene):
        line = f"length({one.of(STATE)} - {other.of(STATE)})"
        name, reads = f"{one.name}_to_{other.name}", frozenset([one.index, other.index])
        span = float(np.ptp(np.sqrt(((one.after - other.after) ** 2).sum(1))))
        yield from _distance_terms(name, f"{one.name} and {other.name}".replace("_", " "), line, span, reads,
                                   f"about:{one.name} about:{other.name}")  # fmt: skip
    for one, other in like_numbers(scene):
        line, far = f"jnp.abs({one.value} - {other.value})", np.abs(one.after - other.after)
        yield from _distance_terms(f"{one.name}_to_{other.name}", f"{one.words} and {other.words}", line,
                                   float(np.quantile(far, 0.95)) or 1.0, one.reads | other.reads,
                                   f"about:{one.name} about:{other.name}")  # fmt: skip
    for turn in scene.turns:
        up = f"up_in_world({turn.text})[2]"
        yield term(f"{turn.name}_upright", f"shaping about:{turn.name}", f"How upright {turn.words} is.", up, NEXT,
                   turn.reads)  # fmt: skip
        yield gain(f"{turn.name}_upright_potential", f"potential about:{turn.name}",
                   f"Potential: how upright {turn.words} is.", up, turn.reads, 1.0, 1.0)  # fmt: skip
    yield from _costs(scene, space)


def term(
    name: str, tags: str, doc: str, value: str, line: str, reads: frozenset[int], weight: float = 1.0,
    factors: tuple[float, ...] = (1.0, 0.3, 3.0),
) -> Draft:  # fmt: skip
    """A term: in `line`, `NOW` and `NEXT` are the quantity `value` of the state and of the next state."""
    text = line.replace(NOW, of(value, "state")).replace(NEXT, of(value, "next_state"))
    return Draft(Template(name, tags, doc, text, 1, factors), "term", weight, reads)


def gain(
    name: str, tags: str, doc: str, value: str, reads: frozenset[int], span: float, weight: float, sign: int = 1
) -> Draft:
    """The gain of a potential, `sign` times `value`, which varies by `span`: about 1 from one end to the other."""
    line = f"GAMMA * {NEXT} - {NOW}" if sign > 0 else f"{NOW} - GAMMA * {NEXT}"
    return term(name, tags, doc, value, line, reads, weight, scales(span))


def scales(span: float) -> tuple[float, ...]:
    """Weights of a potential that varies by `span`: about 1 from end to end, 3 and 0.3."""
    unit = 1.0 / max(span, 1e-3)
    return (rounded(unit, 1), rounded(3 * unit, 1), rounded(0.3 * unit, 1))


def _of_target(p: Place, scene: Scene) -> Iterator[Draft]:
    agent = scene.agent
    assert agent is not None
    value, reads, name = scene.distance(p), p.reads | agent.reads, f"{agent.name}_to_{p.name}"
    about, words = f"about:{p.name}", f"{agent.words} and {p.words}"
    span = _span(agent, p)
    yield from _distance_terms(name, words, value, span, reads, about)
    near = 0.5 if p.is_integer else rounded(span / 20)
    doc = f"Paid when {words} come together, within {near:g}, and taken back when they part: no use to repeat."
    line = f"GAMMA * ({NEXT} < {near!r}) - ({NOW} < {near!r})"
    yield term(f"{agent.name}_reached_{p.name}", f"milestone {about}", doc, value, line, reads, 0.6, MILESTONE)
    if not p.is_integer:
        doc = f"How near {words} are, 1 at the same place."
        line = f"jnp.exp(-{NEXT} / {rounded(span / 5)!r})"
        yield term(f"{agent.name}_at_{p.name}", f"shaping {about}", doc, value, line, reads, 0.8, (0.1, 0.3, 1.0))
    for flag in scene.flags[:MOST_GATES]:
        for on in (False, True):
            gate, after = flag.switched("state", on), flag.switched("next_state", on)
            when, tag = ("while", "late") if on else ("before", "early")
            line = f"jnp.where({gate} & {after}, {NOW} - GAMMA * {NEXT}, 0.0)"
            yield term(f"{name}_{when}_{flag.name}", f"shaping {tag} {about}",
                       f"What the distance of {words} fell by, {when} {flag.words} is on.", value, line,
                       reads | flag.reads, 0.9, scales(span))  # fmt: skip


def _span(one: Place, other: Place) -> float:
    way = other.after - one.after
    far = np.abs(way).sum(1) if other.is_integer else np.sqrt((way**2).sum(1))
    return float(np.quantile(far, 0.95)) or 1.0


def _distance_terms(
    name: str, words: str, value: str, span: float, reads: frozenset[int], about: str
) -> Iterator[Draft]:
    yield gain(f"{name}_potential", f"potential {about}", f"Potential: minus the distance of {words}.", value, reads,
               span, 1.0, -1)  # fmt: skip
    yield gain(f"{name}_away", f"potential {about}", f"Potential: the distance of {words}.", value, reads, span, 0.15)


def _staged(scene: Scene) -> Iterator[Draft]:
    """Potentials of two ways, one to go before a flag is on and one after it."""
    agent = scene.agent
    for flag in scene.flags[:MOST_GATES]:
        for one, other in permutations(scene.targets[:5], 2):
            assert agent is not None
            spans = _span(agent, one), _span(agent, other)
            jump = rounded(spans[0] + spans[1], 1)
            name = f"{one.name}_then_{other.name}_by_{flag.name}"
            first, then = scene.distance(one), scene.distance(other)
            line = f"jnp.where({flag.switched(STATE, True)}, {then}, {first} + {jump!r})"
            words = f"The way to the {one.words} and more until {flag.words} is on, then that to the {other.words}."
            scene.helpers[f"left_of_{name}"] = helper(f"left_of_{name}", words, line)
            value = f"left_of_{name}({STATE})"
            doc = f"Potential: the way to {one.words} until {flag.words} is on, then that to {other.words}."
            yield gain(f"{name}_potential", f"potential about:{one.name} about:{other.name}", doc, value,
                       one.reads | other.reads | flag.reads | agent.reads, jump, 0.8, -1)  # fmt: skip


def _of_number(n: Number) -> Iterator[Draft]:
    about, part = f"about:{n.name}", 0.4 if n.is_part else 1.0
    if n.kind == "clock":
        return
    if n.kind == "flag":
        value = n.value
        yield term(f"{n.name}_on", f"milestone {about}", f"Now {n.words} is on and was off.", value,
                   f"jnp.maximum({NEXT} - {NOW}, 0.0)", n.reads, part, MILESTONE)  # fmt: skip
        yield term(f"{n.name}_off", f"milestone {about}", f"Now {n.words} is off and was on.", value,
                   f"jnp.maximum({NOW} - {NEXT}, 0.0)", n.reads, 0.5 * part, MILESTONE)  # fmt: skip
        yield gain(f"{n.name}_potential", f"potential {about}", f"Potential: whether {n.words} is on.", value, n.reads,
                   1.0, 0.8 * part)  # fmt: skip
        yield gain(f"no_{n.name}_potential", f"potential {about}", f"Potential: whether {n.words} is off.", value,
                   n.reads, 1.0, 0.3 * part, -1)  # fmt: skip
        return
    if n.kind == "count" and not n.is_part:
        for verb, line in (("rose", f"({NEXT} > {NOW})"), ("fell", f"({NEXT} < {NOW})")):
            yield term(f"{n.name}_{verb}", f"milestone farmable {about}", f"The {n.words} {verb}.", n.text,
                       f"{line}.astype(jnp.float32)", n.reads, 0.6 * part, MILESTONE)  # fmt: skip
    yield from _levels(n.name, n.words, n.value, n.span, n.reads, about, part)
    crosses = n.low < -0.1 * n.span and n.high > 0.1 * n.span
    if n.goes_round:
        for function in ("cos", "sin"):
            word = {"cos": "cosine", "sin": "sine"}[function]
            yield from _levels(f"{n.name}_{word}", f"{word} of {n.words}", f"jnp.{function}({n.text})", 2.0, n.reads,
                               about, part)  # fmt: skip
    elif crosses and n.kind == "real":
        yield from _levels(f"{n.name}_size", f"size of {n.words}", f"jnp.abs({n.text})", n.span / 2, n.reads, about,
                           part)  # fmt: skip
    if n.kind == "real" and not n.goes_round:
        for word, share in (("highest", 0.98), ("lowest", 0.02)):
            bound = rounded(float(np.quantile(n.after, share)), 3)
            past, short = (">", "<=") if share > 0.5 else ("<", ">=")
            line = f"({NEXT} {past} {bound!r}) & ({NOW} {short} {bound!r})"
            yield term(f"{n.name}_{word}", f"milestone farmable {about}", f"The {n.words} passed {bound:g}.", n.text,
                       f"jnp.where({line}, 1.0, 0.0)", n.reads, 0.3 * part, MILESTONE)  # fmt: skip


def _levels(
    name: str, words: str, value: str, span: float, reads: frozenset[int], about: str, weight: float
) -> Iterator[Draft]:
    """A number as a potential and as a reward, in both directions."""
    for word, sign in (("more", 1), ("less", -1)):
        scale = rounded(1.0 / max(span, 1e-3), 1)
        yield gain(f"{word}_{name}_potential", f"potential {about}", f"Potential: {word} {words}.", value, reads, span,
                   0.7 * weight, sign)  # fmt: skip
        line = NEXT if sign > 0 else f"-{NEXT}"
        yield term(f"{word}_{name}", f"shaping {about}", f"The {words}, {word} being better.", value, line, reads,
                   0.6 * weight, (scale, rounded(0.1 * scale, 1)))  # fmt: skip


def _costs(scene: Scene, space: object) -> Iterator[Draft]:
    none: frozenset[int] = frozenset()
    yield _plain("time_cost", "penalty time", "A cost for every step.", "-1.0", COST)
    if scene.played.ends_early:
        words = "A reward for every step of an episode that may end early."
        yield _plain("alive", "bonus alive", words, "1.0", (0.1, 0.03, 0.3))
    if isinstance(space, Box):
        yield term("action_cost", "penalty effort", "Minus the mean square of the action.", "",
                   "-jnp.mean(jnp.square(action))", none, 0.8, (0.1, 0.03, 0.01))  # fmt: skip
    agent = scene.agent
    if agent is not None and agent.is_integer:
        yield term("no_move", "penalty", f"A cost for a step in which {agent.words} stays in its place.", agent.text,
                   f"jnp.where(jnp.all({NOW} == {NEXT}), -1.0, 0.0)", agent.reads, 0.8, (0.05, 0.02, 0.1))  # fmt: skip


def _plain(name: str, tags: str, doc: str, line: str, scales: tuple[float, ...]) -> Draft:
    return Draft(Template(name, tags, doc, line, 1, scales), "term", 0.7, is_plain=True)
