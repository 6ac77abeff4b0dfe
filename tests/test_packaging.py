"""The front door, and what an installation holds: wheel and editable, without a network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

import jaxreward

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

PROBE = """
import json, sys, time
start = time.perf_counter()
import jaxreward
seconds = time.perf_counter() - start
heavy = sorted({name.split(".")[0] for name in sys.modules} & {"jax", "litellm", "brax", "mujoco", "numpy", "pydantic"})
reached = [jaxreward.errors.__name__, jaxreward.programs.__name__]  # which no import statement names
print(json.dumps({"seconds": seconds, "heavy": heavy, "names": dir(jaxreward), "reached": reached}))
"""

REACH = """
import json
from importlib.resources import files
import jaxreward, jaxreward.kernels.gae as gae
texts = sorted(p.name for d in (files("jaxreward") / "interfaces").iterdir() if d.is_dir()
               for p in d.iterdir() if p.name.endswith(".py"))
print(json.dumps({"package": jaxreward.__file__, "kernel": gae.__file__, "texts": texts}))
"""


def python(code: str, cwd: Path, *path: Path) -> dict:
    """What a fresh interpreter prints as JSON, with `path` in front of its own.

    Its site-packages come last and without their `.pth` files, so that an installation of jaxreward
    in the environment of the tests is out of the way.
    """
    installed = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*path, *installed)))}
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def copy_of_the_tree(to: Path) -> Path:
    """What a build needs, with a program text where there may be none yet."""
    keep = ("pyproject.toml", "README.md", "LICENSE", "jaxreward", "kernels", "interfaces")
    for name in keep:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, to / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, to / name)
    probe = to / "interfaces" / "probe" / "text.py"
    probe.parent.mkdir(exist_ok=True)
    probe.write_text("import nothing_that_exists\n")
    return to


def build(tree: Path, hook: str, out: Path) -> Path:
    """The wheel that setuptools makes of `tree` by a hook of PEP 517 or 660."""
    pytest.importorskip("setuptools", minversion="77")
    out.mkdir()
    code = f"from setuptools import build_meta; build_meta.{hook}({str(out)!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl"))


SUFFIXES = ("py", "xml", "j2", "html", "css", "js")


def expected_files(tree: Path) -> set[str]:
    """Every module, program text, model, template and web page of the repository, by its name in an installation."""
    ours = {p.relative_to(tree) for suffix in SUFFIXES for p in (tree / "jaxreward").rglob(f"*.{suffix}")}
    moved = {
        Path("jaxreward") / p.relative_to(tree) for f in ("kernels", "interfaces") for p in (tree / f).rglob("*.py")
    }
    return {p.as_posix() for p in ours | moved}


def test_importing_the_package_is_quick_and_light():
    seen = min((python(PROBE, ROOT, ROOT) for _ in range(3)), key=lambda s: s["seconds"])
    assert seen["heavy"] == []
    assert seen["seconds"] < 0.2
    assert {*jaxreward.__all__, "programs"} <= set(seen["names"])
    assert seen["reached"] == ["jaxreward.errors", "jaxreward.programs"]


def test_every_public_name_can_be_imported(monkeypatch: pytest.MonkeyPatch):
    packages = set(dir(jaxreward)) - set(jaxreward.__all__) - {"MuJoCoTask"}
    assert {"programs", "tasks", "training", "search", "errors", "records"} <= packages
    for name in packages:
        monkeypatch.delattr(jaxreward, name, raising=False)  # as if nothing had imported it yet
        assert getattr(jaxreward, name).__name__ == f"jaxreward.{name}"
    for name in (*jaxreward.__all__, "MuJoCoTask"):
        assert getattr(jaxreward, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = jaxreward.trian  # pyright: ignore[reportAttributeAccessIssue]


def test_the_version_equals_that_of_pyproject():
    assert PROJECT["project"]["version"] == jaxreward.__version__


@pytest.mark.long
def test_the_wheel_holds_every_module_and_every_program_text(tmp_path: Path):
    (tmp_path / "tree").mkdir()
    tree = copy_of_the_tree(tmp_path / "tree")
    expected = expected_files(tree)
    with zipfile.ZipFile(build(tree, "build_wheel", tmp_path / "out")) as wheel:
        held = {n for n in wheel.namelist() if n.endswith(tuple(f".{suffix}" for suffix in SUFFIXES))}
        wheel.extractall(tmp_path / "site")
    assert held == expected
    assert (tmp_path / "site" / "jaxreward" / "py.typed").exists()
    seen = python(REACH, tmp_path, tmp_path / "site")
    assert seen["package"].startswith(str(tmp_path / "site"))
    assert "text.py" in seen["texts"]


def test_an_editable_install_reaches_kernels_and_interfaces(tmp_path: Path):
    (tmp_path / "tree").mkdir()
    tree = copy_of_the_tree(tmp_path / "tree")
    with zipfile.ZipFile(build(tree, "build_editable", tmp_path / "out")) as wheel:
        wheel.extractall(tmp_path / "site")
    load = f"import site; site.addsitedir({str(tmp_path / 'site')!r})\n"
    seen = python(load + REACH, tmp_path, tmp_path / "site")
    assert seen["package"] == str(tree / "jaxreward" / "__init__.py")
    assert "text.py" in seen["texts"]


def test_the_links_of_a_checkout_lead_to_the_folders_at_the_top():
    for name in ("kernels", "interfaces"):
        assert (ROOT / "jaxreward" / name).resolve() == ROOT / name


@pytest.mark.long
def test_scripts_run_by_path_from_anywhere(tmp_path: Path):
    def started(name: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-I", str(ROOT / "scripts" / f"{name}.py"), "--help"]
        return subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    for name, process in [(name, started(name)) for name in ("evolve", "train", "doctor")]:  # side by side
        with process:
            out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert name in out
