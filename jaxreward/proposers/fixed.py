"""An observation that is given and not searched for, put into every program of a reward."""

from __future__ import annotations

from pathlib import Path

from jaxreward.errors import UserError
from jaxreward.proposers.genome import Genome, read, write
from jaxreward.proposers.statements import Statement


class FixedObservation:
    """The `get_observation` of a file, with what it needs there; the file is parsed and never executed.

    Raises:
        UserError: the file cannot be read or parsed, or has no get_observation.
    """

    def __init__(self, path: Path) -> None:
        try:
            genome = read(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"--observation {path} cannot be read: {error}") from error
        except (SyntaxError, ValueError, RecursionError) as error:
            raise UserError(f"--observation {path} is not a Python file: {error}") from error
        if genome.observation is None:
            raise UserError(f"--observation {path} has no get_observation at its top level")
        self.genome = Genome(observation=genome.observation, statements=genome.needed("observation"))
        half = self.genome.observation
        # Genes call functions of the file by name: written out, they are a function like any other.
        self._entry = half if isinstance(half, Statement) else Statement(_function(write(self.genome)))

    @property
    def source(self) -> str:
        """It alone, as a program without a reward."""
        return write(self.genome)

    def complete(self, source: str) -> str:
        """`source` with this observation in place of any it has; as it is where it cannot be parsed, for its
        check to say where."""
        try:
            genome = read(source)
        except (SyntaxError, ValueError, RecursionError):
            return source
        base = Genome(reward=genome.reward, statements=genome.needed("reward"))
        base, renamed = base.with_statements(self.genome.statements)
        names = {old: new for old, new in renamed.items() if old != "get_observation"}
        return write(base.with_half("observation", self._entry.renamed(names)))


def _function(source: str) -> str:
    return source[source.index("def get_observation") :]
