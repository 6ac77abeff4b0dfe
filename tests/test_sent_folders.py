"""A run's folder that somebody sent, with everything in it that no run has."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxreward.cli import main
from jaxreward.errors import FileProblem, UnusableFile, UserError
from jaxreward.records import Exchange
from jaxreward.reports.page import write_report
from jaxreward.runs import EventLog, Run, Told, TranscriptLog
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.runs.disk import write_atomic
from tests.reports import example

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A sound run next to one that is to be tampered with."""
    for name in ("sound", "sent"):
        log = example.write_run(tmp_path / "runs" / name) / "events.jsonl"
        lines = map(json.loads, log.read_text().splitlines())
        log.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return tmp_path / "runs"


def said(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> str:
    assert main(["runs", *args]) == code
    out, err = capsys.readouterr()
    return out or err


def edited(change: Callable[[str], str], at: int = 1) -> Callable[[Path], None]:
    """Change a line of the log."""

    def edit(run: Path) -> None:
        log = run / "events.jsonl"
        lines = log.read_text().splitlines()
        lines[at] = change(lines[at])
        log.write_text("\n".join(lines) + "\n")

    return edit


def timed(value: str) -> Callable[[Path], None]:
    return edited(lambda line: re.sub(r'"at":[^,]+', f'"at":{value}', line))


def with_config(**values: object) -> Callable[[Path], None]:
    def change(line: str) -> str:
        record = json.loads(line)
        record["event"]["config"] |= values
        return json.dumps(record)

    return edited(change, at=0)


def instead(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    def tamper(run: Path) -> None:
        path = run / name
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        make(path)

    return tamper


def zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


SENT: dict[str, Callable[[Path], None]] = {
    "a word for a time": timed('"x"'),
    "null for a time": timed("null"),
    "a list for a time": timed("[1]"),
    "infinity for a time": timed("1e400"),
    "no date": timed("1e300"),
    "before all times": timed("-1"),
    "a line of null": edited(lambda _: "null"),
    "a line of a list": edited(lambda _: "[1]"),
    "a line of infinity": edited(lambda _: "1e400"),
    "a deep line": edited(lambda _: "[" * 100_000 + "]" * 100_000),
    "a deep setting": edited(
        lambda line: line.replace('"config":{', '"config":{"x":' + "[" * 300 + "]" * 300 + ","), 0
    ),
    "odd settings": with_config(candidates="x", llm=3),
    "a pipe for a log": instead("events.jsonl", os.mkfifo),
    "zeros for a log": instead("events.jsonl", zeros),
    "a pipe for a lock": instead("events.lock", os.mkfifo),
    "a pipe for a transcript": instead("transcripts/exchanges.jsonl", os.mkfifo),
    "zeros for a transcript": instead("transcripts/exchanges.jsonl", zeros),
}


@pytest.mark.parametrize("tamper", SENT.values(), ids=SENT.keys())
def test_one_unreadable_folder_does_not_hide_the_others(runs: Path, capsys, tamper: Callable[[Path], None]):
    tamper(runs / "sent")
    output = said(capsys, "list", str(runs))
    assert "sound" in output and re.search("^cannot read sent: .*sent.*", output, re.MULTILINE), output
    listed = json.loads(said(capsys, "list", str(runs), "--json"))
    assert [row["run"] for row in listed["runs"]] == ["sound"]
    sentence = said(capsys, "show", str(runs / "sent"), code=2)
    assert len(sentence.splitlines()) == 1 and "Traceback" not in sentence
    if tamper is not SENT["odd settings"]:  # which a page has no use for
        with pytest.raises(UserError):
            write_report(runs / "sent")


def test_deep_toml_gets_a_sentence(runs: Path, capsys):
    for text in ("x = " + "[" * 5000 + "]" * 5000, "[" + ".".join("a" * 3000) + "]\nb = 1"):
        (runs / "sent" / "config.toml").write_text(text)
        assert main(["evolve", "--out", str(runs), "--name", "sent", "--resume"]) == 2
        assert "config.toml is not valid TOML (it nests too deeply)" in capsys.readouterr().err


LINKED = [
    lambda run: EventLog(run / "events.jsonl"),
    lambda run: Run.resume(run),
    lambda run: TranscriptLog(run / "transcripts" / "exchanges.jsonl").add(Exchange(request_id="a", turn=0, model="m")),
    lambda run: write_atomic(run / "best_interface.py", "x"),
    lambda run: write_report(run),
    lambda run: Checkpoints(run / "checkpoints").save("t", {}),
]
PLACES = [
    *("events.lock", "events.jsonl", "transcripts/exchanges.jsonl", "best_interface.py", "report.html"),
    *("transcripts", "programs", "checkpoints", "checkpoints/x"),
]


@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_written_through_a_link(runs: Path, tmp_path: Path, place: str):
    run = runs / "sent"
    (run / "config.toml").write_text("")
    for name in ("programs", "transcripts", "checkpoints"):
        (run / name).mkdir(exist_ok=True)
    target = tmp_path / "mine"
    folder = "." not in place
    target.mkdir() if folder else target.write_text("mine")
    path = run / place
    path.parent.mkdir(exist_ok=True)
    shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    refused = 0
    for use in LINKED:
        try:
            use(run)
        except UserError as error:
            refused += "symbolic link" in str(error)
    assert refused and path.is_symlink()
    assert not list(target.iterdir()) if folder else target.read_text() == "mine"


def test_a_program_is_not_kept_behind_a_link(tmp_path: Path):
    (tmp_path / "mine.py").write_text("mine")
    with Run.create(tmp_path / "run", {}) as run:
        (run.path / "programs" / "abc.py").symlink_to(tmp_path / "mine.py")
        with pytest.raises(UnusableFile, match="symbolic link", check=lambda e: e.problem is FileProblem.WRONG_KIND):
            run.save_program("abc", "theirs")
    assert (tmp_path / "mine.py").read_text() == "mine"


def test_the_folders_of_a_user_may_be_links(tmp_path: Path, capsys):
    """Of all runs, of a run, and of a comparison: people keep them on other disks."""
    example.write_run(tmp_path / "disk" / "one")
    example.write_run(tmp_path / "compared" / "toy" / "two")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "one").symlink_to(tmp_path / "disk" / "one")
    (tmp_path / "runs" / "many").symlink_to(tmp_path / "compared")
    (tmp_path / "all").symlink_to(tmp_path / "runs")
    (tmp_path / "compared" / "loop").symlink_to(tmp_path)
    output = said(capsys, "list", str(tmp_path / "all"))
    assert [line.split()[0] for line in output.splitlines()[1:]] == ["many/toy/two", "one"]


def test_requests_cannot_be_called_as_paths(runs: Path, capsys):
    log = runs / "sent" / "events.jsonl"
    log.write_text(log.read_text().replace("g0000-00", "../../../x"))
    assert "malformed event of type asked" in said(capsys, "show", str(runs / "sent"), code=2)


EVIL = "\\u001b]0;pwned\\u0007\\u202e\\u2066\\u200b\\u200f"
SEEN = "\\x1b]0;pwned\\x07\\u202e\\u2066\\u200b\\u200f"
NEVER = set("\x1b\x07\u202e\u2066\u200b\u200f")


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('"request_id":"g0000-00"', f'"request_id":"{EVIL}"', 2),
        ('"type":"told"', f'"type":"{EVIL}"', 2),
        ('"generation":0', f'"{EVIL}":0,"generation":0', 2),
        ('"seq":3', f'"seq":"{EVIL}"', 2),
        ('"v":1', f'"v":"{EVIL}"', 2),
        ('"strategy":"limen"', f'"strategy":"{EVIL}"', 0),
        ('"operator":"scratch"', f'"operator":"{EVIL}"', 0),
    ],
)
def test_control_characters_in_a_log_do_not_reach_the_terminal(runs: Path, capsys, old: str, new: str, code: int):
    log = runs / "sent" / "events.jsonl"
    assert old in log.read_text()
    log.write_text(log.read_text().replace(old, new))
    output = "".join(
        [
            said(capsys, "show", str(runs / "sent"), code=code),
            said(capsys, "tail", str(runs / "sent"), code=code if '"request_id"' not in old else 0),
            said(capsys, "list", str(runs)),
        ]
    )
    assert SEEN in output and not NEVER & set(output)


def test_no_page_has_what_cannot_be_seen(runs: Path):
    """Neither its text nor the data that its script shows."""
    run = runs / "sent"
    log = run / "events.jsonl"
    log.write_text(log.read_text().replace("near", f"near{EVIL}").replace('"source":"', f'"source":"# {EVIL}\\n'))
    exchange = Exchange(request_id="g0000-00", turn=0, model="m", reply=json.loads(f'"{EVIL}"'))
    (run / "transcripts").mkdir(exist_ok=True)
    TranscriptLog(run / "transcripts" / "exchanges.jsonl").add(exchange)
    page = write_report(run).read_text()
    packed = re.search(r'<script type="text/plain" id="details">([^<]*)<', page)
    facts = re.search(r'<script type="application/json" id="run">([^<]*)<', page)
    assert packed is not None and facts is not None
    details = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    shown = [json.dumps(part, ensure_ascii=False) for part in (details, json.loads(facts[1]))]
    text = page[: packed.start()]
    assert SEEN in text and not NEVER & set(text)
    assert SEEN.replace("\\", "\\\\") in shown[0] and not NEVER & set("".join(shown))


def test_a_limit_on_the_size_of_files_is_one_sentence(tmp_path: Path):
    """`ulimit -f`: Python ignores the signal, and the write fails."""
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from jaxreward.errors import UserError\n"
        "from jaxreward.runs import EventLog, Told\n"
        "from jaxreward.runs.disk import write_atomic\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "log = EventLog(Path(sys.argv[1]) / 'events.jsonl')\n"
        "for write in (lambda: [log.append(Told(generation=k)) for k in range(200)],\n"
        "              lambda: write_atomic(Path(sys.argv[1]) / 'a', 'x' * 9000)):\n"
        "    try:\n"
        "        write()\n"
        "    except UserError as error:\n"
        "        print(error)\n"
        "print(len(log.entries))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    log, file, entries = done.stdout.splitlines()
    assert "events.jsonl cannot grow" in log and "ulimit -f" in log and f"{tmp_path / 'a'} cannot grow" in file
    with EventLog(tmp_path / "events.jsonl") as again:
        assert len(again.entries) == int(entries) > 10
        again.append(Told(generation=int(entries)))
    assert not list(tmp_path.glob(".a*"))
