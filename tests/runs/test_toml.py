"""A configuration survives its file."""

from __future__ import annotations

import math
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxreward.runs.toml import to_toml

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalar = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), text)
value = st.recursive(
    scalar, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=8
)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(st.dictionaries(text, value, max_size=5))
def test_writing_and_reading_gives_the_same(config):
    assert tomllib.loads(to_toml(config)) == config


def test_it_is_what_a_person_would_write():
    config = {"task": "xland-easy", "none": None, "limen": {"islands": 3, "deep": {"a": [1, 2]}}, "ppo": {}}
    written = 'task = "xland-easy"\n\n[limen]\nislands = 3\n\n[limen.deep]\na = [\n    1,\n    2,\n]\n\n[ppo]\n'
    assert to_toml(config) == written


def test_a_file_of_an_earlier_version_holds_the_same():
    """They wrote lists in one line."""
    config = {"paths": ["a b/c.py", 'q"uote'], "limits": [math.inf, -math.inf], "name": "\x7f\\"}
    before = 'paths = ["a b/c.py", "q\\"uote"]\nlimits = [inf, -inf]\nname = "\\u007f\\\\"\n'
    assert tomllib.loads(before) == tomllib.loads(to_toml(config)) == config


def test_numbers_keep_their_type():
    back = tomllib.loads(to_toml({"a": 1.0, "b": 1, "c": 1e-5, "d": 1e22, "e": math.inf, "f": math.nan}))
    assert [type(v) for v in back.values()] == [float, int, float, float, float, float]
    assert math.isnan(back["f"])


@pytest.mark.parametrize("config", [{"a": object()}, {"a": [None]}, {3: 1}])
def test_what_toml_cannot_express_is_refused(config):
    with pytest.raises(TypeError):
        to_toml(config)
