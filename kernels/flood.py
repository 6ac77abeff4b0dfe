"""Walking distances on a small grid: a flood of bits, and cell by cell for reference.

One turn of `flood` is some shifts and masks of a few integers, which a compiler makes one kernel of; a turn on arrays
of cells is several kernels. `bits_of` to `flood` are in the language of programs (docs/programs.md), which may carry
their text; the vocabulary of XLand has a shorter flood over rows (docs/appendix/benchmarks.md, "Walking distances").
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def bits_of(cells: jax.Array) -> list[jax.Array]:
    """Cells of a grid, bool (H, W), as bits of uint32: first words of the even cells, then as many of the odd ones.

    Cells have numbers in rows of odd length, 0 for (1, 1): the neighbours of an even cell are odd. Bit i of word k is
    cell 64 k + 2 i, or the one after it. The border is left out.
    """
    row = cells.shape[1] | 1
    flat = jnp.pad(cells, ((0, 0), (0, row - cells.shape[1]))).reshape(-1)[row + 1 : -row - 1].astype(jnp.uint32)
    parts = [flat[k + odd : k + 64 : 2] for odd in (0, 1) for k in range(0, flat.size, 64)]
    return [jnp.sum(part << jnp.arange(part.size, dtype=jnp.uint32), dtype=jnp.uint32) for part in parts]


def number_of(cell: jax.Array, width: int) -> jax.Array:
    """The number that a cell, (..., 2), has in `bits_of` a grid of `width` columns."""
    return (cell[..., 0] - 1) * (width | 1) + cell[..., 1] - 1


def bit_of(number: jax.Array, words: int) -> list[jax.Array]:
    """As `bits_of` a grid on which one cell is true; none is if the number is out of range."""
    bit = jnp.uint32(1) << ((number & 63) >> 1).astype(jnp.uint32)
    return [jnp.where((number & 1 == odd) & (number >> 6 == k), bit, 0) for odd in (0, 1) for k in range(words)]


def moved_up(words: list[jax.Array], n: int) -> list[jax.Array]:
    """Bits moved up by n places, from word to word."""
    return [w << n | words[k - 1] >> (32 - n) if k else w << n for k, w in enumerate(words)]


def moved_down(words: list[jax.Array], n: int) -> list[jax.Array]:
    """Bits moved down by n places, from word to word."""
    last = len(words) - 1
    return [w >> n | words[k + 1] << (32 - n) if k < last else w >> n for k, w in enumerate(words)]


def meet(words: list[jax.Array], others: list[jax.Array]) -> jax.Array:
    """Whether a bit is set in both."""
    found = words[0] & others[0]
    for word, other in zip(words[1:], others[1:]):
        found = found | word & other
    return found != 0


def spread(
    words: list[jax.Array], free: list[jax.Array], stop: jax.Array, sides: list[list[jax.Array]]
) -> list[jax.Array]:
    """`words` with those of the bits of any of `sides` that are `free`, unless it is to stop."""
    return [jnp.where(stop, w, w | (a | b | c | d) & f) for w, f, a, b, c, d in zip(words, free, *sides)]


def flood(
    passable: jax.Array, start: jax.Array, target: jax.Array, beside: jax.Array, limit: int
) -> tuple[jax.Array, jax.Array]:
    """Steps from `start` to `target`, and which of the cells `beside` the target are nearer to the start than it is.

    A flood from the start over passable cells, which stops when it reaches the target. Even and odd cells take turns.

    Args:
        passable: bool (H, W), W at most 61, False on the border. The start need not be passable.
        start, target: row and column, int32 (2,); the start is not on the border.
        beside: neighbours of the target, int32 (k, 2).
        limit: an even number of steps, which counts for all that is farther or not reached.

    Returns:
        int32 () and bool (k,).
    """
    width = passable.shape[1]
    half = width // 2
    free, first, last = bits_of(passable), number_of(start, width), number_of(target, width)
    words = len(free) // 2
    goal = bit_of(last, words)
    end = (
        limit - 2 + (first & 1)
    )  # steps before the last turn, after which even cells would be `limit` from an even start

    def turn(carry, _):
        even, odd, steps = carry
        there = meet(even, goal[:words])
        sides = [even, moved_down(even, 1), moved_down(even, half + 1), moved_up(even, half)]
        odd = spread(odd, free[words:], there, sides)
        now = meet(odd, goal[words:])
        sides = [odd, moved_up(odd, 1), moved_up(odd, half + 1), moved_down(odd, half)]
        even = spread(even, free[:words], now | (steps == end), sides)
        return (even, odd, steps + jnp.where(there | now, 0, 2)), None

    begin = bit_of(first, words)
    even, odd, steps = jax.lax.scan(turn, (begin[:words], begin[words:], jnp.int32(0)), None, length=limit // 2)[0]
    steps = jnp.where(meet(even + odd, goal), steps + (last & 1) - (first & 1), limit)
    return steps, meet(even + odd, bit_of(number_of(beside, width), words))


def flood_by_cells(
    passable: jax.Array, start: jax.Array, target: jax.Array, beside: jax.Array, limit: int
) -> tuple[jax.Array, jax.Array]:
    """What `flood` computes, as a breadth-first search over the cells of the grid."""
    reached = jnp.zeros(passable.shape, bool).at[start[0], start[1]].set(True)

    def turn(step: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        reached, steps = carry
        wide = jnp.pad(reached, 1)
        sides = wide[:-2, 1:-1] | wide[2:, 1:-1] | wide[1:-1, :-2] | wide[1:-1, 2:]
        new = sides & passable & ~reached
        return reached | new, jnp.where(new, step, steps)

    steps = jax.lax.fori_loop(1, limit, turn, (reached, jnp.where(reached, 0, limit)))[1]
    return steps[target[0], target[1]], steps[beside[:, 0], beside[:, 1]] < steps[target[0], target[1]]
