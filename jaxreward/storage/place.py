"""The folder of a run at an address of fsspec."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from jaxreward.errors import FileProblem, InvalidSetting, UnusableFile
from jaxreward.extras import require
from jaxreward.sentences import mention

PARTS = ".parts"
"""What the name of an appended file ends with where it is a folder of parts, each named by the byte it begins at."""

Contents = dict[str, int]
"""Sizes of files by their paths in a run's folder."""


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
        InvalidSetting: it knows no such address, or the package for it is not installed.
    """

    def __init__(self, address: str) -> None:
        require("store", mention("store"), "store")
        import fsspec

        if "://" not in address:
            message = f"{mention('store')} is an address such as s3://bucket/runs or file:///mnt/runs, not {address!r}"
            raise InvalidSetting(message, "store")
        self.address = address.rstrip("/")
        try:
            self.fs, self.root = fsspec.core.url_to_fs(self.address, use_listings_cache=False, skip_instance_cache=True)
        except (ImportError, ValueError) as error:
            raise InvalidSetting(f"{mention('store', address)}: {error}", "store") from error

    @property
    def parent(self) -> str:
        """The address of the folder of runs."""
        return self.address.rpartition("/")[0]

    def at(self, name: str) -> str:
        return f"{self.root}/{name}"

    def read(self, name: str) -> bytes | None:
        """A file; None where there is none."""
        try:
            with _as_os_error():
                return self.fs.cat_file(self.at(name))
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        with _as_os_error():
            self.fs.makedirs(self.at(name).rpartition("/")[0], exist_ok=True)
            self.fs.pipe_file(self.at(name), data)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file that is not there yet; whether it was written. Of two who try only one succeeds."""
        try:
            with _as_os_error():
                self.fs.makedirs(self.at(name).rpartition("/")[0], exist_ok=True)
                self.fs.pipe_file(self.at(name), data, mode="create")
        except FileExistsError:
            return False
        return True

    def delete(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError), _as_os_error():
            self.fs.rm_file(self.at(name))

    def contents(self) -> Contents:
        """The files there, parts of appended ones under their own names."""
        try:
            with _as_os_error():
                found: Mapping[str, Mapping[str, Any]] = self.fs.find(self.root, detail=True)
        except FileNotFoundError:
            return {}
        begin = self.fs._strip_protocol(self.root).rstrip("/") + "/"
        return {path.removeprefix(begin).removeprefix("/"): int(about["size"] or 0) for path, about in found.items()}

    def appended(self, name: str, contents: Contents) -> bytes:
        """An appended file, put together from its parts.

        Raises:
            UnusableFile: a part is missing.
        """
        found = bytearray()
        for offset, part in parts_of(name, contents):
            if offset > len(found):
                raise UnusableFile(
                    f"{self.address}/{name} lacks what is between byte {len(found)} and {offset}: the copy is damaged",
                    self.address,
                    FileProblem.DAMAGED,
                )
            found[offset:] = self.read(part) or b""
        return bytes(found)

    def shown(self, error: Exception) -> str:
        """An error of the file system, in a line."""
        return f"{self.address}: {(str(error).strip().splitlines() or [type(error).__name__])[0][:300]}"


def parts_of(name: str, contents: Contents) -> list[tuple[int, str]]:
    """The parts of an appended file, each with the byte that it begins at, in order."""
    begin = f"{name}{PARTS}/"
    parts = [path for path in contents if path.startswith(begin) and path.removeprefix(begin).isdigit()]
    return sorted((int(path.removeprefix(begin)), path) for path in parts)
