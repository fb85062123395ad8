"""Calls on one column of several grammars against its grammars one by one: ``python -m benchmarks.many_grammars``.

All text columns of the shared corpora as one column (446 MB), ``--rows`` rows a grammar. A call on the whole column
merges the results of its grammars; ``x single`` is its time over the sum of its grammars' single calls, in turns, each
by its fastest round. ``--peers`` also times Polars and DuckDB on the strings, by the queries of
``benchmarks.analytics`` that they run quickest ("loose": no order, words as categories). ``--processor-time`` measures
the processor time of all threads, for machines that others share. Warm, results are frames.
"""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora, side_by_side
from benchmarks.analytics import ANALYTICS
from benchmarks.side_by_side import times
from polars_tadoc.kernels.host.records.number_words import number_words
from polars_tadoc.model.column import split
from polars_tadoc.model.vocabulary import Vocabulary

CALLS: dict[str, dict[str, Any]] = {
    "word_count": {},
    "word_count top=20": {"top": 20},
    "sort": {},
    "inverted_index": {},
    "term_vector": {},
    "term_vector top=20": {"top": 20},
    "sequence_count": {},
    "sequence_count top=20": {"top": 20},
    "cooccurrence": {},
    "cooccurrence top=20": {"top": 20},
    "ranked_inverted_index": {},
    "ranked_inverted_index top=20": {"top": 20},
    "tfidf": {},
    "bm25_weights": {},
}
LEFT_OUT = ("qrels", "queries")
"""What names of files without documents hold."""


def whole() -> pl.Series:
    """All documents of the shared corpora, in the order of the files' names."""
    files = [
        path for path in sorted(corpora.SHARED.glob("*.parquet")) if not any(name in path.stem for name in LEFT_OUT)
    ]
    return pl.concat([corpora.load(str(path))[1] for path in files]).rechunk()


def kept(path: Path, rows: int) -> pl.Series:
    """The compressed column, from a file where it is there."""
    if not path.exists():
        whole().tadoc.compress(rows_per_grammar=rows).to_frame().write_parquet(path)
    return pl.read_parquet(path).to_series()


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--rows", type=int, default=31_000, help="rows of a grammar")
    parser.add_argument("--kept", type=Path, default=Path("many_grammars.parquet"), help="the compressed column")
    parser.add_argument("--calls", nargs="+", default=list(CALLS), help="names, with top=20 where that is meant")
    parser.add_argument("--peers", type=int, default=2, help="rounds of Polars and DuckDB; 0 for none")
    parser.add_argument("--processor-time", action="store_true")
    args = parser.parse_args()
    if args.processor_time:
        side_by_side.clock = time.process_time
    tadoc.Config.set(engine="cpu")
    column = kept(args.kept, args.rows)
    vocabularies = [corpus.grammar.vocabulary for corpus in split(column)]
    print(f"machine: {corpora.machine()}, DuckDB {duckdb.__version__}; engine cpu", end="")
    print("; processor time" * args.processor_time)
    for _ in range(3):
        start = time.perf_counter()
        words, _ = number_words(vocabularies)
        middle = time.perf_counter()
        Vocabulary(words).by_rank  # noqa: B018
        stop = time.perf_counter()
    print(
        f"{len(vocabularies)} grammars, {sum(map(len, vocabularies)):,} words, {len(words):,} of them distinct: ",
        end="",
    )
    print(f"numbered in {1e3 * (middle - start):.0f} ms, ordered in {1e3 * (stop - middle):.0f} ms")
    single = [part.to_frame("text") for part in _by_grammar(column)]
    frame = column.to_frame("text")
    text = (frame.tadoc.decompress("text") if args.peers else frame.clear()).with_row_index("id")
    print(f"{'call':30}{'fastest ms':>11}{'singles':>9}{'x single':>9}{'x Polars':>9}{'x DuckDB':>9}")
    for name in args.calls:
        call, options = name.split()[0], CALLS[name]
        contenders: side_by_side.Contenders = {
            "whole": lambda: getattr(frame.tadoc, call)("text", **options),  # noqa: B023
            "singles": lambda: [getattr(one.tadoc, call)("text", **options) for one in single],  # noqa: B023
        }
        fastest = _fastest(contenders, args.repeat)
        row = f"{name:30}{1e3 * fastest['whole']:11.1f}{1e3 * fastest['singles']:9.1f}"
        row += f"{fastest['whole'] / fastest['singles']:9.2f}"
        if args.peers and call in ANALYTICS and not options:
            connection = duckdb.connect()
            connection.register("texts", text.to_arrow())
            query = ANALYTICS[call]
            peers = _fastest(
                {
                    "whole": contenders["whole"],
                    "polars": lambda: query.polars(text.lazy()).collect(engine="streaming"),  # noqa: B023
                    "duckdb": lambda: connection.sql(query.duckdb).to_arrow_table(),  # noqa: B023
                },
                args.peers,
                0,
            )
            row += "".join(f"{peers[peer] / peers['whole']:9.1f}" for peer in ("polars", "duckdb"))
        print(row, flush=True)


def _fastest(contenders: side_by_side.Contenders, repeat: int, warm_up: int = 1) -> dict[str, float]:
    """Seconds of each contender's fastest round."""
    return {name: min(taken) for name, taken in times(contenders, repeat, warm_up).items()}


def _by_grammar(column: pl.Series) -> list[pl.Series]:
    """Cut a column where the next grammar begins."""
    ends = [0, *(int(corpus.rows[-1]) + 1 for corpus in split(column))]
    ends[-1] = len(column)
    return [column[start:stop] for start, stop in pairwise(ends)]


if __name__ == "__main__":
    main()
