"""The provenance of an interface: the comment header of a program that a run writes."""

from __future__ import annotations

import platform
import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from jaxreward.records import SUCCESS, Candidate, Result, Score

TITLE = "# An interface found by jaxreward"
_BY_HAND = re.compile(r"# Task: (\S+) \(")


@dataclass(frozen=True)
class Provenance:
    """The fields of the header; `lineage` is the candidate and its ancestors, nearest first."""

    task: str
    digest: str
    score: Score | None = None
    lineage: tuple[Candidate, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    command: str = ""

    def header(self) -> str:
        """Comment lines, ending in an empty line."""
        lines = {"task": self.task, "score": "none"}
        if self.score is not None:
            seeds = "1 seed" if self.score.n == 1 else f"{self.score.n} seeds"
            lines["score"] = f"{self.score.mean:.4f} +- {self.score.se:.4f} ({seeds}, {self.score.episodes} episodes)"
            if self.score.measure != SUCCESS:
                lines["measure"] = self.score.measure.label
        if self.lineage:
            lines["lineage"] = " <- ".join(f"{ancestor.id} ({ancestor.operator})" for ancestor in self.lineage)
        lines["digest"] = self.digest
        lines["versions"] = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        lines["command"] = self.command
        # One line each: a line break in a value must not turn a comment into code.
        comments = (f"# {key}: {' '.join(value.split())}\n" for key, value in lines.items() if value)
        return f"{TITLE}\n{''.join(comments)}\n"


def with_header(source: str, provenance: Provenance) -> str:
    """`source` under the header, in place of one that it may carry already."""
    return provenance.header() + without_header(source).rstrip() + "\n"


def without_header(source: str) -> str:
    """`source` less a header written by `with_header`."""
    lines = source.splitlines(keepends=True)
    if not lines or lines[0].rstrip() != TITLE:
        return source
    body = next((k for k, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return "".join(lines[body:]).lstrip("\n")


def with_task(source: str, task: str) -> str:
    """`source` with `task` in its header, if it has one."""
    lines = source.splitlines(keepends=True)
    body = len(lines) - len(without_header(source).splitlines())
    return "".join(f"# task: {task}\n" if n < body and x.startswith("# task: ") else x for n, x in enumerate(lines))


def read_header(source: str) -> dict[str, str]:
    """The fields of a header, {} where there is none."""
    lines = source.splitlines()
    if not lines or lines[0] != TITLE:
        return {}
    fields: dict[str, str] = {}
    for line in lines[1:]:
        if not line.startswith("# ") or ": " not in line:
            break
        key, value = line[2:].split(": ", 1)
        fields[key] = value
    return fields


def named_task(source: str) -> tuple[str, ...]:
    """The task that the header of an interface names, a run's or that of a shipped one, then its options as KEY=VALUE;
    () where it names none."""
    field = read_header(source).get("task", "")
    try:
        named = shlex.split(field)
    except ValueError:  # a quotation without an end, in a path that an earlier version did not quote
        named = field.split()
    if named:
        return tuple(named)
    by_hand = _BY_HAND.match(source)
    return (by_hand[1],) if by_hand else ()


def lineage(results: Mapping[str, Result], id: str) -> tuple[Candidate, ...]:
    """The candidate `id` and those of its ancestors that `results` knows, breadth first, each once."""
    found: dict[str, Candidate] = {}
    queue = [id]
    while queue:
        current = queue.pop(0)
        if current in found or current not in results:
            continue
        found[current] = results[current].candidate
        queue += found[current].parents
    return tuple(found.values())


VERSIONED = ("jaxlib", "flax", "optax", "xminigrid", "brax", "mujoco-mjx")
"""Packages that a result may depend on, besides those that `versions` always lists."""


def device() -> str:
    """The device that JAX computes on first: its platform and kind."""
    import jax

    first = jax.local_devices()[0]
    return f"{first.platform} {first.device_kind}"


def versions(*packages: str) -> dict[str, str]:
    """Installed versions of jaxreward, jax, numpy and `packages`, and Python's; none is imported."""
    found: dict[str, str] = {}
    for package in dict.fromkeys(("jaxreward", "jax", "numpy", *packages)):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return {**found, "python": platform.python_version()}


def commit() -> str:
    """The commit of the checkout that this package runs from, with `+changes` where files differ from it; empty where
    there is none."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""

    def git(*args: str) -> str:
        return subprocess.run(["git", "-C", root, *args], capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + ("+changes" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""
