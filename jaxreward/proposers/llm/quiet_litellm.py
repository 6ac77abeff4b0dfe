"""litellm, imported where it is used: the import takes seconds, and by default it prints and asks the network."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from jaxreward.extras import require


@cache
def import_litellm() -> Any:
    """litellm without its network lookups, its printing and its own search for a `.env`, over HTTP that is watched."""
    require("llm", "a language model")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")  # else it loads a .env from above its own files
    os.environ.setdefault("LITELLM_DISABLE_BUG_REPORT_LINK", "true")
    with quiet():
        import litellm

    litellm.suppress_debug_info = True
    if "LITELLM_LOG" not in os.environ:
        logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    # A model that repeats itself has replied; litellm would call it a broken server.
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = 10**9
    from jaxreward.proposers.llm.transport import wrap_transports

    wrap_transports()
    return litellm


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings that litellm causes; where they are errors its calls would fail."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"litellm(\.|$)")
        for about in (".*`ReadOnly` qualifier", "Pydantic serializer warnings"):
            warnings.filterwarnings("ignore", message=about, category=UserWarning)
        # Of a call that is cut off while a thread prepares it.
        warnings.filterwarnings("ignore", message="coroutine .* was never awaited", category=RuntimeWarning)
        yield
