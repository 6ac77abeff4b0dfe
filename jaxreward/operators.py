"""The operators by which a strategy asks a proposer.

Most ask for a program. Some ask for words: a plan, a thought, a judgement; their answers are not
trained and have no score, and a proposer without words fails with stage `declined`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Operator:
    """An operator: its name, the programs that it works on (at least `parents` of them), and whether it
    asks for `words` in place of a program. `own` ones are answered by the search itself: no proposer is asked."""

    name: str
    does: str
    parents: int = 1
    words: bool = False
    own: bool = False


OPERATORS = {
    operator.name: operator
    for operator in (
        Operator("scratch", "a program from nothing but the task", parents=0),
        Operator("improve", "a better version of the parent, in whatever way its feedback suggests"),
        Operator("structure", "the parent with components added, removed or in another form (RF-Agent, a_m1)"),
        Operator("weights", "the parent with other parameters and the same components (RF-Agent, a_m2)"),
        Operator("term", "the parent with exactly one component changed (REvolve)"),
        Operator("ablate", "the parent without one group of its parts, to see what the group is worth"),
        Operator("reflect", "an analysis of the parent's feedback, then a better program (Eureka)"),
        Operator("crossover", "what is good in two or more parents, in one program", parents=2),
        Operator("path", "the next step of a line of programs, nearest ancestor first (RF-Agent, a_r4)"),
        Operator("different", "a program of another kind than all parents (RF-Agent, a_d5)"),
        Operator("implement", "a program that carries out the request's plan (FORGE)", parents=0),
        Operator(
            "compose", "a program whose reward has a term for each subtask of the request's plan (RDA)", parents=0
        ),
        Operator("amend", "the parent, changed by what was seen of its agent, a term for each subtask (RDA)"),
        Operator("shape", "the parent with a reward that grows along the expert's trajectories (GRACE)"),
        Operator(
            "keep", "the parent as it is, scored again: on data that have changed (GRACE), or by fresh seeds", own=True
        ),
        Operator("repair", "a rejected program, repaired; any request with `failed` is one", parents=0),
        Operator("plan", "named components of a reward, from the task's words alone (FORGE)", parents=0, words=True),
        Operator("divide", "the task's instruction cut into subtasks (RDA)", parents=0, words=True),
        Operator("watch", "how well the parent's agent does each subtask, by a judge who sees it (RDA)", words=True),
        Operator("revise", "the subtasks reworded by what was seen, as many as they were (RDA)", words=True),
        Operator("align", "the thought behind the parent, rewritten from its program (RF-Agent)", words=True),
        Operator("verify", "how close the parent is to what an expert would write, in [-1, 1] (RF-Agent)", words=True),
        Operator("identify", "which steps of an expert's episode solve the task (GRACE)", parents=0, words=True),
        Operator("expand", "more data: episodes of a policy trained under the parent (GRACE)", words=True, own=True),
        Operator("prefer", "which of two trained agents does better, by a person (REvolve)", parents=2, words=True),
    )
}

WORDS = frozenset(name for name, operator in OPERATORS.items() if operator.words)
"""Operators whose answer is not a program; any other operator, an unknown one too, asks for one."""

OF_SUBTASKS = frozenset({"compose", "amend"})
"""Operators that ask for a program whose reward has a term for each subtask of the request's plan, and no other."""

PLANNED = OF_SUBTASKS | {"implement"}
"""Operators that ask for a program that carries out the request's plan."""

OF_JUDGES = frozenset({"prefer", "watch"})
"""Operators that ask a judge who has seen trained agents, and no proposer."""

OWN = frozenset(name for name, operator in OPERATORS.items() if operator.own)

REPEATS = frozenset({"keep"})
"""Operators that ask for a program that was proposed before: no attempt, and no new candidate of the budget."""
