"""Files of words in code point order; merges them into one numbering without holding all words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from polars_tadoc.errors import InvalidRecordsError, LimitExceededError
from polars_tadoc.kernels.host.records.merge_words import MAX_WORDS, merge_words
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.records.runs import SealedWriter, checked
from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.arrow_memory import lent
from polars_tadoc.runtime.regular_file import arrow_file
from polars_tadoc.untrusted.parquet_footer import open_parquet

GROUP = 1 << 16
"""Maximum words of a group."""

GROUP_BYTES = 1 << 20
"""Maximum bytes of a group's words, except for a single longer word."""

WORD = "word"
NO_WORDS = pa.nulls(0, pa.large_string())


class WordsWriter(SealedWriter):
    """Writes a file of words, front-coded.

    Parameters
    ----------
    path
        The file.

    """

    def __init__(self, path: Path) -> None:
        self.nbytes = 0
        """Bytes that the written words would take in memory."""
        self.size = 0
        self._waiting: list[pa.LargeStringArray] = []
        self._waiting_words = 0
        super().__init__(path, pa.schema([(WORD, pa.large_string())]), {WORD: "DELTA_BYTE_ARRAY"}, [])

    def write(self, words: pa.LargeStringArray) -> None:
        """Append words, which must sort after all earlier ones."""
        self.size += len(words)
        self.nbytes += words.nbytes
        self._waiting.append(words)
        self._waiting_words += len(words)
        if self._waiting_words >= GROUP:
            self._flush()

    def _flush(self) -> None:
        words = pa.concat_arrays([NO_WORDS, *self._waiting])
        self._waiting, self._waiting_words = [], 0
        offsets, at = Vocabulary(words).offsets, 0
        while at < len(words):
            fitting = int(np.searchsorted(offsets, offsets[at] + GROUP_BYTES, side="right")) - 1
            end = min(max(fitting, at + 1), at + GROUP, len(words))
            self._writer.write_table(pa.Table.from_arrays([words.slice(at, end - at)], schema=self._schema))
            at = end


class WordsFile:
    """Reads a file of words, group by group.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    InvalidRecordsError
        It is damaged or another kind of file.

    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with checked(path):
            self._file = open_parquet(arrow_file(path, follow=False))
        if self._file.schema_arrow != pa.schema([(WORD, pa.large_string())]):
            raise InvalidRecordsError(f"{path} does not have a column of words")
        metadata = self._file.metadata
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        if any(not 0 < size <= GROUP for size in sizes):
            raise InvalidRecordsError(f"the groups of {path} do not have 1 to {GROUP:,} words")
        self.starts: Int64 = np.append(0, np.cumsum(sizes, dtype=np.int64))

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self.starts) - 1

    def read(self, group: int) -> pa.LargeStringArray:
        """Read a group; raises as the class does."""
        with checked(self.path):
            column = self._file.read_row_group(group, use_threads=False).column(0)
            words = pa.concat_arrays([NO_WORDS, *column.chunks])
            words.validate(full=True)
        if words.null_count or len(words) != self.starts[group + 1] - self.starts[group]:
            raise InvalidRecordsError(f"{self.path}, group {group}: words are missing")
        if not Vocabulary(words).ascending.all():
            raise InvalidRecordsError(f"{self.path}, group {group}: the words are not distinct and in code point order")
        return words

    def read_all(self) -> pa.LargeStringArray:
        """Read all words; raises as the class does."""
        return pa.concat_arrays([NO_WORDS, *(self.read(group) for group in range(self.groups))])

    def take(self, numbers: UInt32) -> pa.LargeStringArray:
        """Read words by ascending numbers; reads only the groups that contain them."""
        edges = np.searchsorted(numbers, self.starts)
        found = [NO_WORDS]
        for group in np.flatnonzero(np.diff(edges)):
            own = numbers[edges[group] : edges[group + 1]] - np.uint32(self.starts[group])
            found.append(self.read(int(group)).take(lent(own)))
        return pa.concat_arrays(found)

    def close(self) -> None:
        """Close the file."""
        self._file.close(force=True)


def merge_word_files(files: Sequence[WordsFile], made: WordsWriter, numbers: Sequence[Path]) -> None:
    """Merge the words of files, one group of each at a time.

    Parameters
    ----------
    files
        The files.
    made
        Output of all distinct words.
    numbers
        By file: output of the new number of each of its words, uint32.

    Raises
    ------
    LimitExceededError
        There are more words than 32 bits can number.
    InvalidRecordsError
        A file is damaged.

    """
    readers = [_Words(file) for file in files]
    for path in numbers:
        path.touch()
    while live := [k for k, reader in enumerate(readers) if reader.load()]:
        lasts = [readers[k].waiting[-1].as_py() for k in live if readers[k].has_more]
        bound = min(lasts, default=None)
        words, maps = merge_words([readers[k].take(bound) for k in live])
        start = made.size
        if start + len(words) > MAX_WORDS:
            raise LimitExceededError(f"there are more than {MAX_WORDS:,} words, which are numbered in 32 bits")
        made.write(words)
        for k, own in zip(live, maps, strict=True):
            own = np.arange(readers[k].taken, dtype=np.uint32) if own is None else own
            with numbers[k].open("ab") as file:
                (own + np.uint32(start)).tofile(file)


class _Words:
    """Cursor over the words of a file."""

    def __init__(self, file: WordsFile) -> None:
        self.waiting = NO_WORDS
        self.taken = 0
        """Number of words taken last."""
        self._file, self._group, self._last = file, 0, ""

    @property
    def has_more(self) -> bool:
        """Whether words follow the loaded ones."""
        return self._group < self._file.groups

    def load(self) -> bool:
        """Load a group if no words are loaded; tell whether any are."""
        if len(self.waiting) == 0 and self.has_more:
            self.waiting = self._file.read(self._group)
            if self._group and self.waiting[0].as_py() <= self._last:
                raise InvalidRecordsError(f"{self._file.path}, group {self._group}: the words are not sorted")
            self._last = self.waiting[-1].as_py()
            self._group += 1
        return len(self.waiting) > 0

    def take(self, bound: str | None) -> pa.LargeStringArray:
        """Take the loaded words up to a bound, inclusive."""
        first, last = (0, len(self.waiting)) if bound is not None else (len(self.waiting), len(self.waiting))
        while first < last:
            middle = (first + last) // 2
            if self.waiting[middle].as_py() <= bound:
                first = middle + 1
            else:
                last = middle
        taken, self.waiting = self.waiting.slice(0, first), self.waiting.slice(first)
        self.taken = first
        return taken
