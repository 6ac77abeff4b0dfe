"""A key that a server sends back is in nothing that a run writes."""

from __future__ import annotations

import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.proposers.llm.llm_proposer import ping
from jaxreward.runs.transcripts import TRANSCRIPT, TranscriptLog
from tests.proposers.server import Answer, ChatServer, Fault
from tests.proposers.talk import GOOD, KEY, Talk, ids

pytestmark = pytest.mark.usefixtures("key")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("key", [KEY, "sk-1234", "hunter"])
def test_a_key_that_comes_back_is_written_nowhere(stream, key, monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", key)

    def script(body, n):
        sent = server.seen[n].headers["authorization"]
        if n < 6:  # the second one where sentences are cut
            return Fault((500, 429)[n % 2], f"you sent {sent}" if n != 1 else "x" * 228 + f" {sent}")
        return Answer(GOOD.replace("Here", f"{sent} Here")) if n < 9 else Fault(401, f"wrong: {sent}")

    with ChatServer(script) as server:
        talk = Talk(server.url, TranscriptLog(tmp_path / TRANSCRIPT), stream=stream, concurrency=1)
        proposals = talk.ask(*ids(3)).proposals
        stopped = talk.stopped("g0001-00")
        (answer,) = ping(talk.proposer.settings)
    assert "wrong: Bearer ***" in str(stopped) and talk.notes and "wrong: Bearer ***" in answer.error
    written = [file.read_text() for file in tmp_path.rglob("*") if file.is_file()]
    assert len(written) == 1 and written[0].count("Bearer ***") >= 8
    written += [*talk.notes, *talk.statuses, str(stopped), repr(stopped), repr(proposals), repr(answer)]
    assert key not in "".join(written)


def test_a_key_in_the_address_is_refused(monkeypatch):
    with pytest.raises(InvalidSetting, match="holds a key", check=lambda e: e.settings == ("api_base",)):
        Talk(f"http://127.0.0.1:1/{KEY}/v1")
    with pytest.raises(InvalidSetting, match="fragment", check=lambda e: e.settings == ("api_base",)):
        Talk(f"http://127.0.0.1:1/v1#{KEY}")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    Talk("http://127.0.0.1:1/none/v1")
