"""BM25 scores of rows for a query, from the compressed column alone."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar, Unpack

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.compress.compress import named_tokenizer, require_known
from polars_tadoc.engine.progress import by_steps
from polars_tadoc.kernels.host.rows.term_counts import score_rows
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.arrow_results import from_arrow, lists
from polars_tadoc.model.column import rows_of_lists, scatter_to_rows
from polars_tadoc.model.corpus import Corpus, require_countable
from polars_tadoc.model.word_map import Morphism, naming_normalize
from polars_tadoc.rows.phrase_words import PhraseWords
from polars_tadoc.rows.phrases import PhraseOptions, count_phrase
from polars_tadoc.rows.term_counts import TermCounts, Terms, count_terms, document_lengths
from polars_tadoc.runtime.arguments import require_text
from polars_tadoc.runtime.array_types import Float32, Float64, Int64, UInt64, array_dataclass
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.io_source import at_work
from polars_tadoc.runtime.option_signature import takes_options
from polars_tadoc.scoring.bm25 import Scoring, ScoringOptions
from polars_tadoc.traversal.options import tokenizer_of
from polars_tadoc.traversal.text_corpus import corpora_of
from polars_tadoc.traversal.text_corpus import require_text as require_column

MAX_PAIRS = 1 << 20
"""Maximum pairs of group and term for counting all of them, whether they occur or not."""

MANY = 64
"""Minimum terms for sorting postings before summing; with fewer, they are ordered row by row."""


class BM25Options(ScoringOptions, PhraseOptions, total=False):
    """Options of :func:`bm25`."""


@documented_by(count_phrase)
def bm25(column: pl.Series, query: str, **options: Unpack[BM25Options]) -> pl.Series:
    """Score each row for a query with BM25, without an index and without decompressing rows.

    Scores equal those of :meth:`Index.search`, bit for bit: document frequencies and the average length are counted
    over the rows of the column. Reads only rules and rows that contain a word of the query. For many queries on the
    same rows, build an index.

    Parameters
    ----------
    query
        Text, cut into words like the column's text. A repeated word counts repeatedly. Quotes have no meaning: for
        phrases, filter with :func:`contains_phrase`.
    scoring
        "robertson", "lucene", "atire", "bm25+" or "bm25l", named as in Kamphuis et al. (ECIR 2020), or "wakatsuki"
        (see :func:`bm25_weights`).
    k1
        How slowly repetitions saturate, from 0 to 1e9.
    b
        How strongly long rows are penalised, from 0 to 1.
    delta
        For "bm25+" and "bm25l": a word's minimum weight in rows that contain it, from 0 to 1e9.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String; null or an empty string drops the
        word. Applied to the words of text and query.

    Returns
    -------
    Float32 series
        One score per row: 0 if it has none of the query's words, null for null rows.

    Raises
    ------
    TypeError
        ``query`` is not a string, a constant not a number, ``normalize`` not an expression, ``lowercase`` not a bool or
        ``stopwords`` not a list of strings.
    ValueError
        The scoring is unknown, a constant is out of range, rows have different tokenizers, or ``normalize`` reads
        columns or does not give one String or null per word.

    Examples
    --------
    >>> column = pl.Series("text", ["to be, or not to be", "be", None, "or"]).tadoc.compress()
    >>> [score and round(score, 2) for score in tadoc.bm25(column, "not be")]
    [0.44, 0.26, None, 0.0]

    """
    column = require_column(column, "bm25")  # before the arguments, which the caller may have swapped
    return BM25Request.from_arguments(query, **options).run(column)


@array_dataclass
class BM25Request:
    """The checked arguments of a call."""

    name: ClassVar[str] = "bm25"
    query: str
    scoring: Scoring
    morphism: Morphism | None
    tokenizer: Tokenizer | None = None

    @classmethod
    @takes_options
    def from_arguments(cls, query: object, **options: Unpack[BM25Options]) -> BM25Request:
        """Check the arguments; errors as for :func:`bm25`."""
        if not isinstance(query, str):
            raise TypeError(f"bm25: query must be a string, not {type(query).__name__}")
        require_text(query, "bm25: query")
        morphism = Morphism.of(options)
        return cls(query, Scoring.of(options), morphism, tokenizer_of(options))

    @ends_on_interrupt
    @by_steps
    def run(self, column: pl.Series) -> pl.Series:
        """Score the rows of a column."""
        column = require_column(column, "bm25")
        with naming_normalize("bm25", column.name):
            return self._score(column, np.array([0, len(column)], np.int64))

    @at_work()
    @ends_on_interrupt
    def run_lists(self, imploded: pl.Series) -> pl.Series:
        """Score the rows of each list separately; returns one list of scores per list."""
        column, offsets = rows_of_lists(imploded)
        column = require_column(column, "bm25")
        with naming_normalize("bm25", column.name):
            values = self._score(column, offsets).to_arrow(compat_level=pl.CompatLevel.newest())
        return from_arrow(imploded.name, lists(offsets, values))

    def _score(self, column: pl.Series, group_offsets: Int64) -> pl.Series:
        """Score the rows of each group separately."""
        corpora = corpora_of(column, "bm25", self.tokenizer)
        require_countable(corpora)
        terms = self._terms(corpora)
        found = [Terms.of(corpus, list(terms), self.morphism) for corpus in corpora]
        counted = _joined([count_terms(corpus, own) for corpus, own in zip(corpora, found, strict=True)], corpora)
        lengths = [document_lengths(corpus, own) for corpus, own in zip(corpora, found, strict=True)]
        rows = np.concatenate([np.zeros(0, np.int64), *(corpus.rows for corpus in corpora)])
        groups = np.searchsorted(group_offsets, rows, side="right") - 1
        buffer, scores = allocate(len(rows), np.float32)
        scores[:] = 0
        if len(counted.documents):
            times = np.array(list(terms.values()), np.float64)
            self._fill(counted, times, groups, np.concatenate(lengths), scores)
        array = pa.FloatArray.from_buffers(pa.float32(), len(rows), [None, buffer])
        return scatter_to_rows(from_arrow(column.name, array), [corpus.rows for corpus in corpora], len(column))

    def _terms(self, corpora: list[Corpus]) -> dict[str, int]:
        """Return the query's terms in order, each with its count."""
        names = dict.fromkeys(corpus.grammar.tokenizer for corpus in corpora)
        if not names:
            return {}
        if len(names) > 1:
            raise ValueError(
                f"bm25: rows have different tokenizers ({', '.join(names)}), which cut the query differently; "
                "decompress the column and compress it with one tokenizer"
            )
        tokenizer = named_tokenizer(corpora[0].grammar)
        require_known(tokenizer, "bm25: the column")
        words = PhraseWords.cut((self.query,), tokenizer).series
        images = words if self.morphism is None else self.morphism.images(words).drop_nulls()
        return dict(sorted(Counter(images.to_list()).items()))

    def _fill(self, counted: TermCounts, times: Float64, groups: Int64, lengths: UInt64, scores: Float32) -> None:
        """Write the scores of documents that contain a term."""
        count = int(groups.max()) + 1
        sizes = np.bincount(groups, minlength=count)
        averages = np.bincount(groups, lengths.astype(np.float64), count) / np.maximum(sizes, 1)
        pairs = groups[counted.documents] * len(times) + counted.terms
        if count * len(times) <= MAX_PAIRS:
            frequencies = np.bincount(pairs, minlength=count * len(times))
            present = np.flatnonzero(frequencies)
            places = np.cumsum(frequencies > 0) - 1
            pairs, frequencies = places[pairs], frequencies[present]
        else:
            present, pairs, frequencies = np.unique(pairs, return_inverse=True, return_counts=True)
        group, term = present // len(times), present % len(times)
        weights = self.scoring.weights(sizes[group], frequencies) * times[term]
        bases = np.bincount(group, self.scoring.bases(sizes[group], frequencies) * times[term], count)
        order: Any = slice(None)
        if len(times) > MANY:
            order = np.lexsort((counted.terms, frequencies[pairs], counted.documents))
        score_rows(
            counted.documents[order],
            frequencies[pairs][order],
            counted.terms[order],
            counted.counts[order],
            weights.astype(np.float32)[pairs][order],
            self.scoring.norms(lengths, averages[groups] if count > 1 else averages[0]),
            bases.astype(np.float32)[groups],
            scores,
        )


def _joined(parts: list[TermCounts], corpora: list[Corpus]) -> TermCounts:
    """Concatenate counts, with documents numbered from corpus to corpus."""
    firsts = np.cumsum([0, *(corpus.document_count for corpus in corpora)])
    return TermCounts(
        np.concatenate(
            [np.zeros(0, np.int64), *(own.documents + first for own, first in zip(parts, firsts, strict=False))]
        ),
        np.concatenate([np.zeros(0, np.int64), *(own.terms for own in parts)]),
        np.concatenate([np.zeros(0, np.uint32), *(own.counts for own in parts)]),
    )
