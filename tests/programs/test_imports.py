"""An accepted source is safe to import and deterministic: people carry it to where no sandbox stands around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import suite_faulty
import suite_good
import suite_hostile
from suite_parts import mod

from jaxreward.programs import Checker, Limits

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = sorted((Path(__file__).parent / "published").glob("*.py"))
SHIPPED = sorted((ROOT / "interfaces").glob("*/*.py"))

WATCHED = """
import importlib.util, json, sys
import jax, jax.numpy as jnp
(jnp.zeros(2) @ jnp.ones(2)).block_until_ready()
QUIET = {"import", "compile", "exec", "marshal.loads", "object.__getattr__", "object.__setattr__", "sys._getframe",
         "code.__new__", "builtins.id", "time.sleep", "sys.settrace", "sys.setprofile", "gc.get_objects"}
seen, current = {}, None
def watch(event, arguments):
    if current is None or event in QUIET:
        return
    if event == "open" and isinstance(arguments[1], str) and not set(arguments[1]) & set("wax+"):
        return
    seen.setdefault(current, []).append(f"{event} {arguments!r:.200}")
sys.addaudithook(watch)
for number, path in enumerate(sys.argv[1:]):
    spec = importlib.util.spec_from_file_location(f"carried_{number}", path)
    module = importlib.util.module_from_spec(spec)
    current = path
    spec.loader.exec_module(module)
    current = None
print(json.dumps(seen))
"""
"""Imports files one by one and tells every event of the interpreter that acts on the world outside."""


def watched(paths: list[Path], here: Path) -> tuple[dict[str, list[str]], list[Path]]:
    """What Python did while it imported `paths`, and the files that lie in `here` then."""
    here.mkdir()
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(here), "HOME": str(here)}
    environment = {k: v for k, v in environment.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    command = [sys.executable, "-c", WATCHED, *map(str, paths)]
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1]), sorted(here.rglob("*"))


@pytest.fixture(scope="module")
def accepted(checker, task, good) -> dict[str, str]:
    """Sources of all suites that pass, by name. Shipped and published ones are held to pass by other tests."""
    found = {f"good_{name}": source for name, (source, _) in suite_good.CASES.items() if good[name][1] is not None}
    doubtful = {n: case[1] for n, case in suite_hostile.CASES.items() if "ok" in case[0]}
    assert not any("ok" in case[0] for case in suite_faulty.CASES.values())
    for (name, source), (verdict, _) in zip(
        doubtful.items(), checker.check_many(list(doubtful.values()), task), strict=True
    ):
        if verdict.ok:
            found[f"hostile_{name}"] = source
    return found


def test_importing_an_accepted_program_does_nothing_else(accepted, tmp_path):
    carried = tmp_path / "carried"
    carried.mkdir()
    for name, source in accepted.items():
        (carried / f"{name}.py").write_text(source)
    seen, left = watched([*sorted(carried.glob("*.py")), *SHIPPED, *PUBLISHED], tmp_path / "here")
    assert seen == {} and left == []


def test_what_is_refused_would_be_seen(tmp_path):
    """The watch is awake: it sees what Python opens, and the folder what XLA writes."""
    opening, dumping = tmp_path / "opening.py", tmp_path / "dumping.py"
    opening.write_text("open('written', 'w').close()\n")
    dumping.write_text(
        mod("X = jax.jit(lambda x: x + 1, compiler_options={'xla_dump_to': 'dumped'})(jnp.ones(3)).block_until_ready()")
    )
    seen, left = watched([opening, dumping], tmp_path / "here")
    assert "open" in seen[str(opening)][0]
    assert {"written", "dumped"} <= {p.name for p in left}


@pytest.mark.long
def test_a_source_has_one_digest_in_every_process(good, task):
    """Also where strings hash differently."""
    with Checker(Limits(cpu_s=3, wall_s=12.0), workers=1) as other:
        other._workers[0].tracer.extra["PYTHONHASHSEED"] = "7"
        outcomes = other.check_many([source for source, _ in suite_good.CASES.values()], task)
    for name, (_, program) in zip(suite_good.CASES, outcomes, strict=True):
        known = good[name][1]
        assert program is not None and known is not None and program.digest == known.digest, name
