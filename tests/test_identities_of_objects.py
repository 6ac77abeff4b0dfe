"""What a run records of objects: another simulator is another one, and the same one is the same in every process."""

from __future__ import annotations

import functools
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxreward as jr
from jaxreward.identity import Identity, fingerprint

SIMULATOR = '''
import functools
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import struct

import jaxreward as jr
from jaxreward.records import Measure
from jaxreward.tasks.metrics import Sum

GRAVITY = 9.8
TABLE = jnp.arange(4.0)
STEPS = 0
UNUSED = 1


class State(NamedTuple):
    x: Any
    key: Any


def fall(x):
    return x - GRAVITY * 0.1


def reset(key):
    global STEPS
    STEPS += 1
    return State(jnp.zeros(()), key)


def make_step(wind):
    def step(state, action, push=2.0):
        return State(fall(state.x) + wind + push * TABLE[action], state.key)

    return step


def of_functions(**more):
    return jr.from_functions(
        reset,
        jax.jit(make_step(0.5)),
        jr.Discrete(4),
        20,
        observation=functools.partial(lambda scale, view: view.x[None] * scale, 3.0),
        terminated=lambda state: (
            state.x
            > 7.0
        ),
        score=Sum(lambda state, action, after: after.x * 1.5, Measure(name="x", rate=False)),
        **more,
    )


@struct.dataclass
class Parameters:
    mass: float = 1.0
    table: Any = None


class Network(nn.Module):
    width: int = 3

    def __call__(self, x):
        return nn.Dense(self.width)(x)


class Base(jr.BaseTask):
    horizon = 20
    action_space = jr.Discrete(4)

    def reset(self, key):
        return reset(key)

    def success(self, state):
        return state.x > self.limit


class Docking(Base):
    """Docks."""

    limit = 3.0

    def __init__(self, wind=0.5):
        self.wind = wind
        self.walls = [(1, 2), (3, 4)]
        self.named = {"a": {1, 2, 3}, "b": jnp.ones(2)}
        self.parameters = Parameters(table=jnp.zeros(3))
        self.network = Network(4)
        self._scale = jnp.full(2, 0.25)
        self.itself = self

    @property
    def gain(self):
        return 4.0

    @functools.cached_property
    def matrix(self):
        return jnp.eye(2)

    def step(self, state, action):
        return make_step(self.wind)(state, action)
'''


def identity_of(given: Any, *, private: bool = True) -> str:
    return Identity.of(given, private=private).text


@pytest.fixture
def simulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports the simulator, with a part of its text replaced, as another process would."""
    made: list[Path] = []

    def imported(old: str = "", new: str = "") -> ModuleType:
        assert old in SIMULATOR
        path = tmp_path / f"version_{len(made)}.py"
        made.append(path)
        path.write_text(SIMULATOR.replace(old, new, 1) if old else SIMULATOR)
        spec = importlib.util.spec_from_file_location("own_simulator", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "own_simulator", module)
        spec.loader.exec_module(module)
        return module

    return imported


def identities(module: ModuleType) -> tuple[str, str]:
    return identity_of(module.of_functions()), identity_of(module.Docking())


OF_BOTH = [
    ("GRAVITY = 9.8", "GRAVITY = 9.7"),
    ("TABLE = jnp.arange(4.0)", "TABLE = jnp.arange(1.0, 5.0)"),
    ("GRAVITY * 0.1", "GRAVITY * 0.2"),
    ("push=2.0", "push=3.0"),
    ("jnp.zeros(()), key", "jnp.ones(()), key"),
]
OF_FUNCTIONS = [
    ("make_step(0.5)", "make_step(0.6)"),
    ("scale, view: view.x[None] * scale", "scale, view: view.x[None] + scale"),
    ("* scale, 3.0)", "* scale, 4.0)"),
    ("> 7.0", "> 8.0"),
    ("after.x * 1.5", "after.x * 2.5"),
    ('Measure(name="x"', 'Measure(name="y"'),
]
OF_OBJECT = [
    ("wind=0.5", "wind=0.75"),
    ("(3, 4)", "(3, 5)"),
    ("{1, 2, 3}", "{1, 2}"),
    ("jnp.ones(2)", "jnp.ones(3)"),
    ("Parameters(table=jnp.zeros(3))", "Parameters(2.0, jnp.zeros(3))"),
    ("Parameters(table=jnp.zeros(3))", "Parameters(table=jnp.zeros(4))"),
    ("Network(4)", "Network(5)"),
    ("nn.Dense(self.width)", "nn.Dense(2 * self.width)"),
    ("jnp.full(2, 0.25)", "jnp.full(2, 0.5)"),
    ("state.x > self.limit", "state.x >= self.limit"),
    ("limit = 3.0", "limit = 4.0"),
    ("return 4.0", "return 5.0"),
    ("jnp.eye(2)", "jnp.eye(3)"),
    ('"""Docks."""', '"""Docks a boat."""'),
    ("horizon = 20", "horizon = 30"),
]


def test_every_part_of_a_simulator_counts(simulator):
    functions, own = identities(simulator())
    assert (functions, own) == identities(simulator()), "other objects at other addresses"
    for old, new in OF_BOTH:
        other = identities(simulator(old, new))
        assert functions != other[0] and own != other[1], (old, new)
    for old, new in OF_FUNCTIONS:
        other = identities(simulator(old, new))
        assert functions != other[0] and own == other[1], (old, new)
    for old, new in OF_OBJECT:
        other = identities(simulator(old, new))
        assert functions == other[0] and own != other[1], (old, new)


def test_what_a_simulator_does_not_read_does_not_count(simulator):
    module = simulator()
    before = identities(module)
    for old, new in (
        ("UNUSED = 1", "UNUSED = 2"),
        ("STEPS = 0", "STEPS = 5"),
        ("\n\n\ndef fall", "\n\n# Falls.\n\ndef fall"),
    ):
        assert identities(simulator(old, new)) == before, (old, new)
    task = module.Docking()
    jax.jit(task.step)(task.reset(jax.random.key(0)), 1)
    assert task.matrix.shape == (2, 2) and identity_of(task) == before[1], "it has not changed by being used"


def test_what_differs_is_told_apart_in_words(simulator):
    module = simulator()
    one, other = (identity_of(module.Docking(wind)) for wind in (0.5, 0.75))
    assert one.startswith("own_simulator.Docking(wind=0.5), source ") and "wind=0.75" in other
    assert one.partition(" source ")[2].partition(",")[0] == other.partition(" source ")[2].partition(",")[0]
    assert identity_of(module.of_functions()).startswith(
        "jaxreward.tasks.adapters.functions.FunctionsTask(horizon=20, name='task'"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: x > 1, lambda x: x > 2),
        (functools.partial(max, 1), functools.partial(max, 2)),
        (functools.partial(max, 1), functools.partial(min, 1)),
        ([1, None, "a"], [1, None, "b"]),
        ((np.float32(1), 2), (np.float32(2), 2)),
        (np.ones(2), np.ones(2, np.float32)),
        (np.array([None, 1], object), np.array([None, 2], object)),
        (jax.random.key(0), jax.random.key(1)),
        ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
        (jnp.sin, jnp.cos),
        (np.sin, np.cos),
        (jax.vmap(lambda x: x + 1), jax.vmap(lambda x: x + 2)),
        (jax.jit(lambda x: x + 1), jax.jit(lambda x: x + 2)),
        (functools.cache(lambda x: x + 1), functools.cache(lambda x: x + 2)),
        ("a".upper, "b".upper),
        (Path("a"), Path("b")),
        (int, float),
        (eval("lambda x: x + 1"), eval("lambda x: x + 2")),
        (eval("lambda x: x.sin()"), eval("lambda x: x.cos()")),
    ],
)
def test_values_of_every_kind_are_told_apart(one, other):
    def of(value: Any) -> tuple[str | None, str]:
        found = fingerprint.Fingerprint()
        return found.of(value), found.source

    assert of(one) == of(one) != of(other) and of(one)[0] is not None


def test_a_large_graph_is_looked_at_in_part(monkeypatch: pytest.MonkeyPatch):
    class Link:
        def __init__(self, after: Any) -> None:
            self.after = after

    deep: Any = None
    for _ in range(3_000):
        deep = Link(deep)
    wide = [Link(k) for k in range(100)]
    monkeypatch.setattr(fingerprint, "MOST_PARTS", 50)
    for given in (deep, Link(wide)):
        assert identity_of(given) == identity_of(given)


def test_an_attribute_that_cannot_be_read_is_left_out():
    class Holder:
        def __init__(self, inside: Any) -> None:
            self.inside = inside

    class Broken:
        __slots__ = ("x",)

        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

    import threading

    for given in (threading.Lock(), np.random.default_rng(0), Broken()):
        assert identity_of(Holder(given)) == identity_of(Holder(None)), given


def test_what_a_proposer_keeps_for_itself_does_not_count():
    class Maker:
        def __init__(self, strength: float, calls: int) -> None:
            self.strength, self._calls = strength, calls

    assert identity_of(Maker(1.0, 0), private=False) == identity_of(Maker(1.0, 7), private=False)
    assert identity_of(Maker(1.0, 0), private=False) != identity_of(Maker(2.0, 0), private=False)
    assert identity_of(Maker(1.0, 0)) != identity_of(Maker(1.0, 7))


def test_a_task_in_a_file_has_the_name_of_the_file(tmp_path: Path):
    """Its module has another one in every process."""
    file = tmp_path / "mine.py"
    file.write_text(SIMULATOR.replace("class Base(", "class _Base(").replace("Docking(Base)", "Docking(_Base)"))
    from jaxreward.user_files import imported

    assert identity_of(imported(file).Docking()).startswith("mine.py.Docking(wind=0.5), source ")


def test_an_environment_of_a_library_counts_with_its_parameters():
    pytest.importorskip("gymnax", reason="gymnax is an extra")

    def made(name: str = "CartPole-v1", **options: Any) -> str:
        return identity_of(jr.from_gymnax(name, name="mine", description="mine", horizon=9, **options))

    assert made() == made()
    assert len({made(), made("MountainCar-v0"), made(gravity=5.0), made(success=lambda view: view.env.x > 1.0)}) == 4
