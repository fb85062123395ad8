"""``python -m polars_tadoc warmup`` compiles all kernels now, in several processes, so that no call waits for it."""

from __future__ import annotations

import argparse
import os
import sys


def main() -> int:
    """Run a command; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m polars_tadoc")
    commands = parser.add_subparsers(dest="command", required=True)
    warmup = commands.add_parser("warmup", help="compile all kernels that are not compiled yet")
    warmup.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="number of processes (all cores)")
    warmup.add_argument("--demo", action="store_true", help="only the kernels that the demo runs")
    given = parser.parse_args()
    from polars_tadoc.runtime.machine_code.build import warm_up

    warm_up(given.processes, given.demo)
    return 0


if __name__ == "__main__":
    sys.exit(main())
