"""Merges runs: first their words into one numbering, then their records range by range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from polars_tadoc.kernels.host.records.packed_keys import KeyForm, unpack
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.records.key_ranges import Range, Source, read_ranges, record_bytes
from polars_tadoc.records.packed_records import ROW_FORM, Packed, form_of
from polars_tadoc.records.records import Layout
from polars_tadoc.records.runs import GROUP, KeysFile, KeysWriter
from polars_tadoc.records.spill_folder import SpillFolder
from polars_tadoc.records.word_runs import WordsFile, WordsWriter, merge_word_files
from polars_tadoc.runtime.array_types import UInt32, UInt64

WORDS_SHARE = 4
"""Maximum share of the room for words in memory, and for the runs' numbers of words."""

RANGES_SHARE = 2
"""Maximum share of the room for a range."""

MAX_RUNS = 64
"""Maximum number of open runs."""

MIN_GROUP = 1 << 10
"""Minimum records of a group, however small the room."""


class Run(NamedTuple):
    """Files of sorted records."""

    stem: Path
    """Prefix of their names."""
    layout: Layout
    """Layout of the records."""
    room: int
    """Maximum bytes in memory when runs are read together."""

    @property
    def keys_path(self) -> Path:
        """Path of the file of keys and counts."""
        return self.stem.with_suffix(".keys.parquet")

    @property
    def words_path(self) -> Path:
        """Path of the file of words."""
        return self.stem.with_suffix(".words.parquet")

    @property
    def rows_path(self) -> Path:
        """Path of the file of rows and their lengths."""
        return self.stem.with_suffix(".rows.parquet")

    def write(self, packed: Packed) -> None:
        """Write records merged in memory."""
        with WordsWriter(self.words_path) as words:
            words.write(packed.words)
        with self.keys_writer(packed.form) as keys:
            keys.write(packed.keys, packed.counts)
        if packed.rows is not None:
            with self.rows_writer() as rows:
                rows.write(*packed.rows)

    def keys_writer(self, form: KeyForm) -> KeysWriter:
        """Open a writer of keys and counts."""
        return KeysWriter(self.keys_path, form, self.layout.counted, self._group(form))

    def rows_writer(self) -> KeysWriter:
        """Open a writer of existing rows, with their lengths as counts."""
        return KeysWriter(self.rows_path, ROW_FORM, True, self._group(ROW_FORM))

    def _group(self, form: KeyForm) -> int:
        """Return the records per group; small enough that one group of each open run fits half a range."""
        fitting = self.room // (RANGES_SHARE * 2 * MAX_RUNS * record_bytes(form))
        return min(max(fitting, MIN_GROUP), GROUP)

    def remove(self) -> None:
        """Remove the files."""
        for path in (self.keys_path, self.words_path, self.rows_path):
            path.unlink(missing_ok=True)


class InMemory:
    """Records merged in memory, with the interface of runs."""

    def __init__(self, layout: Layout, packed: Packed) -> None:
        self.form = packed.form
        self._layout, self._packed, self._words = layout, packed, Vocabulary(packed.words)

    def ranges(self) -> Iterator[Range]:
        """Yield the records."""
        yield Range(self._packed.keys, self._packed.counts, None)

    def rows(self) -> Iterator[Range]:
        """Yield existing rows, with their lengths as counts."""
        if self._packed.rows is not None:
            yield Range(*self._packed.rows, None)

    def unpack(self, keys: UInt64) -> tuple[Vocabulary, UInt32]:
        """Return the words, and keys of word numbers."""
        return self._words, unpack(keys, self.form)


class Merging:
    """Runs that are read together.

    Parameters
    ----------
    layout
        Layout of the records.
    runs
        The runs.
    room
        Maximum bytes in memory.
    folder
        Folder for temporary files.
    call
        Prefix of messages.
    words_path
        Output file of all words; None: a temporary file.

    Raises
    ------
    InvalidRecordsError, DiskFullError, LimitExceededError
        A file is damaged, the disk is full, or there are more words than 32 bits can number.

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
        self._open, self._sources = ExitStack(), list[Source]()
        self._keys: list[KeysFile] = []
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
            is_small = words_bytes <= room // WORDS_SHARE and words_path is None
            self._all = Vocabulary(self._words.read_all()) if is_small else None
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
        self._keys.append(file)
        return file

    def _in_one_numbering(self, files: Sequence[KeysFile], numbers: Sequence[Path]) -> list[Source]:
        """Keep each run's map of word numbers in memory; if they do not fit, rewrite the runs with common numbers."""
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
        yield from read_ranges(self._sources, self.form, self._layout.are_words, mask, room, self._call)
        if not self._layout.documents:
            self._close_keys()  # their footers take up to a tenth of a small limit, and ranges may be sorted again

    def rows(self) -> Iterator[Range]:
        """Read and merge existing rows, with their lengths as counts."""
        files = [self._keys_file(run.rows_path, 1, counted=True) for run in self._runs if self._layout.documents]
        mask, room = ROW_FORM.first_limb_mask(1), self._room // (8 * RANGES_SHARE)
        return read_ranges([Source(file, None) for file in files], ROW_FORM, [False], mask, room, self._call)

    def unpack(self, keys: UInt64) -> tuple[Vocabulary, UInt32]:
        """Return words, and keys of word numbers."""
        unpacked = unpack(keys, self.form)
        if self._all is not None:
            return self._all, unpacked
        columns = [place for place, word in enumerate(self._layout.are_words) if word]
        used = np.unique(unpacked[:, columns])
        unpacked[:, columns] = np.searchsorted(used, unpacked[:, columns])
        return Vocabulary(self._words.take(used)), unpacked

    def close(self) -> None:
        """Close all files."""
        self._close_keys()
        self._open.close()

    def _close_keys(self) -> None:
        while self._keys:
            self._keys.pop().close()
        self._sources.clear()


def merge_runs(layout: Layout, runs: Sequence[Run], made: Run, room: int, folder: SpillFolder, call: str) -> None:
    """Merge runs into one; parameters and errors as for :class:`Merging`.

    Parameters
    ----------
    layout, runs, room, folder, call
        As for :class:`Merging`.
    made
        The output run.

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
