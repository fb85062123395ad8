"""A corpus larger than memory: copies of real texts, near one another and not equal.

``python -m benchmarks.near_copies FOLDER --gigabytes 20`` writes Parquet files of text; with ``--packed``, files of
packed rows, as ``sink_packed`` would make them. In each copy one word in a hundred is another one, drawn from the words
of the texts as they occur; so copies share most phrases, and each edit makes sequences that are nowhere else. A file
that is there already is left as it is.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numba as nb
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

import polars_tadoc as tadoc
from benchmarks import corpora

EDITS = 0.01
"""Share of words that become others."""

FILE_BYTES = 1 << 28
"""Text of one file, about: that of one grammar."""

Numbers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


def base(names: list[str]) -> pl.Series:
    """All rows of some corpora, in one chunk."""
    return pl.concat([corpora.load(name)[1].drop_nulls() for name in names]).rechunk()


@nb.njit(nogil=True, cache=True)
def _is_word_byte(byte: int) -> bool:
    return 48 <= byte <= 57 or 65 <= byte <= 90 or byte == 95 or 97 <= byte <= 122 or byte >= 128


@nb.njit(nogil=True, cache=True)
def find_words(data: Bytes) -> tuple[Numbers, Numbers]:
    """Find the words of ASCII letters, digits and underscores: where each starts, and its bytes."""
    starts, lengths = np.empty(len(data) // 2 + 1, np.int64), np.empty(len(data) // 2 + 1, np.int64)
    count = at = 0
    while at < len(data):
        if not _is_word_byte(data[at]):
            at += 1
            continue
        start, plain = at, True
        while at < len(data) and _is_word_byte(data[at]):
            plain = plain and data[at] < 128
            at += 1
        if plain:
            starts[count], lengths[count] = start, at - start
            count += 1
    return starts[:count].copy(), lengths[:count].copy()


@nb.njit(nogil=True, cache=True)
def _edit(
    offsets: Numbers, data: Bytes, starts: Numbers, lengths: Numbers, share: float, seed: int, made: Bytes
) -> Numbers:
    """Copy rows with some words replaced; returns the rows' new offsets."""
    np.random.seed(seed)
    ends = np.empty(len(offsets), np.int64)
    ends[0] = row = word = at = out = 0
    skip = int(np.random.geometric(share))  # words to the next edit
    while row < len(offsets) - 1:
        while word < len(starts) and skip > 1 and starts[word] < offsets[row + 1]:
            word += 1
            skip -= 1
        edits = word < len(starts) and starts[word] < offsets[row + 1]
        stop = starts[word] if edits else offsets[row + 1]
        for place in range(at, stop):
            made[out] = data[place]
            out += 1
        at = stop
        if edits:
            other = np.random.randint(0, len(starts))
            for place in range(starts[other], starts[other] + lengths[other]):
                made[out] = data[place]
                out += 1
            at += lengths[word]
            word += 1
            skip = int(np.random.geometric(share))
        else:
            row += 1
            ends[row] = out
    return ends


class NearCopies:
    """Copies of texts, each made when it is asked for: the same one for the same number."""

    def __init__(self, text: pl.Series, share: float = EDITS) -> None:
        self.text = text.alias("text")
        strings = text.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
        _, offsets, data = strings.buffers()
        self.share = share
        self.offsets = np.frombuffer(offsets, np.int64, len(strings) + 1, 8 * strings.offset)
        self.data = np.frombuffer(data, np.uint8)
        self.starts, self.lengths = find_words(self.data)

    @property
    def nbytes(self) -> int:
        """Bytes of the texts."""
        return int(self.offsets[-1] - self.offsets[0])

    def copy(self, number: int) -> pl.Series:
        """Make one copy; number 0 is the text itself."""
        if number == 0:
            return self.text
        made = np.empty(int(self.nbytes * (1 + 4 * self.share)) + (1 << 16), np.uint8)
        ends = _edit(self.offsets, self.data, self.starts, self.lengths, self.share, number, made)
        buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(made[: ends[-1]].tobytes())]
        return pl.Series("text", pa.LargeStringArray.from_buffers(len(ends) - 1, buffers[1], buffers[2]))


def pieces(names: list[str], gigabytes: float, share: float) -> list[tuple[int, list[int]]]:
    """Say which copies go into each file, by the file's number."""
    size = NearCopies(base(names), share).nbytes
    copies = max(1, round(gigabytes * 1e9 / size))
    each = max(1, FILE_BYTES // size)
    return [
        (place, list(range(first, min(first + each, copies)))) for place, first in enumerate(range(0, copies, each))
    ]


_copies: dict[tuple[tuple[str, ...], float], NearCopies] = {}
"""What this process makes copies of."""


def texts(names: list[str], share: float, numbers: list[int]) -> Iterator[pl.Series]:
    """Make some copies."""
    key = (tuple(names), share)
    if key not in _copies:
        _copies[key] = NearCopies(base(names), share)
    for number in numbers:
        yield _copies[key].copy(number)


def write(folder: Path, names: list[str], share: float, place: int, numbers: list[int], packed: bool) -> int:
    """Write one file; returns its bytes of text, 0 where it is there."""
    path = folder / f"part-{place:05d}.parquet"
    if path.exists():
        return 0
    rows = pl.concat(list(texts(names, share, numbers)), rechunk=True)
    frame = pl.DataFrame({"text": rows})
    temporary = path.with_suffix(".tmp")
    if packed:
        frame.tadoc.compress("text", rows_per_grammar=frame.height).tadoc.write_packed(temporary)  # type: ignore[attr-defined]
    else:
        frame.write_parquet(temporary, compression="lz4", row_group_size=frame.height)
    temporary.rename(path)
    return int(rows.str.len_bytes().sum())


def _start(threads: int) -> None:
    tadoc.Config.set(threads=threads, engine="cpu")


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description="near copies of real texts")
    parser.add_argument("folder", type=Path)
    parser.add_argument("corpora", nargs="*", help="Parquet files with a column text, or shared corpora")
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--edits", type=float, default=EDITS, help="share of words that become others")
    parser.add_argument("--packed", action="store_true", help="compress and pack")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    names = corpora.names(given.corpora)
    work = pieces(names, given.gigabytes, given.edits)
    start, done = time.perf_counter(), 0
    threads = max(1, (os.cpu_count() or 1) // given.processes)
    with ProcessPoolExecutor(given.processes, get_context("spawn"), _start, (threads,)) as pool:
        tasks = [pool.submit(write, given.folder, names, given.edits, *piece, given.packed) for piece in work]
        for place, task in enumerate(tasks):
            done += task.result()
            print(f"{place + 1} of {len(work)} files, {done / 1e9:.2f} GB of text made now", end="\r", flush=True)
    seconds = time.perf_counter() - start
    size = sum(path.stat().st_size for path in given.folder.glob("part-*.parquet"))
    print(f"\n{corpora.machine()}")
    print(
        f"{done / 1e9:.2f} GB of text in {seconds:.0f} s, {done / 1e6 / seconds:.0f} MB/s; {size / 1e9:.2f} GB of files"
    )


if __name__ == "__main__":
    main()
