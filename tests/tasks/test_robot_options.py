"""Options of the robots' tasks, what their words and vocabularies make of them, and ordinary models of a user's own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import mujoco as compiled
import numpy as np
import pytest

from jaxreward.errors import FileProblem, InvalidSetting, UnknownName, UnusableFile
from jaxreward.tasks import document_state, make_task, make_task_of, options_of, rendering
from jaxreward.tasks.brax.environment import Motion, sound
from jaxreward.tasks.metrics import Reached
from jaxreward.tasks.registry import INSTRUCTED
from jaxreward.tasks.robots.mujoco_task import MuJoCoTask
from jaxreward.tasks.robots.physics import InvalidModel
from jaxreward.views import view_shapes
from tests.compilation import jit

mujoco: Any = compiled  # its functions are known to no type checker
ROBOTS = (
    "ball-roll",
    "cube-place",
    "cube-stack",
    "door-open",
    "go1-push-recovery",
    "package-push",
    "panda-cabinet",
    "panda-push",
    "panda-tracking",
    "peg-insert",
    "quadcopter-hover",
    "quadruped-velocity",
)


# ---- options


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("go1-push-recovery", {"push_interval": 40.5}, "push_interval must be a whole number, not 40.5"),
        ("go1-push-recovery", {"push_force_scale": "2"},
         "push_force_scale must be a number that is not negative, not '2'"),
        ("panda-tracking", {"horizon": 10.5}, "horizon must be a whole number, not 10.5"),
        ("quadcopter-hover", {"horizon": True}, "horizon must be a whole number, not True"),
        ("hopper", {"horizon": "10"}, "horizon must be a whole number, not '10'"),
        ("ant-patrol-return", {"checkpoint": "3"}, "checkpoint must be a number that is not negative, not '3'"),
        ("xland-easy", {"horizon": "10"}, "the horizon of 'xland-easy' must be a whole number, not '10'"),
        ("xland-easy", {"horizon": 0}, "the horizon of 'xland-easy' must be at least 1 step, not 0"),
        ("xland-easy", {"horizon": 10**11},
         "the horizon of 'xland-easy' must be at most 1,000,000 steps, not 100000000000"),
        ("panda-tracking", {"radius_scale": 3}, "radius_scale must be at most 2, not 3"),
        ("panda-tracking", {"speed_scale": 50.0}, "speed_scale must be at most 5, not 50.0"),
        ("quadruped-velocity", {"speed_scale": 1e200}, "speed_scale must be at most 5, not 1e+200"),
        ("quadruped-velocity", {"speed_scale": 1e-300}, "speed_scale must be at least 0.1, not 1e-300"),
        ("go1-push-recovery", {"push_force_scale": 1e30}, "push_force_scale must be at most 10, not 1e+30"),
        ("go1-push-recovery", {"push_interval": 500},
         "push_interval must be less than the 500 steps of an episode, or no push would ever come, not 500"),
        ("go1-push-recovery", {"horizon": 10**11}, "horizon must be at most 1,000,000 steps, not 100000000000"),
        ("ant-patrol-return", {"checkpoint": 1e9}, "checkpoint must be at most 100, not 1000000000.0"),
        ("quadruped-velocity", {"speed_scale": True}, "speed_scale must be a number that is not negative, not True"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_kind_gets_a_sentence(name, options, says):
    with pytest.raises(InvalidSetting) as error:
        make_task(name, **options)
    assert error.value.settings == tuple(f"task.{option}" for option in options)
    assert str(error.value) == says


def test_the_shifts_of_the_paper_are_allowed():
    assert options_of(make_task("panda-tracking", radius_scale=1.5, speed_scale=2))["radius_scale"] == 1.5
    assert options_of(make_task("go1-push-recovery", push_force_scale=2, push_interval=np.int64(40)))


POSTPONED = """
from __future__ import annotations
from dataclasses import dataclass
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from collections.abc import Sequence
from jaxreward.tasks.metrics import Mean
from jaxreward.tasks.robots.mujoco_task import MuJoCoTask

@dataclass(frozen=True)
class Mine(MuJoCoTask):
    names: Sequence[str] = ()
    speed: float = 1
    legs: int = 4
    name = "mine"
    description = "Nothing."
    def __post_init__(self):
        super().__post_init__()
        if self.legs == 5:
            len(self.legs)
    xml = (
        "<mujoco><worldbody><body><joint name='j'/><geom size='1'/></body></worldbody>"
        "<actuator><motor joint='j' ctrlrange='-1 1'/></actuator></mujoco>"
    )
    def score(self): return Mean(lambda s, a, t: (t.data.qvel[0] > self.speed).astype(float), self.horizon)
    def default_observation(self, view): return view.data.qpos
    def sparse_reward(self, view, action, next_view): return next_view.data.qvel[0]
"""


@pytest.mark.long
def test_annotations_of_a_file_may_be_postponed(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(POSTPONED)
    assert options_of(make_task_of(str(file), ("speed=1.5", "horizon=7")))["speed"] == 1.5
    with pytest.raises(InvalidSetting) as invalid:
        make_task_of(str(file), ("legs=1.5",))
    assert invalid.value.settings == ("task.legs",)
    with pytest.raises(UnknownName) as unknown:
        make_task(str(file), arms=2)
    assert (unknown.value.kind, unknown.value.name) == ("option", "arms") and "legs" in unknown.value.known


def test_a_mistake_in_a_constructor_is_not_blamed_on_its_options(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(POSTPONED)
    with pytest.raises(UnusableFile) as error:
        make_task(str(file), legs=5)
    assert (error.value.path, error.value.problem) == (file, FileProblem.DAMAGED) and error.value.line is not None
    assert POSTPONED.splitlines()[error.value.line - 1].strip() == "len(self.legs)"
    assert isinstance(error.value.__cause__, TypeError)


# ---- words


@pytest.fixture(scope="module")
def robots() -> dict[str, Any]:
    """The tasks, in episodes of another length."""
    return {name: make_task(name, horizon=200) for name in ROBOTS}


@pytest.mark.parametrize("options", [{}, {"speed_scale": 2, "radius_scale": 1.5}])
def test_the_notes_of_the_arm_state_the_path_of_its_target(options):
    task: Any = make_task("panda-tracking", **options)
    params = {"freq_x": 1.3, "freq_y": 2.1, "freq_z": 0.9, "phase_x": 0.4, "phase_y": 5.0}
    at, _ = task._target({name: jnp.float32(value) for name, value in params.items()}, jnp.float32(3.0))
    said = re.findall(r"[xyz] = (.*?\))", " ".join(task.state_notes.split()))
    said = [re.sub(r" (sin|freq|t\b)", r" * \1", formula) for formula in said]
    found = [eval(formula, {"sin": np.sin, "t": 3.0, **params}) for formula in said]
    np.testing.assert_allclose(found, at, atol=1e-5)


def test_a_push_is_that_of_the_step_that_led_here(robots):
    task = robots["go1-push-recovery"]
    assert task.state_words["info.push_force"].startswith("the push of the step that led here")
    docs = {f.name: f.doc for f in task.vocabulary().fragments}
    assert "of the step that led here" in docs["push_in_body"] and "in the step that led here" in docs["pushed"]


@pytest.mark.long
def test_how_an_episode_ends_is_said_as_it_is(robots):
    fails = "An episode ends after 200 steps, earlier only where the simulation fails."
    final = "An episode ends in a state that the task declares final, at the latest after 200 steps."
    for name in ("panda-tracking", "panda-cabinet", "panda-push", "package-push", "ball-roll", "door-open",
                 "peg-insert", "cube-place", "cube-stack"):  # fmt: skip
        assert document_state(robots[name]).endswith(fails), name
    assert document_state(robots["go1-push-recovery"]).endswith(final)


def test_brax_says_where_nothing_ends_an_episode():
    assert document_state(make_task("reacher")).endswith("1000 steps, earlier only where the simulation fails.")
    lying: Any = make_task("ant-lie-down")
    patrol: Any = make_task("ant-patrol-return")
    assert lying.ends_early and not patrol.ends_early


# ---- vocabularies


def defined(task: Any) -> dict[str, Any]:
    """The functions of a vocabulary, our own text, with its constants and helpers."""
    book = task.vocabulary()
    names: dict[str, Any] = {"jax": jax, "jnp": jnp}
    parts = [f"{name} = {value}" for name, value in book.constants.items()]
    exec("\n\n".join([*parts, *book.helpers.values(), *(f.source for f in book.fragments)]), names)
    return names


def views(task: Any, many: int) -> Any:
    """Views of nonsense, near the goal and far from it, of a robot that is up."""
    shapes = view_shapes(task)
    rng = np.random.default_rng(0)
    view = jax.tree.map(lambda x: rng.uniform(-1, 1, (many, *x.shape)).astype(np.float32), shapes)
    size = np.geomspace(0.001, 1.0, many).astype(np.float32)
    view.info.update(upvector=np.tile([0.0, 0.0, 1.0], (many, 1)), target_dist=size, gripper_target_dist=size)
    view.info.update(drawer_pos=size, pos_xy=np.stack([size, 0 * size], 1), command_error=size[:, None] * np.ones(3))
    return view


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_no_phrase_is_the_tasks_own_reward(robots, name):
    task = robots[name]
    view = views(task, 200)
    action = jnp.zeros(task.action_space.shape)
    sparse = np.asarray(jax.vmap(lambda v: task.sparse_reward(v, action, v))(view))
    assert 0.1 < sparse.mean() < 0.95
    names = defined(task)
    for fragment in task.vocabulary().fragments:
        if fragment.kind == "term":
            paid = np.asarray(jax.vmap(lambda v, f=fragment: names[f.name](v, action, v))(view))
            alike = np.ptp(paid) > 0 and np.array_equal(paid == paid.max(), sparse == 1) and len(np.unique(paid)) == 2
            assert not alike, fragment.name


def test_the_tasks_with_an_instruction_are_those_that_are_offered(robots):
    assert {name for name, task in robots.items() if hasattr(task, "instruction")} == set(INSTRUCTED)


def test_the_horizon_of_a_vocabulary_is_the_tasks(robots):
    for name, task in robots.items():
        assert task.vocabulary().constants["HORIZON"] == "200.0", name


def test_the_strongest_push_of_a_vocabulary_is_the_tasks():
    for scale, strong in ((1.0, "400.0"), (2.0, "800.0"), (0.0, "1.0")):
        assert make_task("go1-push-recovery", push_force_scale=scale).vocabulary().constants["STRONG"] == strong


def test_the_observation_of_the_arm_counts_in_episodes(robots):
    task = robots["panda-tracking"]
    view = jax.tree.map(lambda x: jnp.zeros(x.shape[1:]), views(task, 1))
    view.info["step_count"] = jnp.float32(200)
    assert float(task.default_observation(view)[-1]) == 1.0


def test_the_foot_that_is_lifted_is_the_higher_one(robots):
    names = defined(robots["quadruped-velocity"])
    joints = np.tile([0.0, 0.9, -1.8], 4)
    joints[1:3] = [1.2, -2.4]  # FR drawn up, straight below its hip as the others
    state = SimpleNamespace(data=SimpleNamespace(qpos=jnp.concatenate([jnp.zeros(7), jnp.asarray(joints)])))
    lifted = 10.0 * 2.0 * 0.213 * (np.cos(0.9) - np.cos(1.2))
    np.testing.assert_allclose(names["feet_apart"](state), [0.0, lifted, 0.0, 0.0], atol=1e-5)


# ---- metrics


@pytest.mark.parametrize("broken", [False, True])
def test_an_episode_whose_last_step_fails_is_no_success(broken):
    metric: Any = make_task("panda-tracking", horizon=3).score()
    acc = metric.init()
    for last in (False, False, True):
        data = SimpleNamespace(broken=jnp.asarray(last and broken))
        acc = metric.update(
            acc, None, None, SimpleNamespace(data=data, info={"gripper_target_dist": jnp.float32(0.01)})
        )
    assert float(metric.value(acc)) == (not broken)
    assert float(metric.also(acc)[0]) == pytest.approx(2 / 3 if broken else 1.0)


def test_implausible_speeds_are_a_failed_simulation():
    def at(speed: float) -> Any:
        x = jnp.zeros((1, 3))
        return SimpleNamespace(q=x, qd=x, x=x, xd=Motion(vel=x.at[0, 0].set(speed), ang=x))

    assert bool(sound(at(90.0))) and not bool(sound(at(-110.0)))


# ---- models of a user's own

CART = """
<mujoco>
  <worldbody>
    <body name="cart"><joint name="slide" type="slide" axis="1 0 0"/><geom size="0.1" mass="2"/></body>
  </worldbody>
  <actuator><motor name="engine" joint="slide" {range}/></actuator>
  {more}
</mujoco>
"""
SERVO = """
<mujoco>
  <worldbody><body><joint name="hinge" damping="5"/><geom size="0.1" pos="0.3 0 0"/></body></worldbody>
  <actuator><intvelocity joint="hinge" kp="50" ctrlrange="-1 1" actrange="-3 3"/></actuator>
  {more}
</mujoco>
"""
FREE = """
<mujoco>
  <worldbody>
    <body pos="0 0 1"><freejoint/><geom size="0.1"/>
      <body><joint type="ball"/><geom size="0.1" pos="1 0 0"/></body>
    </body>
  </worldbody>
</mujoco>
"""


@dataclass(frozen=True)
class Own(MuJoCoTask):
    """A task on any model."""

    xml: str = ""  # type: ignore[assignment]
    name = "own"
    description = "Anything."

    def score(self) -> Reached:
        return Reached(lambda state: state.data.qpos[0] > 1.0)

    def default_observation(self, view: Any) -> jax.Array:
        return view.data.qpos

    def sparse_reward(self, view: Any, action: jax.Array, next_view: Any) -> jax.Array:
        return jnp.zeros(())


class Told(Own):
    """One whose actions are the commands of the motors."""

    def control(self, state: Any, action: jax.Array) -> jax.Array:
        return action


class Pushed(Told):
    """One that is pushed to the right, and ends as it likes."""

    pushed = "cart"

    def outside_force(self, state: Any) -> jax.Array:
        return jnp.array([6.0, 0.0, 0.0])

    def terminated(self, state: Any) -> jax.Array:
        return state.data.qpos[0] > 1.0


def test_a_motor_without_a_range_is_named():
    with pytest.raises(InvalidModel) as error:
        _ = Own(xml=CART.format(range="", more="")).action_space
    assert error.value.actuator == 0 and "'engine'" in str(error.value) and "\n" not in str(error.value)
    assert Own(xml=CART.format(range='ctrlrange="-6 6"', more="")).ctrl_range[1].tolist() == [6.0]
    assert Told(xml=CART.format(range="", more="")).action_space.shape == (1,)


def test_a_mistake_in_a_model_gets_a_sentence():
    with pytest.raises(InvalidModel) as error:
        _ = Own(xml="<mujoco>\n  <defalt/>\n</mujoco>").physics
    assert error.value.actuator is None and "'defalt'" in str(error.value) and "\n" not in str(error.value)


def test_only_the_keyframe_home_is_where_an_episode_begins():
    for key, begin in (("stand", 0.0), ("home", 0.7)):
        more = f'<keyframe><key name="other" qpos="0.2"/><key name="{key}" qpos="0.7"/></keyframe>'
        assert Own(xml=CART.format(range='ctrlrange="-6 6"', more=more)).home.qpos == pytest.approx(begin)


def test_the_keyframe_home_has_velocities_activations_and_bodies_that_are_moved():
    body = '<worldbody><body name="target" mocap="true" pos="1 0 0"/></worldbody>'
    key = '<keyframe><key name="home" qpos="0.7" qvel="2" act="0.5" mpos="3 0 0"/></keyframe>'
    home = Own(xml=SERVO.format(more=body + key)).home
    assert (float(home.qvel[0]), float(home.act[0]), home.mocap_pos.tolist()) == (2.0, 0.5, [[3.0, 0.0, 0.0]])
    assert Own(xml=SERVO.format(more=body)).home.mocap_pos.tolist() == [[1.0, 0.0, 0.0]]


def test_activations_of_actuators_are_kept_from_step_to_step():
    """A servo whose set point is the integral of the command moves as it does in MuJoCo."""
    task = Told(xml=SERVO.format(more=""))
    model = mujoco.MjModel.from_xml_string(task.xml)
    data, step = mujoco.MjData(model), jit(task.step)
    state = task.reset(jax.random.key(0))
    state = state.replace(data=jax.tree.map(jnp.asarray, task.home))
    for _ in range(20):
        state = step(state, jnp.ones(1))
        data.ctrl[:] = 1.0
        mujoco.mj_step(model, data, task.substeps)
    assert float(state.data.act[0]) == pytest.approx(data.act[0], rel=1e-4) and data.act[0] > 0.1
    assert float(state.data.qpos[0]) == pytest.approx(data.qpos[0], rel=1e-3) and data.qpos[0] > 0.01


def test_noise_leaves_quaternions_of_length_one():
    qpos = np.asarray(Own(xml=FREE).start(jax.random.key(0)).qpos)
    np.testing.assert_allclose([np.linalg.norm(qpos[3:7]), np.linalg.norm(qpos[7:11])], 1.0, atol=1e-6)
    assert 0 < np.abs(qpos[4:7]).max() <= 0.011 and 0 < np.abs(qpos[:2]).max() <= 0.01


def test_an_outside_force_acts_all_through_a_step():
    task = Pushed(xml=CART.format(range="", more=""))
    state = jit(lambda: task.step(task.reset(jax.random.key(0)), jnp.zeros(1)))()
    begin = task.reset(jax.random.key(0)).data.qvel[0]
    # 6 N on 2 kg for a control step, 4 simulation steps of 2 ms.
    assert float(state.data.qvel[0] - begin) == pytest.approx(3.0 * 0.008, rel=1e-3)
    assert document_state(task).endswith("declares final, at the latest after 500 steps.")


def test_a_model_without_the_camera_is_seen_as_a_whole(monkeypatch):
    seen = []

    class Renderer:
        def __init__(self, model: Any, height: int, width: int) -> None: ...
        def close(self) -> None: ...
        def update_scene(self, data: Any, camera: int) -> None:
            seen.append(camera)

        def render(self) -> np.ndarray:
            return np.zeros((240, 320, 3), np.uint8)

    monkeypatch.setattr(mujoco, "Renderer", Renderer)
    monkeypatch.setattr(rendering, "_has_gl", lambda: True)
    views = ["", '<worldbody><camera name="over"/><camera name="beside"/></worldbody>']
    for more in views:
        task = Own(xml=CART.format(range='ctrlrange="-6 6"', more=more))
        task.draw(SimpleNamespace(data=task.home))  # type: ignore[arg-type]
    assert seen == [-1, 1]


def test_the_docs_say_what_first_info_is():
    page = (Path(__file__).resolve().parents[2] / "docs/add_a_task.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `first_info(data, key)`"))
    info = Own(xml=FREE).first_info(Own(xml=FREE).home, jax.random.key(0))
    assert row.split("|")[2].strip() == ", ".join(f"`{name}`" for name in info)
