"""A server of untrusted programs: it forks a locked-down child for each request, and says how that ended.

Each frame on standard input is a request; the answer is a frame with a header (how the child ended) and whatever the
child wrote: `L` once it is locked down, before anything else, then frames of its own.
"""

from __future__ import annotations

import json
import os
import platform
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from jaxreward.programs import lockdown
from jaxreward.programs.process import Lost, read_frame, write_frame

_REPLY_FD = 9
_MAX_REQUEST = 32 << 20

Serve = Callable[[dict[str, Any], Callable[[dict[str, Any]], None]], None]
"""What a child does: it is given the request, and a function that sends a frame."""


def serve_forever(serve: Serve, warm_up: Callable[[], None]) -> None:
    """Answer requests until standard input ends.

    Args:
        serve: runs in the child of each request.
        warm_up: runs once, before the first: a child can import nothing.
    """
    replies = os.dup(1)
    os.dup2(2, 1)  # so that a library's prints do not mix with answers
    warm_up()
    write_frame(replies, json.dumps({"sandbox": _probe(), "machine": platform.machine()}).encode())
    while True:
        try:
            request = read_frame(0, _MAX_REQUEST)
        except Lost:
            return
        header, written = run(json.loads(request), serve)
        head = json.dumps(header).encode()
        write_frame(replies, len(head).to_bytes(4, "little") + head + written)


def run(request: dict[str, Any], serve: Serve) -> tuple[dict[str, Any], bytes]:
    """Fork a child for one program; how it ended (`end`: exit, signal, timeout, flood, fault) and what it wrote."""
    limits = request["limits"]
    reader, writer = os.pipe()
    try:
        pid = os.fork()
    except OSError as error:
        os.close(reader)
        os.close(writer)
        return {"end": "fault", "detail": f"fork failed: {error}"}, b""
    if pid == 0:
        _child(writer, request, serve)
    os.close(writer)
    data, deadline, end = bytearray(), time.monotonic() + limits["wall_s"], "exit"
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            end = "timeout"
            break
        part = os.read(reader, 1 << 20)
        if not part:
            break
        data += part
        if len(data) > limits["reply_bytes"]:
            end = "flood"
            break
    os.close(reader)
    if end != "exit":
        os.kill(pid, signal.SIGKILL)
    _, status, used = os.wait4(pid, 0)
    if end == "exit" and os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        if name == "SIGKILL" and used.ru_utime + used.ru_stime >= limits["cpu_s"]:
            name = "SIGXCPU"  # by the kernel at the hard limit: something had caught the exception of the soft one
        return {"end": "signal", "detail": name}, bytes(data)
    return {"end": end, "detail": ""}, bytes(data)


def _child(writer: int, request: dict[str, Any], serve: Serve) -> None:
    """Never returns."""
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        os.dup2(writer, _REPLY_FD)
        os.closerange(3, _REPLY_FD)
        os.closerange(_REPLY_FD + 1, 1024)
        lockdown.die_with_parent()
        signal.signal(signal.SIGXCPU, _out_of_time)
        limits = request["limits"]
        lockdown.lock_down(limits["cpu_s"], limits["memory_mb"], sandbox=request["sandbox"])
        sys.setrecursionlimit(2000)
        os.write(_REPLY_FD, b"L")
        serve(request, lambda message: write_frame(_REPLY_FD, json.dumps(message).encode()))
    except BaseException:
        os._exit(1)
    finally:
        os._exit(0)


def _out_of_time(*_: object) -> None:
    """At the soft limit of processor time: an exception, so that the verdict names the line."""
    raise TimeoutError


def _probe() -> dict[str, Any]:
    """Whether a child can be locked down here: tried once, with the calls that must fail."""
    reason = lockdown.missing()
    if reason:
        return {"ok": False, "reason": reason, "landlock": 0}
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            abi = lockdown.lock_down(5, 256, sandbox=True)
            open_doors = [name for name, attempt in _ATTEMPTS.items() if _succeeds(attempt)]
            os.write(writer, json.dumps({"landlock": abi, "open": open_doors}).encode())
        except BaseException as error:
            os.write(writer, json.dumps({"error": repr(error)}).encode())
        finally:
            os._exit(0)
    os.close(writer)
    data = b""
    while select.select([reader], [], [], 10)[0] and (part := os.read(reader, 4096)):
        data += part
    os.close(reader)
    os.waitpid(pid, 0)
    result = json.loads(data or b'{"error": "the probe died"}')
    if "error" in result:
        return {"ok": False, "reason": f"the kernel refuses seccomp: {result['error']}", "landlock": 0}
    if result["open"]:
        return {"ok": False, "reason": f"seccomp does not stop {', '.join(result['open'])}", "landlock": 0}
    return {"ok": True, "reason": "", "landlock": result["landlock"]}


_ATTEMPTS = {
    "open": lambda: os.open("/dev/null", os.O_RDONLY),
    "fork": os.fork,
    "socket": lambda: socket.socket(),
    "kill": lambda: os.kill(os.getppid(), 0),
    "exec": lambda: os.execv(sys.executable, [sys.executable, "-V"]),
}


def _succeeds(attempt: Any) -> bool:
    try:
        result = attempt()
    except OSError:
        return False
    if attempt is os.fork and result == 0:
        os._exit(0)
    return True
