"""What of a run's folder counts only if this user said it before, says it again or confirms it."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

from jaxreward.commands.questions import confirmed
from jaxreward.errors import UserError
from jaxreward.proposers.llm import consent
from jaxreward.proposers.llm.llm_settings import LlmSettings


def require_own(path: Path, proposer: str, found: LlmSettings, typed: LlmSettings, result: LlmSettings) -> None:
    """Raise `UserError` if the folder in `path` alone says who is asked, or with which templates.

    A person at a terminal is asked. The arguments are those of `consent.others`.
    """
    names = consent.others(proposer, found, typed, result)
    if not names:
        return
    said = shlex.join(consent.flags(names, result))
    what = f"{path} says {said}, and you have not said so before on this machine"
    if {"model", "api_base"} & set(names):
        what += ": prompts, and a key of yours, would go where it says"
    answer = confirmed(f"{what}. Go on with that?")
    if answer is None:
        raise UserError(f"{what}; if that is what you want, add {said} to the command, else add others")
    if not answer:
        raise UserError("not resumed: the settings were not confirmed")
    consent.remember(proposer, result)


def own_limit(proposer: str, found: LlmSettings, typed: LlmSettings, result: LlmSettings) -> LlmSettings:
    """`result` with what it may cost unasked: a folder raises that only if this user chose its language models."""
    usual = LlmSettings().confirm_usd
    if result.confirm_usd == typed.confirm_usd or consent.is_known(proposer, found):
        return result
    return dataclasses.replace(result, confirm_usd=min(usual, result.confirm_usd))
