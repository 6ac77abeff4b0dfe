"""Files in folders that others may have written: regular files in real folders, never links or special files.

A path is opened component by component from a folder that the caller trusts, without following symbolic links and
without waiting for the other end of a pipe. What is trusted is named by the user: the folder of runs, the folder of a
run, a file on the command line. These may be links or lie behind links; what lies inside may not.
"""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LARGEST = 64 << 20
"""Bytes of a file that is read as a whole, by default."""

_KINDS = (
    (stat.S_ISLNK, "it is a symbolic link"), (stat.S_ISDIR, os.strerror(errno.EISDIR)), (stat.S_ISFIFO, "it is a pipe"),
    (stat.S_ISSOCK, "it is a socket"), (stat.S_ISCHR, "it is a device"), (stat.S_ISBLK, "it is a device"),
)  # fmt: skip
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class NotAFile(OSError):
    """A path is refused for what it leads to: `strerror`, e.g. `it is a symbolic link`."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(errno.EINVAL, what, str(path))


def open_file(path: Path, flags: int = os.O_RDONLY, *, below: Path | None = None) -> int:
    """A descriptor of a regular file.

    Args:
        path: the file.
        flags: of `os.open`; a new file gets the permissions that the umask leaves.
        below: the trusted folder, of which no link leads out; by default the one that the file lies in.

    Raises:
        NotAFile: the path is, or leads through, a link or something that is not a regular file or a folder.
        OSError: it cannot be opened.
    """
    with _folder_of(path, below) as (folder, name):
        _require_file(path, folder, name)
        # O_NONBLOCK: no waiting for the other end, should it have become a pipe since.
        file = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666, dir_fd=folder)
    try:
        _require(path, os.fstat(file), stat.S_ISREG)
    except NotAFile:
        os.close(file)
        raise
    return file


def open_binary(path: Path, *, below: Path | None = None) -> io.BufferedReader:
    """A regular file to read from; arguments and errors are those of `open_file`."""
    return os.fdopen(open_file(path, below=below), "rb")


def read_bytes(path: Path, *, below: Path | None = None, links: bool = False, largest: int = LARGEST) -> bytes:
    """The content of a regular file of `largest` bytes at most.

    Args:
        links: whether the path itself may be or lead through links: for files that the user named.

    Raises:
        NotAFile: as `open_file`, or the file is larger.
        OSError: it cannot be read.
    """
    with open_binary(path.resolve() if links else path, below=None if links else below) as file:
        data = file.read(largest + 1)
    if len(data) > largest:
        raise NotAFile(path, f"it is larger than {largest / (1 << 20):g} MiB")
    return data


def read_text(path: Path, *, below: Path | None = None, links: bool = False, largest: int = LARGEST) -> str:
    """As `read_bytes`, decoded as UTF-8 with every line end as a line feed; UnicodeDecodeError for what is no text."""
    text = read_bytes(path, below=below, links=links, largest=largest).decode("utf-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def replace(path: Path, data: bytes, *, below: Path | None = None) -> None:
    """Write a file and sync it: readers and crashes see the old content or the new.

    Raises:
        NotAFile: the path leads through a link, or something that is not a regular file is in its place.
        OSError: it cannot be written.
    """
    with _folder_of(path, below) as (folder, name):
        _require_file(path, folder, name)
        unfinished = f".{name}.{secrets.token_hex(6)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(unfinished, flags, 0o666, dir_fd=folder)
        try:
            with os.fdopen(file, "wb") as opened:
                opened.write(data)
                opened.flush()
                os.fsync(opened.fileno())
            os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(unfinished, dir_fd=folder)
            raise
        sync_folder(folder)


def sync_folder(folder: int | Path) -> None:
    """Make renames and new files in a folder, or the folder of a descriptor, survive a power failure."""
    descriptor = os.open(folder, _FOLDER) if isinstance(folder, Path) else folder
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a folder; the rename itself is still atomic.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        if isinstance(folder, Path):
            os.close(descriptor)


def is_there(path: Path) -> bool:
    """Whether there is anything of this name, a link that leads nowhere included."""
    return os.path.lexists(path)


def is_file(path: Path, *, below: Path | None = None) -> bool:
    """Whether there is a regular file, reached without links; False on errors."""
    try:
        with _folder_of(path, below) as (folder, name):
            return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def make_folder(path: Path, *, below: Path) -> None:
    """Make a folder and those between it and the trusted folder `below`, unless they are there.

    Raises:
        NotAFile: one of them is a link or no folder.
        OSError: it cannot be made.
    """
    folder = below
    for part in _parts(path, below):
        folder = folder / part
        with suppress(FileExistsError):
            os.mkdir(folder)
        require_folder(folder)


def require_folder(path: Path) -> None:
    """Raise `NotAFile` if a path is there and is a link or anything else than a folder."""
    with suppress(FileNotFoundError):
        _require(path, os.lstat(path), stat.S_ISDIR, "it is a file")


def require_tree(path: Path) -> None:
    """Raise `NotAFile` if a folder is a link, or holds anything else than regular files and folders at any depth.

    For libraries that open files by themselves; a folder that does not exist passes, and so does what another thread
    removes or renames meanwhile, as orbax does with what it has written.
    """
    require_folder(path)
    folders = [path]
    while folders:
        with suppress(FileNotFoundError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                    continue
                with suppress(FileNotFoundError):
                    _require(Path(entry.path), entry.stat(follow_symlinks=False), stat.S_ISREG)


@contextmanager
def _folder_of(path: Path, below: Path | None) -> Iterator[tuple[int, str]]:
    """The folder of a file, opened without following a link after `below`, and the file's name in it."""
    root = path.parent if below is None else below
    *between, name = _parts(path, root)
    folder = os.open(root, _FOLDER)
    try:
        at = root
        for part in between:
            at = at / part
            try:
                _require(at, os.stat(part, dir_fd=folder, follow_symlinks=False), stat.S_ISDIR, "it is a file")
            except NotAFile as error:
                raise NotAFile(at, f"{part} is no folder: {error.strerror}") from None
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder, name
    finally:
        os.close(folder)


def _parts(path: Path, below: Path) -> tuple[str, ...]:
    """The components of a path after a folder; none of them may lead back out of it."""
    try:
        parts = path.relative_to(below).parts
    except ValueError:
        raise NotAFile(path, f"it does not lie in {below}") from None
    if ".." in parts or not parts:
        raise NotAFile(path, f"it does not lie in {below}")
    return parts


def _require_file(path: Path, folder: int, name: str) -> None:
    with suppress(FileNotFoundError):
        _require(path, os.stat(name, dir_fd=folder, follow_symlinks=False), stat.S_ISREG)


def _require(path: Path, status: os.stat_result, is_wanted: object, otherwise: str = "it is no regular file") -> None:
    if not is_wanted(status.st_mode):  # type: ignore[operator]
        raise NotAFile(path, next((what for is_kind, what in _KINDS if is_kind(status.st_mode)), otherwise))
