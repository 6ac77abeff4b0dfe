"""`python -m jaxreward`: the command line."""

import sys

from jaxreward.cli import main

if __name__ == "__main__":
    sys.exit(main())
