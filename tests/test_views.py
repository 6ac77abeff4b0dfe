"""What programs read of a task is traced once for each task."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from jaxreward.views import view_shapes


class Field:
    """A task whose view is a vector of `size`; `traced` counts how often its reset was."""

    def __init__(self, size: int) -> None:
        self.size, self.traced = size, 0

    def reset(self, key):
        del key
        self.traced += 1
        if self.size < 0:
            raise ValueError("no such field")
        return jnp.zeros(self.size)

    def view(self, state):
        return {"field": state}


def test_a_task_is_traced_once_and_every_task_for_itself():
    two, three = Field(2), Field(3)
    for _ in range(2):
        assert view_shapes(two)["field"].shape == (2,)
        assert view_shapes(three)["field"].shape == (3,)
    assert two.traced == three.traced == 1


def test_an_error_of_a_task_is_raised_every_time():
    wrong = Field(-1)
    for _ in range(2):
        with pytest.raises(ValueError, match="no such field"):
            view_shapes(wrong)
