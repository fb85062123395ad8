"""Records through spilling: ``python -m benchmarks.spill``.

Trigrams of copies of real texts (``benchmarks.near_copies``) are added copy by copy, in so little room that runs are
written, and read back merged and in the order of their counts. *near*: copies share most trigrams. *apart*: the same
trigrams, of which no two copies share any, as if each had words of its own; nothing is saved by merging. Nanoseconds
are those of the processor, all threads together, and of the clock, for each record that was added.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.near_copies import NearCopies, base
from polars_tadoc.analytics.sequence_count import SequenceCountRequest
from polars_tadoc.engine.choose import choose
from polars_tadoc.model.column import split
from polars_tadoc.records import Spill
from polars_tadoc.records.records import Records


def trigrams(texts: NearCopies, copies: int) -> list[Records]:
    """Count the trigrams of some copies."""
    request = SequenceCountRequest.from_arguments(n=3)
    found = []
    for number in range(copies):
        text = texts.copy(number)
        (corpus,) = split(text.tadoc.compress(rows_per_grammar=len(text)))  # type: ignore[attr-defined]
        found.append(request.transport.records(request.partial(corpus, choose("cpu", corpus.symbol_count))))
    return found


def apart(parts: list[Records]) -> Iterator[Records]:
    """Give each part words that no other has."""
    for number, part in enumerate(parts):
        words = pl.Series(pl.from_arrow(part.words)) + f"\0{number}"  # before all other characters: the order stays
        yield Records(words.to_arrow(compat_level=pl.CompatLevel.oldest()), part.keys, part.counts)


def clocks() -> tuple[float, float]:
    """Seconds of the processor and of the clock."""
    return time.process_time(), time.perf_counter()


def measure(parts: list[Records], room: int, folder: Path) -> list[str]:
    """Spill parts, and give what is to be printed."""
    size = sum(map(len, parts))
    start = clocks()
    with Spill(SequenceCountRequest.from_arguments(n=3).layout, room) as spill:
        for part in parts:
            spill.add(part)
        added = clocks()
        files = [file for file in folder.rglob("run-*") if file.is_file()]
        runs, size_on_disk = len(files) // 2, sum(file.stat().st_size for file in files)
        merged = sum(map(len, spill.merged()))
    done = clocks()
    adding = [f"{(b - a) / size * 1e9:.0f}" for a, b in zip(start, added, strict=True)]
    merging = [f"{(b - a) / size * 1e9:.0f}" for a, b in zip(added, done, strict=True)]
    return [f"{size:,}", f"{merged:,}", str(runs), f"{size_on_disk / 1e6:.0f}", *adding, *merging]


def main() -> None:
    """Print a line for each kind of parts."""
    parser = corpora.arguments("records through spilling")
    parser.add_argument("--copies", type=int, default=6)
    parser.add_argument("--room", type=int, default=100, help="MB")
    given = parser.parse_args()
    parts = trigrams(NearCopies(base(corpora.names(given.corpora))), given.copies)
    print(corpora.machine(), flush=True)
    print("copies | added | merged | runs | MB on disk | add: processor ns | clock ns | merge: processor ns | clock ns")
    with tempfile.TemporaryDirectory() as folder, tadoc.Config(spill_folder=folder):
        measure([*apart(parts[:2])], given.room * 1_000_000 // 100, Path(folder))  # compiles
        for name, made in (("near", parts), ("apart", [*apart(parts)])):
            lines = [measure(made, given.room * 1_000_000, Path(folder)) for _ in range(given.repeat)]
            print(" | ".join([name, *min(lines, key=lambda line: int(line[4]) + int(line[6]))]), flush=True)


if __name__ == "__main__":
    main()
