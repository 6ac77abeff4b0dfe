"""The candidates of a benchmark: programs as a search meets them, the same in every run."""

from __future__ import annotations

from importlib.resources import files

from jaxreward.errors import UserError
from jaxreward.programs import Checker, Program
from jaxreward.proposers.registry import make_proposer
from jaxreward.records import Request
from jaxreward.search.seeding import derive_rng
from jaxreward.tasks import Task, card

_EVERY = 4
"""Every so many candidates one is a shipped interface, until there are no more of them."""


def mixed_programs(task: Task, n: int) -> list[Program]:
    """`n` programs that compute different things; the first k of them are the same for every n >= k.

    They come from the `scratch` operator of the genetic proposer with fixed seeds, so they depend
    on the task's vocabulary; the shipped interfaces of the task stand among them.

    Raises:
        UserError: the task's vocabulary does not yield so many.
    """
    proposer, shipped = make_proposer("genetic", card(task)), shipped_sources(task.name)
    found: dict[str, Program] = {}
    drawn, limit = 0, 20 * n + 100
    with Checker() as checker:
        while len(found) < n:
            batch = []
            for _ in range(min(32, n - len(found))):
                place = len(found) + len(batch)
                if shipped and place % _EVERY == 1:
                    batch.append(shipped.pop(0))
                    continue
                request = Request(id=f"benchmark-{drawn}", generation=0, operator="scratch")
                rng = derive_rng(0, "benchmark", drawn)
                batch.append(proposer.propose_all([request], lambda _, rng=rng: rng).proposals[0].source)
                drawn += 1
            for verdict, program in checker.check_many(batch, task):
                if verdict.ok and program is not None:
                    found.setdefault(program.digest, program)
            if drawn > limit:
                raise UserError(
                    f"the vocabulary of {task.name} gives only {len(found)} different programs; ask for no more"
                )
    return list(found.values())


def shipped_sources(task_name: str) -> list[str]:
    """Texts of the interfaces that are shipped for a task, in the order of their names."""
    folder = files("jaxreward") / "interfaces" / task_name.replace("-", "_")
    if not folder.is_dir():
        return []
    return [p.read_text() for p in sorted(folder.iterdir(), key=lambda p: p.name) if p.name.endswith(".py")]
