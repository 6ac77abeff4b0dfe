"""Separates the reasoning of a model from its answer, in time linear in the length."""

from __future__ import annotations

import re

from jaxreward.proposers.replies.fences import fenced_lines, fences
from jaxreward.proposers.replies.source import defined, parsed

_START = re.compile(r"^[ \t]*<(?:think|thinking|reasoning)>", re.IGNORECASE | re.MULTILINE)
_END = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_STOP = re.compile(r"<\|(?:end|return|start|call)\|>")


def strip_reasoning(text: str) -> str:
    """The text without thinking blocks, and of a text in channels the final one.

    A tag in code is no tag: one that stands in a fence counts only at the start of a line. Some endpoints
    swallow the opening tag, so what precedes a lone closing one is thought, if a program follows. A block
    that is never closed is thought too, unless a complete program stands in it.
    """
    text = _final_channel(text)
    if not (_START.search(text) or _END.search(text)):
        return text
    kept: list[str] = []
    thought: list[str] = []
    fenced, thinking, tags, answer = fenced_lines(text), False, 0, 0
    for number, line in enumerate(text.split("\n")):
        while True:
            start = None if thinking or number in fenced else _START.match(line)
            end = _end(line, number in fenced) if start is None and (thinking or not tags) else None
            if start:
                thinking, thought, line = True, [], line[start.end() :]
            elif end:
                if not thinking:
                    kept.append(line[: end.start()])
                    answer = len(kept)
                thinking, line = False, line[end.end() :]
            else:
                break
            tags += 1
        (thought if thinking else kept).append(line)
    if thinking:
        blocks = [fence.text for fence in fences("\n".join(thought)) if fence.closed]
        if "".join(kept).strip() or any(defined(block) and parsed(block) is not None for block in blocks):
            kept += thought
    if answer and defined("\n".join(kept[answer:])):
        kept = kept[answer:]
    return "\n".join(kept)


def without_reasoning(text: str) -> str:
    """The text after the last block of reasoning, also where its opening tag is missing."""
    rest = _END.split(text)[-1]
    return strip_reasoning(rest if rest.strip() else text)


def _end(line: str, fenced: bool) -> re.Match[str] | None:
    """The first closing tag in a line; no comment, and within a fence only one that nothing but a fence precedes."""
    end = _END.search(line)
    before = line[: end.start()].rstrip() if end else ""
    return None if before.endswith("#") or (fenced and before.strip("`~ \t")) else end


def _final_channel(text: str) -> str:
    """What `<|channel|>final<|message|>` holds, or all that is not analysis where no channel is the final one."""
    parts = [part.partition("<|message|>") for part in text.split("<|channel|>")[1:]]
    if not any(sign for _, sign, _ in parts):
        return text
    said = [(name.strip().lower(), (_STOP.split(body, 1) or [""])[0]) for name, sign, body in parts if sign]
    final = [body for name, body in said if name.startswith("final")]
    return final[-1] if final else "\n".join(body for name, body in said if not name.startswith("analysis"))
