"""Each row's words and how often it has them, of a compressed column or of a String one: what weights are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.column import require_series, require_tadoc, split
from polars_tadoc.compress.tokenize import Tokenizer
from polars_tadoc.corpus import Corpus, require_countable
from polars_tadoc.dictionary.dictionary import Dictionary
from polars_tadoc.engine import CPU, Engine, choose
from polars_tadoc.kernels.codes import DELETED
from polars_tadoc.kernels.cpu.lists import gather_lists, running_sum
from polars_tadoc.morphism import Image
from polars_tadoc.payload import short_name
from polars_tadoc.traversal.options import Options
from polars_tadoc.traversal.selector import choose_strategy
from polars_tadoc.traversal.source import prepare
from polars_tadoc.traversal.text_source import prepare_text
from polars_tadoc.vocabulary import Vocabulary, unify
from polars_tadoc.weighting import BM25, Weighting

Int64 = npt.NDArray[np.int64]

TEXT_BYTES = 1 << 30
"""Text that is cut into words at a time: places in it are numbered in 31 bits on a GPU."""

BYTES_A_WORD = 6
"""Bytes of text for each word, about, in European languages: by it the engine is chosen."""


@dataclass(frozen=True, eq=False)
class Terms:
    """Each document's words, each once, in code point order.

    Parameters
    ----------
    engine
        Whose arrays these are.
    words
        The words by id.
    ascending
        Whether ids are in code point order.
    rows
        int64 by document, in host memory, ascending: its row.
    offsets, ids, counts
        int64, documents + 1, uint32 and uint64 by word of a document: arrays of the engine.
    known_lengths
        uint64 by document, an array of the engine: its words, with those that are not in a dictionary; None where none
        is left out.

    """

    engine: Engine
    words: Vocabulary
    ascending: bool
    rows: Int64
    offsets: Any
    ids: Any
    counts: Any
    known_lengths: Any | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and the words."""
        arrays = (self.rows, self.offsets, self.ids, self.counts)
        return sum(int(array.nbytes) for array in arrays) + self.words.nbytes

    @cached_property
    def frequencies(self) -> npt.NDArray[np.uint64]:
        """How many documents hold each word, uint64, in host memory."""
        kernels = self.engine.kernels
        found: npt.NDArray[np.uint64] = kernels.to_host(kernels.document_frequencies(self.ids, len(self.words)))
        return found

    @property
    def lengths(self) -> npt.NDArray[np.uint64]:
        """How many words each document has, uint64, in host memory."""
        kernels, lengths = self.engine.kernels, self.known_lengths
        lengths = kernels.document_lengths(self.offsets, self.counts) if lengths is None else lengths
        made: npt.NDArray[np.uint64] = kernels.to_host(lengths)
        return made

    def on_host(self) -> Terms:
        """Return the same with all arrays in host memory."""
        if self.engine is CPU:
            return self
        to_host = self.engine.kernels.to_host
        lengths = None if self.known_lengths is None else to_host(self.known_lengths)
        offsets, ids, counts = (to_host(array) for array in (self.offsets, self.ids, self.counts))
        return Terms(CPU, self.words, self.ascending, self.rows, offsets, ids, counts, lengths)

    def weigh(self, weighting: Weighting) -> Any:
        """Weigh all words: float64 by word of a document, an array of the engine."""
        kernels, documents = self.engine.kernels, len(self.rows)
        found = np.maximum(self.frequencies, np.uint64(1)).astype(np.float64)  # words that no row holds any more
        load = kernels.load_array
        if not isinstance(weighting, BM25):
            idf = weighting.idf(documents, found)
            factors = None if idf is None else load(idf)
            return kernels.weigh_tfidf(
                self.offsets, self.ids, self.counts, factors, sublinear=weighting.sublinear_tf, norm=weighting.norm
            )
        form, lengths = weighting.form, self.lengths
        norms = form.exact_norms(lengths, float(lengths.sum()) / max(documents, 1))
        bases = load(form.bases(documents, found)) if form.has_base else None
        weights = load(form.weights(documents, found))
        return kernels.weigh_bm25(self.offsets, self.ids, self.counts, weights, load(norms), bases)

    def top(self, weights: Any, top: int) -> tuple[Any, Any, Any]:
        """Keep each document's heaviest words: offsets, ids and weights, arrays of the engine."""
        kernels = self.engine.kernels
        rank = None if self.ascending else kernels.load_array(self.words.rank)
        kept: tuple[Any, Any, Any] = kernels.top_weights(self.offsets, self.ids, weights, rank, top)
        return kept


@dataclass(frozen=True)
class Counting:
    """How each row's words are counted, checked when it is made."""

    call: str
    """The call, for messages."""
    tokenizer: Tokenizer | None
    dictionary: Dictionary | None
    options: Options

    @classmethod
    def from_arguments(
        cls,
        call: str,
        *,
        tokenizer: str | re.Pattern[str] | None,
        dictionary: Dictionary | None = None,
        normalize: pl.Expr | None,
        lowercase: bool,
        stopwords: Iterable[str] | None,
        strategy: str,
        engine: str | None,
    ) -> Self:
        """Check the arguments; errors as the calls'."""
        options = Options.from_arguments(
            normalize=normalize, lowercase=lowercase, stopwords=stopwords, strategy=strategy, engine=engine
        )
        if dictionary is not None and not isinstance(dictionary, Dictionary):
            raise TypeError(
                f"{call}: dictionary is {type(dictionary).__name__}, not a Dictionary; Dictionary.from_words makes one"
            )
        return cls(call, None if tokenizer is None else Tokenizer.from_argument(tokenizer), dictionary, options)

    def terms(self, column: pl.Series) -> Terms:
        """Count each row's words; errors as the calls'."""
        require_series(column, self.call)
        if column.dtype == pl.String:
            return self.merge(list(self.text_partials(column)))
        require_tadoc(column, self.call)
        corpora = split(column)
        require_countable(corpora)
        engine = choose(self.options.engine, sum(corpus.symbol_count for corpus in corpora))
        return self.merge([self.partial(corpus, engine) for corpus in corpora])

    def text_partials(self, text: pl.Series, first: int = 0) -> Iterator[Terms]:
        """Count the words of each row of a String column, so much text at a time; ``first`` is the first row's number.

        Raises
        ------
        ValueError
            A row is not UTF-8.
        EngineUnavailableError
            ``engine="gpu"`` cannot run here.

        """
        tokenizer = self.tokenizer or Tokenizer("words")
        sizes = text.str.len_bytes().fill_null(0).to_numpy()
        engine = choose(self.options.engine, int(sizes.sum()) // BYTES_A_WORD)
        for start, stop in _blocks(sizes, TEXT_BYTES):
            source = prepare_text(text[start:stop], tokenizer, engine, self.options.morphism, self.dictionary)
            offsets, ids, counts = engine.kernels.terms_by_document(
                source.rules, source.root_offsets, source.roots, "top_down", source.rank
            )
            rows = source.rows + (first + start)
            yield Terms(engine, source.words, True, rows, offsets, ids, counts, source.lengths)

    def partial(self, corpus: Corpus, engine: Engine) -> Terms:
        """Count one corpus' words by document."""
        own = corpus.grammar.tokenizer
        if self.tokenizer is not None and self.tokenizer.name != own:
            raise TypeError(
                f'{self.call}: tokenizer= is for String columns; {short_name(corpus.key)} was cut by "{own}", not '
                f'"{self.tokenizer.name}": leave it out, or decompress and compress(tokenizer=…) again'
            )
        source, kernels = prepare(corpus, engine), engine.kernels
        words, rank, image = source.words, source.rank, None
        if self.options.morphism is not None:  # the grammar stays as it is: its terms are merged where they become one
            image = self.options.morphism.apply(words.series)
            words, rank = image.words, kernels.load_array(_rank_by_image(image))
        strategy = choose_strategy(self.options.strategy, source, "term_vector")
        terms = kernels.terms_by_document(source.rules, source.root_offsets, source.roots, strategy, rank)
        if image is not None:
            terms = kernels.merge_terms(*terms, kernels.load_array(image.ids))
        lengths = None
        if self.dictionary is not None:
            offsets, _, counts = terms
            lengths = kernels.document_lengths(offsets, counts)
            known = self.dictionary.ids(words.series) != self.dictionary.unknown
            kept = np.where(known.to_numpy(), np.arange(len(words), dtype=np.uint32), np.uint32(DELETED))
            terms = kernels.merge_terms(*terms, kernels.load_array(kept))
        offsets, ids, counts = terms
        return Terms(engine, words, False, source.rows, offsets, ids, counts, lengths)

    def merge(self, partials: Sequence[Terms]) -> Terms:
        """Put the documents of several corpora into the order of their rows; no count changes."""
        if len(partials) == 1:
            return partials[0]
        parts = [part.on_host() for part in partials]
        words, maps = unify([part.words for part in parts])
        rows = np.concatenate([np.zeros(0, np.int64), *(part.rows for part in parts)])
        ids = np.concatenate([np.zeros(0, np.uint32), *(own[part.ids] for own, part in zip(maps, parts, strict=True))])
        counts = np.concatenate([np.zeros(0, np.uint64), *(part.counts for part in parts)])
        offsets = running_sum(np.concatenate([np.zeros(0, np.int64), *(np.diff(part.offsets) for part in parts)]))
        lengths = None
        if self.dictionary is not None:
            lengths = np.concatenate([np.zeros(0, np.uint64), *(part.lengths for part in parts)])
        if (rows[1:] < rows[:-1]).any():
            order = np.argsort(rows)
            rows, lengths = rows[order], None if lengths is None else lengths[order]
            (_, ids), (offsets, counts) = gather_lists(offsets, ids, order), gather_lists(offsets, counts, order)
        return Terms(CPU, words, False, rows, offsets, ids, counts, lengths)


def _rank_by_image(image: Image) -> npt.NDArray[np.uint32]:
    """Rank words by their images in code point order, so that those of one image stand together; deleted ones last."""
    ranks = np.append(image.words.rank, np.uint32(len(image.words)))
    order = np.argsort(ranks[np.minimum(image.ids, np.uint32(len(image.words)))], kind="stable")
    rank = np.empty(len(order), np.uint32)
    rank[order] = np.arange(len(order), dtype=np.uint32)
    return rank


def _blocks(sizes: npt.NDArray[np.uint32], most: int) -> Iterator[tuple[int, int]]:
    """Cut rows into stretches of at most so many bytes, or of one row."""
    before = running_sum(sizes)
    start = 0
    while start < len(sizes):
        stop = max(int(np.searchsorted(before, before[start] + most, side="right")) - 1, start + 1)
        yield start, stop
        start = stop
