"""Keys come from the environment or a .env, and their values stay there."""

from __future__ import annotations

import base64
import os
from urllib.parse import quote

import pytest

from jaxreward.errors import FileProblem, UnusableFile
from jaxreward.secrets import Secrets

VALUE = "s3cret/with+signs=and a space"


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("FIRST_API_KEY", "SECOND_TOKEN", "THIRD"):
        monkeypatch.setenv(name, "to be undone")
        monkeypatch.delenv(name)


def test_the_environment_wins_over_the_file(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text(
        "FIRST_API_KEY=from-the-file-1\nexport SECOND_TOKEN='also from the file: x1y2'\nTHIRD\n"
    )
    monkeypatch.setenv("FIRST_API_KEY", "from-the-environment-2")
    secrets = Secrets()
    secrets.install()
    assert os.environ["FIRST_API_KEY"] == "from-the-environment-2"
    assert os.environ["SECOND_TOKEN"] == "also from the file: x1y2" and "THIRD" not in os.environ
    # Neither value may be shown, used or not.
    assert secrets.redact("from-the-file-1, from-the-environment-2, also from the file: x1y2.") == "***, ***, ***."


@pytest.mark.parametrize(
    "name",
    ["FIRST_API_KEY", "my_password", "AWS_SECRET_ACCESS", "A_TOKEN", "CREDENTIALS"]
    + ["GITHUB_PAT", "PGPASSWORD", "PGPASS", "SMTP_PASS", "MY_AUTH", "HTTP_AUTHORIZATION", "APIKEY"],
)
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


PROGRAM = """
def get_observation(state):
    position, layer1_weights = state.agent.position, get_secret(state)
    return jnp.concatenate([position, layer1_weights, 100000000 * state.x])
"""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SORT_KEY", "position"),
        ("PARTITION_KEY", "layer1_weights"),
        ("SECRET_NAME", "get_observation"),
        ("DB_PASSWORD", "concatenate"),
        ("MAX_TOKENS", "100000000"),
        ("SOME_KEY", "state.agent.position"),
        ("GIT_AUTHOR_NAME", "get_secret(state)"),
        ("FIRST_PATH", "get_secret(state)"),
    ],
)
def test_words_of_programs_are_no_secrets(monkeypatch, name, value):
    assert value in PROGRAM
    monkeypatch.setenv(name, value)
    assert Secrets().redact(PROGRAM) == PROGRAM


@pytest.mark.parametrize(
    "value", ["sk-1234", "hunter", "position", "aB3$", "12345", "correct horse", "sk-abcdef0123456789"]
)
def test_a_key_of_a_provider_that_is_asked_is_hidden_whatever_it_looks_like(monkeypatch, value):
    monkeypatch.setenv("OPENAI_API_KEY", value)
    secrets = Secrets()
    secrets.guard("openai")
    assert secrets.redact(f"you sent Bearer {value}, no 'x{value}x'").startswith("you sent Bearer ***, no")
    assert secrets.redact(f"Bearer {value}") == "Bearer ***"


def test_keys_of_providers_under_other_names_are_hidden(monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "abcdef")
    monkeypatch.setenv("THIRD", "ghijkl")
    secrets = Secrets()
    secrets.guard("gemini", "THIRD")
    assert secrets.redact("abcdef ghijkl") == "*** ***"


@pytest.mark.parametrize("value", ["x", "none", "EMPTY", "dummy", ""])
def test_a_placeholder_for_a_key_is_no_key(monkeypatch, value):
    monkeypatch.setenv("OPENAI_API_KEY", value)
    secrets = Secrets()
    secrets.guard("openai")
    assert secrets.redact("x = none or EMPTY or dummy") == "x = none or EMPTY or dummy"


def test_a_value_in_the_words_of_json_is_hidden(monkeypatch):
    monkeypatch.setenv("FIRST_API_KEY", 'se"cr\\et-1é')
    assert Secrets().redact('{"key": "se\\"cr\\\\et-1\\u00e9"}') == '{"key": "***"}'


def test_data_is_redacted_wherever_a_string_is(monkeypatch):
    monkeypatch.setenv("FIRST_API_KEY", VALUE)
    data = ({"role": "user", "content": [{"type": "text", "text": f"it is {VALUE}"}, 3, None, True]},)
    assert Secrets().redact_all(data) == (
        {"role": "user", "content": [{"type": "text", "text": "it is ***"}, 3, None, True]},
    )


def test_a_secret_that_contains_another_goes_whole(monkeypatch):
    monkeypatch.setenv("FIRST_API_KEY", "abcd1234")
    monkeypatch.setenv("SECOND_TOKEN", "abcd1234-ijklmnop")
    assert Secrets().redact("abcd1234-ijklmnop abcd1234") == "*** ***"


def test_a_file_that_cannot_be_read_is_a_mistake(tmp_path):
    (tmp_path / ".env").write_bytes(b"KEY=\xff\xfe\xff")
    with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.UNREADABLE and e.path.name == ".env"):
        Secrets()


@pytest.mark.parametrize(
    "name",
    ["OPENAI_BASE_URL", "OPENAI_API_BASE", "HTTPS_PROXY", "SSL_CERT_FILE", "XDG_STATE_HOME", "WANDB_BASE_URL", "PATH2"],
)
def test_a_file_sets_keys_alone_and_says_what_it_ignores(monkeypatch, tmp_path, name):
    for variable in (name, "OTHER_API_KEY"):
        monkeypatch.setenv(variable, "to be undone")
        monkeypatch.delenv(variable)
    (tmp_path / ".env").write_text(f"{name}=http://evil.example/\nOTHER_API_KEY=sk-0123456789\n")
    (sentence,) = Secrets().install()
    assert name not in os.environ and os.environ["OTHER_API_KEY"] == "sk-0123456789"
    assert f"{tmp_path / '.env'} may set keys alone: {name} in it is ignored" in sentence
    assert "evil" not in sentence and Secrets().install() == [], "once"


@pytest.mark.parametrize(
    "name",
    ["OPENAI_API_KEY", "WATSONX_APIKEY", "HF_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"],
)
def test_keys_of_all_providers_are_keys(monkeypatch, tmp_path, name):
    monkeypatch.setenv(name, "to be undone")
    monkeypatch.delenv(name)
    (tmp_path / ".env").write_text(f"{name}=value-0123456789\n")
    assert Secrets().install() == [] and os.environ[name] == "value-0123456789"


def test_a_file_does_not_redirect_the_key_of_the_environment(monkeypatch, tmp_path):
    from jaxreward.proposers.llm.llm_proposer import LlmProposer
    from jaxreward.proposers.llm.llm_settings import LlmSettings
    from tests.proposers.material import XLAND

    for variable in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.setenv(variable, "to be undone")
        monkeypatch.delenv(variable)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=http://127.0.0.1:9/v1\nOPENAI_API_BASE=http://127.0.0.1:9/v1\n")
    reported: list[str] = []
    LlmProposer(XLAND, LlmSettings(model=("openai/mine",))).prepare(reported.append)
    ignored, asked = reported
    assert "OPENAI_BASE_URL, OPENAI_API_BASE in it is ignored" in ignored
    assert asked == "openai/mine is asked at https://api.openai.com"


@pytest.mark.parametrize("special", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_file_that_is_none_does_not_hang(tmp_path, special):
    special(tmp_path / ".env")
    assert Secrets().install() == []
