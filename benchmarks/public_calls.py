"""Times public calls, results as frames, in one process; run it on two trees to compare them.

It imports nothing but the package, so that the same file times an older one::

    PYTHONPATH=older python benchmarks/public_calls.py docs_peps.parquet
    PYTHONPATH=newer python benchmarks/public_calls.py docs_peps.parquet

Each call is warmed up once; printed are the median and the least of ``--repeat`` calls in milliseconds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc


def calls(text: pl.Series) -> dict[str, Callable[[], object]]:
    """Public calls on a corpus, by name."""
    column = tadoc.compress(text)
    df = column.alias("text").to_frame()
    small = pl.Series("text", ["to be or not to be", "to do", None]).tadoc.compress().to_frame()  # type: ignore[attr-defined]
    words = df.tadoc.word_count("text", top=400)["word"].to_list()
    queries = [f"{one} {other}" for one, other in zip(words[::2], words[1::2], strict=True)]
    index = df.tadoc.build_index("text")
    folder = Path(tempfile.mkdtemp())
    return {
        "compress": lambda: tadoc.compress(text),
        "decompress": lambda: df.tadoc.decompress("text"),
        "word_count": lambda: df.tadoc.word_count("text"),
        "inverted_index": lambda: df.tadoc.inverted_index("text"),
        "term_vector": lambda: df.tadoc.term_vector("text"),
        "sequence_count": lambda: df.tadoc.sequence_count("text", n=3),
        "ranked_inverted_index": lambda: df.tadoc.ranked_inverted_index("text", n=3),
        "cooccurrence": lambda: df.tadoc.cooccurrence("text"),
        "tfidf": lambda: df.tadoc.tfidf("text"),
        "build_index": lambda: df.tadoc.build_index("text"),
        "search, 200 queries": lambda: index.search(queries, k=10),
        "save": lambda: index.save(folder / "index", overwrite=True),
        "write_packed": lambda: df.tadoc.write_packed(folder / "packed.parquet"),
        "scan_packed, word_count": lambda: (
            tadoc.scan_packed(folder / "packed.parquet").tadoc.word_count("text", memory_limit="1GB").collect()
        ),
        "word_count, 3 rows": lambda: small.tadoc.word_count("text"),
        "token_count, 3 rows": lambda: small.select(pl.col("text").tadoc.token_count()),  # type: ignore[attr-defined]
    }


def main() -> None:
    """Print a line for each call."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", help="Parquet files with a column text")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    tadoc.Config.set(threads=given.threads, engine="cpu")
    text = pl.concat([pl.read_parquet(path, columns=["text"])["text"] for path in given.corpora]).rechunk()
    print(f"{tadoc.__file__}: {text.estimated_size() / 1e6:,.1f} MB, {len(text):,} rows")
    for name, call in calls(text).items():
        call()
        times = []
        for _ in range(given.repeat):
            start = time.perf_counter()
            call()
            times.append(1e3 * (time.perf_counter() - start))
        print(f"{name:28}{statistics.median(times):>12.3f}{min(times):>12.3f}", flush=True)


if __name__ == "__main__":
    main()
