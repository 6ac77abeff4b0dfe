"""Benchmarks switch off what the tests keep on disk of compiled functions: for themselves alone."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache


@pytest.fixture(autouse=True)
def kept_for_other_tests() -> Iterator[None]:
    before = jax.config.values["jax_enable_compilation_cache"]
    yield
    jax.config.update("jax_enable_compilation_cache", before)
    compilation_cache.reset_cache()
