"""The words of a column larger than memory: numbers in a file, block by block; memory holds the distinct words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from polars_tadoc.analytics.cleaning.laid_words import LaidWords, lay_out_window
from polars_tadoc.compress.decompress import StoredSymbols
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.execute.splits import working_bytes
from polars_tadoc.execute.windows import Window
from polars_tadoc.kernels.host.records.number_words import number_words
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.kernels.windows.passages_cpu import map_words
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.records import SpillFolder
from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

WORDS_SHARE = 4
"""Maximum share of the limit for the distinct words."""

WORD_BYTES = 60
"""Maximum bytes for each word of a block while it is read."""

READ = 1 << 18
"""Minimum words that a thread reads."""

NUMBER_BYTES = 16
"""Bytes for a distinct word beside its own while words are numbered."""


@dataclass(frozen=True)
class Block:
    """Consecutive rows."""

    first: int
    """Number of its first row."""
    rows: int
    start: int
    """``rows``, ``start``: number of its rows, and the place of its words in the file."""
    size: int
    """Number of its words and separators."""
    starts: int
    """Where the starts of its rows are in another file."""
    places: int | None
    """Start of the words' numbers among their rows' own in another file; None if normalisation dropped no word."""


def parts_of(window: Window, limit: int) -> Iterator[Window]:
    """Split rows of compressed columns into parts whose words fit; those of text are small."""
    words = sum(corpus.word_total() for corpus in window.corpora)
    if WORD_BYTES * words <= working_bytes(limit) or window.height <= 1:
        yield window
        return
    half = window.height // 2
    for first, rows in ((0, half), (half, window.height - half)):
        start = window.first + first
        corpora = []
        for corpus in window.corpora:
            a, b = np.searchsorted(corpus.rows, [start, start + rows])
            corpora.append(corpus.some(int(a), int(b)))
        column = None if window.column is None else window.column.slice(first, rows)
        yield from parts_of(Window(start, window.frame.slice(first, rows), tuple(corpora), column), limit)


class KeptWords:
    """Words of rows that arrive block by block.

    Parameters
    ----------
    call
        The call, for messages.
    folder
        Where the words are written.
    limit
        Memory limit in bytes.

    """

    def __init__(self, call: str, folder: SpillFolder, limit: int) -> None:
        self._call, self._folder, self._limit = call, folder, limit
        self._words: Any = pa.array([], pa.large_string())
        self.blocks: list[Block] = []
        self._stored, self._total = StoredSymbols(), 0

    def add(self, window: Window, tokenizer: Tokenizer | None, morphism: Morphism | None) -> LaidWords:
        """Add rows, and return their words.

        Raises as :func:`lay_out`, and ``LimitExceededError`` if the distinct words do not fit.
        """
        self._stored.add(window.corpora)
        self._total += sum(corpus.word_total() for corpus in window.corpora)
        self._stored.require(self._total, self._call)
        laid = lay_out_window(window, self._call, tokenizer, morphism)
        self._words, (_, image) = number_words([self._words, laid.vocabulary.strings])
        needed = int(self._words.nbytes) + NUMBER_BYTES * len(self._words)
        if needed > self._limit // WORDS_SHARE:
            raise LimitExceededError(
                f"{self._call}: {len(self._words):,} distinct words take about {WORDS_SHARE * needed:,} bytes with the "
                f"memory to work on them, more than memory_limit={self._limit:,}; raise it"
            )
        words = map_words(laid.words.copy(), image)
        places = None
        with self._folder.writing():
            start = _append(self._folder.path / "words", words)
            if laid.places is not None:
                places = _append(self._folder.path / "places", laid.places)
            starts = _append(self._folder.path / "starts", laid.starts.astype(np.uint32))
        self.blocks.append(Block(window.first, len(laid.valid), start, len(words), starts, places))
        return laid

    @property
    def vocabulary(self) -> Vocabulary:
        """The distinct words."""
        return Vocabulary(self._words)

    @property
    def words(self) -> int:
        """Number of words and separators."""
        return sum(block.size for block in self.blocks)

    def read(self, block: Block) -> LaidWords:
        """Return the words of a block; without the numbers that they have among their row's own."""
        words = _part(self._folder.path / "words", block.start, block.size)
        return LaidWords(self.vocabulary, self.starts(block), words, np.ones(block.rows, np.bool_), ())

    def starts(self, block: Block) -> Int64:
        """Return the start of each row of a block, int64, rows + 1."""
        return _part(self._folder.path / "starts", block.starts, block.rows + 1).astype(np.int64)

    def places(self, block: Block) -> UInt32 | None:
        """Return the number of each word of a block among its row's own words; None if all are kept."""
        return None if block.places is None else _part(self._folder.path / "places", block.places, block.size)


def _append(path: Path, numbers: UInt32) -> int:
    """Append numbers to a file, and return how many it had."""
    with path.open("ab") as file:
        start = file.tell() // 4
        numbers.tofile(file)
    return start


def _part(path: Path, start: int, size: int) -> UInt32:
    numbers = np.empty(size, np.uint32)

    def read(chunk: tuple[int, int]) -> None:
        with path.open("rb", buffering=0) as file:
            file.seek(4 * (start + chunk[0]))
            own = numbers[slice(*chunk)].view(np.uint8).data
            while len(own):
                own = own[file.readinto(own) or _ended(path) :]

    map_parallel(read, even_chunks(size, READ))
    return numbers


def _ended(path: Path) -> int:
    raise OSError(f"{path} is shorter than when it was written")
