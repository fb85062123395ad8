"""Merges grammars: expands rows to word ids, not to text, and makes one grammar of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypedDict, Unpack

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.compress.compress import (
    ROWS_PER_GRAMMAR,
    Compression,
    ShownOption,
    assemble,
    build_rules,
    cut_grammars,
    named_tokenizer,
)
from polars_tadoc.compress.decompress import Allowance, decompress, document_sizes
from polars_tadoc.engine.choose import EngineOption
from polars_tadoc.engine.progress import Bar, BlockProgress, bar_of
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.kernels.host.grammars import append as kernels
from polars_tadoc.kernels.repair.gaps import GapKeys
from polars_tadoc.kernels.repair.prune import LevelledRules
from polars_tadoc.kernels.tokenize.tokenize_cpu import EMPTY_ID, SEPARATOR, SPACE_ID
from polars_tadoc.kernels.tokenize.tokenizer import Tokens
from polars_tadoc.kernels.traverse.counts_cpu import top_down_weights
from polars_tadoc.model import column as columns
from polars_tadoc.model.column import require_tadoc
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.text_type import STORAGE, in_form, storage
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, array_dataclass
from polars_tadoc.runtime.arrow_arrays import lent, strings, view
from polars_tadoc.runtime.arrow_memory import binary_views
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import interruptible
from polars_tadoc.runtime.option_signature import Default, takes_options
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

MAX_POSITIONS = 1 << 31
"""Maximum words and row ends per grammar; kernels number them in 32 bits."""


class MergeOptions(TypedDict, total=False):
    """Which grammars are merged, and how rules are made."""

    tail: Annotated[bool, Default(False)]
    method: Annotated[str, Default("batch_repair")]
    effort: Annotated[str, Default("default")]
    rows_per_grammar: Annotated[int, Default(ROWS_PER_GRAMMAR)]


class RecompressOptions(MergeOptions, ShownOption, EngineOption, total=False):
    """Options of :func:`recompress`."""


@documented_by(decompress)
def recompress(column: pl.Series, **options: Unpack[RecompressOptions]) -> pl.Series:
    """Merge the grammars of a column into one, and drop words and rules that no row uses.

    Use it after many appends, or after a filter that left few rows of each grammar. The result equals compressing the
    decompressed text (without the dictionary that the column may have been compressed with), but the text is never
    made. Rows with different tokenizers keep separate grammars.

    Parameters
    ----------
    column
        Compressed column.
    tail
        Whether to merge only small grammars at the end: each whose rows are no more than the rows after them. A column
        that grows by batches and is merged like this after each batch keeps few grammars, and merges each row about
        log2(rows / batch) times in all.
    method
        How rules are made, as for :func:`polars_tadoc.compress`.
    effort
        How much work goes into rules, as for :func:`polars_tadoc.compress`. It is not taken from the column: one of
        ``compress(effort="fast")`` gets rules unless it is asked for again.
    rows_per_grammar
        Consecutive rows per grammar; a grammar also ends at 256 MiB of text.
    progress
        Whether to show a progress bar (tqdm) on standard error; by default as ``tadoc.Config`` says.
    engine
        "auto", "cpu" or "gpu"; by default the engine of ``tadoc.Config``.

    Returns
    -------
    Series of type ``tadoc.DTYPE``
        The same rows.

    Raises
    ------
    LimitExceededError
        The rows have more words than ``Config(expansion_limit=)``, or more than memory or one grammar can hold.
    EngineUnavailableError
        ``engine="gpu"`` cannot run here.
    ValueError
        Unknown method, effort or engine, or an effort combined with a method.

    Examples
    --------
    >>> parts = [pl.Series("text", [text]).tadoc.compress() for text in ("to be", "or not to be")]
    >>> column = tadoc.recompress(pl.concat(parts))
    >>> tadoc.info(column)["grammars"].to_list(), tadoc.decompress(column).to_list()
    ([1], ['to be', 'or not to be'])

    """
    return Recompression.from_arguments(**options).run(column)


@dataclass(frozen=True)
class Recompression:
    """The checked options of one merge."""

    how: Compression
    """Its tokenizer is replaced by that of each grammar."""
    tail: bool

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[RecompressOptions]) -> Recompression:
        """Check the arguments of :func:`recompress`; errors as there."""
        tail = options["tail"]
        if not isinstance(tail, bool):
            raise TypeError(f"tail={tail!r} must be True or False")
        how = Compression.from_arguments(
            method=options["method"],
            effort=options["effort"],
            rows_per_grammar=options["rows_per_grammar"],
            engine=options["engine"],
        )
        return cls(how, tail)

    def run(self, column: pl.Series) -> pl.Series:
        """Merge the grammars of a compressed series."""
        bare = require_tadoc(column, "recompress")
        return in_form(self._merged(bare), column.dtype)

    def _merged(self, column: pl.Series) -> pl.Series:
        try:
            if self.tail:
                start = tail_start(column, self.how.rows_per_grammar or ROWS_PER_GRAMMAR)
                merged = [self._run(column.slice(start))] if start < len(column) else []
                return pl.concat([column.slice(0, start), *merged])
            return self._run(column)
        except MemoryError as error:  # includes PyArrow's
            raise LimitExceededError("recompress: the words do not fit in memory; use fewer rows at a time") from error

    def _run(self, column: pl.Series) -> pl.Series:
        corpora = columns.split(column)
        allowance = Allowance("recompress", corpora)
        by_tokenizer: dict[str, list[Corpus]] = {}
        for corpus in corpora:
            by_tokenizer.setdefault(corpus.grammar.tokenizer, []).append(corpus)
        with interruptible(), bar_of(len(column), "recompress", self.how.progress) as bar:
            if len(by_tokenizer) <= 1:
                return self._merge(corpora, np.arange(len(column)), allowance, bar).alias(column.name)
            place = np.full(len(column), -1, np.int64)
            parts, before = [], 0
            for group in by_tokenizer.values():
                rows = np.sort(np.concatenate([corpus.rows for corpus in group]))
                parts.append(self._merge(group, rows, allowance, bar))
                place[rows] = np.arange(before, before + len(rows))
                before += len(rows)
        return columns.gather_or_null(pl.concat(parts), place).alias(column.name)

    def _merge(self, corpora: Sequence[Corpus], rows: Int64, allowance: Allowance, bar: Bar) -> pl.Series:
        """Compress the given rows of the column (ascending, one tokenizer) again; a row without a corpus is null."""
        members = [_Documents.of(corpus, np.searchsorted(rows, corpus.rows), allowance) for corpus in corpora]
        sizes = np.zeros(len(rows), np.int64)
        for member in members:
            sizes[member.places] = np.maximum(member.sizes, member.words)  # words of a forged payload may be empty
        how = self.how
        if corpora:
            lossless = any(corpus.gaps.null_count() < len(corpus.gaps) for corpus in corpora)
            how = replace(how, tokenizer=named_tokenizer(corpora[0].grammar), lossless=lossless)
        parts = []
        for start, stop in cut_grammars(sizes, how.rows_per_grammar):
            block = [within for member in members if len((within := member.within(start, stop)).places)]
            valid = np.zeros(stop - start, np.bool_)
            for member in block:
                valid[member.places] = True
            with BlockProgress(bar, stop - start) as shown:
                tokens = _tokens(block, stop - start, how.lossless)
                rules = build_rules(tokens, stop - start, how, shown)
                parts.append(assemble(tokens, rules, how, None if valid.all() else pl.Series(valid)))
        return pl.concat(parts) if parts else pl.Series(dtype=STORAGE)


def tail_start(column: pl.Series, most_rows: int) -> int:
    """Return the first row of the grammars to merge; the column's length if there are none.

    A grammar counts the rows from its first use to the next grammar's. Going back from the end, a grammar is included
    if it has no more rows than all after it, while the total is at most ``most_rows``. The remaining grammars shrink
    towards the end, as in a log-structured merge tree (O'Neil et al., 1996).
    """
    codes = storage(column).tail(most_rows).struct.field("grammar").to_physical()
    firsts = codes.arg_unique().sort()
    begun = firsts.filter(codes.gather(firsts).is_not_null()).to_numpy()
    if len(begun) < 2:
        return len(column)
    sizes = np.diff(begun, append=len(codes))
    # the first grammar's rows are then only partly in the tail, and too many
    begun_before = int(len(column) > most_rows)
    first, rows = len(sizes) - 1, int(sizes[-1])
    while first > begun_before and sizes[first - 1] <= rows <= most_rows - sizes[first - 1]:
        first -= 1
        rows += int(sizes[first])
    return len(column) - rows if first < len(sizes) - 1 else len(column)


@array_dataclass
class _Documents:
    """Documents of one corpus, and their places among the merged rows."""

    corpus: Corpus
    first: int
    """The first document."""
    places: Int64
    """Row of each, ascending."""
    words: Int64
    sizes: Int64
    """Text bytes of each."""

    @classmethod
    def of(cls, corpus: Corpus, places: Int64, allowance: Allowance) -> _Documents:
        sizes = document_sizes(corpus, allowance)
        return cls(corpus, 0, places, sizes.words, sizes.bytes)

    def within(self, start: int, stop: int) -> _Documents:
        """Return the documents in rows ``start`` to ``stop - 1``, with rows counted from ``start``."""
        first, last = (int(edge) for edge in np.searchsorted(self.places, [start, stop]))
        own = slice(first, last)
        return _Documents(self.corpus, self.first + first, self.places[own] - start, self.words[own], self.sizes[own])

    @property
    def root_offsets(self) -> Int64:
        return self.corpus.root_offsets[self.first : self.first + len(self.places) + 1]

    @property
    def roots(self) -> UInt32:
        """Symbols of these documents."""
        return self.corpus.roots[self.root_offsets[0] : self.root_offsets[-1]]

    @property
    def gaps(self) -> pl.Series:
        return self.corpus.gaps.slice(self.first, len(self.places))


def _tokens(block: Sequence[_Documents], rows: int, lossless: bool) -> Tokens:
    """Return the tokens of the rows' text."""
    row_words = np.zeros(rows, np.int64)
    for documents in block:
        row_words[documents.places] = documents.words
    starts = np.concatenate([[0], np.cumsum(row_words + 1)])
    if starts[-1] > MAX_POSITIONS:
        raise LimitExceededError(
            f"recompress: the rows of one grammar have {row_words.sum():,} words; a grammar may have "
            f"{MAX_POSITIONS:,} words and rows; set rows_per_grammar="
        )
    if lossless:
        gap_vocabulary, gap_offsets, gap_data = _gaps(block, row_words, starts)
    else:
        gap_vocabulary = pa.nulls(0, pa.large_string())
        gap_offsets, gap_data = np.zeros(rows + 1, np.int64), np.zeros(0, np.uint8)
    vocabulary, ids = _number_words(block)
    sequence = np.empty(int(starts[-1]), np.uint32)
    sequence[starts[1:] - 1] = SEPARATOR
    for documents, word_ids in zip(block, ids, strict=True):
        _expand(documents, word_ids, starts[documents.places], sequence)
    return Tokens(vocabulary, gap_vocabulary, sequence, gap_offsets, gap_data)


def _number_words(block: Sequence[_Documents]) -> tuple[pa.LargeStringArray, list[UInt32]]:
    """Merge the vocabularies; return the result and, for each part of the block, the new id of each of its words."""
    tallies = [top_down_weights(documents.corpus.grammar, documents.roots).astype(np.int64) for documents in block]
    used = [np.flatnonzero(tally) for tally in tallies]
    strings = [d.corpus.grammar.vocabulary.take(lent(own)) for d, own in zip(block, used, strict=True)]
    vocabulary, final = _merge_strings(strings, [tally[own] for tally, own in zip(tallies, used, strict=True)])
    ids = []
    for tally, own, new in zip(tallies, used, final, strict=True):
        ids.append(np.zeros(len(tally), np.uint32))
        ids[-1][own] = new
    return vocabulary, ids


def _merge_strings(
    strings: Sequence[pa.LargeStringArray], tallies: Sequence[Int64]
) -> tuple[pa.LargeStringArray, list[UInt32]]:
    """Merge vocabularies in the order of ``tokenize``: by descending tally, then code point; drops those of tally 0."""
    interned = pa.concat_arrays([pa.nulls(0, pa.large_string()), *strings]).dictionary_encode()
    codes, distinct = view(interned.indices), interned.dictionary
    tally = np.zeros(len(distinct), np.int64)
    np.add.at(tally, codes, np.concatenate([np.zeros(0, np.int64), *tallies]))
    by_word = pl.Series(pl.from_arrow(distinct)).arg_sort().to_numpy()
    order = by_word[np.argsort(-tally[by_word], kind="stable")][: np.count_nonzero(tally)]
    final = np.zeros(len(distinct), np.uint32)
    final[order] = np.arange(len(order), dtype=np.uint32)
    ends = np.cumsum([len(own) for own in strings])
    return distinct.take(lent(order)), np.split(final[codes], ends)[:-1]


def _expand(documents: _Documents, word_ids: UInt32, starts: Int64, sequence: UInt32) -> None:
    grammar = documents.corpus.grammar
    rules = grammar.expansion

    def expand(rows: tuple[int, int]) -> None:
        first, stop = rows
        kernels.expand_rows(
            *rules,
            word_ids,
            documents.root_offsets[first : stop + 1],
            documents.corpus.roots,
            starts[first:stop],
            sequence,
        )

    map_parallel(expand, weighted_chunks(np.concatenate([[0], np.cumsum(documents.words)])))


def _gaps(block: Sequence[_Documents], row_words: Int64, starts: Int64) -> tuple[pa.LargeStringArray, Int64, UInt8]:
    """Merge the gap vocabularies and encode the rows' gaps again."""
    first = strings([" ", ""])  # their ids are SPACE_ID and EMPTY_ID
    interned = pa.concat_arrays([first, *(d.corpus.grammar.gap_vocabulary for d in block)]).dictionary_encode()
    codes = view(interned.indices).astype(np.uint32)
    tallies = np.zeros(len(interned.dictionary), np.int64)
    gaps = np.empty(int(starts[-1]), np.uint32)
    gaps[starts[:-1]] = EMPTY_ID  # rows without words
    at = 2
    for documents in block:
        size = len(documents.corpus.grammar.gap_vocabulary)
        addresses, sizes, owner = binary_views(documents.gaps)
        grammar = documents.corpus.grammar
        offsets = documents.root_offsets - documents.root_offsets[0]
        rules = LevelledRules(grammar.rule_offsets, grammar.symbols, grammar.level_offsets, offsets, documents.roots)
        keys = GapKeys.of(rules, grammar.vocabulary_size).keys
        by_code = np.append(np.uint32(SPACE_ID), codes[at : at + size])
        kernels.place_gaps(
            by_code,
            grammar.predicted_gaps,
            keys,
            addresses,
            sizes,
            starts[documents.places],
            documents.words,
            gaps,
            tallies,
        )
        del owner
        at += size
    vocabulary, (ids,) = _merge_strings([interned.dictionary], [tallies])
    chunks = weighted_chunks(starts)
    row_sizes, nothing = np.empty(len(row_words), np.int64), np.zeros(0, np.uint8)

    def encode(rows: tuple[int, int], writing: bool, data: UInt8) -> None:
        own = slice(*rows)
        kernels.list_gaps(gaps, starts[own], row_words[own], ids, writing, row_sizes[own], data)

    map_parallel(lambda rows: encode(rows, False, nothing), chunks)
    offsets = np.concatenate([[0], np.cumsum(row_sizes)])
    data = np.empty(int(offsets[-1]), np.uint8)
    map_parallel(lambda rows: encode(rows, True, data[offsets[rows[0]] : offsets[rows[1]]]), chunks)
    return vocabulary, offsets, data
