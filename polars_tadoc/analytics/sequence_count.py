"""Sequence counts: how often each sequence of n words occurs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, Unpack, cast

import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.word_count import word_count
from polars_tadoc.engine.choose import Engine
from polars_tadoc.engine.kernels import Kernels
from polars_tadoc.engine.progress import BATCHES, bar_over
from polars_tadoc.execute.aggregation import Aggregation
from polars_tadoc.execute.analytic import Result
from polars_tadoc.execute.sequence_counts import CountsSequences, SequenceCounts
from polars_tadoc.execute.stages import Stages
from polars_tadoc.kernels.host.sequences.text_sequences import count_text_sequences
from polars_tadoc.model.arrow_results import numbers, sequence_lists, sequence_series, to_arrow
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.runtime.arguments import require_integer
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import interruptible
from polars_tadoc.runtime.option_signature import takes_options
from polars_tadoc.traversal.options import MAX_WORDS, LengthsOptions, Options, RunOptions, RunRequest, WordForm
from polars_tadoc.traversal.selector import timed_source
from polars_tadoc.traversal.source import prepare

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)

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
        Words per sequence, at least 1; or several lengths, such as ``range(2, 6)``, which are counted in one pass: the
        result then has a first column ``n``, and ``top`` applies to each length.
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
    return request_of(**options).run(column).to_arrow()


@dataclass(frozen=True, eq=False)
class ByLength(Result):
    """Sequences of several lengths."""

    parts: Mapping[int, Sequences]
    """Sequences by their number of words, in the order of the result."""

    @property
    def nbytes(self) -> int:
        """Bytes of all parts."""
        return sum(part.nbytes for part in self.parts.values())

    def to_arrow(self) -> pa.Table:
        """Return a table with a first column ``n``."""
        tables = []
        for n, part in self.parts.items():
            own = part.to_arrow()
            tables.append(own.add_column(0, "n", pa.repeat(pa.scalar(n, pa.uint32()), len(own))))
        return pa.concat_tables(tables)

    def to_frame(self, form: WordForm = "string") -> pl.DataFrame:
        """Return a frame with a first column ``n``."""
        return pl.concat([with_length(n, part.to_frame(form)) for n, part in self.parts.items()])


@dataclass(frozen=True)
class LengthsRequest(Aggregation[ByLength]):
    """The checked arguments of a call with several lengths, of a column held in memory."""

    lengths: tuple[int, ...]
    top: int | None
    min_count: int
    options: Options
    name: ClassVar[str] = "sequence_count"
    joins_grammars_on: ClassVar[tuple[str, ...]] = SequenceCountRequest.joins_grammars_on

    @property
    def each(self) -> list[SequenceCountRequest]:
        """The same call for each length."""
        return [SequenceCountRequest(n, self.top, self.min_count, self.options) for n in self.lengths]

    @property
    def schema(self) -> pl.Schema:
        """Columns of the frame."""
        return pl.Schema({"n": pl.UInt32(), **self.each[0].columns()})

    def partial(self, corpus: Corpus, engine: Engine) -> ByLength:
        """Count one corpus' sequences."""
        source, to_host = prepare(corpus, engine, self.options.morphism), engine.kernels.to_host
        with timed_source(self.options.strategy, source, self.name, max(self.lengths)) as (source, strategy):
            count = engine.kernels.sequence_counts_of_lengths
            limits = self.min_count, self.top
            found = count(*source.symbols, self.lengths, source.rank, strategy, *limits)
        made = [Sequences(source.words, to_host(ids), to_host(counts)) for ids, counts in found]
        return ByLength(dict(zip(self.lengths, made, strict=True)))

    def merge(self, partials: Sequence[ByLength]) -> ByLength:
        """Add the counts of several corpora."""
        return ByLength({one.n: one.merge([part.parts[one.n] for part in partials]) for one in self.each})

    def run(self, column: pl.Series, id: pl.Series | None = None, owner: object = None) -> ByLength:
        """Count in a column held in memory, which is kept for the next call while ``owner`` lives."""
        with interruptible(), bar_over(column, self.name, BATCHES):
            return Stages(self).all(column, column if owner is None else owner)

    def frame(self, column: pl.Series, id: pl.Series | None = None, owner: object = None) -> pl.DataFrame:
        """Return a frame."""
        return self.run(column, id, owner).to_frame(self.options.words)


def with_length(n: int, frame: Frame) -> Frame:
    """Return a frame with a first column ``n``."""
    return frame.select(pl.lit(n, pl.UInt32).alias("n"), pl.all())


@takes_options
def request_of(**options: Unpack[LengthsOptions]) -> SequenceCountRequest | LengthsRequest:
    """Check the arguments of :func:`sequence_count`; errors as there."""
    lengths = lengths_of(options["n"])
    one = SequenceCountRequest.from_arguments(**of_length(options, options["n"] if lengths is None else lengths[0]))
    return one if lengths is None else LengthsRequest(tuple(lengths), one.top, one.min_count, one.options)


def of_length(options: Mapping[str, Any], n: Any) -> RunOptions:
    """Return the options of the call for one length."""
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
