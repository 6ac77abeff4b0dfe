"""Random generators that depend on where they are used, not on what was drawn before."""

from __future__ import annotations

import hashlib

import numpy as np


def derive_rng(seed: int, *path: str | int) -> np.random.Generator:
    """The generator of one place in a run, e.g. `derive_rng(seed, "ask", generation)`.

    Places with different paths draw independently, so a resumed run needs no generator state.
    """
    text = "/".join([str(int(seed)), *(f"{type(part).__name__}:{part}" for part in path)])
    entropy = int.from_bytes(hashlib.sha256(text.encode()).digest(), "little")
    return np.random.Generator(np.random.PCG64(entropy))
