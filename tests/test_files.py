"""Files of folders that somebody else may have made."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from jaxreward import files
from jaxreward.files import NotAFile


def fifo(path: Path) -> None:
    os.mkfifo(path)


def zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link(path: Path) -> None:
    target = path.with_name("target of the link")
    target.write_text("kept")
    path.symlink_to(target)


def dangling(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.open(path.parent, os.O_RDONLY)
        made.bind(f"/proc/self/fd/{here}/{path.name}")  # a path may be too long for it
        os.close(here)


SPECIAL = {"fifo": fifo, "zeros": zeros, "link": link, "dangling": dangling, "socket": listening, "folder": Path.mkdir}


@pytest.fixture(params=SPECIAL.values(), ids=list(SPECIAL))
def special(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "a"
    request.param(path)
    return path


@pytest.mark.parametrize(
    "use",
    [
        files.read_bytes,
        files.read_text,
        lambda path: files.replace(path, b"new"),
        lambda path: files.open_file(path, os.O_RDWR | os.O_CREAT),
        lambda path: files.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ],
)
def test_paths_that_are_no_files_are_refused(special: Path, use: Callable[[Path], object]):
    before = sorted(special.parent.iterdir())
    with pytest.raises(NotAFile, match=r"it is a (pipe|symbolic link|socket)|Is a directory"):
        use(special)
    assert sorted(special.parent.iterdir()) == before and not files.is_file(special)
    kept = special.with_name("target of the link")
    assert not kept.exists() or kept.read_text() == "kept"


def test_a_device_is_refused():
    with pytest.raises(NotAFile, match="it is a device"):
        files.read_bytes(Path("/dev/zero"))


@pytest.mark.parametrize("between", [link, fifo, Path.touch])
def test_a_folder_on_the_way_is_one(tmp_path: Path, between: Callable[[Path], object]):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_text("elsewhere")
    if between is link:
        (tmp_path / "inner").symlink_to(tmp_path / "real")
    else:
        between(tmp_path / "inner")
    path = tmp_path / "inner" / "a"
    for use in (files.read_text, lambda path, below: files.replace(path, b"x", below=below)):
        with pytest.raises(NotAFile, match="inner is no folder"):
            use(path, below=tmp_path)
    with pytest.raises(NotAFile):
        files.make_folder(tmp_path / "inner" / "deeper", below=tmp_path)
    assert (tmp_path / "real" / "a").read_text() == "elsewhere" and len(list((tmp_path / "real").iterdir())) == 1


@pytest.mark.parametrize("name", ["../a", "inner/../../a", "/etc/hostname"])
def test_links_out_of_the_trusted_folder_are_refused(tmp_path: Path, name: str):
    (tmp_path / "run").mkdir()
    with pytest.raises(NotAFile, match="does not lie in"):
        files.replace(tmp_path / "run" / name, b"x", below=tmp_path / "run")
    assert not (tmp_path / "a").exists()


def test_the_trusted_folder_may_be_a_link(tmp_path: Path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "disk")
    files.make_folder(tmp_path / "run" / "inner", below=tmp_path / "run")
    files.replace(tmp_path / "run" / "inner" / "a", b"x", below=tmp_path / "run")
    assert (tmp_path / "disk" / "inner" / "a").read_bytes() == b"x"


def test_a_file_that_the_user_names_may_be_a_link(tmp_path: Path):
    link(tmp_path / "a")
    assert files.read_text(tmp_path / "a", links=True) == "kept"
    zeros(tmp_path / "b")
    with pytest.raises(NotAFile):
        files.read_text(tmp_path / "b", links=True)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path):
    with open(tmp_path / "a", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(NotAFile, match="larger than 1 MiB"):
        files.read_bytes(tmp_path / "a", largest=1 << 20)


def test_a_tree_has_files_and_folders_alone(tmp_path: Path):
    files.require_tree(tmp_path / "absent")
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").touch()
    files.require_tree(tmp_path / "a")
    fifo(tmp_path / "a" / "b" / "d")
    with pytest.raises(NotAFile, match="it is a pipe"):
        files.require_tree(tmp_path / "a")


def test_what_vanishes_while_a_tree_is_looked_at_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a folder of another thread's checkpoint does, which is renamed when it is whole."""
    for folder in ("gone", "kept"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file").write_text("x")
    look = os.scandir

    def renaming(path: Path) -> Any:
        found = look(path)
        if Path(path) == tmp_path:
            listed = list(found)
            (tmp_path / "gone").rename(tmp_path.with_name("elsewhere"))
            return nullcontext(listed)
        return found

    monkeypatch.setattr(files.os, "scandir", renaming)
    files.require_tree(tmp_path)
    monkeypatch.undo()
    zeros(tmp_path / "kept" / "link")
    with pytest.raises(NotAFile):
        files.require_tree(tmp_path)


def test_a_file_is_written_whole_with_the_usual_permissions(tmp_path: Path):
    mask = os.umask(0o027)
    try:
        files.replace(tmp_path / "a", b"x")
    finally:
        os.umask(mask)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
