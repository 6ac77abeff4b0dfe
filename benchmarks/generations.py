"""What the generations of a search compile for a GPU or TPU that need not be there, where programs are data of a bank.

    python benchmarks/generations.py --out benchmarks/results/generations.json

Populations of LIMEN's search with the genetic proposer follow each other in one process, which keeps its bank as a
search does: the first; one bred from it of programs whose parts the bank has; generations as the search makes them;
and one from scratch. Nothing is trained: scores are drawn evenly from 0 to 1. Every population has the same number of
programs, for which the search is asked until they are together: of another number everything is compiled anew.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import first_to_go, in_a_process, save, status_of
from benchmarks.described import DEVICES, environment
from benchmarks.gpu_compile import learner
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError
from jaxreward.programs import Checker, Program
from jaxreward.proposers.registry import make_proposer
from jaxreward.records import Request, Result, Score
from jaxreward.runs.fold import candidate_of
from jaxreward.search import make_strategy
from jaxreward.search.seeding import derive_rng
from jaxreward.tasks import Task, card, make_task

_ROUNDS = 40
"""Times that a search is asked for what a population lacks."""


@dataclass(frozen=True)
class GenerationSettings:
    """Compile the populations of a search for a GPU or TPU that need not be there."""

    task: str = "xland-easy"
    """Task whose vocabulary the programs are from."""
    device: str = "h200"
    """h200 or v5e."""
    candidates: int = 256
    """Programs of a population."""
    generations: int = 3
    """Generations of the search."""
    seeds: int = 2
    """Training seeds of each program."""
    envs: int = 64
    """Environments of an agent."""
    seed: int = 0
    """Of the search."""
    limit_s: float = 1800.0
    """Give compiling up after so long."""
    cuda_site: Path | None = None
    """Folder with the CUDA plugin and NVIDIA's wheels (pip install --target); by default they are installed."""
    libtpu: Path | None = None
    """libtpu.so, or a folder with its wheel; by default it is installed."""
    out: Path | None = None
    """File for the results."""

    def check(self) -> None:
        """Raise a UserError for the first invalid setting."""
        if self.device not in DEVICES:
            raise UserError(f"--device is {' or '.join(DEVICES)}, not '{self.device}'")
        if min(self.candidates, self.generations, self.seeds, self.envs) < 1 or not self.limit_s > 0:
            raise UserError("--candidates, --generations, --seeds and --envs are at least 1, and --limit-s is positive")
        learner(self.task, self.envs)


# ---- programs


@dataclass
class Drawn:
    """Programs of a population, with what became of the others that were proposed for it."""

    programs: list[Program] = field(default_factory=list[Program])
    results: list[Result] = field(default_factory=list[Result])
    proposed: int = 0
    rejected: int = 0
    duplicates: int = 0
    check_s: float = 0.0


class Search:
    """LIMEN's search without training."""

    def __init__(self, task: Task, checker: Checker, seed: int) -> None:
        self._task, self._checker, self._seed = task, checker, seed
        self._strategy, self._proposer = make_strategy("limen"), make_proposer("genetic", card(task))
        self._state, self._known = self._strategy.init(), set[str]()

    def draw(self, n: int, name: str, wanted: Callable[[Program], bool] = lambda _: True, anew: bool = False) -> Drawn:
        """`n` programs that the search has not had. The first `n` requests are those of the search; what fails, or is
        not `wanted`, is asked for again.

        Args:
            name: by which chance differs.
            anew: as if the search began.
        """
        found, state = Drawn(), self._strategy.init() if anew else self._state
        known = set(self._known)
        for attempt in range(_ROUNDS):
            requests = self._strategy.ask(state, n, derive_rng(self._seed, "ask", name, attempt))
            proposals = [self._propose(request, name, attempt) for request in requests]
            begin = time.perf_counter()
            outcomes = self._checker.check_many([p.source for p in proposals], self._task)
            found.check_s += time.perf_counter() - begin
            for request, proposal, (_, program) in zip(requests, proposals, outcomes, strict=True):
                if len(found.programs) == n:
                    return found
                found.proposed += 1
                found.rejected += program is None
                if program is None:
                    continue
                found.duplicates += program.digest in known
                if program.digest not in known and wanted(program):
                    known.add(program.digest)
                    found.programs.append(program)
                    candidate = candidate_of(request, proposal, program.summary)
                    score = float(derive_rng(self._seed, "score", program.digest).random())
                    found.results.append(Result(candidate=candidate, score=Score(mean=score, se=0.0, n=1, episodes=1)))
        if len(found.programs) < n:
            raise UserError(f"the search finds only {len(found.programs)} such programs; ask for no more --candidates")
        return found

    def _propose(self, request: Request, name: str, attempt: int) -> Any:
        rng = derive_rng(self._seed, "propose", name, attempt, request.id)
        return self._proposer.propose_all([request], lambda _: rng).proposals[0]

    def tell(self, drawn: Drawn) -> None:
        """The search goes on from these."""
        self._state = self._strategy.tell(self._state, drawn.results)
        self._known |= {program.digest for program in drawn.programs}


def populations(s: GenerationSettings, note: Callable[[str], None]) -> dict[str, Drawn]:
    """By name, in the order in which they are compiled."""
    from jaxreward.programs.parts import parts_of
    from jaxreward.training.banks import Banks

    task, found = make_task(s.task), dict[str, Drawn]()
    with Checker() as checker:
        search = Search(task, checker, s.seed)

        def add(name: str, **how: Any) -> Drawn:
            found[name] = search.draw(s.candidates, name, **how)
            note(f"{name}: {s.candidates} of {found[name].proposed} programs, checked in {found[name].check_s:.0f} s")
            return found[name]

        search.tell(first := add("first"))
        bank = Banks().of(first.programs, s.candidates * s.seeds * s.envs)
        if bank is None:
            raise UserError(f"no program of {s.task} is worth a bank with so many --candidates")
        add("known parts", wanted=lambda program: bank.covers(parts_of(program)))
        for generation in range(2, s.generations + 1):
            search.tell(add(f"generation {generation}"))
        add("from scratch", anew=True)
    return found


# ---- compiling, in a process of its own


@dataclass(frozen=True)
class Job:
    """What the process compiles; `populations` are names and files of `carried.write_programs`."""

    task: str
    device: str
    seeds: int
    envs: int
    populations: Sequence[tuple[str, str]]


def compiled(job: Job) -> list[dict[str, Any]]:
    """A row for each population."""
    import jax

    from benchmarks.carried import read_programs
    from jaxreward.programs.parts import parts_of
    from jaxreward.training.banks import BANKS
    from jaxreward.training.chunk import Chunk
    from jaxreward.training.compiled import compilations
    from jaxreward.training.population import Population

    first_to_go()
    task, ppo, device = make_task(job.task), learner(job.task, job.envs), DEVICES[job.device].device()
    rows, bank, width, terms = list[dict[str, Any]](), None, 0, 0
    for name, path in job.populations:
        programs = read_programs(Path(path), task)
        cpu, wall = time.process_time(), time.perf_counter()
        known = sum(bank.covers(parts_of(p)) for p in programs) if bank else 0
        bank = BANKS.of(programs, len(programs) * job.seeds * ppo.envs)
        population = Population(programs, width, terms, bank)
        width, terms = population.width, population.terms  # a search never needs less than before
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
    from benchmarks.carried import write_programs
    from benchmarks.machine import machine

    s.check()
    env = environment(s.device, s.cuda_site, s.libtpu)
    where = {key: value for key, value in machine().items() if key not in ("device", "devices")}
    drawn = populations(s, lambda line: print(line, flush=True))
    with tempfile.TemporaryDirectory() as folder:
        paths = [(name, str(Path(folder) / f"{k}.json.gz")) for k, name in enumerate(drawn)]
        for (_, path), of in zip(paths, drawn.values(), strict=True):
            write_programs(Path(path), of.programs)
        job = Job(s.task, s.device, s.seeds, s.envs, paths)
        found = in_a_process([str(Path(__file__)), "one", json.dumps(asdict(job))], env, s.limit_s)
    settings = {key: value for key, value in asdict(s).items() if key not in ("cuda_site", "libtpu", "out", "limit_s")}
    report: dict[str, Any] = {"benchmark": "generations", **settings, "platform": DEVICES[s.device].platform, **where}
    if "error" in found:
        report["error"] = found["error"]
        print(found["error"])
    else:
        rows = found["rows"]
        for row, of in zip(rows, drawn.values(), strict=True):
            row["of_first"] = round(row["cpu_s"] / rows[0]["cpu_s"], 3)
            row |= {"proposed": of.proposed, "rejected": of.rejected, "duplicates": of.duplicates,
                    "check_s": round(of.check_s, 1)}  # fmt: skip
            print(line(row, s.candidates))
        report["populations"] = rows
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
