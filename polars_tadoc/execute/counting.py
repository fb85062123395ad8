"""Counts the words of each row of a compressed or String column.

Counts each grammar's rows, or each block of text, on the chosen engine. Merges several results in host memory and
copies the merged counts back to the GPU if the engine is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Self, TypedDict

import numpy as np
import polars as pl

from polars_tadoc.dictionary.dictionary import Dictionary, require_dictionary
from polars_tadoc.engine.choose import CPU, Engine, choose, finishing_engine
from polars_tadoc.engine.device_batches import DeviceBatches
from polars_tadoc.execute.aggregation import Aggregation
from polars_tadoc.execute.row_order import in_row_order
from polars_tadoc.execute.terms import Terms
from polars_tadoc.kernels.host.records.merge_counts import joined, renumber
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, require_utf8
from polars_tadoc.model.blocks import cut_blocks
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.payload import short_name
from polars_tadoc.model.vocabulary import Vocabulary, common_start, unify
from polars_tadoc.model.word_map import Image
from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.option_signature import Default
from polars_tadoc.traversal.options import Options, TraversalOptions
from polars_tadoc.traversal.selector import timed_strategy
from polars_tadoc.traversal.source import prepare
from polars_tadoc.traversal.text_source import prepare_text

TEXT_BYTES = 1 << 30
"""Text is cut into words in blocks of this size: offsets in a block have 31 bits on a GPU."""

BYTES_A_WORD = 6
"""Average bytes of text per word in European languages, for the choice of the engine."""

LOOKED_UP_SHARE = 8
"""Below this share of a dictionary's words, look up the words that occur instead of comparing the whole dictionary."""


class TextOptions(TypedDict, total=False):
    """Options for the words of a String column."""

    dictionary: Annotated[Dictionary | None, Default(None)]
    tokenizer: Annotated[str | re.Pattern[str] | None, Default(None)]


class CountingOptions(TextOptions, TraversalOptions, total=False):
    """Options of all calls that count the words of text."""


@dataclass(frozen=True)
class Counting(Aggregation[Terms]):
    """Counts each row's words. Equal instances count the same."""

    name: str  # type: ignore[misc]
    takes_text: ClassVar[bool] = True
    tokenizer: Tokenizer | None
    dictionary: Dictionary | None
    options: Options

    @classmethod
    def of(cls, call: str, options: CountingOptions) -> Self:
        """Take and check these options of a call, which may have more; raises as the calls do."""
        dictionary, tokenizer = options["dictionary"], options["tokenizer"]
        shared = Options.of(options)
        if dictionary is not None:
            require_dictionary(dictionary, call)
        return cls(call, None if tokenizer is None else Tokenizer.from_argument(tokenizer), dictionary, shared)

    @property
    def described(self) -> dict[str, Any]:
        """Return the options that determine which words count, as JSON values."""
        return {
            "tokenizer": None if self.tokenizer is None else self.tokenizer.name,
            "dictionary": None if self.dictionary is None else self.dictionary.digest,
        }

    def without_limits(self) -> Self:
        """Return itself, as it has no limits."""
        return self

    def settle(self, merged: Terms) -> Terms:
        """Move merged counts from host memory to the engine that weighs them."""
        return merged.on(finishing_engine(self.options.engine, merged.engine))

    def text_partials(self, text: pl.Series, first: int, batches: DeviceBatches) -> Iterator[Terms]:
        """Count the words of each row of a String column, block by block; ``first`` is the number of its first row.

        Errors are those of :meth:`.WordCountRequest.text_partials`.
        """
        sizes = text.str.len_bytes().fill_null(0).cast(pl.Int64).to_numpy()
        engine = choose(self.options.engine, int(sizes.sum()) // BYTES_A_WORD)
        before = running_sum(sizes)
        for start, stop in cut_blocks(sizes, len(sizes), TEXT_BYTES):
            yield from batches.each(engine, before[start : stop + 1], partial(self._rows, text, first, start), "bytes")

    def _rows(self, text: pl.Series, first: int, block: int, start: int, stop: int, engine: Engine) -> Terms:
        """Count the words of some rows of a block of a String column; ``block``: number of the block's first row."""
        tokenizer = self.tokenizer or Tokenizer("words")
        rows = text[block + start : block + stop]
        try:
            source = prepare_text(rows, tokenizer, engine, self.options.morphism, self.dictionary)
        except ValueError:
            require_utf8(text, first)  # names the row in the whole column
            raise
        offsets, ids, counts = engine.kernels.terms_by_document(
            source.rules, source.root_offsets, source.roots, "top_down", source.rank
        )
        numbers = source.rows + (first + block + start)
        terms = Terms(engine, source.words, True, numbers, offsets, ids, counts, source.lengths)
        return terms if len(rows) == len(text) else terms.on_host()

    def partial(self, corpus: Corpus, engine: Engine) -> Terms:
        """Count one corpus' words by document."""
        self.require_tokenizer(corpus)
        source, kernels = prepare(corpus, engine), engine.kernels
        words, rank, image = source.words, source.rank, None
        if self.options.morphism is not None:  # applied to the counts: terms with the same image merge
            image = self.options.morphism.apply(words.series)
            words, rank = image.words, kernels.load_array(_rank_by_image(image))
        with timed_strategy(self.options.strategy, source, "term_vector") as strategy:
            terms = kernels.terms_by_document(source.rules, source.root_offsets, source.roots, strategy, rank)
        if image is not None:
            terms, rank = kernels.merge_terms(*terms, kernels.load_array(image.ids)), None
        offsets, ids, counts = terms
        found = Terms(engine, words, False, source.rows, offsets, ids, counts, known_rank=rank)
        return found if self.dictionary is None else of_dictionary(found, self.dictionary)

    def on_host(self, part: Terms) -> Terms:
        """Copy counts to host memory."""
        return part.on_host()

    def require_tokenizer(self, corpus: Corpus) -> None:
        """Raise ``TypeError`` if a corpus was cut by a tokenizer other than ``tokenizer=``."""
        own = corpus.grammar.tokenizer
        if self.tokenizer is not None and self.tokenizer.name != own:
            raise TypeError(
                f'{self.name}: tokenizer= is for String columns; {short_name(corpus.key)} was cut by "{own}", not '
                f'"{self.tokenizer.name}": leave it out, or decompress and compress(tokenizer=…) again'
            )

    def merge(self, partials: Sequence[Terms]) -> Terms:
        """Sort the documents of several corpora by row; counts stay the same."""
        if len(partials) == 1:
            return partials[0]
        words, maps = unify([part.words for part in partials])
        parts = [part.on_host() for part in partials]
        ids = renumber([part.ids for part in parts], maps)
        rows, offsets, counts = ([getattr(part, name) for part in parts] for name in ("rows", "offsets", "counts"))
        lengths = None
        if self.dictionary is not None:
            order = np.argsort(joined(np.int64, rows), kind="stable")
            lengths = joined(np.uint64, [part.lengths for part in parts])[order]
        rows, offsets, ids, counts = in_row_order(rows, offsets, (np.uint32, [ids]), (np.uint64, counts))
        return Terms(CPU, words, False, rows, offsets, ids, counts, lengths)


def of_dictionary(terms: Terms, dictionary: Dictionary) -> Terms:
    """Keep the words of a dictionary; other words still count in the lengths of documents."""
    kept = np.zeros(len(terms.words), np.bool_)
    kept[_known(terms.words, np.flatnonzero(terms.frequencies), dictionary, terms.engine)] = True
    return terms.only(kept)


def _known(words: Vocabulary, occurring: Int64, dictionary: Dictionary, engine: Engine) -> Int64:
    """Find which of the occurring words a dictionary contains.

    A grammar compressed with the dictionary has its words first. Checking that compares the whole dictionary; if few
    words occur, looking each one up is faster.
    """
    size = len(dictionary)
    known: Int64
    if LOOKED_UP_SHARE * len(occurring) >= size and common_start([dictionary.vocabulary, words]) == size:
        known = occurring[occurring < size]
        return known
    ids = dictionary.ids(words.series.gather(occurring), engine=engine.name)
    known = occurring[(ids != dictionary.unknown).to_numpy()]
    return known


def _rank_by_image(image: Image) -> UInt32:
    """Rank words by their images in code point order: words of one image are adjacent, deleted words last."""
    ranks = np.append(image.words.rank, np.uint32(len(image.words)))
    order = np.argsort(ranks[np.minimum(image.ids, np.uint32(len(image.words)))], kind="stable")
    rank = np.empty(len(order), np.uint32)
    rank[order] = np.arange(len(order), dtype=np.uint32)
    return rank
