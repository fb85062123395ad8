"""Word counts: how often each word occurs in the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.engine.choose import CPU, Engine
from polars_tadoc.engine.device_batches import DeviceBatches
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.execute.transport import Transport
from polars_tadoc.kernels.host.records.merge_counts import add_counts
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.model.arrow_results import dictionary, numbers, to_arrow, word_series
from polars_tadoc.model.blocks import cut_blocks
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.vocabulary import Vocabulary, unify
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.records.packed_records import sort_records
from polars_tadoc.records.records import Layout, Records
from polars_tadoc.runtime.array_types import UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.documented import with_imports
from polars_tadoc.runtime.option_signature import takes_options
from polars_tadoc.runtime.plain_name import plain
from polars_tadoc.traversal.options import TopOptions, TopRequest, WordForm
from polars_tadoc.traversal.source import resident_rows
from polars_tadoc.traversal.text_corpus import BYTES_A_WORD, TEXT_BYTES, WORDS, naming_rows

SCHEMA = pl.Schema({"word": pl.String, "count": pl.UInt64})


@array_dataclass
class WordCounts:
    """Counts by word id, resident with an engine."""

    words: Vocabulary
    counts: Any
    """uint64 by word id, an array of the engine."""
    engine: Engine

    @property
    def nbytes(self) -> int:
        """Bytes of the counts and the words."""
        return int(self.counts.nbytes) + self.words.nbytes


@array_dataclass
class Selection:
    """The words of a result, in order; strings are made only in the requested form."""

    words: Vocabulary
    ids: UInt32
    counts: UInt64

    def to_arrow(self) -> pa.Table:
        """Return a table with dictionary-encoded words; a short result has a dictionary of its own words only."""
        return pa.table({"word": dictionary(self.words, self.ids), "count": to_arrow(self.counts)})

    def to_frame(self, form: WordForm = "string") -> pl.DataFrame:
        """Return a frame with the schema ``SCHEMA``."""
        return pl.DataFrame([word_series(self.words, self.ids, form), numbers("count", self.counts)])


class WordTransport(Transport[WordCounts]):
    """A word, and how often it occurs."""

    def records(self, part: WordCounts) -> Records:
        """Keep the words that occur."""
        counts: UInt64 = part.engine.kernels.to_host(part.counts)
        ids = np.flatnonzero(counts).astype(np.uint32)
        return sort_records(self.layout, part.words, ids[:, None], counts[ids])

    def part(self, records: Records) -> WordCounts:
        """Give each word its count."""
        assert records.counts is not None
        counts = np.zeros(len(records.words), np.uint64)
        counts[records.keys[:, 0]] = records.counts
        return WordCounts(records.vocabulary, counts, CPU)


class CountsWords(Analytic[WordCounts, Selection]):
    """Shared steps of counting words."""

    min_count: int
    takes_text = True
    transport = WordTransport(Layout(("word",), 1))
    joins_grammars_on: ClassVar[tuple[str, ...]] = ("gpu",)

    def partial(self, corpus: Corpus, engine: Engine) -> WordCounts:
        """Count one corpus' words; applies the morphism to the counts, of which there are fewer than symbols."""
        kernels, grammar, options = engine.kernels, corpus.grammar, self.options
        _, roots = resident_rows(corpus, engine).arrays
        if options.strategy == "bottom_up":
            counts = kernels.terminal_counts(engine.load_rules(corpus.cache_key, grammar), roots, "bottom_up")
        else:  # each rule's body is read only once: no table per rule can be cheaper
            counts = kernels.top_down_weights(engine.load(corpus.cache_key, grammar), roots)
        if options.morphism is None:
            return WordCounts(grammar.words, counts, engine)
        image = options.morphism.apply(grammar.words.series)
        return WordCounts(image.words, kernels.map_counts(counts, image.ids, len(image.words)), engine)

    def text_partials(self, text: pl.Series, first: int, batches: DeviceBatches) -> Iterator[WordCounts]:
        """Count the words of a String column without holding their sequence; ``first`` is its first row's number.

        Raises
        ------
        ValueError
            A row is not UTF-8.
        EngineUnavailableError
            ``engine="gpu"`` cannot run here.

        """
        tokenizer, morphism = self.options.tokenizer or WORDS, self.options.morphism

        def count(start: int, stop: int, engine: Engine) -> WordCounts:
            strings, counts = engine.kernels.count_text_words(text[start:stop], tokenizer)
            words = Vocabulary.ordered(strings)
            if morphism is not None:
                image = morphism.apply(words.series)
                words, counts = image.words, engine.kernels.map_counts(counts, image.ids, len(image.words))
            found = WordCounts(words, counts, engine)
            return found if stop - start == len(text) else self.on_host(found)

        sizes = plain(text).str.len_bytes().fill_null(0).cast(pl.Int64).to_numpy()
        engine = self.choose_engine(int(sizes.sum()) // BYTES_A_WORD)
        before = running_sum(sizes)
        with naming_rows(text, first):
            for start, stop in cut_blocks(sizes, max(1, len(sizes)), TEXT_BYTES):
                block = before[start : stop + 1]
                yield from batches.each(engine, block, lambda a, b, own: count(start + a, start + b, own), "bytes")  # noqa: B023

    def on_host(self, part: WordCounts) -> WordCounts:
        """Copy the counts to host memory."""
        return WordCounts(part.words, part.engine.kernels.to_host(part.counts), CPU)

    def merge(self, partials: Sequence[WordCounts]) -> WordCounts:
        """Add counts of several corpora, in host memory; a single one stays where it is."""
        if len(partials) == 1:
            return partials[0]
        words, maps = unify([part.words for part in partials])
        total = np.zeros(len(words), np.uint64)
        for part, own in zip(partials, maps, strict=True):
            add_counts(part.engine.kernels.to_host(part.counts), own, total)
        return WordCounts(words, total, CPU)


@dataclass(frozen=True)
class WordCountRequest(TopRequest, CountsWords):
    """The checked arguments of a call."""

    name: ClassVar[str] = "word_count"
    schema = SCHEMA
    transport = WordTransport(Layout(("word",), 1, by_count=True))

    @property
    def limits(self) -> tuple[int, int | None]:
        """The limits of the call."""
        return self.min_count, self.top

    def ranged(self, records: Records, labels: Labels) -> Selection:
        """Return the words in their order."""
        assert records.counts is not None
        return Selection(records.vocabulary, records.keys[:, 0], records.counts)

    def result(self, total: WordCounts, labels: Labels) -> Selection:
        """Select the words."""
        return Selection(total.words, *total.engine.kernels.select(total.counts, total.words, self.min_count, self.top))


@with_imports
@takes_options
def word_count(column: pl.Series, **options: Unpack[TopOptions]) -> pa.Table:
    """Count words, without decompressing rows (G-TADOC, Zhang et al., ICDE 2021, algorithm 1).

    Parameters
    ----------
    column
        Compressed column, or plain text (String, Categorical or Enum).
    top
        Maximum number of words.
    min_count
        Drop words with smaller counts.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String; null or an empty string drops the
        word. Applied once to the vocabulary.
    lowercase
        Whether to lower-case words (after ``normalize``) and stop words.
    stopwords
        Words to drop, compared after ``normalize`` and lower-casing; or the name of a language (:func:`stop_words`).
    strategy
        "auto", "top_down" or "bottom_up": direction in which rules are traversed; results are equal.
    tokenizer
        Cuts plain text into words, as for ``compress``; "words" by default. A compressed column is tokenized already.

    Returns
    -------
    pyarrow.Table
        ``word: dictionary<large_string>``, ``count: uint64``; by descending count, then word in code point order.

    Raises
    ------
    NotCompressedError
        The series is not a compressed column.
    InvalidGrammarError, LimitExceededError
        A payload or a row is damaged or too large.
    EngineUnavailableError
        ``engine="gpu"`` cannot run here.
    TypeError
        ``top`` or ``min_count`` is not an integer, ``normalize`` not an expression, ``lowercase`` not a bool or
        ``stopwords`` not a list of strings.
    ValueError
        ``top`` is negative, ``strategy`` or ``engine`` is unknown, or ``normalize`` reads columns or does not give one
        String or null per word.

    Examples
    --------
    >>> column = pl.Series("text", ["the cat saw the dog", "The dog ran"]).tadoc.compress()
    >>> tadoc.word_count(column, lowercase=True, top=2).to_pylist()
    [{'word': 'the', 'count': 3}, {'word': 'dog', 'count': 2}]

    """
    return WordCountRequest.from_arguments(**options).run(column).to_arrow()
