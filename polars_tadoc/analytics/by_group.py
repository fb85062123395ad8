"""Counts by group of rows, all groups in one pass: the expressions in ``group_by(...).agg`` and ``over``.

A group is counted as one document: adjacent rows have adjacent symbols. Sequences and pairs do not cross rows, so rows
are first converted to symbols of these (see the kernels ``derive_sequences`` and ``derive_pairs``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from polars_tadoc.analytics import cooccurrence, sequence_count, sort, term_vector, word_count
from polars_tadoc.engine.choose import Engine, choose
from polars_tadoc.engine.device_batches import DeviceBatches
from polars_tadoc.kernels.keys.merge_cpu import number_sequences
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.model.arrow_results import from_arrow, lists, sequence_series
from polars_tadoc.model.column import rows_of_lists
from polars_tadoc.model.corpus import Corpus, require_countable
from polars_tadoc.model.vocabulary import Vocabulary, unify
from polars_tadoc.model.word_map import naming_normalize
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.io_source import at_work
from polars_tadoc.runtime.plain_name import plain
from polars_tadoc.traversal.options import Options
from polars_tadoc.traversal.selector import choose_strategy
from polars_tadoc.traversal.source import Source, prepare
from polars_tadoc.traversal.text_corpus import corpora_of, require_text


@array_dataclass
class Groups:
    """Rows of a compressed column, group after group."""

    column: pl.Series
    """The rows."""
    offsets: Int64
    """int64, groups + 1: start of each group's rows."""

    @classmethod
    def of_lists(cls, imploded: pl.Series, call: str) -> Groups:
        """Make a group of each list of rows; errors as for the analytics."""
        column, offsets = rows_of_lists(imploded)
        return cls(require_text(column, call), offsets)

    @classmethod
    def of_rows(cls, column: pl.Series, call: str) -> Groups:
        """Make a group of each row; errors as for the analytics."""
        column = require_text(column, call)
        return cls(column, np.arange(len(column) + 1, dtype=np.int64))


@array_dataclass
class GroupCounts:
    """Counts of words, sequences or pairs by group; arrays in host memory."""

    words: Vocabulary
    """Words by id."""
    sequences: UInt32
    """uint32[sequences, n]: word ids of each distinct sequence; single words and pairs are stored as sequences, too."""
    groups: Int64
    """int64, ascending: the groups that have rows here."""
    offsets: Int64
    """int64, groups + 1: start of each group's counts."""
    ids: UInt32
    counts: UInt64
    """``ids``, ``counts``: uint32 and uint64: sequence and its count, by descending count, ties by their words."""

    @property
    def owners(self) -> Int64:
        """int64: the group of each count."""
        return np.repeat(self.groups, np.diff(self.offsets))


@array_dataclass
class GroupRequest:
    """The checked arguments of a count by group."""

    call: str
    """The call's name, for messages."""
    options: Options
    min_count: int
    top: int | None
    """``options``, ``min_count``, ``top``: Options of the analytic; limits apply per group."""
    symbols: Callable[[Source], tuple[Source, UInt32, Any]]
    """Makes a source whose terminals are counted, and returns their words, uint32[terminals, n]; terminals are numbered
    in the order of their words, or have the source's ranks."""
    columns: Callable[[Vocabulary, UInt32], list[pl.Series]]
    """The result's columns, given a vocabulary and word ids, uint32[rows, n]."""
    schema: pl.Schema
    """Names and types of the result's columns, with the counts."""
    sort: bool = False
    """Whether to order by words instead of counts."""
    window: int = 1
    """Size of the window of pairs, in words."""

    @property
    def dtype(self) -> pl.DataType:
        """Type of the result."""
        return pl.List(pl.Struct(self.schema))

    def run(self, groups: Groups) -> pl.Series:
        """Count; returns one list of structs per group, empty for groups without words."""
        with naming_normalize(self.call, groups.column.name):
            counted = self._count(groups)
        sizes = np.zeros(len(groups.offsets) - 1, np.int64)
        sizes[counted.groups] = np.diff(counted.offsets)
        columns = self.columns(counted.words, counted.sequences[counted.ids])
        rows = pl.DataFrame([*columns, pl.Series("count", counted.counts)]).to_struct()
        values: Any = rows.to_arrow(compat_level=pl.CompatLevel.newest())
        return from_arrow(groups.column.name, lists(np.append(0, np.cumsum(sizes)), values))

    @at_work()
    def run_lists(self, imploded: pl.Series) -> pl.Series:
        """Count in each list of rows."""
        return self.run(Groups.of_lists(imploded, self.call))

    def run_rows(self, column: pl.Series) -> pl.Series:
        """Count in each row; null for null rows."""
        counted = self.run(Groups.of_rows(column, self.call))
        if not column.null_count():
            return counted
        rows = pl.DataFrame([counted.alias("counted"), plain(column).is_not_null().alias("valid")])
        return rows.select(pl.when("valid").then("counted").alias(column.name)).to_series()

    def _count(self, groups: Groups) -> GroupCounts:
        corpora = corpora_of(groups.column, self.call, self.options.tokenizer)
        require_countable(corpora, self.window)
        engine = choose(self.options.engine, sum(corpus.symbol_count for corpus in corpora))
        batches = DeviceBatches(self.call, self.options.engine)

        def limited(corpus: Corpus, engine: Engine) -> GroupCounts:
            return self._partial(prepare(corpus, engine, self.options.morphism), groups, self.min_count, self.top)

        def every(corpus: Corpus, engine: Engine) -> GroupCounts:
            return self._partial(prepare(corpus, engine, self.options.morphism), groups, 1, None)

        if len(corpora) == 1 and not self.sort:
            parts = batches.parts(corpora[0], engine, limited, every)
            return parts[0] if len(parts) == 1 else self._merge(parts)
        return self._merge([part for corpus in corpora for part in batches.parts(corpus, engine, every, every)])

    def _partial(self, source: Source, groups: Groups, min_count: int, top: int | None) -> GroupCounts:
        """Count the rows of one corpus."""
        kernels = source.engine.kernels
        own, sequences, rank = self.symbols(source)
        owners = np.searchsorted(groups.offsets, source.rows, side="right") - 1
        firsts = np.flatnonzero(np.diff(owners, prepend=-1))
        present = owners[firsts]
        places = np.append(firsts, len(owners))
        starts = own.root_offsets[kernels.load_array(places)]
        rules, root_offsets, roots = source.host  # of words: sequences have the same rules
        own = replace(own, root_offsets=starts, rows=present, host=(rules, root_offsets[places], roots))
        strategy = choose_strategy(self.options.strategy, own, "term_vector")
        counted = kernels.count_by_document(own.rules, starts, own.roots, strategy, rank, min_count, top)
        return GroupCounts(source.words, sequences, present, *(kernels.to_host(array) for array in counted))

    def _merge(self, partials: list[GroupCounts]) -> GroupCounts:
        """Add the counts of several corpora in host memory, then order and select."""
        partials = [part for part in partials if len(part.sequences)]
        words, maps = unify([part.words for part in partials])
        n = partials[0].sequences.shape[1] if partials else 2  # without results, as many columns as any analytic reads
        own = [ids[part.sequences] for ids, part in zip(maps, partials, strict=True)]
        sequences = np.concatenate([np.zeros((0, n), np.uint32), *own])
        places, numbers = number_sequences(sequences, words.rank)
        ends = np.cumsum([len(part.sequences) for part in partials], dtype=np.int64)
        keys = [
            part.owners << 32 | named[part.ids] for part, named in zip(partials, np.split(numbers, ends), strict=False)
        ]
        counts = np.concatenate([np.zeros(0, np.uint64), *(part.counts for part in partials)])
        found, counts = _sums(np.concatenate([np.zeros(0, np.int64), *keys]), counts)
        found, counts = _select(found, counts, self.min_count, self.top, self.sort)
        present, firsts = np.unique(found >> 32, return_index=True)
        ids = (found & 0xFFFFFFFF).astype(np.uint32)
        return GroupCounts(words, sequences[places], present, np.append(firsts, len(ids)), ids, counts)


def _sums(keys: Int64, counts: UInt64) -> tuple[Int64, UInt64]:
    """Add the counts of equal keys; keys ascend."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[firsts], np.add.reduceat(counts[order], firsts)


def _select(keys: Int64, counts: UInt64, min_count: int, top: int | None, sort: bool) -> tuple[Int64, UInt64]:
    """Select among each group's ascending keys (group in the upper half); order by descending count unless ``sort``."""
    kept = counts >= np.uint64(min_count)
    keys, counts = keys[kept], counts[kept]
    groups = keys >> 32
    if not sort:
        order = np.lexsort((~counts, groups))
        keys, counts = keys[order], counts[order]
    if top is not None:
        within = np.arange(len(groups)) - np.searchsorted(groups, groups) < top
        keys, counts = keys[within], counts[within]
    return keys, counts


def count_words(call: str, request: word_count.WordCountRequest | term_vector.TermVectorRequest) -> GroupRequest:
    """Count each group's words."""
    return GroupRequest(call, request.options, request.min_count, request.top, _words, _word_columns, word_count.SCHEMA)


def sort_words(request: sort.SortRequest) -> GroupRequest:
    """Count each group's words in code point order."""
    return GroupRequest("sort", request.options, request.min_count, None, _words, _word_columns, sort.SCHEMA, sort=True)


def count_sequences(request: sequence_count.SequenceCountRequest) -> GroupRequest:
    """Count each group's sequences of n words."""

    def sequences(source: Source) -> tuple[Source, UInt32, Any]:
        derive = source.engine.kernels.derive_sequences
        return _derived(source, derive(*source.symbols, request.n, source.rank))

    call = "sequence_count"
    return GroupRequest(
        call, request.options, request.min_count, request.top, sequences, _sequence_columns, sequence_count.SCHEMA
    )


@array_dataclass
class GroupLengths:
    """Counts of sequences of several lengths by group."""

    each: dict[int, GroupRequest]
    """The count for each number of words, in the order of the result."""

    @property
    def dtype(self) -> pl.DataType:
        """Type of the result."""
        return pl.List(pl.Struct({"n": pl.UInt32(), **sequence_count.SCHEMA}))

    def run_lists(self, imploded: pl.Series) -> pl.Series:
        """Count in each list of rows; returns one list of structs per group."""
        fields = [pl.element().struct.field(name) for name in sequence_count.SCHEMA]
        found = pl.DataFrame([own.run_lists(imploded).alias(str(n)) for n, own in self.each.items()])
        parts = [
            pl.col(str(n)).list.eval(pl.struct(pl.lit(n, pl.UInt32).alias("n"), *fields)).list.drop_nulls()
            for n in self.each
        ]
        return found.select(pl.concat_list(parts)).to_series().alias(imploded.name)


def count_lengths(request: sequence_count.LengthsRequest) -> GroupLengths:
    """Count each group's sequences of several lengths."""
    return GroupLengths({one.n: count_sequences(one) for one in request.each})


def count_pairs(request: cooccurrence.CooccurrenceRequest) -> GroupRequest:
    """Count each group's pairs of words within a window."""

    def pairs(source: Source) -> tuple[Source, UInt32, Any]:
        derive = source.engine.kernels.derive_pairs
        return _derived(source, derive(*source.symbols, request.window, source.rank))

    limits = request.min_count, request.top
    return GroupRequest(
        "cooccurrence", request.options, *limits, pairs, _pair_columns, cooccurrence.SCHEMA, window=request.window
    )


def _words(source: Source) -> tuple[Source, UInt32, Any]:
    return source, np.arange(len(source.words), dtype=np.uint32).reshape(-1, 1), source.rank


def _derived(source: Source, derived: tuple[Rules, Any, Any, Any]) -> tuple[Source, UInt32, Any]:
    rules, root_offsets, roots, words = derived
    made = replace(source, rules=rules, root_offsets=root_offsets, roots=roots, key=None)
    return made, source.engine.kernels.to_host(words), None


def _word_columns(words: Vocabulary, ids: UInt32) -> list[pl.Series]:
    return [words.take(ids[:, 0])]


def _sequence_columns(words: Vocabulary, ids: UInt32) -> list[pl.Series]:
    return [sequence_series(words, ids)]


def _pair_columns(words: Vocabulary, ids: UInt32) -> list[pl.Series]:
    word, other = (words.take(ids[:, k]) for k in range(2))
    return [word, other.alias("other")]
