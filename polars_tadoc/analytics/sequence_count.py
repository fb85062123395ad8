"""Sequence counts: how often each sequence of n words occurs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, Unpack, cast

import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.word_count import word_count
from polars_tadoc.engine.kernels import Kernels
from polars_tadoc.execute.sequence_counts import CountsSequences, SequenceCounts
from polars_tadoc.kernels.host.sequences.text_sequences import count_text_sequences
from polars_tadoc.records.labelled_results import numbers, sequence_lists, sequence_series, to_arrow
from polars_tadoc.runtime.arguments import require_integer
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.traversal.options import MAX_WORDS, LengthsOptions, RunOptions, RunRequest, WordForm

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
def sequence_count(column: pl.Series, **options: Unpack[LengthsOptions]) -> pa.Table:
    """Count sequences of n words (n-grams), without decompressing rows.

    The algorithm is that of Zhang et al., ICDE 2021, sections IV-D and V-C. A rule contributes only the sequences that
    span at least two of its symbols, weighted by its frequency: their words are among the first and last n - 1 words of
    those symbols. No sequence crosses rows.

    Parameters
    ----------
    n
        Words per sequence, at least 1; or several lengths, such as ``range(2, 6)``: the result then has a first column
        ``n``, and ``top`` applies to each length. Expressions, Workers and Spark take one length.
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
    >>> column = pl.Series("text", ["to be or not to be"]).tadoc.compress()
    >>> tadoc.sequence_count(column, n=2, top=2).to_pylist()
    [{'sequence': ['to', 'be'], 'count': 2}, {'sequence': ['be', 'or'], 'count': 1}]
    >>> tadoc.sequence_count(column, n=range(2, 4), top=1).select(["n", "sequence"]).to_pylist()
    [{'n': 2, 'sequence': ['to', 'be']}, {'n': 3, 'sequence': ['be', 'or', 'not']}]

    """
    lengths = lengths_of(options["n"])
    if lengths is None:
        return SequenceCountRequest.from_arguments(**_of_one(options, options["n"])).run(column).to_arrow()
    tables = []
    for n in lengths:
        found = SequenceCountRequest.from_arguments(**_of_one(options, n)).run(column).to_arrow()
        tables.append(found.add_column(0, "n", pa.repeat(pa.scalar(n, pa.uint32()), len(found))))
    return pa.concat_tables(tables)


def _of_one(options: LengthsOptions, n: Any) -> RunOptions:
    return cast(RunOptions, {**options, "n": n})


def lengths_of(n: object) -> list[int] | None:
    """Return the lengths of ``n=``; None if it is one length.

    Raises
    ------
    TypeError
        A length is not an integer.
    ValueError
        A length is out of range or repeated, or there is none.

    """
    if isinstance(n, str) or not isinstance(n, Iterable):
        return None
    lengths = [require_integer("n", own, 1, MAX_WORDS) for own in n]
    if not lengths or len(set(lengths)) < len(lengths):
        raise ValueError(f"sequence_count: n={lengths}: give distinct lengths, such as range(2, 6)")
    return lengths


Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


def frames_of_lengths(options: Mapping[str, Any], count: Callable[[dict[str, Any]], Frame]) -> Frame:
    """Join the frames of several lengths, with a first column ``n``; the frame of one length as it is."""
    lengths = lengths_of(options["n"])
    if lengths is None:
        return count({**options})
    found = [count({**options, "n": n}).select(pl.lit(n, pl.UInt32).alias("n"), pl.all()) for n in lengths]
    return pl.concat(found)
