"""What the generations of a search compile for a GPU or TPU that need not be there, where programs are data of a bank.

    python benchmarks/generations.py --out benchmarks/results/generations.json

Populations follow each other in one process, which keeps its bank as a search does: a first one of new programs; the
second generation of LIMEN's search with the genetic proposer, before it as many of its kind as have all parts in the
bank; and new programs once more. Nothing is trained: scores are drawn evenly from 0 to 1. Every population has the same
number of programs, for which the search is asked until they are together: another number is compiled anew.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.carried import programs_of, read_programs, write_programs
from benchmarks.command import first_to_go, in_a_process, save, status_of
from benchmarks.described import DEVICES, environment
from benchmarks.gpu_compile import learner
from benchmarks.machine import machine
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError
from jaxreward.programs import Checker, Program
from jaxreward.proposers.genetic.coverage import covering
from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
from jaxreward.proposers.registry import make_proposer
from jaxreward.records import Proposal, Request, Result, Score
from jaxreward.runs.generation import candidate_of
from jaxreward.search import make_strategy
from jaxreward.search.seeding import derive_rng
from jaxreward.tasks import Task, card, make_task

_ROUNDS, _BATCH = 20, 32
"""Times that a search is asked for what a population lacks, and programs that are checked together."""


@dataclass(frozen=True)
class GenerationSettings:
    """Compile the populations of a search for a GPU or TPU that need not be there."""

    task: str = "xland-easy"
    """Task whose vocabulary the programs are from."""
    device: str = "h200"
    """h200 or v5e."""
    candidates: int = 256
    """Programs of a population."""
    seeds: int = 2
    """Training seeds of each program."""
    envs: int = 64
    """Environments of an agent."""
    seed: int = 0
    """Of the search."""
    expected: bool = False
    """Have all parts of the vocabulary in the bank from the first, as a search does."""
    limit_s: float = 1800.0
    """Give compiling up after so long."""
    cuda_site: Path | None = None
    """Folder with the CUDA plugin and NVIDIA's wheels (pip install --target); by default they are installed."""
    libtpu: Path | None = None
    """libtpu.so, or a folder with its wheel; by default it is installed."""
    programs: Path | None = None
    """Folder that keeps checked programs for the next time."""
    out: Path | None = None
    """File for the results."""

    def check(self) -> None:
        """Raise a UserError for the first invalid setting."""
        if self.device not in DEVICES:
            raise UserError(f"--device is {' or '.join(DEVICES)}, not '{self.device}'")
        if min(self.candidates, self.seeds, self.envs) < 1 or not self.limit_s > 0:
            raise UserError("--candidates, --seeds and --envs are at least 1, and --limit-s is positive")
        learner(self.task, self.envs)


# ---- programs


class Search:
    """LIMEN's search with the genetic proposer, whose scores are drawn.

    Attributes:
        proposed, rejected, duplicates: programs so far, and what became of those that are no candidates.
    """

    def __init__(self, task: Task, checker: Checker, seed: int) -> None:
        self._task, self._checker, self._seed = task, checker, seed
        self._strategy, self._proposer = make_strategy("limen"), make_proposer("genetic", card(task))
        self._state, self._known = self._strategy.init(), set[str]()
        self.proposed = self.rejected = self.duplicates = 0

    def begin(self, programs: Sequence[Program]) -> None:
        """Take these for its first generation."""
        told = list[Result]()
        requests = self._strategy.ask(self._state, len(programs), derive_rng(self._seed, "ask"))
        for request, program in zip(requests, programs, strict=True):
            told.append(self._result(request, Proposal(request_id=request.id, source=program.source), program))
            self._known.add(program.digest)
        self._state = self._strategy.tell(self._state, told)

    def children(self, n: int) -> Iterator[tuple[Program, Result]]:
        """Candidates of its next generation: those of `n` requests, then of `n` more, and so on."""
        for attempt in range(_ROUNDS):
            requests = self._strategy.ask(self._state, n, derive_rng(self._seed, "ask", attempt))
            for first in range(0, n, _BATCH):
                batch = requests[first : first + _BATCH]
                proposals = [self._propose(request, attempt) for request in batch]
                outcomes = self._checker.check_many([p.source for p in proposals], self._task)
                for request, proposal, (_, program) in zip(batch, proposals, outcomes, strict=True):
                    self.proposed += 1
                    if program is None:
                        self.rejected += 1
                    elif program.digest in self._known:
                        self.duplicates += 1
                    else:
                        self._known.add(program.digest)
                        yield program, self._result(request, proposal, program)

    def _propose(self, request: Request, attempt: int) -> Proposal:
        rng = derive_rng(self._seed, "propose", attempt, request.id)
        return self._proposer.propose_all([request], lambda _: rng).proposals[0]

    def _result(self, request: Request, proposal: Proposal, program: Program) -> Result:
        score = float(derive_rng(self._seed, "score", program.digest).random())
        candidate = candidate_of(request, proposal, program.summary)
        return Result(candidate=candidate, score=Score(mean=score, se=0.0, n=1, episodes=1))


def bred(search: Search, n: int, known: Callable[[Program], bool], note: Callable[[str], None]) -> dict[str, Any]:
    """The second generation of `n`, and `n` of its kind that are `known`.

    Raises:
        UserError: too few of them are.
    """
    second, chosen, about = list[Program](), list[Program](), dict[str, int]()
    for program, _ in search.children(n):
        if len(second) < n:
            second.append(program)
            about = {"proposed": search.proposed, "rejected": search.rejected, "duplicates": search.duplicates}
        if len(chosen) < n and known(program):
            chosen.append(program)
        if search.proposed % _BATCH == 0:
            note(f"{len(second)} programs of the second generation, {len(chosen)} of known parts")
        if len(second) == len(chosen) == n:
            return {"second": second, "known parts": chosen, "about": about}
    raise UserError(f"{search.proposed} programs have only {len(chosen)} of known parts; ask for no more --candidates")


def populations(s: GenerationSettings, folder: Path, note: Callable[[str], None]) -> dict[str, Any]:
    """By name, in the order in which they are compiled; and what was proposed for the second generation."""
    from jaxreward.programs.parts import parts_of
    from jaxreward.training.banks import Banks

    scratch = programs_of(s.task, 2 * s.candidates, folder)
    first, later = scratch[: s.candidates], scratch[s.candidates :]
    task, banks, expected = make_task(s.task), Banks(), list[Program]()
    with Checker() as checker:
        if s.expected:
            sources = covering(GeneticProposer(card(task)).lexicon)
            expected = [program for _, program in checker.check_many(sources, task) if program is not None]
            banks.expect(expected)
        bank = banks.of(first, s.candidates * s.seeds * s.envs)
        if bank is None:
            raise UserError(f"no program of {s.task} is worth a bank with so many --candidates")
        search = Search(task, checker, s.seed)
        search.begin(first)
        found = bred(search, s.candidates, lambda program: bank.covers(parts_of(program)), note)
    about = found.pop("about")
    order = {"first": first, "known parts": found["known parts"], "second": found["second"], "from scratch": later}
    return {"populations": order, "second_generation": about, "expected": expected}


# ---- compiling, in a process of its own


@dataclass(frozen=True)
class Job:
    """What the process compiles; `populations` are names and files of `carried.write_programs`, `expected` is one of
    the programs whose parts are in every bank, or empty."""

    task: str
    device: str
    seeds: int
    envs: int
    populations: Sequence[tuple[str, str]]
    expected: str = ""


def compiled(job: Job) -> list[dict[str, Any]]:
    """A row for each population."""
    import jax

    from jaxreward.programs.parts import parts_of
    from jaxreward.training.banks import BANKS
    from jaxreward.training.chunk import Chunk
    from jaxreward.training.compiled import compilations
    from jaxreward.training.population import Population, padded_sizes, size_in_bank

    first_to_go()
    task, ppo, device = make_task(job.task), learner(job.task, job.envs), DEVICES[job.device].device()
    rows, bank, width, terms = list[dict[str, Any]](), None, 0, 0
    if job.expected:
        BANKS.expect(read_programs(Path(job.expected), task))
    for name, path in job.populations:
        programs = read_programs(Path(path), task)
        cpu, wall = time.process_time(), time.perf_counter()
        known = sum(bank.covers(parts_of(p)) for p in programs) if bank else 0
        bank = BANKS.of(programs, len(programs) * job.seeds * ppo.envs)
        programs += programs[-1:] * (size_in_bank(len(programs)) - len(programs))
        width, terms = padded_sizes(programs, (width, terms), bank=True)  # a search never needs less than before
        population = Population(programs, width, terms, bank)
        with compilations() as made:
            Chunk(task, population, ppo, tuple(range(job.seeds)), jax.local_devices()[0]).compiled_for(device)
        rows.append({
            "population": name, "known": known, "bank_nodes": bank and bank.size, "width": width,
            "functions": len(made),
            "cpu_s": round(time.process_time() - cpu, 2), "wall_s": round(time.perf_counter() - wall, 2),
            "trace_s": round(sum(m.trace_s for m in made), 2), "compile_s": round(sum(m.compile_s for m in made), 2),
        })  # fmt: skip
    return rows


def run(s: GenerationSettings) -> int:
    """Draw, compile, and compare each population with the first; 1 where compiling failed."""
    s.check()
    env = environment(s.device, s.cuda_site, s.libtpu)
    where = {key: value for key, value in machine().items() if key not in ("device", "devices")}
    settings = {key: getattr(s, key) for key in ("task", "device", "candidates", "seeds", "envs", "seed", "expected")}
    report: dict[str, Any] = {"benchmark": "generations", **settings, "platform": DEVICES[s.device].platform, **where}
    with tempfile.TemporaryDirectory() as scratch:
        drawn = populations(s, s.programs or Path(scratch), lambda line: print(line, flush=True))
        paths = [(name, str(Path(scratch) / f"{k}.json.gz")) for k, name in enumerate(drawn["populations"])]
        for (_, path), programs in zip(paths, drawn["populations"].values(), strict=True):
            write_programs(Path(path), programs)
        expected = str(Path(scratch) / "expected.json.gz") if drawn["expected"] else ""
        if expected:
            write_programs(Path(expected), drawn["expected"])
        job = Job(s.task, s.device, s.seeds, s.envs, paths, expected)
        found = in_a_process([str(Path(__file__)), "one", json.dumps(asdict(job))], env, s.limit_s)
    report |= found | {"second_generation": drawn["second_generation"]}
    for row in report.get("rows", ()):
        row["of_first"] = round(row["cpu_s"] / report["rows"][0]["cpu_s"], 3)
        print(line(row, s.candidates))
    if "error" in found:
        print(found["error"])
    save(report, s.out)
    return int("error" in found)


def line(row: dict[str, Any], candidates: int) -> str:
    """A row for people."""
    return (
        f"{row['population']}: {row['known']} of {candidates} programs have all parts in the bank of before; compiled "
        f"in {row['cpu_s']:.1f} s of the processor ({row['of_first']:.3f} of the first), {row['wall_s']:.1f} s of time"
    )


def main(argv: list[str] | None = None) -> int:
    args = sys.argv[1:] if argv is None else argv
    if args[:1] == ["one"]:
        print(json.dumps({"rows": compiled(Job(**json.loads(args[1])))}))
        return 0
    return status_of("generations", lambda: run(parse(GenerationSettings, None, args, "generations.py")))


if __name__ == "__main__":
    sys.exit(main())
