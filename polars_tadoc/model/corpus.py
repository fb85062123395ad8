"""A corpus: one grammar and the rows that use it. The input of every analytic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from polars_tadoc.errors import LimitExceededError
from polars_tadoc.kernels.traverse import counts_cpu as kernels
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.model.payload import short_name
from polars_tadoc.runtime.array_types import Int64, UInt32, array_dataclass
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.runtime.documented import with_imports

TEXT = "text "
"""Start of the keys of plain text."""


@with_imports
@array_dataclass
class Corpus:
    """Rows that share one grammar; made by :func:`polars_tadoc.column.split`.

    Parameters
    ----------
    key
        The grammar's content digest, with format and length.
    grammar
        The shared rules.
    rows
        int64: row of each document in the column.
    root_offsets
        int64, documents + 1: start of each document's symbols in ``roots``.
    roots
        uint32: the top-level symbols of all documents, in document order.
    gaps
        Binary series by document: the separators between words, as varint pairs.
    identity
        Key of offsets and symbols in caches while they are cached (:mod:`polars_tadoc.model.kept_columns`).

    Examples
    --------
    >>> (corpus,) = tadoc.column.split(pl.Series(["to be", None, "or not to be"]).tadoc.compress())
    >>> corpus.document_count, corpus.word_total(), corpus.rows.tolist()
    (2, 6, [0, 2])

    """

    key: str
    grammar: Grammar
    rows: Int64
    root_offsets: Int64
    roots: UInt32
    gaps: pl.Series
    identity: str | None = None

    @property
    def cache_key(self) -> str | None:
        """Key of the grammar in caches; None for plain text, which is not cached."""
        return None if self.key.startswith(TEXT) else self.key

    @property
    def document_count(self) -> int:
        """Number of documents."""
        return len(self.rows)

    @property
    def symbol_count(self) -> int:
        """Symbols that a traversal reads: those of rows and of rules."""
        return len(self.roots) + len(self.grammar.symbols)

    def some(self, first: int, stop: int) -> Corpus:
        """Return some of the documents.

        Parameters
        ----------
        first, stop
            Range of document numbers, from 0; ``stop`` is exclusive.

        Returns
        -------
        Corpus
            Documents ``first`` to ``stop - 1``, with the same grammar.

        Examples
        --------
        >>> (corpus,) = tadoc.column.split(pl.Series(["to be", "or not", "to be"]).tadoc.compress())
        >>> corpus.some(1, 3).rows.tolist()
        [1, 2]

        """
        start, end = self.root_offsets[first], self.root_offsets[stop]
        return replace(
            self,
            rows=self.rows[first:stop],
            root_offsets=self.root_offsets[first : stop + 1] - start,
            roots=self.roots[start:end],
            gaps=self.gaps[first:stop],
            identity=None,
        )

    @cached_property
    def known_word_total(self) -> int:
        """:meth:`word_total`, computed once."""
        return self.word_total()

    def word_total(self) -> int:
        """Count the words of all documents.

        Returns
        -------
        int
            Number of words.

        Raises
        ------
        LimitExceededError
            The number exceeds 64 bits.

        Examples
        --------
        >>> tadoc.column.split(pl.Series(["to be", "or not"]).tadoc.compress())[0].word_total()
        4

        """
        require_countable([self])
        return int(kernels.sum_words(self.grammar.vocabulary_size, self.grammar.expansion_lengths, self.roots))


def require_countable(corpora: Sequence[Corpus], window: int = 1) -> None:
    """Check that no count over all documents can exceed 64 bits: of words, or of pairs of words in a window.

    Raises
    ------
    LimitExceededError
        A count could.

    """
    most = sum(len(corpus.roots) * corpus.grammar.longest for corpus in corpora)
    if most * min(window, most) < 1 << 63:  # almost always: no row need be read
        return
    words = 0.0
    for corpus in corpora:
        size = corpus.grammar.vocabulary_size
        rules = corpus.roots[corpus.roots >= size] - np.uint32(size)
        words += len(corpus.roots) + float(corpus.grammar.expansion_lengths[rules].sum(dtype=np.float64))
    if words * min(window, words) >= 1 << 63:
        what = "words" if window == 1 else f"pairs of words in a window of {window:,}"
        names = ", ".join(short_name(corpus.key) for corpus in corpora[:3])
        raise LimitExceededError(f"{names}: the rows have more {what} than 64 bits can count; split the column")
