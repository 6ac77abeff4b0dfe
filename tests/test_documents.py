"""JSON and TOML that somebody else may have written."""

from __future__ import annotations

import pytest

from jaxreward.config import DEEPEST, Garbled, Malformed, parse_json, parse_toml


@pytest.mark.parametrize("text", ['{"a": [1, 2.5, "x", null]}', b"[]", "-9223372036854775807"])
def test_ordinary_documents_are_read(text):
    assert parse_json(text) is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1e400", "too large"),
        ('{"a": [1e999]}', "too large"),
        ("9" * 5000, "too large"),
        ("NaN", "no number of JSON"),
        ("-Infinity", "no number of JSON"),
        ("[" * 100_000, "nests too deeply"),
        ("[" * 500 + "]" * 500, "nests too deeply"),
        ('{"a":' * (DEEPEST + 2) + "1" + "}" * (DEEPEST + 2), "nests too deeply"),
    ],
)
def test_unacceptable_json_is_malformed_and_not_garbled(text, reason):
    with pytest.raises(Malformed, match=reason) as caught:
        parse_json(text)
    assert not isinstance(caught.value, Garbled)


@pytest.mark.parametrize(("text", "reason"), [("{", "not JSON"), (b"\xff", "not text"), ("", "not JSON")])
def test_truncated_json_is_garbled(text, reason):
    with pytest.raises(Garbled, match=reason):
        parse_json(text)


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 5000 + "]" * 5000,
        "[" + ".".join(["a"] * 3000) + "]\nb = 1",
        ".".join(["a"] * 3000) + " = 1",
        "x = " + "9" * 5000,
        "x = ",
    ],
)
def test_toml_that_cannot_be_used_is_refused(text):
    with pytest.raises(Malformed):
        parse_toml(text)


def test_toml_is_read():
    assert parse_toml("[a]\nb = inf") == {"a": {"b": float("inf")}}
