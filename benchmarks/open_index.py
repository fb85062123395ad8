"""Opens a saved index of many short documents: ``python -m benchmarks.open_index``.

One process per line would measure imports too, so all lines are of one process: seconds of ``load_index`` (fastest of
several), of the first search, of the first result's snippet and metadata, and of reading everything
(``verify="all"``). Documents are eight words drawn by a power law, with a number and a kind as metadata.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora

WORDS = 8
QUERY = "w3 w1f"


def documents(size: int) -> pl.DataFrame:
    """Short documents with metadata."""
    drawn = np.random.default_rng(7)
    words = pl.Series("word", [f"w{number:x}" for number in range(200_000)])
    numbers = np.minimum(drawn.zipf(1.2, (size, WORDS)), len(words)) - 1
    columns = [words.gather(own) for own in numbers.T]
    text = pl.DataFrame({str(place): own for place, own in enumerate(columns)})
    return text.select(
        text=pl.concat_str(pl.all(), separator=" "),
        name="document " + pl.int_range(pl.len()).cast(pl.String),
        year=pl.int_range(pl.len()) % 40 + 1985,
    )


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--documents", type=int, default=1_000_000)
    args = parser.parse_args()
    print(f"machine: {corpora.machine()}")
    df = documents(args.documents)
    index = df.tadoc.build_index("text", id="name", metadata=["year"])
    with tempfile.TemporaryDirectory() as folder:
        index.save(f"{folder}/index")
        size = sum(own.stat().st_size for own in Path(f"{folder}/index").iterdir())
        print(f"{index.documents:,} documents, {index.terms:,} terms, {size / 1e6:.1f} MB on disk")
        del index
        for verify in (True, False, "all"):
            print(f"verify={verify!s:6}" + opened(f"{folder}/index", verify, args.repeat))


def opened(path: str, verify: Any, repeat: int) -> str:
    """Open an index, use it, and tell the times."""
    seconds = min(timed(lambda: tadoc.load_index(path, verify=verify))[0] for _ in range(repeat))
    index = tadoc.load_index(path, verify=verify)
    taken = {"open": seconds}
    taken["first search"], found = timed(lambda: index.search(QUERY))
    taken["second search"], _ = timed(lambda: index.search(QUERY))
    taken["first filter"], _ = timed(lambda: index.search(QUERY, filter=pl.col("year") > 2000))
    taken["first snippets"], _ = timed(lambda: index.snippets(found, QUERY))
    return "".join(f", {name} {1e3 * own:.1f} ms" for name, own in taken.items())


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of a call, and its result."""
    start = time.perf_counter()
    made = call()
    return time.perf_counter() - start, made


if __name__ == "__main__":
    main()
