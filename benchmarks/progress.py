"""How soon and how evenly the bars of long calls move.

::

    python -m benchmarks.progress versioned_cockroach --copies 4

``--short`` prints what telling of finished items costs a call that shows no bar: word counts of about 1 MB.

For each call: its seconds; after how many its bar is shown, and first moves; the longest time in which it stands; and
the share of the time in which it stands at nothing. The first call of each is not measured: it may compile.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import tqdm.auto

import polars_tadoc as tadoc
from benchmarks import corpora
from polars_tadoc.runtime import parallel

Calls = dict[str, Callable[[], object]]
shown: list[tuple[float, int]] = []


class Recorder:
    """A bar that keeps when it moved, and how far."""

    def __init__(self, total: int | None = None, **_: Any) -> None:
        shown.append((time.perf_counter(), 0))

    def update(self, rows: int) -> None:
        """Advance."""
        shown.append((time.perf_counter(), rows))

    def set_postfix_str(self, text: str) -> None:
        """Show a step beside the bar."""
        shown.append((time.perf_counter(), 1))

    def refresh(self) -> None:
        """Draw again, with the elapsed time."""

    def close(self) -> None:
        """End."""


def main() -> None:
    parser = corpora.arguments(__doc__.splitlines()[0])
    parser.add_argument("--copies", type=int, default=1, help="of the text, one after another")
    parser.add_argument("--only", nargs="*", help="calls; by default all")
    parser.add_argument("--short", action="store_true", help="what a call without a bar pays")
    arguments = parser.parse_args()
    if arguments.short:
        return short(corpora.load("versioned_cockroach")[1].head(200))
    tqdm.auto.tqdm = Recorder
    print(corpora.machine())
    for name in corpora.names(arguments.corpora, ["versioned_cockroach"]):
        measure(*corpora.load(name), arguments.copies, arguments.only)


def short(text: pl.Series) -> None:
    """Print the processor time of word counts with and without notices, measured in turns."""
    told, taken, calls = parallel.notice[0], {"with": list[float](), "without": list[float]()}, 5
    for _ in range(60):
        for kind in taken:
            parallel.notice[0] = told if kind == "with" else lambda _done, _until: None
            started = time.process_time()
            for _ in range(calls):
                tadoc.word_count(text)
            taken[kind].append(1e3 * (time.process_time() - started) / calls)
    parallel.notice[0] = told
    medians = {kind: statistics.median(all_of) for kind, all_of in taken.items()}
    print(f"{text.estimated_size() / 1e6:.1f} MB, ms of processor time: {medians}, with: {len(taken['with'])} turns")
    print(f"ratio {medians['with'] / medians['without']:.3f}")


def measure(name: str, text: pl.Series, copies: int, only: list[str] | None) -> None:
    few, text = text.head(200), pl.concat([text] * copies, rechunk=True)
    print(f"{name}: {text.estimated_size() / 1e6:,.0f} MB, {len(text):,} rows")
    print(f"{'call':34} {'seconds':>8} {'shown':>6} {'moved':>6} {'stood':>6} {'at 0':>6}")
    with tempfile.TemporaryDirectory() as folder:
        short, long = calls(few, Path(folder)), calls(text, Path(folder))
        for call, run in long.items():
            if only and call.split(",")[0] not in only:
                continue
            short[call]()
            report(call, run)


def calls(text: pl.Series, folder: Path) -> Calls:
    """The long calls on a column and on its compressed form."""
    kept: list[pl.Series] = []
    path = folder / "text.parquet"

    def column() -> pl.Series:
        if not kept:
            kept.append(tadoc.compress(text))
        return kept[0]

    def packed() -> pl.LazyFrame:
        if not path.exists():
            column().to_frame("text").tadoc.write_packed(path)
        return tadoc.scan_packed(path)

    made: Calls = {"compress": lambda: tadoc.compress(text, progress=True)}
    for kind, of in {"text": lambda: text, "compressed": column}.items():
        for call in ("word_count", "inverted_index", "term_vector", "sequence_count", "cooccurrence", "build_index"):
            made[f"{call}, {kind}"] = _call(call, of)
        for call in ("repeats", "drop_repeats", "near_duplicates", "duplicate_groups", "minhash", "collocations"):
            made[f"{call}, {kind}"] = _call(call, of)
        made[f"overlap, {kind}"] = _call("overlap", of, text.head(100))
        made[f"content_hash, {kind}"] = _call("content_hash", of)
    made["recompress"] = _call("recompress", column)
    made["decompress"] = _call("decompress", column)
    made["write_packed"] = lambda: column().to_frame("text").tadoc.write_packed(path, progress=True)
    limited = {"memory_limit": "1GB", "progress": True}
    for call in ("repeats", "near_duplicates", "sequence_count"):
        made[f"{call}, limited"] = lambda call=call: getattr(packed().tadoc, call)("text", **limited).collect()
    return made


def _call(call: str, of: Callable[[], pl.Series], *given: pl.Series) -> Callable[[], object]:
    return lambda: getattr(of().tadoc, call)(*given, progress=True)


def report(call: str, run: Callable[[], object]) -> None:
    """Measure a call whose input is made by its first run, and print its bar's times."""
    if not call.endswith(", text") and call != "compress":
        run()
    shown.clear()
    started = time.perf_counter()
    run()
    seconds = time.perf_counter() - started
    times = [at - started for at, _ in shown]
    moves = [at - started for at, rows in shown if rows]
    if not moves:
        print(f"{call:34} {seconds:8.2f} {times[0] if times else -1:6.2f} {'never':>6}")
        return
    stood = max(after - before for before, after in zip([0.0, *moves], [*moves, seconds], strict=True))
    print(
        f"{call:34} {seconds:8.2f} {times[0]:6.2f} {moves[0]:6.2f} {stood:6.2f} {moves[0] / seconds:6.0%}", flush=True
    )


if __name__ == "__main__":
    main()
