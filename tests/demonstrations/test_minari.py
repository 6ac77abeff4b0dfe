"""Episodes of a data set that Minari itself wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxreward as jr
from jaxreward.demonstrations import WrongTrajectories, from_minari, record_random
from jaxreward.tasks import Task

minari = pytest.importorskip("minari")
gymnasium = pytest.importorskip("gymnasium")

NAME = "corridor/expert-v0"


@pytest.fixture
def corridor() -> Task:
    return jr.make_task("probe-corridor")


@pytest.fixture
def written(tmp_path: Path, corridor: Task, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Episodes of random play, and the same ones as a data set on this machine."""
    from minari.data_collector import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    played = record_random(corridor, 4)
    buffers = []
    for k in range(4):
        own = played.take([k])
        n = int(own.lengths[0])
        named = {
            leaf.name: states.astype(np.float32) for leaf, states in zip(own.spec.leaves, own.states, strict=True)
        }  # fmt: skip
        buffers.append(EpisodeBuffer(
            id=k, observations={"place": list(named.pop("place")), "rest": {a: list(b) for a, b in named.items()}},
            actions=own.actions.tolist(), rewards=[0.0] * n, terminations=[False] * (n - 1) + [bool(own.ended[0])],
            truncations=[False] * (n - 1) + [not own.ended[0]], infos={},
        ))  # fmt: skip
    boxes = {leaf.name: gymnasium.spaces.Box(-99, 99, leaf.shape) for leaf in played.spec.leaves}
    place = boxes.pop("place")
    space = gymnasium.spaces.Dict(place=place, rest=gymnasium.spaces.Dict(boxes))
    minari.create_dataset_from_buffers(
        NAME, buffers, observation_space=space, action_space=gymnasium.spaces.Discrete(2), description="random play"
    )
    yield played


def flat(observations: dict[str, Any]) -> dict[str, Any]:
    return {"place": observations["place"], **observations["rest"]}


@pytest.mark.filterwarnings("ignore")
def test_a_data_set_of_minari_becomes_episodes(written: Any, corridor: Task) -> None:
    found = from_minari(corridor, NAME, view=flat)
    for a, b in zip(found.states, written.states, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(found.actions, written.actions)
    np.testing.assert_array_equal(found.lengths, written.lengths)
    np.testing.assert_array_equal(found.ended, written.ended)
    assert found.source == "imported" and np.isnan(found.success).all()
    given = from_minari(corridor, minari.load_dataset(NAME), view=flat, most=2)
    np.testing.assert_array_equal(given.lengths, written.lengths[:2])


@pytest.mark.filterwarnings("ignore")
def test_what_does_not_fit_is_told(written: Any, corridor: Task) -> None:
    with pytest.raises(WrongTrajectories, match="there is no data set no/such-v0 of Minari: "):
        from_minari(corridor, "no/such-v0")
    with pytest.raises(WrongTrajectories, match=r"episode 0: its states are 5 arrays, .*rest\.signal.*, and the view"):
        from_minari(corridor, NAME)
