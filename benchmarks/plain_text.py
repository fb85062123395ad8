r"""Analytics on plain text against Polars and DuckDB on the same strings: ``python -m benchmarks.plain_text``.

Nothing is compressed before. Ours is the frame of the public call, in order; Polars (streaming) and DuckDB run the
queries of ``benchmarks.analytics`` in their cheapest form ("loose"). Results are compared first. "Parquet" is the word
count of a file, written with Polars' defaults, in the page cache. "Compressed" is the same call on the compressed
column, "compress" the time to make it, and "repays" the call from which compressing first would have been faster in
all. ``--threads`` limits ours; set ``POLARS_MAX_THREADS`` for Polars. ``--processor-time`` compares the processor time
of all threads: for machines whose cores other processes take.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import duckdb
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora, side_by_side
from benchmarks.analytics import ANALYTICS, better, compare
from benchmarks.at_size import HAN
from benchmarks.side_by_side import median_ms, times
from benchmarks.word_count import with_polars

CALLS = ["word_count", "inverted_index", "term_vector", "sequence_count", "ranked_inverted_index", "cooccurrence"]
TIMED = ["ours", "polars loose", "duckdb loose"]
STANDARD = [*corpora.STANDARD, "versioned_cockroach"]


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--engine", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--limit", type=float, default=30, help="seconds that DuckDB may take for one call")
    parser.add_argument("--budget", type=float, default=10, help="seconds for the rounds of one call on one corpus")
    parser.add_argument("--only", nargs="*", choices=CALLS, default=CALLS, help="these calls")
    parser.add_argument("--processor-time", action="store_true")
    args = parser.parse_args()
    if args.processor_time:
        side_by_side.clock = time.process_time
    tadoc.Config.set(engine=args.engine, **({} if args.threads is None else {"threads": args.threads}))
    measured = "processor time" if args.processor_time else "time"
    print(f"machine: {corpora.machine()}, DuckDB {duckdb.__version__}; engine {args.engine}; {measured}")
    for given in corpora.names(args.corpora, STANDARD):
        name, text = corpora.load(given)
        plain = text.to_frame("text").filter(~pl.col("text").str.contains(HAN)).with_row_index("id").rechunk()
        megabytes = plain["text"].str.len_bytes().sum() / 1e6
        print(f"\n{name}, {megabytes:.1f} MB, {len(plain):,} rows")
        print(f"{'':18}{'text ms':>9}{'MB/s':>7}{'Polars ms':>11}{'DuckDB ms':>11}{'x better':>9}", end="")
        print(f"{'compressed ms':>15}{'compress ms':>13}{'repays':>8}", flush=True)
        own = {"compress": lambda plain=plain: plain.tadoc.compress("text")}
        compress, packed = median_ms(times(own, 1), "compress"), plain.tadoc.compress("text").select("text")
        for call in args.only:
            told = (f"{name}, {call}", plain, plain.select("text"), args.limit, args.budget, args.repeat)
            taken = compare(ANALYTICS[call], *told, only=TIMED)
            ours = median_ms(taken, "ours")
            line = f"{call:18}{ours:9.1f}{1e3 * megabytes / ours:7.0f}"
            for peer in ("polars loose", "duckdb loose"):
                line += f"{median_ms(taken, peer):11.0f}" if peer in taken else f"{'stopped':>11}"
            line += f"{better(taken, 'ours', ('polars loose', 'duckdb loose')):9.1f}"
            again = times({"packed": lambda call=call, packed=packed: ANALYTICS[call].ours(packed)}, args.repeat)
            saved = ours - median_ms(again, "packed")
            repays = f"{1 + int(compress / saved):8}" if saved > 0 else f"{'never':>8}"
            print(f"{line}{ours - saved:15.1f}{compress:13.0f}{repays}", flush=True)
        if "word_count" in args.only:
            print(from_parquet(plain.select("text"), args.repeat), flush=True)


def from_parquet(plain: pl.DataFrame, repeat: int) -> str:
    """Time word counts of a file; returns a line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.parquet"
        plain.write_parquet(path)
        scan = pl.scan_parquet(path)
        contenders = {
            "ours": lambda: scan.tadoc.word_count("text").collect(),
            "polars loose": lambda: with_polars(scan),
        }
        taken = times(contenders, min(repeat, 3))
    ours, peer = median_ms(taken, "ours"), median_ms(taken, "polars loose")
    megabytes = plain["text"].str.len_bytes().sum() / 1e6
    times_better = better(taken, "ours", ("polars loose", "duckdb loose"))
    return f"{'  from Parquet':18}{ours:9.1f}{1e3 * megabytes / ours:7.0f}{peer:11.0f}{'':11}{times_better:9.1f}"


if __name__ == "__main__":
    main()
