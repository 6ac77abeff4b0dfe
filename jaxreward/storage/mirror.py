"""A copy of a run's folder at an address of fsspec, kept up while one process writes the run.

Appended files (the log, transcripts) are copied in parts of complete lines, everything else as a whole. What an event
refers to is there before the event is; so the copy is at any moment a run that can be resumed, at most one copying
behind. One process writes it. Parts are created and never replaced, so that one whose place was taken while it was
copying cannot change the history that its successor goes on with.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from jaxreward import files
from jaxreward.errors import FileProblem, UnusableFile
from jaxreward.runs.disk import explain_full_disk, make_folder, write_atomic
from jaxreward.storage.place import PARTS, Contents, Place, parts_of
from jaxreward.storage.writer import BEAT_S, WRITERS, Writer

LOG = "events.jsonl"
_MANY_PARTS = 32
_AGAIN_S = 5.0
"""Until a copying that failed is tried again."""
_SAFE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_LARGEST = 4 << 30
_NOT_COPIED = ("events.lock",)


class _OtherHistory(Exception):
    """Another process has written what comes next."""


class Mirror:
    """Keeps the copy of a run up, from its first event to the last; use as a context.

    Args:
        path: the folder of the run.
        place: where the copy is.
        new: whether the run begins; otherwise it may not lag behind its copy.
        note: shows a sentence to the user.
        stop: called with a reason where the search must end: another process has taken its place.

    Raises:
        UnusableFile: another process writes there; it holds another run, or later events of this one.
    """

    def __init__(
        self, path: Path, place: Place, new: bool, note: Callable[[str], None], stop: Callable[[str], None]
    ) -> None:
        self._path, self._place, self._note, self._stop = path, place, note, stop
        self._seen = dict[str, tuple[int, int]]()
        self._changed, self._ended, self._failing = threading.Event(), threading.Event(), False
        try:
            self._writer = Writer(place, note)
            try:
                contents = place.contents()
                sent = _sent(path, place, contents, new)
            except BaseException:
                self._writer.release()
                raise
        except OSError as error:
            raise _unreachable(place, error) from error
        self._there = {name for name in contents if PARTS not in name and not name.startswith(WRITERS)}
        self._sent = sent
        self._thread = threading.Thread(target=self._serve, name="store", daemon=True)

    def __enter__(self) -> Mirror:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._changed.set()
        self._thread.join()
        try:
            if self._writer.renew():
                self.push()
                self._compact()
                self._writer.release()
        except OSError as error:
            self._note(
                f"the copy lacks the last events ({self._place.shown(error)}); they are in {self._path}: the same "
                "command with --resume completes it"
            )
        except _OtherHistory:
            self._note(f"{self._place.address} has other events than {self._path}: another process went on with it")

    def changed(self) -> None:
        """Something was logged."""
        self._changed.set()

    def push(self) -> None:
        """Copy what is new. First what the events so far refer to, then these."""
        log = self._path / LOG
        new = {log: self._lines(log)}
        found = [path for path in _files(self._path) if path != log]
        for path in sorted(found, key=lambda path: (path.name == "checksums.json", str(path))):
            name = path.relative_to(self._path).as_posix()
            if path.suffix == ".jsonl":
                new[path] = self._lines(path)
            else:
                self._whole(path, name)
        for path in [*(path for path in new if path != log), log]:
            self._append(path.relative_to(self._path).as_posix(), new[path])
        names = {path.relative_to(self._path).as_posix() for path in found}
        for name in self._there - names:
            self._place.delete(name)
        self._there &= names

    def _whole(self, path: Path, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            seen = status.st_mtime_ns, status.st_size
            if self._seen.get(name) != seen:
                data = files.read_bytes(path, below=self._path, largest=_LARGEST)
                self._place.write(name, data)
                self._seen[name] = seen
                self._there.add(name)

    def _lines(self, path: Path) -> bytes:
        """The complete lines of an appended file that are not there yet."""
        try:
            with files.open_binary(path, below=self._path) as file:
                file.seek(self._sent.get(path.relative_to(self._path).as_posix(), 0))
                data = file.read()
        except FileNotFoundError:
            return b""
        return data[: data.rfind(b"\n") + 1]

    def _append(self, name: str, data: bytes) -> None:
        while data:
            begin = self._sent.get(name, 0)
            part, written = f"{name}{PARTS}/{begin:015d}", len(data)
            if not self._place.create(part, data):
                there = self._place.read(part)  # of an attempt of which nothing was heard, or cut off
                if there == b"":
                    self._place.write(part, data)
                elif there is None or not data.startswith(there):
                    raise _OtherHistory
                else:
                    written = len(there)
            self._sent[name] = begin + written
            data = data[written:]

    def _compact(self) -> None:
        """Replace many parts by one. Those that begin within it are the same bytes."""
        contents = self._place.contents()
        for name in self._sent:
            parts = parts_of(name, contents)
            if len(parts) > _MANY_PARTS:
                self._place.write(parts[0][1], self._place.appended(name, contents))
                for _, part in parts[1:]:
                    self._place.delete(part)

    def _serve(self) -> None:
        renewed = time.monotonic()
        while not self._ended.is_set():
            self._changed.wait(BEAT_S)
            try:
                late = time.monotonic() - renewed > BEAT_S
                if not (self._writer.renew() if late else self._writer.holds()):
                    raise _OtherHistory
                renewed = time.monotonic() if late else renewed
                self._changed.clear()
                self.push()
                self._failing = False
            except _OtherHistory:
                return self._stop(f"another process that writes {self._place.address}")
            except OSError as error:
                if not self._failing:
                    self._note(f"the copy lags behind ({self._place.shown(error)}); it is tried again")
                self._failing = True
                self._changed.set()
                self._ended.wait(_AGAIN_S)


def _files(folder: Path) -> Iterator[Path]:
    """The files of a run that are copied: neither locks nor what is still being written."""
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if _SAFE.fullmatch(name) and ".orbax" not in name]
        for name in names:
            path = Path(root, name)
            if _SAFE.fullmatch(name) and name not in _NOT_COPIED and not path.is_symlink() and path.is_file():
                yield path


def _sent(path: Path, place: Place, contents: Contents, new: bool) -> dict[str, int]:
    """How much of each appended file the copy has; it may hold no event that the run in `path` has not.

    Exchanges that it has and the run lacks are brought here. Where they differ, those of the run take the place of the
    others: no event refers to them.
    """
    sent = dict[str, int]()
    for name in {LOG} | {path.partition(PARTS)[0] for path in contents if PARTS in path}:
        there, here = place.appended(name, contents), b""
        if new and there and name == LOG:
            raise UnusableFile(
                f"{place.address} holds a run already: fetch and resume it (`jaxreward runs fetch`), or choose another "
                "name for a new one",
                place.address,
                FileProblem.EXISTS,
            )
        if files.is_there(path / name):
            here = files.read_bytes(path / name, below=path, largest=_LARGEST)
        if here.startswith(there):
            sent[name] = len(there)
        elif name == LOG:
            what = "later events of this run" if there.startswith(here[: here.rfind(b"\n") + 1]) else "another run"
            raise UnusableFile(
                f"{place.address} holds {what}: fetch it (`jaxreward runs fetch`), or name another store",
                place.address,
                FileProblem.EXISTS,
            )
        elif not new and there.startswith(here[: here.rfind(b"\n") + 1]) and _is_safe(name):
            files.make_folder((path / name).parent, below=path)
            write_atomic(path / name, there, below=path)
            sent[name] = len(there)
        else:
            for _, part in parts_of(name, contents):
                place.delete(part)
    return sent


def _is_safe(name: str) -> bool:
    return all(_SAFE.fullmatch(part) for part in name.split("/"))


def _unreachable(place: Place, error: Exception) -> UnusableFile:
    message = f"the store cannot be used ({place.shown(error)}): correct the address, or the access to it"
    return UnusableFile(message, place.address, FileProblem.UNREADABLE)


def fetch(place: Place, path: Path) -> int:
    """Bring the folder of a run up to its copy; how many bytes were fetched, 0 where it lacks nothing.

    The copy is as any run of somebody else: its files are read as data. A fetch that is interrupted is repeated.

    Raises:
        UnusableFile: there is no run, its copy is damaged, or the folder has events that the copy does not.
    """
    try:
        contents = place.contents()
        log = place.appended(LOG, contents)
        if not log:
            message = f"there is no run at {place.address}: name the folder of one"
            raise UnusableFile(message, place.address, FileProblem.MISSING)
        here = files.read_bytes(path / LOG, largest=_LARGEST) if files.is_there(path / LOG) else b""
        here = here[: here.rfind(b"\n") + 1]
        if here.startswith(log):
            return 0
        if not log.startswith(here):
            raise UnusableFile(
                f"{path} has other events than {place.address}: two processes went on with one run; name another "
                "folder with --out",
                path,
                FileProblem.EXISTS,
            )
        return _fetched(place, path, contents, log)
    except OSError as error:
        if isinstance(error, files.NotAFile):
            raise
        raise _unreachable(place, error) from error


def _fetched(place: Place, path: Path, contents: Contents, log: bytes) -> int:
    make_folder(path)
    names, total = {name.partition(PARTS)[0] for name in contents if not name.startswith(WRITERS)} - {LOG}, len(log)
    for name in sorted(names):
        if not _is_safe(name):
            continue
        data = place.read(name) if name in contents else place.appended(name, contents)
        if data is None:
            continue  # it was replaced meanwhile
        with explain_full_disk(path / name):
            files.make_folder((path / name).parent, below=path) if "/" in name else None
        write_atomic(path / name, data, below=path)
        total += len(data)
    write_atomic(path / LOG, log, below=path)  # last: without it all of this is repeated
    return total
