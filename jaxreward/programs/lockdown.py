"""Taking away what a process could do: resource limits, landlock and seccomp, through ctypes.

seccomp leaves the system calls that pure computation on memory needs; every other call fails with
EPERM. Memory can never be made executable. Linux on x86_64 and aarch64 only.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
import sys

# Numbers from the kernel's asm/unistd.h of each architecture.
_X86_64 = {
    "read": 0, "write": 1, "close": 3, "fstat": 5, "lseek": 8, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12,
    "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "sched_yield": 24, "mremap": 25, "madvise": 28,
    "getpid": 39, "exit": 60, "gettimeofday": 96, "getrusage": 98, "sigaltstack": 131, "gettid": 186, "futex": 202,
    "sched_getaffinity": 204, "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231,
    "getrandom": 318, "rseq": 334,
}  # fmt: skip
_AARCH64 = {
    "read": 63, "write": 64, "close": 57, "fstat": 80, "lseek": 62, "mmap": 222, "mprotect": 226, "munmap": 215,
    "brk": 214, "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "sched_yield": 124, "mremap": 216,
    "madvise": 233, "getpid": 172, "exit": 93, "gettimeofday": 169, "getrusage": 165, "sigaltstack": 132, "gettid": 178,
    "futex": 98, "sched_getaffinity": 123, "clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115,
    "exit_group": 94, "getrandom": 278, "rseq": 293,
}  # fmt: skip
ARCHITECTURES = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _AARCH64)}
"""Audit number (linux/audit.h) and system calls by `platform.machine()`."""

_GUARDED = ("mmap", "mprotect")  # allowed without PROT_EXEC
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT = 444, 446  # one number on every architecture
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 1, 38, 22, 2
_LOAD, _EQUAL, _BITS, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _KILL, _DENY = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_NR, _ARCH, _ARG2 = 0, 4, 16 + 2 * 8  # offsets in struct seccomp_data; arguments are little endian
_PROT_EXEC = 4


def missing() -> str:
    """Why this system cannot be locked down; empty if it can."""
    if sys.platform != "linux":
        return f"the sandbox needs Linux, this is {sys.platform}"
    if platform.machine() not in ARCHITECTURES or sys.maxsize < 2**32:
        return f"the sandbox knows x86_64 and aarch64, not {platform.machine()}"
    return ""


def program(machine: str) -> bytes:
    """The seccomp filter of an architecture, as an array of struct sock_filter."""
    audit, calls = ARCHITECTURES[machine]
    rows = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, audit), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NR)]
    for name, number in calls.items():
        if name in _GUARDED:
            rows += [(_EQUAL, 0, 4, number), (_LOAD, 0, 0, _ARG2), (_BITS, 0, 1, _PROT_EXEC),
                     (_RETURN, 0, 0, _DENY), (_RETURN, 0, 0, _ALLOW)]  # fmt: skip
        else:
            rows += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    rows.append((_RETURN, 0, 0, _DENY))
    return b"".join(struct.pack("HBBI", *row) for row in rows)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(*arguments: object) -> None:
    if _libc().prctl(*arguments, *[0] * (5 - len(arguments))):
        raise OSError(ctypes.get_errno(), f"prctl{arguments} failed")


def die_with_parent() -> None:
    if sys.platform == "linux":
        _prctl(_PR_SET_PDEATHSIG, 9)


def seccomp() -> None:
    """Install the filter on this thread; there is no way back.

    Raises:
        OSError: the kernel has no seccomp filters.
    """
    code = program(platform.machine())
    buffer = ctypes.create_string_buffer(code, len(code))

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("rows", ctypes.c_void_p))

    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    rows = Filter(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(rows))


def landlock() -> int:
    """Forbid the file system and TCP on top of seccomp; the ABI version, 0 where there is none."""
    libc = _libc()
    abi = libc.syscall(_LANDLOCK_CREATE, None, 0, 1)
    if abi < 1:
        return 0
    files = (1 << 13) - 1 | (abi >= 2) << 13 | (abi >= 3) << 14 | (abi >= 5) << 15

    class Rules(ctypes.Structure):
        _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64))

    rules = Rules(files, 3 if abi >= 4 else 0)
    descriptor = libc.syscall(_LANDLOCK_CREATE, ctypes.byref(rules), 16 if abi >= 4 else 8, 0)
    if descriptor < 0:
        return 0
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    applied = libc.syscall(_LANDLOCK_RESTRICT, descriptor, 0) == 0
    os.close(descriptor)
    return abi if applied else 0


def limit_resources(cpu_s: int, memory_mb: int) -> None:
    """Processor time, memory on top of what is mapped now; no files, no processes, no core dumps."""
    limits: dict[int, tuple[int, int]] = {
        resource.RLIMIT_CPU: (cpu_s, cpu_s + 1),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_FSIZE: (0, 0),
        resource.RLIMIT_NOFILE: (16, 16),
        resource.RLIMIT_STACK: (64 << 20, 64 << 20),
    }
    if sys.platform == "linux":
        with open("/proc/self/statm") as statm:
            mapped = int(statm.read().split()[0]) * resource.getpagesize()
        limits[resource.RLIMIT_AS] = (mapped + (memory_mb << 20), mapped + (memory_mb << 20))
        limits[resource.RLIMIT_NPROC] = (0, 0)
    for kind, wanted in limits.items():
        hard = resource.getrlimit(kind)[1]
        most = wanted[1] if hard == resource.RLIM_INFINITY else min(wanted[1], hard)
        resource.setrlimit(kind, (min(wanted[0], most), most))


def lock_down(cpu_s: int, memory_mb: int, *, sandbox: bool) -> int:
    """Everything above; returns the landlock ABI. Without `sandbox` the resource limits alone."""
    limit_resources(cpu_s, memory_mb)
    if not sandbox:
        return 0
    abi = landlock()
    seccomp()
    return abi
