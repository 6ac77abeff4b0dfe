"""Runs over HTTP: what is shown, while they grow and whatever they hold, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from jaxreward.cli import main
from jaxreward.errors import InvalidSetting, MissingPackage
from jaxreward.reports import page
from jaxreward.reports.timeline import Timeline
from jaxreward.runs import EventLog
from jaxreward.serving import Catalogue, Server
from jaxreward.serving.byte_range import Unsatisfiable, byte_range
from jaxreward.serving.gate import Gate
from jaxreward.serving.run_row import best_so_far
from tests.reports import example
from tests.serving.serving import Client, of, serving

GIF = b"GIF89a" + bytes(range(256)) * 4
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A finished run with a program and films, one that was killed, one of a comparison."""
    folder = tmp_path / "runs"
    whole = example.events()
    run = example.write_run(folder / "whole", whole)
    (run / "best_interface.py").write_text("# digest: digest-g0001-00\n\ndef compute_reward(state):\n    return 1.0\n")
    (run / "film.gif").write_bytes(GIF)
    (run / "film-g0000-00.mp4").write_bytes(b"\0\0\0 ftypisom" + bytes(5000))
    example.write_run(folder / "killed", whole[:13])
    example.write_run(folder / "six/toy/limen-llm-0", example.events(best=0.6))
    (folder / "six/comparison.md").write_text("| strategy | score |\n")
    (folder / "six/comparison.png").write_bytes(b"\x89PNG")
    return folder


# ---- what is shown


def test_the_list_has_every_run_newest_first(runs: Path):
    with serving(runs) as client:
        answer = client.get("/runs.json").json
    rows = {row["run"]: row for row in answer["runs"]}
    assert list(rows) == ["six/toy/limen-llm-0", "whole", "killed"] and answer["waiting"] == 0
    whole = rows["whole"]
    assert (whole["standing"], rows["killed"]["standing"]) == ("finished", "stopped")
    assert whole["curve"] == [[1, 0.4], [3, 0.9], [4, 0.9]] and whole["number"] == "0.900"
    assert whole["candidates"] == {"trained": 4, "failed": 2, "duplicate": 2, "budget": 6}
    assert list(whole["films"]) == ["film.gif", "film-g0000-00.mp4"] and whole["program"]
    assert answer["comparisons"] == [{"name": "six", "key": "six"}]
    assert rows["six/toy/limen-llm-0"]["key"] == "six%2Ftoy%2Flimen-llm-0"


def test_the_pages_of_a_run(runs: Path):
    with serving(runs) as client:
        for address, kind, part in (
            ("/", "text/html; charset=utf-8", b"index.js"),
            (of("whole"), "text/html; charset=utf-8", b"run.js"),
            (of("whole", "report.html"), "text/html; charset=utf-8", b"g0001-00"),
            (of("six/toy/limen-llm-0", "report.html?v=1"), "text/html; charset=utf-8", b"limen-llm-0"),
            (of("whole", "program.py"), "text/plain; charset=utf-8", b"def compute_reward"),
            (of("whole", "films/film.gif"), "image/gif", GIF),
            (of("whole", "films/film-g0000-00.mp4"), "video/mp4", b"ftyp"),
            ("/index.js", "text/javascript; charset=utf-8", b"runs.json"),
            ("/report.css", "text/css; charset=utf-8", b"--ground"),
            ("/comparison/six/comparison.md", "text/plain; charset=utf-8", b"| strategy"),
            ("/comparison/six/comparison.png", "image/png", b"PNG"),
        ):
            answer = client.get(address)
            assert (answer.status, answer.headers["Content-Type"]) == (200, kind), address
            assert part in answer.body and len(answer.body) == int(answer.headers["Content-Length"])
            head = client.get(address, method="HEAD")
            assert head.status == 200 and not head.body and head.headers["Content-Length"] == str(len(answer.body))
        assert "compute_reward" not in client.get(of("killed", "program.py")).text


def test_single_runs_and_several_folders(runs: Path, tmp_path: Path):
    example.write_run(tmp_path / "more" / "whole")
    assert list(Catalogue([runs / "whole"]).runs()) == ["whole"]
    assert list(Catalogue([runs / "six"]).comparisons()) == ["six"]
    both = Catalogue([runs, tmp_path / "more"]).runs()
    assert both[f"{runs}/whole"] == runs / "whole" and both[f"{tmp_path}/more/whole"] == tmp_path / "more" / "whole"


def test_the_curve_has_its_corners_and_its_end():
    candidates = Timeline(example.entries(example.events(best=0.4))).candidates
    assert best_so_far(candidates) == [(1, 0.4), (4, 0.4)]
    assert best_so_far([]) == []


# ---- runs that grow


def test_a_run_is_shown_as_it_grows(tmp_path: Path):
    whole = example.events()
    run = example.write_run(tmp_path / "runs" / "one", whole[:1])
    versions, trained = set[str](), list[int]()
    with serving(tmp_path / "runs") as client, EventLog(run / "events.jsonl") as log:
        for event in whole[1:]:
            log.append(event)
            # The clock of the throttle runs: a row is at most ten times the reading old.
            state = _settled(client, len(log.entries), run)
            assert state["problem"] == "" and (state["standing"] == "running")
            versions.add(state["version"])
            trained.append(state["candidates"]["trained"])
        assert trained == sorted(trained) and trained[-1] == 4 and len(versions) == len(whole) - 1
        assert "It is still running" in client.get(of("one", "report.html")).text
        log.close()
        assert "It ended on" in client.get(of("one", "report.html")).text


def _settled(client: Client, events: int, run: Path) -> dict:
    """The state once it is that of the whole log, at once or after the rest that a growing run is given."""
    last = json.loads((run / "events.jsonl").read_text().splitlines()[-1])["at"]
    while True:
        state = client.get(of("one", "state.json")).json
        if state["problem"] or state["last_at"] == last:
            return state


def test_a_row_rests_nine_times_as_long_as_it_took_to_read(runs: Path, monkeypatch: pytest.MonkeyPatch):
    from jaxreward.serving import catalogue as module

    now, read = [0.0], []
    real = module.run_row

    def slow(path: Path, name: str) -> dict:
        now[0] += 1.0
        read.append(now[0])
        return real(path, name)

    monkeypatch.setattr(module, "run_row", slow)
    served = Catalogue([runs / "killed"], lambda: now[0])
    name, path = next(iter(served.runs().items()))
    served.state(name, path)
    for _ in range(30):
        with (path / "events.jsonl").open("a") as file:
            file.write(" ")
        served.state(name, path)
        now[0] += 1.0
    assert read == [1.0, 11.0, 21.0, 31.0]


def test_many_runs_are_read_a_few_at_a_time(runs: Path):
    served = Catalogue([runs])
    assert [served.listing(patience_s=0.0)["waiting"] for _ in range(3)] == [2, 1, 0]
    assert len(served.listing()["runs"]) == 3


def test_a_torn_or_damaged_log_breaks_nothing(runs: Path):
    with serving(runs) as client:
        with (runs / "killed" / "events.jsonl").open("ab") as file:
            file.write(b'{"v": 1, "seq": 13, "at": 17000')
        assert client.get(of("killed", "state.json")).json["standing"] == "stopped"
        assert client.get(of("killed", "report.html")).status == 200
        (runs / "whole" / "events.jsonl").write_text("nonsense\n{}\n")
        answer = client.get("/runs.json").json
        (bad,) = answer["unreadable"]
        assert bad["run"] == "whole" and "line 1 is damaged" in bad["reason"] and len(answer["runs"]) == 2
        assert "line 1 is damaged" in client.get(of("whole", "state.json")).json["problem"]
        assert "line 1 is damaged" in client.get(of("whole", "report.html")).text
        shutil.rmtree(runs / "whole")
        assert client.get(of("whole", "state.json")).status == 404
        assert len(client.get("/runs.json").json["runs"]) == 2


def test_without_the_packages_of_reports_the_page_says_which(runs: Path, monkeypatch: pytest.MonkeyPatch):
    errors = [MissingPackage("reports need vl-convert: pip install 'jaxreward[reports]' <b>", "vl-convert"),
              ImportError("No module named 'jinja2'")]  # fmt: skip
    for error in errors:

        def fails(view: object, error: Exception = error) -> str:
            raise error

        monkeypatch.setattr(page, "render", fails)
        with serving(runs) as client:
            answer = client.get(of("whole", "report.html"))
            assert answer.status == 200 and "There is no report" in answer.text and "<b>" not in answer.text
            assert client.get(of("whole", "state.json")).json["number"] == "0.900"


# ---- texts of others

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


def test_names_and_texts_are_no_markup(tmp_path: Path):
    run = example.write_run(tmp_path / "runs" / f"a {EVIL.replace('/', '')} \u202e")
    log = run / "events.jsonl"
    evil = json.dumps(EVIL)[1:-1]
    log.write_text(log.read_text().replace('"limen"', f'"{evil}"').replace("return 'g0001-00'", f"# {evil} \\u202e"))
    (run / "best_interface.py").write_text(f"# {EVIL} \u202e\n")
    with serving(tmp_path / "runs") as client:
        (row,) = client.get("/runs.json").json["runs"]
        listing = client.get("/runs.json")
        assert listing.headers["Content-Type"] == "application/json" and "\u202e" not in listing.text
        name = run.name
        assert row["strategy"] == EVIL and "\\u202e" in row["run"]
        report, program = client.get(of(name, "report.html")), client.get(of(name, "program.py"))
        assert report.status == 200 and "<img src=x" not in report.text and "\u202e" not in report.text
        assert program.headers["Content-Type"].startswith("text/plain") and "\u202e" not in program.text
        assert (
            row["key"] == quote(name, safe="") and client.get(f"/run/{row['key']}/state.json").json["run"] == row["run"]
        )
        for page in ("/", of(name)):
            assert EVIL not in client.get(page).text, "our pages hold no text of a run"


def test_every_answer_has_a_policy(runs: Path):
    with serving(runs) as client:
        for address in ("/", of("whole"), of("whole", "report.html"), of("whole", "program.py"), "/runs.json", "/none"):
            headers = client.get(address).headers
            policy = headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "frame-ancestors" in policy and "unsafe-eval" not in policy
            assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin" and headers["Cache-Control"] == "no-store"
        report = client.get(of("whole", "report.html")).headers["Content-Security-Policy"]
        assert "sandbox allow-scripts;" in report and "allow-same-origin" not in report and "connect" not in report
        ours = client.get("/").headers["Content-Security-Policy"]
        assert "script-src 'self'" in ours and "unsafe-inline" not in ours


# ---- what is refused

OUT = (
    "/..", "/../secret.py", "/run/../../secret.py", "/run/%2e%2e/program.py", "/run/..%2f..%2fsecret/program.py",
    "/run/whole/films/../../secret.py", "/run/whole/films/..%2f..%2fsecret.py", "/run/whole/films/%2e%2e%2fconfig.toml",
    "/run/whole/events.jsonl", "/run/whole/config.toml", "/run/whole/films/", "/run/whole/films/film.gif/",
    "/run/whole/films/film.gif%00", "/run//state.json", "/run/six/state.json", "/run/whole", "//etc/passwd",
    "/etc/passwd", "/index.js/../../run_row.py", "/web/index.js", "/comparison/six/..%2fsecret.py", "/%ff", "/run/%ff/",
    "/comparison/six/comparison.json", "http://elsewhere/run/whole/../../secret.py",
)  # fmt: skip


@pytest.mark.parametrize("address", OUT)
def test_no_address_leads_out(runs: Path, address: str):
    (runs.parent / "secret.py").write_text("a secret")
    with serving(runs) as client:
        answer = client.get(address)
        assert answer.status == 404 and b"secret" not in answer.body and b"root:" not in answer.body


@pytest.mark.parametrize("place", ["film.gif", "best_interface.py", "events.jsonl", "transcripts", "film-a.gif"])
def test_no_link_inside_a_run_is_followed(runs: Path, place: str):
    secret = runs.parent / "secret"
    secret.mkdir()
    (secret / "exchanges.jsonl").write_text("a secret")
    (path := runs / "whole" / place).unlink(missing_ok=True)
    path.symlink_to(secret if place == "transcripts" else secret / "exchanges.jsonl")
    with serving(runs) as client:
        for part in ("state.json", "report.html", "program.py", f"films/{place}"):
            assert b"a secret" not in client.get(of("whole", part)).body
        if place.startswith("film"):
            assert client.get(of("whole", f"films/{place}")).status == 404
        assert len(client.get("/runs.json").json["runs"]) >= 2


def test_no_run_behind_a_link_out_of_the_folder_is_served(runs: Path, tmp_path: Path):
    example.write_run(tmp_path / "private" / "one")
    (runs / "linked").symlink_to(tmp_path / "private")
    (runs / "inner").symlink_to(runs / "six")
    (tmp_path / "mine").symlink_to(runs)
    served = Catalogue([tmp_path / "mine"]).runs()
    assert set(served) == {"whole", "killed", "six/toy/limen-llm-0", "inner/toy/limen-llm-0"}
    assert set(Catalogue([runs / "linked"]).runs()) == {"one"}, "the one that is named is followed"


def test_only_reading(runs: Path):
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("*")}
    with serving(runs) as client:
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "<script>"):
            assert client.get("/", method=method).status in (400, 501)
        assert client.get("http://[x/").status == 400
        for part in ("", "state.json", "report.html", "program.py", "films/film.gif"):
            client.get(of("whole", part))
    assert {path: path.stat().st_mtime_ns for path in runs.rglob("*")} == before


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8411", "127.0.0.1.evil.example", "", "localhost.evil"])
def test_a_foreign_name_of_this_machine_is_refused(runs: Path, host: str):
    with serving(runs) as client:
        assert client.get("/runs.json", Host=host).status == 421
        for known in ("localhost:9000", "127.0.0.1", "[::1]:8411", "LOCALHOST:8411"):
            assert client.get("/runs.json", Host=known).status == 200, "a tunnel may begin at another port"


def test_a_token_opens_the_pages(runs: Path):
    with serving(runs, token="right-token", host="0.0.0.0") as client:
        pages = ("/", "/runs.json", "/index.js", of("whole", "report.html"), of("whole", "films/film.gif"), "/none")
        name = f"jaxreward-{client.port}"
        for page in pages:
            for wrong in ({}, {"Cookie": f"{name}=wrong"}, {"Cookie": "jaxreward-1=right-token"}, {"Cookie": "\xff=;"}):
                assert client.get(page, **wrong).status == 401
            assert client.get(f"{page}?token=wrong").status == 401
            assert client.get(f"{page}?token=").status == 401
        entered = client.get("/?token=right-token")
        cookie = entered.headers["Set-Cookie"]
        assert entered.status == 200 and "right-token" not in entered.text
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Domain" not in cookie
        kept = {"Cookie": f"other=1; {cookie.partition(';')[0]}"}
        assert [client.get(page, **kept).status for page in pages] == [200] * 5 + [404]
        assert client.get("/runs.json", Host="node17.cluster:8411", **kept).status == 200


def test_an_address_of_other_machines_needs_a_token(runs: Path):
    with pytest.raises(ValueError, match="a token is needed"):
        Server(Catalogue([runs]), "0.0.0.0", 0)
    assert not Gate.of("0.0.0.0", 1, local=False, token="a").admits("jaxreward-1=b", "")


# ---- parts of files


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (None, None), ("bytes=0-9", (0, 10)), ("bytes=10-", (10, 100)), ("bytes=-7", (93, 100)), ("bytes=0-", (0, 100)),
        ("bytes=90-500", (90, 100)), ("bytes=-500", (0, 100)), ("bytes=0-1,5-9", None), ("bytes=9-2", None),
        ("bytes=-", None), ("lines=0-2", None), ("bytes=a-b", None), ("bytes=" + "9" * 30 + "-", None),
    ],
)  # fmt: skip
def test_ranges(header: str | None, found: tuple[int, int] | None):
    assert byte_range(header, 100) == found


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=200-300", "bytes=-0"])
def test_ranges_after_the_end(header: str):
    with pytest.raises(Unsatisfiable):
        byte_range(header, 100)


def test_a_browser_can_seek_in_a_film(runs: Path):
    film = (runs / "whole" / "film.gif").read_bytes()
    with serving(runs) as client:
        address = of("whole", "films/film.gif")
        whole = client.get(address)
        assert whole.headers["Accept-Ranges"] == "bytes" and whole.body == film
        part = client.get(address, Range="bytes=100-299", If_Range=whole.headers["ETag"])
        assert (part.status, part.body) == (206, film[100:300])
        assert part.headers["Content-Range"] == f"bytes 100-299/{len(film)}"
        assert client.get(address, Range="bytes=100-", If_Range='"another"').body == film, "it has changed since"
        beyond = client.get(address, Range="bytes=9999-")
        assert beyond.status == 416 and beyond.headers["Content-Range"] == f"bytes */{len(film)}"


# ---- the command


def test_a_port_in_use_is_a_sentence(runs: Path, capsys: pytest.CaptureFixture[str]):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["serve", str(runs), "--port", str(port)]) == 2
    assert f"port {port} is in use" in capsys.readouterr().err
    with pytest.raises(InvalidSetting, match="no address of this machine"):
        Server(Catalogue([runs]), "192.0.2.1", 0, "token")
    assert main(["serve", str(runs), "--port", "70000"]) == 2
    assert main(["serve", str(runs / "none")]) == 2


INTERRUPTIBLE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from jaxreward.cli import main
sys.exit(main(sys.argv[1:]))
"""
"""The command with signals as in a terminal: what is started in the background ignores Ctrl-C."""


@pytest.mark.parametrize("arguments", [(), ("--token",)])
def test_ctrl_c_ends_it_with_status_0(runs: Path, arguments: tuple[str, ...]):
    command = [sys.executable, "-c", INTERRUPTIBLE, "serve", str(runs), "--port", "0", "--json", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=runs
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        status = Client(said["port"]).get("/runs.json").status
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0 and "Traceback" not in err and out == ""
    assert said["runs"] == 3 and (status, bool(said["token"])) == ((401, True) if arguments else (200, False))
    assert said["address"].startswith(f"http://127.0.0.1:{said['port']}/") and said["token"] in said["address"]


def test_it_needs_neither_jax_nor_what_draws_reports():
    heavy = "{'jax', 'jinja2', 'vl_convert', 'pygments', 'matplotlib'}"
    code = f"import sys, jaxreward.commands.serve; print({heavy} & {{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.stdout.strip() == "set()", done.stdout + done.stderr
