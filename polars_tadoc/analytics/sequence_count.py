"""Sequence counts: how often each run of n words occurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.engine.choose import Engine, EngineOption
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.kernels.keys.merge_cpu import sum_sequences
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.vocabulary import Vocabulary, unify
from polars_tadoc.records.labelled_results import Labels, sequence_lists, sequence_series, to_arrow
from polars_tadoc.records.records import Layout, Records, put_in_order, word_columns
from polars_tadoc.runtime.arguments import require_integer
from polars_tadoc.runtime.option_signature import takes_options
from polars_tadoc.traversal.options import (
    MAX_WORDS,
    MinCountOption,
    Options,
    RunOption,
    TopOption,
    WordOptions,
    require_min_count,
    require_top,
)
from polars_tadoc.traversal.selector import choose_strategy
from polars_tadoc.traversal.source import prepare

SCHEMA = pl.Schema({"sequence": pl.List(pl.String()), "count": pl.UInt64()})


@dataclass(frozen=True, eq=False)
class Sequences:
    """Runs of words and their counts, by count falling, equal ones in code point order; arrays in host memory."""

    words: Vocabulary
    ids: npt.NDArray[np.uint32]
    """uint32[sequences, n]: word ids."""
    counts: npt.NDArray[np.uint64]

    def to_arrow(self) -> pa.Table:
        """Table with lists of dictionary-encoded words."""
        return pa.table({"sequence": sequence_lists(self.words, self.ids), "count": to_arrow(self.counts)})

    def to_frame(self) -> pl.DataFrame:
        """Frame with the schema ``SCHEMA``."""
        return pl.DataFrame([sequence_series(self.words, self.ids), pl.Series("count", self.counts)])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and the words."""
        return self.ids.nbytes + self.counts.nbytes + self.words.nbytes


class SequenceCountOnWorkers(RunOption, TopOption, MinCountOption, WordOptions, total=False):
    """Options of :func:`sequence_count` where workers settle the engine."""


class SequenceCountOptions(SequenceCountOnWorkers, EngineOption, total=False):
    """Options of :func:`sequence_count`."""


@dataclass(frozen=True)
class SequenceCountRequest(Analytic[Sequences, Sequences]):
    """What is to be counted, checked when it is made."""

    name: ClassVar[str] = "sequence_count"
    n: int
    top: int | None
    min_count: int
    options: Options

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[SequenceCountOptions]) -> SequenceCountRequest:
        """Check the arguments of :func:`sequence_count`; errors as there."""
        return cls(
            require_integer("n", options["n"], 1, MAX_WORDS),
            require_top(options["top"]),
            require_min_count(options["min_count"]),
            Options.of(options),
        )

    def partial(self, corpus: Corpus, engine: Engine) -> Sequences:
        """Count one corpus' sequences."""
        source = prepare(corpus, engine, self.options.morphism)
        kernels = engine.kernels
        strategy = choose_strategy(self.options.strategy, source, "sequence_count", self.n)
        ids, counts = kernels.sequence_counts(
            source.rules,
            source.root_offsets,
            source.roots,
            self.n,
            source.rank,
            strategy,
            self.min_count,
            self.top,
        )
        return Sequences(source.words, kernels.to_host(ids), kernels.to_host(counts))

    def merge(self, partials: Sequence[Sequences]) -> Sequences:
        """Add the counts of several corpora, in host memory."""
        words, maps = unify([part.words for part in partials])
        ids = [own[part.ids] for own, part in zip(maps, partials, strict=True)]
        joined = np.concatenate([np.zeros((0, self.n), np.uint32), *ids])
        counts = np.concatenate([np.zeros(0, np.uint64), *(part.counts for part in partials)])
        return Sequences(words, *sum_sequences(joined, counts, words.rank, self.min_count, self.top))

    @property
    def asked(self) -> dict[str, Any]:
        """What decides which records there are."""
        return {**super().asked, "n": self.n}

    @property
    def layout(self) -> Layout:
        """The words of a run, and how often it occurs."""
        return Layout(word_columns(self.n), self.n, by_count=True)

    def records(self, part: Sequences) -> Records:
        """Put them in the order of their words."""
        return put_in_order(self.layout, part.words, part.ids, part.counts)

    def part(self, records: Records) -> Sequences:
        """Put them in the order of their counts."""
        assert records.counts is not None
        order = np.argsort(~records.counts, kind="stable")
        return Sequences(Vocabulary(records.words), records.keys[order], records.counts[order])

    @property
    def limits(self) -> tuple[int, int | None]:
        """Those asked for."""
        return self.min_count, self.top

    def ranged(self, records: Records, labels: Labels) -> Sequences:
        """Take them as they come."""
        assert records.counts is not None
        return Sequences(Vocabulary(records.words), records.keys, records.counts)

    def result(self, total: Sequences, labels: Labels) -> Sequences:
        """Counts are what is asked for."""
        return total


@takes_options
def sequence_count(column: pl.Series, **options: Unpack[SequenceCountOptions]) -> pa.Table:
    """Count runs of n words, n-grams, without expanding any row (Zhang et al., ICDE 2021, sections IV-D and V-C).

    A rule contributes only the runs that span two or more of its symbols, weighted by how often it occurs: their
    words come from the first and last n - 1 words of those symbols. No run goes from one row to the next.

    Parameters
    ----------
    column
        Compressed column.
    n
        Words of each sequence, 1 or more.
    top
        At most so many sequences.
    min_count
        Leave out sequences counted less often.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String; null or an empty one leaves it out;
        it runs over the vocabulary, once. The neighbours of words left out become neighbours of each other.
    lowercase
        Lower-case words (after ``normalize``), and the stop words with them.
    stopwords
        Words to leave out, compared after ``normalize`` and lower-casing.
    strategy
        "auto", "top_down" or "bottom_up": which way the rules are traversed; the result is the same.
    engine
        "auto", "cpu" or "gpu"; by default what ``tadoc.Config`` says.

    Returns
    -------
    pyarrow.Table
        ``sequence: large_list<dictionary<large_string>>``, ``count: uint64``; by count falling, then sequence, word
        by word in code point order.

    Raises
    ------
    NotCompressedError
        The series is not a compressed column.
    InvalidGrammarError, LimitExceededError
        A payload or a row is damaged or too large, or runs this long take more places than are allowed.
    EngineUnavailableError
        ``engine="gpu"`` cannot run here.
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
