"""The features that a view suggests: what an observation may hold."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from jaxreward.tasks.automatic.cells import Grid
from jaxreward.tasks.automatic.draft import Draft, divided, rounded
from jaxreward.tasks.automatic.fields import Field
from jaxreward.tasks.automatic.quantities import Number, Place, comparable
from jaxreward.tasks.automatic.scene import Scene, Turn
from jaxreward.tasks.automatic.texts import STATE, of
from jaxreward.tasks.fragment_template import Template

SMALL, LARGE = 64, 256
"""Values of a field that are shown whole; of one that is `large`."""
MOST_KINDS = 12
"""Values of a whole number that are told apart."""

LIKE = 0.7
"""Part of the bounds of two scalars that both have, from which on they may mean the same."""

TURN_HELPERS = '''
def up_in_world(turn):
    """The up axis of a body in the world (3,), by its unit quaternion."""
    w, x, y, z = turn
    return jnp.stack([2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)])


def down_in_body(turn):
    """The direction of gravity in the frame of a body (3,), by its unit quaternion."""
    w, x, y, z = turn
    return -jnp.stack([2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)])


def heading_of(turn):
    """Cosine and sine of a body's angle about the vertical axis (2,)."""
    w, x, y, z = turn
    return jnp.stack([1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z)])
'''


def features(scene: Scene) -> Iterator[Draft]:
    """All features, in the order of their use: of equal ones the first counts."""
    for number in scene.numbers:
        yield from _of_number(number, scene)
    for place in scene.places:
        yield from _of_place(place, scene)
    for target in scene.targets:
        yield from _of_target(target, scene)
    yield from _of_pairs(scene)
    for turn in scene.turns:
        yield from _of_turn(turn)
    for vector in scene.vectors:
        yield from _of_vector(vector)
    yield from _of_differences(scene)
    yield from _of_like_numbers(scene)
    for grid in scene.grids:
        yield from _of_grid(grid, scene)
    yield from _whole(scene)


def _feature(
    name: str, tags: str, doc: str, line: str, size: int, reads: frozenset[int], weight: float = 1.0,
    scales: tuple[float, ...] = (1.0,),
) -> Draft:  # fmt: skip
    return Draft(Template(name, tags, doc, of(line, "state"), size, scales), "feature", weight, reads)


def _of_number(n: Number, scene: Scene) -> Iterator[Draft]:
    about = f" about:{n.name}"
    one = "jnp.reshape({}, (1,))".format
    part = 0.5 if n.is_part else 1.0
    if n.kind == "clock":
        line = one(f"{n.value} / {float(scene.horizon)!r}")
        yield _feature(f"{n.name}_share", "time", f"{_the(n)} as a part of the episode.", line, 1, n.reads)
        return
    if n.kind == "flag":
        yield _feature(f"{n.name}_now", f"flag basic{about}", f"Whether {n.words} is on.", one(n.value), 1, n.reads)
        return
    basic = " basic" if not n.is_part and len(scene.numbers) <= 8 and n.kind == "real" else ""
    scale, tag = rounded(max(abs(n.low), abs(n.high))), "velocity" if n.is_rate else "value"
    line = one(f"jnp.clip({divided(n.value, scale)}, -2.0, 2.0)")
    yield _feature(f"{n.name}_scaled", f"{tag}{basic}{about}", f"{_the(n)}, scaled.", line, 1, n.reads, part)
    if n.kind == "count" and n.high - n.low < MOST_KINDS and n.high - n.low > 1:
        kinds, least = int(n.high - n.low) + 1, int(n.low)
        start = f" - {least}" if least > 0 else f" + {-least}" if least else ""
        line = f"jax.nn.one_hot({n.text}.astype(jnp.int32){start}, {kinds})"
        yield _feature(f"{n.name}_one_hot", f"kind{about}", f"One-hot of {n.words}.", line, kinds, n.reads, part)
    if n.is_angle:
        line = f"jnp.stack([jnp.sin({n.text}), jnp.cos({n.text})])"
        basic = " basic" if n.goes_round else ""
        yield _feature(f"{n.name}_sine_cosine", f"angle{basic}{about}", f"Sine and cosine of {n.words}.", line, 2,
                       n.reads, part)  # fmt: skip
    if n.kind == "real" and not n.goes_round and abs(float(np.median(n.after))) > 2 * n.span:
        middle, unit = rounded(float(np.median(n.after)), 3), rounded(n.span)
        line = one(f"jnp.clip(({n.value} - {middle!r}) / {unit!r}, -5.0, 5.0)")
        yield _feature(f"{n.name}_from_middle", f"value{about}", f"{_the(n)} less its usual value, scaled.", line, 1,
                       n.reads, part)  # fmt: skip


def _of_place(p: Place, scene: Scene) -> Iterator[Draft]:
    is_agent = scene.agent is not None and p.name == scene.agent.name
    low, high = p.bounds
    scale = rounded(float(np.abs(np.concatenate([low, high])).max()))
    words, tag = ("velocity", "velocity") if p.is_rate else ("position", "position")
    basic = " basic" if is_agent and p.size * len(scene.places) <= SMALL else ""
    line = f"jnp.clip({divided(p.text, scale)}, -2.0, 2.0)"
    yield _feature(f"{p.name}_{words}", f"{tag}{basic} about:{p.name}" if not is_agent else f"agent{basic}",
                   f"The {words} of {p.words}, scaled.", line, p.size, p.reads)  # fmt: skip


def _of_target(p: Place, scene: Scene) -> Iterator[Draft]:
    agent = scene.agent
    assert agent is not None
    way, reads, name = scene.way(p), p.reads | agent.reads, f"{agent.name}_to_{p.name}"
    span = _span(agent, p)
    about, words = f"about:{p.name}", f"from {agent.words} to {p.words}"
    yield _feature(f"{name}_offset", f"relative {about}", f"The way {words}, scaled.", f"{way} / {rounded(span)!r}",
                   p.size, reads, 1.0, (1.0, 2.0))  # fmt: skip
    near = 3.0 if p.is_integer else rounded(span / 4)
    yield _feature(f"{name}_near", f"relative {about}", f"The way {words}, to scale within {near:g}.",
                   f"jnp.clip({way} / {near!r}, -1.0, 1.0)", p.size, reads, 0.7)  # fmt: skip
    if p.is_integer:
        yield _feature(f"{name}_side", f"relative {about}", f"Signs of the way {words}.", f"jnp.sign({way})", p.size,
                       reads, 0.7)  # fmt: skip
    line = f"jnp.reshape({scene.distance(p)} / {rounded(span)!r}, (1,))"
    yield _feature(f"{name}_distance", f"distance {about}", f"The distance {words}, scaled.", line, 1, reads, 0.8)


def _span(one: Place, other: Place) -> float:
    return float(np.abs(np.concatenate([other.before - one.before, other.after - one.after])).max()) or 1.0


def _of_pairs(scene: Scene) -> Iterator[Draft]:
    """Ways between places other than the agent."""
    places = [p for p in scene.places if p in scene.targets][:4]
    for k, one in enumerate(places):
        for other in places[k + 1 :]:
            if comparable(one, other, scene.subtracted):
                line = f"({other.text} - {one.text}) / {rounded(_span(one, other))!r}"
                tags = f"relative pair about:{one.name} about:{other.name}"
                yield _feature(f"{one.name}_to_{other.name}_offset", tags,
                               f"The way from {one.words} to {other.words}, scaled.", line, one.size,
                               one.reads | other.reads, 0.5)  # fmt: skip


def _of_turn(t: Turn) -> Iterator[Draft]:
    for name, words, helper, size in (
        ("up", "The up axis of {} in the world.", "up_in_world", 3),
        ("gravity", "The direction of gravity as {} has it.", "down_in_body", 3),
        ("heading", "Cosine and sine of the heading of {}.", "heading_of", 2),
    ):
        basic = " basic" if name == "gravity" else ""
        yield _feature(f"{t.name}_{name}", f"orientation{basic} about:{t.name}", words.format(t.words),
                       f"{helper}({t.text})", size, t.reads)  # fmt: skip


def _of_vector(f: Field) -> Iterator[Draft]:
    if f.size > LARGE:
        return
    reads, words = frozenset([f.index]), f.name.replace("_", " ")
    size = float(np.quantile(np.abs(f.both), 0.98)) or float(np.abs(f.both).max())
    tag = "vector large" if f.size > SMALL else "vector basic" if f.size <= MOST_KINDS * 2 else "vector"
    value = f.of(STATE) if not f.is_integer else f"{f.of(STATE)}.astype(jnp.float32)"
    line = f"jnp.clip({divided(value, rounded(size))}, -5.0, 5.0)"
    yield _feature(f"{f.name}_scaled", f"{tag} about:{f.name}", f"All of {words}, scaled.", line, f.size, reads)


def _of_differences(scene: Scene) -> Iterator[Draft]:
    """Differences of vectors of equal shape and like ranges."""
    for one, other in like_vectors(scene):
        unit = rounded(float(np.abs(one.both - other.both).max()))
        line = f"({one.of(STATE)} - {other.of(STATE)}) / {unit!r}"
        tags = f"relative pair about:{one.name} about:{other.name}"
        words = f"{one.name} less {other.name}".replace("_", " ")
        yield _feature(f"{one.name}_less_{other.name}", tags, f"Every {words}, scaled.", line, one.size,
                       frozenset([one.index, other.index]))  # fmt: skip


def _of_like_numbers(scene: Scene) -> Iterator[Draft]:
    """Differences of scalars with like bounds, and of whole numbers whether they are equal."""
    for one, other in like_numbers(scene):
        unit = rounded(float(np.abs(np.concatenate([one.before - other.before, one.after - other.after])).max()))
        tags, reads = f"about:{one.name} about:{other.name}", one.reads | other.reads
        words, line = f"{one.words} less {other.words}", divided(f"({one.value} - {other.value})", unit)
        yield _feature(f"{one.name}_less_{other.name}", f"relative pair {tags}", f"{words.capitalize()}, scaled.",
                       f"jnp.reshape({line}, (1,))", 1, reads)  # fmt: skip
        if one.kind == "count":
            line = f"jnp.reshape({one.text} == {other.text}, (1,)).astype(jnp.float32)"
            yield _feature(f"{one.name}_is_{other.name}", f"contact pair {tags}",
                           f"Whether {one.words} and {other.words} are equal.", line, 1, reads)  # fmt: skip


def like_numbers(scene: Scene) -> list[tuple[Number, Number]]:
    """Pairs of scalars of a kind that have about the same bounds, as a position on a line and a goal there."""
    found = []
    scalars = [n for n in scene.numbers if n.kind in ("count", "real") and not (n.is_rate or n.is_angle)]
    for one, other in combinations(scalars, 2):
        shared = min(one.high, other.high) - max(one.low, other.low)
        apart = not (one.is_part and other.is_part)
        if apart and one.kind == other.kind and shared >= LIKE * (max(one.high, other.high) - min(one.low, other.low)):
            found.append((one, other))
    return found[:6]


def like_vectors(scene: Scene) -> list[tuple[Field, Field]]:
    """Pairs of vectors of real numbers whose elements have about the same ranges."""
    found = []
    reals = [f for f in scene.vectors if not f.is_integer and f.size <= SMALL]
    for k, one in enumerate(reals):
        for other in reals[k + 1 :]:
            if one.shape == other.shape:
                spans = [float(np.quantile(np.abs(f.both), 0.98)) + 1e-9 for f in (one, other)]
                if max(spans) < 4 * min(spans):
                    found.append((one, other))
    return found[:6]


def _of_grid(g: Grid, scene: Scene) -> Iterator[Draft]:
    agent, words = scene.agent, g.name.replace("_", " ")
    size = g.shape[0] * g.shape[1]
    if size <= LARGE:
        tag = "map large" if size > SMALL else "map"
        line = divided(f"{g.text}.reshape(-1)", g.scale)
        yield _feature(f"{g.name}_map", tag, f"All cells of {words}, scaled.", line, size, g.reads, 0.7)
    if agent is None or not agent.is_integer or agent.size != 2:
        return
    if not (np.all(agent.bounds[0] >= -1) and np.all(agent.bounds[1] <= np.array(g.shape))):
        return
    reads = g.reads | agent.reads
    for radius in (1, 2, 3):
        side = 2 * radius + 1
        if side <= max(g.shape):
            line = divided(f"window({g.text}, {agent.text}, {radius}).reshape(-1)", max(g.scale, 1.0))
            tag = "local_view large" if radius == 3 else "local_view"
            doc = f"The {side} x {side} cells of {words} around {agent.words}."
            yield _feature(f"{g.name}_{side}x{side}", tag, doc, line, side * side, reads)
    cross = "jnp.array([1, 5, 7, 3])"
    line = divided(f"window({g.text}, {agent.text}, 1).reshape(-1)[{cross}]", max(g.scale, 1.0))
    yield _feature(f"{g.name}_beside", "surroundings", f"The cells of {words} above, right, below and left of "
                   f"{agent.words}.", line, 4, reads)  # fmt: skip


def _whole(scene: Scene) -> Iterator[Draft]:
    """All numbers of the view at once, where they are few."""
    parts, size, reads = [], 0, set[int]()
    for f in scene.fields:
        if f.is_constant or f.size > SMALL:
            continue
        unit = rounded(float(np.quantile(np.abs(f.both), 0.98)) or 1.0)
        value = f"{f.of(STATE)}.astype(jnp.float32)" if f.is_integer else f.of(STATE)
        parts.append(divided(f"jnp.ravel({value})", unit))
        size, reads = size + f.size, reads | {f.index}
    if len(parts) > 1 and size <= 2 * SMALL:
        lines = ["parts = [", *(f"    {of(part, 'state')}," for part in parts), "]"]
        lines.append("jnp.clip(jnp.concatenate(parts), -5.0, 5.0)")
        template = Template("everything", "whole", "All numbers of the state, scaled.", tuple(lines), size)
        yield Draft(template, "feature", 1.0, frozenset(reads))


def _the(n: Number) -> str:
    return f"The {n.words}".replace("The the", "The")
