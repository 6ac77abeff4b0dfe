"""The proposal in a reply: a program cut to the halves that were asked for, or words."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from jaxreward.operators import WORDS
from jaxreward.proposers.replies.program_reply import Reply, read_reply
from jaxreward.proposers.replies.source import parsed, without
from jaxreward.proposers.replies.words import read_words
from jaxreward.records import Evolve, Failure, Proposal, Request

_NAMES = {"observation": ("get_observation",), "reward": ("compute_reward", "reward")}
"""The functions of each half; of the reward's, `reward(state)` is GRACE's form."""


def proposal_in(request: Request, text: str, finish: str = "", **about: Any) -> Proposal:
    """The proposal that a reply to a request amounts to; a reply that cannot be used is a failure.

    Args:
        text: the reply.
        finish: the provider's reason for its end; `length` is the token limit.
        about: other fields of the proposal.
    """
    if request.operator in WORDS:
        read = read_words(request.operator, text, finish)
    else:
        shown = [result.candidate.source for result in (*request.parents, request.failed) if result is not None]
        read = read_reply(text, finish, thought=request.thought, shown=shown)
        read = fit(read, request.evolve) if isinstance(read, Reply) else read
    if isinstance(read, Failure):
        return Proposal(request_id=request.id, failure=read, **about)
    if isinstance(read, str):
        return Proposal(request_id=request.id, words=read, **about)
    return Proposal(request_id=request.id, source=read.source, thought=read.thought, **about)


def fit(reply: Reply, evolve: Evolve) -> Reply | Failure:
    """A reply with the functions that a search evolves, or a failure of stage `reply` that names what is missing.

    Where one half is evolved, the other's function is cut out with the comments directly above it; helpers
    stay. Source that does not parse is returned as it is, for its checks to say where.
    """
    tree = parsed(reply.source)
    if tree is None:
        return reply
    functions = {half: _functions(tree, half) for half in _NAMES}
    missing = [_NAMES[half][0] for half, found in functions.items() if evolve in ("both", half) and not found]
    if missing:
        names = " and ".join(missing)
        wanted = "send both functions" if evolve == "both" else "send the function asked for"
        message = f"{names} {'is' if len(missing) == 1 else 'are'} missing: {wanted}"
        hint = "reply with the complete program in one fenced Python block, functions at the top level"
        return Failure(stage="reply", message=message, hint=hint)
    unasked = [node for half, found in functions.items() if evolve not in ("both", half) for node in found]
    return replace(reply, source=without(reply.source, unasked)) if unasked else reply


def _functions(tree: ast.Module, half: str) -> list[ast.FunctionDef]:
    named = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in _NAMES[half]]
    return [node for node in named if node.name != "reward" or len(node.args.posonlyargs + node.args.args) == 1]
