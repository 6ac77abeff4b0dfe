"""`xland/<environment>/<ruleset>`: any XLand-MiniGrid environment with any ruleset.

A ruleset is one of

* `generated:<depth>-<distractors>-<decoys>-<seed>`, e.g. `generated:1-2-1-7`, see `xland_generator`;
* `<benchmark>:<number>`, e.g. `trivial-21k:17`, a ruleset of an XLand-MiniGrid benchmark. The
  benchmark must lie on disk (`XLAND_MINIGRID_DATA`, `~/.xland_minigrid`), or xminigrid downloads it;
* the path of a TOML file with `goal`, `rules` and `init_tiles` as xminigrid encodes them
  (lists of small integers), and optionally `description` and `horizon`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import jax.numpy as jnp
import xminigrid
from xminigrid.benchmarks import DATA_PATH, registered_benchmarks
from xminigrid.core.goals import MAX_GOAL_ENCODING_LEN, NUM_GOALS
from xminigrid.core.rules import MAX_RULE_ENCODING_LEN, NUM_RULES
from xminigrid.types import RuleSet

from jaxreward.errors import FileProblem, InvalidSetting, UnknownName, UnusableFile, problem_of, why_unreadable
from jaxreward.tasks.option_checks import invalid_option
from jaxreward.tasks.xland import XLand
from jaxreward.tasks.xland_generator import named


def ruleset_task(spec: str, horizon: int | None = None) -> XLand:
    """The task of `<environment>/<ruleset>`; the default horizon is 3 x height x width, xminigrid's.

    Raises:
        UnknownName: unknown environment or benchmark, or an unknown key in a file.
        InvalidSetting: a name without a ruleset, a number out of range, or an invalid value in a file.
        UnusableFile: a file that cannot be read or is not TOML, or a benchmark that is not on disk.
    """
    environment, _, ruleset_name = spec.partition("/")
    known = [name for name in xminigrid.registered_environments() if name.startswith("XLand")]
    if environment not in known:
        raise UnknownName("XLand environment", environment, known)
    if not ruleset_name:
        raise invalid_option(
            "ruleset",
            f"'xland/{spec}' names no ruleset: write xland/{environment}/<benchmark>:<number>, "
            f"xland/{environment}/generated:<depth>-<distractors>-<decoys>-<seed> "
            f"or xland/{environment}/<path of a TOML file>",
        )
    words, steps = "", None
    benchmark, colon, number = ruleset_name.partition(":")
    if colon and benchmark == "generated":
        ruleset = RuleSet(*map(jnp.asarray, named(number)))
    elif colon and benchmark in registered_benchmarks():
        ruleset = _from_benchmark(benchmark, number)
    elif ruleset_name.endswith(".toml"):
        ruleset, words, steps = _from_file(Path(ruleset_name))
    else:
        known = ("generated", *registered_benchmarks())
        message = f"'{ruleset_name}' is neither <benchmark>:<number> (benchmarks: {', '.join(known)}) "
        raise UnknownName("benchmark", benchmark, known, message=f"{message}nor the path of a .toml file")
    _, params = xminigrid.make(environment)
    asked = steps if horizon is None else horizon
    usual = 3 * params.height * params.width
    return XLand(f"xland/{spec}", environment, ruleset, usual if asked is None else asked, words)


def _from_benchmark(name: str, number: str) -> RuleSet:
    if not number.isdigit():
        message = f"'{number}' is not a ruleset number; write {name}:<number>, counted from 0"
        raise invalid_option("ruleset.number", message)
    try:
        benchmark = xminigrid.load_benchmark(name)
    except OSError as error:
        raise UnusableFile(
            f"the benchmark '{name}' is neither on disk nor could it be downloaded ({error}); put its file into "
            "the folder named by XLAND_MINIGRID_DATA (default ~/.xland_minigrid)",
            DATA_PATH,
            FileProblem.MISSING,
        ) from error
    if int(number) >= benchmark.num_rulesets():
        message = f"'{name}' has rulesets 0 to {benchmark.num_rulesets() - 1}; there is no {number}"
        raise invalid_option("ruleset.number", message)
    return benchmark.get_ruleset(int(number))


_KEYS = ("goal", "rules", "init_tiles", "description", "horizon")


def _from_file(path: Path) -> tuple[RuleSet, str, int | None]:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        message = f"the ruleset file {path} cannot be read: {why_unreadable(error)}"
        raise UnusableFile(message, path, problem_of(error)) from error
    except tomllib.TOMLDecodeError as error:
        raise UnusableFile(f"the ruleset file {path} is not TOML: {error}", path, FileProblem.DAMAGED) from error
    if unknown := sorted(set(data) - set(_KEYS)):
        message = f"{path}: unknown key '{unknown[0]}'; known are {', '.join(_KEYS)}"
        raise UnknownName("key", unknown[0], _KEYS, message=message)
    goal = _encoding(path, "goal", [data.get("goal")], MAX_GOAL_ENCODING_LEN, NUM_GOALS)[0]
    rules = _encoding(path, "rules", data.get("rules") or [[0]], MAX_RULE_ENCODING_LEN, NUM_RULES)
    tiles = _encoding(path, "init_tiles", data.get("init_tiles"), 2, 13)
    if any(len(pair) != 2 for pair in data["init_tiles"]):
        raise InvalidSetting(f"{path}: every entry of init_tiles must be a pair [tile, colour]", "init_tiles")
    return (
        RuleSet(
            goal=jnp.asarray(goal, jnp.uint8),
            rules=jnp.asarray(rules, jnp.uint8),
            init_tiles=jnp.asarray(tiles, jnp.uint8),
        ),
        str(data.get("description", "")),
        data.get("horizon"),
    )


def _encoding(path: Path, key: str, rows: object, length: int, kinds: int) -> list[list[int]]:
    """Check a list of encodings and pad each with zeros to `length`."""
    rows_ok = isinstance(rows, list) and rows and all(isinstance(row, list) and 0 < len(row) <= length for row in rows)
    if not rows_ok or not all(type(v) is int and 0 <= v < 256 for row in rows for v in row):  # type: ignore[union-attr]
        message = f"{path}: '{key}' must be at most {length} integers of 0 to 255 each, as xminigrid encodes it"
        raise InvalidSetting(message, key)
    assert isinstance(rows, list)
    if any(row[0] >= kinds for row in rows):
        raise InvalidSetting(f"{path}: '{key}' starts with a kind of 0 to {kinds - 1}", key)
    return [row + [0] * (length - len(row)) for row in rows]
