"""Keys come from the environment or a .env, and their values stay there."""

from __future__ import annotations

import base64
import os
from urllib.parse import quote

import pytest

from jaxreward.errors import UserError
from jaxreward.proposers.secrets import Secrets

VALUE = "s3cret/with+signs=and a space"


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("FIRST_API_KEY", "SECOND_TOKEN", "THIRD"):
        monkeypatch.setenv(name, "to be undone")
        monkeypatch.delenv(name)


def test_the_environment_wins_over_the_file(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text("FIRST_API_KEY=from-the-file\nexport SECOND_TOKEN='also from the file'\nTHIRD\n")
    monkeypatch.setenv("FIRST_API_KEY", "from-the-environment")
    secrets = Secrets()
    secrets.install()
    assert os.environ["FIRST_API_KEY"] == "from-the-environment"
    assert os.environ["SECOND_TOKEN"] == "also from the file" and "THIRD" not in os.environ
    # Neither value may be shown, used or not.
    assert secrets.redact("from-the-file, from-the-environment, also from the file.") == "***, ***, ***."


@pytest.mark.parametrize("name", ["FIRST_API_KEY", "my_password", "AWS_SECRET_ACCESS", "A_TOKEN", "CREDENTIALS"])
def test_every_spelling_is_hidden(monkeypatch, name):
    monkeypatch.setenv(name, VALUE)
    encoded = VALUE.encode()
    spellings = [VALUE, quote(VALUE, safe=""), quote(VALUE), base64.b64encode(encoded).decode()]
    spellings.append(base64.urlsafe_b64encode(encoded).decode().rstrip("="))
    for spelling in spellings:
        text = Secrets().redact(f"<{spelling}>")
        assert text.strip("<=>") == "***", spelling


def test_what_is_no_secret_stays(monkeypatch):
    monkeypatch.setenv("FIRST_API_KEY", "short")
    monkeypatch.setenv("PLAIN_NAME", "a longer value of no concern")
    text = "short, a longer value of no concern"
    assert Secrets().redact(text) == text


def test_data_is_redacted_wherever_a_string_is(monkeypatch):
    monkeypatch.setenv("FIRST_API_KEY", VALUE)
    data = ({"role": "user", "content": [{"type": "text", "text": f"it is {VALUE}"}, 3, None, True]},)
    assert Secrets().redact_all(data) == (
        {"role": "user", "content": [{"type": "text", "text": "it is ***"}, 3, None, True]},
    )


def test_a_secret_that_contains_another_goes_whole(monkeypatch):
    monkeypatch.setenv("FIRST_API_KEY", "abcdefgh")
    monkeypatch.setenv("SECOND_TOKEN", "abcdefgh-ijklmnop")
    assert Secrets().redact("abcdefgh-ijklmnop abcdefgh") == "*** ***"


def test_a_file_that_cannot_be_read(tmp_path):
    (tmp_path / ".env").write_bytes(b"KEY=\xff\xfe\xff")
    with pytest.raises(UserError, match="cannot read the keys in"):
        Secrets()
