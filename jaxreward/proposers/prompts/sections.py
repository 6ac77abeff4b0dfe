"""What prompts show of programs and results, made to fit: data for templates, never templates."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxreward.proposers.prompts.training_feedback import feedback_lines, number, one_line
from jaxreward.proposers.replies.program_reply import THOUGHT_LIMIT
from jaxreward.proposers.replies.source import defined
from jaxreward.records import Failure, Feedback, Request, Result, TaskCard, Watched

BUDGET = {"task": 2_500, "parents": 6_000, "feedback": 2_000, "failures": 1_000, "best": 3_000, "diverse": 2_000,
          "observation": 2_000, "illustrations": 5_000, "functions": 1_000}  # fmt: skip
"""Most tokens of a section, by `estimate_tokens`, `task` without the documentation of the state, which is cut last
of all, and without an `observation` that is given. Optional sections get what is left of `TOTAL`, in this order."""

TOTAL = 12_000
"""Most tokens of a prompt, system message included."""

OPTIONAL = {"feedback": 0.9, "failures": 0.8, "best": 0.8, "diverse": 0.7}
"""Sections that a prompt may lack, and the chance of each to be shown."""

LEAST = 150
"""Tokens below which a section or a program is not worth beginning."""

PROGRAM = 1_000
"""Tokens that each program gets that a page is about, if it is as long: programs are left out for it, and the
documentation of the state is cut."""

MANY = BUDGET["parents"] // PROGRAM
"""Long programs that a page can be about."""

BANDS = ((0.02, "zero"), (0.3, "low"), (0.6, "middle"), (0.9, "high"), (math.inf, "solved"))
"""Success of the parent below which each piece of guidance is given."""

_OVERHEAD = 120
"""Tokens that a prompt says about a program in addition to its source, terms and thought."""

_THOUGHT = 600
"""Tokens of a thought that is as long as thoughts are kept, with room for some letters that are not ASCII."""

_LINE, _AROUND = 240, 3
_UNSHOWN = frozenset({"refused", "reply", "duplicate", "filtered"})
"""Failures that name no fault of a program."""


def estimate_tokens(text: str) -> int:
    """Tokens of a text, rather too many than too few: 2.5 characters each, 1.5 bytes where they are not ASCII."""
    size = len(text.encode("utf-8", "replace"))
    ascii_only = len(text.encode("ascii", "ignore"))
    return math.ceil(ascii_only / 2.5 + (size - ascii_only) / 1.5)


def plain(text: str) -> str:
    """Text that encodes: halves of surrogate pairs and control characters are replaced."""
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "?", text)


def clipped(text: str, budget: int) -> str:
    """A line of at most `budget` tokens."""
    if estimate_tokens(text) <= budget:
        return text
    fits = bisect_right(range(1, len(text)), budget - 3, key=lambda size: estimate_tokens(text[:size]))
    return text[:fits].rstrip() + "…"


def fenced(text: str, tag: str = "python") -> str:
    """Text in a fence that nothing in it can close."""
    text = re.sub(r"`{13,}", "`" * 12, plain(text)).strip("\n")
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
    return f"{fence}{tag}\n{text}\n{fence}"


def cut(text: str, budget: int, mark: str = "# ") -> str:
    """Text of at most `budget` tokens: lines are left out of its middle, visibly."""
    if estimate_tokens(text) <= budget:
        return text
    lines = [line if len(line) <= _LINE else f"{line[:_LINE]} {mark}... cut" for line in text.split("\n")]
    costs = [estimate_tokens(line + "\n") for line in lines]
    left, head, tail = budget - 20, 0, len(lines)
    while head < tail:
        # Two lines from the start for one from the end: a program's reward stands last.
        at = tail - 1 if (head + len(lines) - tail) % 3 == 2 else head
        left -= costs[at]
        if left < 0:
            break
        head, tail = (head + 1, tail) if at == head else (head, at)
    if head == tail:
        return "\n".join(lines)
    return "\n".join([*lines[:head], f"{mark}... {tail - head} lines left out", *lines[tail:]])


@dataclass(frozen=True)
class Shown:
    """A result as templates see it; all text is on one line and of bounded length but `source` and `excerpt`.

    Attributes:
        id: the candidate's name in the run.
        source: its program, perhaps with lines left out.
        score: the metric with its standard error in words; empty for a failure.
        level: how far it has come, about 0 to 1; None for a failure, and where no scale is known.
        measure: the name of the metric.
        observation_size, operations: 0 where the program was not checked.
        terms: names of reward terms.
        missing: `get_observation` or `compute_reward` where the task's own stands in for it.
        stage, message, hint, line: the failure; empty, empty, empty, None without one.
        excerpt: numbered lines around the failure's.
        feedback: what training showed, by `feedback_lines`.
        thought: what its author said about it.
        times: how many programs failed in this way.
    """

    id: str
    source: str
    score: str = ""
    level: float | None = None
    measure: str = "success"
    observation_size: int = 0
    operations: int = 0
    terms: tuple[str, ...] = ()
    missing: str = ""
    stage: str = ""
    message: str = ""
    hint: str = ""
    line: int | None = None
    excerpt: str = ""
    feedback: tuple[str, ...] = ()
    thought: str = ""
    times: int = 1


def shown(result: Result) -> Shown:
    """A result, uncut."""
    candidate, score, summary = result.candidate, result.score, result.candidate.summary
    failure = result.failure or Failure(stage="reply", message="")
    halves = defined(candidate.source)
    absent = {"observation": "get_observation", "reward": "compute_reward"}
    return Shown(
        id=one_line(candidate.id, 40),
        source=plain(candidate.source).strip("\n"),
        score=_score(result),
        level=score.level if score else None,
        measure=(score or result.feedback or Feedback()).measure.name,
        observation_size=summary.observation_size if summary else 0,
        operations=summary.operations if summary else 0,
        terms=_terms(summary.terms if summary else ()),
        missing=next((name for half, name in absent.items() if half not in halves), "") if halves else "",
        stage=failure.stage if result.failure else "",
        message=clipped(one_line(failure.message, 600), 240),
        hint=clipped(one_line(failure.hint, 300), 120),
        line=failure.line,
        excerpt=excerpt(candidate.source, failure.line),
        feedback=tuple(feedback_lines(result)),
        thought=clipped(one_line(candidate.thought, THOUGHT_LIMIT), _THOUGHT),
    )


def gain(card: TaskCard) -> dict[str, str]:
    """What is asked of a better program: after "so that", and as a sentence of its own after "better:"."""
    if card.objective == "demonstrations":
        what = "tell the expert's states from others better, also in episodes that are not shown"
        return {"aim": f"it {what.replace('tell', 'tells', 1)}", "aim_should": f"it should {what}"}
    agent, measure = "an agent trained with it", card.measure
    if measure.rate:
        return {
            "aim": f"{agent} reaches the goal more often",
            "aim_should": f"{agent} should reach the goal more often",
        }
    better = f"a {'higher' if measure.higher_is_better else 'lower'} {measure.name}"
    return {"aim": f"{agent} gets {better}", "aim_should": f"{agent} should get {better}"}


def illustrations(request: Request, budget: int = BUDGET["illustrations"]) -> list[str]:
    """The texts about data that a request carries, as many from the first on as fit."""
    return _first(request.illustrations, budget)


def ablations(request: Request, most: int = 8) -> list[str]:
    """What the first parent scored without some of its parts, a line for each program, and with all of them."""
    if not request.parents or request.parents[0].score is None:
        return []
    parent = request.parents[0]
    lacking = [(_lacking(parent, result), result) for result in request.ablations[:most]]
    found = [f"without {what}: {_score(result)}" for what, result in lacking if what and result.score is not None]
    return [*found, f"with all of them: {_score(parent)}"] if found else []


def _lacking(parent: Result, child: Result) -> str:
    """What a program lacks of another, in words; empty where it lacks nothing, or has what the other has not."""
    one, other = parent.candidate.summary, child.candidate.summary
    if one is None or other is None:
        return ""
    terms = _terms([name for name in one.terms if name not in other.terms])
    features = one.observation_size - other.observation_size
    if features < 0 or not {*other.terms} <= {*one.terms}:
        return ""
    words = [f"the reward term{'s' if len(terms) > 1 else ''} {', '.join(terms)}"] if terms else []
    words += [f"{features} of the {one.observation_size} features"] if features > 0 else []
    return " and ".join(words)


def functions(request: Request, budget: int = BUDGET["functions"]) -> list[str]:
    """The sources of shared functions that a request carries, as many from the first on as fit."""
    return _first(request.shared_functions, budget)


def _first(texts: Sequence[str], budget: int) -> list[str]:
    found: list[str] = []
    for text in map(plain, texts):
        budget -= estimate_tokens(text) + 10
        if budget < 0:
            break
        found.append(text)
    return found


def _terms(names: Sequence[str], budget: int = 400) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        name = clipped(one_line(name, 60), 40)
        budget -= estimate_tokens(name) + 1
        if budget < 0:
            return (*found, f"{len(names) - len(found)} more")
        found.append(name)
    return tuple(found)


def _score(result: Result) -> str:
    score = result.score
    if score is None:
        return ""
    over = f"{score.n} seeds" if score.n > 1 else f"one seed, {score.episodes} episodes"
    unit = f" {score.measure.unit}" if score.measure.unit else ""
    return f"{number(score.mean)}{unit} (standard error {number(score.se)}, {over})"


def excerpt(source: str, line: int | None) -> str:
    """Numbered lines around a line, which is marked; empty for a line that does not exist."""
    lines = plain(source).split("\n")
    if line is None or not 1 <= line <= len(lines):
        return ""
    near = range(max(1, line - _AROUND), min(len(lines), line + _AROUND) + 1)
    return "\n".join(f"{'>' if n == line else ' '} {n:4d} | {clipped(lines[n - 1][:160], 64)}".rstrip() for n in near)


def whole(results: Sequence[Result], budget: int) -> list[Shown]:
    """Programs from the first on, as many as fit; a single one that is too long is cut."""
    programs = [shown(result) for result in results]
    while len(programs) > 1 and sum(_size(program) for program in programs) > budget:
        programs.pop()
    return [_cut(program, budget) for program in programs if budget >= LEAST + _about(program)]


def parents(results: Sequence[Result], budget: int, *, oldest_first: bool = False) -> list[Shown]:
    """The programs that a page is about; those that are too long are cut, to equal parts of what the short ones leave.

    Where these parts are smaller than `PROGRAM`, programs are left out, from the least important on, which is the last,
    or the first with `oldest_first`; two remain.
    """
    programs = [shown(result) for result in results]
    while (share := _share(programs, budget)) < PROGRAM and len(programs) > 2:
        programs.pop(0 if oldest_first else -1)
    return [_cut(program, share) for program in programs]


def _share(programs: Sequence[Shown], budget: int) -> int:
    """The most tokens that each program may have so that all together keep to a budget; no less than `PROGRAM` if all
    fit whole."""
    sizes, left = sorted(_size(program) for program in programs), budget
    for k, size in enumerate(sizes):
        share = left // (len(sizes) - k)
        if size > share:
            return share
        left -= size
    return max(PROGRAM, budget)


def plan(request: Request, budget: int = 1_500) -> str:
    """The plan that a request carries; empty without one."""
    return cut(plain(request.plan.words).strip(), budget, "") if request.plan else ""


def remarks(request: Request, budget: int = 600) -> list[str]:
    """What people said, each remark on a line, as many from the first on as fit."""
    found: list[str] = []
    for remark in request.remarks:
        line = clipped(one_line(plain(remark), 400), 160)
        budget -= estimate_tokens(line) + 3
        if budget < 0:
            break
        if line and line not in found:
            found.append(line)
    return found


def seen(request: Request, budget: int = 1_500) -> list[str]:
    """What a judge saw of the first parent's agent, a line for each subtask, with its score and the reasons of the
    lowest scores, as many as fit."""
    watched = Watched.read(request.watched.words) if request.watched else None
    found: list[str] = []
    for name, score in (watched.scores() if watched else {}).items():
        reasons = [clipped(one_line(plain(why), 400), 160) for why in watched.reasons(name)] if watched else []
        line = f"{name}: {score:.2f}" + "".join(f"; {why}" for why in reasons)
        budget -= estimate_tokens(line) + 3
        if budget < 0:
            break
        found.append(line)
    return found


def failures(results: Sequence[Result], budget: int) -> list[Shown]:
    """Failures of programs, as many as fit, by their verdicts and the lines these are about; equal ones once."""
    found: dict[tuple[str, str], Shown] = {}
    for result in results:
        if result.failure is None or result.failure.stage in _UNSHOWN:
            continue
        program = shown(result)
        # That training failed is no news to a model; what to do about it is.
        said = program.hint if program.stage == "diverged" and not program.excerpt else program.message
        key = (program.stage, said)
        if key in found:
            found[key] = replace(found[key], times=found[key].times + 1)
            continue
        budget -= _verdict(program) + 40
        if budget < 0:
            break
        found[key] = program
    return list(found.values())


def failed(result: Result, budget: int) -> Shown:
    """The program to repair: its verdict, then its feedback and its source with what they leave, cut where needed."""
    program = shown(result)
    left = budget - _verdict(program) - _OVERHEAD
    lines = _fitting(program.feedback, min(BUDGET["feedback"], left // 3)) if program.feedback else ()
    left -= sum(estimate_tokens(line) + 3 for line in lines)
    return replace(program, source=cut(program.source, max(LEAST, left)), feedback=lines)


def feedback(programs: Sequence[Shown], budget: int) -> list[Shown]:
    """The programs that have feedback, with as many of its lines as fit; curves of terms go first."""
    having = [program for program in programs if program.feedback]
    return [replace(p, feedback=_fitting(p.feedback, budget // len(having) - 20)) for p in having]


def _fitting(lines: tuple[str, ...], budget: int) -> tuple[str, ...]:
    kept, gone = list(lines), 0
    while len(kept) > 1 and sum(estimate_tokens(line) + 3 for line in kept) > budget - 20:
        curves = [i for i, line in enumerate(kept) if line.startswith("reward term ")]
        kept.pop(curves[-1] if curves else -1)
        gone += 1
    return (*kept, f"({gone} {'line' if gone == 1 else 'lines'} left out)") if gone else tuple(kept)


def band(programs: Sequence[Shown]) -> str:
    """The performance band of the best parent; `scratch` without one that has a score, `unknown` where
    no scale is known."""
    levels = [program.level for program in programs if program.level is not None and math.isfinite(program.level)]
    if levels:
        return next(name for below, name in BANDS if max(levels) < below)
    return "unknown" if any(program.score for program in programs) else "scratch"


def _verdict(program: Shown) -> int:
    return estimate_tokens(program.message + program.hint + program.excerpt)


def _about(program: Shown) -> int:
    return estimate_tokens(", ".join(program.terms) + program.thought) + _OVERHEAD


def _size(program: Shown) -> int:
    return estimate_tokens(program.source) + _about(program)


def _cut(program: Shown, budget: int) -> Shown:
    """A program with lines left out; its thought, which may be the longer of the two, leaves it some."""
    room = budget - _about(replace(program, thought="")) - 2 * LEAST
    if program.thought and room < estimate_tokens(program.thought) and _size(program) > budget:
        program = replace(program, thought=clipped(program.thought, room) if room > LEAST // 2 else "")
    return replace(program, source=cut(program.source, max(LEAST, budget - _about(program))))
