"""The house: which room may import which, what stands at the top, and what is never imported."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

BASE = {
    *("records", "errors", "extras", "operators", "timing", "devices", "formatting", "config", "files", "table"),
    *("function_source", "identity", "secrets", "user_files", "sentences", "value_words", "views"),
}
"""Modules at the root that everything may import, as far as each row below says."""

FLOORS: dict[str, set[str]] = {
    **{name: set() for name in ("operators", "timing", "devices", "formatting", "files", "moves")},
    **{name: set() for name in ("sentences", "value_words", "views")},
    "errors": {"sentences"},
    "extras": {"errors"},
    "secrets": {"errors", "extras", "files"},
    "identity": {"errors", "function_source", "secrets"},
    "config": {"errors", "files", "sentences", "value_words"},
    "table": {"errors", "formatting"},
    "function_source": {"errors"},
    "user_files": {"config", "errors"},
    "records": {"function_source"},
    "kernels": set(),
    "programs": {
        *("records", "errors", "files", "formatting", "function_source", "kernels", "moves", "devices", "sentences"),
        "views",
    },
    "tasks": {
        *("records", "errors", "extras", "config", "function_source", "kernels", "moves", "devices", "user_files"),
        *("identity", "sentences", "views"),
    },
    "demonstrations": {"records", "errors", "extras", "files", "config", "programs", "sentences", "tasks", "devices"},
    "objectives": {
        *("records", "errors", "config", "devices", "files", "function_source", "sentences", "programs", "tasks"),
        *("demonstrations", "operators", "runs", "search", "training"),
    },
    "search": {"records", "errors", "operators", "config", "sentences", "user_files"},
    "runs": {"records", "errors", "operators", "files", "config", "formatting"},
    "storage": {"errors", "extras", "files", "runs", "sentences"},
    "training": {
        *("records", "errors", "formatting", "function_source", "identity", "table", "value_words"),
        *("kernels", "programs", "tasks", "timing", "devices", "demonstrations"),
    },
    "proposers": {
        *("records", "errors", "operators", "files", "config", "formatting", "function_source", "user_files"),
        *("programs", "proposers.replies", "sentences"),
    },
    "proposers.genetic": {
        *("records", "errors", "operators", "function_source", "programs", "proposers", "sentences"),
    },
    "proposers.replies": {"records", "errors", "operators"},
    "proposers.prompts": {"records", "errors", "operators", "programs", "proposers.replies"},
    "proposers.llm": {
        *("records", "errors", "extras", "operators", "files", "config", "formatting", "secrets", "sentences"),
        *("proposers", "proposers.prompts", "proposers.replies"),
    },
    "proposers.human": {
        *("records", "errors", "operators", "files", "secrets"),
        *("proposers", "proposers.llm", "proposers.prompts", "proposers.replies"),
    },
    "reports": {"records", "errors", "extras", "operators", "config", "files", "formatting", "runs"},
    "tracking": {"records", "errors", "extras", "config", "files", "runs", "reports", "sentences"},
    "serving": {"errors", "files", "formatting", "reports", "runs"},
    "exports": {"records", "errors", "function_source", "programs", "tasks", "runs", "views"},
}
PROPOSERS = {name for name in FLOORS if name.startswith("proposers")}
FLOORS["evolution"] = {
    *(BASE | PROPOSERS),
    *("programs", "tasks", "search", "runs", "storage", "training", "reports", "tracking"),
    *("demonstrations", "objectives"),
}
FLOORS["comparison"] = FLOORS["evolution"] | {"evolution"}
FLOORS["reproduction"] = FLOORS["comparison"] | {"comparison"}
FLOORS["commands"] = FLOORS["reproduction"] | {"reproduction", "exports", "serving"}
FLOORS["cli"] = FLOORS["commands"] | {"commands"}
"""A room and what it may import besides itself; scripts, benchmarks and tests may import everything."""

TOP = {
    *("pyproject.toml", "Makefile", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "constraints.txt"),
    *("jaxreward", "kernels", "interfaces", "benchmarks", "scripts", "tests", "docs", "examples", ".ci", ".gitignore"),
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
    first, *rest = path.relative_to(ROOT).with_suffix("").parts
    return first if first == "kernels" else _room(rest)


def imported_room(name: str) -> str | None:
    """The room that a dotted name lies in, or None for what is not ours."""
    first, *rest = name.split(".")
    if first == "kernels":
        return "kernels"
    return _room(rest) if first == "jaxreward" and rest else None


def _room(names: list[str]) -> str:
    """The longest beginning of a dotted name that is a room."""
    inner = ".".join(names[:2])
    return inner if inner in FLOORS else names[0]


def trespasses(path: Path) -> list[str]:
    room = room_of(path)
    allowed = FLOORS[room] | {room}
    return [
        f"{path.relative_to(ROOT)}:{line}: {room} may not import {name}"
        for line, name in imports(path)
        if (target := imported_room(name)) is not None and target not in allowed
    ]


def test_every_package_has_a_floor():
    rooms = {room_of(p) for p in sources("jaxreward", "kernels")} - {"__init__", "__main__"}
    assert rooms <= set(FLOORS), f"say in FLOORS what {sorted(rooms - set(FLOORS))} may import"


def test_packages_import_from_lower_floors_only():
    files = [p for p in sources("jaxreward", "kernels") if room_of(p) not in ("__init__", "__main__")]
    assert [t for p in files for t in trespasses(p)] == []


def test_a_forbidden_import_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
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


@pytest.mark.long
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


def test_contributing_shows_this_table():
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = {room: allowed for room, allowed in FLOORS.items() if allowed and "evolution" not in allowed | {room}}
    assert len(rows) > 10
    for room, allowed in rows.items():
        assert f"| `{room}` | {', '.join(f'`{name}`' for name in sorted(allowed))} |\n" in table
    lowest = ", ".join(f"`{room}`" for room in sorted(FLOORS) if not FLOORS[room])
    assert f"| {lowest} | nothing of jaxreward |\n" in table


def dependencies(path: Path, modules: dict[str, Path]) -> set[str]:
    """The modules and packages of ours that a file imports anywhere by name, also inside of functions."""
    found = {name for _, name in imports(path)}
    return {name if name in modules else name.rpartition(".")[0] for name in found} & set(modules)


def test_there_are_no_import_cycles():
    """Neither between modules nor through what the `__init__` of a package imports."""
    modules = {
        ".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): p
        for p in sources("jaxreward")
        if p.stem != "__main__"
    }
    left = {name: dependencies(path, modules) - {name} for name, path in modules.items()}
    while free := {name for name, needed in left.items() if not needed & set(left)}:
        left = {name: needed for name, needed in left.items() if name not in free}
    assert left == {}, "these import one another in a circle, or modules that do"
