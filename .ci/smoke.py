"""What must work with an installed package and any supported JAX; see `smoke` in this folder."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxreward as jr
from jaxreward.training import Execution

COLLECTORS = {
    "fused": Execution(collector="fused", compile="full"),
    "fused, fast": Execution(collector="fused", compile="fast"),
    "stepwise": Execution(collector="stepwise"),
}


def command(*words: str) -> None:
    """Run a command of jaxreward to its end."""
    subprocess.run([str(Path(sys.executable).with_name("jaxreward")), *words], check=True, timeout=300)


def checked(interfaces: Path) -> None:
    files = [str(p) for p in sorted((interfaces / "xland_easy").glob("*.py"))]
    command("check", "--task", "xland-easy", "--interfaces", *files)
    task = jr.make_task("xland-easy")
    source = "def compute_reward(state, action, next_state):\n    return open('x')\n"
    verdict = jr.check_program(source, task)
    assert verdict.failure is not None and verdict.failure.stage == "guard", verdict


def trained(name: str, interfaces: Path, ppo: jr.PPO, steps: int) -> None:
    """By every collector, with one result."""
    task = jr.make_task(name)
    programs = [jr.load_program(p, task) for p in sorted(interfaces.glob("*.py"))[:2]]
    scores = dict[str, Any]()
    for collector, execution in COLLECTORS.items():
        begin = time.perf_counter()
        result = jr.train(
            task, programs, ppo, seeds=2, steps=steps, checkpoints=2, eval_episodes=8, execution=execution
        )
        scores[collector] = np.asarray(result.success)
        print(f"smoke: {name}, {collector}: {time.perf_counter() - begin:.0f} s", flush=True)
        assert scores[collector].shape == (len(programs), 2) and np.isfinite(scores[collector]).all(), scores
    for collector in list(COLLECTORS)[1:]:
        np.testing.assert_allclose(scores[collector], scores["fused"], rtol=0.05, atol=0.15, err_msg=collector)


def exported(interfaces: Path) -> None:
    """A module for Gymnasium that is imported and stepped."""
    for name in ("xland_easy", "hopper"):
        out = Path(f"{name}_env.py").absolute()
        command("export", str(interfaces / name / "expert.py"), "--to", "gymnasium", "--out", str(out))
        spec = importlib.util.spec_from_file_location(out.stem, out)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        env = module.Env()
        seen, _ = env.reset(seed=0)
        seen, paid, *_ = env.step(env.action_space.sample())
        assert np.isfinite(seen).all() and np.isfinite(paid), (name, seen, paid)


def main() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # of other people's packages
    interfaces = Path(sys.argv[1])
    print(f"smoke: jax {jax.__version__}, Python {sys.version.split()[0]}", flush=True)
    checked(interfaces)
    grid = jr.PPO(envs=8, unroll=8, minibatches=2, hidden=(8,))
    trained("xland-easy", interfaces / "xland_easy", grid, 4 * grid.batch)
    robot = jr.PPO(envs=8, unroll=8, minibatches=2, hidden=(8,), epochs=1)
    trained("hopper", interfaces / "hopper", robot, 2 * robot.batch)
    exported(interfaces)
    print("smoke: passed")


if __name__ == "__main__":
    main()
