"""A corpus prepared for traversal: rules and rows in an engine's memory, words after a morphism."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from polars_tadoc.engine.choose import Engine, choose
from polars_tadoc.kernels.host.grammars.statistics import Statistics, corpus_statistics
from polars_tadoc.kernels.host.records.merge_counts import renumber
from polars_tadoc.kernels.host.rows.word_map import map_roots, map_rules
from polars_tadoc.kernels.traverse.results_cpu import load_rules
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.model.column import require_tadoc, split
from polars_tadoc.model.corpus import Corpus, require_countable
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.runtime.array_types import Int64, UInt32, array_dataclass
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.traversal.options import Options


@array_dataclass
class PreparedRows:
    """Rows as symbols, in an engine's memory."""

    engine: Engine
    """Engine of the arrays."""
    words: Vocabulary
    """The terminals."""
    rules: Rules
    """Arrays of the engine."""
    root_offsets: Any
    roots: Any
    """``root_offsets``, ``roots``: int64, documents + 1, and uint32, arrays of the engine: the documents' symbols."""
    rows: Int64
    """int64, in host memory, ascending: row of each document in the column; null rows are not documents."""

    @property
    def symbols(self) -> tuple[Rules, Any, Any]:
        """Return the rules, and the documents' offsets and symbols."""
        return self.rules, self.root_offsets, self.roots


@array_dataclass
class Source(PreparedRows):
    """Input of an analytic's kernels: one corpus of a compressed column."""

    key: str | None
    """Key of the words in the engine's cache; None if a morphism made them, or for plain text."""
    host: tuple[Rules, Int64, UInt32]
    """Rules, offsets and symbols in host memory."""
    corpus: Corpus | None = None
    """The corpus, if its words are as they are stored."""

    @property
    def word_total(self) -> int | None:
        """Words of all documents, if the rows stay on a device while they are kept; otherwise None."""
        kept = self.engine.keeps_rows and self.corpus is not None and self.corpus.identity is not None
        return self.corpus.known_word_total if kept and self.corpus is not None else None

    def expanded(self) -> Source:
        """Return the same documents without rules: words, numbered by rank, which stay on the device with the rows."""
        corpus, kernels = self.corpus, self.engine.kernels
        assert corpus is not None

        def expand() -> ExpandedRows:
            nothing, start = np.zeros(0, np.uint64), np.zeros(1, np.int64)
            plain = Rules(self.rules.terminals, start, nothing.astype(np.uint32), start, nothing)
            return ExpandedRows(plain.loaded(kernels.load_array), *kernels.expand_words(*self.symbols, self.rank))

        made: ExpandedRows = self.engine.keep(f"{corpus.identity}:words", expand, owner=corpus)
        words = self.words.in_order
        expanded = replace(self, words=words, rules=made.rules, root_offsets=made.offsets, roots=made.words, key=None)
        expanded.__dict__["rank"] = None  # words have their ranks as numbers
        return expanded

    @cached_property
    def statistics(self) -> Statistics:
        """Input of the cost model."""
        return corpus_statistics(*self.host)

    @cached_property
    def rank(self) -> Any:
        """Rank of each word in code point order: uint32, an array of the engine."""
        key = self.key and f"{self.key}:rank"
        return self.engine.keep(key, lambda: self.engine.kernels.load_array(self.words.rank))

    def rows_of(self, documents: UInt32) -> UInt32:
        """Return the rows of some documents, uint32, in the same array if it can be written."""
        if len(self.rows) == 0 or self.rows[-1] == len(self.rows) - 1:  # they have the same numbers
            return documents
        made = documents if documents.flags.writeable else None  # the first touch of memory takes longer than this
        return renumber([documents], [self.rows.astype(np.uint32)], made)


def sources(column: pl.Series, call: str, options: Options, window: int = 1) -> list[Source]:
    """Prepare each corpus of a compressed column for a call; one engine is chosen for all.

    ``window`` is the number of words counted together. Raises as :func:`polars_tadoc.word_count`.
    """
    column = require_tadoc(column, call)
    corpora = split(column)
    require_countable(corpora, window)
    chosen = choose(options.engine, sum(corpus.symbol_count for corpus in corpora))
    return [prepare(corpus, chosen, options.morphism) for corpus in corpora]


def prepare(corpus: Corpus, engine: Engine, morphism: Morphism | None = None) -> Source:
    """Prepare one corpus whose counts fit 64 bits; a morphism is applied to rules and rows in host memory."""
    kernels, grammar = engine.kernels, corpus.grammar
    plain = load_rules(grammar)
    if morphism is None:
        rules = engine.load_rules(corpus.cache_key, grammar)
        words, key, host = grammar.words, corpus.cache_key, (plain, corpus.root_offsets, corpus.roots)
    else:
        image = morphism.apply(grammar.words.series)
        mapped = map_rules(plain, image.ids, len(image.words))
        offsets, roots = map_roots(plain, corpus.root_offsets, corpus.roots, image.ids, mapped)
        rules = mapped.loaded(kernels.load_array)
        words, key, host = image.words, None, (mapped, offsets, roots)
        return Source(engine, words, rules, *_load_rows(engine, *host[1:]).arrays, corpus.rows, key, host)
    return Source(engine, words, rules, *resident_rows(corpus, engine).arrays, corpus.rows, key, host, corpus)


@array_dataclass
class ExpandedRows:
    """Documents as words."""

    rules: Rules
    """None, over the words."""
    offsets: Any
    """int64, documents + 1: start of each document's words, an array of the engine."""
    words: Any
    """uint32, ranks of words, an array of the engine."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.rules.nbytes + int(self.offsets.nbytes + self.words.nbytes)


@array_dataclass
class ResidentRows:
    """Rows as symbols, arrays of an engine: int64, documents + 1, and uint32."""

    arrays: tuple[Any, Any]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(int(array.nbytes) for array in self.arrays)


def resident_rows(corpus: Corpus, engine: Engine) -> ResidentRows:
    """Return the rows of a corpus where an engine's kernels can read them; those of a kept column stay there.

    They stay as long as the corpus is kept in host memory, under the budget of the engine's cache.
    """

    def load() -> ResidentRows:
        return _load_rows(engine, corpus.root_offsets, corpus.roots)

    rows: ResidentRows = load() if corpus.identity is None else engine.keep(corpus.identity, load, owner=corpus)
    return rows


def _load_rows(engine: Engine, offsets: Int64, symbols: UInt32) -> ResidentRows:
    kernels = engine.kernels
    return ResidentRows((kernels.load_array(offsets), kernels.load_symbols(symbols)))
