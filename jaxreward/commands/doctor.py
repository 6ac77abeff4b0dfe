"""Is this machine fit for a run? `jaxreward doctor`: versions, extras, devices, sandbox, disk, a training."""

from __future__ import annotations

import dataclasses
import platform
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from jaxreward.commands.output import console_of, print_json
from jaxreward.commands.resolve import Command, Resolved
from jaxreward.config import Arg
from jaxreward.extras import EXTRAS, install, missing, require
from jaxreward.runs.folders import RUNS

if TYPE_CHECKING:
    from jaxreward.proposers.llm.llm_settings import ModelSettings


@dataclass(frozen=True)
class DoctorSettings:
    """Say whether this machine can run a search: versions, devices, sandbox, disk, a training of seconds."""

    out: Path = RUNS
    """Folder where runs would go."""
    model: Annotated[tuple[str, ...], Arg(adds=True)] = ()
    """Language models to try with one tiny request each."""
    api_base: Annotated[str | None, Arg(unit="URL")] = None
    """Address of their endpoint. By default the provider's."""
    price: Annotated[tuple[str, ...], Arg(unit="MODEL=IN,OUT", adds=True)] = ()
    """Dollars per million tokens, of prompts and of replies. They take the place of litellm's price table."""
    json: bool = False
    """End standard output with one JSON object."""


@dataclass(frozen=True)
class Finding:
    """One line of the examination. A machine with a finding that is not `ok` is not fit."""

    name: str
    ok: bool
    text: str


def run(resolved: Resolved[DoctorSettings]) -> int:
    """Print the findings as they are made; returns 1 where the machine is not fit."""
    settings, findings = resolved.settings, []
    console = console_of(settings.json)
    for finding in examine(settings):
        findings.append(finding)
        console.print(f"{'ok ' if finding.ok else 'NOT'} {finding.name}: {finding.text}")
    fit = all(f.ok for f in findings)
    if settings.json:
        print_json({"fit": fit, "findings": [dataclasses.asdict(f) for f in findings]})
    return 0 if fit else 1


def examine(settings: DoctorSettings) -> Iterator[Finding]:
    """Findings, one by one as they are made."""
    if settings.model:
        require("llm", "--model", "model")
    _llm(settings).check()
    yield _versions()
    yield from _extras()
    yield _devices()
    yield _disk(settings.out)
    sandbox = _sandbox()
    yield sandbox
    if sandbox.ok:
        yield _training()
    if settings.model:
        yield from _models(settings)


def _versions() -> Finding:
    from jaxreward.runs.provenance import versions

    found = {**versions(), "system": f"{platform.system()} {platform.machine()}"}
    return Finding("versions", True, ", ".join(f"{name} {version}" for name, version in found.items()))


def _extras() -> Iterator[Finding]:
    """The extras that are installed, and a line for each that is not, which is no fault of the machine."""
    lacking = [name for name in EXTRAS if missing(name)]
    there = ", ".join(name for name in EXTRAS if name not in lacking)
    yield Finding("extras", True, there or "none is installed")
    for name in lacking:
        yield Finding(f"extra {name}", True, f"not installed; for {EXTRAS[name].purpose}: {install(name)}")


def _devices() -> Finding:
    import jax

    try:
        devices = jax.devices()
    except RuntimeError as error:
        return Finding("devices", False, f"JAX finds no device: {error}")
    return Finding("devices", True, ", ".join(f"{d.platform}:{d.id} {d.device_kind}" for d in devices))


def _disk(out: Path) -> Finding:
    folder = next(p for p in (out.absolute(), *out.absolute().parents) if p.exists())
    if not folder.is_dir():
        return Finding("disk", False, f"{folder} is a file, where runs would go: name a folder with --out")
    free = shutil.disk_usage(folder).free / 1e9
    return Finding("disk", free > 1.0, f"{free:.1f} GB free where runs go" + ("" if free > 1.0 else ": free some"))


def _sandbox() -> Finding:
    from jaxreward.errors import UserError
    from jaxreward.programs import sandbox_status

    try:
        return Finding("sandbox", True, sandbox_status())
    except UserError as error:
        return Finding("sandbox", False, str(error))


def _training() -> Finding:
    """A known-good interface must learn in seconds: else the fault is not in any candidate."""
    from jaxreward.programs import load_program
    from jaxreward.tasks import make_task
    from jaxreward.training import train

    task = make_task("probe-choice")
    source = (
        "import jax.numpy as jnp\n\n\n"
        "def get_observation(state):\n    return jnp.stack([state.signal])\n\n\n"
        "def compute_reward(state, action, next_state):\n    return next_state.hit.astype(jnp.float32)\n"
    )
    begin = time.perf_counter()
    program = load_program(source, task)
    result: Any = train(task, [program], seeds=1, steps=40_000, checkpoints=2)
    seconds, success = time.perf_counter() - begin, float(result.success.mean())
    rate = result.env_steps / result.run_s
    text = f"a known-good interface reached {success:.2f} in {seconds:.0f} s ({rate:,.0f} steps/s)"
    return Finding("training", success > 0.95, text)


def _llm(settings: DoctorSettings) -> ModelSettings:
    from jaxreward.proposers.llm.llm_settings import ModelSettings

    return ModelSettings(
        model=settings.model, api_base=settings.api_base, price=settings.price, max_tokens=256, timeout_s=60
    )


def _models(settings: DoctorSettings) -> Iterator[Finding]:
    from jaxreward.proposers.llm.cost import dollars
    from jaxreward.proposers.llm.llm_proposer import ping

    notes: list[str] = []
    answers = ping(_llm(settings), notes.append)
    yield from (Finding("language models", True, note) for note in notes)
    for answer in answers:
        price = "price unknown" if answer.cost_usd is None else dollars(answer.cost_usd)
        text = f"replied in {answer.latency_s:.1f} s, {answer.tokens} tokens, {price}"
        yield Finding(f"model {answer.model}", not answer.error, answer.error or text)


COMMANDS = (Command("doctor", DoctorSettings, run=run, examples=("doctor --model openai/my-model",)),)
