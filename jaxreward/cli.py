"""The command line: `jaxreward COMMAND`; `commands/table.py` lists the commands.

A mistake of the user is one sentence on standard error and exit status 2. A run that a signal stopped exits with the
code that asks a scheduler to queue it again.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jaxreward.commands.help import overview
from jaxreward.commands.output import refuse, warnings_in_a_line
from jaxreward.commands.table import SUMMARIES, commands_of
from jaxreward.errors import UnknownName, UserError, did_you_mean, in_a_line, users_line
from jaxreward.files import NotAFile

if TYPE_CHECKING:
    from jaxreward.commands.resolve import Command

_SEARCHING = {"evolve", "tell"}
_TRAINING = {"evolve", "tell", "train", "compare", "reproduce", "film"}
_FILE_ERRORS = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.ENAMETOOLONG, errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    *(errno.EISDIR, errno.ENOTDIR, errno.ELOOP),
}
"""What can happen to any file, whoever opens it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            return _run(args)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains at its end
        return 141 if args[:1] and args[0] in _TRAINING else 0  # 141 as after SIGPIPE: what was begun is not complete


def _run(args: list[str]) -> int:
    if args[:1] in (["-h"], ["--help"]) and args[1:2] and args[1] in SUMMARIES:
        args = [args[1], "--help", *args[2:]]
    if not args or args[0] in ("-h", "--help"):
        print(overview(SUMMARIES, "jaxreward", "jaxreward COMMAND --help lists the options of a command."))
        return 0
    name, *words = args
    if name == "--version":
        from jaxreward.runs.provenance import versions

        print(versions()["jaxreward"])
        return 0
    try:
        with warnings_in_a_line(name):
            return _command(name, words)
    except UserError as error:
        return refuse(name, str(error))
    except KeyboardInterrupt:
        print(f"jaxreward {name}: interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        if not (isinstance(error, NotAFile) or error.errno in _FILE_ERRORS) or error.filename is None:
            raise
        return refuse(name, f"{error.filename} cannot be used: {error.strerror}; correct that, or name another")
    except Exception as error:
        if not users_line(error):  # an error of ours, which needs its traceback
            raise
        return refuse(name, f"the code of the task fails: {in_a_line(error)}; correct it there, and try again")


def _command(name: str, words: list[str]) -> int:
    if name not in SUMMARIES:
        raise UnknownName("command", name, SUMMARIES, otherwise="choose from")
    if name in _TRAINING:
        from jaxreward.devices import use_cores

        use_cores()
    commands = commands_of(name)
    if name not in _SEARCHING:
        return commands[name](words) if name in commands else _of_group(name, commands, words)
    from jaxreward.runs.signals import SCHEDULER, StopSignal

    # To the end: a job that is asked to stop while it starts, or while it writes its report, is queued again.
    with StopSignal(SCHEDULER) as stop:
        return commands[name](words) or stop.exit_code


def _of_group(group: str, commands: Mapping[str, Command[Any]], words: list[str]) -> int:
    """Run a command of a group, such as `runs list`."""
    commands = {name.partition(" ")[2]: command for name, command in commands.items()}
    helps = words[:1] in (["-h"], ["--help"])
    if len(commands) == 1 and (helps or not words):
        (only,) = commands.values()
        if helps:
            return only(words)
        raise UserError(f"say `{only.program}`; `{only.program} --help` lists its options")
    if helps or not words:
        lines = {name: (command.run.__doc__ or "").splitlines()[0] for name, command in commands.items()}
        print(overview(lines, f"jaxreward {group}", f"jaxreward {group} COMMAND --help lists its options."))
        return 0
    name, *rest = words
    if name not in commands:
        message = f"there is no command '{group} {name}'; {did_you_mean(name, commands, 'choose from')}"
        raise UnknownName("command", name, commands, message=message)
    return commands[name](rest)


if __name__ == "__main__":
    sys.exit(main())
