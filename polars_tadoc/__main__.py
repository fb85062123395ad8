"""``python -m polars_tadoc``: the command line, as ``tadoc``."""

from __future__ import annotations

import sys

from polars_tadoc.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
