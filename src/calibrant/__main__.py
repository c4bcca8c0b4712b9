"""``python -m calibrant``: the command line."""

import sys

from calibrant.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
