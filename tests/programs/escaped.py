"""Run as a script: a worker whose guard lets everything through and whose programs get the real builtins.

What a program can do here is what it could do after a complete escape from Python. Standard input
is JSON, `{"sources": {name: source}, "sandbox": bool}`; the answer is `{name: [header, written as hex]}`.
"""

from __future__ import annotations

import ast
import builtins
import ctypes  # noqa: F401  for the programs: what is imported now needs no file later
import json
import mmap  # noqa: F401
import resource  # noqa: F401
import signal  # noqa: F401
import socket  # noqa: F401
import subprocess  # noqa: F401
import sys
import threading  # noqa: F401
import time  # noqa: F401


def main() -> None:
    from pointtask import PointTask

    from jaxreward.programs import trace, worker
    from jaxreward.programs.entries import Guarded
    from jaxreward.programs.limits import Limits
    from jaxreward.programs.spec import Spec

    trace.guard = lambda source, *_, **__: Guarded(ast.parse(source), "get_observation", None, 0)
    trace.namespace = lambda: {"__builtins__": builtins, "__name__": "candidate"}
    task = json.load(sys.stdin)
    spec = Spec.of(PointTask())
    worker.warm_up()
    limits = Limits(cpu_s=2, wall_s=4.0, reply_bytes=1 << 20)
    answers = {}
    for name, source in task["sources"].items():
        request = {"source": source, "spec": spec.as_json(), "limits": limits.as_json(), "sandbox": task["sandbox"]}
        header, written = worker.run(request)
        answers[name] = [header, written.hex()]
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    main()
