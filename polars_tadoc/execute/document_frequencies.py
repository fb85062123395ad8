"""Number of rows that contain each word, for words in more than one row."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polars_tadoc.kernels.host.rows.query_words import UNKNOWN, fill_keys, find_terms
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.records import SpillFolder
from polars_tadoc.records.records import Layout, Records, own_words
from polars_tadoc.runtime.array_types import UInt64
from polars_tadoc.runtime.arrow_arrays import lent, view

MAX_WORDS = 1 << 20
"""Words per block of a lookup."""


FREQUENCIES = Layout(("word",), 1)
"""Records of words with the number of rows that contain each."""


def document_frequencies(terms: Records) -> Records:
    """Count the rows of each word; ``terms`` has one record per row and word."""
    words, keys = own_words([False, True], terms.words, terms.keys.copy())
    numbers = np.arange(len(words), dtype=np.uint32)[:, None]
    return Records(words, numbers, np.bincount(keys[:, 1], minlength=len(words)).astype(np.uint64))


class FrequencyTable:
    """Words in code point order with numbers of rows; beyond a size, they are moved from memory to a file.

    Parameters
    ----------
    folder
        Folder of the file.
    room
        Maximum bytes in memory.

    """

    def __init__(self, folder: SpillFolder, room: int) -> None:
        self._folder, self._room = folder, room
        self._held: list[_Run] = []
        self._size = self._runs = 0

    def append(self, words: pa.LargeStringArray, counts: UInt64) -> None:
        """Append words, which must sort after the existing ones."""
        for start in range(0, len(words), MAX_WORDS):
            run = _Run(Vocabulary(words[start : start + MAX_WORDS]), counts[start : start + MAX_WORDS])
            self._held.append(run)
            self._size += run.nbytes
        if self._size > self._room:
            self._write_down()

    def _write_down(self) -> None:
        with self._folder.writing():
            for run in self._held:
                path = self._folder.path / f"frequencies-{self._runs}.arrow"
                batch = pa.record_batch([run.words.strings, lent(run.counts)], ["word", "count"])
                with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, batch.schema) as writer:
                    writer.write_batch(batch)
                self._runs += 1
        self._held, self._size = [], 0

    def look_up(self, words: Vocabulary) -> UInt64:
        """Return the number of rows of each given word, uint64; the words are in code point order and all known."""
        found = np.ones(len(words), np.uint64)
        start = 0
        for run in self._all():
            if start == len(words):
                break
            last = run.words.strings[-1].as_py()
            stop = bisect_right(words.strings, last, start, key=lambda word: word.as_py())
            run.look_up(words, start, stop, found)
            start = stop
        return found

    def _all(self) -> Iterator[_Run]:
        for number in range(self._runs):
            path = self._folder.path / f"frequencies-{number}.arrow"
            with pa.OSFile(str(path), "rb") as file:
                batch = pa.ipc.open_stream(file).read_next_batch()
            yield _Run(Vocabulary(batch.column(0)), view(batch.column(1)))
        yield from self._held


class _Run:
    """A block of consecutive words."""

    def __init__(self, words: Vocabulary, counts: UInt64) -> None:
        self.words, self.counts = words, counts
        self._sought: tuple[npt.NDArray[np.generic], ...] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of words, counts and lookup structures."""
        return 2 * int(self.words.strings.nbytes) + 16 * len(self.counts)

    def look_up(self, words: Vocabulary, start: int, stop: int, found: UInt64) -> None:
        """Write the counts of words ``start`` to ``stop`` if the block contains them."""
        if self._sought is None:
            offsets, data = self.words.offsets, self.words.data
            keys = np.empty(len(self.words), np.uint64)
            fill_keys(offsets, data, keys)
            self._sought = offsets, data, keys
        spans = np.repeat(words.offsets, 2)[1:-1].copy()
        numbers = np.empty(len(words), np.int64)
        find_terms(words.data, spans, np.arange(start, stop), *self._sought, numbers)
        own = numbers[start:stop]
        known = own != UNKNOWN
        found[start:stop][known] = self.counts[own[known]]
