"""What an escaped program can still do: nothing."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jaxreward.programs import lockdown
from jaxreward.programs.limits import Limits
from jaxreward.programs.process import environment
from jaxreward.programs.worker_reply import Failed, read_reply

pytestmark = pytest.mark.skipif(bool(lockdown.missing()), reason="no sandbox on this system")

TRY = """
import os, sys, socket, ctypes, mmap, signal, subprocess, threading, resource
def attempt(act):
    try:
        act()
    except BaseException as error:
        return f"{type(error).__name__}"
    return "DONE"
"""
ACTS = {
    "read_file": "open('/etc/passwd').read()",
    "write_file": "open(PATH + '/written', 'w').write('x')",
    "write_relative": "open('written', 'w')",
    "make_directory": "os.mkdir(PATH + '/directory')",
    "remove": "os.remove(PATH + '/precious')",
    "rename": "os.rename(PATH + '/precious', PATH + '/gone')",
    "list_directory": "os.listdir('/')",
    "stat": "os.stat('/etc/passwd')",
    "readlink": "os.readlink('/proc/self/exe')",
    "chmod": "os.chmod(PATH + '/precious', 0)",
    "symlink": "os.symlink('/', PATH + '/link')",
    "chdir": "os.chdir('/')",
    "proc_environ": "open('/proc/self/environ').read()",
    "proc_mem": "open('/proc/self/mem', 'r+b')",
    "fork": "os.fork()",
    "exec": "os.execv('/bin/true', ['true'])",
    "subprocess": "subprocess.run(['true'])",
    "system": "1 / (os.system('touch ' + PATH + '/touched') == 0)",
    "thread": "threading.Thread(target=print).start()",
    "tcp_socket": "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
    "udp_socket": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "unix_socket": "socket.socket(socket.AF_UNIX)",
    "pipe": "os.pipe()",
    "dup": "os.dup(9)",
    "memfd": "os.memfd_create('x')",
    "eventfd": "os.eventfd(0)",
    "kill_parent": "os.kill(os.getppid(), 9)",
    "kill_all": "os.kill(-1, 9)",
    "kill_group": "os.killpg(0, 9)",
    "setuid": "os.setuid(0)",
    "umask": "os.umask(0)",
    "raise_limits": "resource.setrlimit(resource.RLIMIT_CPU, (60, 60))",
    "executable_memory": "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)",
    "load_library": "ctypes.CDLL('libresolv.so.2')",
    "ptrace": "REFUSED(ctypes.CDLL(None, use_errno=True).ptrace(16, os.getpid(), 0, 0))",
    "set_alarm": "signal.setitimer(signal.ITIMER_REAL, 60)",
    "chroot": "os.chroot('/')",
    "mount": "REFUSED(ctypes.CDLL(None, use_errno=True).mount(b'none', b'/', b'tmpfs', 0, None))",
    "make_executable": (
        "REFUSED(ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(id(PAGE) // 4096 * 4096), 4096, 7))"
    ),
    "prctl": "REFUSED(ctypes.CDLL(None, use_errno=True).prctl(15, b'x', 0, 0, 0))",
    "process_vm": "REFUSED(ctypes.CDLL(None, use_errno=True).process_vm_writev(os.getppid(), None, 0, None, 0, 0))",
    "io_uring": "REFUSED(ctypes.CDLL(None, use_errno=True).syscall(425, 8, None))",
    "bpf": "REFUSED(ctypes.CDLL(None, use_errno=True).syscall(321, 0, None, 0))",
}


def program(body: str) -> str:
    """An escaped program: its body runs when it is traced."""
    lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    return f"{TRY}\ndef get_observation(state):\n{lines}    return state.pos\n"


def run(sources: dict[str, str], *, sandbox: bool = True) -> dict[str, tuple[dict, bytes]]:
    here = str(Path(__file__).parent)
    env = environment(JAX_PLATFORMS="none_such", JAX_TRACEBACK_FILTERING="off")
    env["PYTHONPATH"] = here + os.pathsep + env["PYTHONPATH"]
    done = subprocess.run(
        [sys.executable, "-P", str(Path(here) / "escaped.py")], env=env, timeout=200, check=True,
        input=json.dumps({"sources": sources, "sandbox": sandbox}).encode(), capture_output=True,
    )  # fmt: skip
    return {name: (header, bytes.fromhex(data)) for name, (header, data) in json.loads(done.stdout).items()}


def frame(data: object) -> bytes:
    payload = data if isinstance(data, bytes) else json.dumps(data).encode()
    return len(payload).to_bytes(8, "little") + payload


def reply(header: dict, written: bytes) -> bytes:
    head = json.dumps(header).encode()
    return len(head).to_bytes(4, "little") + head + written


def test_escaped_programs_have_no_effect(tmp_path):
    (tmp_path / "precious").write_text("kept")
    body = (
        f"PATH = {str(tmp_path)!r}\nPAGE = bytearray(8192)\n"
        "def REFUSED(result):\n    if result == -1:\n        raise PermissionError\n"
        "done = {}\n"
        + "".join(f"done[{name!r}] = attempt(lambda: {act})\n" for name, act in ACTS.items())
        + "raise ValueError(','.join(n for n, r in done.items() if r == 'DONE') or 'nothing worked')"
    )
    ((header, written),) = run({"acts": program(body)}).values()
    assert header == {"end": "exit", "detail": ""}
    with pytest.raises(Failed) as failed:
        read_reply(reply(header, written), Limits())
    assert failed.value.failure.message == "ValueError: nothing worked"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["precious"]
    assert (tmp_path / "precious").read_text() == "kept"


def test_the_same_acts_succeed_outside_the_sandbox(tmp_path):
    """The test above is worth something only if its acts are real."""
    for name in ("read_file", "write_file", "fork", "tcp_socket", "pipe", "executable_memory"):
        code = f"PATH = {str(tmp_path)!r}\n{TRY}\nraise SystemExit(attempt(lambda: {ACTS[name]}) != 'DONE')"
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.long
def test_a_dead_hanging_flooding_or_lying_helper_costs_one_candidate():
    """Each ends in a failure of stage `killed`, and the next program is checked as if nothing had been."""
    forged = frame({"observation": {"ins": [], "nodes": [["eval", {}, [], 1]], "outs": [0]}, "terms": []})
    sources = {
        "death": program("os._exit(0)"),
        "crash": program("ctypes.string_at(0)"),
        "hang": program("import time\nx = 0\nwhile True:\n    time.sleep(1)"),
        "spin": program("while True:\n    pass"),
        "deaf": program(
            "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass"
        ),
        "flood": program("while True:\n    os.write(9, b'x' * 65536)"),
        "memory": program("x = []\nwhile True:\n    x.append(bytearray(1 << 24))"),
        "lie": program(f"os.write(9, {forged!r})\nos._exit(0)"),
        "babble": program("os.write(9, b'no frame at all')\nos._exit(0)"),
        "null": program(f"os.write(9, {frame(b'null')!r})\nos._exit(0)"),
        "deep": program(f"os.write(9, {frame(b'[' * 100000)!r})\nos._exit(0)"),
        "huge_frame": program("os.write(9, b'\\xff' * 8)\nos._exit(0)"),
        "sound": program("pass"),
    }
    begun = time.monotonic()
    results = run(sources)
    assert time.monotonic() - begun < 60
    for name, (header, written) in results.items():
        if name == "sound":
            guarded, traced = read_reply(reply(header, written), Limits())
            assert guarded["observation"] and traced["observation"]["outs"]
        elif name == "lie":
            # The forged tape gets as far as the verifier, which knows no such op.
            _, traced = read_reply(reply(header, written), Limits())
            assert traced["observation"]["nodes"][0][0] == "eval"
        else:
            with pytest.raises(Failed) as failed:
                read_reply(reply(header, written), Limits())
            stages = ("killed", "limits") if name == "memory" else ("killed",)
            assert failed.value.failure.stage in stages, name


@pytest.mark.parametrize(
    "written",
    [
        frame({"failure": {"stage": "duplicate", "message": "x"}}),
        frame({"failure": {"stage": "guard"}}),
        frame({"failure": "text"}),
        frame({"failure": {"stage": "guard", "message": ["\x1b[2J"] * 10**5, "line": "many", "hint": {}}}),
        frame([1, 2]),
        frame(b"\xff\xfe"),
    ],
)
def test_malformed_first_frames_are_failures(written):
    with pytest.raises(Failed) as failed:
        read_reply(reply({"end": "exit", "detail": ""}, b"L" + written), Limits())
    assert "\x1b" not in failed.value.failure.message and len(failed.value.failure.message) <= 1000


GUARDED = frame({"observation": None, "reward": "compute_reward", "reward_nodes": 3, "lines": {}})
TAPE = {"ins": [], "nodes": [], "outs": [0, 0]}


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"reward": TAPE},
        {"reward": TAPE, "terms": "reward"},
        {"reward": TAPE, "terms": [1]},
        {"reward": TAPE, "terms": ["a", "b"]},
        {"reward": TAPE, "terms": ["a\x1b"]},
        {"reward": TAPE, "terms": [["a"]]},
        {"reward": [TAPE], "terms": ["a"]},
        {"reward": {"outs": 3}, "terms": ["a"]},
        {"reward": TAPE, "terms": ["a"] * 40},
        {"reward": {"outs": [0, 0, 0]}, "terms": ["a", "a"]},
        {"failure": None},
    ],
)
def test_malformed_answers_are_failures(answer):
    with pytest.raises(Failed) as failed:
        read_reply(reply({"end": "exit", "detail": ""}, b"L" + GUARDED + frame(answer)), Limits())
    assert failed.value.failure.stage == "killed"


# ---- the filter itself, run by a small interpreter of BPF, for both architectures


def judge(machine: str, audit: int, number: int, third_argument: int = 0) -> int:
    """What the filter returns for a system call."""
    data = struct.pack("<IIQ6Q", number, audit, 0, 0, 0, third_argument, 0, 0, 0)
    rows = list(struct.iter_unpack("HBBI", lockdown.program(machine)))
    value, at = 0, 0
    while True:
        code, yes, no, k = rows[at]
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("<I", data, k)
        elif code == 0x15:
            at += yes if value == k else no
        elif code == 0x45:
            at += yes if value & k else no
        elif code == 0x06:
            return k


@pytest.mark.parametrize("machine", lockdown.ARCHITECTURES)
def test_the_seccomp_filter_allows_only_listed_calls(machine):
    audit, calls = lockdown.ARCHITECTURES[machine]
    allowed = {n for n in range(600) if judge(machine, audit, n) == 0x7FFF0000}
    assert allowed == set(calls.values())
    for name in ("mmap", "mprotect"):
        assert judge(machine, audit, calls[name], 3) == 0x7FFF0000
        for protection in (4, 5, 7):
            assert judge(machine, audit, calls[name], protection) == 0x00050001
    assert judge(machine, audit ^ 1, calls["read"]) == 0x80000000  # another architecture: the process dies
    assert judge(machine, audit, calls["read"] | 0x40000000) == 0x00050001  # the x32 table
    dangerous = {
        "x86_64": """
        open 2 openat 257 socket 41 clone 56 clone3 435 fork 57 execve 59 kill 62 ptrace 101 prctl 157 dup 32 dup2 33
        pipe2 293 unlink 87 io_uring_setup 425 execveat 322 memfd_create 319 pkey_mprotect 329 remap_file_pages 216
        shmat 30 sendmsg 46 process_vm_writev 311 tgkill 234 tkill 200 userfaultfd 323 ioctl 16 bpf 321 mount 165
        """,
        "aarch64": """
        openat 56 socket 198 clone 220 clone3 435 execve 221 kill 129 ptrace 117 prctl 167 dup 23 dup3 24 pipe2 59
        unlinkat 35 io_uring_setup 425 execveat 281 memfd_create 279 pkey_mprotect 288 remap_file_pages 234 shmat 196
        sendmsg 211 process_vm_writev 271 tgkill 131 tkill 130 userfaultfd 282 ioctl 29 bpf 280 mount 40
        """,
    }[machine].split()
    assert not allowed & set(map(int, dangerous[1::2]))


def test_no_secrets_reach_the_helpers(checker, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret-value")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert not {"ANTHROPIC_API_KEY", "HOME", "USER"} & set(environment())
    checker.sandbox_status()
    for worker in checker._workers:
        for process in (worker.tracer, worker.verifier):
            if process.pid:
                seen = Path(f"/proc/{process.pid}/environ").read_bytes()
                names = {entry.split(b"=")[0] for entry in seen.split(b"\0") if entry}
                assert not {n for n in names if b"KEY" in n or b"TOKEN" in n or b"SECRET" in n or n == b"HOME"}


def test_a_busy_helper_ends_with_its_parent():
    """A parent that is killed can stop nobody, and a helper that is busy reads no end of file."""
    child = (
        "import time; from jaxreward.programs.process import leave_with_parent\n"
        "leave_with_parent(0.05); print(1, flush=True); time.sleep(600)"
    )
    parent = (
        "import os, subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True, timeout=60)
    pid = int(done.stdout)
    for _ in range(200):
        if not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split(")")[1][:3]:
            return
        time.sleep(0.05)
    os.kill(pid, 9)
    raise AssertionError("it outlived its parent")
