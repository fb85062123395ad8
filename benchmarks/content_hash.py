"""A key for each row: hashed from the rules, against hashing the strings and against decompressing first.

::

    python -m benchmarks.content_hash texts.parquet
    python -m benchmarks.content_hash prose_books --threads 1

The first names a file with a column ``text``, the second a corpus of the shared folder. Without either it runs on some
corpora of that folder, or on the samples in the tree where there is none.

Polars' ``hash`` gives 64 bits that differ between versions, xxHash (XXH3, 128 bits) those of each row by a call from
Python. The column is in memory, its grammar decoded and its symbols hashed, but for the first call.
"""

from __future__ import annotations

import time

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.side_by_side import Contenders, median_ms, times

try:
    import xxhash
except ModuleNotFoundError:  # measured beside, where it is installed
    xxhash = None

CORPORA = ["logs_elastic", "logs_loghub2k", "logs_dmesg", "versioned_longhorn", "versioned_cockroach", "docs_peps"]


def main() -> None:
    parser = corpora.arguments(__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=0, help="of ours; 0: all cores")
    arguments = parser.parse_args()
    tadoc.Config.set(threads=arguments.threads)
    print(corpora.machine())
    print(f"GB of text a second; medians of {arguments.repeat} rounds")
    for name in corpora.names(arguments.corpora, CORPORA):
        measure(*corpora.load(name), arguments.repeat)


def measure(name: str, text: pl.Series, repeat: int) -> None:
    column = tadoc.compress(text)
    started = time.perf_counter()
    keys = tadoc.content_hash(column)
    first = 1e3 * (time.perf_counter() - started)
    assert keys.equals(tadoc.content_hash(text))
    assert keys.n_unique() == text.n_unique()
    contenders: Contenders = {
        "content_hash, compressed": lambda: tadoc.content_hash(column),
        "content_hash, strings": lambda: tadoc.content_hash(text),
        "Polars hash, strings": lambda: text.hash(),
        "decompress, Polars hash": lambda: tadoc.decompress(column).hash(),
        "equals, other grammar": lambda: tadoc.equals(column, text),
    }
    if xxhash is not None:
        of_bytes = xxhash.xxh3_128_intdigest
        contenders["xxHash by row, strings"] = lambda: [of_bytes(row) for row in text.cast(pl.Binary).to_list()]
    taken = times(contenders, repeat)
    size = int(text.str.len_bytes().sum())
    print(f"\n{name}: {len(text):,} rows, {size:,} bytes; first call {first:.1f} ms")
    for call in taken:
        cost = median_ms(taken, call)
        print(f"  {call:<26} {cost:9.2f} ms   {size / cost / 1e6:7.2f} GB/s")


if __name__ == "__main__":
    main()
