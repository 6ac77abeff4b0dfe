"""The house: which room may import which, what stands at the top, and what is never imported."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

FLOORS: dict[str, set[str]] = {
    "records": set(),
    "operators": set(),
    "errors": set(),
    "cores": set(),
    "devices": set(),
    "clock": set(),
    "quantities": set(),
    "files": set(),
    "task_names": set(),
    "documents": set(),
    "display": set(),
    "kernels": set(),
    "programs": {"records", "errors", "files", "kernels", "devices"},
    "tasks": {"records", "errors", "kernels", "cores", "devices", "task_names"},
    "search": {"records", "errors", "operators"},
    "runs": {"records", "errors", "operators", "files", "documents", "display"},
    "training": {"records", "errors", "kernels", "programs", "tasks", "clock", "devices"},
    "proposers": {
        *("records", "errors", "operators", "options", "programs", "quantities"),
        *("files", "documents", "display"),
    },
    "reports": {"records", "errors", "operators", "quantities", "runs", "files", "documents", "display", "task_names"},
}
FLOORS["options"] = {"errors", "files", "documents"}
FLOORS["endings"] = {"records", "runs", "settings", "task_names"}
FLOORS["tracking"] = {"records", "errors", "runs", "reports", "files", "documents", "task_names"}
FLOORS["settings"] = {"records", "errors", "options", "runs", "search", "tasks", "tracking", "training", "proposers"}
FLOORS["presets"] = {"errors", "settings", "tasks", "training"}
FLOORS["mending"] = {"records", "runs"}
FLOORS["evaluation"] = {"records", "reports", "runs", "tasks", "training"}
FLOORS["filming"] = {"errors", "programs", "records", "reports", "runs", "tasks", "training"}
FLOORS["tuning"] = {"records", "programs", "search", "tasks", "training"}
FLOORS["exports"] = {"errors", "programs", "proposers", "records", "runs", "tasks"}
FLOORS["profile"] = {"files", "runs", "training"}
FLOORS["protocol"] = {"evaluation", "programs", "records", "settings", "tasks", "training", "tuning"}
FLOORS["task_check"] = {"errors", "programs", "proposers", "records", "tasks"}
FLOORS["parts"] = {
    *("records", "errors", "files", "proposers", "runs", "search", "settings", "task_check", "tasks", "training"),
}
FLOORS["budget"] = {"proposers", "records", "runs", "search", "settings"}
FLOORS["keeping"] = {"evaluation", "proposers", "protocol", "records", "runs", "settings", "tasks", "training"}
FLOORS["evolution"] = set(FLOORS)
FLOORS["finals"] = set(FLOORS)
FLOORS["evolve"] = set(FLOORS)
FLOORS["commands"] = set(FLOORS)
FLOORS["cli"] = set(FLOORS)
"""A room and what it may import besides itself; scripts, benchmarks and tests may import everything."""

TOP = {
    *("pyproject.toml", "Makefile", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "constraints.txt"),
    *("jaxreward", "kernels", "interfaces", "benchmarks", "scripts", "tests", "docs", ".ci", ".gitignore"),
}


def sources(*folders: str) -> list[Path]:
    """Python files under the folders, links not followed."""
    return [p for f in folders for p in sorted((ROOT / f).rglob("*.py")) if not on_a_link(p)]


def on_a_link(path: Path) -> bool:
    return any(p.is_symlink() for p in path.parents)


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import in a file; `from a import b` gives `a.b`."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def room_of(path: Path) -> str:
    first, *rest = path.relative_to(ROOT).parts
    return first if first == "kernels" else rest[0].removesuffix(".py")


def imported_room(name: str) -> str | None:
    """The room that a dotted name lies in, or None for what is not ours."""
    first, *rest = name.split(".")
    if first == "kernels":
        return "kernels"
    return rest[0] if first == "jaxreward" and rest else None


def trespasses(path: Path) -> list[str]:
    room = room_of(path)
    allowed = FLOORS[room] | {room}
    return [
        f"{path.relative_to(ROOT)}:{line}: {room} may not import {name}"
        for line, name in imports(path)
        if (target := imported_room(name)) is not None and target not in allowed
    ]


def test_every_room_stands_on_a_floor():
    rooms = {room_of(p) for p in sources("jaxreward", "kernels")} - {"__init__", "__main__"}
    assert rooms <= set(FLOORS), f"say in FLOORS what {sorted(rooms - set(FLOORS))} may import"


def test_rooms_import_from_lower_floors_only():
    files = [p for p in sources("jaxreward", "kernels") if room_of(p) not in ("__init__", "__main__")]
    assert [t for p in files for t in trespasses(p)] == []


def test_a_trespass_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each way to write an import that the table forbids."""
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    file = tmp_path / "jaxreward" / "search" / "limen.py"
    file.parent.mkdir(parents=True)
    forbidden = (
        "import jaxreward.runs.log",
        "from jaxreward import tasks",
        "from jaxreward.tasks import make_task",
        "from ..tasks import make_task",
        "from .. import training",
        "def f():\n    from jaxreward.kernels.gae import gae",
    )
    for text in forbidden:
        file.write_text(text)
        assert len(trespasses(file)) == 1, text
    file.write_text("from jaxreward.records import Score\nfrom .archive import Archive\nimport jax\nimport jaxreward")
    assert trespasses(file) == []


def test_no_private_jax_and_no_interface_is_imported():
    for path in sources("jaxreward", "kernels", "scripts", "benchmarks"):
        for line, name in imports(path):
            where = f"{path.relative_to(ROOT)}:{line}: {name}"
            assert not f"{name}.".startswith("jax._src."), where
            assert not f"{name}.".startswith(("interfaces.", "jaxreward.interfaces.")), where


def test_interfaces_are_no_package():
    assert not list((ROOT / "interfaces").rglob("__init__.py"))


def test_only_the_agreed_entries_stand_at_the_top():
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    assert {name.split("/")[0] for name in listing.stdout.split("\0") if name} <= TOP
