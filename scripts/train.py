"""Retrain given interfaces over fresh seeds: `jaxreward train`, from a checkout without installing it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from jaxreward.cli import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
