"""What an update says of itself, whatever the learner."""

from __future__ import annotations

import jax
from flax import struct


class LearnStats(struct.PyTreeNode):
    """Scalars of one update: policy entropy and explained variance of the value."""

    entropy: jax.Array
    value_fit: jax.Array
