"""A key for each row: hashed from the rules, against hashing the strings and against decompressing first.

Polars' ``hash`` gives 64 bits that differ between versions, xxHash (XXH3, 128 bits) those of each row by a call from
Python. The column is in memory, its grammar decoded and its symbols hashed, but for the first call.
"""

from __future__ import annotations

import time

import polars as pl
import xxhash

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.side_by_side import median_ms, times

CORPORA = ["logs_elastic", "logs_loghub2k", "logs_dmesg", "versioned_longhorn", "versioned_cockroach", "docs_peps"]


def main() -> None:
    parser = corpora.arguments(__doc__.splitlines()[0])
    arguments = parser.parse_args()
    print(corpora.machine())
    print(f"GB of text a second; medians of {arguments.repeat} rounds")
    for name in arguments.corpora or CORPORA:
        measure(*corpora.load(name), arguments.repeat)


def measure(name: str, text: pl.Series, repeat: int) -> None:
    column = tadoc.compress(text)
    started = time.perf_counter()
    keys = tadoc.content_hash(column)
    first = 1e3 * (time.perf_counter() - started)
    assert keys.equals(tadoc.content_hash(text))
    assert keys.n_unique() == text.n_unique()
    taken = times(
        {
            "content_hash, compressed": lambda: tadoc.content_hash(column),
            "content_hash, strings": lambda: tadoc.content_hash(text),
            "Polars hash, strings": lambda: text.hash(),
            "xxHash by row, strings": lambda: [xxhash.xxh3_128_intdigest(row) for row in text.to_list()],
            "decompress, Polars hash": lambda: tadoc.decompress(column).hash(),
            "equals, other grammar": lambda: tadoc.equals(column, text),
        },
        repeat,
    )
    size = int(text.str.len_bytes().sum())
    print(f"\n{name}: {len(text):,} rows, {size:,} bytes; first call {first:.1f} ms")
    for call in taken:
        cost = median_ms(taken, call)
        print(f"  {call:<26} {cost:9.2f} ms   {size / cost / 1e6:7.2f} GB/s")


if __name__ == "__main__":
    main()
