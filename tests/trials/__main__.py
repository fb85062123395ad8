"""Run the trials: ``python -m tests.trials [--small] [NAME …]``."""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
import traceback
from pathlib import Path

TRIALS = [
    "nightly_etl",
    "index_life",
    "logs_triage",
    "classifier",
    "subscriptions",
    "out_of_core",
    "interchange",
    "service",
    "in_a_notebook",
    "plain_text",
    "clean_corpus",
    "compress_options",
]


def main() -> int:
    """Print a line for each trial; return 1 where one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=TRIALS)
    parser.add_argument("--small", action="store_true", help="on the examples' data alone")
    given = parser.parse_args()
    failed = []
    for name in given.names:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            try:
                importlib.import_module(f"tests.trials.{name}").run(Path(folder), "small" if given.small else "full")
            except Exception:
                traceback.print_exc()
                failed.append(name)
        print(f"{'FAILED' if name in failed else 'passed'} {name} {time.perf_counter() - start:.1f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
