"""Kernels compiled for a level of processors, as in wheels, against kernels compiled for this very processor.

``python -m benchmarks.levels [CORPUS ...] [--repeat 5] [--threads 2]``: public calls; each corpus, level and round is a
process, in turn, after one that compiles. Prints milliseconds of the machine's own code and ratios to them, of the
fastest calls. Levels that the processor lacks are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import corpora

EACH = 5
"""Calls a process; the fastest counts."""


def calls(name: str, threads: int) -> dict[str, Callable[[], Any]]:
    """Return the public calls to measure."""
    import polars as pl

    import polars_tadoc as tadoc

    tadoc.Config.set(threads=threads)
    label, text = corpora.load(name)
    frame = pl.DataFrame({"text": text})
    column = frame.tadoc.compress("text")
    counts = column.tadoc.word_count("text")
    drawn, weights = np.random.default_rng(1), counts["count"].to_numpy() / counts["count"].sum()
    words = counts["word"].to_list()
    queries = [" ".join(words[k] for k in drawn.choice(len(words), size, p=weights)) for size in (2, 3, 4) * 100]
    index = tadoc.build_index(column["text"])
    texts = pl.Series("query", queries)
    return {
        f"{label}: compress": lambda: frame.tadoc.compress("text"),
        f"{label}: decompress": lambda: column.tadoc.decompress("text"),
        f"{label}: word_count": lambda: column.tadoc.word_count("text"),
        f"{label}: trigrams": lambda: column.tadoc.sequence_count("text", n=3),
        f"{label}: term_vector": lambda: column.tadoc.term_vector("text"),
        f"{label}: build_index": lambda: tadoc.build_index(column["text"]),
        f"{label}: search of 300 queries": lambda: index.search(texts, 10),
        f"{label}: top, 300 times": lambda: [index.top(query, 10) for query in queries],
    }


def measure(name: str, threads: int) -> None:
    """Print the seconds of each call as JSON, in a process with one target."""
    found = {}
    for call, run in calls(name, threads).items():
        run()
        spent = []
        for _ in range(EACH):
            start = time.perf_counter()
            run()
            spent.append(time.perf_counter() - start)
        found[call] = min(spent)
    print(json.dumps(found))


def targets() -> dict[str, dict[str, str]]:
    """Return environment variables by target: this processor, then its levels, highest first."""
    from numba.core.registry import cpu_target

    from polars_tadoc.runtime.machine_code.targets import environment_of, targets_of

    _, levels = targets_of(cpu_target.target_context.codegen().magic_tuple())
    return {"this processor": {}, **{level: environment_of(level) for level in levels}}


def main() -> None:
    """Compare."""
    parser = corpora.arguments(__doc__ or "")
    parser.set_defaults(repeat=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--once", action="store_true", help="measure one corpus in this process, and print JSON")
    given = parser.parse_args()
    names = corpora.names(given.corpora, ["docs_tldr", "docs_peps", "versioned_longhorn"])
    if given.once:
        for name in names:
            measure(name, given.threads)
        return
    print(f"machine: {corpora.machine()}; {given.threads} threads; fastest of {given.repeat} x {EACH} calls")
    best: dict[str, dict[str, float]] = {}
    for turn in range(given.repeat + 1):  # the first one compiles
        for name in names:
            for target, variables in targets().items():
                command = [sys.executable, "-m", "benchmarks.levels", name, "--once", "--threads", str(given.threads)]
                environment = {**os.environ, **variables}
                done = subprocess.run(command, env=environment, cwd=corpora.ROOT, check=True, stdout=subprocess.PIPE)
                for call, seconds in json.loads(done.stdout).items() if turn else ():
                    fastest = best.setdefault(call, {})
                    fastest[target] = min(seconds, fastest.get(target, seconds))
    levels = list(targets())[1:]
    print(f"{'call':50} {'ms':>9} " + " ".join(f"{level:>10}" for level in levels))
    for call, seconds in best.items():
        own = seconds["this processor"]
        print(f"{call:50} {own * 1e3:9.2f} " + " ".join(f"{seconds[level] / own:10.3f}" for level in levels))
    for level in levels:
        mean = np.exp(np.mean([np.log(seconds[level] / seconds["this processor"]) for seconds in best.values()]))
        print(f"{level}: {mean:.3f} in the geometric mean")


if __name__ == "__main__":
    main()
