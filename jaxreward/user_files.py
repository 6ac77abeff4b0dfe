"""Classes of a user's own, from a Python file: `swing_up.py`, or `robots.py:SwingUp` where it has several.

The file is imported, that is executed: its name must be the user's own, never that of a run's folder alone.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_tb
from types import ModuleType

from jaxreward.config import class_of, file_of
from jaxreward.errors import (
    FILE_OF_USER,
    FileProblem,
    InvalidSetting,
    MissingPackage,
    UnknownName,
    UnusableFile,
    in_a_line,
)

_DIGEST = "_jaxreward_digest"


@dataclass(frozen=True)
class Wanted:
    """What a file is to define.

    Attributes:
        what: in a word: `task`.
        several: its plural.
        lacking: what a class lacks to be one, as parts of a sentence.
        setting: the option that names the file.
        page: where it is documented.
    """

    what: str
    several: str
    lacking: Callable[[type], Sequence[str]]
    setting: str
    page: str


def class_from_file(name: str, wanted: Wanted) -> type:
    """The class in a file, `FILE.py` or `FILE.py:Class`. The file is imported.

    Raises:
        UnusableFile: no such file, one that cannot be imported, or one without such a class.
        UnknownName: no class of that name.
        InvalidSetting: several such classes, and the name says none.
    """
    path, own_name, what = file_of(name), class_of(name), wanted.what
    if not path.is_file():
        raise UnusableFile(f"there is no file {path} to take a {what} from", path, FileProblem.MISSING)
    module = imported(path)
    own = [c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__]
    found = {c.__name__: c for c in own if not wanted.lacking(c)}
    if own_name:
        named = {c.__name__: c for c in own}.get(own_name)
        if named is None:
            message = f"{path} has no class {own_name}; it has {', '.join(found) or f'no {what}'}"
            raise UnknownName("class", own_name, found, message=message)
        if lacking := wanted.lacking(named):
            message = f"{own_name} in {path} is no {what} yet: it lacks {', '.join(lacking)} (see {wanted.page})"
            raise UnusableFile(message, path, FileProblem.WRONG_KIND)
        return named
    if len(found) != 1:
        if found:
            names = " or ".join(f"{path}:{n}" for n in found)
            raise InvalidSetting(f"{path} has several {wanted.several}: name one, {names}", wanted.setting)
        nearest = min(own, key=lambda c: len(wanted.lacking(c)), default=None)
        why = f"; {nearest.__name__} lacks {', '.join(wanted.lacking(nearest))}" if nearest else ""
        message = f"{path} has no class that is a {what}{why} (see {wanted.page})"
        raise UnusableFile(message, path, FileProblem.WRONG_KIND)
    return next(iter(found.values()))


def imported(path: Path) -> ModuleType:
    """The file as a module, imported again only when it changes, or a module beside it that it has imported; that one
    is then imported again as well.

    Modules in its folder are found, as they are where Python executes the file, but after all others: none of a
    package's is taken for one of the user's.

    Raises:
        UnusableFile: it cannot be imported.
        MissingPackage: it imports something of this package that needs one.
    """
    stamp = path.stat()
    name = f"jaxreward_file_{path.stem}_{abs(hash((str(path.resolve()), stamp.st_mtime_ns, stamp.st_size)))}"
    folder, others = path.resolve().parent, _beside.get(path.resolve(), {})
    if edited := any(_changed_at(file) != at for file, at in others.values()):
        for other in others:
            sys.modules.pop(other, None)
    if name in sys.modules and not edited:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    vars(module)[FILE_OF_USER] = str(path)
    vars(module)[_DIGEST] = hashlib.sha256(path.read_bytes()).hexdigest()
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    before = set(sys.modules)
    try:
        spec.loader.exec_module(module)
    except MissingPackage:  # of ours: its sentence says what to install
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise failed(f"{path} cannot be imported", path, error) from error
    files = {new: Path(getattr(sys.modules[new], "__file__", None) or "/") for new in set(sys.modules) - before}
    found = {new: (file, _changed_at(file)) for new, file in files.items() if file.parent == folder}
    _beside[path.resolve()] = found if edited else {**others, **found}
    return module


_beside: dict[Path, dict[str, tuple[Path, int]]] = {}
"""The modules that a file has imported from its own folder, by name: where each is, and when it was last changed."""


def _changed_at(file: Path) -> int:
    """When a file was last changed, in ns; 0 for one that is gone."""
    return file.stat().st_mtime_ns if file.exists() else 0


def keep_digest(value: object, module: ModuleType) -> None:
    """Let `digest_of` know `value`, which the imported file made of a class that is not its own."""
    vars(value)[_DIGEST] = vars(module)[_DIGEST]


def digest_of(value: object) -> str:
    """SHA-256 of the file that `value` or its class was imported from by its name; empty for any other object."""
    return getattr(value, _DIGEST, "") or getattr(sys.modules.get(type(value).__module__), _DIGEST, "")


def failed(what: str, path: Path, error: BaseException) -> UnusableFile:
    """The error of a file whose code raised `error`, with the last line of the file that was executed."""
    own = str(path.absolute())  # the loader makes it so
    lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == own]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    return UnusableFile(f"{what}: {in_a_line(error)}", path, FileProblem.DAMAGED, line)
