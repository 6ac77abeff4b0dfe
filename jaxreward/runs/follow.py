"""Reading a log as it grows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from jaxreward import files
from jaxreward.errors import UserError
from jaxreward.runs.log import Entry, decode_lines, unreadable


class LogReader:
    """What is new in a log each time it is asked, while another process writes it.

    A line is read once it is complete. Where the log was cut back, or replaced by a copy, it is read again from its
    first line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = self._known = 0
        self._inode: int | None = None

    def read(self) -> tuple[list[Entry], bool]:
        """The entries since the last time, and whether they begin anew: all those before count no more.

        Raises:
            UserError: the log, or a line of it, cannot be read.
        """
        try:
            return self._news() if files.is_there(self.path) else ([], False)  # it may not have begun
        except OSError as error:
            raise unreadable(self.path, error) from error

    def _news(self) -> tuple[list[Entry], bool]:
        with files.open_binary(self.path) as file:
            status = os.fstat(file.fileno())
            begun = self._inode is not None
            again = begun and (status.st_ino != self._inode or status.st_size < self._offset)
            if again:
                self._offset = self._known = 0
            self._inode = status.st_ino
            try:
                return self._take(file), again
            except UserError:
                if not self._offset:
                    raise
            self._offset = self._known = 0  # cut, and longer by now than it was
            return self._take(file), True

    def _take(self, file: BinaryIO) -> list[Entry]:
        file.seek(self._offset)
        entries, size = decode_lines(file, self.path, self._known)
        self._offset, self._known = self._offset + size, self._known + len(entries)
        return entries
