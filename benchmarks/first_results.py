"""What first results cost where nothing was compiled before: import, compress 1 MB, count words, index and search.

``python -m benchmarks.first_results [--runs 3] [--within SECONDS]``: each run is a process; needs the package alone.
With ``--within``, fails where even the quickest run takes longer, or where one writes to stderr: wheels hold the
machine code, and nobody waits for a compiler or is warned of one. It then also runs once with the machine code of each
level that the wheel holds and this processor has.
"""

from __future__ import annotations

import argparse
import os
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


def once(variables: dict[str, str], must_be_silent: bool) -> float:
    """Return the seconds of a run in a process."""
    command = [sys.executable, "-W", "error", "-m", "benchmarks.first_results", "--once"]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    print(done.stdout + done.stderr, end="")
    if done.returncode or (must_be_silent and done.stderr):
        raise SystemExit(1)
    return float(done.stdout.split()[0])


def levels() -> dict[str, dict[str, str]]:
    """Return the environment variables by level of processors: those that the package holds and this processor has."""
    from numba.core.registry import cpu_target

    from polars_tadoc.runtime.machine_code import folders, targets

    _, known = targets.targets_of(cpu_target.target_context.codegen().magic_tuple())
    return {level: targets.environment_of(level) for level in known if (folders.SHIPPED / level).is_dir()}


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
    totals = [once({}, bool(given.within)) for _ in range(given.runs)]
    if given.within:
        for level, variables in levels().items():
            print(f"{level}: ", end="", flush=True)
            once(variables, True)
        if min(totals) > given.within:
            raise SystemExit(f"first results take {min(totals)} s, more than {given.within}")


if __name__ == "__main__":
    main()
