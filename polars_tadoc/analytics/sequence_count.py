"""Sequence counts: how often each sequence of n words occurs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.word_count import word_count
from polars_tadoc.engine.kernels import Kernels
from polars_tadoc.execute.sequence_counts import CountsSequences, SequenceCounts
from polars_tadoc.kernels.host.sequences.text_sequences import count_text_sequences
from polars_tadoc.records.labelled_results import numbers, sequence_lists, sequence_series, to_arrow
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.traversal.options import RunOptions, RunRequest, WordForm

SCHEMA = pl.Schema({"sequence": pl.List(pl.String()), "count": pl.UInt64()})


class Sequences(SequenceCounts):
    """Runs of words and their counts, in the order of the result."""

    def to_arrow(self) -> pa.Table:
        """Return a table with lists of dictionary-encoded words."""
        return pa.table({"sequence": sequence_lists(self.words, self.ids), "count": to_arrow(self.counts)})

    def to_frame(self, form: WordForm = "string") -> pl.DataFrame:
        """Return a frame with the schema ``SCHEMA``."""
        return pl.DataFrame([sequence_series(self.words, self.ids, form), numbers("count", self.counts)])


@dataclass(frozen=True)
class SequenceCountRequest(RunRequest, CountsSequences[Sequences]):
    """The checked arguments of a call."""

    name: ClassVar[str] = "sequence_count"
    schema = SCHEMA
    made = Sequences
    span_option: ClassVar[str] = "n"

    @property
    def size(self) -> int:
        """Words of a sequence."""
        return self.n

    text_kernel = staticmethod(count_text_sequences)

    @staticmethod
    def kernel(kernels: Kernels) -> Callable[..., tuple[Any, Any]]:
        """Return the kernel that counts the sequences of one corpus."""
        return kernels.sequence_counts


@documented_by(word_count)
def sequence_count(column: pl.Series, **options: Unpack[RunOptions]) -> pa.Table:
    """Count sequences of n words (n-grams), without decompressing rows.

    The algorithm is that of Zhang et al., ICDE 2021, sections IV-D and V-C. A rule contributes only the sequences that
    span at least two of its symbols, weighted by its frequency: their words are among the first and last n - 1 words of
    those symbols. No sequence crosses rows.

    Parameters
    ----------
    n
        Words per sequence, at least 1.
    top
        Maximum number of sequences.
    min_count
        Drop sequences with smaller counts.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String; null or an empty string drops the
        word, and the words on either side become adjacent. Applied once to the vocabulary.

    Returns
    -------
    pyarrow.Table
        ``sequence: large_list<dictionary<large_string>>``, ``count: uint64``; by descending count, then sequence, word
        by word in code point order.

    Raises
    ------
    InvalidGrammarError, LimitExceededError
        A payload or a row is damaged or too large, or sequences this long have too many positions.
    TypeError
        ``n``, ``top`` or ``min_count`` is not an integer, ``normalize`` not an expression, ``lowercase`` not a bool or
        ``stopwords`` not a list of strings.
    ValueError
        ``n`` is not from 1 to 2^32 - 1, ``top`` is negative, ``strategy`` or ``engine`` is unknown, or ``normalize``
        reads columns or does not give one String or null per word.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> column = pl.Series("text", ["to be or not to be"]).tadoc.compress()
    >>> tadoc.sequence_count(column, n=2, top=2).to_pylist()
    [{'sequence': ['to', 'be'], 'count': 2}, {'sequence': ['be', 'or'], 'count': 1}]

    """
    return SequenceCountRequest.from_arguments(**options).run(column).to_arrow()
