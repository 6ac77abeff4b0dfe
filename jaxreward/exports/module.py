"""From a checked program to a module in one file: the program's text, and around it what a library expects."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from jaxreward.errors import UserError
from jaxreward.exports.clashes import bound, clashes, renamed
from jaxreward.exports.halves import agrees, baseline, entry_points, half_of, is_usual
from jaxreward.exports.simulations import simulation_of
from jaxreward.exports.targets import TARGETS, Target, check_target
from jaxreward.programs import Program
from jaxreward.records import ProgramSummary
from jaxreward.runs.provenance import versions
from jaxreward.tasks import Task, document_state

BEGIN, END = "# ---- the program: begins", "# ---- the program: ends"
DEFAULT = "# ---- what the program leaves to its task"
_WIDTH = 112


class MissingFunction(UserError):
    """A program without a function that its task has not as source text either; `missing` are the functions."""

    def __init__(self, task: str, missing: Sequence[str]) -> None:
        super().__init__(
            f"the program has no {' and no '.join(missing)}, and that of {task} with these options is not at hand as "
            "text: write one into the program"
        )
        self.missing = tuple(missing)


class Export(NamedTuple):
    """A module as text.

    `summary` is that of the program, `needs` names the packages that the module imports besides JAX,
    and `defaults` the functions that the program did not have and its task supplied.
    """

    text: str
    summary: ProgramSummary
    needs: tuple[str, ...]
    defaults: tuple[str, ...]


def export(
    source: str, task: Task, name: str, target: Target, check: Callable[[str], Program], task_file: str = ""
) -> Export:
    """The module that makes the program `source` what `target` expects. Nothing of the program is executed here.

    Args:
        name: by which `make_task` knows the task.
        check: the program of a source, once it has passed its checks, such as `Checker.load` for this task; its
            exceptions are passed on.
        task_file: of a task in a file, its name by the path from the folder that the module will lie in.

    Raises:
        UnsuitableTarget: a target that is not for this task.
        MissingFunction: a function that neither the program nor a text of the task has.
    """
    check_target(target, task)
    program, given = check(source), source.strip("\n")
    missing = [entry for entry, found in _HALVES.items() if not entry_points(source) & found]
    default = _default(given, name, missing) if missing else ""
    if missing:
        program = check(f"{given}\n\n\n{default}")
        if not is_usual(task, name) and not all(agrees(program, task, entry) for entry in missing):
            raise MissingFunction(name, missing)
    simulation = simulation_of(task, name, task_file) if TARGETS[target].simulates else None
    needs = dict.fromkeys([*TARGETS[target].packages, *(simulation.packages if simulation else ())])
    context: dict[str, Any] = {
        **(simulation.numbers if simulation else {"horizon": task.horizon}), "target": target, "task": task,
        "words": TARGETS[target].words, "summary": program.summary, "grace": "reward" in entry_points(source),
        "missing": missing, "needs": list(needs), "version": versions()["jaxreward"],
        "state_doc": document_state(task) if target == "plain" else "",
    }  # fmt: skip
    alone = target in ("plain", "xminigrid")  # the latter wraps its simulator's own class
    templates = ["program", *([simulation.template] if simulation and not alone else []), target]
    wrapper = _with_imports_first([_rendered(template, context) for template in templates])
    text = _module(given, default, wrapper, _rendered("docstring", context))
    return Export(text, program.summary, tuple(needs), tuple(missing))


_HALVES = {"get_observation": {"get_observation"}, "compute_reward": {"compute_reward", "reward"}}
"""The functions of a program by the name that the trainer calls them by, and what may stand for each."""


def _default(source: str, name: str, missing: Sequence[str]) -> str:
    """The functions that a program does not have, as its task has them with its usual options."""
    own = baseline(name)
    if own is None:
        raise MissingFunction(name, missing)
    return "\n\n\n".join(half_of(own, entry, bound(source)) for entry in missing)


def _module(program: str, default: str, wrapper: str, words: str) -> str:
    """All of it as one text; `words` are for its docstring."""
    names = clashes(f"{program}\n\n\n{default}", wrapper)
    given = f"{BEGIN}\n\n{program}\n\n{END}"
    blocks = [given, f"{DEFAULT}\n\n{default.strip()}" if default else "", renamed(wrapper, names)]
    words = renamed(words, {name: new for name, new in names.items() if "." not in new})
    return _with_docstring(words, "\n\n".join(filter(None, blocks)) + "\n")


# ---- text


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"), undefined=StrictUndefined, autoescape=False,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(py=_literal, wrapped=_wrapped, quoted=_quoted)
    return environment


def _rendered(template: str, context: dict[str, Any]) -> str:
    text = _templates().get_template(f"{template}.py.j2").render(context).strip("\n")
    return re.sub(r"\n{4,}", "\n\n\n", text)


def _literal(value: Any) -> str:
    """A value as Python writes it, strings in double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_literal(k)}: {_literal(v)}' for k, v in value.items())}}}"
    return repr(value)


def _wrapped(text: str) -> str:
    """Paragraphs of a docstring."""
    return _quoted("\n".join(textwrap.fill(line, _WIDTH) for line in text.splitlines()))


def _quoted(text: str) -> str:
    """What can stand in a docstring."""
    return text.replace("\\", "\\\\").replace('"""', "'''")


def _with_imports_first(sections: Sequence[str]) -> str:
    """Sections of a module as one: all that they import stands at the top."""
    lines = [line for section in sections for line in section.splitlines() if line.startswith(("import ", "from "))]
    foreign = lambda line: line.split()[1].partition(".")[0] not in sys.stdlib_module_names  # noqa: E731
    imports = sorted(dict.fromkeys(lines), key=lambda line: (line.startswith("from"), line))
    blocks = ["\n".join(x for x in imports if foreign(x) == kind) for kind in (False, True)]
    rest = ["\n".join(x for x in s.splitlines() if x not in lines).strip("\n") for s in sections]
    return "\n\n".join([*filter(None, blocks), "\n\n\n".join(rest)])


def _with_docstring(words: str, module: str) -> str:
    """A module under its docstring; under the same as a comment, where the program begins with a docstring of its own
    and a statement that must come right after it."""
    text = f'"""{words}\n"""\n\n{module}'
    try:
        compile(text, "<export>", "exec", dont_inherit=True)
    except SyntaxError:
        comment = "\n".join(f"# {line}".rstrip() for line in words.splitlines())
        text = f"{comment}\n\n{module}"
        compile(text, "<export>", "exec", dont_inherit=True)
    return text
