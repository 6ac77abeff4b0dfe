"""A search as a picture, and programs in short form."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from benchmarks import search_picture as command
from jaxreward.errors import UserError
from jaxreward.reports.run_view import RunView
from jaxreward.reports.search_picture import search_picture
from jaxreward.reports.short_code import short_code
from tests.reports.made_run import make_run

GENOME = '''
import jax.numpy as jnp


def near(state):
    """How near
    the thing is."""
    return state.x


def closer(state, action, next_state):
    return state.x - next_state.x


def get_observation(state):
    return jnp.concatenate([near(state), 2.0 * near(state)])


def compute_reward(state, action, next_state):
    terms = {"closer": 0.5 * closer(state, action, next_state), "again": closer(state, action, next_state)}
    return sum(terms.values()), terms
'''


def test_a_program_of_features_and_terms_in_short():
    assert short_code(GENOME, documented=True) == (
        "def get_observation(state):\n    return jnp.concatenate(\n        [\n"
        "            # How near\n            near(...),\n"
        "            # How near\n            2.0 * near(...),\n        ]\n    )\n\n\n"
        "def compute_reward(state, action, next_state):\n    return (\n        0.5 * closer(...)\n"
        "        + closer(...)\n    )"
    )
    assert "near" not in short_code(GENOME, "compute_reward")


@pytest.mark.parametrize(
    "body",
    [
        "return state.x - next_state.x",
        'terms = {"a": state.x}\n    return 2.0 * sum(terms.values()), terms',
        'terms = {"a": state.x}\n    return sum(other.values()), terms',
        'terms = {"a": state.x}\n    terms["b"] = state.x\n    return sum(terms.values()), terms',
    ],
)
def test_a_function_in_another_form_stands_as_it_is(body: str):
    text = f"def compute_reward(state, action, next_state):\n    {body}"
    assert short_code(f"import jax.numpy as jnp\n\n\n{text}\n") == text


@pytest.mark.long
def test_a_run_becomes_a_picture(tmp_path, capsys):
    """White, of the size that a page shows, with its candidates as dots and code beside them."""
    make_run(tmp_path / "made", 20)
    assert command.main([str(tmp_path / "made"), str(tmp_path / "made.png")]) == 0
    with Image.open(tmp_path / "made.png") as image:
        picture = np.asarray(image.convert("RGB"))
    assert (picture[0] == 255).all() and picture.shape[1] == 2000
    left, right = np.split(picture, [int(0.45 * picture.shape[1])], axis=1)
    assert len(np.unique(left.reshape(-1, 3), axis=0)) > 20 and len(np.unique(right.reshape(-1, 3), axis=0)) > 20


def test_what_it_says(tmp_path, monkeypatch):
    """The words of the picture: the axis, the scores of the first and of the best, the terms of a reward."""
    from matplotlib.axes import Axes

    said = []
    monkeypatch.setattr(Axes, "text", lambda self, x, y, text, **how: said.append(text))
    view = RunView.read(make_run(tmp_path / "made", 20))
    search_picture(view, tmp_path / "made.png")
    scores = [r.score for r in view.results.values() if r.score]
    assert view.final is not None and view.best is not None and view.best.score is not None
    assert f"first, candidate 1: success {scores[0].mean:.3f}" in said
    number = 1 + scores.index(view.best.score)
    assert (
        f"found, candidate {number}: success {view.best.score.mean:.3f}, on 5 fresh seeds {view.final.mean:.3f}" in said
    )
    assert said.count("compute_reward") == 2


def test_a_run_without_a_score_is_refused(tmp_path):
    view = RunView.read(make_run(tmp_path / "made", 8))
    vars(view)["best"] = None  # what `RunView.best` is where all candidates failed
    with pytest.raises(UserError, match="none of its candidates has a score"):
        search_picture(view, tmp_path / "made.png")
