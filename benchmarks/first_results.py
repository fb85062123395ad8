"""What first results cost where nothing was compiled before: import, compress 1 MB, count words, index and search.

``python -m benchmarks.first_results [--runs 3] [--within SECONDS]``: each run is a process; needs the package alone.
With ``--within``, fails where even the quickest run takes longer, or where one writes to stderr: wheels hold the
machine code, and nobody waits for a compiler or is warned of one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

TEXTS = Path(__file__).parents[1] / "examples" / "data" / "speeches.parquet"
MEGABYTE = 1_000_000


def first_results() -> None:
    """Print the seconds of each step."""
    steps = [("start", time.perf_counter())]

    def done(step: str) -> None:
        steps.append((step, time.perf_counter()))

    import polars as pl

    done("import polars")
    import polars_tadoc as tadoc

    done("import polars_tadoc")
    text = pl.read_parquet(TEXTS)["text"]
    rows = int((text.str.len_bytes().cum_sum() < MEGABYTE).sum()) + 1
    done("read")
    df = pl.DataFrame({"text": text.head(rows)}).tadoc.compress("text")
    done("compress")
    assert df.tadoc.word_count("text").height > 1000
    done("word_count")
    index = tadoc.build_index(df["text"])
    done("build_index")
    assert index.search("freedom of speech").height > 0
    done("search")
    spent = [(step, at - before) for (_, before), (step, at) in pairwise(steps)]
    print(f"{sum(seconds for _, seconds in spent):.2f} s: " + ", ".join(f"{step} {s:.2f}" for step, s in spent))


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description="Seconds to the first results")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--within", type=float)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.once:
        first_results()
        return
    totals = []
    for _ in range(given.runs):
        command = [sys.executable, "-W", "error", "-m", "benchmarks.first_results", "--once"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(done.stdout + done.stderr, end="")
        if done.returncode or (given.within and done.stderr):
            raise SystemExit(1)
        totals.append(float(done.stdout.split()[0]))
    if given.within and min(totals) > given.within:
        raise SystemExit(f"first results take {min(totals)} s, more than {given.within}")


if __name__ == "__main__":
    main()
