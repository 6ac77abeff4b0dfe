"""The templates of prompts: built in, or a user's in their place, and what is wrong with those."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import (
    ChoiceLoader,
    FileSystemLoader,
    PrefixLoader,
    StrictUndefined,
    TemplateError,
    TemplateRuntimeError,
    TemplateSyntaxError,
)
from jinja2.sandbox import SandboxedEnvironment

from jaxreward.errors import (
    FileProblem,
    InvalidSetting,
    UnknownName,
    UnusableFile,
    UserError,
    did_you_mean,
    why_unreadable,
)
from jaxreward.proposers.prompts.sections import fenced

_T = TypeVar("_T")
_BUILT_IN = Path(__file__).parent


class Missing(TemplateRuntimeError):
    """A template would have printed nothing where something must stand."""


class Templates:
    """Templates by name, rendered in Jinja's sandbox, strict about names and about values that are missing.

    Args:
        folder: templates that take the place of the built-in ones of the same name.
        objective: of the search; a folder of that name has templates for it, in place of those that speak of training.
        states: of the task; a folder of that name in the one of the objective has templates for states of that kind.

    Raises:
        UserError: if the folder has a template of an unknown name, or one that cannot be read.
    """

    def __init__(self, folder: Path | None = None, objective: str = "training", states: str = "arrays") -> None:
        self.folder = folder
        places = [_BUILT_IN / objective / states, _BUILT_IN / objective, _BUILT_IN]
        built_in = FileSystemLoader(places)
        own = [FileSystemLoader(folder)] if folder is not None else []
        self._environment = SandboxedEnvironment(
            loader=ChoiceLoader([*own, built_in, PrefixLoader({"builtin": built_in})]),
            undefined=StrictUndefined,
            finalize=_printed,
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters.update(fenced=fenced, filled=filled)
        self.names = {path.name for place in places for path in place.glob("*.j2")}
        if folder is not None:
            self.names |= self._own_names(folder)

    @property
    def operators(self) -> list[str]:
        """Operators that have a page of their own."""
        return sorted(n[len("operator_") : -len(".j2")] for n in self.names if n.startswith("operator_"))

    def render(self, name: str, context: Mapping[str, Any]) -> str:
        """The template called `name`, without its ending, filled in.

        Raises:
            UserError: if a user's template does not render, or a value that must be there is not.
        """
        try:
            return self._environment.get_template(f"{name}.j2").render(context).strip("\n")
        except Exception as error:
            where = self._place(error)
            if where is not None:
                kind = "" if isinstance(error, TemplateError) else f"{type(error).__name__}: "
                file, line = where
                message = f"the prompt template {file}, line {line}: {kind}{error}"
                raise UnusableFile(message, file, FileProblem.DAMAGED, line) from error
            if isinstance(error, Missing):
                raise UserError(f"the prompt template {name}.j2 cannot be filled in: {error}") from error
            raise  # no template of the user's is involved

    def _place(self, error: Exception) -> tuple[str, int | None] | None:
        """File and line in the user's folder where an error arose."""
        if self.folder is None:
            return None
        places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
        if isinstance(error, TemplateSyntaxError) and error.filename:
            places.append((error.filename, error.lineno))
        own = [place for place in places if Path(place[0]).is_relative_to(self.folder)]
        return own[-1] if own else None

    def _own_names(self, folder: Path) -> set[str]:
        """The templates in a user's folder, known by name and readable."""
        if not folder.is_dir():
            raise InvalidSetting(f"{folder} is not a folder of prompt templates", "prompts")
        names = set()
        stems = {name.removesuffix(".j2") for name in self.names}
        for path in sorted(p for p in folder.iterdir() if p.is_file()):
            name = path.name
            if path.suffix != ".j2":
                if path.stem in stems:
                    message = f"the prompt template {path} must be called {path.stem}.j2"
                    raise UnusableFile(message, path, FileProblem.WRONG_KIND)
                continue
            if not (name in self.names or name.startswith(("_", "operator_"))):
                known = sorted(self.names)
                hint = did_you_mean(name, known, "there are")
                message = f"there is no prompt template called {name}, which {folder} has; {hint}"
                raise UnknownName("prompt template", name, known, message=message)
            try:
                text = path.read_text(encoding="utf-8")
                self._environment.parse(text)
                self._environment.get_template(name)
            except TemplateSyntaxError as error:
                message = f"the prompt template {path}, line {error.lineno}: {error.message}"
                raise UnusableFile(message, path, FileProblem.DAMAGED, error.lineno) from error
            except (OSError, UnicodeDecodeError, TemplateError) as error:
                message = f"the prompt template {path} cannot be read: {why_unreadable(error)}"
                raise UnusableFile(message, path, FileProblem.UNREADABLE) from error
            names.add(name)
        return names


def filled(value: _T, what: str = "a value") -> _T:
    """The filter for what must be there: `{{ plan | filled("the plan") }}`.

    Raises:
        Missing: if it is None, empty or blank.
    """
    if value is None or not str(value).strip() or (isinstance(value, list | tuple) and not value):
        raise Missing(f"{what} is missing")
    return value


def _printed(value: _T) -> _T:
    """Whatever a template prints: anything but None."""
    if value is None:
        raise Missing("a value that is printed is None")
    return value
