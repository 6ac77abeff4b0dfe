"""The folder of a run at an address of fsspec."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from jaxreward import files
from jaxreward.errors import FileProblem, InvalidSetting, UnusableFile
from jaxreward.extras import require
from jaxreward.sentences import mention


@contextlib.contextmanager
def _as_os_error() -> Iterator[None]:
    """Libraries of buckets raise errors of their own where a file system raises an OSError."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


class Place:
    """The folder of a run at an address, such as `s3://bucket/runs/first`, `file:///mnt/runs/first`, `memory://first`.

    Raises:
        MissingPackage: fsspec is not installed.
        InvalidSetting: it knows no such address, the package for it is not installed, or there is a password in it.
        UnusableFile: nothing can be reached there.
    """

    def __init__(self, address: str) -> None:
        require("store", mention("store"), "store")
        import fsspec
        from fsspec.implementations.local import LocalFileSystem

        if "://" not in address:
            message = f"{mention('store')} is an address such as s3://bucket/runs or file:///mnt/runs, not {address!r}"
            raise InvalidSetting(message, "store")
        if _has_secrets(address):
            message = (
                f"the address of {mention('store')} has a password or options in it, and would be logged: put them "
                "where the library of the file system, or fsspec's configuration, expects them"
            )
            raise InvalidSetting(message, "store")
        self.address = address.rstrip("/")
        try:
            with _as_os_error():
                self.fs, self.root = fsspec.core.url_to_fs(
                    self.address, use_listings_cache=False, skip_instance_cache=True
                )
        except OSError as error:
            if isinstance(error.__cause__, ImportError | ValueError):
                raise InvalidSetting(f"{mention('store', address)}: {error.__cause__}", "store") from error
            raise self.unreachable(error) from error
        self.local = Path(self.root) if isinstance(self.fs, LocalFileSystem) else None
        self._made = set[str]()

    @property
    def parent(self) -> str:
        """The address of the folder of runs."""
        return self.address.rpartition("/")[0]

    def _at(self, name: str) -> str:
        return f"{self.root}/{name}"

    def _make_folder_of(self, name: str) -> None:
        folder = self._at(name).rpartition("/")[0]
        if self.local is not None or folder not in self._made:
            self.fs.makedirs(folder, exist_ok=True)
            self._made.add(folder)

    def read(self, name: str) -> bytes | None:
        """A file; None where there is none."""
        try:
            with _as_os_error():
                return self.fs.cat_file(self._at(name))
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Write a file, or replace it: at once on file systems of this machine and in buckets."""
        with _as_os_error():
            self._make_folder_of(name)
            if self.local is not None:
                files.replace(self.local / name, data)
            else:
                self.fs.pipe_file(self._at(name), data)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file that is not there yet; whether it was written. Of two who try only one succeeds."""
        try:
            with _as_os_error():
                self._make_folder_of(name)
                self.fs.pipe_file(self._at(name), data, mode="create")
        except FileExistsError:
            return False
        return True

    def delete(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError), _as_os_error():
            self.fs.rm_file(self._at(name))

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, in order; none where there is no folder."""
        try:
            with _as_os_error():
                found = self.fs.ls(self._at(folder), detail=False)
        except FileNotFoundError:
            return []
        return sorted(name for path in found if (name := path.rstrip("/").rpartition("/")[2]) and name != folder)

    def shown(self, error: BaseException) -> str:
        """An error of the file system, in a line."""
        return f"{self.address}: {(str(error).strip().splitlines() or [type(error).__name__])[0][:300]}"

    def unreachable(self, error: BaseException) -> UnusableFile:
        message = f"the store cannot be used ({self.shown(error)}): correct the address, or the access to it"
        return UnusableFile(message, self.address, FileProblem.UNREADABLE)


def _has_secrets(address: str) -> bool:
    """Whether there is a password, or anything after a question mark, which may be a token."""
    try:
        parts = [urlsplit(part) for part in address.split("::")]
        return any(part.password or part.query for part in parts) or "?" in address
    except ValueError:
        return True
