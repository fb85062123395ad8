"""Sequence counts: how often each run of n words occurs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.word_count import word_count
from polars_tadoc.engine.choose import EngineOption
from polars_tadoc.engine.kernels import Kernels
from polars_tadoc.execute.sequence_counts import CountsSequences, SequenceCounts
from polars_tadoc.records.labelled_results import sequence_lists, sequence_series, to_arrow
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.traversal.options import MinCountOption, RunOption, RunRequest, TopOption, WordOptions

SCHEMA = pl.Schema({"sequence": pl.List(pl.String()), "count": pl.UInt64()})


class Sequences(SequenceCounts):
    """Runs of words and their counts, in the order of the result."""

    def to_arrow(self) -> pa.Table:
        """Table with lists of dictionary-encoded words."""
        return pa.table({"sequence": sequence_lists(self.words, self.ids), "count": to_arrow(self.counts)})

    def to_frame(self) -> pl.DataFrame:
        """Frame with the schema ``SCHEMA``."""
        return pl.DataFrame([sequence_series(self.words, self.ids), pl.Series("count", self.counts)])


class SequenceCountOnWorkers(RunOption, TopOption, MinCountOption, WordOptions, total=False):
    """Options of :func:`sequence_count` where workers settle the engine."""


class SequenceCountOptions(SequenceCountOnWorkers, EngineOption, total=False):
    """Options of :func:`sequence_count`."""


@dataclass(frozen=True)
class SequenceCountRequest(RunRequest, CountsSequences[Sequences]):
    """Arguments, checked."""

    name: ClassVar[str] = "sequence_count"
    schema = SCHEMA
    made = Sequences
    span_option: ClassVar[str] = "n"

    @property
    def size(self) -> int:
        """Words of a sequence."""
        return self.n

    @staticmethod
    def kernel(kernels: Kernels) -> Callable[..., tuple[Any, Any]]:
        """Return the kernel that counts the sequences of one corpus."""
        return kernels.sequence_counts


@documented_by(word_count)
def sequence_count(column: pl.Series, **options: Unpack[SequenceCountOptions]) -> pa.Table:
    """Count runs of n words, n-grams, without expanding any row (Zhang et al., ICDE 2021, sections IV-D and V-C).

    A rule contributes only the runs that span two or more of its symbols, weighted by how often it occurs: their
    words come from the first and last n - 1 words of those symbols. No run goes from one row to the next.

    Parameters
    ----------
    n
        Words of each sequence, 1 or more.
    top
        At most so many sequences.
    min_count
        Leave out sequences counted less often.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String; null or an empty one leaves it out;
        it runs over the vocabulary, once. The neighbours of words left out become neighbours of each other.

    Returns
    -------
    pyarrow.Table
        ``sequence: large_list<dictionary<large_string>>``, ``count: uint64``; by count falling, then sequence, word
        by word in code point order.

    Raises
    ------
    InvalidGrammarError, LimitExceededError
        A payload or a row is damaged or too large, or runs this long take more places than are allowed.
    TypeError
        ``n``, ``top`` or ``min_count`` is no integer, ``normalize`` no expression, ``lowercase`` no bool or
        ``stopwords`` no list of strings.
    ValueError
        ``n`` is not from 1 to 2^32 - 1, ``top`` is below 0, there is no such ``strategy`` or ``engine``, or
        ``normalize`` reads columns or gives anything but one String or null for each word.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> column = pl.Series("text", ["to be or not to be"]).tadoc.compress()
    >>> tadoc.sequence_count(column, n=2, top=2).to_pylist()
    [{'sequence': ['to', 'be'], 'count': 2}, {'sequence': ['be', 'or'], 'count': 1}]

    """
    return SequenceCountRequest.from_arguments(**options).run(column).to_arrow()
