"""Our trainer against PPO and SAC of the installed Brax: the same environments, the same hyperparameters.

    python benchmarks/brax_parity.py --out benchmarks/results/brax_parity.json --plot docs/pictures/brax-parity.png
    python benchmarks/brax_parity.py --learner sac --steps 100000 --out benchmarks/results/brax_parity_sac.json

For each task: Brax's `train` once for every seed, then ours with the environment's own observation and reward, all
seeds together; and, for steps a second, one candidate with one seed, and eight different programs with one seed each
against eight runs of Brax. Both sides take the same steps and play as many held-out episodes, with sampled actions;
what Brax plays before it has learned anything is not counted. docs/appendix/robot_results.md has the result.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import jax.numpy as jnp

from benchmarks.command import save, status_of
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError
from jaxreward.programs import Checker, Program
from jaxreward.tasks import Task, make_task
from jaxreward.training import PPO, SAC, Learner

_FEATURES = ("state.last_action", "jnp.sin(state.q)", "jnp.tanh(state.qd)", "state.x.pos[-1]")
_TERMS = ("action**2", "jnp.abs(action)", "(action - state.last_action) ** 2", "jnp.tanh(next_state.qd - state.qd)")
_PROGRAM = """import jax.numpy as jnp


def get_observation(state):
    return jnp.concatenate([state.q, state.qd, {feature}])


def compute_reward(state, action, next_state):
    return next_state.x.pos[0, 0] - state.x.pos[0, 0] - 0.001 * jnp.sum({term})
"""


@dataclass(frozen=True)
class ParitySettings:
    """Train with Brax and with jaxreward, and compare."""

    learner: Literal["ppo", "sac"] = "ppo"
    """What trains on both sides."""
    tasks: tuple[str, ...] = ("inverted-pendulum", "hopper")
    """Brax's environments, by the names of `jaxreward tasks`."""
    seeds: int = 5
    """Training seeds."""
    steps: int = 1_000_000
    """Environment steps of each, rounded up to what both sides can take."""
    candidates: int = 8
    """Different programs that are trained at once, against as many runs of Brax; 0: not measured."""
    evals: int = 10
    """Points of the curves."""
    out: Path | None = None
    """File for the results, written after every task."""
    plot: Path | None = None
    """Draw the curves into this file."""

    def check(self) -> None:
        """Raise a UserError for the first invalid setting."""
        most = len(_FEATURES) * len(_TERMS)
        if min(self.seeds, self.evals, self.steps) < 1 or not 0 <= self.candidates <= most:
            raise UserError(f"--seeds, --evals and --steps are at least 1, --candidates is 0 to {most}")

    def whole(self, ppo: Learner) -> int:
        """The steps: whole updates, as many between any two points of the curves."""
        part = self.evals * ppo.batch
        return -(-self.steps // part) * part


def learner(name: str = "ppo") -> Learner:
    """The hyperparameters of both sides. Brax's SAC takes gradient steps after every step of the environments, and so
    does ours here."""
    if name == "sac":
        return SAC.brax(
            learning_rate=1e-3, discount=0.97, envs=64, unroll=1, updates=8, hidden=(64, 64), value_hidden=(64, 64),
            replay=1_000_000, warmup=2_048,
        )  # fmt: skip
    return PPO.brax(
        learning_rate=1e-3, entropy=1e-2, discount=0.97, clip=0.3, envs=128, unroll=10, unrolls=8, minibatches=8,
        epochs=4, hidden=(64, 64), value_hidden=(128, 128),
    )  # fmt: skip


def brax_run(task: Any, hyper: Learner, steps: int, seed: int, evals: int) -> dict[str, Any]:
    """One run of Brax: steps, held-out returns, its own steps a second after the first part, and seconds in all, less
    those of one evaluation: it has one more than ours."""
    if not hasattr(jax, "device_put_replicated"):  # Brax 0.14 calls it, jax 0.10 has dropped it
        jax.device_put_replicated = lambda tree, devices: jax.tree.map(  # type: ignore[attr-defined]
            lambda x: jnp.stack([x] * len(devices)), tree
        )
    points: list[tuple[int, Mapping[str, Any]]] = []
    brax_train = _brax_sac(hyper) if isinstance(hyper, SAC) else _brax_ppo(hyper)
    begin = time.perf_counter()
    brax_train(
        task.env, num_timesteps=steps, num_envs=hyper.envs, episode_length=task.horizon, seed=seed,
        learning_rate=hyper.learning_rate, discounting=hyper.discount, normalize_observations=True,
        reward_scaling=hyper.reward_scale, num_evals=evals + 1, num_eval_envs=hyper.envs, deterministic_eval=False,
        max_devices_per_host=1, progress_fn=lambda step, metrics: points.append((int(step), metrics)),
    )  # fmt: skip
    wall = time.perf_counter() - begin
    after, warm = points[1:], points[2:] or points[1:]
    return {
        "steps": [step for step, _ in after], "returns": [float(m["eval/episode_reward"]) for _, m in after],
        "steps_per_s": statistics.median(float(m["training/sps"]) for _, m in warm),
        "wall_s": wall - statistics.median(float(m["eval/epoch_eval_time"]) for _, m in warm),
    }  # fmt: skip


def _brax_ppo(ppo: PPO) -> Callable[..., Any]:
    """Brax's PPO with what it alone is told."""
    from brax.training.agents.ppo import networks
    from brax.training.agents.ppo.train import train

    network = partial(
        networks.make_ppo_networks, policy_hidden_layer_sizes=ppo.hidden, value_hidden_layer_sizes=ppo.value_hidden
    )
    return partial(
        train, entropy_cost=ppo.entropy, unroll_length=ppo.unroll,
        batch_size=ppo.envs * ppo.unrolls // ppo.minibatches, num_minibatches=ppo.minibatches,
        num_updates_per_batch=ppo.epochs, clipping_epsilon=ppo.clip, gae_lambda=ppo.gae_lambda,
        max_grad_norm=ppo.max_grad_norm, network_factory=network,
    )  # fmt: skip


def _brax_sac(sac: SAC) -> Callable[..., Any]:
    """Brax's SAC with what it alone is told; its temperature begins at 1 and has a learning rate of 3e-4."""
    from brax.training.agents.sac import networks
    from brax.training.agents.sac.train import train

    network: Any = partial(networks.make_sac_networks, hidden_layer_sizes=sac.hidden)
    return partial(
        train, batch_size=sac.batch_size, tau=sac.tau, min_replay_size=sac.warmup, max_replay_size=sac.replay,
        grad_updates_per_step=sac.updates // sac.unroll, network_factory=network,
    )  # fmt: skip


def different_programs(task: Task, n: int) -> list[Program]:
    """`n` programs of one size that compute different things, for seconds and steps a second alone."""
    pairs = itertools.islice(itertools.product(_FEATURES, _TERMS), n)
    with Checker() as checker:
        return [checker.load(_PROGRAM.format(feature=f, term=t), task) for f, t in pairs]


def our_run(task: Task, programs: list[Program], ppo: Learner, steps: int, seeds: int, evals: int) -> dict[str, Any]:
    """Ours: curves of the first program's seeds, steps a second of training alone, seconds of all programs."""
    from benchmarks.measure import fused, training

    done = fused(task, programs, False, ppo=ppo, seeds=seeds, steps=steps, checkpoints=evals, eval_episodes=ppo.envs)
    result = done.result
    return {
        "steps": result.steps.tolist(), "returns": result.return_curve[0].tolist(),
        "steps_per_s": training(task, programs, ppo, seeds, 10).steps_per_s, "wall_s": result.wall_s,
        "compile_s": result.compile_s, "run_s": result.run_s,
    }  # fmt: skip


def compare(name: str, s: ParitySettings) -> dict[str, Any]:
    """One task: both sides' curves, whether the final returns are within the smaller standard deviation of each other,
    steps a second."""
    from benchmarks.measure import training

    task, ppo = make_task(name), learner(s.learner)
    steps = s.whole(ppo)
    theirs = [brax_run(task, ppo, steps, seed, s.evals) for seed in range(s.seeds)]
    ours = our_run(task, [Program.dense(task)], ppo, steps, s.seeds, s.evals)
    alone = training(task, [Program.dense(task)], ppo, 1, 10)
    mine, other = [r[-1] for r in ours["returns"]], [t["returns"][-1] for t in theirs]
    spread = [statistics.stdev(x) if len(x) > 1 else 0.0 for x in (mine, other)]
    apart = abs(statistics.mean(mine) - statistics.mean(other))
    row: dict[str, Any] = {
        "task": name, "brax": theirs, "jaxreward": ours,
        "final": {"jaxreward": statistics.mean(mine), "brax": statistics.mean(other), "sd_jaxreward": spread[0],
                  "sd_brax": spread[1], "difference": apart, "within_one_sd": apart <= min(spread)},
        "steps_per_s": {"brax": statistics.median(t["steps_per_s"] for t in theirs), "jaxreward": alone.steps_per_s,
                        "jaxreward_all_seeds": ours["steps_per_s"]},
        "wall_s": {"brax": sum(t["wall_s"] for t in theirs), "jaxreward": ours["wall_s"]},
    }  # fmt: skip
    if s.candidates:
        many = our_run(task, different_programs(task, s.candidates), ppo, steps, 1, s.evals)
        each = statistics.mean(t["wall_s"] for t in theirs)
        row["candidates"] = {
            "candidates": s.candidates, "steps_per_s": many["steps_per_s"], "wall_s": many["wall_s"],
            "compile_s": many["compile_s"], "brax_wall_s": s.candidates * each,
            "wall_ratio": s.candidates * each / many["wall_s"],
        }  # fmt: skip
    return row


def draw(path: Path, rows: list[dict[str, Any]]) -> None:
    """Mean return over seeds with one standard deviation, one panel a task."""
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4 * len(rows), 3.3), layout="constrained")
    for axes, row in zip(figure.subplots(1, len(rows), squeeze=False)[0], rows, strict=True):
        sides = {
            "Brax": (row["brax"][0]["steps"], np.array([r["returns"] for r in row["brax"]]), "#d1600a"),
            "jaxreward": (row["jaxreward"]["steps"], np.array(row["jaxreward"]["returns"]), "#2a6fb0"),
        }
        for label, (steps, returns, colour) in sides.items():
            mean, sd = returns.mean(0), returns.std(0, ddof=1) if len(returns) > 1 else 0.0 * returns[0]
            at = np.asarray(steps) / 1e6
            axes.plot(at, mean, color=colour, label=label, linewidth=2)
            axes.fill_between(at, mean - sd, mean + sd, color=colour, alpha=0.15, linewidth=0)
        axes.set(title=row["task"], xlabel="environment steps (millions)", ylabel="return of held-out episodes")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def unfused_flags() -> str:
    """Flags by which XLA on CPU compiles Brax's resets well, which its trainer has in every step; our tasks ask for the
    same by themselves. XLA reads its flags once and dies of an unknown one, so another process asks what it takes."""
    ask = (
        "from jaxreward.devices import supported; from jaxreward.tasks.simulation import UNFUSED; "
        "print(*(f'--{name}={str(value).lower()}' for name, value in supported(UNFUSED, 'cpu').items()))"
    )
    asked = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, timeout=300, check=True)
    return asked.stdout.strip()


def run(s: ParitySettings) -> dict[str, Any]:
    """All tasks; the file is written after each."""
    from benchmarks.machine import machine

    s.check()
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {unfused_flags()}".strip()
    report: dict[str, Any] = {
        "benchmark": "brax_parity",
        "learner": s.learner,
        "seeds": s.seeds,
        **machine(),
        "rows": [],
    }
    for name in s.tasks:
        row = compare(name, s)
        report["rows"].append(row)
        f, v = row["final"], row["steps_per_s"]
        print(
            f"{name}: final return {f['jaxreward']:.1f} (sd {f['sd_jaxreward']:.1f}), Brax {f['brax']:.1f} "
            f"(sd {f['sd_brax']:.1f}); steps/s {v['jaxreward']:,.0f}, Brax {v['brax']:,.0f}", flush=True,
        )  # fmt: skip
        save(report, s.out)
    if s.plot is not None:
        draw(s.plot, report["rows"])
    return report


def main(argv: list[str] | None = None) -> int:
    return status_of("brax_parity", lambda: run(parse(ParitySettings, None, argv, "brax_parity.py")))


if __name__ == "__main__":
    sys.exit(main())
