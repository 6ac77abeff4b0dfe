"""Flappy Bird, by the rules and figures of flappy-bird-gymnasium 0.4 (https://github.com/markub3327/flappy-bird-gymnasium)
without its rays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.records import Measure, Vocabulary
from jaxreward.tasks.base import BaseTask
from jaxreward.tasks.games.scores import with_length
from jaxreward.tasks.metrics import WithExtraMetrics
from jaxreward.tasks.option_checks import check_horizon, check_whole, invalid_option
from jaxreward.tasks.task import Discrete

WIDTH, HEIGHT = 288, 512
"""Of the screen, in pixels."""
GROUND = 0.79 * HEIGHT
"""Where the ground begins."""
BIRD_X, BIRD_WIDTH, BIRD_HEIGHT = 57, 34, 24
"""The bird's left edge, and its size."""
PIPE_WIDTH, PIPE_HEIGHT = 52, 320
FLAP, GRAVITY, FASTEST = -9.0, 1.0, 10.0
"""Velocity after a flap, what is added to it in a step without, and up to which (pixels a step, downwards)."""
SCROLL = 4.0
"""Pixels that the pipes move to the left in a step."""
FLAPPED, TURN, DOWNWARDS = 45.0, 3.0, -90.0
"""Rotation after a flap, what it loses in a step, and down to which (degrees)."""
GAPS = (20, 30, 40, 50, 60, 70, 80, 90)
"""Where gaps begin, from a fifth of the way to the ground."""
AGAIN = WIDTH + PIPE_WIDTH + 0.2 * WIDTH
"""Where a pipe begins again that has left the screen."""


class Bird(NamedTuple):
    """A state of the game; pipes in the order in which they came."""

    y: jax.Array
    velocity: jax.Array
    rotation: jax.Array
    pipe_x: jax.Array
    gap_y: jax.Array
    score: jax.Array
    passed: jax.Array
    dead: jax.Array
    steps: jax.Array
    key: jax.Array


class BirdView(NamedTuple):
    """What programs see of it: the arguments of FORGE's rewards (appendix B.3), and what came of the last step."""

    last_pipe_x: jax.Array
    last_top_pipe_y: jax.Array
    last_bottom_pipe_y: jax.Array
    next_pipe_x: jax.Array
    next_top_pipe_y: jax.Array
    next_bottom_pipe_y: jax.Array
    next_next_pipe_x: jax.Array
    next_next_top_pipe_y: jax.Array
    next_next_bottom_pipe_y: jax.Array
    player_y: jax.Array
    player_y_velocity: jax.Array
    player_rotation: jax.Array
    player_x: jax.Array
    player_width: jax.Array
    player_height: jax.Array
    screen_width: jax.Array
    screen_height: jax.Array
    pipe_passed: jax.Array
    player_dead: jax.Array
    score: jax.Array
    step_count: jax.Array


@dataclass(frozen=True)
class FlappyBird(BaseTask):
    """A bird that must pass the gaps between pipes.

    Args:
        horizon: steps of an episode; about one pipe comes in 40 of them.
        gap: pixels between an upper and a lower pipe.
    """

    horizon: int = 1000
    gap: int = 100

    name = "flappy-bird"  # type: ignore[assignment]
    action_space = Discrete(2)  # type: ignore[assignment]
    state_words: ClassVar[dict[str, str]] = {
        "last_pipe_x": "left edge of the first pipe from the left (pixels)",
        "last_top_pipe_y": "where its upper half ends and its gap begins",
        "last_bottom_pipe_y": "where its gap ends and its lower half begins",
        "next_pipe_x": "the same of the second pipe from the left",
        "next_top_pipe_y": "where its gap begins",
        "next_bottom_pipe_y": "where its gap ends",
        "next_next_pipe_x": "the same of the third",
        "next_next_top_pipe_y": "where its gap begins",
        "next_next_bottom_pipe_y": "where its gap ends",
        "player_y": "upper edge of the bird (pixels)",
        "player_y_velocity": "its velocity downwards (pixels a step), at most 10; -9 after a flap, 0 where it died",
        "player_rotation": "its rotation (degrees): 45 after a flap, then 3 less in each step, down to -90",
        "player_x": "left edge of the bird; always the same",
        "player_width": "its width; always the same",
        "player_height": "its height; always the same",
        "screen_width": "width of the screen; always the same",
        "screen_height": "height of the screen; always the same",
        "pipe_passed": "whether the bird passed the middle of a pipe in the last step",
        "player_dead": "whether it hit a pipe or the ground, which ends the episode",
        "score": "pipes passed",
        "step_count": "steps taken",
        "action": "0: nothing, 1: flap",
    }
    state_notes = (
        "x grows to the right and y downwards; the ground is at y = 404.48. The bird stays at its x, and pipes come\n"
        "towards it by 4 pixels a step, each with a gap. A pipe beyond the right edge of the screen is not seen: its\n"
        "x is then 288 and its gap from 0 to 512. The first pipe from the left may lie behind the bird. It may fly\n"
        "above the screen, where it cannot flap beyond y = -48."
    )

    def __post_init__(self) -> None:
        check_horizon(self.horizon)
        check_whole("gap", self.gap)
        if not BIRD_HEIGHT < self.gap <= 200:
            raise invalid_option("gap", f"gap must be from {BIRD_HEIGHT + 1} to 200 pixels, not {self.gap}")

    @property
    def description(self) -> str:
        return (
            "A bird flies to the right and falls; to flap makes it rise for a moment. It has to pass through the gaps "
            "between upper and lower pipes, whose heights differ. An episode ends when it hits a pipe or the ground, "
            f"at the latest after {self.horizon} steps; the score is the number of pipes that it passed."
        )

    # ---- the game

    def reset(self, key: jax.Array) -> Bird:
        key, drawn = jax.random.split(key)
        return Bird(
            y=jnp.float32((HEIGHT - BIRD_HEIGHT) // 2), velocity=jnp.float32(FLAP), rotation=jnp.float32(FLAPPED),
            pipe_x=jnp.array([1.0, 1.5, 2.0]) * WIDTH, gap_y=self._gaps(drawn),
            score=jnp.int32(0), passed=jnp.bool_(False), dead=jnp.bool_(False), steps=jnp.int32(0), key=key,
        )  # fmt: skip

    def step(self, state: Bird, action: jax.Array) -> Bird:
        """The bird moves, then the pipes; whether one is passed is seen before."""
        middle = BIRD_X + BIRD_WIDTH / 2 - state.pipe_x - PIPE_WIDTH / 2
        passed = ((middle >= 0.0) & (middle < SCROLL)).sum(dtype=jnp.int32)
        flaps = (action == 1) & (state.y > -2 * BIRD_HEIGHT)
        fallen = jnp.minimum(state.velocity + GRAVITY, FASTEST)
        velocity = jnp.where(flaps, FLAP, fallen)
        turned = jnp.where(state.rotation > DOWNWARDS, state.rotation - TURN, state.rotation)
        y = state.y + jnp.minimum(velocity, GROUND - state.y - BIRD_HEIGHT)
        key, drawn = jax.random.split(state.key)
        pipe_x = state.pipe_x - SCROLL
        gone = pipe_x < -PIPE_WIDTH
        pipe_x = jnp.where(gone, AGAIN, pipe_x)
        gap_y = jnp.where(gone, self._gaps(drawn), state.gap_y)
        dead = self._crashed(y, pipe_x, gap_y)
        return Bird(
            y=y, velocity=jnp.where(dead, 0.0, velocity), rotation=jnp.where(flaps, FLAPPED, turned), pipe_x=pipe_x,
            gap_y=gap_y, score=state.score + passed, passed=passed > 0, dead=dead, steps=state.steps + 1, key=key,
        )  # fmt: skip

    def terminated(self, state: Bird) -> jax.Array:
        return state.dead

    def _gaps(self, key: jax.Array) -> jax.Array:
        """Where the gaps of three pipes begin (3,), drawn uniformly."""
        places = jnp.array(GAPS, jnp.float32) + int(0.2 * GROUND)
        return jax.random.choice(key, places, (3,))

    def _crashed(self, y: jax.Array, pipe_x: jax.Array, gap_y: jax.Array) -> jax.Array:
        """Whether the bird is on the ground or overlaps a pipe; both are rectangles of whole pixels."""
        top, left = jnp.trunc(y), jnp.trunc(pipe_x)
        beside = (left < BIRD_X + BIRD_WIDTH) & (left + PIPE_WIDTH > BIRD_X)
        above = (top < gap_y) & (top + BIRD_HEIGHT > gap_y - PIPE_HEIGHT)
        below = top + BIRD_HEIGHT > gap_y + self.gap
        return (y + BIRD_HEIGHT >= GROUND - 1.0) | (beside & (above | below)).any()

    # ---- programs

    def view(self, state: Bird) -> BirdView:
        """The state, pipes from left to right."""
        seen = state.pipe_x <= WIDTH
        x = jnp.where(seen, state.pipe_x, float(WIDTH))
        top = jnp.where(seen, state.gap_y, 0.0)
        bottom = jnp.where(seen, state.gap_y + self.gap, float(HEIGHT))
        order = jnp.argsort(x, stable=True)
        x, top, bottom = x[order], top[order], bottom[order]
        return BirdView(
            x[0], top[0], bottom[0], x[1], top[1], bottom[1], x[2], top[2], bottom[2],
            player_y=state.y, player_y_velocity=state.velocity, player_rotation=state.rotation,
            player_x=jnp.float32(BIRD_X), player_width=jnp.float32(BIRD_WIDTH), player_height=jnp.float32(BIRD_HEIGHT),
            screen_width=jnp.float32(WIDTH), screen_height=jnp.float32(HEIGHT),
            pipe_passed=state.passed, player_dead=state.dead, score=state.score, step_count=state.steps,
        )  # fmt: skip

    def score(self) -> WithExtraMetrics:
        """The pipes passed; an extra metric is the part of the longest episode that was played."""
        return with_length(
            lambda state, action, after: (after.score - state.score).astype(jnp.float32),
            Measure(name="pipes", rate=False), self.horizon, tells=True,
        )  # fmt: skip

    def default_observation(self, view: BirdView) -> jax.Array:
        """Three pipes and the bird, each part in its own unit, as flappy-bird-gymnasium has them; (12,)."""
        pipes = [
            (view.last_pipe_x, view.last_top_pipe_y, view.last_bottom_pipe_y),
            (view.next_pipe_x, view.next_top_pipe_y, view.next_bottom_pipe_y),
            (view.next_next_pipe_x, view.next_next_top_pipe_y, view.next_next_bottom_pipe_y),
        ]
        numbers = [n for x, top, bottom in pipes for n in (x / WIDTH, top / HEIGHT, bottom / HEIGHT)]
        bird = [view.player_y / HEIGHT, view.player_y_velocity / FASTEST, view.player_rotation / 90.0]
        return jnp.stack([*numbers, *bird])

    def sparse_reward(self, view: BirdView, action: jax.Array, next_view: BirdView) -> jax.Array:
        """The game's own: 1 for a pipe, 0.1 for any other step, -0.5 for one that ends above the screen, and -1 for the
        end."""
        alive = jnp.where(next_view.pipe_passed, 1.0, 0.1)
        paid = jnp.where(next_view.player_y < 0.0, -0.5, alive)
        return jnp.where(next_view.player_dead, -1.0, paid).astype(jnp.float32)

    def dense_reward(self, view: BirdView, action: jax.Array, next_view: BirdView) -> jax.Array:
        """1 for a pipe, minus how far the bird is from the height of the next gap, and -1 for the end."""
        ahead = next_view.last_pipe_x + PIPE_WIDTH > BIRD_X
        top = jnp.where(ahead, next_view.last_top_pipe_y, next_view.next_top_pipe_y)
        bottom = jnp.where(ahead, next_view.last_bottom_pipe_y, next_view.next_bottom_pipe_y)
        off = jnp.abs(next_view.player_y + BIRD_HEIGHT / 2 - 0.5 * (top + bottom)) / HEIGHT
        return next_view.pipe_passed + 0.1 - off - 1.0 * next_view.player_dead

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.games.flappy_fragments import vocabulary

        return vocabulary(self.gap)

    def draw(self, state: Bird) -> np.ndarray:
        """The screen, three quarters as large: uint8 (384, 216, 3)."""
        picture = np.full((3 * HEIGHT // 4, 3 * WIDTH // 4, 3), (110, 190, 205), np.uint8)

        def fill(x: float, y: float, width: float, height: float, colour: tuple[int, int, int]) -> None:
            top, bottom, left, right = (max(0, round(0.75 * at)) for at in (y, y + height, x, x + width))
            picture[top:bottom, left:right] = colour

        for x, gap_y in zip(np.asarray(state.pipe_x), np.asarray(state.gap_y), strict=True):
            for y, height in ((gap_y - PIPE_HEIGHT, PIPE_HEIGHT), (gap_y + self.gap, HEIGHT)):
                fill(x, y, PIPE_WIDTH, height, (40, 110, 50))
                fill(x + 4, y, PIPE_WIDTH - 8, height, (90, 180, 80))
        fill(0, GROUND, WIDTH, HEIGHT - GROUND, (215, 205, 140))
        y = float(state.y)
        fill(BIRD_X, y, BIRD_WIDTH, BIRD_HEIGHT, (70, 50, 30))
        fill(BIRD_X + 2, y + 2, BIRD_WIDTH - 4, BIRD_HEIGHT - 4, (200, 60, 50) if state.dead else (245, 200, 50))
        fill(BIRD_X + 22, y + 4, 6, 6, (255, 255, 255))
        fill(BIRD_X + 28, y + 12, 8, 6, (235, 120, 40))
        return picture
