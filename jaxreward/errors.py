"""Exceptions for mistakes of the user and for work that cannot continue now, and why a search ends."""

from __future__ import annotations

import copyreg
import errno
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from enum import Enum, StrEnum
from pathlib import Path
from traceback import walk_tb
from typing import Any, NamedTuple

from jaxreward.sentences import Sentence, in_python

USAGE_EXIT_CODE = 2
"""Exit code of a command after a mistake of the user."""


FAILED_EXIT_CODE = 1
"""Exit code of a command that ran and whose result is negative."""


class JaxrewardWarning(UserWarning):
    """Something of a run that its user should know, and that does not stop it. Commands print it in one line."""


class UserError(Exception):
    """A mistake of the user: one clear sentence with the remedy.

    Commands print it without a traceback and exit with status 2. The subclasses say in fields what the sentence says
    in words.

    Attributes:
        settings: the settings concerned, by path: `steps`, `ppo.learning_rate`; `strategy.islands` and `task.horizon`
            are options of a strategy and of a task. The first is the one to change.
        later: whether the same command may succeed later: an endpoint that is down, a person who has not answered yet,
            a cluster that is gone.
    """

    settings: tuple[str, ...] = ()
    later: bool = False

    def __init__(self, message: str = "", *more: Any) -> None:
        """`message` may name options by `sentences.mention`."""
        super().__init__(Sentence(message), *more)

    @property
    def sentence(self) -> Sentence:
        """What it says, for another sentence, or to be shown in the words of Python."""
        return Sentence(self.args[0] if self.args else "")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by its fields, since constructors differ: a worker in another process may raise it."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


@contextmanager
def errors_in_python() -> Iterator[None]:
    """Let the errors raised inside name options as keyword arguments."""
    try:
        yield
    except UserError as error:
        error.args = (in_python(error.sentence), *error.args[1:])
        raise


class UnknownName(UserError):
    """A name that does not exist where one of a known set is expected.

    Attributes:
        kind: what is named: "task", "option of strategy limen".
        name: the name that was given.
        known: the names that exist.
        nearest: the most similar of them, or None.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        known: Collection[str],
        *,
        otherwise: str = "choose one of",
        message: str = "",
        near: str | None = None,
        settings: tuple[str, ...] = (),
    ) -> None:
        """`message` takes the place of the usual sentence, `near` that of the name found by similarity."""
        self.kind, self.name, self.known, self.settings = kind, name, tuple(known), settings
        self.nearest = near or nearest(name, known)
        super().__init__(message or f"there is no {kind} '{name}'; {did_you_mean(name, known, otherwise)}")


class InvalidSetting(UserError):
    """A value that a setting cannot have, alone or beside the other settings."""

    def __init__(self, message: str, *settings: str) -> None:
        super().__init__(message)
        self.settings = settings


class ChangedSetting(UserError):
    """A setting that must equal what a run or a comparison was started with, and does not.

    Attributes:
        setting: its path.
    """

    def __init__(self, message: str, setting: str) -> None:
        super().__init__(message)
        self.setting, self.settings = setting, (setting,)


class FileProblem(Enum):
    """Why a file or folder cannot be used."""

    MISSING = "missing"
    EXISTS = "exists"
    IN_USE = "in use"
    DAMAGED = "damaged"
    UNREADABLE = "unreadable"
    UNWRITABLE = "unwritable"
    FULL = "full"
    TOO_LARGE = "too large"
    OTHER_VERSION = "of another version"
    WRONG_KIND = "wrong kind"
    """A pipe, a device, a link or a folder in the place of a file, or a file that is not what it should be."""


class UnusableFile(UserError):
    """A file or folder that cannot be read or written.

    Attributes:
        path: the file or folder.
        problem: why.
        line: the line of a text file, counted from 1, where the problem is one of a line.
    """

    def __init__(self, message: str, path: Path | str, problem: FileProblem, line: int | None = None) -> None:
        super().__init__(message)
        self.path, self.problem, self.line = Path(path), problem, line


class MissingPackage(UserError):
    """An optional dependency that is not installed.

    Attributes:
        package: the name of the package on PyPI.
    """

    def __init__(self, message: str, package: str, *settings: str) -> None:
        super().__init__(message)
        self.package, self.settings = package, settings


class EndCause(StrEnum):
    """Why a search ended, or stopped before its end."""

    CANDIDATES = "candidates"
    ATTEMPTS = "attempts"
    ENV_STEPS = "env_steps"
    DEVICE_S = "device_s"
    USD = "usd"
    TOKENS = "tokens"
    REQUESTS = "requests"
    STRATEGY = "strategy"
    """The strategy says that it cannot find anything better."""
    NOTHING_TO_TRAIN = "nothing_to_train"
    """Several generations in a row without a program that could be trained."""
    TEXT_ONLY = "text_only"
    """Several generations in a row that asked for text alone."""
    GENERATIONS = "generations"
    """As many generations as the caller asked for."""
    SIGNAL = "signal"
    PEOPLE = "people"
    """People have not answered yet."""
    ENDPOINT = "endpoint"
    """An endpoint is down, or rejects what it is sent."""
    RECORDING = "recording"
    """The recording that is replayed stopped here."""
    DISK = "disk"
    ERROR = "error"
    """Something else, which `reason` says."""


class CallProblem(StrEnum):
    """Why a call of a language model has no reply."""

    NO_KEY = "no_key"
    """There is no key to send."""
    KEY = "key"
    """The endpoint does not accept the key (HTTP 401)."""
    CREDIT = "credit"
    ACCESS = "access"
    """The key may not use this model (HTTP 403)."""
    NOT_FOUND = "not_found"
    """There is no such model or address (HTTP 404)."""
    REJECTED = "rejected"
    """The endpoint does not take the request, such as an option in it."""
    TOO_LONG = "too_long"
    """The prompt is longer than the model's context window."""
    REFUSED = "refused"
    """The provider's content policy refuses the prompt."""
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    """The endpoint is broken or overloaded (HTTP 5xx)."""
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    """No connection to the endpoint, or one that broke."""
    NO_REPLY = "no_reply"
    """What came back is no reply of a model."""
    OTHER = "other"


class End(NamedTuple):
    """Why a search ends: a sentence, and the cause, which logs of earlier versions do not have; `problem` is that of a
    language model that cannot be asked."""

    reason: str
    cause: EndCause | None
    problem: CallProblem | None = None


class ProposerStopped(UserError):
    """A proposer cannot continue; its work so far is kept and the run can be resumed.

    Attributes:
        cause: what it waits for, or lacks.
        problem: of the language model that it lacks, if it is one.
        why: the message without what to do about it, where that is to go on with a run.
    """

    def __init__(
        self, message: str, cause: EndCause, *, later: bool, problem: CallProblem | None = None, why: str = ""
    ) -> None:
        super().__init__(message)
        self.cause, self.later, self.problem, self.why = cause, later, problem, Sentence(why or message)


def nearest(name: str, known: Collection[str]) -> str | None:
    """The most similar of the known names, or None."""
    return next(iter(get_close_matches(str(name), known, 1)), None)


def did_you_mean(name: str, known: Collection[str], otherwise: str = "choose one of") -> str:
    """The end of a sentence about a name that is not known: the most similar of those that are, or all of them."""
    near = nearest(name, known)
    return f"did you mean '{near}'?" if near else f"{otherwise} {', '.join(known) or 'none'}"


def causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and what led to it, the outermost first; libraries may keep that as `original_exception`."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        original = getattr(current, "original_exception", None)
        current = current.__cause__ or current.__context__
        current = current or (original if isinstance(original, BaseException) else None)


FILE_OF_USER = "_jaxreward_file_of_user"
"""A global of the modules that are made of a user's file: its path."""


def users_line(error: BaseException) -> str:
    """The line of a user's file that an exception was raised from, as `(FILE.py, line 3)`; else empty."""
    lines = [(frame.f_globals.get(FILE_OF_USER), line) for frame, line in walk_tb(error.__traceback__)]
    own = [(Path(file).name, line) for file, line in lines if file]
    return f"({own[-1][0]}, line {own[-1][1]})" if own else ""


def in_a_line(error: BaseException) -> str:
    """An exception of foreign code as part of a sentence: its type, message, and line in a user's file."""
    name, message = type(error).__name__, " ".join(str(error).split())
    return " ".join(filter(None, [f"{name}:" if message else name, message, users_line(error)]))


def problem_of(error: Exception) -> FileProblem:
    """Why a file cannot be used, from the error that reading it raised."""
    if isinstance(error, FileNotFoundError):
        return FileProblem.MISSING
    if isinstance(error, UnicodeError) or getattr(error, "errno", None) in (errno.EISDIR, errno.EINVAL):
        return FileProblem.WRONG_KIND
    return FileProblem.UNREADABLE


def why_unreadable(error: Exception) -> str:
    """Why a file cannot be read, as part of a sentence."""
    if isinstance(error, UnicodeError):
        return "it is not text in UTF-8"
    return (isinstance(error, OSError) and error.strerror) or str(error)
