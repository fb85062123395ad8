"""Co-occurrence: how often two words stand near each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.engine.choose import Engine, EngineOption
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.kernels.keys.merge_cpu import sum_sequences
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.vocabulary import Vocabulary, unify
from polars_tadoc.records.labelled_results import Labels, dictionary, to_arrow
from polars_tadoc.records.records import Layout, Records, put_in_order
from polars_tadoc.runtime.arguments import require_integer
from polars_tadoc.runtime.option_signature import Default, takes_options
from polars_tadoc.traversal.options import (
    MinCountOption,
    Options,
    TopOption,
    WordOptions,
    require_min_count,
    require_top,
)
from polars_tadoc.traversal.selector import choose_strategy
from polars_tadoc.traversal.source import prepare

SCHEMA = pl.Schema({"word": pl.String, "other": pl.String, "count": pl.UInt64})


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of words and their counts, by count falling, equal ones in code point order; arrays in host memory."""

    words: Vocabulary
    ids: npt.NDArray[np.uint32]
    """uint32[pairs, 2]: word ids, the one that comes first in code point order first."""
    counts: npt.NDArray[np.uint64]

    def to_arrow(self) -> pa.Table:
        """Table with dictionary-encoded words."""
        word, other = (dictionary(self.words, np.ascontiguousarray(self.ids[:, k])) for k in range(2))
        return pa.table({"word": word, "other": other, "count": to_arrow(self.counts)})

    def to_frame(self) -> pl.DataFrame:
        """Frame with the schema ``SCHEMA``."""
        word, other = (self.words.take(self.ids[:, k]) for k in range(2))
        return pl.DataFrame([word.alias("word"), other.alias("other"), pl.Series("count", self.counts)])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and the words."""
        return self.ids.nbytes + self.counts.nbytes + self.words.nbytes


class WindowOption(TypedDict, total=False):
    """How near words are to each other."""

    window: Annotated[int, Default(5)]


class CooccurrenceOnWorkers(WindowOption, TopOption, MinCountOption, WordOptions, total=False):
    """Options of :func:`cooccurrence` where workers settle the engine."""


class CooccurrenceOptions(CooccurrenceOnWorkers, EngineOption, total=False):
    """Options of :func:`cooccurrence`."""


@dataclass(frozen=True)
class CooccurrenceRequest(Analytic[Pairs, Pairs]):
    """What is to be counted, checked when it is made."""

    name: ClassVar[str] = "cooccurrence"
    window: int
    top: int | None
    min_count: int
    options: Options

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[CooccurrenceOptions]) -> CooccurrenceRequest:
        """Check the arguments of :func:`cooccurrence`; errors as there."""
        return cls(
            require_integer("window", options["window"], 1),
            require_top(options["top"]),
            require_min_count(options["min_count"]),
            Options.of(options),
        )

    @property
    def pairs_per_word(self) -> int:
        """A word is counted with those of its window."""
        return self.window

    def partial(self, corpus: Corpus, engine: Engine) -> Pairs:
        """Count one corpus' pairs."""
        source = prepare(corpus, engine, self.options.morphism)
        kernels = engine.kernels
        strategy = choose_strategy(self.options.strategy, source, "cooccurrence", self.window)
        ids, counts = kernels.pair_counts(
            source.rules,
            source.root_offsets,
            source.roots,
            self.window,
            source.rank,
            strategy,
            self.min_count,
            self.top,
        )
        return Pairs(source.words, kernels.to_host(ids), kernels.to_host(counts))

    def merge(self, partials: Sequence[Pairs]) -> Pairs:
        """Add the counts of several corpora, in host memory."""
        words, maps = unify([part.words for part in partials])
        ids = [own[part.ids] for own, part in zip(maps, partials, strict=True)]
        joined = np.concatenate([np.zeros((0, 2), np.uint32), *ids])
        counts = np.concatenate([np.zeros(0, np.uint64), *(part.counts for part in partials)])
        return Pairs(words, *sum_sequences(joined, counts, words.rank, self.min_count, self.top))

    @property
    def asked(self) -> dict[str, Any]:
        """What decides which records there are."""
        return {**super().asked, "window": self.window}

    @property
    def layout(self) -> Layout:
        """Two words, and how often they stand near each other."""
        return Layout(("word", "word"), 2, by_count=True)

    def records(self, part: Pairs) -> Records:
        """Put them in the order of their words."""
        return put_in_order(self.layout, part.words, part.ids, part.counts)

    def part(self, records: Records) -> Pairs:
        """Put them in the order of their counts."""
        assert records.counts is not None
        order = np.argsort(~records.counts, kind="stable")
        return Pairs(Vocabulary(records.words), records.keys[order], records.counts[order])

    @property
    def limits(self) -> tuple[int, int | None]:
        """Those asked for."""
        return self.min_count, self.top

    def ranged(self, records: Records, labels: Labels) -> Pairs:
        """Take them as they come."""
        assert records.counts is not None
        return Pairs(Vocabulary(records.words), records.keys, records.counts)

    def result(self, total: Pairs, labels: Labels) -> Pairs:
        """Counts are what is asked for."""
        return total


@takes_options
def cooccurrence(column: pl.Series, **options: Unpack[CooccurrenceOptions]) -> pa.Table:
    """Count how often two words stand near each other in a row, without expanding any.

    Two places of a row that are at most ``window`` words apart count once for the pair of words that stand there.

    Parameters
    ----------
    column
        Compressed column.
    window
        Words from one to the other at most: 1 counts neighbours only.
    top
        At most so many pairs.
    min_count
        Leave out pairs counted less often.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String; null or an empty one leaves it out;
        it runs over the vocabulary, once. Words left out take up no room in a window.
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
        ``word``, ``other: dictionary<large_string>`` (``word`` comes first in code point order, or is the same),
        ``count: uint64``; by count falling, then word and other in code point order.

    Raises
    ------
    NotCompressedError
        The series is not a compressed column.
    InvalidGrammarError, LimitExceededError
        A payload or a row is damaged or too large, or a window this wide takes more places than are allowed.
    EngineUnavailableError
        ``engine="gpu"`` cannot run here.
    TypeError
        ``window``, ``top`` or ``min_count`` is no integer, ``normalize`` no expression, ``lowercase`` no bool or
        ``stopwords`` no list of strings.
    ValueError
        ``window`` is below 1, ``top`` is below 0, there is no such ``strategy`` or ``engine``, or ``normalize`` reads
        columns or gives anything but one String or null for each word.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> column = pl.Series("text", ["to be or not to be"]).tadoc.compress()
    >>> tadoc.cooccurrence(column, window=1, top=2).to_pylist()
    [{'word': 'be', 'other': 'to', 'count': 2}, {'word': 'be', 'other': 'or', 'count': 1}]

    """
    return CooccurrenceRequest.from_arguments(**options).run(column).to_arrow()
