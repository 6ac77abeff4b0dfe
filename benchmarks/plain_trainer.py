"""Our trainer against a plain one of the shape that LIMEN published: recurrent PPO on xland-easy, the same network.

    python benchmarks/plain_trainer.py --out benchmarks/results/plain_trainer.json

The plain trainer is what a person writes for one program: xminigrid's own step and resets, 8,192 environments x 16
steps, one epoch of 16 minibatches, 80 held-out episodes after every update, the whole of it in one jit. Ours is `train`
with `paper("xland-easy")` and 80 held-out episodes at as many checkpoints. Both take turns, a seed at a time, so that
what else the machine does falls on both; compiling is timed apart from running. docs/appendix/benchmarks.md has the
result.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
import xminigrid
from flax.training.train_state import TrainState

from benchmarks.command import save, status_of
from benchmarks.machine import machine
from benchmarks.measure import forget
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError
from jaxreward.programs import Program, load_program
from jaxreward.tasks import make_task
from jaxreward.tasks.xland import AgentView, XLand, XLandView
from jaxreward.training import PPO, paper, train


@dataclass(frozen=True)
class PlainSettings:
    """Train recurrent agents on xland-easy with a plain trainer and with ours, and compare."""

    interface: Path = Path("interfaces/xland_easy/expert.py")
    """The program, the same for both."""
    seeds: int = 1
    """Training seeds, one after the other on both sides."""
    steps: int = 393_216
    """Environment steps of each, rounded up to whole updates of 131,072."""
    envs: int = 8192
    """Environments."""
    episodes: int = 80
    """Held-out episodes after every update."""
    out: Path | None = None
    """File for the results, written after every seed."""

    def check(self) -> None:
        """Raise a UserError for the first setting that cannot be."""
        if min(self.seeds, self.steps, self.envs, self.episodes) < 1:
            raise UserError("--seeds, --steps, --envs and --episodes are at least 1")
        if not self.interface.is_file():
            raise UserError(f"there is no interface file {self.interface}")
        self.learner.check()

    @property
    def learner(self) -> PPO:
        """The hyperparameters of both sides."""
        return paper("xland-easy").replace(envs=self.envs)

    @property
    def updates(self) -> int:
        return -(-self.steps // self.learner.batch)


# ---- the plain trainer


class Recurrent(nn.Module):
    """LIMEN's network (appendix A.2.1): an encoder, the action and the reward before, a GRU, two heads."""

    ppo: PPO
    actions: int

    @nn.compact
    def __call__(self, obs: Any, action: Any, reward: Any, hidden: Any) -> tuple[Any, Any, Any]:
        """Sequences obs (T, E, d), previous actions and rewards (T, E), and the hidden state (E, H) before them; to
        logits (T, E, n), values (T, E) and the hidden state after them."""
        ortho, H = nn.initializers.orthogonal, self.ppo.gru
        x = obs
        for width in self.ppo.hidden:
            x = nn.relu(nn.Dense(width, kernel_init=ortho(2**0.5))(x))
        before = nn.Embed(self.actions, self.ppo.action_embedding)(action)
        x = jnp.concatenate([x, before, reward[..., None]], -1)
        wi = self.param("wi", ortho(1.0), (x.shape[-1], 3 * H))
        wh = self.param("wh", ortho(1.0), (H, 3 * H))
        bi = self.param("bi", nn.initializers.zeros, (3 * H,))
        bn = self.param("bn", nn.initializers.zeros, (H,))

        def step(h: Any, x: Any) -> tuple[Any, Any]:
            read, kept = jnp.split(x @ wi + bi, 3, -1), jnp.split(h @ wh, 3, -1)
            r, z = nn.sigmoid(read[0] + kept[0]), nn.sigmoid(read[1] + kept[1])
            n = nn.tanh(read[2] + r * (kept[2] + bn))
            h = (1 - z) * n + z * h
            return h, h

        hidden, x = jax.lax.scan(step, hidden, x)
        policy, value = x, x
        for width in self.ppo.heads:
            policy = nn.tanh(nn.Dense(width, kernel_init=ortho(2.0))(policy))
            value = nn.tanh(nn.Dense(width, kernel_init=ortho(2.0))(value))
        logits = nn.Dense(self.actions, kernel_init=ortho(0.01))(policy)
        return logits, nn.Dense(1, kernel_init=ortho(1.0))(value)[..., 0], hidden


class Step(NamedTuple):
    """What is kept of a step, (T, E, ...)."""

    obs: Any
    last_action: Any
    last_reward: Any
    action: Any
    logp: Any
    value: Any
    reward: Any
    done: Any


class Carry(NamedTuple):
    """Running environments: xminigrid's time steps, and what the agents remember."""

    timestep: Any
    action: Any
    reward: Any
    hidden: Any


def view(state: Any) -> XLandView:
    """What programs see of xminigrid's state."""
    agent = AgentView(state.agent.position, state.agent.direction, state.agent.pocket)
    return XLandView(state.grid, agent, state.step_num)


def plain_training(task: XLand, program: Program, ppo: PPO, updates: int, episodes: int) -> Any:
    """A function of a seed's key to the success rates after every update (updates,)."""
    env, params = xminigrid.make(task.environment, ruleset=task.ruleset, max_steps=task.horizon)
    network = Recurrent(ppo, env.num_actions(params))
    apply: Any = network.apply
    observe = jax.vmap(lambda timestep: program.observe(view(timestep.state)))

    def begin(key: Any, envs: int) -> Carry:
        timestep = jax.vmap(env.reset, (None, 0))(params, jax.random.split(key, envs))
        return Carry(timestep, jnp.zeros(envs, jnp.int32), jnp.zeros(envs), jnp.zeros((envs, ppo.gru)))

    def move(timestep: Any, action: Any) -> tuple[Any, Any, Any, Any]:
        """One environment: the time step that follows, reset where the episode ended, reward, end and success."""
        after = env.step(params, timestep, action)
        reward, _ = program.reward(view(timestep.state), action, view(after.state))
        fresh = lambda: env.reset(params, jax.random.split(after.state.key)[0])  # noqa: E731
        following = jax.lax.cond(after.last(), fresh, lambda: after)
        return following, reward, after.last(), after.discount == 0

    def act(weights: Any, carry: Carry, key: Any) -> tuple[Carry, Step, Any]:
        obs = observe(carry.timestep)
        logits, value, hidden = apply(weights, obs[None], carry.action[None], carry.reward[None], carry.hidden)
        action = jax.random.categorical(key, logits[0])
        logp = jnp.take_along_axis(nn.log_softmax(logits[0]), action[:, None], -1)[:, 0]
        timestep, reward, done, won = jax.vmap(move)(carry.timestep, action)
        kept = Step(obs, carry.action, carry.reward, action, logp, value[0], reward, done)
        return Carry(timestep, action, reward, hidden), kept, won

    def loss(weights: Any, batch: tuple[Step, Any, Any, Any]) -> Any:
        steps, hidden, advantage, target = batch
        logits, value, _ = apply(weights, steps.obs, steps.last_action, steps.last_reward, hidden)
        logp = nn.log_softmax(logits)
        ratio = jnp.exp(jnp.take_along_axis(logp, steps.action[..., None], -1)[..., 0] - steps.logp)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        policy_loss = -jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - ppo.clip, 1 + ppo.clip) * advantage).mean()
        near = steps.value + jnp.clip(value - steps.value, -ppo.value_clip, ppo.value_clip)
        value_loss = 0.5 * jnp.maximum((value - target) ** 2, (near - target) ** 2).mean()
        entropy = -(jnp.exp(logp) * logp).sum(-1).mean()
        return policy_loss + ppo.value_coefficient * value_loss - ppo.entropy * entropy

    def minibatch(state: TrainState, batch: Any) -> tuple[TrainState, None]:
        return state.apply_gradients(grads=jax.grad(loss)(state.params, batch)), None

    def evaluate(weights: Any, key: Any) -> Any:
        def step(carry: tuple[Carry, Any, Any], key: Any) -> tuple[Any, None]:
            running, over, solved = carry
            running, kept, won = act(weights, running, key)
            return (running, over | kept.done, solved | (won & ~over)), None

        none = jnp.zeros(episodes, bool)
        start, keys = begin(key, episodes), jax.random.split(jax.random.fold_in(key, 1), task.horizon)
        (_, _, solved), _ = jax.lax.scan(step, (start, none, none), keys)
        return solved.mean()

    def update(carry: tuple[TrainState, Carry], key: Any) -> tuple[tuple[TrainState, Carry], Any]:
        (state, running), (acting, order, judging) = carry, jax.random.split(key, 3)
        before, weights = running.hidden, state.params

        def step(running: Carry, key: Any) -> tuple[Carry, Step]:
            running, kept, _ = act(weights, running, key)
            return running, kept

        running, steps = jax.lax.scan(step, running, jax.random.split(acting, ppo.unroll))
        last = (observe(running.timestep)[None], running.action[None], running.reward[None], running.hidden)
        final = apply(weights, *last)[1][0]

        def backward(after: tuple[Any, Any], step: Step) -> tuple[tuple[Any, Any], Any]:
            advantage, value = after
            goes_on = ppo.discount * (1 - step.done)
            advantage = step.reward + goes_on * (value + ppo.gae_lambda * advantage) - step.value
            return (advantage, step.value), advantage

        _, advantage = jax.lax.scan(backward, (jnp.zeros_like(final), final), steps, reverse=True)
        rows = jax.random.permutation(order, ppo.envs).reshape(ppo.minibatches, -1)
        parts = jax.tree.map(
            lambda x: jnp.moveaxis(x[:, rows], 1, 0), (steps, before[None], advantage, advantage + steps.value)
        )
        parts = (parts[0], parts[1][:, 0], *parts[2:])
        state, _ = jax.lax.scan(minibatch, state, parts)
        return (state, running), evaluate(state.params, judging)

    def training(key: Any) -> Any:
        start, weights, rest = jax.random.split(key, 3)
        running = begin(start, ppo.envs)
        first = (observe(running.timestep)[None], running.action[None], running.reward[None], running.hidden)
        rate = optax.linear_schedule(ppo.learning_rate, 0.0, updates * ppo.minibatches)
        adam = optax.chain(optax.clip_by_global_norm(ppo.max_grad_norm), optax.adam(rate, eps=ppo.adam_epsilon))
        state = TrainState.create(apply_fn=network.apply, params=network.init(weights, *first), tx=adam)
        return jax.lax.scan(update, (state, running), jax.random.split(rest, updates))[1]

    return training


# ---- side by side


def plain_run(task: XLand, program: Program, s: PlainSettings, seed: int) -> dict[str, Any]:
    """The plain trainer from a cold start."""
    forget()
    cpu = time.process_time()
    begin = time.perf_counter()
    training = plain_training(task, program, s.learner, s.updates, s.episodes)
    compiled = jax.jit(training).lower(jax.random.key(seed)).compile()
    middle = time.perf_counter()
    success = [float(x) for x in compiled(jax.random.key(seed))]
    end = time.perf_counter()
    return {"success": success, "compile_s": middle - begin, "run_s": end - middle, "wall_s": end - begin,
            "cpu_s": time.process_time() - cpu}  # fmt: skip


def our_run(task: XLand, program: Program, s: PlainSettings, seed: int) -> dict[str, Any]:
    """Ours from a cold start."""
    forget()
    cpu = time.process_time()
    found = train(
        task, [program], s.learner, seeds=[seed], steps=s.steps, checkpoints=s.updates, eval_episodes=s.episodes
    )
    return {
        "success": found.success_curve[0, 0].tolist(), "compile_s": found.compile_s, "run_s": found.run_s,
        "wall_s": found.wall_s, "cpu_s": time.process_time() - cpu,
    }  # fmt: skip


def peak_flops(size: int = 4096, repeats: int = 3) -> float:
    """Floating-point operations a second of a large float32 product, the best of a few."""
    square = jnp.ones((size, size), jnp.float32)
    product = jax.jit(lambda x: x @ x)
    took = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        jax.block_until_ready(product(square))
        took.append(time.perf_counter() - begin)
    return 2 * size**3 / min(took[1:])


def flops_of(program: Program, s: PlainSettings, actions: int) -> float:
    """Floating-point operations in the products of a training of one seed, as they must be: one forward pass to act,
    one to learn with a backward pass of twice as many, one to play the held-out episodes."""
    ppo = s.learner
    sizes = [(program.observation_size, ppo.hidden[0]), *pairwise(ppo.hidden)]
    sizes += [(ppo.hidden[-1] + ppo.action_embedding + 1 + ppo.gru, 3 * ppo.gru)]
    for outputs in (actions, 1):
        widths = (ppo.gru, *ppo.heads, outputs)
        sizes += pairwise(widths)
    forward = 2.0 * sum(a * b for a, b in sizes)
    return forward * s.updates * (4 * ppo.batch + s.episodes * 80)


def run(s: PlainSettings) -> dict[str, Any]:
    """Every seed on both sides in turn; the file is written after each."""
    s.check()
    task = make_task("xland-easy")
    assert isinstance(task, XLand)
    program = load_program(s.interface, task)
    report: dict[str, Any] = {
        "benchmark": "plain_trainer", **machine(), "interface": str(s.interface), "steps": s.updates * s.learner.batch,
        "envs": s.envs, "episodes": s.episodes, "flops": flops_of(program, s, task.action_space.n), "rows": [],
    }  # fmt: skip
    for seed in range(s.seeds):
        row: dict[str, Any] = {"seed": seed, "peak_flops": peak_flops()}
        for name, side in (("plain", plain_run), ("jaxreward", our_run)):
            row[name] = side(task, program, s, seed)
            row[name]["share_of_peak"] = report["flops"] / row[name]["run_s"] / row["peak_flops"]
            print(
                f"seed {seed}, {name}: {row[name]['wall_s']:.1f} s, of these compiling {row[name]['compile_s']:.1f}; "
                f"processor time {row[name]['cpu_s']:.1f} s; "
                f"products at {row[name]['share_of_peak']:.0%} of their peak; success "
                + " ".join(f"{x:.2f}" for x in row[name]["success"]),
                flush=True,
            )
        report["rows"].append(row)
        for part in ("wall_s", "compile_s", "run_s", "cpu_s"):
            report[f"{part}_ratio"] = median(r["plain"][part] / r["jaxreward"][part] for r in report["rows"])
        save(report, s.out)
    print(f"plain / jaxreward: wall {report['wall_s_ratio']:.2f}, running alone {report['run_s_ratio']:.2f}, "
          f"processor time {report['cpu_s_ratio']:.2f}")  # fmt: skip
    return report


def main(argv: list[str] | None = None) -> int:
    return status_of("plain_trainer", lambda: run(parse(PlainSettings, None, argv, "plain_trainer.py")))


if __name__ == "__main__":
    sys.exit(main())
