"""A copy of a run's folder at an address of fsspec, kept up while one process writes the run.

A copy is a snapshot (`snapshot`), which is written when all that it refers to is there: at any moment a run that can be
resumed, at most one copying behind.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from jaxreward import files
from jaxreward.errors import FileProblem, UnusableFile
from jaxreward.runs.disk import write_atomic
from jaxreward.storage import snapshot as snapshots
from jaxreward.storage.contents import LARGEST, begins_with, complete, content_of, is_safe, names_of, relation
from jaxreward.storage.place import Place
from jaxreward.storage.snapshot import FILES, LOG, Piece, Snapshot, Whole
from jaxreward.storage.writer import WaitingStopped, Writer

_LONG_S, _LAST_S, _LAST_STOPPED_S = 5.0, 120.0, 20.0
"""After what time a user is told that a store is waited for, how long at most at the end, and then after a signal."""
_LOOK_S, _PAUSE_S, _AGAIN_S, _CHECK_S = 20.0, 1.0, 5.0, 300.0
"""How often checkpoints are looked for where nothing is logged, the least between two copyings, until one that failed
is tried again, and between looks at whether all is there."""


class _PlaceTaken(Exception):
    """Another process writes there now."""


class Mirror:
    """Keeps the copy of a run up, from its first event to the last; use as a context.

    All that reaches for the store is done in threads: a store that does not answer delays the end of a search by two
    minutes at most, and by twenty seconds once it was asked to stop.

    Args:
        path: the folder of the run.
        place: where the copy is.
        new: whether the run begins; otherwise it may not lag behind its copy.
        note: shows a sentence to the user.
        stopped: whether the search was asked to stop.
        stop: called with a reason where the search must end: another process has taken its place.

    Raises:
        UnusableFile: on entering: another process writes there; the copy is of another run, or ahead of this one.
    """

    def __init__(
        self, path: Path, place: Place, new: bool, note: Callable[[str], None], stopped: Callable[[], bool],
        stop: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._path, self._place, self._new, self._note = path, place, new, note
        self._stopped, self._stop = stopped, stop
        self._writer: Writer | None = None
        self._failure: BaseException | None = None
        self._snapshot, self._count = Snapshot(), 0
        self._known, self._own = set[str](), set[str]()
        self._seen = dict[str, Whole]()
        self._opened, self._changed = threading.Event(), threading.Event()
        self._ended, self._done = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._serve, name="store", daemon=True)

    def __enter__(self) -> Mirror:
        self._thread.start()
        begin, told = time.monotonic(), False
        while not self._opened.wait(0.05) and not self._stopped():
            if not told and time.monotonic() - begin > _LONG_S:
                self._note(f"waiting for the store {self._place.address}")
                told = True
        if self._failure is not None and not isinstance(self._failure, WaitingStopped):
            self._done.wait(_LONG_S)  # until it has given up its place
            raise self._failure
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._changed.set()
        begin, told = time.monotonic(), False
        while not self._done.wait(0.05):
            waited = time.monotonic() - begin
            if not told and waited > _LONG_S:
                self._note(f"waiting until the last events are at {self._place.address}")
                told = True
            if waited > (_LAST_STOPPED_S if self._stopped() else _LAST_S):
                self._lacks("it does not answer")
                return

    def changed(self) -> None:
        """Something was logged."""
        self._changed.set()

    # ---- in the thread

    def _serve(self) -> None:
        try:
            try:
                self._open()
            except BaseException as error:
                self._failure = self._place.unreachable(error) if isinstance(error, OSError) else error
                return
            finally:
                self._opened.set()
            self._keep_up()
            self._finish()
        except _PlaceTaken:
            self._note(
                f"{self._place.address} is written by another process now: it has not the last events of this one"
            )
        finally:
            if self._writer is not None and not self._writer.lost:
                with contextlib.suppress(OSError):
                    self._writer.release()
            self._done.set()

    def _open(self) -> None:
        lost = lambda: self._stop(f"another process that writes {self._place.address}")  # noqa: E731
        self._writer = Writer(self._place, self._note, lambda: self._ended.is_set() or self._stopped(), lost)
        self._snapshot = snapshots.latest(self._place)
        self._require_ahead()
        self._bring_exchanges()
        there = snapshots.digests_in(self._place)
        for digest in there - self._snapshot.digests:  # of copyings that were cut off
            self._place.delete(f"{FILES}/{digest}")
        self._known = self._snapshot.digests & there

    def _require_ahead(self) -> None:
        """Require that a copy holds nothing of the run that its folder has not."""
        address = self._place.address
        if self._new and self._snapshot.size(LOG):
            what = "a run already: fetch and resume it (`jaxreward runs fetch`), or choose another name for a new one"
        elif self._new or (how := relation(self._path, self._place, self._snapshot)) == "ahead":
            return
        elif how == "behind":
            what = "later events or checkpoints of this run: fetch them (`jaxreward runs fetch`)"
        else:
            what = "another run: name another store, or another name"
        raise UnusableFile(f"{address} holds {what}", address, FileProblem.EXISTS)

    def _bring_exchanges(self) -> None:
        """What language models replied elsewhere before anything was logged of it is brought here. Where exchanges
        differ, those here take the place of the others, to which no event refers."""
        appended = dict(self._snapshot.appended)
        for name, pieces in self._snapshot.appended.items():
            here = complete(content_of(self._path, name))
            if begins_with(here, pieces):
                continue
            there = snapshots.joined(self._place, pieces)
            if there.startswith(here) and is_safe(name) and not self._new:
                files.make_folder((self._path / name).parent, below=self._path)
                write_atomic(self._path / name, there, below=self._path)
            else:
                del appended[name]
        self._snapshot = Snapshot(self._snapshot.whole, appended)

    def _keep_up(self) -> None:
        checked, failing = time.monotonic(), False
        while not self._ended.is_set():
            self._changed.wait(_LOOK_S)
            self._changed.clear()
            try:
                if time.monotonic() - checked > _CHECK_S:
                    self._require_all()
                    checked = time.monotonic()
                self.push()
                if failing:
                    self._note(f"the copy at {self._place.address} has caught up")
                failing = False
                self._ended.wait(_PAUSE_S)
            except _PlaceTaken:
                raise
            except Exception as error:  # whatever a library of buckets raises
                if not failing:
                    self._note(f"the copy lags behind ({self._place.shown(error)}); it is tried again")
                failing = True
                self._changed.set()
                self._ended.wait(_AGAIN_S)

    def _finish(self) -> None:
        try:
            self._require_all()
            self.push()
        except _PlaceTaken:
            raise
        except Exception as error:
            self._lacks(str(error) or type(error).__name__)

    def _lacks(self, why: str) -> None:
        self._note(
            f"the copy lacks the last events ({self._place.shown(OSError(why))}); they are in {self._path}: the same "
            "command with --resume completes it"
        )

    def _require_all(self) -> None:
        """Copy again what is missing there: a writer whose place was taken may have removed it."""
        missing = self._snapshot.digests - snapshots.digests_in(self._place)
        if missing:
            self._known -= missing
            self._seen.clear()
            self._snapshot = Snapshot()

    def push(self) -> None:
        """Copy what is new: what the events so far refer to, then the snapshot that has these.

        Raises:
            OSError: the place cannot be reached.
        """
        names = names_of(self._path)
        logs = {name: self._end_of(name) for name in names if name.endswith(".jsonl")}  # first: the rest is of them
        whole = dict[str, Whole]()
        for name in names_of(self._path):
            if not name.endswith(".jsonl") and (file := self._copied(name)) is not None:
                whole[name] = file
        appended = {name: self._copied_pieces(name, end) for name, end in logs.items()}
        new = Snapshot(whole, {name: pieces for name, pieces in appended.items() if pieces})
        if new == self._snapshot:
            return
        assert self._writer is not None
        if not self._writer.holds():
            raise _PlaceTaken
        self._count += 1
        snapshots.write(self._place, new, self._writer.number, self._count)
        if self._count == 1:
            snapshots.forget(self._place, self._writer.number)
        self._snapshot = new
        unused = self._own - new.digests
        if unused and self._writer.holds():
            for digest in unused:
                self._place.delete(f"{FILES}/{digest}")
            self._own -= unused
            self._known -= unused

    def _put(self, data: bytes) -> Piece:
        piece = Piece(snapshots.digest_of(data), len(data))
        if piece.digest not in self._known:
            self._place.write(f"{FILES}/{piece.digest}", data)
            self._known.add(piece.digest)
            self._own.add(piece.digest)
        return piece

    def _copied(self, name: str) -> Whole | None:
        """A file that is there now; None where it is gone."""
        try:
            status = (self._path / name).stat()
            seen = self._seen.get(name)
            if seen is None or (seen.changed_ns, seen.piece.size) != (status.st_mtime_ns, status.st_size):
                data = files.read_bytes(self._path / name, below=self._path, largest=LARGEST)
                seen = self._seen[name] = Whole(self._put(data), status.st_mtime_ns)
            return seen
        except FileNotFoundError:
            return None

    def _end_of(self, name: str) -> int:
        """Where the last complete line of a file ends."""
        begin = self._snapshot.size(name)
        return begin + len(complete(self._read(name, begin)))

    def _read(self, name: str, begin: int, size: int = -1) -> bytes:
        with files.open_binary(self._path / name, below=self._path) as file:
            file.seek(begin)
            return file.read(size)

    def _copied_pieces(self, name: str, end: int) -> Sequence[Piece]:
        """The pieces of an appended file up to `end`. The last ones are joined where they are not much larger than
        what is new, so that there are as many as the logarithm of its size."""
        pieces = list(self._snapshot.appended.get(name, ()))
        begin = sum(piece.size for piece in pieces)
        if begin == end:
            return pieces
        while pieces and pieces[-1].size <= 2 * (end - begin):
            begin -= pieces.pop().size
        return [*pieces, self._put(self._read(name, begin, end - begin))]
