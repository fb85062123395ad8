"""How each row's words are counted, of a compressed column or of a String one.

Each grammar's rows, or each stretch of text, are counted on the engine chosen. Counts of several are put together in
host memory, and go back to a GPU where one is asked for.
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
from polars_tadoc.traversal.selector import choose_strategy
from polars_tadoc.traversal.source import prepare
from polars_tadoc.traversal.text_source import prepare_text

TEXT_BYTES = 1 << 30
"""Text that is cut into words at a time: places in it are numbered in 31 bits on a GPU."""

BYTES_A_WORD = 6
"""Bytes of text for each word, about, in European languages: by it the engine is chosen."""

LOOKED_UP_SHARE = 8
"""Where more words than so small a share of a dictionary occur, comparing the whole dictionary may pay."""


class TextOptions(TypedDict, total=False):
    """Which words of a String column count."""

    dictionary: Annotated[Dictionary | None, Default(None)]
    tokenizer: Annotated[str | re.Pattern[str] | None, Default(None)]


class CountingOptions(TextOptions, TraversalOptions, total=False):
    """What all calls take that count the words of text."""


@dataclass(frozen=True)
class Counting(Aggregation[Terms]):
    """Counts each row's words. Equal ones count the same."""

    name: str  # type: ignore[misc]
    takes_text: ClassVar[bool] = True
    tokenizer: Tokenizer | None
    dictionary: Dictionary | None
    options: Options

    @classmethod
    def of(cls, call: str, options: CountingOptions) -> Self:
        """Check the options of a call, which may have more; errors as the calls'."""
        dictionary, tokenizer = options["dictionary"], options["tokenizer"]
        shared = Options.of(options)
        if dictionary is not None:
            require_dictionary(dictionary, call)
        return cls(call, None if tokenizer is None else Tokenizer.from_argument(tokenizer), dictionary, shared)

    @property
    def described(self) -> dict[str, Any]:
        """Which words are counted, as values that JSON has."""
        return {
            "tokenizer": None if self.tokenizer is None else self.tokenizer.name,
            "dictionary": None if self.dictionary is None else self.dictionary.digest,
        }

    def without_limits(self) -> Self:
        """There are no limits."""
        return self

    def settle(self, merged: Terms) -> Terms:
        """Bring merged counts, which are in host memory, to where they are to be weighed."""
        return merged.on(finishing_engine(self.options.engine, merged.engine))

    def text_partials(self, text: pl.Series, first: int, batches: DeviceBatches) -> Iterator[Terms]:
        """Count the words of each row of a String column, block by block; ``first`` is the number of its first row.

        Raises
        ------
        ValueError
            A row is not UTF-8.
        EngineUnavailableError
            ``engine="gpu"`` cannot run here.

        """
        sizes = text.str.len_bytes().fill_null(0).cast(pl.Int64).to_numpy()
        engine = choose(self.options.engine, int(sizes.sum()) // BYTES_A_WORD)
        before = running_sum(sizes)
        for start, stop in cut_blocks(sizes, len(sizes), TEXT_BYTES):
            yield from batches.each(engine, before[start : stop + 1], partial(self._rows, text, first, start), "bytes")

    def _rows(self, text: pl.Series, first: int, block: int, start: int, stop: int, engine: Engine) -> Terms:
        """Count the words of some rows of a block of a String column whose first row has a number."""
        tokenizer = self.tokenizer or Tokenizer("words")
        rows = text[block + start : block + stop]
        try:
            source = prepare_text(rows, tokenizer, engine, self.options.morphism, self.dictionary)
        except ValueError:
            require_utf8(text, first)  # names the row of the whole column
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
        if self.options.morphism is not None:  # the grammar stays as it is: its terms are merged where they become one
            image = self.options.morphism.apply(words.series)
            words, rank = image.words, kernels.load_array(_rank_by_image(image))
        strategy = choose_strategy(self.options.strategy, source, "term_vector")
        terms = kernels.terms_by_document(source.rules, source.root_offsets, source.roots, strategy, rank)
        if image is not None:
            terms, rank = kernels.merge_terms(*terms, kernels.load_array(image.ids)), None
        offsets, ids, counts = terms
        found = Terms(engine, words, False, source.rows, offsets, ids, counts, known_rank=rank)
        return found if self.dictionary is None else _of_dictionary(found, self.dictionary)

    def on_host(self, part: Terms) -> Terms:
        """Copy counts to host memory."""
        return part.on_host()

    def require_tokenizer(self, corpus: Corpus) -> None:
        """Raise ``TypeError`` where a corpus was cut otherwise than ``tokenizer=`` says."""
        own = corpus.grammar.tokenizer
        if self.tokenizer is not None and self.tokenizer.name != own:
            raise TypeError(
                f'{self.name}: tokenizer= is for String columns; {short_name(corpus.key)} was cut by "{own}", not '
                f'"{self.tokenizer.name}": leave it out, or decompress and compress(tokenizer=…) again'
            )

    def merge(self, partials: Sequence[Terms]) -> Terms:
        """Put the documents of several corpora into the order of their rows; no count changes."""
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


def _of_dictionary(terms: Terms, dictionary: Dictionary) -> Terms:
    """Keep the words of a dictionary; the others still count to the lengths of documents."""
    kept = np.zeros(len(terms.words), np.bool_)
    kept[_known(terms.words, np.flatnonzero(terms.frequencies), dictionary, terms.engine)] = True
    return terms.only(kept)


def _known(words: Vocabulary, occurring: Int64, dictionary: Dictionary, engine: Engine) -> Int64:
    """Find out which of the words that occur a dictionary has.

    Those of a grammar that was compressed with it are the first ones. To see that, all are compared: where few words
    occur, looking these up is faster.
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
    """Rank words by their images in code point order, so that those of one image stand together; deleted ones last."""
    ranks = np.append(image.words.rank, np.uint32(len(image.words)))
    order = np.argsort(ranks[np.minimum(image.ids, np.uint32(len(image.words)))], kind="stable")
    rank = np.empty(len(order), np.uint32)
    rank[order] = np.arange(len(order), dtype=np.uint32)
    return rank
