"""The event loop that calls of language models run in, and what they leave behind in it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from jaxreward.proposers.llm.quiet_litellm import import_litellm, quiet


def run_calls(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that makes calls, in an event loop of its own, and close what litellm opened in it.

    litellm keeps its clients by the address of the loop in memory; a later loop at the same address
    would get clients that are dead. In a notebook, where a loop is running, a thread takes the work.
    """
    with quiet():
        if _loop_is_running():
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(asyncio.run, _tidy(work)).result()
        return asyncio.run(_tidy(work))


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _Lookups(ThreadPoolExecutor):
    """Threads that look names up: they may block for long, so `shutdown` does not wait for them."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def look() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        future.set_running_or_notify_cancel()
        threading.Thread(target=look, daemon=True, name="lookup").start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        return None


async def _tidy(work: Coroutine[Any, Any, Any]) -> Any:
    asyncio.get_running_loop().set_default_executor(_Lookups())
    try:
        return await work
    finally:
        with contextlib.suppress(Exception):
            await _close_clients()


async def _close_clients() -> None:
    cache = import_litellm().in_memory_llm_clients_cache
    mine = f"-{id(asyncio.get_running_loop())}"
    for key in [key for key in cache.cache_dict if str(key).endswith(mine)]:
        client = cache.cache_dict.pop(key)
        cache.ttl_dict.pop(key, None)
        with contextlib.suppress(Exception):  # whatever a provider's client raises on its way out
            await (client.aclose if hasattr(client, "aclose") else client.close)()
    # Its logging runs behind the calls; what is left of it would be carried into the next loop.
    with contextlib.suppress(Exception, asyncio.TimeoutError):
        from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

        await asyncio.wait_for(GLOBAL_LOGGING_WORKER.flush(), 2.0)
        await GLOBAL_LOGGING_WORKER.stop()
