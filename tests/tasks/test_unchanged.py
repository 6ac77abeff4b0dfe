"""Task objects that are assigned to after their first use: compiled functions hold the values of then."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jaxreward as jr
from jaxreward.errors import InvalidSetting
from jaxreward.tasks import require_sound
from jaxreward.tasks.validation import InvalidTask

LIMIT = 3
_SEEN: dict[str, int] = {}


class Steps(jr.BaseTask):
    """Counts its steps."""

    name = "steps"
    horizon = 4
    action_space = jr.Discrete(2)

    def __init__(self) -> None:
        self.gain, self.table, self._calls = 1, jnp.arange(3.0), 0

    def reset(self, key: jax.Array) -> Any:
        self._calls += 1
        _SEEN["reset"] = _SEEN.get("reset", 0) + 1
        return {"t": jnp.zeros(())}

    def step(self, state: Any, action: jax.Array) -> Any:
        return {"t": state["t"] + self.gain * self.table[1]}

    def success(self, state: Any) -> jax.Array:
        return state["t"] >= LIMIT


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("gain", 0, r"^task\.gain was 1 and is 0 since it was first used"),
        ("horizon", 8, r"^task\.horizon was 4 and is 8"),
        ("table", jnp.arange(5.0), r"^task\.table was array float32 \(3,\).* and is array float32 \(5,\)"),
    ],
)
def test_an_attribute_that_changes_is_named(name: str, value: Any, says: str):
    task = Steps()
    task.horizon = 4  # pyright: ignore[reportAttributeAccessIssue]
    require_sound(task)
    require_sound(task)
    setattr(task, name, value)
    with pytest.raises(InvalidSetting, match=says):
        jr.train(task, [lambda state, action, next_state: next_state.t], steps=64)


def test_a_global_that_a_method_reads_counts_too(monkeypatch):
    task = Steps()
    require_sound(task)
    monkeypatch.setitem(globals(), "LIMIT", 9)
    with pytest.raises(InvalidSetting, match=r"LIMIT was 3 and is 9"):
        require_sound(task)
    require_sound(Steps())


def test_what_is_new_or_private_may_change():
    task = Steps()
    require_sound(task)
    before = task._calls
    task.seen = {"new": 1}  # type: ignore[attr-defined]
    task._calls, _SEEN["reset"], _SEEN["more"] = 99, -1, 1
    require_sound(task)
    assert before > 0


def test_a_task_that_cannot_be_hashed_is_told_how_to():
    from dataclasses import dataclass

    @dataclass
    class Plain(Steps):
        size: int = 1

        def __post_init__(self) -> None:
            Steps.__init__(self)

    with pytest.raises(InvalidTask, match=r"has no hash .*: write @dataclass\(frozen=True\)"):
        require_sound(Plain())
