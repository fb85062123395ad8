"""A 128-bit key of each row's text, equal for all forms of the text."""

from __future__ import annotations

import numpy as np
import polars as pl

from polars_tadoc.compress.decompress import WRONG
from polars_tadoc.config import settings
from polars_tadoc.engine.progress import STEPS, bar_of
from polars_tadoc.errors import InvalidGrammarError, NotCompressedError
from polars_tadoc.kernels.host.rows import content_hash as kernels
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.model.column import require_series, scatter_to_rows, split
from polars_tadoc.model.corpus import Corpus, require_countable
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.model.text_type import is_tadoc
from polars_tadoc.rows.token_count import token_count
from polars_tadoc.runtime.array_types import UInt8, UInt64, array_dataclass
from polars_tadoc.runtime.arrow_memory import binary_views
from polars_tadoc.runtime.cache import ByteLRU
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.option_signature import takes_progress
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

DTYPE = pl.UInt128
"""Type of a key: Polars can group by, join on, sort and store it like any integer."""

_2_64 = 1 << 64
_POWERS, _LIMBS = kernels.POWERS, kernels.LIMBS


@ends_on_interrupt
@documented_by(token_count)
@takes_progress
def content_hash(column: pl.Series, *, progress: bool | None = None) -> pl.Series:
    """Hash the text of each row: a key for ``unique``, ``group_by`` and ``join``.

    Equal texts have equal hashes, whatever their tokenizer, method or grammar, and also in a String column. The hash is
    of the bytes that :func:`decompress` returns; for a column compressed with ``lossless=False``, of the words joined
    by spaces. Rules of a grammar are hashed once, and rows from the hashes of their symbols: no row is decompressed.
    Later versions give the same hashes.

    Two different texts have equal hashes with a probability of about 1 in 2^122. But such texts can be constructed: if
    the texts come from outside, compare those with equal hashes by :func:`equals`. Runs on the CPU.

    Algorithm: two polynomials in the bytes modulo 2^61 - 1, at fixed random points (R. M. Karp and M. O. Rabin,
    *Efficient randomized pattern-matching algorithms*, 1987; J. L. Carter and M. N. Wegman, *Universal classes of hash
    functions*, 1979), mixed one to one into 128 bits.

    Parameters
    ----------
    column
        Compressed column, or a String one.

    Returns
    -------
    UInt128 series
        One hash per row; null for null rows. Convert Python integers of this size with ``pl.lit(key, pl.UInt128)``;
        Arrow, pandas and NumPy lack the type: use ``cast(pl.String)`` first.

    Raises
    ------
    NotCompressedError
        The series is neither a compressed column nor String.

    Examples
    --------
    >>> text = pl.Series("text", ["to be", "or not", "to be", None])
    >>> keys = tadoc.content_hash(text.tadoc.compress())
    >>> keys.equals(tadoc.content_hash(text)), keys.n_unique()
    (True, 3)

    """
    require_text(column, "content_hash")
    with bar_of(len(column), "content_hash", by=STEPS):
        return hash_strings(column) if column.dtype == pl.String else _hash_compressed(column)


def _hash_compressed(column: pl.Series) -> pl.Series:
    corpora = split(column)
    if not corpora:
        return pl.Series(column.name, [None], DTYPE).new_from_index(0, len(column))
    require_countable(corpora)
    halves = [_hash_rows(corpus) for corpus in corpora]
    low, high = (np.concatenate(half) for half in zip(*halves, strict=True))
    return scatter_to_rows(_joined(column.name, low, high), [corpus.rows for corpus in corpora], len(column))


def require_text(column: pl.Series, call: str) -> None:
    """Raise ``NotCompressedError`` unless the series is a compressed column or String."""
    require_series(column, call)
    if column.dtype != pl.String and not is_tadoc(column.dtype):
        raise NotCompressedError.for_column(column.name, column.dtype, call)


def hash_strings(text: pl.Series) -> pl.Series:
    """Hash a String series; null for null rows."""
    addresses, lengths, owner = binary_views(text)
    low, high = np.empty(len(text), np.uint64), np.empty(len(text), np.uint64)

    def hash_some(rows: tuple[int, int]) -> None:
        own = slice(*rows)
        kernels.hash_strings(addresses[own], lengths[own], _POWERS, _LIMBS.ctypes.data, low[own], high[own])

    map_parallel(hash_some, weighted_chunks(running_sum(lengths)))
    del owner  # the addresses point into it
    keys = _joined(text.name, low, high)
    if text.null_count() == 0:
        return keys
    return pl.select(pl.when(text.is_not_null()).then(keys).alias(text.name)).to_series()


@array_dataclass
class _Parts:
    """Hashes of a grammar's symbols, from which those of rows are computed.

    A part is both polynomials, then both bases to the power of its number of bytes. All are uint64.
    """

    parts: UInt64
    """Parts of gaps by code; from ``start`` on two parts for each symbol."""
    codes: int
    """Codes of gaps."""
    start: int
    lengths: UInt8
    """By symbol: the words of its expansion, at most ``LONG``."""

    @classmethod
    def of(cls, corpus: Corpus) -> _Parts:
        """Hash a grammar's symbols, or return their hashes from the cache."""
        return _parts.get(corpus.key) or _parts.put(corpus.key, cls._hash(corpus.grammar))

    @classmethod
    def _hash(cls, grammar: Grammar) -> _Parts:
        gap_data = np.concatenate([np.frombuffer(b" ", np.uint8), grammar.gaps.data])
        gap_offsets = np.concatenate([[0], grammar.gaps.offsets + 1])
        codes = len(gap_offsets) - 1
        start = codes + codes % 2  # an even number: both parts of a symbol are in one cache line
        parts = _lines(start + 2 * (grammar.vocabulary_size + grammar.rule_count))
        limbs_at = _LIMBS.ctypes.data
        kernels.hash_words(gap_offsets, gap_data.ctypes.data, _POWERS, limbs_at, parts, 0, 1)
        word_offsets, word_data = grammar.words.offsets, grammar.words.data
        kernels.hash_words(word_offsets, word_data.ctypes.data, _POWERS, limbs_at, parts, start, 2)
        kernels.hash_rules(
            grammar.vocabulary_size,
            grammar.rule_offsets,
            grammar.symbols,
            grammar.leading_gaps,
            grammar.predicted_gaps,
            start,
            parts,
        )
        lengths = np.ones(grammar.vocabulary_size + grammar.rule_count, np.uint8)
        lengths[grammar.vocabulary_size :] = np.minimum(grammar.expansion_lengths, kernels.LONG)
        return cls(parts, codes, start, lengths)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self.parts, self.lengths))


def _lines(count: int) -> UInt64:
    """Allocate uninitialised rows of 4 numbers; two rows from an even one on share a cache line."""
    room = np.empty(4 * count + 8, np.uint64)
    start = -room.ctypes.data // 8 % 8
    return room[start : start + 4 * count].reshape(count, 4)


_parts: ByteLRU[_Parts] = ByteLRU(lambda: settings().host_cache_bytes // 4, lambda parts: parts.nbytes)
"""Cache of symbol hashes, by grammar."""


def _hash_rows(corpus: Corpus) -> tuple[UInt64, UInt64]:
    """Return the lower and upper half of each document's hash."""
    grammar, hashed = corpus.grammar, _Parts.of(corpus)
    addresses, gap_sizes, owner = binary_views(corpus.gaps)
    low, high = np.empty(corpus.document_count, np.uint64), np.empty(corpus.document_count, np.uint64)

    def hash_some(rows: tuple[int, int]) -> tuple[int, int]:
        first, stop = rows
        code, row = kernels.hash_rows(
            grammar.level_count,
            grammar.vocabulary_size,
            grammar.rule_offsets,
            grammar.symbols,
            grammar.expansion_lengths,
            grammar.leading_gaps,
            grammar.predicted_gaps,
            hashed.codes,
            hashed.start,
            hashed.parts,
            hashed.lengths,
            corpus.root_offsets[first : stop + 1],
            corpus.roots,
            addresses[first:stop],
            gap_sizes[first:stop],
            low[first:stop],
            high[first:stop],
        )
        return code, first + row

    work = corpus.root_offsets + running_sum(gap_sizes)  # each gap that deviates opens rules
    outcomes = map_parallel(hash_some, weighted_chunks(work))
    del owner  # the gaps' addresses point into it
    for code, document in outcomes:
        if code in WRONG:
            raise InvalidGrammarError(f"row {corpus.rows[document]}: {WRONG[code]}: the data is damaged")
    return low, high


def _joined(name: str, low: UInt64, high: UInt64) -> pl.Series:
    upper = pl.Series(name, high).cast(DTYPE) * pl.Series([_2_64], dtype=DTYPE)
    return upper + pl.Series(low).cast(DTYPE)
