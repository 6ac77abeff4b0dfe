"""What works without the extras, and what is said where one is missing."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jaxreward import extras
from jaxreward.cli import main
from jaxreward.commands.doctor import DoctorSettings, examine
from jaxreward.commands.table import SUMMARIES, commands_of
from jaxreward.errors import MissingPackage
from jaxreward.extras import EXTRAS, install, require
from jaxreward.secrets import Secrets
from jaxreward.tasks import make_task

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OF_ALL = ("llm", "xland", "brax", "mujoco", "reports")

COMES_WITH = {
    "jaxlib": "jax",
    "markupsafe": "jinja2",
    "warp-lang": "the extra warp",
    "pandas": "the user",
    "ipython": "the notebook",
}
"""Distributions that are imported and not required by name, and what brings them."""

NEEDS = {
    "jaxreward.proposers.llm.transport": "llm",
    "jaxreward.tasks.brax": "brax",
    "jaxreward.tasks.rendering": "mujoco",
    "jaxreward.tasks.robots": "mujoco",
    "jaxreward.tasks.xland": "xland",
    "jaxreward.tasks.xland_ruleset": "xland",
}
"""Modules and packages that cannot be imported without an extra."""


def named(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(text).name) for text in requirements}


def packages_of(extra: str) -> set[str]:
    """The distributions that an extra of pyproject.toml names, those of extras in it included."""
    found = set[str]()
    for text in PROJECT["optional-dependencies"][extra]:
        requirement = Requirement(text)
        inner = [packages_of(name) for name in requirement.extras] if requirement.name == "jaxreward" else []
        found |= set[str]().union(*inner) if inner else {canonicalize_name(requirement.name)}
    return found


def closure(requirements: list[str]) -> set[str]:
    """Distributions that these requirements bring, as far as they are installed here."""
    found, left = set[str](), [Requirement(text) for text in requirements]
    while left:
        requirement = left.pop()
        wanted = {"", *requirement.extras}
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        name = canonicalize_name(requirement.name)
        try:
            brought = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        if name not in found or requirement.extras:
            for other in map(Requirement, brought):
                if other.marker is None or any(other.marker.evaluate({"extra": extra}) for extra in wanted):
                    other.marker = None
                    left.append(other)
        found.add(name)
    return found


def imported() -> set[str]:
    """Distributions, or modules of none that is installed, that the package imports anywhere by name."""
    files = [p for top in ("jaxreward", "kernels") for p in (ROOT / top).rglob("*.py")]
    found = set[str]()
    for file in files:
        if any(folder.is_symlink() for folder in file.parents):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    known = {"warp": ["warp-lang"], **metadata.packages_distributions()}
    others = found - set(sys.stdlib_module_names) - {"jaxreward"}
    return {canonicalize_name(name) for module in others for name in known.get(module, [module])}


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process, and of those that it starts, in which nothing but the core's packages is found."""
    allowed = closure(PROJECT["dependencies"])
    hidden = [
        module
        for module, names in metadata.packages_distributions().items()
        if not {canonicalize_name(name) for name in names} & (allowed | {"jaxreward"})
    ]
    folder = tmp_path_factory.mktemp("light")
    (folder / "sitecustomize.py").write_text(
        "import sys\n\n"
        f"HIDDEN = set({sorted(hidden)!r})\n\n\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in HIDDEN:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n\n\n"
        "sys.meta_path.insert(0, Hide())\n"
    )
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


def run(code: str, env: dict[str, str], cwd: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


# ---- the core


@pytest.mark.long
def test_the_core_requires_what_is_imported_and_nothing_else():
    of_extras = set[str]().union(*(packages_of(name) for name in EXTRAS))
    core = named(PROJECT["dependencies"])
    assert imported() - set(COMES_WITH) - of_extras == core - {"chex"}  # that is for states of users
    assert closure(PROJECT["dependencies"]) & of_extras == {"fsspec", "pygments"}  # by way of Orbax, and of Rich


EVERY_MODULE = """
import importlib, io, json, pkgutil
from contextlib import redirect_stdout
import jaxreward
from jaxreward.cli import main
from jaxreward.commands.table import SUMMARIES, commands_of

failed = {}

def walk(package):
    for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if found.name == "jaxreward.interfaces":
            continue
        try:
            module = importlib.import_module(found.name)
        except Exception as error:
            failed[found.name] = f"{type(error).__name__}: {error}"
        else:
            walk(module) if found.ispkg else None

walk(jaxreward)
pages = []
with redirect_stdout(io.StringIO()) as out:
    for command in (command for name in SUMMARIES for command in commands_of(name)):
        try:
            status = main([*command.split(), "--help"])
        except SystemExit as end:
            status = end.code
        pages += [] if status else [command]
    main(["tasks"])
print(json.dumps({"failed": failed, "pages": pages, "out": out.getvalue()}))
"""


@pytest.mark.long
def test_without_extras_every_other_module_and_every_help_page_is_there(light: dict[str, str], tmp_path: Path):
    seen = json.loads(run(EVERY_MODULE, light, tmp_path))
    assert set(seen["failed"]) == set(NEEDS), seen["failed"]
    for module in ("jaxreward.tasks.brax", "jaxreward.tasks.robots"):
        assert install(NEEDS[module]) in seen["failed"][module]
    assert set(seen["pages"]) == {command for name in SUMMARIES for command in commands_of(name)}
    listed = dict(line.split(maxsplit=1) for line in seen["out"].splitlines() if "not installed" in line)
    wanted = {"hopper": "brax", "panda-tracking": "mujoco", "xland-easy": "xland"}
    assert {name: listed[name] for name in wanted} == {
        name: f"{extra}, not installed: {install(extra)}" for name, extra in wanted.items()
    }
    assert "probe-choice" not in listed


SEARCH = """
import json
import jax
jax.config.update("jax_disable_most_optimizations", True)
import jaxreward as jr
from jaxreward.cli import main

SOURCE = '''
def compute_reward(state, action, next_state):
    return next_state.hit * 1.0
'''
task = jr.make_task("probe-choice")
result = jr.train(task, [jr.load_program(SOURCE, task)], jr.PPO(envs=16, unroll=16), seeds=1, steps=1024)
small = ["--candidates", "2", "--generation", "2", "--seeds", "1", "--steps", "1024", "--final-seeds", "0"]
learner = ["--ppo.envs", "16", "--ppo.unroll", "16"]
status = main(["evolve", "--task", "probe-choice", "--name", "small", "--baselines", *small, *learner])
status = status or main(["runs", "show", "small"])
print(json.dumps({"status": status, "success": result.success.shape}))
"""


@pytest.mark.slow
def test_without_extras_a_program_trains_and_a_search_ends_with_one_sentence_on_its_report(
    light: dict[str, str], tmp_path: Path
):
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-0123456789abcdef\n")
    out = run(SEARCH, light, tmp_path)
    assert json.loads(out.splitlines()[-1]) == {"status": 0, "success": [1, 1]}
    told = [line for line in out.splitlines() if install("reports") in line]
    assert told == [f"no report and no picture of the search: {install('reports')}, then jaxreward report runs/small"]
    kept = {path.name for path in (tmp_path / "runs" / "small").iterdir()}
    assert "best_interface.py" in kept and not kept & {"report.html", "search.png"}


IMPORTED = """
import json, sys
import jaxreward as jr
jr.train, jr.evolve, jr.compare, jr.make_task("probe-choice")
print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.long
def test_the_trainer_and_the_search_import_no_extra_that_is_installed(tmp_path: Path):
    loaded = set(json.loads(run(IMPORTED, {**os.environ, "PYTHONPATH": str(ROOT)}, tmp_path)))
    assert "jaxreward.evolution.loop" in loaded
    of_extras = {module for extra in EXTRAS.values() for module in extra.packages} - {"pygments"}  # of Flax's tables
    assert loaded & (of_extras | {"scipy.stats"}) == set()


# ---- the extras


def test_the_table_of_extras_is_that_of_the_project():
    for name, extra in EXTRAS.items():
        assert {canonicalize_name(package) for package in extra.packages.values()} <= packages_of(name), name
    for name in OF_ALL:
        assert {canonicalize_name(package) for package in EXTRAS[name].packages.values()} == packages_of(name), name
    together = set[str]().union(*(packages_of(name) for name in OF_ALL))
    assert packages_of("all") == together <= packages_of("dev")


def hide(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The packages of an extra are not installed."""
    for module in EXTRAS[extra].packages:
        monkeypatch.setitem(sys.modules, module, None)


FILM = "# An interface found by jaxreward\n# task: probe-choice\n"
REFUSED = [
    ("brax", ["evolve", "--task", "hopper"]),
    ("brax", ["train", "--task", "ant-lie-down"]),
    ("brax", ["tasks", "reacher"]),
    ("mujoco", ["evolve", "--task", "panda-tracking"]),
    ("xland", ["evolve"]),
    ("xland", ["compare", "--tasks", "xland-easy", "--strategies", "limen"]),
    ("xland", ["evolve", "--task", "xland/XLand-MiniGrid-R1-9x9/rules.toml"]),
    ("llm", ["evolve", "--task", "probe-choice", "--proposer", "llm", "--model", "openai/x"]),
    ("llm", ["compare", "--tasks", "probe-choice", "--proposers", "llm", "--model", "openai/x"]),
    ("llm", ["doctor", "--model", "openai/x"]),
    ("reports", ["train", "--task", "probe-choice", "--plot", "curves.png"]),
    ("reports", ["film", "film.py"]),
    ("reports", ["report", "small"]),
    ("reports", ["evolve", "--task", "probe-choice", "--strategy", "revolve", "--option", "fitness=preference"]),
    ("tensorboard", ["evolve", "--task", "probe-choice", "--track", "tensorboard"]),
    ("wandb", ["runs", "track", "small", "--to", "wandb"]),
]  # fmt: skip


@pytest.mark.parametrize(("extra", "words"), REFUSED, ids=lambda x: " ".join(x) if isinstance(x, list) else x)
def test_a_missing_extra_is_told_with_its_command_before_anything_is_written(
    extra: str, words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    hide(extra, monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "film.py").write_text(FILM)
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert re.fullmatch(rf"jaxreward {words[0]}: .* not installed: {re.escape(install(extra))}\n", captured.err)
    assert [path.name for path in tmp_path.iterdir()] == ["film.py"]


def test_a_file_that_builds_on_our_robots_asks_for_their_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    hide("mujoco", monkeypatch)
    for name in [name for name in sys.modules if name.startswith("jaxreward.tasks.robots")]:
        monkeypatch.delitem(sys.modules, name)
    file = tmp_path / "mine.py"
    file.write_text("from jaxreward.tasks.robots.mujoco_task import MuJoCoTask\n")
    with pytest.raises(MissingPackage, match=re.escape(install("mujoco"))):
        make_task(str(file))


def test_a_missing_package_names_itself_and_the_setting(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    assert extras.missing("reports") == ("imageio-ffmpeg",)
    with pytest.raises(MissingPackage, match=r"^--plot needs imageio-ffmpeg, which is not installed: ") as caught:
        require("reports", "--plot", "plot")
    assert caught.value.package == "imageio-ffmpeg" and caught.value.settings == ("plot",)
    require("xland", "the task")


def test_the_keys_of_a_folder_are_left_alone_without_language_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)  # of whoever runs the tests
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-0123456789abcdef\n")
    assert Secrets(tmp_path).redact("sk-0123456789abcdef") == "***"
    hide("llm", monkeypatch)
    assert Secrets(tmp_path).install() == [] and "OPENAI_API_KEY" not in os.environ


def test_doctor_lists_what_is_missing_with_its_command_and_finds_no_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    hide("reports", monkeypatch)
    found = {}
    for finding in examine(DoctorSettings(out=tmp_path)):
        if finding.name == "devices":
            break
        found[finding.name] = finding
    assert all(finding.ok for finding in found.values())
    assert "xland" in found["extras"].text and "reports" not in found["extras"].text
    assert found["extra reports"].text == f"not installed; for reports, plots and films: {install('reports')}"
