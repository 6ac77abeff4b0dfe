"""Copies of runs on file systems, in memory and in a bucket: kept up, locked, fetched and gone on with elsewhere."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from fsspec.config import conf

from jaxreward.errors import FileProblem, InvalidSetting, UnusableFile
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.runs import Asked, Run, Told, read_log
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.runs.events import AskedRequest
from jaxreward.storage import Mirror, Place, fetch, mirror, snapshot, writer
from jaxreward.storage.snapshot import Piece, Snapshot, Whole, digest_of, joined, latest
from tests.test_cli import outcome

pytestmark = pytest.mark.usefixtures("unsynced")


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A bucket of a server on this machine."""
    from moto.server import ThreadedMotoServer

    with pytest.MonkeyPatch.context() as patch:
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        access = {"key": "of-a-test", "secret": "of-a-test", "endpoint_url": f"http://{host}:{port}"}
        patch.setitem(conf, "s3", access)
        fsspec.filesystem("s3", skip_instance_cache=True).mkdir("bucket")
        yield "s3://bucket"
        server.stop()


@pytest.fixture(params=["file", "memory", "s3"])
def place(request, tmp_path) -> Place:
    name = f"{os.getpid()}-{time.monotonic_ns()}"
    if request.param == "s3":
        return Place(f"{request.getfixturevalue('bucket')}/runs/{name}")
    return Place({"file": f"file://{tmp_path}/store/{name}", "memory": f"memory://{name}"}[request.param])


@pytest.fixture
def impatient(monkeypatch) -> None:
    monkeypatch.setattr(writer, "_STALE_S", 0.5)
    monkeypatch.setattr(writer, "_POLL_S", 0.05)


@pytest.fixture
def quick(impatient, monkeypatch) -> None:
    monkeypatch.setattr(writer, "BEAT_S", 0.05)
    for name in ("_LOOK_S", "_PAUSE_S", "_AGAIN_S"):
        monkeypatch.setattr(mirror, name, 0.05)


def asked(index: int) -> Asked:
    return Asked(generation=index, requests=(AskedRequest(id=f"g{index}", operator="scratch"),))


def ignore(_: str) -> None: ...


def opened(
    path: Path, place: Place, new: bool = True, note: Any = ignore, stop: Any = ignore, stopped: Any = lambda: False
) -> Mirror:
    return Mirror(path, place, new, note, stopped, stop)


def search(path: Path, events: int, begin: int = 0) -> Run:
    """A run with something of everything."""
    run = Run.resume(path) if (path / "config.toml").exists() else Run.create(path, {"task": "t"})
    for index in range(begin, events):
        run.save_program(f"digest{index}", f"# program {index}")
        run.append(asked(index))
    save(path, "best-policy", events)
    (run.transcripts / "exchanges.jsonl").write_text("".join(f'{{"turn":{k}}}\n' for k in range(events)) + '{"torn')
    return run


def save(path: Path, tag: str, value: float) -> None:
    Checkpoints(path / "checkpoints").save(tag, {"w": np.full(3, float(value))})


def restored(path: Path, tag: str) -> list[float] | None:
    found = Checkpoints(path / "checkpoints").restore(tag, {"w": np.zeros(3)})
    return None if found is None else found["w"].tolist()


def tree(path: Path) -> dict[str, bytes]:
    found = {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*") if p.is_file()}
    return {name: data for name, data in found.items() if not name.endswith(".lock")}


def log_of(place: Place) -> bytes:
    return joined(place, latest(place).appended.get("events.jsonl", ()))


def writers(place: Place) -> list[str]:
    return place.names("writers")


def test_a_copy_that_is_fetched_is_the_run(place, tmp_path):
    with opened(tmp_path / "run", place), search(tmp_path / "run", 3):
        pass
    assert fetch(place, tmp_path / "there" / "run") > 0
    here, there = tree(tmp_path / "run"), tree(tmp_path / "there" / "run")
    torn = here.pop("transcripts/exchanges.jsonl"), there.pop("transcripts/exchanges.jsonl")
    assert here == there
    assert torn[0].startswith(torn[1]) and torn[1].endswith(b"}\n"), "a line that is not complete is not copied"
    assert restored(tmp_path / "there" / "run", "best-policy") == [3, 3, 3]
    assert fetch(place, tmp_path / "there" / "run") == 0


def test_it_goes_on_elsewhere_and_the_first_machine_catches_up(place, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    with opened(one, place), search(one, 2):
        pass
    save(one, "train-0.0", 1)  # which is never copied
    fetch(place, two)
    with opened(two, place, new=False), search(two, 5, begin=2):
        save(two, "train-0.0", 2)
    with pytest.raises(UnusableFile, match="later events or checkpoints of this run"), opened(one, place, new=False):
        pass
    assert fetch(place, one) > 0
    assert [e.event for e in read_log(one / "events.jsonl")] == [asked(k) for k in range(5)]
    assert restored(one, "train-0.0") == [2, 2, 2], "checkpoints of the two are not mixed"


def test_a_later_checkpoint_is_fetched_where_nothing_was_logged_since(place, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    with opened(one, place) as kept, search(one, 1):
        save(one, "train-0.0", 1)
        kept.push()
        fetch(place, two)
        save(one, "train-0.0", 2)
    assert fetch(place, two) > 0 and restored(two, "train-0.0") == [2, 2, 2]
    save(two, "train-0.0", 3)
    assert fetch(place, two) == 0 and restored(two, "train-0.0") == [3, 3, 3], "this machine has trained on"


def test_a_copy_may_be_fetched_while_it_is_written(place, tmp_path, monkeypatch):
    path, plain = tmp_path / "run", Place.read
    with opened(path, place) as kept, search(path, 1) as run:
        kept.push()

        def read(self: Place, name: str) -> bytes | None:
            if name.startswith("files/"):
                monkeypatch.setattr(Place, "read", plain)
                run.append(asked(1))
                kept.push()  # which joins the pieces of the log, and removes them
            return plain(self, name)

        monkeypatch.setattr(Place, "read", read)
        fetch(place, tmp_path / "there")
        assert len(read_log(tmp_path / "there" / "events.jsonl")) == 2


def test_a_copy_is_at_any_moment_a_run(place, tmp_path, monkeypatch):
    """Whenever the copying is cut off, in the middle of writing a file too, what is there can be fetched, and what its
    events refer to is there; of the search inside it as well."""
    path, writes, most, plain = tmp_path / "run", 0, 0, Place.write

    def cut_off(self: Place, name: str, data: bytes) -> None:
        nonlocal writes
        writes += not name.startswith("writers")
        if writes <= most or name.startswith("writers"):
            return plain(self, name, data)
        if writes == most + 1:  # as where a process is killed, and files are not replaced at once
            plain(self, name, data[: len(data) // 2])
        raise OSError("the network is down")

    with search(path, 4):
        pass
    inner = path / "best-of-n"
    inner.mkdir()
    shutil.copytree(path / "programs", inner / "programs")
    shutil.copy(path / "events.jsonl", inner / "events.jsonl")
    events, tried = 0, 0
    while events < 4:
        most, writes, tried = most + 1, 0, tried + 1
        with opened(path, place, new=False) as kept, monkeypatch.context() as patch:
            patch.setattr(Place, "write", cut_off)
            with contextlib.suppress(OSError):
                kept.push()
            patch.setattr(mirror.Mirror, "_finish", ignore)
            kept.__exit__()
        there = tmp_path / f"there{tried}"
        events = log_of(place).count(b"\n")
        if events:
            fetch(place, there)
        for k in range(events):
            assert (there / "programs" / f"digest{k}.py").exists()
        for k in range(len(read_log(there / "best-of-n" / "events.jsonl"))):
            assert (there / "best-of-n" / "programs" / f"digest{k}.py").exists()
        assert most < 40
    assert most > 8
    with opened(path, place, new=False):
        pass
    assert set(place.names("files")) == latest(place).digests, "what was cut off is removed"


def test_one_process_writes_and_another_waits_and_is_refused(place, tmp_path, quick):
    said = list[str]()
    with (
        opened(tmp_path / "run", place),
        pytest.raises(UnusableFile, match="is being written by process") as error,
        opened(tmp_path / "run", place, new=False, note=said.append),
    ):
        pass
    assert error.value.problem is FileProblem.IN_USE
    assert "to see whether it is alive" in said[0]


def test_one_that_waits_may_be_stopped(place, tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "_POLL_S", 0.05)
    with opened(tmp_path / "run", place), search(tmp_path / "run", 1):
        begin = time.monotonic()
        with opened(tmp_path / "run", place, new=False, stopped=lambda: time.monotonic() > begin + 0.5):
            pass
        assert time.monotonic() < begin + 30 and len(writers(place)) == 1


def test_a_writer_that_is_gone_is_followed(place, tmp_path, impatient):
    first = opened(tmp_path / "run", place).__enter__()
    for _ in range(2):
        with opened(tmp_path / "run", place, new=False):
            pass
    assert first._writer and not first._writer.renew(), "and the first one knows, whoever follows"
    assert len(writers(place)) == 1
    begin = time.monotonic()
    dead = {"machine": writer._machine(), "pid": 2**22 + 1}
    place.write("writers/000000009.json", json.dumps(dead).encode())
    with opened(tmp_path / "run", place, new=False):
        assert time.monotonic() - begin < 30, "neither a released one nor a dead process of this machine is waited for"
        assert writers(place) == ["000000010.json"]


def test_of_two_who_take_over_at_once_one_writes(place, tmp_path, quick):
    """Both see that the writer is gone; the next number is created by one, and the other waits for that one."""
    place.write("writers/000000001.json", b'{"pid": 1, "host": "another"}')
    refused, both = list[UnusableFile](), threading.Barrier(2)

    def take_over() -> None:
        both.wait()
        try:
            with opened(tmp_path / "run", place, new=False):
                time.sleep(3)
        except UnusableFile as error:
            refused.append(error)

    threads = [threading.Thread(target=take_over) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1 and refused[0].problem is FileProblem.IN_USE
    assert writers(place) == ["000000002.json"]


def test_who_lost_the_right_to_write_ends_and_changes_nothing(place, tmp_path, quick):
    ended, reasons, said = threading.Event(), list[str](), list[str]()

    def stop(reason: str) -> None:
        reasons.append(reason)
        ended.set()

    other = b'{"host": "another"}'
    with opened(tmp_path / "run", place, note=said.append, stop=stop) as kept, search(tmp_path / "run", 1) as run:
        kept.changed()
        until = time.monotonic() + 30
        while not latest(place).whole and time.monotonic() < until:
            time.sleep(0.02)
        place.write("writers/000000002.json", other)
        assert ended.wait(60)
        before = latest(place)
        run.append(asked(1))
        kept.changed()
    assert place.address in reasons[0] and "is written by another process now" in said[-1]
    assert place.read("writers/000000002.json") == other, "which is left to it"
    assert latest(place) == before


def test_one_that_was_taken_over_while_it_copied_changes_no_history(place, tmp_path, impatient, monkeypatch):
    """Even where it has looked whether it may write, and is halted then: its snapshot is not that of the last writer,
    and what it removes is copied again."""
    one, two = tmp_path / "one", tmp_path / "two"
    late = opened(one, place).__enter__()
    with search(one, 2) as run:
        save(one, "train-0.0", 1)
        late.push()
        fetch(place, two)
        with opened(two, place, new=False) as kept, search(two, 3, begin=2):
            save(two, "train-0.0", 2)
            kept.push()
            run.append(Told(generation=7))
            save(one, "train-0.0", 3)
            with pytest.raises(mirror._PlaceTaken):
                late.push()
            assert late._writer
            monkeypatch.setattr(late._writer, "holds", lambda: True)
            late.push()
            assert log_of(place) == (two / "events.jsonl").read_bytes()
    fetch(place, tmp_path / "three")
    assert (
        tree(tmp_path / "three").items() >= {name: tree(two)[name] for name in tree(two) if "exch" not in name}.items()
    )
    assert restored(tmp_path / "three", "train-0.0") == [2, 2, 2]


def test_replies_that_only_the_copy_has_are_brought(place, tmp_path):
    """Another machine asked a model, and was stopped before it logged anything."""
    one, two = tmp_path / "one", tmp_path / "two"
    with opened(one, place), search(one, 2):
        pass
    fetch(place, two)
    with opened(two, place, new=False), (two / "transcripts" / "exchanges.jsonl").open("a") as file:
        file.write('{"turn": "paid"}\n')
    with opened(one, place, new=False):
        assert '{"turn": "paid"}' in (one / "transcripts" / "exchanges.jsonl").read_text()
    (one / "transcripts" / "exchanges.jsonl").write_text('{"turn": "its own"}\n')
    with opened(one, place, new=False):
        pass
    kept = joined(place, latest(place).appended["transcripts/exchanges.jsonl"])
    assert kept == b'{"turn": "its own"}\n'


def test_a_new_run_takes_the_place_of_none_and_holds_no_place(place, tmp_path):
    with opened(tmp_path / "run", place), search(tmp_path / "run", 1):
        pass
    with pytest.raises(UnusableFile, match="holds a run already"), opened(tmp_path / "other", place):
        pass
    assert b'"released": true' in (place.read(f"writers/{writers(place)[-1]}") or b""), (
        "who was refused is not waited for"
    )
    with search(tmp_path / "other", 0) as other:
        other.append(Told(generation=7))
    with pytest.raises(UnusableFile, match="another run"), opened(tmp_path / "other", place, new=False):
        pass
    with pytest.raises(UnusableFile, match="other events"):
        fetch(place, tmp_path / "other")


def test_an_appended_file_has_few_pieces(place, tmp_path):
    path = tmp_path / "run"
    with opened(path, place) as kept, search(path, 1) as run:
        for index in range(1, 40):
            run.append(asked(index))
            kept.push()
            assert log_of(place) == (path / "events.jsonl").read_bytes()
        assert 2 <= len(latest(place).appended["events.jsonl"]) <= 6
        assert set(place.names("files")) == latest(place).digests
    assert not (path / "events.jsonl").read_bytes().count(b"\x00")


def test_what_is_removed_here_is_removed_there(place, tmp_path):
    path = tmp_path / "run"
    with opened(path, place) as kept, search(path, 1) as run:
        save(path, "generation-0-0", 1)
        kept.push()
        Checkpoints(run.checkpoints).delete("generation-0-0")
    assert not any("generation-0-0" in name for name in latest(place).whole)
    assert set(place.names("files")) == latest(place).digests


def test_what_is_not_of_the_copy_is_left_alone(tmp_path):
    """A store that holds other things, or is beside the runs themselves."""
    for folder, store in ((tmp_path / "runs" / "it", tmp_path / "elsewhere"), (tmp_path / "again" / "it", tmp_path)):
        place = Place(f"file://{store}/again/it" if store == tmp_path else f"file://{store}/it")
        assert place.local
        place.local.mkdir(parents=True, exist_ok=True)
        mine = ["thesis.tex", "files/thesis.tex", "snapshots/000000000-thesis.json", "writers/thesis.json"]
        for name in mine:
            (place.local / name).parent.mkdir(exist_ok=True)
            (place.local / name).write_text("mine")
        with opened(folder, place, new=folder.parent.name == "runs"), search(folder, 2):
            pass
        assert all((place.local / name).read_text() == "mine" for name in mine)
        assert len(read_log(folder / "events.jsonl")) == 2


@pytest.mark.parametrize("more", ["", "/copies"])
def test_a_store_in_the_folder_of_the_run_is_refused(tmp_path, capsys, monkeypatch, more):
    monkeypatch.chdir(tmp_path)
    store = f"file://{tmp_path}/runs{more and '/it' + more}"
    status, _, err = outcome(capsys, *SEARCH, "--name", "it", "--store", store)
    assert status == 2 and "is the folder of the run itself" in err and not (tmp_path / "runs" / "it").exists()


@pytest.mark.parametrize("damage", [b"late\n", None])
def test_a_damaged_copy_is_refused(place, tmp_path, damage):
    with opened(tmp_path / "run", place), search(tmp_path / "run", 2):
        pass
    name = f"files/{latest(place).appended['events.jsonl'][0].digest}"
    place.delete(name)
    if damage:
        place.write(name, damage)
    with pytest.raises(UnusableFile, match="is damaged" if damage else "is missing"):
        fetch(place, tmp_path / "there")
    assert not (tmp_path / "there" / "events.jsonl").exists()
    if damage is None:
        with opened(tmp_path / "run", place, new=False):
            pass
        assert log_of(place) == (tmp_path / "run" / "events.jsonl").read_bytes(), "who has it copies it again"


def test_names_that_lead_elsewhere_are_not_fetched(tmp_path):
    place = Place(f"memory://hostile{time.monotonic_ns()}")
    with opened(tmp_path / "run", place), search(tmp_path / "run", 1):
        pass
    found, text = latest(place), b"x"
    place.write(f"files/{digest_of(text)}", text)
    bad = Whole(Piece(digest_of(text), 1), 1)
    names = ("../up", "/root", ".bashrc", "programs/.hidden", "a b", "events.lock", "linked/file")
    hostile = Snapshot({**found.whole, **dict.fromkeys(names, bad)}, {**found.appended, "../up.jsonl": [bad.piece]})
    snapshot.write(place, hostile, 99, 1)
    (tmp_path / "there").mkdir()
    os.symlink(tmp_path / "elsewhere", tmp_path / "there" / "linked")
    with pytest.raises(UnusableFile, match="cannot be replaced"):
        fetch(place, tmp_path / "there")
    (tmp_path / "there" / "linked").unlink()
    fetch(place, tmp_path / "there")
    assert not {*names, "../up.jsonl"} - {"linked/file"} & tree(tmp_path / "there").keys()
    assert not (tmp_path / "elsewhere").exists() and not (tmp_path / "up").exists()


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("runs", "is an address such as"), ("nothing://here", "nothing"), ("gs://bucket/runs", "gcsfs"),
        ("s3://key:SECRET@bucket/runs", "has a password"), ("memory://x?token=SECRET", "has a password or options"),
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_is_refused(address, says):
    with pytest.raises(InvalidSetting, match=says) as error:
        Place(address)
    assert "SECRET" not in str(error.value)


def test_a_store_that_cannot_be_reached_is_said_in_a_sentence(tmp_path, monkeypatch):
    place = Place("memory://gone")

    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no credentials")

    monkeypatch.setattr(place.fs, "ls", fails)
    with pytest.raises(UnusableFile, match="cannot be used .*no credentials"):
        fetch(place, tmp_path / "run")
    with pytest.raises(UnusableFile, match="cannot be used .*no credentials"), opened(tmp_path / "run", place):
        pass
    with pytest.raises(UnusableFile, match="cannot be used .*refused"):
        Place("ftp://127.0.0.1:9/runs")


def test_a_copy_that_fails_is_tried_again_and_the_search_goes_on(tmp_path, quick, monkeypatch):
    place, said, plain = Place(f"memory://flaky{time.monotonic_ns()}"), list[str](), Place.write
    down = threading.Event()
    down.set()

    def write(self: Place, name: str, data: bytes) -> None:
        if down.is_set() and not name.startswith("writers/"):
            raise ValueError("whatever a library raises")
        plain(self, name, data)

    def until(count: int) -> None:
        end = time.monotonic() + 20
        while len(said) < count and time.monotonic() < end:
            time.sleep(0.01)

    monkeypatch.setattr(Place, "write", write)
    with opened(tmp_path / "run", place, note=said.append) as kept, search(tmp_path / "run", 2):
        kept.changed()
        until(1)
        down.clear()
        until(2)
    assert "lags behind" in said[0] and "has caught up" in said[1] and len(said) == 2
    assert log_of(place).count(b"\n") == 2


def test_a_store_that_does_not_answer_delays_the_end_by_a_limit(tmp_path, monkeypatch):
    for name in ("_LONG_S", "_LAST_S"):
        monkeypatch.setattr(mirror, name, 0.2)
    place, said, hang = Place(f"memory://hangs{time.monotonic_ns()}"), list[str](), threading.Event()
    monkeypatch.setattr(Place, "write", lambda *_: hang.wait())
    begin = time.monotonic()
    with opened(tmp_path / "run", place, note=said.append), search(tmp_path / "run", 2):
        pass
    assert time.monotonic() - begin < 30
    assert "waiting until" in said[0] and "lacks the last events" in said[1]
    hang.set()


def test_a_store_without_exclusive_creation_is_said(tmp_path, monkeypatch):
    place, said = Place(f"memory://loose{time.monotonic_ns()}"), list[str]()
    monkeypatch.setattr(Place, "create", lambda self, name, data: self.write(name, data) or True)
    with opened(tmp_path / "run", place, note=said.append):
        pass
    assert "does not create files exclusively" in said[0]


SEARCH = (
    "evolve", "--task", "probe-choice", "--generation", "2", "--seeds", "1", "--steps", "256", "--baselines",
    "--final-seeds", "0", "--ppo.envs", "16", "--ppo.unroll", "16",
)  # fmt: skip


@pytest.mark.long
def test_a_search_goes_on_on_another_machine(bucket, tmp_path, capsys, monkeypatch):
    """From the command line, through a bucket: the end is that of a search that stayed where it was."""
    store = f"{bucket}/searches"
    for folder in ("here", "there", "alone", "fetched"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    status, _, err = outcome(capsys, *SEARCH, "--candidates", "2", "--name", "it", "--store", store)
    assert status == 0, err
    shutil.rmtree(tmp_path / "here")
    monkeypatch.chdir(tmp_path / "there")
    status, _, err = outcome(capsys, "evolve", "--name", "it", "--resume", "--candidates", "4", "--store", store)
    assert status == 0 and "from its copy" in err, err
    monkeypatch.chdir(tmp_path / "fetched")
    status, out, err = outcome(capsys, "runs", "fetch", f"{store}/it")
    assert status == 0 and f"jaxreward evolve --name it --store {store} --resume" in out, err
    monkeypatch.chdir(tmp_path / "alone")
    for more in (("--candidates", "2", "--name", "it"), ("--name", "it", "--resume", "--candidates", "4")):
        status, _, err = outcome(capsys, *(SEARCH if "--resume" not in more else ("evolve",)), *more)
        assert status == 0, err
    logs = [read_log(tmp_path / folder / "runs" / "it" / "events.jsonl") for folder in ("there", "alone")]
    told = [[e.event for e in log if isinstance(e.event, Asked | Told)] for log in logs]
    assert told[0] == told[1] != []
    assert fetch(Place(f"{store}/it"), tmp_path / "there" / "runs" / "it") == 0
    last = [read_log(tmp_path / folder / "runs" / "it" / "events.jsonl") for folder in ("there", "fetched")]
    assert last[0] == last[1]
    monkeypatch.chdir(tmp_path / "alone")
    status, _, err = outcome(capsys, *SEARCH, "--candidates", "2", "--name", "it", "--store", store)
    assert status == 2 and "holds a run already" in err


def test_the_store_is_named_again_by_who_resumes():
    settings = EvolveSettings(task="probe-choice", store="memory://somewhere")
    assert "store" not in settings.as_config(), "a run's folder cannot send files anywhere"
