"""Merges runs: their words into one numbering, and their records range by range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from polars_tadoc.kernels.host.records.packed_keys import KeyForm, unpack
from polars_tadoc.records.key_ranges import Range, Source, read_ranges, record_bytes
from polars_tadoc.records.packed_records import ROW_FORM, Packed, form_of
from polars_tadoc.records.records import Layout
from polars_tadoc.records.runs import GROUP, KeysFile, KeysWriter
from polars_tadoc.records.spill_folder import SpillFolder
from polars_tadoc.records.word_runs import WordsFile, WordsWriter, merge_word_files
from polars_tadoc.runtime.array_types import UInt32, UInt64

WORDS_SHARE = 4
"""Words are held in memory where they take no more of the room; so are the runs' numbers of them."""

RANGES_SHARE = 2
"""Ranges take at most such a share of the room."""

MAX_RUNS = 64
"""Runs that are open at once."""

MIN_GROUP = 1 << 10
"""Least records of a group, in however little room."""


@dataclass(frozen=True)
class Run:
    """Files of sorted records."""

    stem: Path
    """What their names begin with."""
    layout: Layout
    """What the records mean."""
    room: int
    """Bytes that may be held when runs are read side by side."""

    @property
    def keys_path(self) -> Path:
        """The file of keys and counts."""
        return self.stem.with_suffix(".keys.parquet")

    @property
    def words_path(self) -> Path:
        """The file of words."""
        return self.stem.with_suffix(".words.parquet")

    @property
    def rows_path(self) -> Path:
        """The file of rows and their lengths."""
        return self.stem.with_suffix(".rows.parquet")

    def write(self, packed: Packed) -> None:
        """Write what was merged in memory."""
        with WordsWriter(self.words_path) as words:
            words.write(packed.words)
        with self.keys_writer(packed.form) as keys:
            keys.write(packed.keys, packed.counts)
        if packed.rows is not None:
            with self.rows_writer() as rows:
                rows.write(*packed.rows)

    def keys_writer(self, form: KeyForm) -> KeysWriter:
        """Write keys and counts."""
        return KeysWriter(self.keys_path, form, self.layout.counted, self._group(form))

    def rows_writer(self) -> KeysWriter:
        """Write rows that are there, and their lengths as counts."""
        return KeysWriter(self.rows_path, ROW_FORM, True, self._group(ROW_FORM))

    def _group(self, form: KeyForm) -> int:
        """Records of a group: so few that groups of as many runs as are read at once fit half a range."""
        fitting = self.room // (RANGES_SHARE * 2 * MAX_RUNS * record_bytes(form))
        return min(max(fitting, MIN_GROUP), GROUP)

    def remove(self) -> None:
        """Remove the files."""
        for path in (self.keys_path, self.words_path, self.rows_path):
            path.unlink(missing_ok=True)


class InMemory:
    """What was merged in memory, to be read as runs are."""

    def __init__(self, layout: Layout, packed: Packed) -> None:
        self.form = packed.form
        self._layout, self._packed = layout, packed

    def ranges(self) -> Iterator[Range]:
        """Give the records."""
        yield Range(self._packed.keys, self._packed.counts, None)

    def rows(self) -> Iterator[Range]:
        """Give the rows that are there, and their lengths as counts."""
        if self._packed.rows is not None:
            yield Range(*self._packed.rows, None)

    def unpack(self, keys: UInt64) -> tuple[pa.LargeStringArray, UInt32]:
        """Return the words, and keys that number them."""
        return self._packed.words, unpack(keys, self.form)


class Merging:
    """Runs that are read side by side.

    Parameters
    ----------
    layout
        What their records mean.
    runs
        The runs.
    room
        Bytes that may be held.
    folder
        For temporary files.
    call
        What messages begin with.
    words_path
        Where all words are written; None: to a temporary file.

    Raises
    ------
    InvalidRecordsError, DiskFullError, LimitExceededError
        A file is damaged, no more can be written, or there are more words than 32 bits number.

    """

    def __init__(
        self,
        layout: Layout,
        runs: Sequence[Run],
        room: int,
        folder: SpillFolder,
        call: str,
        words_path: Path | None = None,
    ) -> None:
        self._layout, self._runs, self._room, self._folder, self._call = layout, runs, room, folder, call
        self._open = ExitStack()
        try:
            path = words_path or folder.path / "all.words.parquet"
            numbers = [folder.path / f"{run.stem.name}.numbers" for run in runs]
            with folder.writing():
                words_bytes = self._merge_words(path, numbers)
            self._words = WordsFile(path)
            self._open.callback(self._words.close)
            files = [self._keys_file(run.keys_path, len(layout.columns), layout.counted) for run in runs]
            widest = np.max([file.form.bits for file in files], axis=0)
            self.form = form_of(layout, len(self._words), widest.tolist())
            with folder.writing():
                self._sources = self._in_one_numbering(files, numbers)
            self._all = self._words.read_all() if words_bytes <= room // WORDS_SHARE and words_path is None else None
        except BaseException:
            self.close()
            raise

    def _merge_words(self, path: Path, numbers: Sequence[Path]) -> int:
        with ExitStack() as stack:
            files = [WordsFile(run.words_path) for run in self._runs]
            for file in files:
                stack.callback(file.close)
            with WordsWriter(path) as made:
                merge_word_files(files, made, numbers)
        return made.nbytes

    def _keys_file(self, path: Path, columns: int, counted: bool) -> KeysFile:
        file = KeysFile(path, columns, counted)
        self._open.callback(file.close)
        return file

    def _in_one_numbering(self, files: Sequence[KeysFile], numbers: Sequence[Path]) -> list[Source]:
        """Hold each run's numbers of words; where they do not fit together, write the runs again with common ones."""
        fit = sum(path.stat().st_size for path in numbers) <= self._room // WORDS_SHARE
        sources = []
        for file, path in zip(files, numbers, strict=True):
            source = Source(file, np.fromfile(path, np.uint32))
            path.unlink()
            sources.append(source if fit else self._rewritten(source, path.with_suffix(".again.parquet")))
        return sources

    def _rewritten(self, source: Source, path: Path) -> Source:
        with KeysWriter(path, self.form, self._layout.counted) as writer:
            for group in range(len(source.file.sizes)):
                writer.write(*source.read([group], self.form, self._layout.are_words))
        return Source(self._keys_file(path, len(self._layout.columns), self._layout.counted), None)

    def ranges(self) -> Iterator[Range]:
        """Read and merge the records."""
        mask = self.form.first_limb_mask(self._layout.group)
        room = self._room // RANGES_SHARE
        return read_ranges(self._sources, self.form, self._layout.are_words, mask, room, self._call)

    def rows(self) -> Iterator[Range]:
        """Read and merge the rows that are there, and their lengths as counts."""
        files = [self._keys_file(run.rows_path, 1, counted=True) for run in self._runs if self._layout.documents]
        mask, room = ROW_FORM.first_limb_mask(1), self._room // (8 * RANGES_SHARE)
        return read_ranges([Source(file, None) for file in files], ROW_FORM, [False], mask, room, self._call)

    def unpack(self, keys: UInt64) -> tuple[pa.LargeStringArray, UInt32]:
        """Return words, and keys that number them."""
        unpacked = unpack(keys, self.form)
        if self._all is not None:
            return self._all, unpacked
        columns = [place for place, word in enumerate(self._layout.are_words) if word]
        used = np.unique(unpacked[:, columns])
        unpacked[:, columns] = np.searchsorted(used, unpacked[:, columns])
        return self._words.take(used), unpacked

    def close(self) -> None:
        """Close all files."""
        self._open.close()


def merge_runs(layout: Layout, runs: Sequence[Run], made: Run, room: int, folder: SpillFolder, call: str) -> None:
    """Merge runs into one; arguments and errors as for :class:`Merging`.

    Parameters
    ----------
    layout, runs, room, folder, call
        As there.
    made
        The one that is written.

    """
    found = Merging(layout, runs, room, folder, call, made.words_path)
    try:
        with made.keys_writer(found.form) as keys:
            for part in found.ranges():
                keys.write(part.keys, part.counts)
        if layout.documents:
            with made.rows_writer() as rows:
                for part in found.rows():
                    rows.write(part.keys, part.counts)
    finally:
        found.close()
