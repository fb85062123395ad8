"""Encodes new rows with the words and rules of an existing grammar."""

from __future__ import annotations

import secrets

import numpy as np
import polars as pl

from polars_tadoc.config import settings
from polars_tadoc.kernels.host.grammars import append as kernels
from polars_tadoc.kernels.repair.gaps import GapKeys
from polars_tadoc.kernels.repair.prune import LevelledRules
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.kernels.tokenize.tokenizer import Tokens
from polars_tadoc.model import column as columns
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.model.text_type import storage
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.cache import ByteLRU
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks
from polars_tadoc.runtime.plain_name import plain

RECENT_ROWS = 250_000
"""Rows at the column's end from which the grammar to reuse is chosen."""

_SEED = np.uint64(secrets.randbits(64))


@array_dataclass
class RecentGrammar:
    """The grammar that most of a column's recent rows use."""

    row: pl.Series
    """A row that uses it."""
    corpus: Corpus
    lossless: bool

    @classmethod
    def of(cls, column: pl.Series) -> RecentGrammar | None:
        """Find it (of equally frequent ones, the last used); None if no row has a grammar."""
        column = plain(storage(column))
        found = cls._of_last(column.tail(RECENT_ROWS))
        return cls._of_last(column) if found is None and len(column) > RECENT_ROWS else found

    @classmethod
    def _of_last(cls, tail: pl.Series) -> RecentGrammar | None:
        codes = tail.struct.field("grammar").to_physical().alias("code")
        used = (
            codes.to_frame()
            .with_row_index("row")
            .filter(codes.is_not_null(), tail.struct.field("symbols").is_not_null())
        )
        if used.height == 0:
            return None
        uses = used.group_by("code").agg(count=pl.len(), last=pl.col("row").last())
        row = tail.slice(uses.sort("count", "last")["last"][-1], 1)
        (corpus,) = columns.split(row)
        return cls(row, corpus, corpus.gaps.null_count() == 0)


@array_dataclass
class Parser:
    """A grammar prepared for parsing with its rules."""

    words: _Lookup
    gaps: _Lookup
    edges: UInt32
    rules: UInt32
    onward: UInt64
    begins: Bools

    @classmethod
    def of(cls, key: str, grammar: Grammar) -> Parser:
        """Prepare a grammar, or return it from the cache."""
        return _parsers.get(key) or _parsers.put(key, cls._prepare(grammar))

    @classmethod
    def _prepare(cls, grammar: Grammar) -> Parser:
        size = len(grammar.symbols)
        edges = np.zeros(3 << max(4, (2 * size).bit_length()), np.uint32)
        rules, onward = np.zeros(size + 1, np.uint32), np.zeros(size + 1, np.uint64)
        begins = np.zeros(grammar.vocabulary_size + grammar.rule_count, np.bool_)
        kernels.build_trie(
            grammar.vocabulary_size, grammar.rule_offsets, grammar.symbols, _SEED, edges, rules, onward, begins
        )
        return cls(_Lookup.of(grammar.words), _Lookup.of(grammar.gaps), edges, rules, onward, begins)

    @property
    def nbytes(self) -> int:
        """Bytes of memory beyond the grammar's own."""
        strings = sum(lookup.ascending.estimated_size() + lookup.ids.nbytes for lookup in (self.words, self.gaps))
        arrays = (self.edges, self.rules, self.onward, self.begins)
        return int(strings + sum(array.nbytes for array in arrays))

    def parse(self, starts: Int64, symbols: UInt32, sizes: Int64) -> None:
        """Parse rows in place; see the kernel."""
        before = np.concatenate([[0], np.cumsum(sizes)])

        def parse(rows: tuple[int, int]) -> None:
            own = slice(*rows)
            kernels.parse_rows(
                _SEED, self.edges, self.rules, self.onward, self.begins, starts[own], symbols, sizes[own]
            )

        map_parallel(parse, weighted_chunks(before))


@array_dataclass
class _Lookup:
    """Strings in code point order, with their ids."""

    ascending: pl.Series
    ids: UInt32

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> _Lookup:
        ids = vocabulary.series.arg_sort().to_numpy().astype(np.uint32)
        return cls(vocabulary.series.gather(ids), ids)

    def find(self, strings: pl.Series) -> UInt32:
        """Return the id of each string, ``kernels.UNKNOWN`` if it is missing."""
        if len(self.ids) == 0:
            return np.full(len(strings), kernels.UNKNOWN, np.uint32)
        place = self.ascending.search_sorted(strings).to_numpy().clip(max=len(self.ids) - 1)
        found = (self.ascending.gather(place) == strings).to_numpy()
        return np.where(found, self.ids[place], np.uint32(kernels.UNKNOWN)).astype(np.uint32)


_parsers: ByteLRU[Parser] = ByteLRU(lambda: settings().host_cache_bytes // 4, lambda parser: parser.nbytes)
"""Cache of grammars prepared for parsing."""


def encode(tokens: Tokens, recent: RecentGrammar, valid: Bools) -> tuple[pl.Series, Int64]:
    """Encode the rows whose words and gaps are all in the grammar.

    Parameters
    ----------
    tokens
        All rows, tokenized by the grammar's tokenizer.
    recent
        The grammar.
    valid
        False for null rows, which are not encoded.

    Returns
    -------
    (Series of type ``STORAGE``, int64 array)
        The encoded rows, and their row numbers, ascending.

    """
    grammar = recent.corpus.grammar
    parser = Parser.of(recent.corpus.key, grammar)
    word_ids = parser.words.find(Vocabulary(tokens.vocabulary).series)
    gap_ids = parser.gaps.find(Vocabulary(tokens.gap_vocabulary).series)
    ends = np.flatnonzero(tokens.sequence == SEPARATOR)
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else np.zeros(0, np.int64)
    symbols = np.append(word_ids, np.uint32(SEPARATOR))[np.minimum(tokens.sequence, len(word_ids))]
    gaps_known = np.empty(len(ends), np.int64)
    all_rows, nothing = np.arange(len(ends)), np.zeros(0, np.uint8)
    kernels.translate_gaps(gap_ids, tokens.gap_offsets, tokens.gap_data, all_rows, False, gaps_known, nothing)
    known = valid & (gaps_known >= 0)
    known[np.searchsorted(ends, np.flatnonzero(symbols == kernels.UNKNOWN))] = False
    rows = np.flatnonzero(known)
    row_words = (ends - starts)[rows]
    sizes = row_words.copy()
    parser.parse(starts[rows], symbols, sizes)
    root_offsets = np.concatenate([[0], np.cumsum(sizes)])
    roots = symbols[np.arange(root_offsets[-1]) + np.repeat(starts[rows] - root_offsets[:-1], sizes)]
    offsets = np.concatenate([[0], np.cumsum(gaps_known[rows])])
    data = np.empty(int(offsets[-1]), np.uint8)
    kernels.translate_gaps(gap_ids, tokens.gap_offsets, tokens.gap_data, rows, True, gaps_known, data)
    if recent.lossless:
        like = LevelledRules(grammar.rule_offsets, grammar.symbols, grammar.level_offsets, root_offsets, roots)
        offsets, data = GapKeys.of(like, grammar.vocabulary_size).encode(grammar.predicted_gaps, offsets, data)
    grammar_of_rows = recent.row.struct.field("grammar")
    gap_data = data if recent.lossless else None
    return columns.build(grammar_of_rows, root_offsets, roots, offsets, gap_data, None), rows


def row_bytes(column: pl.Series) -> int:
    """Bytes of a column's rows without their grammars: four per symbol, and the gaps."""
    fields = storage(column).struct
    return 4 * int(fields.field("symbols").list.len().sum()) + int(fields.field("gaps").bin.size().sum())
