"""All calls from eight threads for minutes, and the memory that they take: ``python -m benchmarks.soak --minutes 10``.

The calls are those of ``tests.eight_threads``: compressing, all analytics, weights, expressions, plans, packed files,
indexes, twigs, dictionaries, each compared with what one thread found before, while another thread changes the budget
of the caches and empties them. Each round has text, grammars and files of its own. Printed are calls and resident
bytes by minute; the last line compares the end with the second minute, when everything has been compiled. It fails
where a result differs, where memory has grown by more than ``--growth``, or where threads wait for each other.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import gc
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from benchmarks.compress import resident_bytes
from tests.eight_threads import Round, Shared

_C = ctypes.CDLL(None)


def resident() -> float:
    """Megabytes that this process holds, without what allocators keep for later."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    if hasattr(_C, "malloc_trim"):
        _C.malloc_trim(0)
    return resident_bytes() / 1e6


def main() -> None:
    """Run for so many minutes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--growth", type=float, default=0.05, help="share of the memory of the second minute")
    parser.add_argument("--patience", type=float, default=600, help="seconds a round may take")
    options = parser.parse_args()
    begin = time.perf_counter()
    minutes: list[list[float]] = []
    calls = rounds = 0
    while (elapsed := time.perf_counter() - begin) < 60 * options.minutes:
        faulthandler.dump_traceback_later(options.patience, exit=True)
        folder = tempfile.mkdtemp()
        made = Round(Shared(rounds, Path(folder)), rounds)
        made.run()
        shutil.rmtree(folder)
        if made.wrong:
            raise SystemExit("\n".join(made.wrong))
        calls, rounds = calls + made.made, rounds + 1
        while len(minutes) <= elapsed // 60:
            if minutes and minutes[-1]:
                print(f"minute {len(minutes)}: {statistics.median(minutes[-1]):,.0f} MB, {calls:,} calls", flush=True)
            minutes.append([])
        del made
        minutes[-1].append(resident())
    faulthandler.cancel_dump_traceback_later()
    medians = [statistics.median(one) for one in minutes if one]
    print(f"minute {len(minutes)}: {medians[-1]:,.0f} MB, {calls:,} calls, {rounds} rounds, all results equal")
    if len(medians) > 2:
        growth = medians[-1] / medians[1] - 1
        print(f"from the second minute to the last: {medians[1]:,.0f} MB to {medians[-1]:,.0f} MB, {growth:+.1%}")
        if growth > options.growth:
            raise SystemExit("memory has grown")


if __name__ == "__main__":
    main()
