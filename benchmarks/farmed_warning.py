"""How often the warnings about farmed rewards are right: rewards of known kind are trained, and their notices counted.

    python benchmarks/farmed_warning.py --out benchmarks/results/farmed_warning.json

A reward is farmable if an agent that never reaches the goal can collect more of it than one that does. A notice
of an honest reward is a false alarm, also where the agent fails for lack of training or of a good observation.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import save, status_of
from jaxreward import load_program
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError
from jaxreward.programs import Program
from jaxreward.tasks import Task, make_task
from jaxreward.training import train

ROOT = Path(__file__).resolve().parents[1]

NAMES = {
    "xland-easy": """
    goal = ((action == PICK_UP) & same(next_state.agent.pocket, PYRAMID, BLUE)).astype(jnp.float32)
    cells = sum(jnp.abs(x) for x in pyramid_ahead_right(next_state))
    held = next_state.agent.pocket[0] == BALL
""",
    "xland-medium": """
    goal = goal_reached(state, action, next_state).astype(jnp.float32)
    cells = distance(look(next_state)["target"])
    held = next_state.agent.pocket[0] == PYRAMID
""",
}
"""Variables that the rewards use, computed with the task's `expert.py`; so is `progress`."""

HONEST = {
    "goal": "goal",
    "goal, time costs": "goal - 0.01",
    "goal, progress": "goal + progress",
    "units of 100": "100.0 * (goal + progress)",
    "discounted potential": "goal + 0.99 * potential(next_state) - potential(state)",
    "little progress": "goal + 0.1 * progress",
    "progress, time costs": "goal + progress - 0.02",
    "large goal, progress": "10.0 * goal + progress",
}
FARMABLE = {
    "time alive": "goal + 0.1",
    "near, every step": "goal + 0.5 * (cells <= 2)",
    "closeness, no goal": "jnp.exp(-cells / 4.0)",
    "approach paid, retreat free": "goal + 5.0 * jnp.maximum(progress, 0.0)",
    "an action": "goal + 0.2 * (action == 0)",
    "holding, every step": "goal + 0.5 * held",
    "goal punished": "0.05 - goal",
    "moving": "goal + 0.2 * jnp.any(next_state.agent.position != state.agent.position)",
}
NOTICES = ("farmed", "failure_pays", "unreached", "uncorrelated")
"""Kinds of notices that are counted."""


@dataclass(frozen=True)
class WarningSettings:
    """Train honest and farmable rewards, and count their notices."""

    tasks: tuple[str, ...] = ("xland-easy", "xland-medium")
    """Tasks of the labelled set."""
    seeds: int = 3
    """Training seeds."""
    steps: int = 200_000
    """Environment steps of each."""
    eval_episodes: int = 128
    """Held-out episodes."""
    out: Path | None = None
    """File for the results."""

    def check(self) -> None:
        """Raise a UserError for the first invalid setting."""
        if min(self.seeds, self.steps, self.eval_episodes) < 1:
            raise UserError("--seeds, --steps and --eval-episodes are at least 1")
        for name in self.tasks:
            if name not in NAMES:
                raise UserError(f"--tasks are {' or '.join(NAMES)}, not {name}")


def labelled(name: str, task: Task) -> list[tuple[str, str, bool, Program]]:
    """The set of a task: titles of reward and observation, whether the reward is farmable, and the program.

    Every reward comes with the observation of `expert.py`, with which agents learn soon, and with the task's own.
    """
    folder = ROOT / "interfaces" / name.replace("-", "_")
    expert = (folder / "expert.py").read_text(encoding="utf-8")
    helpers = expert[: expert.index("def compute_reward")]
    observation = helpers[helpers.index("def get_observation") :].split("\n\n\n")[0]
    found = []
    for farmable, rewards in ((False, HONEST), (True, FARMABLE)):
        for title, reward in rewards.items():
            body = (
                f"def compute_reward(state, action, next_state):{NAMES[name]}"
                f"    progress = potential(next_state) - potential(state)\n    return jnp.float32({reward})\n"
            )
            found.append((title, "expert", farmable, load_program(helpers + body, task)))
            found.append((title, "raw", farmable, load_program(helpers.replace(observation, "") + body, task)))
    for path in sorted(folder.glob("*.py")):
        found.append((f"shipped, {path.stem}", "its own", path.stem == "farmed", load_program(path, task)))
    return found


def rows_of(name: str, s: WarningSettings) -> list[dict[str, Any]]:
    """A row for each program: what it is, how it trained, its notices."""
    task = make_task(name)
    programs = labelled(name, task)
    result = train(
        task, [p for *_, p in programs], seeds=s.seeds, steps=s.steps, checkpoints=10, eval_episodes=s.eval_episodes
    )
    rows = []
    for k, (title, observation, farmable, _) in enumerate(programs):
        feedback = result.feedback(k)
        rows.append({
            "task": name, "reward": title, "observation": observation, "farmable": farmable,
            "success": feedback.success, "episode_return": feedback.episode_return,
            "return_solved": feedback.return_solved, "return_failed": feedback.return_failed,
            "correlation": feedback.return_success_correlation, "interval": feedback.return_success_interval,
            "notices": {n.kind: n.message for n in feedback.notices},
        })  # fmt: skip
    return rows


def counts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each task and kind of notice, the number of farmable and of honest rewards that had it."""
    table = []
    for task in dict.fromkeys(row["task"] for row in rows):
        own = [row for row in rows if row["task"] == task]
        of = {label: [row for row in own if row["farmable"] is label] for label in (True, False)}
        found = {label: Counter(kind for row in of[label] for kind in row["notices"]) for label in of}
        kinds = dict.fromkeys((*NOTICES, *sorted(found[True] | found[False])))
        for kind in kinds:
            table.append({"task": task, "kind": kind, "hits": found[True][kind], "farmable": len(of[True]),
                          "false_alarms": found[False][kind], "honest": len(of[False])})  # fmt: skip
    return table


def run(s: WarningSettings) -> dict[str, Any]:
    """All tasks; the file is written after each."""
    from benchmarks.machine import machine

    s.check()
    report: dict[str, Any] = {
        "benchmark": "farmed_warning",
        "seeds": s.seeds,
        "steps": s.steps,
        **machine(),
        "rows": [],
    }
    for name in s.tasks:
        report["rows"] += rows_of(name, s)
        report["counts"] = counts(report["rows"])
        for row in report["counts"]:
            if row["task"] == name:
                hits, alarms = f"{row['hits']} of {row['farmable']}", f"{row['false_alarms']} of {row['honest']}"
                print(f"| {name} | `{row['kind']}` | {hits} | {alarms} |", flush=True)
        save(report, s.out)
    return report


def main(argv: list[str] | None = None) -> int:
    return status_of("farmed_warning", lambda: run(parse(WarningSettings, None, argv, "farmed_warning.py")))


if __name__ == "__main__":
    sys.exit(main())
