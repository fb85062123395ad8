"""Where a phrase occurs, and the words around it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Unpack

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.cleaning.laid_words import LaidWords, lay_out
from polars_tadoc.compress.compress import named_tokenizer
from polars_tadoc.engine.progress import by_steps
from polars_tadoc.kernels.host.rows import occurrences as kernels
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.arrow_results import from_arrow, lists, numbers, to_arrow
from polars_tadoc.model.column import scatter_to_rows, split
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.rows.extract import extract_spans
from polars_tadoc.rows.phrase_words import PhraseWords
from polars_tadoc.rows.phrases import PhraseOptions, PhraseRequest, count_phrase
from polars_tadoc.runtime.arguments import require_integer
from polars_tadoc.runtime.array_types import Int64, UInt32, array_dataclass
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.option_signature import Default, takes_options
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks
from polars_tadoc.runtime.plain_name import plain
from polars_tadoc.traversal.options import MAX_WORDS
from polars_tadoc.traversal.text_corpus import WORDS, require_text


class ConcordanceOptions(PhraseOptions, total=False):
    """Options of :func:`polars_tadoc.concordance`."""

    window: Annotated[int, Default(8)]


@array_dataclass
class PositionsRequest:
    """The checked arguments of :func:`positions`, or of a call that finds a phrase likewise."""

    phrase: PhraseRequest
    tokenizer: Tokenizer | None
    morphism: Morphism | None

    @property
    def name(self) -> str:
        """The call's name."""
        return self.phrase.call

    @classmethod
    def of(cls, phrase: object, options: PhraseOptions, call: str = "positions") -> PositionsRequest:
        """Check the arguments; errors as for :func:`positions`."""
        made = PhraseRequest.of_phrase(call, phrase, options)
        return cls(made, made.tokenizer, made.morphism)

    @staticmethod
    def schema(id_type: pl.DataType | None = None) -> pl.Schema:
        """Return the columns of the result, given the type of the ``id`` column, if there is one."""
        return pl.Schema({"id": Labels.dtype(id_type), "offset": pl.UInt32(), "length": pl.UInt32()})

    @ends_on_interrupt
    @by_steps
    def frame(self, column: pl.Series, id: pl.Series | None = None) -> pl.DataFrame:
        """Find the occurrences in a column held in memory."""
        column, labels = require_text(column, self.name), Labels.of(column, id, self.name)
        rows, offsets, lengths = self.find(column)
        found = [
            labels.series(rows).alias("id"),
            numbers("offset", offsets.astype(np.uint32)),
            numbers("length", lengths.astype(np.uint32)),
        ]
        return pl.DataFrame(found)

    @ends_on_interrupt
    def by_row(self, column: pl.Series) -> pl.Series:
        """Return the offsets of each row's occurrences, ``List(UInt32)``; null for null rows."""
        column = require_text(column, self.name)
        rows, offsets, _ = self.find(column)
        valid = np.flatnonzero(plain(column).is_not_null().to_numpy())
        counts = np.bincount(rows, minlength=len(column))[valid]
        made = lists(running_sum(counts), to_arrow(offsets.astype(np.uint32)))
        return scatter_to_rows(from_arrow(column.name, made), [valid], len(column))

    def find(self, column: pl.Series) -> tuple[Int64, Int64, Int64]:
        """Return row, first word and number of words of each occurrence, int64, in row order.

        Only rows that have the phrase are expanded to words; compressed columns are searched for it on their rules.
        """
        rows = np.flatnonzero(plain(self.phrase.run(column)).fill_null(False).to_numpy())
        some = plain(column).gather(rows)
        parts = [np.zeros((3, 0), np.int64)]
        for tokenizer, own in _by_tokenizer(some, self.tokenizer or WORDS):
            laid = lay_out(some.gather(own), self.name, self.tokenizer, self.morphism)
            of, places, size = self._occurrences(laid, tokenizer)
            offsets = laid.own(of, places)
            parts.append(np.stack([rows[own][of], offsets, laid.own(of, places + size - 1) + 1 - offsets]))
        found = np.concatenate(parts, axis=1)
        of, offsets, lengths = found[:, np.argsort(found[0], kind="stable")]
        return of, offsets, lengths

    def _occurrences(self, laid: LaidWords, tokenizer: Tokenizer) -> tuple[Int64, Int64, int]:
        """Return row and place of each occurrence, and the number of the phrase's words."""
        words = PhraseWords.cut(self.phrase.phrases, tokenizer).series
        if self.morphism is not None:
            words = self.morphism.images(words).drop_nulls()
        known = laid.vocabulary.series.to_frame("word").with_row_index("id")
        ids = words.to_frame("word").join(known, on="word", how="left", maintain_order="left")["id"]
        if len(ids) == 0 or ids.null_count():
            return np.zeros(0, np.int64), np.zeros(0, np.int64), 1
        phrase: UInt32 = ids.to_numpy().astype(np.uint32)
        borders, starts, none = np.empty(len(phrase) + 1, np.int64), laid.starts, np.zeros(0, np.int64)
        kernels.fill_borders(phrase, borders)

        def find(own: tuple[int, int]) -> Any:
            fixed = starts, laid.words, *own, phrase, borders
            made = tuple(np.empty((2, kernels.find_occurrences(*fixed, none, none)), np.int64))
            kernels.find_occurrences(*fixed, *made)
            return made

        of, places = (np.concatenate(part) for part in zip(*map_parallel(find, weighted_chunks(starts)), strict=True))
        return of, places, len(phrase)


@array_dataclass
class ConcordanceRequest:
    """The checked arguments of :func:`concordance`."""

    name: ClassVar[str] = "concordance"
    positions: PositionsRequest
    window: int

    @classmethod
    @takes_options
    def of(cls, phrase: object, **options: Unpack[ConcordanceOptions]) -> ConcordanceRequest:
        """Check the arguments; errors as for :func:`concordance`."""
        window = require_integer("window", options["window"], 0, MAX_WORDS)
        return cls(PositionsRequest.of(phrase, options, cls.name), window)

    @staticmethod
    def schema(id_type: pl.DataType | None = None) -> pl.Schema:
        """Return the columns of the result, given the type of the ``id`` column, if there is one."""
        text = dict.fromkeys(("left", "match", "right"), pl.String())
        return pl.Schema({"id": Labels.dtype(id_type), "offset": pl.UInt32(), **text})

    @ends_on_interrupt
    @by_steps
    def frame(self, column: pl.Series, id: pl.Series | None = None) -> pl.DataFrame:
        """Show the occurrences in a column held in memory."""
        column, labels = require_text(column, self.name), Labels.of(column, id, self.name)
        rows, offsets, lengths = self.positions.find(column)
        stops = offsets + lengths
        spans = {
            "left": (np.maximum(offsets - self.window, 0), offsets),
            "match": (offsets, stops),
            "right": (stops, stops + self.window),
        }
        found = [labels.series(rows).alias("id"), numbers("offset", offsets.astype(np.uint32))]
        for name, span in spans.items():
            found.append(extract_spans(column, rows, *span, self.name, self.positions.tokenizer).alias(name))
        return pl.DataFrame(found)


def _by_tokenizer(column: pl.Series, tokenizer: Tokenizer) -> list[tuple[Tokenizer, Int64]]:
    """Return the rows that each tokenizer cut, ascending; plain text is cut by the given one."""
    if column.dtype == pl.String:
        return [(tokenizer, np.arange(len(column)))]
    corpora: dict[str, list[Corpus]] = {}
    for corpus in split(column):
        corpora.setdefault(corpus.grammar.tokenizer, []).append(corpus)
    return [
        (named_tokenizer(own[0].grammar), np.sort(np.concatenate([corpus.rows for corpus in own])))
        for own in corpora.values()
    ]


@documented_by(count_phrase)
def positions(
    column: pl.Series, phrase: str, *, id: pl.Series | None = None, **options: Unpack[PhraseOptions]
) -> pa.Table:
    """Find where a phrase occurs.

    The phrase is cut into words like the column's text; separators between the words do not matter, and occurrences may
    overlap. Compressed columns are searched on their rules; only rows that have the phrase are expanded.

    Parameters
    ----------
    phrase
        Adjacent words.
    id
        Labels of the rows, one for each; default: row numbers.

    Returns
    -------
    pyarrow.Table
        ``id`` (the labels' type, or uint32), ``offset``, ``length: uint32`` (the occurrence's first word and its number
        of words, as :func:`extract` takes them; words that ``normalize`` or ``stopwords`` drop inside it count); in
        row order, then by offset.

    Raises
    ------
    LimitExceededError
        The rows with the phrase have more than 4,294,967,294 words.

    Examples
    --------
    >>> column = pl.Series("text", ["to be, or not to be", "be", None]).tadoc.compress()
    >>> tadoc.positions(column, "to be").to_pylist()
    [{'id': 0, 'offset': 0, 'length': 2}, {'id': 0, 'offset': 4, 'length': 2}]

    """
    found = PositionsRequest.of(phrase, options).frame(column, id)
    table: pa.Table = found.to_arrow(compat_level=pl.CompatLevel.oldest())
    return table


@documented_by(positions)
def concordance(
    column: pl.Series, phrase: str, *, id: pl.Series | None = None, **options: Unpack[ConcordanceOptions]
) -> pa.Table:
    """Show a phrase in context: each occurrence with the words before and after it.

    Occurrences are those of :func:`positions`.

    Parameters
    ----------
    window
        Most words on either side, of the column's own words; 0 for none.

    Returns
    -------
    pyarrow.Table
        ``id`` (the labels' type, or uint32), ``offset: uint32`` (the occurrence's first word), ``left``, ``match``,
        ``right: large_string`` (each from its first word to its last, with the separators between them); in row order,
        then by offset.

    Raises
    ------
    LimitExceededError
        The rows with the phrase have more than 4,294,967,294 words, or the results of a compressed column more than
        ``Config(expansion_limit=)``.
    TypeError
        ``phrase`` is not a string, ``window`` not an integer, ``normalize`` not an expression, ``lowercase`` not a bool
        or ``stopwords`` not a list of strings; ``id`` is not a series, or of a type that results cannot hold.

    Examples
    --------
    >>> column = pl.Series("text", ["To be, or not to be: that is the question."]).tadoc.compress()
    >>> tadoc.concordance(column, "to be", window=2).to_pylist()
    [{'id': 0, 'offset': 4, 'left': 'or not', 'match': 'to be', 'right': 'that is'}]

    """
    found = ConcordanceRequest.of(phrase, **options).frame(column, id)
    table: pa.Table = found.to_arrow(compat_level=pl.CompatLevel.oldest())
    return table
