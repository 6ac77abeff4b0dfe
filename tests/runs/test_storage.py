"""Copies of runs on file systems, in memory and in a bucket: kept up, locked, fetched and gone on with elsewhere."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
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
from jaxreward.storage import Mirror, Place, fetch, mirror, writer
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
    monkeypatch.setattr(mirror, "BEAT_S", 0.05)
    monkeypatch.setattr(mirror, "_AGAIN_S", 0.05)


def asked(index: int) -> Asked:
    return Asked(generation=index, requests=(AskedRequest(id=f"g{index}", operator="scratch"),))


def ignore(_: str) -> None: ...


def opened(path: Path, place: Place, new: bool = True, note: Any = ignore, stop: Any = ignore) -> Mirror:
    return Mirror(path, place, new, note, stop)


def search(path: Path, events: int, begin: int = 0) -> Run:
    """A run with something of everything."""
    run = Run.resume(path) if (path / "config.toml").exists() else Run.create(path, {"task": "t"})
    for index in range(begin, events):
        run.save_program(f"digest{index}", f"# program {index}")
        run.append(asked(index))
    Checkpoints(run.checkpoints).save("best-policy", {"w": np.full(3, events)})
    (run.transcripts / "exchanges.jsonl").write_text("".join(f'{{"turn":{k}}}\n' for k in range(events)) + '{"torn')
    return run


def tree(path: Path) -> dict[str, bytes]:
    found = {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*") if p.is_file()}
    return {name: data for name, data in found.items() if not name.endswith(".lock")}


def test_a_copy_that_is_fetched_is_the_run(place, tmp_path):
    with opened(tmp_path / "run", place), search(tmp_path / "run", 3):
        pass
    assert fetch(place, tmp_path / "there" / "run") > 0
    here, there = tree(tmp_path / "run"), tree(tmp_path / "there" / "run")
    torn = here.pop("transcripts/exchanges.jsonl"), there.pop("transcripts/exchanges.jsonl")
    assert here == there
    assert torn[0].startswith(torn[1]) and torn[1].endswith(b"}\n"), "a line that is not complete is not copied"
    like = {"w": np.zeros(3, int)}
    found = Checkpoints(tmp_path / "there" / "run" / "checkpoints").restore("best-policy", like)
    assert found is not None and found["w"].tolist() == [3, 3, 3]
    assert fetch(place, tmp_path / "there" / "run") == 0


def test_it_goes_on_elsewhere_and_the_first_machine_catches_up(place, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    with opened(one, place), search(one, 2):
        pass
    fetch(place, two)
    with opened(two, place, new=False), search(two, 5, begin=2):
        pass
    with pytest.raises(UnusableFile, match="later events of this run"):
        opened(one, place, new=False)
    assert fetch(place, one) > 0
    assert [e.event for e in read_log(one / "events.jsonl")] == [asked(k) for k in range(5)]


def test_the_log_is_never_ahead_of_what_it_refers_to(place, tmp_path, quick, monkeypatch):
    """Whenever the copying is cut off, what is there is a run whose programs are there."""
    path, writes, most = tmp_path / "run", 0, 0

    def cut_off(plain: Callable[[Place, str, bytes], Any]) -> Callable[[Place, str, bytes], Any]:
        def write(self: Place, name: str, data: bytes) -> Any:
            nonlocal writes
            writes += 1
            if writes > most:
                raise OSError("the network is down")
            return plain(self, name, data)

        return write

    with search(path, 4):
        pass
    events = 0
    while events < 4:
        most, writes = most + 1, 0
        kept = opened(path, place, new=False)
        with monkeypatch.context() as patch:
            patch.setattr(Place, "write", cut_off(Place.write))
            patch.setattr(Place, "create", cut_off(Place.create))
            with contextlib.suppress(OSError):
                kept.push()
        kept._writer.release()
        contents = place.contents()
        events = place.appended("events.jsonl", contents).count(b"\n")
        assert all(f"programs/digest{k}.py" in contents for k in range(events)), most
        assert most < 40
    assert most > 8


def test_one_process_writes_and_another_waits_and_is_refused(place, tmp_path, quick):
    with opened(tmp_path / "run", place) as first:
        beating = threading.Event()

        def beat() -> None:
            while not beating.wait(0.1):
                first._writer.renew()

        thread = threading.Thread(target=beat)
        thread.start()
        said = list[str]()
        try:
            with pytest.raises(UnusableFile, match="is being written by process") as error:
                opened(tmp_path / "run", place, new=False, note=said.append)
        finally:
            beating.set()
            thread.join()
    assert error.value.problem is FileProblem.IN_USE
    assert "to see whether it is alive" in said[0]


def writers(place: Place) -> list[str]:
    return sorted(name for name in place.contents() if name.startswith("writers/"))


def test_a_writer_that_is_gone_is_followed(place, tmp_path, quick):
    first = opened(tmp_path / "run", place)
    with opened(tmp_path / "run", place, new=False):
        assert not first._writer.renew() and not first._writer.holds(), "and the first one knows"
    assert len(writers(place)) == 1
    begin = time.monotonic()
    with opened(tmp_path / "run", place, new=False):
        assert time.monotonic() - begin < 30, "one that is released is not waited for"
    dead = {"host": os.uname().nodename, "pid": 2**22 + 1}
    place.write("writers/000000009.json", json.dumps(dead).encode())
    with opened(tmp_path / "run", place, new=False):
        assert time.monotonic() - begin < 30, "nor a dead process of this machine"
        assert writers(place) == ["writers/000000010.json"]


def test_of_two_who_take_over_at_once_one_writes(place, tmp_path, quick):
    """Both see that the writer is gone; the next number is created by one, and the other waits for that one."""
    opened(tmp_path / "run", place)
    found, refused = list[Mirror](), list[UnusableFile]()
    both = threading.Barrier(2)

    def take_over() -> None:
        both.wait()
        try:
            found.append(opened(tmp_path / "run", place, new=False))
        except UnusableFile as error:
            refused.append(error)
            return
        for _ in range(60):
            time.sleep(0.05)
            found[-1]._writer.renew()

    threads = [threading.Thread(target=take_over) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1 and refused[0].problem is FileProblem.IN_USE
    assert found[0]._writer.holds()


def test_who_lost_the_right_to_write_ends(place, tmp_path, quick):
    ended, reasons = threading.Event(), list[str]()

    def stop(reason: str) -> None:
        reasons.append(reason)
        ended.set()

    other = b'{"host": "another"}'
    with opened(tmp_path / "run", place, stop=stop) as kept, search(tmp_path / "run", 1) as run:
        place.write("writers/000000002.json", other)
        assert ended.wait(60)
        run.append(asked(1))
        kept.changed()
    assert place.address in reasons[0]
    assert place.read("writers/000000002.json") == other, "which is left to it"
    assert place.appended("events.jsonl", place.contents()).count(b"\n") <= 1


def test_one_that_was_taken_over_while_it_copied_changes_no_history(place, tmp_path, impatient):
    """Its late part is what its successor meets, or it meets its successor's: neither is replaced."""
    one, two = tmp_path / "one", tmp_path / "two"
    late = opened(one, place)
    with search(one, 2) as run:
        late.push()
        fetch(place, two)
        with opened(two, place, new=False) as kept, search(two, 3, begin=2):
            kept.push()
            run.append(Told(generation=7))
            with pytest.raises(mirror._OtherHistory):
                late.push()
        assert place.appended("events.jsonl", place.contents()) == (two / "events.jsonl").read_bytes()
    said, reasons, ended = list[str](), list[str](), threading.Event()

    def stop(reason: str) -> None:
        reasons.append(reason)
        ended.set()

    with opened(two, place, new=False, note=said.append, stop=stop) as kept, search(two, 3, begin=3) as run:
        size = (two / "events.jsonl").stat().st_size
        place.write(f"events.jsonl.parts/{size:015d}", b'{"of": "the late one"}\n')
        run.append(asked(3))
        kept.changed()
        assert ended.wait(60)
    assert "has other events" in said[-1] and place.address in reasons[0]


def test_a_part_of_which_no_answer_came_is_gone_on_from(place, tmp_path):
    path = tmp_path / "run"
    with opened(path, place) as kept, search(path, 2) as run:
        log = (path / "events.jsonl").read_bytes()
        place.write(f"events.jsonl.parts/{0:015d}", log[:50])
        kept.push()
        size = (path / "events.jsonl").stat().st_size
        place.write(f"events.jsonl.parts/{size:015d}", b"")
        run.append(asked(2))
        kept.push()
        assert place.appended("events.jsonl", place.contents()) == (path / "events.jsonl").read_bytes()


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
    parts = place.appended("transcripts/exchanges.jsonl", place.contents())
    assert parts == b'{"turn": "its own"}\n'


def test_a_new_run_takes_the_place_of_none_and_holds_no_place(place, tmp_path):
    with opened(tmp_path / "run", place), search(tmp_path / "run", 1):
        pass
    with pytest.raises(UnusableFile, match="holds a run already"):
        opened(tmp_path / "other", place)
    assert b'"released": true' in (place.read(writers(place)[-1]) or b""), "who was refused is not waited for"
    with search(tmp_path / "other", 0) as other:
        other.append(Told(generation=7))
    with pytest.raises(UnusableFile, match="another run"):
        opened(tmp_path / "other", place, new=False)
    with pytest.raises(UnusableFile, match="other events"):
        fetch(place, tmp_path / "other")


def test_many_parts_become_one_when_it_ends(place, tmp_path, monkeypatch):
    monkeypatch.setattr(mirror, "_MANY_PARTS", 3)
    path = tmp_path / "run"
    with opened(path, place) as kept, search(path, 1) as run:
        for index in range(1, 9):
            run.append(asked(index))
            kept.push()
    parts = [name for name in place.contents() if name.startswith("events.jsonl.parts/")]
    assert len(parts) == 1
    assert place.appended("events.jsonl", place.contents()) == (path / "events.jsonl").read_bytes()


def test_what_is_removed_here_is_removed_there(place, tmp_path):
    path = tmp_path / "run"
    with opened(path, place) as kept, search(path, 1) as run:
        kept.push()
        Checkpoints(run.checkpoints).save("best-policy", {"w": np.zeros(3)})
        Checkpoints(run.checkpoints).save("generation-0-0", {"w": np.zeros(3)})
        kept.push()
        Checkpoints(run.checkpoints).delete("generation-0-0")
    names = {name.split("/")[1] for name in place.contents() if name.startswith("checkpoints/")}
    assert len(names) == 1


def test_a_damaged_copy_is_refused(place, tmp_path):
    with opened(tmp_path / "run", place), search(tmp_path / "run", 2):
        pass
    place.write("events.jsonl.parts/000000099999999", b"late\n")
    with pytest.raises(UnusableFile, match="damaged"):
        fetch(place, tmp_path / "there")
    assert not (tmp_path / "there" / "events.jsonl").exists()


def test_names_that_lead_elsewhere_are_not_fetched(tmp_path):
    place = Place(f"memory://hostile{time.monotonic_ns()}")
    with opened(tmp_path / "run", place), search(tmp_path / "run", 1):
        pass
    for name in (".bashrc", "programs/.hidden", "a b"):
        place.write(name, b"x")
    fetch(place, tmp_path / "there")
    assert not {".bashrc", "programs/.hidden", "a b"} & tree(tmp_path / "there").keys()
    os.symlink(tmp_path / "elsewhere", tmp_path / "there" / "linked")
    place.write("linked/file", b"x")
    with search(tmp_path / "run", 2, begin=1), opened(tmp_path / "run", place, new=False):
        place.write("linked/file", b"x")
    place.write("linked/file", b"x")
    with pytest.raises(UnusableFile):
        fetch(place, tmp_path / "there")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("address", "says"),
    [("runs", "is an address such as"), ("nothing://here", "nothing"), ("gs://bucket/runs", "gcsfs")],
)
def test_an_address_that_cannot_be_is_refused(address, says):
    with pytest.raises(InvalidSetting, match=says):
        Place(address)


def test_a_store_that_cannot_be_reached_is_said_in_a_sentence(tmp_path, monkeypatch):
    place = Place("memory://gone")

    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no credentials")

    monkeypatch.setattr(place.fs, "find", fails)
    with pytest.raises(UnusableFile, match="cannot be used .*no credentials"):
        fetch(place, tmp_path / "run")


def test_a_copy_that_fails_is_tried_again_and_the_search_goes_on(tmp_path, quick, monkeypatch):
    place, said, plain = Place(f"memory://flaky{time.monotonic_ns()}"), list[str](), Place.write
    down = threading.Event()
    down.set()

    def write(self: Place, name: str, data: bytes) -> None:
        if down.is_set() and not name.startswith("writers/"):
            raise OSError("the network is down")
        plain(self, name, data)

    monkeypatch.setattr(Place, "write", write)
    with opened(tmp_path / "run", place, note=said.append) as kept, search(tmp_path / "run", 2):
        kept.changed()
        end = time.monotonic() + 20
        while not said and time.monotonic() < end:
            time.sleep(0.01)
        down.clear()
    assert "lags behind" in said[0] and len(said) == 1
    assert place.appended("events.jsonl", place.contents()).count(b"\n") == 2


SEARCH = (
    "evolve", "--task", "probe-choice", "--generation", "2", "--seeds", "1", "--steps", "256", "--baselines",
    "--final-seeds", "0", "--ppo.envs", "16", "--ppo.unroll", "16",
)  # fmt: skip


@pytest.mark.long
def test_a_search_goes_on_on_another_machine(bucket, tmp_path, capsys, monkeypatch):
    """From the command line, through a bucket: the end is that of a search that stayed where it was."""
    store = f"{bucket}/searches"
    for folder in ("here", "there", "alone"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    status, _, err = outcome(capsys, *SEARCH, "--candidates", "2", "--name", "it", "--store", store)
    assert status == 0, err
    shutil.rmtree(tmp_path / "here")
    monkeypatch.chdir(tmp_path / "there")
    status, out, err = outcome(capsys, "runs", "fetch", f"{store}/it")
    assert status == 0 and f"--resume --store {store}" in out, err
    status, _, err = outcome(capsys, "evolve", "--name", "it", "--resume", "--candidates", "4", "--store", store)
    assert status == 0, err
    monkeypatch.chdir(tmp_path / "alone")
    for more in (("--candidates", "2", "--name", "it"), ("--name", "it", "--resume", "--candidates", "4")):
        status, _, err = outcome(capsys, *(SEARCH if "--resume" not in more else ("evolve",)), *more)
        assert status == 0, err
    logs = [read_log(tmp_path / folder / "runs" / "it" / "events.jsonl") for folder in ("there", "alone")]
    told = [[e.event for e in log if isinstance(e.event, Asked | Told)] for log in logs]
    assert told[0] == told[1] != []
    assert fetch(Place(f"{store}/it"), tmp_path / "there" / "runs" / "it") == 0
    status, _, err = outcome(capsys, *SEARCH, "--candidates", "2", "--name", "it", "--store", store)
    assert status == 2 and "holds a run already" in err


def test_the_store_is_named_again_by_who_resumes():
    settings = EvolveSettings(task="probe-choice", store="memory://somewhere")
    assert "store" not in settings.as_config(), "a run's folder cannot send files anywhere"
