"""Compare search strategies at equal budget: `jaxreward compare`, from a checkout without installing it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from jaxreward.cli import main

if __name__ == "__main__":
    sys.exit(main(["compare", *sys.argv[1:]]))
