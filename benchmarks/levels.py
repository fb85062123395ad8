"""Kernels compiled for a level of processors, as in wheels, against kernels compiled for this very processor.

``python -m benchmarks.levels [CORPUS ...] [--seconds 60] [--megabytes 1] [--threads 1]``: public calls on the beginning
of each corpus. A process for each level, and one for this processor, hold the same text; they run each call in turn,
round by round, until the seconds of a corpus are over (kernels that are not cached are compiled before). Prints
milliseconds of processor time of the machine's own code, and for each level two ratios to it: of the fastest calls of
all rounds, and in brackets the median of the ratios of the rounds. Levels that the processor lacks are left out.

``--before FOLDER`` measures this tree against another checkout of it (``git worktree add FOLDER COMMIT``) instead:
milliseconds are the other's, ratios above 1 say that this tree is slower.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import corpora

EACH = 0.02
"""Seconds of processor time of a call's turn, at least one call; the fastest counts."""
OWN, TREE = "this processor", "this tree"


def calls(name: str, megabytes: float, threads: int) -> dict[str, Callable[[], Any]]:
    """Return the public calls to measure."""
    import polars as pl

    import polars_tadoc as tadoc

    tadoc.Config.set(threads=threads)
    label, text = corpora.load(name)
    rows = int((text.str.len_bytes().fill_null(0).cum_sum() < megabytes * 1e6).sum()) + 1
    frame = pl.DataFrame({"text": text.head(rows).rechunk()})
    column = frame.tadoc.compress("text")
    counts = column.tadoc.word_count("text")
    drawn, weights = np.random.default_rng(1), counts["count"].to_numpy() / counts["count"].sum()
    words = counts["word"].to_list()
    queries = [" ".join(words[k] for k in drawn.choice(len(words), size, p=weights)) for size in (2, 3, 4) * 100]
    index = tadoc.build_index(column["text"], lowercase=False)
    texts = pl.Series("query", queries)
    return {
        f"{label}: compress": lambda: frame.tadoc.compress("text"),
        f"{label}: decompress": lambda: column.tadoc.decompress("text"),
        f"{label}: word_count": lambda: column.tadoc.word_count("text"),
        f"{label}: word_count of text": lambda: frame.tadoc.word_count("text"),
        f"{label}: trigrams": lambda: column.tadoc.sequence_count("text", n=3),
        f"{label}: term_vector": lambda: column.tadoc.term_vector("text"),
        f"{label}: build_index": lambda: tadoc.build_index(column["text"], lowercase=False),
        f"{label}: search of 300 queries": lambda: index.search(texts, 10),
        f"{label}: top, 300 times": lambda: [index.top(query, 10) for query in queries],
    }


def answer(name: str, megabytes: float, threads: int) -> None:
    """Print the names of the calls, then for each name that is read the processor seconds of its fastest call."""
    known = calls(name, megabytes, threads)
    for call, run in list(known.items()):
        try:
            run()
        except (AttributeError, TypeError):  # another checkout may lack it
            del known[call]
    print(json.dumps(list(known)), flush=True)
    for line in sys.stdin:
        spent: list[float] = []
        while sum(spent) < EACH:
            start = time.process_time()
            known[line.rstrip("\n")]()
            spent.append(time.process_time() - start)
        print(min(spent), flush=True)


def targets(before: str | None) -> dict[str, dict[str, str]]:
    """Return environment variables by target: the one that ratios are to, then levels, highest first, or this tree."""
    if before is not None:
        trees = {OWN: Path(before).resolve(), TREE: corpora.ROOT}
        caches = {target: tree / "build" / "kernels" for target, tree in trees.items()}
        for cache in caches.values():
            cache.mkdir(0o700, parents=True, exist_ok=True)
        return {t: {"PYTHONPATH": str(trees[t]), "NUMBA_CACHE_DIR": str(caches[t])} for t in trees}

    from numba.core.registry import cpu_target

    from polars_tadoc.runtime.machine_code.targets import environment_of, targets_of

    _, levels = targets_of(cpu_target.target_context.codegen().magic_tuple())
    return {OWN: {}, **{level: environment_of(level) for level in levels}}


def compare(
    targets: dict[str, dict[str, str]], options: list[str], seconds: float
) -> dict[str, dict[str, list[float]]]:
    """Return the seconds of each call by target and round."""
    command = [sys.executable, "-P", __file__, "--once", *options]
    running = {
        target: subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": str(corpora.ROOT), "TADOC_CORPORA": str(corpora.SHARED), **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for target, variables in targets.items()
    }

    def told(target: str) -> Any:
        line = running[target].stdout.readline()  # type: ignore[union-attr]
        if not line:
            raise SystemExit(f"{target} failed")
        return json.loads(line)

    offered = [told(target) for target in running]
    names = [name for name in offered[0] if all(name in own for own in offered)]
    found: dict[str, dict[str, list[float]]] = {name: {target: [] for target in running} for name in names}
    order, end = list(running), time.monotonic() + seconds
    while time.monotonic() < end:
        for name in names:
            for target in order:
                running[target].stdin.write(f"{name}\n")  # type: ignore[union-attr]
                running[target].stdin.flush()  # type: ignore[union-attr]
                found[name][target].append(told(target))
        order.append(order.pop(0))  # nobody is always first
    for one in running.values():
        one.stdin.close()  # type: ignore[union-attr]
        one.wait()
    return found


def main() -> None:
    """Compare."""
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--megabytes", type=float, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--before", help="another checkout")
    parser.add_argument("--once", action="store_true", help="run calls that standard input names")
    given = parser.parse_args()
    names = corpora.names(given.corpora, ["docs_tldr", "docs_peps", "versioned_longhorn"])
    if given.once:
        answer(names[0], given.megabytes, given.threads)
        return
    compared = targets(given.before)
    levels = list(compared)[1:]
    print(f"machine: {corpora.machine()}; {given.threads} threads; processor time, first {given.megabytes} MB")
    print(f"{'call':42} {'ms':>8} {'rounds':>6} " + " ".join(f"{level:>14}" for level in levels), flush=True)
    ratios: dict[str, list[float]] = {level: [] for level in levels}
    for name in names:
        options = [name, "--megabytes", str(given.megabytes), "--threads", str(given.threads)]
        for call, spent in compare(compared, options, given.seconds).items():
            own, cells = spent[OWN], []
            for level in levels:
                ratios[level].append(min(spent[level]) / min(own))
                paired = np.median(np.array(spent[level]) / np.array(own))
                cells.append(f"{f'{ratios[level][-1]:.3f} ({paired:.3f})':>14}")
            print(f"{call:42} {min(own) * 1e3:8.2f} {len(own):6} " + " ".join(cells), flush=True)
    for level, found in ratios.items():
        print(f"{level}: {np.exp(np.mean(np.log(found))):.3f} in the geometric mean, {max(found):.3f} at most")


if __name__ == "__main__":
    main()
