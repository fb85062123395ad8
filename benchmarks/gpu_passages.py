"""Repeated passages and overlap on a GPU beside the CPU, on plain text and on the compressed column.

::

    python -m benchmarks.gpu_passages versioned_cockroach versioned_cockroach+versioned_longhorn+prose_books

Names are corpora of the shared folder, or Parquet files with a column ``text``. Times are those of whole calls, with
the result as a frame; results of both engines are compared. Below them, the stages of `repeats` on the GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.passages import references
from benchmarks.side_by_side import Contenders, median_ms, times
from polars_tadoc.analytics.cleaning.laid_words import lay_out
from polars_tadoc.analytics.cleaning.windows import find_windows
from polars_tadoc.engine.choose import GPU
from polars_tadoc.kernels.host.passages import runs

CORPORA = ["versioned_cockroach", "versioned_cockroach+versioned_longhorn+prose_books"]


def main() -> None:
    parser = corpora.arguments(__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=50, help="words of a window")
    parser.add_argument("--skip-cpu", action="store_true", help="times of the GPU alone")
    arguments = parser.parse_args()
    print(corpora.machine())
    print(f"GB of text a second, windows of {arguments.length} words; medians of {arguments.repeat} rounds")
    for name in corpora.names(arguments.corpora, CORPORA):
        measure(*corpora.load(name), arguments.length, arguments.repeat, arguments.skip_cpu)


def measure(name: str, text: pl.Series, length: int, repeat: int, skip_cpu: bool) -> None:
    column, known = tadoc.compress(text), references()
    calls: dict[str, Callable[[pl.Series, str], Any]] = {
        "repeats": lambda own, engine: own.tadoc.repeats(length=length, engine=engine),
        "drop_repeats": lambda own, engine: (
            own.to_frame()
            .with_row_index()
            .tadoc.drop_repeats("text", length=length, unit="row", share=0.5, engine=engine)["index"]
        ),
    }
    for kind, reference in known.items():
        calls[f"overlap {kind}"] = lambda own, engine, to=reference: own.tadoc.overlap(to, engine=engine)
    contenders: Contenders = {}
    for form, own in (("text", text), ("compressed", column)):
        for call, ask in calls.items():
            got = ask(own, "gpu")  # kernels are compiled first
            if not skip_cpu:
                assert got.equals(ask(own, "cpu"))
                contenders[f"{call}, {form}, cpu"] = lambda own=own, ask=ask: ask(own, "cpu")
            contenders[f"{call}, {form}, gpu"] = lambda own=own, ask=ask: ask(own, "gpu")
    taken = times(contenders, repeat)
    size = int(text.str.len_bytes().sum())
    print(f"\n{name}: {len(text):,} rows, {size:,} bytes")
    for call in contenders:
        cost = median_ms(taken, call)
        print(f"  {call:<32} {cost:10.2f} ms   {size / cost / 1e6:8.2f} GB/s")
    stages(text, length)


def stages(text: pl.Series, length: int) -> None:
    """Print the time of each stage of a call, the second time that it runs."""
    for _ in range(2):
        marks = [time.perf_counter()]
        laid = lay_out(text, "benchmark", engine=GPU)
        marks.append(_now())
        windows = find_windows(laid, length)
        marks.append(_now())
        _, begins, ends = windows.find_runs(runs.REPEATED, 2)
        GPU.kernels.describe_runs(begins, ends, length, windows.first, windows.counts)
        marks.append(_now())
    cut, find, describe = (1e3 * (b - a) for a, b in pairwise(marks))
    print(f"  stages: words {cut:.1f} ms, windows {find:.1f} ms, passages {describe:.1f} ms")


def _now() -> float:
    import cupy

    cupy.cuda.Device().synchronize()
    return time.perf_counter()


if __name__ == "__main__":
    main()
