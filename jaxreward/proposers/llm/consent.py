"""What this user has said about language models, remembered outside of any run.

The folder of a run says which model is asked at which address, with whose templates. A folder may come from others,
and a key would go to that address. So what it says counts only if this user said the same before: on a command line,
in a settings file or from Python. That is kept in `jaxreward/endpoints/` of the user's state folder (`XDG_STATE_HOME`,
else `~/.local/state`), a file for each choice, which can be read and deleted. A run's folder vouches for nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import stat
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from jaxreward import files
from jaxreward.proposers.llm.llm_settings import LlmSettings

GUARDED: Mapping[str, tuple[str, ...]] = {
    "llm": ("model", "judge_model", "api_base", "prompts"),
    "manual": ("prompts",),
}
"""By proposer, the settings that say who is asked, and with which templates."""


def unconfirmed(proposer: str, of_folder: Collection[str], found: LlmSettings, used: LlmSettings) -> tuple[str, ...]:
    """The guarded settings that a run's folder alone says, and this user has not said before.

    Args:
        proposer: who proposes.
        of_folder: the settings in `used` whose values come from the folder.
        found: the settings of the folder.
        used: those with what the user says now.
    """
    guarded = dict.fromkeys([*_guarded(proposer, found), *_guarded(proposer, used)])
    alone = tuple(name for name in guarded if name in of_folder)
    return () if not alone or is_known(proposer, found) or is_known(proposer, used) else alone


def remember(proposer: str, llm: LlmSettings) -> str:
    """Remember that this user chose these settings; returns why that could not be, empty if it could."""
    # Templates by themselves too: `prompt show` makes no call.
    new = [chosen for p in {proposer, "manual"} if (chosen := _chosen(p, llm)) and not is_known(p, llm)]
    if not _guarded(proposer, llm) or not new:
        return ""
    try:
        folder = _folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_own(folder)
        for chosen in new:
            files.replace(_file(folder, chosen), (json.dumps(chosen, indent=1) + "\n").encode())
    except (OSError, RuntimeError) as error:
        return str(error)
    return ""


def flags(names: tuple[str, ...], llm: LlmSettings) -> list[str]:
    """The words of a command line that say these settings."""
    words: list[str] = []
    for name in names:
        value = getattr(llm, name)
        values = list(map(str, value)) if isinstance(value, tuple) else [str(value)]
        words += [f"--{name.replace('_', '-')}", *values]
    return words


def is_known(proposer: str, llm: LlmSettings) -> bool:
    """Whether this user has said the guarded ones of these settings before."""
    chosen = _chosen(proposer, llm)
    try:
        folder = _folder()
        _require_own(folder)
        return json.loads(files.read_text(_file(folder, chosen))) == chosen
    except (OSError, RuntimeError, ValueError):
        return False


def _chosen(proposer: str, llm: LlmSettings) -> dict[str, Any]:
    """The guarded settings that are not the default, as JSON has them; {} where there are none."""
    default, chosen = LlmSettings(), dict[str, Any]()
    for field in dataclasses.fields(llm):
        value = getattr(llm, field.name)
        if field.name in _guarded(proposer, llm) and value != getattr(default, field.name):
            chosen[field.name] = sorted(value) if isinstance(value, tuple) else str(value)
    return {"proposer": proposer, **chosen} if chosen else {}


def _guarded(proposer: str, llm: LlmSettings) -> tuple[str, ...]:
    """The guarded settings of a search: whoever proposes, a model may judge."""
    return GUARDED["llm"] if llm.judge_model else GUARDED.get(proposer, ())


def _folder() -> Path:
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path.home() / ".local" / "state") / "jaxreward" / "endpoints"


def _require_own(folder: Path) -> None:
    """Raise OSError for a folder into which others could write."""
    status = os.stat(folder)
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"others can write into {folder}")


def _file(folder: Path, chosen: Mapping[str, Any]) -> Path:
    return folder / f"{hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:32]}.json"
