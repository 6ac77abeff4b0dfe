"""Questions to the person at the terminal, among them those about what only the folder of a run says."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Collection
from pathlib import Path

from jaxreward.errors import UserError
from jaxreward.formatting import printable
from jaxreward.proposers.llm import consent
from jaxreward.proposers.llm.llm_settings import LlmSettings


class Unconfirmed(UserError):
    """Settings of language models that only the folder of a run has, and that this user did not confirm.

    Attributes:
        settings: their names.
    """

    def __init__(self, message: str, settings: Collection[str]) -> None:
        super().__init__(message)
        self.settings = tuple(settings)


def confirmed(question: str) -> bool | None:
    """Whether a person says yes; None where nobody can be asked."""
    if not sys.stdin.isatty():
        return None
    print(printable(f"{question} [y/N] "), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def require_own(path: Path, proposer: str, of_folder: Collection[str], found: LlmSettings, used: LlmSettings) -> None:
    """Raise `Unconfirmed` if the run's folder in `path` alone says which model is asked, at which address or with which
    templates, and this user has not said the same before. A person at a terminal is asked.

    The other arguments are those of `consent.unconfirmed`.
    """
    names = consent.unconfirmed(proposer, of_folder, found, used)
    if not names:
        return
    options = shlex.join(consent.flags(names, used))
    what = f"{path} says {options}, and you have not said so before on this machine"
    if {"model", "judge_model", "api_base"} & set(names):
        what += ": prompts, and a key of yours, would go where it says"
    answer = confirmed(f"{what}. Go on with that?")
    if answer is None:
        raise Unconfirmed(f"{what}; if that is what you want, add {options} to the command, else add others", names)
    if not answer:
        raise Unconfirmed("not resumed: the settings were not confirmed", names)
    consent.remember(proposer, used)


def own_limit(proposer: str, found: LlmSettings, used: LlmSettings) -> LlmSettings:
    """`used` with the amount that may be spent without a question: a run's folder, which has `found`, raises it only
    if this user chose its language models."""
    if consent.is_known(proposer, found):
        return used
    return dataclasses.replace(used, confirm_usd=min(LlmSettings().confirm_usd, used.confirm_usd))
