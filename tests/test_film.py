"""Films of trained agents: which episodes, which policy, and what stands under the frames."""

from __future__ import annotations

import json
import subprocess
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from PIL import Image

from jaxreward.cli import main
from jaxreward.errors import FileProblem, UnusableFile, UserError
from jaxreward.evolution.filming import film, policy_of
from jaxreward.programs import Program
from jaxreward.records import SUCCESS, Measure
from jaxreward.reports.films import write_film
from jaxreward.reports.gauges import Gauges
from jaxreward.reports.video import COLOURS, Scene, frame_times, with_panels
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.tasks import mission_of
from jaxreward.training import PPO
from jaxreward.training.episodes import Episode, play, telling
from jaxreward.training.networks import ActorCritic

pytestmark = pytest.mark.usefixtures("unoptimised")
SEES = "import jax.numpy as jnp\n\n\ndef get_observation(state):\n    return jnp.stack([state.signal, 1.0])\n"
SMALL = PPO(envs=8, unroll=8, minibatches=2, hidden=(8,))


def episode(success: float, length: int, ret: float = 0.0) -> Episode:
    return Episode(None, length, success, ret, np.zeros((length, 1)))


def test_filmed_episodes_are_chosen_by_length_if_won_and_by_return_if_lost():
    slow, fast = episode(1.0, 40, ret=9.0), episode(1.0, 8, ret=1.0)
    poor, rich = episode(0.0, 80, ret=1.0), episode(0.0, 80, ret=4.0)
    shown = telling([poor, slow, rich, fast], SUCCESS)
    assert (shown["best"], shown["worst"]) == (fast, poor) and shown["median"] is rich
    metres = Measure(name="distance", rate=False, higher_is_better=False, worst=9.0)
    assert telling([episode(3.0, 5), episode(0.5, 9)], metres)["best"].success == 0.5


def test_moments_are_spread_from_the_first_to_the_last():
    assert frame_times([4, 4, 4], 9).tolist() == [0, 1, 2, 3, 4]
    assert frame_times([500, 500, 500], 6).tolist() == [0, 100, 200, 300, 400, 500]


def test_the_ends_of_short_episodes_are_among_the_frames():
    found = frame_times([400, 9, 26], 120).tolist()
    assert found[:27] == list(range(27)) and found[-1] == 400 and len(found) == 120
    for lengths in ([1, 1000, 500], [145, 152, 154], [2, 3, 4], [80, 80, 7]):
        for most in (4, 5, 40):
            found = frame_times(lengths, most)
            assert found[0] == 0 and found[-1] == max(lengths) and len(found) <= most
            assert {min(lengths), sorted(lengths)[1]} <= set(found.tolist())


def test_bars_show_what_the_step_paid():
    terms = np.array([[1.0, 0.0], [-0.5, 0.0]])
    frames = [np.zeros((10, 200, 3), np.uint8)] * 3
    (pictures,) = with_panels([Scene("best", frames, terms, ("gain", "nothing"))], [[0, 1, 2]])
    assert {p.shape[1] for p in pictures} == {200} and len({p.shape for p in pictures}) == 1

    def bar(picture: np.ndarray, colour: tuple[int, int, int]) -> int:
        return int((picture == colour).all(-1).any(0).sum())

    gain, loss = (47, 134, 201), (210, 82, 95)
    assert bar(pictures[0], gain) == bar(pictures[0], loss) == 0
    assert bar(pictures[1], gain) > 30 and bar(pictures[1], loss) == 0
    assert bar(pictures[2], gain) == 0 and bar(pictures[2], loss) == pytest.approx(bar(pictures[1], gain) / 2, abs=2)


def test_what_an_episode_is_about_stands_under_its_title():
    """In one line or two; panels of all scenes stay as high as the highest."""
    terms, frames = np.zeros((1, 1)), [np.zeros((10, 200, 3), np.uint8)] * 2
    missions = ("", "go to the red ball", "pick up the purple box on your right after you open a grey door " * 9)
    heights = []
    for mission in missions:
        scenes = [Scene("best", frames, terms, ("gain",), about) for about in (mission, "")]
        told, silent = with_panels(scenes, [[0, 1]] * 2)
        assert {picture.shape for picture in (*told, *silent)} == {told[0].shape}
        heights.append(told[0].shape[0])
        assert bool((told[0] != silent[0]).any()) == bool(mission)
    assert np.diff(heights).tolist() == [15, 15]


def test_a_mission_that_is_no_method_is_none():
    assert mission_of(SimpleNamespace(mission="fill"), None) == mission_of(SimpleNamespace(), None) == ""
    assert mission_of(SimpleNamespace(mission=lambda state: f"go to {state}"), 3) == "go to 3"


def test_a_film_may_be_mp4(tmp_path):
    import imageio_ffmpeg

    frames = [np.full((31, 45, 3), shade, np.uint8) for shade in (0, 120, 250)]
    write_film(tmp_path / "a.mp4", [frames, frames], step_ms=500)
    output = subprocess.run(
        [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(tmp_path / "a.mp4")], capture_output=True, text=True
    ).stderr
    assert "h264" in output and "yuv420p" in output and "94x32" in output
    assert "Duration: 00:00:03.00" in output, "the last frame stays for a second and a half"
    with pytest.raises(UnusableFile, check=lambda e: (e.path.name, e.problem) == ("a.avi", FileProblem.WRONG_KIND)):
        write_film(tmp_path / "a.avi", [frames])


def test_a_gif_of_few_colours_keeps_those_that_mean_something(tmp_path):
    rng = np.random.default_rng(0)
    frames = [rng.integers(0, 256, (60, 80, 1), np.uint8).repeat(3, -1) for _ in range(4)]  # all shades of grey
    for frame in frames:
        frame[:2, :5] = COLOURS[2]
    write_film(tmp_path / "a.gif", [frames], colours=COLOURS)
    with Image.open(tmp_path / "a.gif") as picture:
        assert (np.asarray(picture.convert("RGB"))[:2, :5] == COLOURS[2]).all()
    frames = [np.full((60, 80, 3), 40, np.uint8) for _ in range(40)]
    frames[7][20:30, 20:30] = (220, 30, 40)
    write_film(tmp_path / "c.gif", [frames])
    with Image.open(tmp_path / "c.gif") as picture:
        picture.seek(1)  # the first that differs
        assert abs(np.asarray(picture.convert("RGB"))[25, 25].astype(int) - (220, 30, 40)).max() < 20, (
            "seen in one frame"
        )
    write_film(tmp_path / "b.gif", [[np.zeros((4, 4, 3), np.uint8)]], colours=COLOURS)  # fewer colours than it may have


def test_a_film_that_cannot_be_written_says_so_and_leaves_the_one_before(tmp_path, monkeypatch):
    import imageio_ffmpeg

    frames = [np.full((32, 44, 3), shade, np.uint8) for shade in (0, 250)]
    (tmp_path / "tool").write_text("#!/bin/sh\necho 'No space left on device' >&2\nexit 1\n")
    (tmp_path / "tool").chmod(0o755)
    monkeypatch.setattr(imageio_ffmpeg, "get_ffmpeg_exe", lambda: str(tmp_path / "tool"))
    (tmp_path / "a.mp4").write_bytes(b"before")
    with pytest.raises(UserError, match="ffmpeg could not write .*: No space left on device"):
        write_film(tmp_path / "a.mp4", [frames], step_ms=200)
    assert (tmp_path / "a.mp4").read_bytes() == b"before" and len(list(tmp_path.iterdir())) == 2


@pytest.fixture(scope="module")
def agent(task_of):
    """An untrained agent of the raw xland-easy."""
    task = task_of("xland-easy")
    program = Program.default(task)
    network = ActorCritic.of(task, SMALL)
    variables = network.init(jax.random.key(1), np.zeros(program.observation_size, np.float32), network.memory(()))
    return task, program, variables


@pytest.mark.long
def test_a_film_shows_three_episodes_with_their_terms(agent, tmp_path):
    task, program, variables = agent
    drawn: list[tuple[int, int]] = []
    shown = film(
        tmp_path / "a.gif", task, program, variables, SMALL, episodes=4, frames=6,
        progress=lambda done, total: drawn.append((done, total)),
    )  # fmt: skip
    assert list(shown) == ["best", "median", "worst"]
    with Image.open(tmp_path / "a.gif") as picture:
        assert 2 <= getattr(picture, "n_frames", 1) <= 6 and picture.size[0] > 3 * 200
    assert drawn[-1][0] == drawn[-1][1] <= 18
    for e in play(task, program, variables, SMALL, episodes=4):
        assert e.terms.shape == (e.length, len(program.terms))
        assert e.terms.sum() == pytest.approx(e.ret)


class Bare:
    """A task without pictures."""

    def __init__(self, task):
        self._task = task

    def __getattr__(self, name):
        if name == "draw":
            raise AttributeError(name)
        return getattr(self._task, name)


def test_a_task_without_pictures_is_filmed_as_gauges(task_of, tmp_path):
    task = task_of("probe-corridor")
    program = Program.default(task)
    network = ActorCritic.of(task, SMALL)
    variables = network.init(jax.random.key(1), np.zeros(program.observation_size, np.float32), network.memory(()))
    bare: Any = Bare(task)
    film(tmp_path / "a.gif", bare, program, variables, SMALL, episodes=3, frames=4)
    with Image.open(tmp_path / "a.gif") as picture:
        assert picture.size[0] == 3 * 320 + 2 * 4


def test_states_with_random_keys_and_plain_numbers_are_filmed(tmp_path):
    from tests.tasks.test_validation import PARTS, module_of, written

    reset = PARTS["reset"].replace("jnp.zeros((), jnp.int32)", "0")
    task = module_of(written(tmp_path, reset=reset)).Ball()
    program = Program.default(task)
    network = ActorCritic.of(task, SMALL)
    variables = network.init(jax.random.key(1), np.zeros(program.observation_size, np.float32), network.memory(()))
    shown = film(tmp_path / "a.gif", task, program, variables, SMALL, episodes=3, frames=4)
    assert shown["best"].states["key"].shape == (shown["best"].length + 1,)


def test_a_gauge_goes_from_the_least_to_the_greatest():
    values = {"x": np.array([0.0, 5.0, 10.0]), "still": np.ones((3, 2)), "odd": np.array([np.nan, np.inf, 1.0])}
    gauges = Gauges(values)

    def marks(t: int) -> list[float]:
        picture = gauges.draw({name: value[t] for name, value in values.items()})
        blue = (picture == (47, 134, 201)).all(-1)
        rows = [np.flatnonzero(blue[6 + 15 * row + 7]) for row in range(4)]
        return [float(row.mean()) if len(row) else -1.0 for row in rows]

    (first, still, _, nan), (middle, *_), (last, _, _, one) = marks(0), marks(1), marks(2)
    assert first == 160 and last == 320 - 62 and middle == pytest.approx((first + last) / 2, abs=1)
    assert still == middle == one and nan == -1, "what does not change stands in the middle; what is no number nowhere"
    many = Gauges({"x": np.zeros((2, 40))}).draw({"x": np.zeros(40)})
    assert many.shape == (2 * 6 + 15 * 25, 320, 3), "24 of them, and a line that says how many more"


def test_the_policy_of_a_run_is_that_which_was_kept(agent, tmp_path):
    task, program, variables = agent
    store = Checkpoints(tmp_path)
    assert policy_of(store, ["best-policy"], task, program, SMALL) is None
    store.save("best-policy", variables)
    found = policy_of(store, ["policy-g0000-00", "best-policy"], task, program, SMALL)
    assert jax.tree.all(jax.tree.map(lambda a, b: np.array_equal(a, b), found, variables))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert policy_of(store, ["best-policy"], task, program, PPO(hidden=(16,))) is None, "of another network"
    assert said


@pytest.mark.long
@pytest.mark.usefixtures("warm")
def test_an_interface_is_trained_and_filmed(tmp_path, capsys):
    (tmp_path / "mine.py").write_text("# Task: probe-choice (by hand)\n" + SEES)
    args = ["--steps", "512", "--ppo.envs", "8", "--ppo.unroll", "8", "--ppo.hidden", "8", "--episodes", "3"]
    assert main(["film", str(tmp_path / "mine.py"), *args, "--json"]) == 0
    output = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert Path(output["film"]) == tmp_path / "mine.gif" and (tmp_path / "mine.gif").stat().st_size > 500
    assert output["episodes"].keys() == {"best", "median", "worst"}


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ([], "say what to film"),
        (["nothing.py"], "there is no interface file nothing.py"),
        (["nothing"], "there is no run nothing"),
        (["{file}"], "does not say which task it is for: give --task NAME"),
        (["{file}", "--task", "xland-easy", "--candidate", "g0000-00"], "--candidate is for a run"),
        (["{file}", "--task", "xland-easy", "--out", "a.avi"], "as .gif or .mp4, not as a.avi"),
        (["{file}", "--task", "xland-easy", "--episodes", "2"], "--episodes must be at least 3, not 2"),
        (["{file}", "--task", "xland-easy", "--out", "{file}/a.gif"], "cannot write"),
        (["{bytes}"], "it is not text in UTF-8"),
        (["{file}", "--candidate", "g0000-00", "--task", "xland-easy"], "--candidate is for a run"),
        (["{named}"], "which would be executed: look at it first, then say --task"),
    ],
)
def test_user_errors_are_one_sentence(tmp_path, capsys, args, why):
    (tmp_path / "plain.py").write_text("def get_observation(state):\n    return state.agent.position\n")
    task = tmp_path / "task.py"
    task.write_text("raise SystemExit('executed')\n")
    (tmp_path / "named.py").write_text(f"# An interface found by jaxreward\n# task: {task}\n\nx = 1\n")
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")
    named = {
        name: tmp_path / f"{file}.py" for name, file in (("file", "plain"), ("named", "named"), ("bytes", "bytes"))
    }
    assert main(["film", *(a.format(**named) for a in args)]) == 2
    said = capsys.readouterr().err
    assert why in said and said.count("\n") == 1
