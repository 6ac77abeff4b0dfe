"""A helper process that answers framed messages and may be lost at any time."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from jaxreward.errors import UserError

_START_S = 120.0
_PARENT = "JAXREWARD_PARENT"
"""The process that started a helper, which may end before the helper reads its id."""


class SandboxError(UserError):
    """A fault of the machine: a helper process cannot be started. Never a candidate's fault."""


class NoSandbox(UserError):
    """Candidate programs cannot be locked down on this machine; `reason` is why."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}: candidate programs cannot be locked down on this machine; use Linux on x86_64 or aarch64, or "
            "pass unsafe_no_sandbox=True (--unsafe-no-sandbox) if you trust every program that will be checked"
        )
        self.reason = reason


class Lost(Exception):
    """The process died, or was stopped for its time or the size of its answer."""


def environment(**extra: str) -> dict[str, str]:
    """The environment of a helper process: where Python and its libraries are, no keys, no home."""
    root = str(Path(__file__).resolve().parents[2])
    paths = [root, *(p for p in sys.path if p and p != root)]
    inherited = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "TMPDIR") if name in os.environ}
    return {
        **inherited,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANG": "C.UTF-8",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        **extra,
    }


def write_frame(descriptor: int, payload: bytes, deadline: float | None = None) -> None:
    """One frame; with a deadline, in pieces that a pipe takes at once: a stopped reader cannot block the writer."""
    data = memoryview(len(payload).to_bytes(8, "little") + payload)
    while data:
        if deadline is None:
            data = data[os.write(descriptor, data) :]
            continue
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([], [descriptor], [], left)[1]:
            raise Lost("it does not listen")
        data = data[os.write(descriptor, data[: select.PIPE_BUF]) :]


def read_frame(descriptor: int, limit: int, deadline: float | None = None) -> bytes:
    """One frame.

    Raises:
        Lost: the other end closed, exceeded `limit` bytes or the deadline (`time.monotonic`).
    """
    size = int.from_bytes(_read(descriptor, 8, deadline), "little")
    if size > limit:
        raise Lost(f"an answer of {size} bytes")
    return _read(descriptor, size, deadline)


def _read(descriptor: int, size: int, deadline: float | None) -> bytes:
    data = bytearray()
    while len(data) < size:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise Lost("no answer in time")
        part = os.read(descriptor, min(size - len(data), 1 << 20))
        if not part:
            raise Lost("it died")
        data += part
    return bytes(data)


def leave_with_parent(every_s: float = 1.0) -> None:
    """End this process soon after its parent has: one that is inside XLA does not read the end of file, and could
    go on to use up the machine's memory."""
    parent = int(os.environ.get(_PARENT, os.getppid()))

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(every_s)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Process:
    """`python -m module` with pipes; started when first asked, and again after it was lost.

    `hello` is its first message.
    """

    def __init__(self, module: str, **extra_environment: str) -> None:
        self.module, self.extra = module, extra_environment
        self.hello: dict[str, Any] = {}
        self._popen: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def start(self) -> dict[str, Any]:
        """Start it if it is not running.

        Raises:
            SandboxError: it does not come up; with the end of what it printed.
        """
        if self._popen is not None and self._popen.poll() is None and self._owner == os.getpid():
            return self.hello
        self.stop()
        with tempfile.TemporaryFile() as errors:
            try:
                self._popen = subprocess.Popen(
                    [sys.executable, "-P", "-s", "-m", self.module],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd="/",
                    env=environment(**{_PARENT: str(os.getpid())}, **self.extra), start_new_session=True,
                )  # fmt: skip
                self._owner = os.getpid()
                assert self._popen.stdout is not None
                answer = read_frame(self._popen.stdout.fileno(), 1 << 20, time.monotonic() + _START_S)
                self.hello = json.loads(answer)
            except (OSError, Lost, ValueError) as error:
                self.stop()
                errors.seek(0)
                said = errors.read()[-2000:].decode(errors="replace").strip().splitlines()
                why = f"{error}: {said[-1]}" if said else str(error)
                raise SandboxError(
                    f"the helper that checks programs, {self.module}, cannot be started ({why}): see whether memory or "
                    "processes have run out, or something ends them"
                ) from error
        return self.hello

    def ask(self, payload: bytes, timeout: float, limit: int) -> bytes:
        """Its answer to `payload`.

        Raises:
            Lost: it died or was killed; the next call starts a fresh one.
            SandboxError: it cannot be started.
        """
        self.start()
        assert self._popen is not None and self._popen.stdin is not None and self._popen.stdout is not None
        try:
            deadline = time.monotonic() + timeout
            write_frame(self._popen.stdin.fileno(), payload, deadline)
            return read_frame(self._popen.stdout.fileno(), limit, deadline)
        except (OSError, Lost) as error:
            self.stop()
            raise Lost(str(error)) from error
        except BaseException:
            self.stop()  # after an interrupt the next answer would be that of this question
            raise

    @property
    def pid(self) -> int | None:
        return self._popen.pid if self._popen else None

    def stop(self) -> None:
        popen, self._popen = self._popen, None
        if popen is None or self._owner != os.getpid():
            return
        popen.kill()
        popen.wait()
        for pipe in (popen.stdin, popen.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
