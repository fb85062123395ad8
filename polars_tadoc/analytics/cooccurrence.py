"""Co-occurrence: counts of word pairs within a window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypedDict, Unpack

import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.word_count import word_count
from polars_tadoc.engine.choose import EngineOption
from polars_tadoc.engine.kernels import Kernels
from polars_tadoc.execute.sequence_counts import CountsSequences, SequenceCounts
from polars_tadoc.kernels.host.sequences.text_sequences import count_text_pairs
from polars_tadoc.model.arrow_results import dictionary, numbers, to_arrow, word_series
from polars_tadoc.runtime.arguments import require_integer
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.option_signature import Default, takes_options
from polars_tadoc.traversal.options import (
    Options,
    TokenizerOption,
    TopOnWorkers,
    WordForm,
    require_min_count,
    require_top,
)

SCHEMA = pl.Schema({"word": pl.String, "other": pl.String, "count": pl.UInt64})


class Pairs(SequenceCounts):
    """Pairs of words and their counts, in the order of the result; the word that is first in code point order first."""

    def to_arrow(self) -> pa.Table:
        """Return a table with dictionary-encoded words."""
        word, other = (dictionary(self.words, to_arrow(self.ids[:, k])) for k in range(2))
        return pa.table({"word": word, "other": other, "count": to_arrow(self.counts)})

    def to_frame(self, form: WordForm = "string") -> pl.DataFrame:
        """Return a frame with the schema ``SCHEMA``."""
        word, other = (word_series(self.words, self.ids[:, k], form) for k in range(2))
        return pl.DataFrame([word.alias("word"), other.alias("other"), numbers("count", self.counts)])


class WindowOption(TypedDict, total=False):
    """How near words are to each other."""

    window: Annotated[int, Default(5)]


class CooccurrenceOnWorkers(WindowOption, TopOnWorkers, total=False):
    """Options of :func:`cooccurrence` where workers settle the engine."""


class CooccurrenceOptions(CooccurrenceOnWorkers, TokenizerOption, EngineOption, total=False):
    """Options of :func:`cooccurrence`."""


@dataclass(frozen=True)
class CooccurrenceRequest(CountsSequences[Pairs]):
    """The checked arguments of a call."""

    name: ClassVar[str] = "cooccurrence"
    schema = SCHEMA
    made = Pairs
    span_option: ClassVar[str] = "window"
    size: ClassVar[int] = 2
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

    text_kernel = staticmethod(count_text_pairs)

    @staticmethod
    def kernel(kernels: Kernels) -> Callable[..., tuple[Any, Any]]:
        """Return the kernel that counts the pairs of one corpus."""
        return kernels.pair_counts


@documented_by(word_count)
def cooccurrence(column: pl.Series, **options: Unpack[CooccurrenceOptions]) -> pa.Table:
    """Count pairs of words within a window of words in a row, without decompressing rows.

    Two positions of a row that are at most ``window`` words apart count once for their pair of words.

    Parameters
    ----------
    window
        Maximum distance between the two words: 1 counts only adjacent words.
    top
        Maximum number of pairs.
    min_count
        Drop pairs with smaller counts.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String; null or an empty string drops the
        word. Applied once to the vocabulary. Dropped words take up no space in a window.

    Returns
    -------
    pyarrow.Table
        ``word``, ``other: dictionary<large_string>`` (``word`` precedes ``other`` in code point order, or equals it),
        ``count: uint64``; by descending count, then word and other in code point order.

    Raises
    ------
    InvalidGrammarError, LimitExceededError
        A payload or a row is damaged or too large, or a window this wide has too many positions.
    TypeError
        ``window``, ``top`` or ``min_count`` is not an integer, ``normalize`` not an expression, ``lowercase`` not a
        bool or ``stopwords`` not a list of strings.
    ValueError
        ``window`` is below 1, ``top`` is negative, ``strategy`` or ``engine`` is unknown, or ``normalize`` reads
        columns or does not give one String or null per word.

    Examples
    --------
    >>> column = pl.Series("text", ["to be or not to be"]).tadoc.compress()
    >>> tadoc.cooccurrence(column, window=1, top=2).to_pylist()
    [{'word': 'be', 'other': 'to', 'count': 2}, {'word': 'be', 'other': 'or', 'count': 1}]

    """
    return CooccurrenceRequest.from_arguments(**options).run(column).to_arrow()
