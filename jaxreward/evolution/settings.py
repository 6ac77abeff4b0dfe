"""The settings of a search: the options of `jaxreward evolve` with their defaults."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from jaxreward.config import Arg, label_of
from jaxreward.errors import UserError
from jaxreward.evolution.search_options import SearchOptions
from jaxreward.evolution.settings_check import check_settings
from jaxreward.records import Evolve
from jaxreward.search.option_text import read_options, write_options
from jaxreward.search.registry import make_strategy, strategy_class
from jaxreward.tasks import Task, make_task_of
from jaxreward.tracking import SinkName
from jaxreward.training.hyperparameters import PPO
from jaxreward.training.rungs import Rung

Judge = Literal["files", "terminal"]
TEXTS = "texts"
"""What the settings of a search on text have in place of the name of a task; see `text_search`."""


@dataclass(frozen=True)
class EvolveSettings(SearchOptions):
    """Search for an interface: programs are proposed, trained side by side, and improved on."""

    task: str = "xland-easy"
    """What to solve (`jaxreward tasks`). Also gymnax/CartPole-v1 and the like, or a Python file, which is executed."""
    strategy: str = "limen"
    """How to search (`jaxreward strategies`). One of limen, rf-agent, revolve, forge, eureka, grace, best-of-n. Also a
    Python file, which is executed. With --objective demonstrations the default is grace."""
    option: Annotated[tuple[str, ...], Arg(keyed=True)] = ()
    """Options of the strategy. Each is KEY=VALUE; `jaxreward strategies NAME` lists them."""
    proposer: str = "genetic"
    """Who proposes: genetic, llm, manual, replay. genetic needs no network; llm takes --model; manual is a
    person, through files; replay takes --recording. Also a Python file, which is executed."""
    recording: Path | None = None
    """With --proposer replay: the run whose programs are proposed again. Its folder, or its events.jsonl."""
    evolve: Evolve | None = None
    """What may change; the other half is the task's own. By default what the strategy was made for."""
    judge: Judge = "files"
    """How people compare agents, where a strategy asks them. revolve does with fitness=preference: through files in
    the run's folder, or on the terminal."""
    candidates: Annotated[int, Arg(least=1)] = 16
    """Candidates to train."""
    steps: Annotated[int, Arg(least=1)] = 200_000
    """Environment steps of each seed."""
    restart: bool = False
    """Train the short rung apart, what passes from scratch. It has one seed then: the paper's protocol."""
    halving: Annotated[int, Arg(least=0)] = 0
    """How often half of a generation stops; 0 for never. Successive halving: at half of --steps, at half of that and
    so on, the better half goes on."""
    prune: bool = False
    """Stop candidates that cannot win any more. Their learning curves decide, at 1/2, 3/4 and 7/8 of --steps."""
    contender_seeds: Annotated[int, Arg(least=0)] = 0
    """Seeds of candidates that may be the best; 0: as others. 95 % intervals decide; the best so far is among them."""
    baselines: tuple[str, ...] = ("sparse",)
    """To compare with: sparse, dense, best-of-n. They get the same budget; sparse is the task's own interface, dense
    has a person's reward, where there is one, best-of-n is a second search."""
    seed: Annotated[int, Arg(least=0)] = 0
    """Seed of the search. Training seeds are 0 .. seeds-1 for every candidate."""
    max_env_steps: Annotated[int, Arg(least=0)] = 0
    """Environment steps in training; 0 for no limit."""
    max_device_s: Annotated[float, Arg(least=0)] = 0.0
    """Compiling and training; 0 for no limit. All devices count together, of which a CPU has one a core."""
    ppo: PPO = field(default_factory=PPO)
    """The learner."""
    out: Path = Path("runs")
    """Folder of runs."""
    name: str = ""
    """Name of the run. By default made of task, strategy and seed, and numbered where it exists."""
    resume: bool = False
    """Go on with the run of this name, if it exists. It keeps its own settings but for larger budgets."""
    profile: bool = False
    """Write down where the time went. `profile/account.md` in the run's folder has every generation; a trace of XLA's
    profiler is next to it."""
    track: tuple[SinkName, ...] = ()
    """Show the run in tensorboard, wandb or both as well. Each is an extra to install; wandb is Weights & Biases."""

    command: Annotated[str, Arg(hidden=True)] = ""
    """What the user typed, for the log and the provenance of what is found."""

    @property
    def run_name(self) -> str:
        named = f"{label_of(self.task)}-{label_of(self.strategy)}-{self.seed}"
        return self.name or re.sub(r"[^A-Za-z0-9._-]", "-", named)

    def make_task(self) -> Task:
        """The task with its options.

        Raises:
            UserError: there is no such task, or none at all: the run is a search on text.
        """
        require_task(self.task)
        return make_task_of(self.task, self.task_arg)

    @property
    def attempts(self) -> int:
        return self.max_attempts or 4 * self.candidates

    @property
    def evolves(self) -> Evolve:
        """What may change: what was asked for, or what the strategy was made for."""
        return self.evolve or strategy_class(self.strategy).natural

    @property
    def asks_people(self) -> bool:
        """Whether the strategy has people compare agents."""
        return make_strategy(self.strategy, **self.strategy_options()).asks_people

    def check(self) -> None:
        """Raise a `UserError` for the first invalid setting."""
        check_settings(self)

    def proposer_options(self) -> dict[str, Any]:
        if self.proposer in ("llm", "manual"):
            return {"settings": self.llm}
        if self.proposer == "genetic":
            blocks = {} if self.blocks == "auto" else {"blocks": self.blocks == "on"}
            return blocks | ({"surrogate": self.draws} if self.draws else {})
        return {"recording": self.recording} if self.recording else {}

    @property
    def draws(self) -> int:
        """Programs drawn for each that the genetic proposer proposes, for a model of the scores to choose from; 0 where
        there is none. By default no more than a thousand or so a generation, each of which takes milliseconds."""
        if self.surrogate is not None:
            return self.surrogate
        learns = self.proposer == "genetic" and self.objective == "training" and strategy_class(self.strategy).learns
        return min(32, max(4, 1024 // self.generation)) if learns else 0

    @property
    def threshold(self) -> float:
        """What the short rung asks for."""
        return 0.05 if self.filter_threshold is None else self.filter_threshold

    def rungs(self, incumbent: float | None = None, untrained: float | None = None) -> list[Rung]:
        """The cuts of every training of the search; `incumbent` is the merit that `prune` has to beat, `untrained` the
        success above which it tells the better half."""
        rungs = [Rung(self.filter_steps, self.threshold)] if self.filter_steps and not self.restart else []
        rungs += [Rung(self.steps >> k, keep=0.5, untrained=untrained) for k in range(self.halving, 0, -1)]
        if self.prune:
            rungs += [Rung(self.steps * k // 8, prune=True, incumbent=incumbent) for k in (4, 6, 7)]
        return rungs

    @property
    def tuning_steps(self) -> int:
        """Environment steps of each seed by which a weight setting is judged."""
        return self.tune_steps or -(-self.steps // 4)

    def strategy_options(self) -> dict[str, Any]:
        """The arguments of `make_strategy`; UserError for options that the strategy does not have."""
        shared: dict[str, Any] = {"evolve": self.evolves, "budget": self.candidates}
        if self.bandit:
            shared |= {"bandit": True, "models": tuple(self.llm.weights())}
        if self.ablations:
            shared |= {"ablations": self.ablations}
        if self.confirm_seeds:
            shared |= {"confirm": True}
        return shared | read_options(self.strategy, self.option)

    def as_config(self) -> dict[str, Any]:
        """TOML-ready values of everything that a run depends on, with the defaults of its strategy."""
        skip = {"out", "name", "resume", "profile", "track", "dry_run", "json", "command"}
        fields = sorted(dataclasses.fields(self), key=lambda f: f.name not in type(self).__annotations__)
        values = {f.name: getattr(self, f.name) for f in fields if f.name not in skip}
        spelt_out = write_options(self.strategy, read_options(self.strategy, self.option))
        return plain({**values, "option": spelt_out, "evolve": self.evolves, "filter_threshold": self.threshold,
                      "surrogate": self.draws})  # fmt: skip


def require_task(name: str) -> None:
    """Raise a `UserError` where settings are of a search on text, which has no task."""
    if name == TEXTS:
        raise UserError(
            "this is a search for a reward of texts, with no task to train on: jaxreward.evolve_texts goes on with it "
            "from Python, and best_interface.py has what it found"
        )


def plain(value: Any) -> Any:
    """`value` as TOML and JSON write it: settings as tables, without those that are None, and paths as text."""
    if dataclasses.is_dataclass(value):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return str(value) if isinstance(value, Path) else value
