"""A search as a picture: the score of every candidate, and the reward of the first one and of the best as code.

    make evolve
    python benchmarks/search_picture.py runs/xland-easy-limen-0 search.png

draws the run in a folder; README.md says which run is in `docs/pictures/search.png`.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import status_of
from jaxreward.errors import UserError
from jaxreward.reports.run_view import RunView
from jaxreward.reports.search_picture import search_picture
from jaxreward.runs.folders import find_run
from jaxreward.runs.malformed import explain_malformed


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv

    def work() -> None:
        if len(words) != 2:
            raise UserError("say which run and where to: search_picture.py RUN FILE.png")
        path = find_run(words[0], Path("runs"))
        with explain_malformed(path):
            view = RunView.read(path)
        search_picture(view, Path(words[1]))
        print(words[1])

    return status_of("search_picture", work)


if __name__ == "__main__":
    sys.exit(main())
